"""What is read of ChatGPT's and Claude's exports: what was said, along the branch that was open last."""

from datetime import UTC, datetime
from typing import Any

import pytest

from jarvis_memory.archive import ArchivedAttachment, ArchivedConversation
from jarvis_memory.errors import ImportInvalid
from jarvis_memory.import_file import read_file
from tests.archives import chatgpt, claude, file_of, node, said_to_claude


def read(conversation: dict[str, Any]) -> ArchivedConversation:
    found = next(read_file(file_of([conversation])))
    assert isinstance(found, ArchivedConversation)
    return found


def said(conversation: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in read(conversation).messages]


def said_alone(*arguments: Any, **more: Any) -> str | None:
    """What becomes of one node between a question and an answer; None when it is left out."""
    nodes = [
        node("q", None, "user", "Frage"),
        node("x", "q", *arguments, **more),
        node("a", "x", "assistant", "Antwort"),
    ]
    between = said(chatgpt(*nodes))[1:-1]
    return between[0][1] if between else None


# --- ChatGPT


def test_a_conversation_of_chatgpt_keeps_its_texts_times_and_id() -> None:
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["s"]},
        node("s", "root", "system", "You are ChatGPT"),
        node("a", "s", "user", "Wohin?", create_time=1_700_000_010.25),
        node("b", "a", "assistant", "Ans Meer.", create_time=None),
    ]
    found = read(chatgpt(*nodes, is_archived=True, is_starred=True))
    assert [(one.role, one.content) for one in found.messages] == [("user", "Wohin?"), ("assistant", "Ans Meer.")]
    at = datetime.fromtimestamp(1_700_000_010.25, UTC)
    # A message without a time has that of the one before it.
    assert [one.created_at for one in found.messages] == [at, at]
    assert (found.external_id, found.title, found.title_by_user) == ("chatgpt:c1", "Urlaub", True)
    assert (found.archived, found.pinned, found.remember) == (True, True, True)
    assert found.updated_at == datetime.fromtimestamp(1_700_000_100, UTC)


def test_no_summary_is_due_for_a_foreign_conversation() -> None:
    for conversation in (
        chatgpt(node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer.")),
        claude(said_to_claude("a", "human", "Wohin?"), said_to_claude("b", "assistant", "Ans Meer.")),
    ):
        summary = read(conversation).summary
        assert summary is not None
        assert (summary.text, summary.messages) == (None, 2)


def test_what_chatgpt_was_told_not_to_remember_stays_out_of_the_memory() -> None:
    assert not read(chatgpt(node("a", None, "user", "Wohin?"), is_do_not_remember=True)).remember


def test_only_the_branch_that_was_open_last_is_read() -> None:
    nodes = [
        node("a", None, "user", "Erste Frage"),
        node("b", "a", "assistant", "Verworfen"),
        node("c", "a", "assistant", "Behalten"),
        node("d", "b", "user", "Im verworfenen Zweig"),
        node("e", "c", "user", "Zweite Frage"),
    ]
    kept = [("user", "Erste Frage"), ("assistant", "Behalten"), ("user", "Zweite Frage")]
    assert said(chatgpt(*nodes)) == kept
    # A pointer to a node that was deleted, or none: the newest leaf.
    for current in ("gone", None, 5, ["e"]):
        assert said(chatgpt(*nodes, current_node=current)) == kept


def test_a_tree_that_names_only_the_children_is_read_too() -> None:
    nodes = [node("a", None, "user", "Frage"), node("b", None, "assistant", "Antwort")]
    nodes[0]["children"] = ["b"]
    assert said(chatgpt(*nodes)) == [("user", "Frage"), ("assistant", "Antwort")]


def test_deleted_nodes_and_circles_end_the_branch() -> None:
    assert said(chatgpt(node("b", "gone", "user", "Rest"))) == [("user", "Rest")]
    circle = [node("a", "b", "user", "Eins"), node("b", "a", "assistant", "Zwei")]
    assert said(chatgpt(*circle)) == [("user", "Eins"), ("assistant", "Zwei")]


def test_what_tools_did_and_what_was_hidden_is_left_out() -> None:
    assert said_alone("tool", "Suchergebnis") is None
    assert said_alone("system", "Anweisung") is None
    assert said_alone("user", "Profil", metadata={"is_visually_hidden_from_conversation": True}) is None
    assert said_alone("assistant", "search('x')", recipient="web") is None
    assert said_alone("assistant", {"content_type": "code", "text": "print(1)"}, recipient="python") is None
    for kind in ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "new_kind"):
        assert said_alone("assistant", {"content_type": kind, "content": "x", "thoughts": [], "parts": ["x"]}) is None
    for empty in ("", "  \n", [], [None, 5, {}], {"content_type": "text", "parts": None}, None):
        assert said_alone("assistant", empty) is None


def test_images_voice_and_files_leave_a_note() -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://x"}
    spoken = {"content_type": "audio_transcription", "text": "Was siehst du?", "direction": "in"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://y"}
    call = {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": sound}
    assert said_alone("user", [picture, "Was ist das?"]) == "🖼️\n\nWas ist das?"
    assert said_alone("user", [spoken, call]) == "Was siehst du?"
    assert said_alone("user", [sound]) == "🎤"
    files = [{"name": "plan.pdf", "mime_type": "application/pdf"}, {"name": "foto.png", "mime_type": "image/png"}]
    assert said_alone("user", "Lies", metadata={"attachments": files}) == "Lies\n\n📎 plan.pdf"


def test_code_and_a_canvas_are_kept_as_text() -> None:
    code = {"content_type": "code", "language": "python", "text": "print('```')\n"}
    assert said_alone("assistant", code) == "````python\nprint('```')\n````"
    assert said_alone("assistant", code | {"language": "unknown", "text": "x"}) == "```\nx\n```"
    to_canvas = {"recipient": "canmore.create_textdoc"}
    letter = '{"name": "Brief", "type": "document", "content": "Liebe Oma"}'
    assert said_alone("assistant", letter, **to_canvas) == "**Brief**\n\nLiebe Oma"
    program = {"content_type": "code", "text": '{"name": "p", "type": "code/python", "content": "x = 1"}'}
    assert said_alone("assistant", program, **to_canvas) == "**p**\n\n```python\nx = 1\n```"
    assert said_alone("assistant", "no json", **to_canvas) is None
    assert said_alone("assistant", '{"updates": []}', recipient="canmore.update_textdoc") is None


def test_citations_are_taken_out() -> None:
    assert said_alone("assistant", "Regen.\ue200cite\ue202turn0search1\ue201 Morgen.") == "Regen. Morgen."


def test_a_conversation_begins_with_what_the_person_said() -> None:
    assert said(chatgpt(node("a", None, "assistant", "Willkommen"), node("b", "a", "user", "Hallo"))) == [
        ("user", "Hallo")
    ]
    assert said(chatgpt(node("a", None, "assistant", "Willkommen"))) == []
    assert said(claude(said_to_claude("a", "assistant", "Willkommen"), said_to_claude("b", "human", "Hallo"))) == [
        ("user", "Hallo")
    ]


@pytest.mark.parametrize("broken", [{"mapping": None}, {"mapping": {}}, {"mapping": {"a": None, "b": 5, "c": {}}}])
def test_a_conversation_without_messages_is_empty(broken: dict[str, Any]) -> None:
    assert read(chatgpt() | broken).messages == []


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (chatgpt() | {"mapping": [1]}, "[0].mapping"),
        (chatgpt() | {"conversation_id": None, "id": 5}, "[0].conversation_id"),
        (chatgpt() | {"conversation_id": "x" * 300}, "[0].conversation_id"),
        (claude() | {"chat_messages": {"a": 1}}, "[0].chat_messages"),
        (claude() | {"uuid": ""}, "[0].uuid"),
    ],
)
def test_a_broken_frame_is_named(broken: dict[str, Any], place: str) -> None:
    with pytest.raises(ImportInvalid) as refused:
        read(broken)
    assert refused.value.details["field"] == place


@pytest.mark.parametrize("time", [None, "gestern", -1e20, 1e300, True, {}, -62135596800])
def test_an_impossible_time_is_replaced_by_the_conversation_s(time: Any) -> None:
    found = read(chatgpt(node("a", None, "user", "Wohin?", create_time=time)))
    assert found.messages[0].created_at == datetime.fromtimestamp(1_700_000_000, UTC)
    found = read(claude(said_to_claude("a", "human", "Wohin?", created_at=time)))
    assert found.messages[0].created_at == datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("title", [None, 5, "", "  "])
def test_a_conversation_without_a_title_waits_for_one(title: Any) -> None:
    for found in (read(chatgpt(node("a", None, "user", "x"), title=title)), read(claude(name=title))):
        assert (found.title, found.title_by_user) == ("", False)


def test_a_title_is_one_short_line_without_what_cannot_be_stored() -> None:
    found = read(chatgpt(node("a", None, "user", "x\x00\ud800y"), title="Ein\n\x00" + "sehr " * 50))
    assert found.title.startswith("Ein sehr sehr")
    assert len(found.title) <= 80
    assert found.messages[0].content == "xy"


# --- Claude


def test_a_conversation_of_claude_keeps_its_texts_times_and_id() -> None:
    found = read(
        claude(said_to_claude("a", "human", "Wohin?"), said_to_claude("b", "assistant", "Ans Meer."), is_starred=True)
    )
    assert [(one.role, one.content) for one in found.messages] == [("user", "Wohin?"), ("assistant", "Ans Meer.")]
    assert found.messages[0].created_at == datetime(2026, 3, 1, 10, 0, 0, 123456, UTC)
    assert (found.external_id, found.title, found.pinned) == ("claude:u1", "Urlaub", True)
    assert found.updated_at == datetime(2026, 3, 2, 10, tzinfo=UTC)


def test_of_the_blocks_only_what_was_said_is_read() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "text", "text": "Ich suche."},
        {"type": "tool_use", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "Treffer"}]},
        {"type": "token_budget"},
        {"type": "text", "text": "Gefunden."},
        {"type": "voice_note", "title": "Notiz", "text": "Gesprochen."},
        None,
    ]
    answer = said_to_claude("b", "assistant", "flach", content=blocks)
    expected = ("assistant", "Ich suche.\n\nGefunden.\n\nGesprochen.")
    assert said(claude(said_to_claude("a", "human", "x"), answer)) == [("user", "x"), expected]


def test_an_old_message_without_blocks_is_read_from_its_text() -> None:
    left_out = "Ich suche.\n```\nThis block is not supported on your current device yet.\n```\n\nGefunden."
    messages = [said_to_claude("a", "human", "x", content=[]), said_to_claude("b", "assistant", left_out, content=None)]
    assert said(claude(*messages)) == [("user", "x"), ("assistant", "Ich suche.\n\nGefunden.")]


def test_of_a_tree_only_the_open_branch_is_read() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    messages = [
        said_to_claude("a", "human", "Frage", root),
        said_to_claude("b", "assistant", "Verworfen", "a"),
        said_to_claude("c", "assistant", "Behalten", "a"),
    ]
    assert said(claude(*messages)) == [("user", "Frage"), ("assistant", "Behalten")]
    assert said(claude(*messages, current_leaf_message_uuid="b")) == [("user", "Frage"), ("assistant", "Verworfen")]


def test_an_attached_text_comes_along_and_another_file_leaves_its_name() -> None:
    pasted = {"file_name": "rezept.txt", "extracted_content": "Mehl,\x00 Eier", "file_type": "txt"}
    messages = [
        said_to_claude("a", "human", "Lies", attachments=[pasted, {"file_name": "leer", "extracted_content": ""}]),
        said_to_claude("b", "assistant", "Gern."),
        said_to_claude("c", "human", "", attachments=[{"extracted_content": "Nur eingefügt"}]),
        said_to_claude("d", "human", "", files=[{"file_name": "foto.png"}]),
        said_to_claude("e", "human", "", attachments=None, files=None),
    ]
    conversation, first, second = read_file(file_of([claude(*messages)]))
    assert isinstance(conversation, ArchivedConversation)
    contents = [message.content for message in conversation.messages]
    assert contents == ["Lies", "Gern.", "📎 paste.txt", "📎 foto.png"]
    assert isinstance(first, ArchivedAttachment)
    assert isinstance(second, ArchivedAttachment)
    assert (first.at.message, first.file.name, first.file.media_type) == (0, "rezept.txt", "text/plain")
    assert first.file.content == b"Mehl, Eier"
    assert (second.at.message, second.file.name, second.file.content) == (2, "paste.txt", "Nur eingefügt".encode())


def test_other_senders_and_broken_messages_are_left_out() -> None:
    messages = [said_to_claude("a", "human", "x"), said_to_claude("b", "system", "y"), None, "z", {"sender": "human"}]
    assert said(claude(*messages)) == [("user", "x")]  # type: ignore[arg-type]

"""What a file to import is recognised as, and what is refused, with the place that is wrong."""

import copy
import io
import zipfile
from typing import Any

import pytest

from jarvis_memory import import_file
from jarvis_memory.archive import (
    ArchivedAttachment,
    ArchivedConversation,
    ArchivedDocument,
    ArchivedFact,
    ArchivedVersion,
)
from jarvis_memory.errors import ImportInvalid, ImportTooLarge, ImportTooNew, ImportUnknown, ImportUnreadable
from jarvis_memory.import_file import check_file, read_file
from tests.archives import (
    CONVERSATION,
    FACT,
    MESSAGE,
    chatgpt,
    claude,
    export_of,
    file_of,
    node,
    said_to_claude,
    zip_of,
)

CHATGPT = chatgpt(node("r", None, "system"), node("a", "r", "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer."))
CLAUDE = claude(said_to_claude("a", "human", "Wohin?"), said_to_claude("b", "assistant", "Ans Meer."))
TOOL = {"type": "tool", "id": "t1", "name": "remember_fact", "input": {"fact": "x"}, "at": 0}


def place_refused(document: dict[str, Any]) -> str:
    with pytest.raises(ImportInvalid) as refused:
        check_file(file_of(document))
    assert str(refused.value).startswith(refused.value.details["field"])
    return str(refused.value.details["field"])


def with_message(**changes: Any) -> dict[str, Any]:
    return export_of(conversations=[CONVERSATION | {"messages": [MESSAGE | changes]}], facts=[], versions=[])


def with_block(block: Any) -> dict[str, Any]:
    return with_message(role="assistant", blocks=[block])


# --- what is recognised


def test_an_export_of_jarvis_is_recognised_and_counted() -> None:
    contents = check_file(file_of(export_of()))
    assert (contents.program, contents.conversations, contents.messages, contents.facts) == ("jarvis", 1, 2, 1)
    assert contents.documents == 1
    assert contents.external_ids == {"one"}
    kinds = [type(item) for item in read_file(file_of(export_of()))]
    assert kinds[1:] == [ArchivedConversation, ArchivedFact, ArchivedVersion, ArchivedAttachment, ArchivedDocument]


@pytest.mark.parametrize(("conversation", "program"), [(CHATGPT, "chatgpt"), (CLAUDE, "claude")])
def test_another_program_s_export_is_recognised_also_in_its_archive(conversation: dict[str, Any], program: str) -> None:
    other = copy.deepcopy(conversation) | ({"conversation_id": "c2"} if program == "chatgpt" else {"uuid": "u2"})
    for file in (
        file_of([conversation, other]),
        zip_of({"conversations.json": [conversation, other], "users.json": [{"uuid": "x"}], "chat.html": b"<html>"}),
        zip_of({"export/conversations-000.json": [conversation], "export/conversations-001.json": [other]}),
        zip_of({"chats.json": [conversation, other], "__MACOSX/._chats.json": b"\x00"}),
    ):
        contents = check_file(file)
        assert (contents.program, contents.conversations, contents.messages) == (program, 2, 4)


def test_an_export_of_jarvis_may_be_in_an_archive() -> None:
    assert check_file(zip_of({"jarvis-2026-12-01.json": export_of()})).conversations == 1


def test_what_a_person_added_is_of_no_concern() -> None:
    assert check_file(file_of(export_of(note="my backup", notes=[1, 2]))).conversations == 1


def test_an_export_without_anything_is_one() -> None:
    empty = {"format": "jarvis-export", "version": 1}
    assert check_file(file_of(empty)).conversations == 0


# --- what is not


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        [1],
        [[]],
        [{"name": "x"}],
        {"conversations": []},
        {"format": "other-export", "version": 1},
        {"version": 1, "conversations": [CONVERSATION]},
        {"users": [{"login": "x"}]},
        [CLAUDE, {"uuid": "x"}],
    ],
)
def test_another_document_is_no_export(document: Any) -> None:
    with pytest.raises(ImportUnknown):
        check_file(file_of(document))


@pytest.mark.parametrize("file", [b"", b"Liebes Tagebuch", b"\x89PNG\r\n", b"[{]", b"PK\x03\x04 and no archive"])
def test_a_damaged_file_is_called_so(file: bytes) -> None:
    with pytest.raises(ImportUnreadable):
        check_file(io.BytesIO(file))


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(ImportTooNew):
        check_file(file_of(export_of(version=2)))


@pytest.mark.parametrize("version", [None, "1", 0, -1, 1.5, True])
def test_a_version_is_a_number(version: Any) -> None:
    assert place_refused(export_of(version=version)) == "version"


def test_archives_with_nothing_or_several_things_to_read_are_no_export() -> None:
    for file in (zip_of({"chat.html": b"<html>"}), zip_of({"a.json": [CLAUDE], "b.json": [CLAUDE]})):
        with pytest.raises(ImportUnknown):
            check_file(file)


def test_an_archive_that_is_cut_off_or_locked_is_unreadable() -> None:
    whole = zip_of({"conversations.json": [CLAUDE]}).getvalue()
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.rindex(b"PK\x01\x02") + 8] |= 1
    broken = whole.replace(whole[60:70], b"\x00" * 10)
    for content in (whole[:-30], bytes(locked), broken):
        with pytest.raises(ImportUnreadable):
            check_file(io.BytesIO(content))


def test_an_archive_that_unpacks_to_far_too_much_is_refused() -> None:
    with pytest.raises(ImportTooLarge):
        check_file(zip_of({"conversations.json": b" " * 50_000_000}))


def test_an_archive_that_lies_about_its_size_is_not_unpacked_beyond_it() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("conversations.json", b"[" + b" " * 50_000_000)
    content = bomb.getvalue().replace((50_000_001).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    with pytest.raises(ImportUnreadable):
        check_file(io.BytesIO(content))


def test_more_conversations_than_anybody_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_file, "CONVERSATIONS", 2)
    with pytest.raises(ImportTooLarge):
        check_file(file_of([claude(number=f"u{number}") for number in range(3)]))


# --- every field


@pytest.mark.parametrize(
    ("field", "value"),
    [("title", 1), ("title", "x" * 501), ("title_by_user", "yes"), ("remember", None), ("reads_memory", 1)]
    + [("pinned", "false"), ("archived", []), ("model", 5), ("model", " "), ("external_id", ""), ("external_id", None)]
    + [("created_at", None), ("updated_at", "yesterday"), ("messages", None), ("messages", {})],
)
def test_a_field_of_a_conversation_is_named(field: str, value: Any) -> None:
    assert place_refused(export_of(conversations=[CONVERSATION | {field: value}])) == f"conversations[0].{field}"


@pytest.mark.parametrize(
    ("field", "value"),
    [("role", "system"), ("role", None), ("content", None), ("content", ["x"]), ("status", "done"), ("blocks", None)]
    + [("excluded_from_memory", 0), ("tokens_used", -1), ("tokens_used", 1.5), ("tokens_used", 2**40)]
    + [("tokens_used", True), ("usage", [])],
)
def test_a_field_of_a_message_is_named(field: str, value: Any) -> None:
    assert place_refused(with_message(**{field: value})) == f"conversations[0].messages[0].{field}"


@pytest.mark.parametrize(
    "moment",
    ["2026-11-12T09:30:00", "2026-02-30T00:00:00Z", "2026-11-12", "12.11.2026", 1_700_000_000, "0001-01-01T00:00:00Z"]
    + ["9999-12-31T23:59:59Z", "2026-11-12T25:00:00Z", "2026-11-12T09:30:00+99:00", ""],
)
def test_a_time_has_a_zone_and_exists(moment: Any) -> None:
    assert place_refused(with_message(created_at=moment)) == "conversations[0].messages[0].created_at"


def test_a_text_beyond_the_limit_is_refused() -> None:
    assert place_refused(with_message(content="x" * 5_000_001)) == "conversations[0].messages[0].content"


@pytest.mark.parametrize("what", ["conversations", "facts", "versions", "attachments"])
@pytest.mark.parametrize("item", [None, 1, "x", []])
def test_an_item_is_an_object(what: str, item: Any) -> None:
    assert place_refused(export_of(**{what: [item]})).startswith(f"{what}[0]")


def test_a_conversation_stands_in_the_file_once() -> None:
    assert place_refused(export_of(conversations=[CONVERSATION, CONVERSATION])) == "conversations[1].external_id"


@pytest.mark.parametrize(
    ("field", "value"),
    [("content", " . "), ("content", "x" * 1_001), ("content", 1), ("origin", "dream"), ("created_at", "")]
    + [
        ("source", 5),
        ("source", {"conversation": "two", "message": 0}),
        ("source", {"conversation": "one", "message": 2}),
    ],
)
def test_a_field_of_a_fact_is_named(field: str, value: Any) -> None:
    assert place_refused(export_of(facts=[FACT, FACT | {field: value}])) == f"facts[1].{field}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "###"),
        ("content", "/wD/"),
        ("content", "AA=="),
        ("media_type", "text/html"),
        ("name", ""),
        ("pages", -1),
    ]
    + [("at", {"conversation": "one", "message": -1})],
)
def test_a_field_of_an_attachment_is_named(field: str, value: Any) -> None:
    document = export_of()
    document["attachments"][0][field] = value
    assert place_refused(document).startswith(f"attachments[0].{field}")


@pytest.mark.parametrize(
    ("field", "value"), [("content", ""), ("content", "IA=="), ("content", "?"), ("name", " "), ("created_at", "?")]
)
def test_a_field_of_a_document_is_named(field: str, value: Any) -> None:
    document = export_of()
    document["documents"][0][field] = value
    assert place_refused(document) == f"documents[0].{field}"


def test_the_name_of_a_document_is_no_path() -> None:
    document = export_of()
    document["documents"][0]["name"] = "../../etc/Miet\x00vertrag.md"
    [found] = [item for item in read_file(file_of(document)) if isinstance(item, ArchivedDocument)]
    assert found.name == "Mietvertrag.md"


def test_a_picture_is_what_it_says() -> None:
    document = export_of()
    document["attachments"][0]["media_type"] = "image/png"
    assert place_refused(document) == "attachments[0].content"


@pytest.mark.parametrize(
    ("name", "value"),
    [("language", "xx"), ("time_zone", "Mars"), ("model", "a b"), ("memory", "maybe"), ("instructions", "x" * 4_001)],
)
def test_a_preference_can_be_chosen(name: str, value: str) -> None:
    assert place_refused(export_of(preferences={name: value})) == f"preferences.{name}"


@pytest.mark.parametrize("summary", [{"text": "x", "messages": 3}, {"text": 1, "messages": 1}, {"messages": -1}, 7])
def test_a_summary_knows_messages_that_are_there(summary: Any) -> None:
    if isinstance(summary, dict):
        summary = {"updated_at": MESSAGE["created_at"]} | summary
    document = export_of(conversations=[CONVERSATION | {"summary": summary}])
    assert place_refused(document).startswith("conversations[0].summary")


PASSAGE = {"text": "x"}
READ = {"document": "x", "passages": [PASSAGE]}


@pytest.mark.parametrize(
    "block",
    [
        "x",
        {},
        {"type": "recalled", "text": "x"},
        {"type": "tool"},
        TOOL | {"input": None},
        TOOL | {"result": {"already_known": "x", "fact": "x"}, "is_error": False},
        TOOL | {"result": {"already_known": True}, "is_error": False},
        TOOL | {"result": {}, "is_error": None},
        TOOL | {"name": "update_fact", "result": {"fact": "x"}, "is_error": False},
        TOOL | {"name": "search_memory", "result": {"facts": 3}, "is_error": False},
        TOOL | {"name": "forget_fact", "result": {"deleted": False}, "is_error": False},
        TOOL | {"name": "other", "result": {"matches": [{"id": 1}]}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": 3}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": [{"page": 1}]}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": [PASSAGE | {"page": "1"}]}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": [PASSAGE | {"heading": 5}]}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": [PASSAGE | {"document": ["x"]}]}, "is_error": False},
        TOOL | {"name": "search_documents", "result": {"passages": [PASSAGE | {"passage_id": 1}]}, "is_error": False},
        TOOL | {"name": "read_document", "result": {"passages": [PASSAGE]}, "is_error": False},
        TOOL | {"name": "read_document", "result": READ | {"document_id": 1}, "is_error": False},
        TOOL | {"name": "read_document", "result": READ, "is_error": False, "input": {"pages": 3}},
        {"type": "notice"},
        {"type": "error", "error": "X", "details": {"limit": []}},
        {"type": "error", "error": "X"},
    ],
)
def test_a_block_that_no_page_could_draw_is_refused(block: Any) -> None:
    assert place_refused(with_block(block)).startswith("conversations[0].messages[0].blocks[0]")


def test_a_forgotten_fact_is_not_undone_in_another_database() -> None:
    result = {"deleted": True, "content": "x", "conversations": [], "forgetting_id": 5}
    place = place_refused(with_block(TOOL | {"name": "forget_fact", "result": result, "is_error": False}))
    assert place.endswith("result.forgetting_id")


def test_what_is_nested_without_end_or_too_large_a_number_is_refused() -> None:
    deep: Any = "x"
    for _ in range(30):
        deep = [deep]
    assert ".input" in place_refused(with_block(TOOL | {"input": {"a": deep}}))
    document = file_of(with_block(TOOL | {"input": {"a": 4711}})).getvalue().replace(b"4711", b"1e999")
    with pytest.raises(ImportInvalid):
        check_file(io.BytesIO(document))


def test_nul_and_lone_surrogates_are_cleaned_everywhere() -> None:
    dirty = "a\x00b\ud800c"
    document = export_of(
        conversations=[
            CONVERSATION
            | {
                "title": dirty,
                "messages": [MESSAGE | {"content": dirty, "blocks": [TOOL | {"input": {dirty: [dirty]}}]}],
            }
        ],
        facts=[FACT | {"content": dirty}],
        versions=[],
        attachments=[],
        documents=[],
    )
    _, conversation, fact = read_file(file_of(document))
    assert isinstance(conversation, ArchivedConversation)
    assert isinstance(fact, ArchivedFact)
    assert (conversation.title, conversation.messages[0].content, fact.content) == ("abc", "abc", "abc")
    assert conversation.messages[0].blocks[0]["input"] == {"abc": ["abc"]}


def test_what_a_tool_found_in_documents_is_taken_over() -> None:
    read = TOOL | {"name": "read_document", "result": READ | {"document_id": None}, "is_error": False}
    found = TOOL | {
        "name": "search_documents",
        "result": {"passages": [PASSAGE | {"page": 3, "heading": "§ 1", "document": "x"}]},
    }
    message = MESSAGE | {"role": "assistant", "blocks": [read, found | {"is_error": False}]}
    document = export_of(conversations=[CONVERSATION | {"messages": [MESSAGE, message]}], versions=[], attachments=[])
    conversation = next(item for item in read_file(file_of(document)) if isinstance(item, ArchivedConversation))
    assert [block["name"] for block in conversation.messages[1].blocks] == ["read_document", "search_documents"]

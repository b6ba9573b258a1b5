"""What of a conversation is replayed: merged, trimmed, without tools and thinking, and valid for the API."""

from datetime import UTC, datetime
from typing import Any

from jarvis_memory.conversations import Message, Role, Status
from jarvis_memory.history import build_history, unfinished_calls
from tests.history_rules import violations


def message(role: Role, content: str, *blocks: dict[str, Any], status: Status = "complete") -> Message:
    return Message(
        id=1,
        conversation_id=1,
        role=role,
        content=content,
        blocks=list(blocks),
        status=status,
        created_at=datetime(2026, 11, 12, tzinfo=UTC),
    )


def built(*messages: Message, recalled: bool = True) -> list[tuple[str, list[str]]]:
    """Role and texts of each message; and the API takes it."""
    history = build_history(list(messages), "de", {}, documents=True, recalled=recalled)
    request = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": history}
    assert not history or violations(request) is None
    return [(one["role"], [block["text"] for block in one["content"]]) for one in history]


def tool_call(**more: Any) -> dict[str, Any]:
    return {"type": "tool", "id": "toolu_1", "name": "remember_fact", "input": {"fact": "Bruno"}, "at": 0} | more


def test_a_conversation_is_replayed_as_plain_text_in_order() -> None:
    said = built(message("user", "Hallo"), message("assistant", "Guten Tag"), message("user", "Wie geht es?"))
    assert said == [("user", ["Hallo"]), ("assistant", ["Guten Tag"]), ("user", ["Wie geht es?"])]


def test_what_was_recalled_goes_along_only_where_the_memory_may_be_read() -> None:
    question = message("user", "Hallo", {"type": "recalled", "text": "Bruno"}, {"type": "now", "text": "Montag"})
    assert built(question) == [("user", ["Bruno", "Montag", "Hallo"])]
    assert built(question, recalled=False) == [("user", ["Montag", "Hallo"])]


def test_neighbours_of_the_same_role_are_merged() -> None:
    said = built(
        message("user", "Hallo"), message("user", "Bist du da?"), message("assistant", "Ja"), message("user", "?")
    )
    assert said == [("user", ["Hallo", "Bist du da?"]), ("assistant", ["Ja"]), ("user", ["?"])]


def test_a_failed_answer_without_text_is_left_out() -> None:
    failed = message("assistant", "", {"type": "error", "error": "ClaudeBusy", "details": {}}, status="failed")
    assert built(message("user", "Hallo"), failed, message("user", "Noch einmal")) == [
        ("user", ["Hallo", "Noch einmal"])
    ]


def test_blank_texts_are_left_out() -> None:
    assert built(message("user", "Hallo"), message("assistant", " \n"), message("user", "Ja")) == [
        ("user", ["Hallo", "Ja"])
    ]


def test_the_history_begins_and_ends_with_the_user() -> None:
    said = built(message("assistant", "Alt"), message("user", "Hallo"), message("assistant", "Ende"))
    assert said == [("user", ["Hallo"])]


def test_nothing_said_is_an_empty_history() -> None:
    assert built() == []
    assert built(message("assistant", "allein")) == []


def test_what_was_sent_with_a_message_is_replayed_exactly_before_its_text() -> None:
    recalled = {"type": "recalled", "text": "<recalled_conversations>…</recalled_conversations> ", "conversations": []}
    now = {"type": "now", "text": "<context>Donnerstag</context>"}
    other = {"type": "memory", "text": "nur für die Seite"}
    assert built(message("user", "Hallo", recalled, now, other)) == [("user", [recalled["text"], now["text"], "Hallo"])]


def test_what_the_page_shows_beside_an_answer_is_not_replayed() -> None:
    blocks = [
        tool_call(result={"remembered": True}),
        {"type": "memory", "fact_ids": [1]},
        {"type": "notice", "kind": "x"},
    ]
    said = built(message("user", "Merk dir Bruno"), message("assistant", "Gemerkt.", *blocks), message("user", "Danke"))
    assert said[1] == ("assistant", ["Gemerkt."])


def test_an_interrupted_tool_call_is_told_as_of_unknown_outcome() -> None:
    broken = message("assistant", "Ich merke", tool_call(), status="interrupted")
    [_, (role, [said]), _] = built(message("user", "Merk dir Bruno"), broken, message("user", "Und?"))
    assert role == "assistant"
    assert said.startswith("Ich merke\n\n")
    assert "remember_fact" in said
    assert "unbekannt" in said


def test_a_tool_that_ran_before_the_answer_broke_off_is_told_as_done() -> None:
    broken = message("assistant", "", tool_call(result={"remembered": True}), status="interrupted")
    [_, (_, [said]), _] = built(message("user", "Merk dir Bruno"), broken, message("user", "Und?"))
    assert "schon ausgeführt" in said
    assert '{"fact": "Bruno"} → {"remembered": true}' in said


def test_a_long_tool_result_is_shortened_in_the_note() -> None:
    broken = message("assistant", "", tool_call(result={"text": "x " * 5_000}), status="interrupted")
    assert len(unfinished_calls(broken, "en")) < 1_000


def test_a_complete_answer_needs_no_note() -> None:
    assert unfinished_calls(message("assistant", "Gemerkt.", tool_call(result={})), "de") == ""

"""Answers on the chat page, without a browser: a card for every tool call, how an answer ended, what went into it."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.facts import remember_fact
from jarvis_memory.forgetting import forget_fact
from jarvis_memory.ui.safe_markdown import plain
from tests.integration.chats import change_message, messages_of, said
from tests.integration.pages import TEXTS, chat_page, click, texts_in

FACT = "Mein Hund heißt *Bruno*"
SHOWN = plain(FACT)


def answered(parts: Parts, *blocks: dict[str, Any], content: str = "Fertig.", **values: Any) -> AppTest:
    """The page of a chat whose one answer has these blocks."""
    chat = said(parts.database, parts.user_id, ("Bitte", content), title="Ein Chat")
    answer = messages_of(parts.database, parts.user_id, chat)[-1]
    change_message(parts.database, parts.user_id, answer.id, blocks=list(blocks), **values)
    return chat_page(chat)


def call(name: str, tool_input: dict[str, Any], result: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    block = {"type": "tool", "id": "toolu_1", "name": name, "input": tool_input, "at": 0}
    return block | ({} if result is None else {"result": result, "is_error": False}) | more


def match(content: str) -> dict[str, Any]:
    return {"id": 1, "content": content}


FORGOTTEN = {"deleted": True, "content": FACT, "conversations": [], "exchanges": 0, "forgetting_id": 0}
NOT_FORGOTTEN = {"deleted": False, "message": "", "suggestions": []}


@pytest.mark.parametrize(
    ("block", "headline"),
    [
        (
            call("remember_fact", {"fact": FACT}, {"already_known": False, "fact": FACT}),
            TEXTS("tool.remembered", fact=SHOWN),
        ),
        (
            call("remember_fact", {"fact": FACT}, {"already_known": True, "fact": FACT}),
            TEXTS("tool.already_known", fact=SHOWN),
        ),
        (
            call("update_fact", {"fact": FACT}, {"fact": FACT, "former": "Mein Hund heißt Rex"}),
            TEXTS("tool.updated", fact=SHOWN, former="Mein Hund heißt Rex"),
        ),
        (call("forget_fact", {"query": "Hund"}, FORGOTTEN), TEXTS("tool.forgotten", fact=SHOWN)),
        (
            call("forget_fact", {"query": "Hund"}, NOT_FORGOTTEN | {"matches": [match("Eins"), match("Zwei")]}),
            TEXTS("tool.several", count=2),
        ),
        (call("forget_fact", {"query": "Hund"}, NOT_FORGOTTEN | {"matches": []}), TEXTS("tool.not_forgotten")),
        (
            call("search_memory", {"query": "*Hund*"}, {"facts": [match("Eins")], "conversations": []}),
            TEXTS("tool.searched", query=plain("*Hund*"), facts=1, conversations=0),
        ),
        (call("remember_fact", {"fact": FACT}, None), TEXTS("tool.unknown_outcome", name=plain("remember_fact"))),
        (
            call("remember_fact", {"fact": FACT}, {"message": "Zu *lang*"}, is_error=True),
            TEXTS("tool.failed", name=plain("remember_fact")) + ": " + plain("Zu *lang*"),
        ),
        (call("a_later_tool", {}, {"any": "thing"}), TEXTS("tool.done", name=plain("a_later_tool"))),
    ],
)
def test_a_tool_call_is_a_card_that_says_what_came_of_it(pages: Parts, block: dict[str, Any], headline: str) -> None:
    page = answered(pages, block)
    assert any(value.endswith(" " + headline) for value in texts_in(page.markdown)), texts_in(page.markdown)


def test_a_card_lists_the_facts_that_can_be_meant_and_the_call_in_full(pages: Parts) -> None:
    several = NOT_FORGOTTEN | {"matches": [match("1. *Eins*"), match("Zwei")]}
    page = answered(pages, call("forget_fact", {"query": "Hund"}, several))
    assert f"- {plain('1. *Eins*')}" in texts_in(page.markdown)
    codes = texts_in(page.code)
    assert 'forget_fact({\n  "query": "Hund"\n})' in codes
    assert any('"content": "1. *Eins*"' in code for code in codes)


def test_a_card_stands_where_the_call_happened_in_the_text(pages: Parts) -> None:
    remembered = {"already_known": False, "fact": FACT}
    block = call("remember_fact", {"fact": FACT}, remembered, at=len("Vorher. "))
    page = answered(pages, block, content="Vorher. Nachher.")
    shown = texts_in(page.chat_message[1].markdown)
    headline = next(value for value in shown if value.endswith(TEXTS("tool.remembered", fact=SHOWN)))
    assert shown.index("Vorher.") < shown.index(headline) < shown.index("Nachher.")


def test_a_forgetting_is_undone_from_its_card_and_says_so(pages: Parts) -> None:
    fact, _ = remember_fact(pages.database, user_id=pages.user_id, fact=FACT)
    forgetting = forget_fact(pages.database, user_id=pages.user_id, fact_id=fact.id)
    block = call("forget_fact", {"query": FACT}, FORGOTTEN | {"forgetting_id": forgetting.id})
    page = answered(pages, block)
    undo = next(button.key or "" for button in page.button if button.label == TEXTS("undo"))
    page = click(page, undo)
    assert TEXTS("undo.done", fact=SHOWN) in texts_in(page.caption)
    assert TEXTS("undo") not in [button.label for button in page.button]
    assert remember_fact(pages.database, user_id=pages.user_id, fact=FACT) == (fact, False)


def test_what_can_no_longer_be_undone_has_no_button(pages: Parts) -> None:
    page = answered(pages, call("forget_fact", {"query": FACT}, FORGOTTEN | {"forgetting_id": 4711}))
    assert TEXTS("undo") not in [button.label for button in page.button]


@pytest.mark.parametrize("kind", ["max_tokens", "refusal", "too_many_rounds", "unknown"])
def test_an_answer_that_ended_unusually_says_why(pages: Parts, kind: str) -> None:
    page = answered(pages, {"type": "notice", "kind": kind})
    assert texts_in(page.info) == [TEXTS(f"notice.{kind}")]
    assert TEXTS("chat.retry") not in [button.label for button in page.button]


@pytest.mark.parametrize(("status", "content"), [("interrupted", "Der Anfang"), ("failed", "")])
def test_an_answer_that_is_not_whole_says_why_and_can_be_tried_again(pages: Parts, status: str, content: str) -> None:
    error = {"type": "error", "error": "ClaudeBusy", "details": {}}
    page = answered(pages, error, content=content, status=status)
    opening = TEXTS("chat.interrupted" if content else "chat.failed")
    assert texts_in(page.main.warning) == [f"{opening} {TEXTS('error.ClaudeBusy')}"]
    assert TEXTS("chat.retry") in [button.label for button in page.button]


def test_a_message_without_an_answer_can_be_tried_again(pages: Parts) -> None:
    chat = said(pages.database, pages.user_id, ("Bitte", "x"))
    question, answer = messages_of(pages.database, pages.user_id, chat)
    change_message(pages.database, pages.user_id, answer.id, conversation_id=said(pages.database, pages.user_id))
    page = chat_page(chat)
    assert [one.name for one in page.chat_message] == ["user"]
    assert TEXTS("chat.retry") in [button.label for button in page.button]


def test_what_went_into_an_answer_is_listed_also_when_it_was_forgotten_since(pages: Parts) -> None:
    fact, _ = remember_fact(pages.database, user_id=pages.user_id, fact=FACT)
    memory = {
        "type": "memory",
        "fact_ids": [fact.id, 4711],
        "more_facts": 3,
        "conversations": [{"id": 12, "title": "*Urlaub*", "date": "2026-11-12T10:00:00+00:00"}],
    }
    page = answered(pages, memory)
    used = page.expander[0]
    assert used.label == TEXTS("used.label", what="2 Fakten, 1 früheres Gespräch")
    assert f"- {SHOWN}\n- {TEXTS('used.forgotten')}" in texts_in(used.markdown)
    assert TEXTS("used.more_facts", count=3) in texts_in(used.caption)
    assert plain("*Urlaub*") in [button.label for button in used.button]


def test_recalled_conversations_are_told_with_the_reason_until_they_are_withdrawn(pages: Parts) -> None:
    recalled = [
        {"id": number, "title": "", "summary": f"Summe {number}", "excerpt": f"Stelle {number}", "found_by": reason}
        for number, reason in ((12, "words"), (13, "both"))
    ]
    used = [{"id": number, "title": f"Chat {number}", "date": "2026-11-12T10:00:00+00:00"} for number in (12, 13, 14)]
    chat = said(pages.database, pages.user_id, ("Frage", "Antwort"))
    question, answer = messages_of(pages.database, pages.user_id, chat)
    blocks = [{"type": "recalled", "text": "…", "conversations": recalled}]
    change_message(pages.database, pages.user_id, question.id, blocks=blocks)
    memory = {"type": "memory", "fact_ids": [], "more_facts": 0, "conversations": used}
    change_message(pages.database, pages.user_id, answer.id, blocks=[memory])
    expander = chat_page(chat).expander[0]
    assert [button.label for button in expander.button] == ["Chat 12", "Chat 13", "Chat 14"]
    assert {"Summe 12", "Summe 13"} <= set(texts_in(expander.markdown))
    assert [block.value for block in expander.code] == ["Stelle 12", "Stelle 13"]
    reasons = [TEXTS("used.found_by_words"), TEXTS("used.found_by_both"), TEXTS("sent.withdrawn")]
    assert [caption for caption in texts_in(expander.caption) if caption in reasons] == reasons

"""The chat page with the real database, without a browser: long lists, failures, other people's chats."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import MESSAGE_CHARACTERS
from jarvis_memory.database import Database, _create_engine
from jarvis_memory.running_turns import TURNS
from jarvis_memory.ui import wiring
from tests.fake_claude import FakeClaude
from tests.integration.chats import messages_of, said, somebody_else
from tests.integration.pages import TEXTS, chat_page, click, drawn, texts_in
from tests.integration.turns import held


def in_the_input(page: AppTest) -> str | None:
    """The text that the page put there."""
    sent = page.chat_input(key="message").proto
    return sent.value if sent.set_value else None


NOWHERE = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"


def without_database(parts: Parts) -> None:
    """From now on the pages find no database."""
    wiring.hand_in(replace(parts, database=Database(_create_engine(NOWHERE))))


@pytest.mark.parametrize("wanted", ["abc", "", "0", "-1", "1.5", "²", "1 OR 1=1", "99999999999999999999"])
def test_an_address_without_a_number_of_a_chat_is_a_new_chat(pages: Parts, wanted: str) -> None:
    said(pages.database, pages.user_id, ("Frage", "Antwort"), title="Mein Chat")
    page = chat_page(wanted)
    assert f"## {TEXTS('chat.empty_heading')}" in texts_in(page.markdown)
    assert not page.chat_message


def test_somebody_elses_chat_is_not_shown(pages: Parts) -> None:
    other = somebody_else(pages.database)
    theirs = said(pages.database, other, ("Streng geheim", "Sehr geheim"), title="Geheimes")
    page = chat_page(theirs)
    assert texts_in(page.info) == [TEXTS("chat.not_found")]
    assert not page.chat_message
    assert "geheim" not in str(page.main) + str(page.sidebar)
    assert "Geheimes" not in [button.label for button in page.button]


def test_the_sidebar_lists_the_newest_chats_and_more_on_request(pages: Parts) -> None:
    for number in range(42):
        said(pages.database, pages.user_id, ("Frage", "Antwort"), title=f"Chat {number}")
    page = chat_page()
    titles = [button.label for button in page.sidebar.button if button.label.startswith("Chat ")]
    assert titles == [f"Chat {number}" for number in range(41, 1, -1)]
    next(button for button in page.sidebar.button if button.label == TEXTS("nav.more")).click()
    page = drawn(page)
    assert [button.label for button in page.sidebar.button if button.label.startswith("Chat ")][-1] == "Chat 0"


def test_a_message_is_answered_and_the_page_shows_both(pages: Parts, claude: FakeClaude) -> None:
    claude.say("Hallo zurück.")
    page = chat_page()
    page.chat_input(key="message").set_value("Hallo")
    page = drawn(page)
    finished(page.query_params["c"])
    page = drawn(page)
    assert [one.name for one in page.chat_message] == ["user", "assistant"]
    assert page.chat_message[1].markdown[0].value == "Hallo zurück."


def test_an_example_is_sent_by_a_click(pages: Parts, claude: FakeClaude) -> None:
    page = click(chat_page(), "example-2")
    finished(page.query_params["c"])
    assert messages_of(pages.database, pages.user_id, int(page.query_params["c"][0]))[0].content == TEXTS(
        "chat.example_2"
    )


def test_a_running_answer_is_shown_as_it_grows(pages: Parts, claude: FakeClaude) -> None:
    answer, started, release = held("Der Anfang, und das Ende.")
    claude.say(answer)
    page = chat_page()
    page.chat_input(key="message").set_value("Erzähl")
    page = drawn(page)
    assert started.wait(60)
    turn = TURNS.get(int(page.query_params["c"][0]))
    assert turn is not None
    while "Der Anfang" not in turn.snapshot()[0]:
        assert not turn.done.wait(0.01)
    page = drawn(page)
    assert page.chat_message[1].markdown[0].value.startswith("Der Anfang")
    assert page.chat_input(key="message").placeholder == TEXTS("chat.placeholder_running")
    release.set()
    assert turn.done.wait(60)
    page = drawn(page)
    assert page.chat_message[1].markdown[0].value == "Der Anfang, und das Ende."
    assert page.chat_input(key="message").placeholder == TEXTS("chat.placeholder")


def finished(conversation_ids: list[str]) -> None:
    """Wait for the end of the turn of this address."""
    turn = TURNS.get(int(conversation_ids[0]))
    assert turn is None or turn.done.wait(60)


@pytest.mark.parametrize("message", ["   ", "x" * (MESSAGE_CHARACTERS + 1)], ids=["blank", "too long"])
def test_a_message_that_cannot_be_sent_stays_in_the_input(pages: Parts, message: str) -> None:
    page = chat_page()
    page.chat_input(key="message").set_value(message)
    page = drawn(page)
    assert texts_in(page.error) == [TEXTS.error("MessageUnusable", {"limit": MESSAGE_CHARACTERS})]
    assert in_the_input(page) == message
    assert "c" not in page.query_params


def test_without_a_database_there_is_one_sentence_and_no_traceback(pages: Parts) -> None:
    without_database(pages)
    page = chat_page()
    assert texts_in(page.error) == [TEXTS("error.DatabaseUnavailable")]


def test_a_message_stays_in_the_input_when_the_database_is_gone(pages: Parts, claude: FakeClaude) -> None:
    conversation_id = said(pages.database, pages.user_id, ("Frage", "Antwort"))
    page = chat_page(conversation_id)
    without_database(pages)
    page.chat_input(key="message").set_value("Lange überlegt")
    page = drawn(page)
    assert texts_in(page.error) == [TEXTS("error.DatabaseUnavailable")]
    assert TEXTS("chat.kept") in texts_in(page.caption)
    assert in_the_input(page) == "Lange überlegt"
    # The database is back, the person presses Enter.
    wiring.hand_in(pages)
    page.chat_input(key="message").set_value("Lange überlegt")
    page = drawn(page)
    finished(page.query_params["c"])
    assert messages_of(pages.database, pages.user_id, conversation_id)[2].content == "Lange überlegt"


def test_without_a_key_the_chat_page_says_how_to_get_one(build: Callable[..., Parts]) -> None:
    wiring.hand_in(build(anthropic_api_key=None, anthropic_base_url="https://api.anthropic.com"))
    page = chat_page()
    assert any(TEXTS("setup.heading") in value for value in texts_in(page.markdown))
    assert page.chat_input(key="message").disabled

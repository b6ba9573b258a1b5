"""The Memory page with the real database, without a browser: long lists, what is pending and failed, other people."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from jarvis_memory.assembly import Parts
from jarvis_memory.database import Database, _create_engine
from jarvis_memory.facts import remember_fact
from jarvis_memory.summaries import count_pending
from jarvis_memory.ui import wiring
from jarvis_memory.ui.pager import ROWS
from jarvis_memory.ui.safe_markdown import plain
from tests.fake_claude import FakeClaude
from tests.integration.chats import run, said, somebody_else, wait_until
from tests.integration.pages import TEXTS, bulk, chat_page, click, drawn, memory_page, rows, texts_in

NOWHERE = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"
FACTS = """
    INSERT INTO memory_facts (user_id, content, content_key, embedding_model, updated_at)
    SELECT :user_id, 'Fakt Nummer ' || n || '.', 'fakt nummer ' || n, :model, now() - make_interval(secs => n)
    FROM generate_series(1, 5000) n
"""
SUMMARIES = """
    WITH chats AS (
        INSERT INTO conversations (user_id, title)
        SELECT :user_id, 'Chat ' || n FROM generate_series(1, 5000) n RETURNING id, title
    )
    INSERT INTO conversation_summaries
        (conversation_id, user_id, summary, indexed_text, embedding_model, through_message_id)
    SELECT id, :user_id, 'Es ging um ' || title || '.', title || E'\\nEs ging um ' || title || '.', :model, 1 FROM chats
"""


@pytest.fixture
def most_rows(pages: Parts) -> list[int]:
    """The largest number of rows that a query of this test has fetched."""
    most = [0]

    @event.listens_for(pages.database.engine, "after_cursor_execute")
    def count(_: Any, cursor: Any, statement: str, *rest: object) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            most[0] = max(most[0], cursor.rowcount)

    return most


def test_5000_facts_are_paged_and_searched_in_the_database(pages: Parts, most_rows: list[int]) -> None:
    bulk(pages, FACTS)
    page = memory_page()
    assert rows(page, "delete-") == ROWS
    assert "5000 Fakten" in texts_in(page.caption)
    assert TEXTS("memory.page", page=1, pages=250) in texts_in(page.markdown)
    assert plain("Fakt Nummer 1.") in texts_in(page.markdown)
    page = click(page, "next-facts")
    assert TEXTS("memory.page", page=2, pages=250) in texts_in(page.markdown)
    assert plain("Fakt Nummer 21.") in texts_in(page.markdown)
    page.text_input(key="search-facts").set_value("NUMMER 4321")
    page = drawn(page)
    assert rows(page, "delete-") == 1
    assert plain("Fakt Nummer 4321.") in texts_in(page.markdown)
    assert most_rows[0] <= 50


def test_5000_summaries_are_paged_and_searched_in_the_database(pages: Parts, most_rows: list[int]) -> None:
    bulk(pages, SUMMARIES)
    page = memory_page("summaries")
    assert rows(page, "drop-") == ROWS
    assert "5000 Zusammenfassungen" in texts_in(page.caption)
    page = click(page, "next-summaries")
    assert TEXTS("memory.page", page=2, pages=250) in texts_in(page.markdown)
    page.text_input(key="search-summaries").set_value("chat 4999")
    page = drawn(page)
    assert rows(page, "drop-") == 1
    assert "Es ging um Chat 4999." in texts_in(page.markdown)
    assert most_rows[0] <= 50


def test_the_last_page_shrinks_with_what_is_deleted(pages: Parts) -> None:
    for number in range(ROWS + 1):
        remember_fact(pages.database, user_id=pages.user_id, fact=f"Fakt {number}")
    page = click(memory_page(), "next-facts")
    assert rows(page, "delete-") == 1
    page = click(page, next(button.key for button in page.button if (button.key or "").startswith("delete-")))
    assert rows(page, "delete-") == ROWS
    assert f"{ROWS} Fakten" in texts_in(page.caption)


def test_signs_of_a_fact_and_of_a_summary_are_shown_as_they_are(pages: Parts) -> None:
    fact = "<b>**Kostet** $5</b> und $6"
    remember_fact(pages.database, user_id=pages.user_id, fact=fact)
    said(pages.database, pages.user_id, ("Frage", "Antwort"), title="*Titel* $1", summary="Es kostet $5 und $6.")
    page = memory_page()
    assert plain(fact) in texts_in(page.markdown)
    page.button_group(key="memory_view").set_value("summaries")
    page = drawn(page)
    assert "Es kostet \\$5 und \\$6." in texts_in(page.markdown)
    assert f"**{plain('*Titel* $1')}**" in texts_in(page.markdown)


def test_another_persons_memory_is_not_shown(pages: Parts) -> None:
    other = somebody_else(pages.database)
    remember_fact(pages.database, user_id=other, fact="Geheimer Fakt")
    said(pages.database, other, ("Geheime Frage", "x"), title="Geheimer Titel", summary="Geheimes Gespräch")
    said(pages.database, other, ("Geheim und offen", "x"))
    for view in ("facts", "summaries", "upkeep"):
        page = memory_page(view)
        assert "eheim" not in str(page.main) + str(page.sidebar)
        assert not [value for value in texts_in(page.markdown) + texts_in(page.caption) if "eheim" in value]


def test_without_a_database_there_is_one_sentence_and_no_traceback(pages: Parts) -> None:
    wiring.hand_in(replace(pages, database=Database(_create_engine(NOWHERE))))
    page = memory_page()
    assert texts_in(page.error) == [TEXTS("error.DatabaseUnavailable")]


def test_a_deletion_without_a_database_says_so(pages: Parts) -> None:
    page = memory_page("upkeep")
    page = click(page, "delete_everything")
    page.text_input(key="word-delete_everything").set_value(TEXTS("memory.word"))
    wiring.hand_in(replace(pages, database=Database(_create_engine(NOWHERE))))
    next(button for button in page.button if button.label == TEXTS("memory.really")).click()
    page = drawn(page)
    assert TEXTS("error.DatabaseUnavailable") in texts_in(page.error)


def test_an_unexpected_error_is_one_sentence_too(pages: Parts) -> None:
    class Broken(Database):
        def begin(self) -> Any:
            raise ZeroDivisionError

    wiring.hand_in(replace(pages, database=Broken(pages.database.engine)))
    page = memory_page()
    assert texts_in(page.error) == [TEXTS("error.JarvisError")]


# --- what is pending, and what failed


def failing_chat(parts: Parts) -> int:
    """A chat whose summary has failed twice and waits for its next try."""
    chat = said(parts.database, parts.user_id, ("Wann blüht der Flieder?", "Im Mai."), title="Flieder")
    run(
        parts.database,
        """INSERT INTO conversation_summaries (conversation_id, user_id, failures, last_error, retry_at)
           VALUES (:id, :user_id, 2, 'ClaudeBusy', now() + interval '1 hour')""",
        id=chat,
        user_id=parts.user_id,
    )
    return chat


def test_a_failed_summary_is_told_on_every_page(pages: Parts) -> None:
    failing_chat(pages)
    stuck = TEXTS.counted("health.failed", 1, reason=TEXTS("error.ClaudeBusy"))
    assert stuck in texts_in(chat_page().sidebar.warning)
    page = memory_page()
    assert stuck in texts_in(page.sidebar.warning)
    assert stuck in texts_in(page.main.warning)


def test_a_healthy_memory_says_nothing(pages: Parts) -> None:
    said(pages.database, pages.user_id, ("Frage", "Antwort"), summary="Alles gut.")
    page = memory_page("upkeep")
    assert not page.warning
    assert texts_in(page.success) == [TEXTS("memory.nothing_pending")]


def test_the_reason_of_a_failure_is_told_and_a_retry_mends_it(pages: Parts, claude: FakeClaude) -> None:
    chat = failing_chat(pages)
    page = memory_page("upkeep")
    assert TEXTS.counted("memory.pending_count", 1) in texts_in(page.markdown)
    assert "**Flieder**" in texts_in(page.markdown)
    told = TEXTS.counted("memory.failures", 2, reason=TEXTS("error.ClaudeBusy"), when="")
    assert any(value.startswith(told.rstrip(".")) for value in texts_in(page.caption))
    claude.say_to_summary("Titel: Flieder\nZusammenfassung: Der Flieder blüht im Mai.")
    page = click(page, f"retry-{chat}")
    wait_until(lambda: pending(pages) == 0)
    page = memory_page("summaries")
    assert "Der Flieder blüht im Mai." in texts_in(page.markdown)
    assert not page.warning


def pending(parts: Parts) -> int:
    with parts.database.begin() as connection:
        return count_pending(connection, user_id=parts.user_id)[0]


def test_without_a_key_what_is_pending_waits_and_the_page_says_for_what(build: Callable[..., Parts]) -> None:
    parts = build(anthropic_api_key=None, anthropic_base_url="https://api.anthropic.com")
    said(parts.database, parts.user_id, ("Wann blüht der Flieder?", "Im Mai."))
    wiring.hand_in(parts)
    page = memory_page("upkeep")
    assert texts_in(page.info) == [TEXTS("memory.waiting_for_key")]
    assert f"**{plain('Wann blüht der Flieder?')}**" in texts_in(page.markdown)
    assert TEXTS("memory.waiting") in texts_in(page.caption)


def test_of_many_pending_chats_the_first_are_listed_and_the_others_counted(build: Callable[..., Parts]) -> None:
    parts = build(anthropic_api_key=None, anthropic_base_url="https://api.anthropic.com")
    for number in range(52):
        said(parts.database, parts.user_id, (f"Frage {number}", "Antwort"))
    wiring.hand_in(parts)
    page = memory_page("upkeep")
    assert TEXTS.counted("memory.pending_count", 52) in texts_in(page.markdown)
    assert TEXTS("memory.more_pending", count=2) in texts_in(page.caption)

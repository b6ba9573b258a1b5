"""Summaries of conversations: what is asked of the model, what is kept, what is pending, and the background."""

import subprocess
import sys
from collections.abc import Callable
from threading import Event
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.background import WORKERS, Background
from jarvis_memory.claude import Claude
from jarvis_memory.database import PROJECT_FOLDER, Database, Lock
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.embeddings import Embeddings, OllamaEmbeddings
from jarvis_memory.errors import ClaudeAnswerUnreadable, ClaudeBusy, JarvisError
from jarvis_memory.facts import remember_fact
from jarvis_memory.recall import search_similar_conversation_summaries
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import (
    count_pending,
    count_summaries,
    delete_summary,
    last_summary_at,
    list_pending,
    list_summaries,
    pending_conversations,
    regenerate_summary,
    retry_now,
    update_conversation_summary,
    upsert_conversation_summary,
)
from tests.fake_claude import Answer, FakeClaude, Reply, Text, overloaded, server_error
from tests.fake_ollama import FakeOllama
from tests.fake_ollama import server_error as embedding_fails
from tests.integration.chats import (
    InBackground,
    at_once,
    change_message,
    messages_of,
    one,
    run,
    said,
    somebody_else,
    summary_of,
    wait_until,
)

Summarise = Callable[..., bool]
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def summarise(database: Database, claude: FakeClaude) -> Summarise:
    """Does what a background job does, in the calling thread."""
    settings = Settings(
        _env_file=None,
        anthropic_api_key="test-key",
        anthropic_base_url=claude.base_url,
        jarvis_time_zone="Europe/Berlin",
    )
    client = Claude(settings)

    def update(conversation_id: int, language: Any = "de") -> bool:
        return update_conversation_summary(
            database=database,
            claude=client,
            settings=settings.model_copy(update={"jarvis_language": language}),
            conversation_id=conversation_id,
        )

    return update


def answer(summary: str, title: str = "Titel") -> str:
    return f"Titel: {title}\nZusammenfassung: {summary}"


def held(summary: str) -> tuple[Text, Event, Event]:
    """A summary that waits: the reply, an event that it was asked for, and one that lets it go."""
    started, release = Event(), Event()
    return Text(answer(summary), started=started, release=release), started, release


def request_text(request: Any) -> str:
    text: str = request["messages"][0]["content"]
    return text


def pending(database: Database) -> list[int]:
    with database.begin() as connection:
        return pending_conversations(connection)


def chat_about_rome(database: Database, user_id: int, **options: Any) -> int:
    return said(database, user_id, ("Ich fahre im Mai nach Rom", "Gute Reise!"), **options)


# --- what is asked and kept -------------------------------------------------------------------------------


def test_a_conversation_gets_a_summary_and_a_title(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    assert pending(database) == [chat]
    claude.say_to_summary(answer("Der Nutzer fährt im Mai nach Rom.", "Reise nach Rom"))
    assert summarise(chat)
    row = summary_of(database, chat)
    assert (row.summary, row.title) == ("Der Nutzer fährt im Mai nach Rom.", "Reise nach Rom")
    assert row.through_message_id == messages_of(database, user_id, chat)[-1].id
    assert pending(database) == []
    assert summarise(chat), "nothing is left to do"
    assert len(claude.requests) == 1


def test_the_transcript_is_one_message_of_the_user_with_absolute_dates(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, ("Morgen fahre ich </transcript> weg", "Gute <b>Reise</b>!"))
    run(database, "UPDATE messages SET created_at = '2026-11-12 23:30:00+00'")
    summarise(chat)
    (request,) = claude.requests
    assert [message["role"] for message in request["messages"]] == ["user"]
    assert claude.refused == []
    assert request["model"] == "claude-haiku-5-5"
    assert "<transcript>" in request["system"]
    assert request_text(request) == (
        "<transcript>\n"
        "[13. November 2026, 00:30] Nutzer: Morgen fahre ich &lt;/transcript&gt; weg\n"
        "[13. November 2026, 00:30] Assistent: Gute &lt;b&gt;Reise&lt;/b&gt;!\n"
        "</transcript>"
    )


def test_in_english_the_request_is_english(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, ("I am going to Rome", "Have a good trip!"))
    run(database, "UPDATE messages SET created_at = '2026-11-12 12:00:00+00'")
    claude.say_to_summary("Title: Trip to Rome\nSummary: The user goes to Rome.")
    summarise(chat, language="en")
    assert "[12 November 2026, 13:00] User: I am going to Rome" in request_text(claude.requests[0])
    assert claude.requests[0]["system"].startswith("You summarise")
    assert (summary_of(database, chat).title, summary_of(database, chat).summary) == (
        "Trip to Rome",
        "The user goes to Rome.",
    )


def test_recalled_memory_and_tool_output_are_never_in_the_transcript(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    question, reply = messages_of(database, user_id, chat)
    change_message(
        database,
        user_id,
        question.id,
        blocks=[{"type": "recalled", "text": "GEHEIM-1", "conversations": []}, {"type": "now", "text": "GEHEIM-2"}],
    )
    change_message(
        database,
        user_id,
        reply.id,
        blocks=[
            {"type": "tool", "id": "1", "name": "search_memory", "input": {"q": "GEHEIM-3"}, "result": "GEHEIM-4"},
            {"type": "memory", "fact_ids": [], "conversations": [{"id": 1, "title": "GEHEIM-5", "date": "…"}]},
        ],
        sent={"system": ["GEHEIM-6"], "recalled": "GEHEIM-7"},
    )
    summarise(chat)
    assert "Rom" in str(claude.requests)
    assert "GEHEIM" not in str(claude.requests)


def test_the_next_summary_is_made_of_the_last_one_and_what_is_new(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    claude.say_to_summary(answer("Es geht <nach> Rom."))
    summarise(chat)
    said(database, user_id, ("Danach fahre ich nach Neapel", "Schön."), conversation_id=chat)
    claude.say_to_summary(answer("Erst Rom, dann Neapel.", "Italien"))
    summarise(chat)
    text = request_text(claude.requests[1])
    assert text.startswith("<previous_summary>\nEs geht &lt;nach&gt; Rom.\n</previous_summary>\n<transcript>\n")
    assert "Neapel" in text
    assert "im Mai" not in text
    assert (summary_of(database, chat).summary, summary_of(database, chat).title) == (
        "Erst Rom, dann Neapel.",
        "Italien",
    )


def test_a_chat_of_400_messages_is_read_once_in_bounded_pieces(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    pairs = [(f"Frage-{number}. " + "x" * 900, f"Antwort-{number}. " + "y" * 900) for number in range(200)]
    chat = said(database, user_id, *pairs)
    assert summarise(chat)
    texts = [request_text(request) for request in claude.requests]
    assert max(map(len, texts)) < 35_000
    assert len(texts) < 25
    for number in range(200):
        assert sum(f"Frage-{number}." in text for text in texts) == 1
        assert sum(f"Antwort-{number}." in text for text in texts) == 1
    assert pending(database) == []
    said(database, user_id, ("Noch eine Frage dazu", "Ja."), conversation_id=chat)
    claude_before = len(claude.requests)
    assert summarise(chat)
    (last,) = claude.requests[claude_before:]
    assert len(request_text(last)) < 1_000


def test_400_short_messages_are_read_in_bounded_pieces_too(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, *((f"Frage-{number}.", f"Antwort-{number}.") for number in range(200)))
    assert summarise(chat)
    assert len(claude.requests) == 2
    assert "Frage-199." in request_text(claude.requests[1])
    assert pending(database) == []


def test_one_very_long_message_is_cut(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, ("Lies das: " + "wort " * 20_000, "Gelesen."))
    assert summarise(chat)
    assert len(request_text(claude.requests[0])) < 5_000
    assert "Gelesen." in request_text(claude.requests[0])


@pytest.mark.parametrize(
    "exchanges",
    [
        [("Hallo!", "Hallo! Wie kann ich helfen?")],
        [("Guten Morgen, JARVIS", "Guten Morgen!"), ("Wie geht es dir?", "Gut.")],
        [("Bruno", "Was ist mit Bruno?")],
        [("?", "Wie bitte?")],
        [("👍", "Gern.")],
        [("Danke", "")],
    ],
)
def test_greetings_and_single_words_are_not_summarised_and_not_pending(
    database: Database,
    user_id: int,
    claude: FakeClaude,
    summarise: Summarise,
    exchanges: list[tuple[str, str]],
) -> None:
    chat = said(database, user_id, *exchanges)
    assert summarise(chat)
    assert claude.requests == []
    assert summary_of(database, chat).summary is None
    assert pending(database) == []
    with database.begin() as connection:
        assert list_pending(connection, user_id=user_id) == []


def test_a_greeting_that_becomes_a_conversation_is_summarised_whole(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, ("Bruno", "Was ist mit Bruno?"))
    summarise(chat)
    said(database, user_id, ("Er frisst nicht mehr", "Zum Tierarzt!"), conversation_id=chat)
    assert summarise(chat)
    (request,) = claude.requests
    assert "Nutzer: Bruno\n" in request_text(request)
    assert "Er frisst nicht mehr" in request_text(request)


def test_temporary_chats_are_never_summarised(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id, remember=False)
    assert pending(database) == []
    summarise(chat)
    assert claude.requests == []
    last = messages_of(database, user_id, chat)[-1].id
    with database.begin() as connection:
        assert not upsert_conversation_summary(
            connection, user_id=user_id, conversation_id=chat, summary="Rom", through_message_id=last
        )
        assert list_pending(connection, user_id=user_id) == []
        assert count_pending(connection, user_id=user_id) == (0, 0)
    assert summary_of(database, chat) is None


def test_excluded_exchanges_are_never_in_a_transcript(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, ("Bruno ist mein Hund", "Schön."), ("Ich fahre nach Rom", "Gute Reise!"))
    for message in messages_of(database, user_id, chat)[:2]:
        change_message(database, user_id, message.id, excluded_from_memory=True)
    summarise(chat)
    assert "Rom" in request_text(claude.requests[0])
    assert "Bruno" not in request_text(claude.requests[0])
    assert "Schön" not in request_text(claude.requests[0])


def test_new_messages_that_are_all_excluded_leave_the_summary_as_it_is(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id, summary="Es geht nach Rom.", title="Rom")
    said(database, user_id, ("Bruno ist mein Hund", "Schön."), conversation_id=chat)
    for message in messages_of(database, user_id, chat)[2:]:
        change_message(database, user_id, message.id, excluded_from_memory=True)
    assert summarise(chat)
    assert claude.requests == []
    assert (summary_of(database, chat).summary, summary_of(database, chat).title) == ("Es geht nach Rom.", "Rom")
    assert pending(database) == []


def test_a_long_beginning_that_is_excluded_does_not_stop_the_rest(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    long = "Bruno ist mein Hund. " * 250
    chat = said(database, user_id, *[(long, long)] * 6, ("Ich fahre nach Rom", "Gute Reise!"))
    for message in messages_of(database, user_id, chat)[:12]:
        change_message(database, user_id, message.id, excluded_from_memory=True)
    assert summarise(chat)
    (request,) = claude.requests
    assert "Rom" in request_text(request)
    assert "Bruno" not in request_text(request)
    assert pending(database) == []


# --- odd answers of the model -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said_by_model", "title", "summary"),
    [
        ("Es geht nach Rom.", "", "Es geht nach Rom."),
        ("**Titel:** Rom\n**Zusammenfassung:** Es geht nach Rom.", "Rom", "Es geht nach Rom."),
        ("**Titel**: „Rom“\n\n**Zusammenfassung**:\nEs geht nach Rom.", "Rom", "Es geht nach Rom."),
        ("## Titel: Rom\n## Zusammenfassung:\n\nEs geht\nnach Rom.", "Rom", "Es geht\nnach Rom."),
        ("Gern!\n\nTitel: Rom\nZusammenfassung: Es geht nach Rom.", "Rom", "Es geht nach Rom."),
        ("TITLE: Rom\nSUMMARY: Es geht nach Rom.", "Rom", "Es geht nach Rom."),
        ("Titel: Rom\nEs geht nach Rom.", "Rom", "Es geht nach Rom."),
        ("Zusammenfassung: Es geht nach Rom.", "", "Es geht nach Rom."),
        ("Titel:\nZusammenfassung: Es geht nach Rom.", "", "Es geht nach Rom."),
        ("Titel: Rom: die Stadt\nZusammenfassung: Plan: nach Rom.", "Rom: die Stadt", "Plan: nach Rom."),
        ("Der Nutzer sucht den Titel: ein Buch.", "", "Der Nutzer sucht den Titel: ein Buch."),
        ("Titel: R\x00om\nZusammenfassung: Es geht \ud800nach Rom.", "Rom", "Es geht nach Rom."),
    ],
)
def test_the_title_and_the_summary_are_found_in_odd_answers(
    database: Database,
    user_id: int,
    claude: FakeClaude,
    summarise: Summarise,
    said_by_model: str,
    title: str,
    summary: str,
) -> None:
    chat = chat_about_rome(database, user_id)
    claude.say_to_summary(said_by_model)
    assert summarise(chat)
    assert (summary_of(database, chat).title, summary_of(database, chat).summary) == (title, summary)


def test_a_long_title_and_a_long_summary_are_cut(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    claude.say_to_summary(answer("wort " * 2_000, "wort " * 100))
    summarise(chat)
    assert len(summary_of(database, chat).title) <= 80
    assert len(summary_of(database, chat).summary) <= 2_000


@pytest.mark.parametrize(
    "said_by_model", ["", "   ", "Titel: Rom\nZusammenfassung:", "Titel: Rom", "**Titel:** Rom\n**Zusammenfassung:** "]
)
def test_an_empty_summary_is_a_failure_and_keeps_the_former_one(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise, said_by_model: str
) -> None:
    chat = chat_about_rome(database, user_id, summary="Es geht nach Rom.", title="Rom")
    said(database, user_id, ("Und nach Neapel", "Schön."), conversation_id=chat)
    claude.say_to_summary(said_by_model)
    with pytest.raises(ClaudeAnswerUnreadable):
        summarise(chat)
    row = summary_of(database, chat)
    assert (row.summary, row.title, row.last_error) == ("Es geht nach Rom.", "Rom", "ClaudeAnswerUnreadable")


def test_a_refusal_is_a_failure(database: Database, user_id: int, claude: FakeClaude, summarise: Summarise) -> None:
    chat = chat_about_rome(database, user_id)
    claude.say_to_summary(Reply("Das fasse ich nicht zusammen.", stop_reason="refusal"))
    with pytest.raises(JarvisError):
        summarise(chat)
    assert summary_of(database, chat).summary is None


def test_a_title_that_the_user_gave_is_kept(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id, title="Mein Titel", title_by_user=True)
    claude.say_to_summary(answer("Es geht nach Rom.", "Rom"))
    summarise(chat)
    assert (summary_of(database, chat).title, summary_of(database, chat).summary) == ("Mein Titel", "Es geht nach Rom.")


# --- at the same time -------------------------------------------------------------------------------------


def test_a_chat_deleted_while_its_job_runs_is_not_brought_back(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    reply, started, release = held("Es geht nach Rom.")
    claude.say_to_summary(reply)
    job = InBackground(lambda: summarise(chat))
    assert started.wait(60)
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=chat)
    release.set()
    job.result()
    assert one(database, "SELECT count(*) AS n FROM conversation_summaries").n == 0
    assert one(database, "SELECT count(*) AS n FROM conversations").n == 0
    assert pending(database) == []


def test_a_chat_deleted_while_its_job_fails_is_not_brought_back(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    reply, started, release = held("")
    claude.say_to_summary(Reply([Text("", started=reply.started, release=reply.release)]))
    job = InBackground(lambda: summarise(chat))
    assert started.wait(60)
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=chat)
    release.set()
    with pytest.raises(ClaudeAnswerUnreadable):
        job.result()
    assert one(database, "SELECT count(*) AS n FROM conversation_summaries").n == 0


def test_an_older_summary_never_overwrites_a_newer_one(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Eins ist eins", "Ja."), ("Zwei ist zwei", "Ja."))
    ids = [message.id for message in messages_of(database, user_id, chat)]

    def write(summary: str, through: int) -> bool:
        with database.begin() as connection:
            return upsert_conversation_summary(
                connection, user_id=user_id, conversation_id=chat, summary=summary, through_message_id=through
            )

    assert write("Eins und zwei.", ids[3])
    assert not write("Eins.", ids[1])
    assert not write("Noch einmal.", ids[3])
    assert summary_of(database, chat).summary == "Eins und zwei."


@pytest.mark.parametrize("change", [delete_summary, regenerate_summary])
def test_a_job_that_ran_while_its_summary_was_deleted_or_renewed_writes_nothing(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise, change: Any
) -> None:
    chat = chat_about_rome(database, user_id, summary="Alt.")
    said(database, user_id, ("Und nach Neapel", "Schön."), conversation_id=chat)
    reply, started, release = held("Aus dem Alten gemacht.")
    claude.say_to_summary(reply)
    job = InBackground(lambda: summarise(chat))
    assert started.wait(60)
    with database.begin() as connection:
        change(connection, user_id=user_id, conversation_id=chat)
    release.set()
    assert job.result() is False
    assert summary_of(database, chat).summary != "Aus dem Alten gemacht."


def test_messages_that_come_while_a_job_runs_are_summarised_by_the_same_job(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    reply, started, release = held("Es geht nach Rom.")
    claude.say_to_summary(reply, answer("Rom und Neapel."))
    job = InBackground(lambda: summarise(chat))
    assert started.wait(60)
    said(database, user_id, ("Und nach Neapel", "Schön."), conversation_id=chat)
    release.set()
    assert job.result() is True
    assert summary_of(database, chat).summary == "Rom und Neapel."
    assert "Rom" in request_text(claude.requests[1])


def test_a_chat_whose_turn_is_running_waits(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat, other = chat_about_rome(database, user_id), chat_about_rome(database, user_id)
    with database.try_lock(Lock.TURN, chat) as ours:
        assert ours
        assert pending(database) == [other]
        summarise(chat)
        assert claude.requests == []
    assert pending(database) == [chat, other]


def test_two_jobs_for_one_chat_at_once_ask_the_model_once(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    reply, started, release = held("Es geht nach Rom.")
    claude.say_to_summary(reply)
    first = InBackground(lambda: summarise(chat))
    assert started.wait(60)
    assert at_once(lambda: summarise(chat), lambda: summarise(chat)) == [False, False]
    release.set()
    assert first.result() is True
    assert len(claude.requests) == 1


# --- failures and what is pending -------------------------------------------------------------------------


def fail(claude: FakeClaude, summarise: Summarise, chat: int, reply: Answer | None = None) -> None:
    claude.say_to_summary(reply or overloaded())
    with pytest.raises(JarvisError):
        summarise(chat)


def test_a_failure_is_kept_with_its_reason_and_a_growing_wait_until_it_works(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id)
    waits = []
    for number in range(1, 13):
        fail(claude, summarise, chat)
        row = one(
            database,
            "SELECT failures, last_error, extract(epoch FROM retry_at - now()) AS wait FROM conversation_summaries",
        )
        assert (row.failures, row.last_error) == (number, ClaudeBusy.__name__)
        waits.append(round(float(row.wait) / 10) * 10)
    assert waits[:5] == [10, 20, 40, 80, 160]
    assert waits[-2:] == [3600, 3600]
    assert len(claude.requests) == 12, "a failed call is not repeated before its time"
    assert pending(database) == []
    with database.begin() as connection:
        (shown,) = list_pending(connection, user_id=user_id)
        assert (shown.conversation_id, shown.title, shown.failures, shown.last_error) == (
            chat,
            "Ich fahre im Mai nach Rom",
            12,
            "ClaudeBusy",
        )
        assert shown.retry_at is not None
        assert count_pending(connection, user_id=user_id) == (1, 1)
        retry_now(connection, user_id=user_id, conversation_id=chat)
    assert pending(database) == [chat]
    claude.say_to_summary(answer("Es geht nach Rom."))
    assert summarise(chat)
    row = summary_of(database, chat)
    assert (row.failures, row.last_error, row.retry_at) == (0, None, None)
    with database.begin() as connection:
        assert count_pending(connection, user_id=user_id) == (0, 0)


def test_a_failure_in_the_middle_of_a_long_chat_keeps_what_was_done(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, *((f"Frage-{number}. " + "x" * 3_000, "Ja.") for number in range(12)))
    claude.say_to_summary(answer("Der Anfang."))
    fail(claude, summarise, chat, server_error())
    assert summary_of(database, chat).summary == "Der Anfang."
    assert summarise(chat)
    assert "Der Anfang." in request_text(claude.requests[-1])
    assert "Frage-0." not in request_text(claude.requests[-1])


def test_what_is_pending_follows_from_the_messages_oldest_first(database: Database, user_id: int) -> None:
    done = chat_about_rome(database, user_id, summary="Rom.")
    first, second = chat_about_rome(database, user_id), chat_about_rome(database, user_id)
    assert pending(database) == [first, second]
    said(database, user_id, ("Und weiter", "Ja."), conversation_id=done)
    said(database, user_id, ("Und weiter", "Ja."), conversation_id=first)
    assert pending(database) == [second, done, first]
    with database.begin() as connection:
        assert count_pending(connection, user_id=user_id) == (3, 0)
        assert [shown.conversation_id for shown in list_pending(connection, user_id=user_id)] == [first, done, second]
        assert len(list_pending(connection, user_id=user_id, limit=2)) == 2
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=second)
    assert pending(database) == [done, first]


# --- the Memory page --------------------------------------------------------------------------------------


def test_a_deleted_summary_is_not_written_again_until_the_conversation_goes_on(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id, summary="Es geht nach Rom.")
    with database.begin() as connection:
        delete_summary(connection, user_id=user_id, conversation_id=chat)
    assert summary_of(database, chat).summary is None
    assert pending(database) == []
    assert summarise(chat)
    assert claude.requests == []
    said(database, user_id, ("Und nach Neapel", "Schön."), conversation_id=chat)
    assert pending(database) == [chat]
    assert summarise(chat)
    assert "Neapel" in request_text(claude.requests[0])
    assert summary_of(database, chat).summary is not None


def test_a_long_chat_whose_summary_was_deleted_is_summarised_again_when_it_goes_on(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = said(database, user_id, *((f"Frage {number} zu Rom", "Ja.") for number in range(150)), summary="Rom.")
    with database.begin() as connection:
        delete_summary(connection, user_id=user_id, conversation_id=chat)
    said(database, user_id, ("Und nach Neapel", "Schön."), conversation_id=chat)
    claude.say_to_summary(answer("Es geht nach Neapel."))
    assert summarise(chat)
    assert summary_of(database, chat).summary == "Es geht nach Neapel."
    assert pending(database) == []


def test_a_renewed_summary_is_made_of_the_whole_and_the_present_one_stays_until_then(
    database: Database, user_id: int, claude: FakeClaude, summarise: Summarise
) -> None:
    chat = chat_about_rome(database, user_id, summary="Falsch.", title="Falsch")
    with database.begin() as connection:
        regenerate_summary(connection, user_id=user_id, conversation_id=chat)
    assert summary_of(database, chat).summary == "Falsch."
    assert pending(database) == [chat]
    fail(claude, summarise, chat)
    assert summary_of(database, chat).summary == "Falsch."
    claude.say_to_summary(answer("Es geht nach Rom.", "Rom"))
    assert summarise(chat)
    assert "Ich fahre im Mai nach Rom" in request_text(claude.requests[-1])
    assert "Falsch" not in request_text(claude.requests[-1])
    assert (summary_of(database, chat).summary, summary_of(database, chat).title) == ("Es geht nach Rom.", "Rom")


def test_summaries_are_searched_literally_and_paged_newest_first(database: Database, user_id: int) -> None:
    chats = [chat_about_rome(database, user_id, title=f"Titel {n}", summary=f"Reise {n}") for n in range(5)]
    odd = chat_about_rome(database, user_id, title="Rabatt", summary="100% für C:\\Daten und a_b, ÄPFEL")
    hidden = chat_about_rome(database, user_id, title="Titel ohne", summary="Reise")
    with database.begin() as connection:
        delete_summary(connection, user_id=user_id, conversation_id=hidden)

    def found(query: str, **options: int) -> list[int]:
        with database.begin() as connection:
            shown = list_summaries(connection, user_id=user_id, query=query, **options)
            if not options:
                assert count_summaries(connection, user_id=user_id, query=query) == len(shown)
        return [summary.conversation_id for summary in shown]

    assert found("") == [odd, *reversed(chats)]
    assert found("reise") == found("TITEL") == chats[::-1]
    assert found("reise", limit=2, offset=1) == [chats[3], chats[2]]
    for query in ("100%", "%", "a_b", "C:\\Da", "äpfel", "  rabatt "):
        assert found(query) == [odd]
    assert found("gibt es nicht") == []
    with database.begin() as connection:
        assert last_summary_at(connection, user_id=user_id) is not None


def test_nobody_sees_or_changes_the_summaries_of_somebody_else(database: Database, user_id: int) -> None:
    chat = chat_about_rome(database, user_id, summary="Es geht nach Rom.")
    waiting = chat_about_rome(database, user_id)
    other = somebody_else(database)
    before = summary_of(database, chat)
    with database.begin() as connection:
        assert list_summaries(connection, user_id=other) == []
        assert count_summaries(connection, user_id=other) == 0
        assert last_summary_at(connection, user_id=other) is None
        assert list_pending(connection, user_id=other) == []
        assert count_pending(connection, user_id=other) == (0, 0)
        for change in (delete_summary, regenerate_summary, retry_now):
            change(connection, user_id=other, conversation_id=chat)
        assert not upsert_conversation_summary(
            connection, user_id=other, conversation_id=waiting, summary="Fremd", through_message_id=10**9
        )
    assert summary_of(database, chat) == before


# --- the background ---------------------------------------------------------------------------------------


def background(database: Database, claude: FakeClaude, embeddings: Embeddings, **settings: Any) -> Background:
    values = {"anthropic_api_key": "test-key", "anthropic_base_url": claude.base_url} | settings
    loaded = Settings(_env_file=None, **values)
    return Background(settings=loaded, database=database, claude=Claude(loaded), embeddings=embeddings)


class NoEmbeddings:
    """An embedding model that nobody asks."""

    model = "none"

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError

    def embed_passages(self, texts: Any) -> list[list[float]]:
        return [[1.0] + [0.0] * 767 for _ in texts]


def test_a_start_catches_up_with_what_is_pending(database: Database, user_id: int, claude: FakeClaude) -> None:
    chats = [chat_about_rome(database, user_id) for _ in range(3)]
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    try:
        wait_until(lambda: pending(database) == [])
        assert all(summary_of(database, chat).summary == "Es wurde gesprochen." for chat in chats)
        wait_until(lambda: all(summary_of(database, chat).embedding_model == "none" for chat in chats))
    finally:
        worker.stop()


def test_a_turn_is_summarised_without_waiting_for_the_next_round(parts: Parts, database: Database) -> None:
    chat = chat_about_rome(database, parts.user_id)
    parts.background.summarise(chat)
    wait_until(lambda: (row := summary_of(database, chat)) and row.summary)


def test_two_processes_on_one_database_summarise_a_chat_once(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    reply, started, release = held("Es geht nach Rom.")
    claude.say_to_summary(reply)
    workers = [background(database, claude, NoEmbeddings()) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        chat = chat_about_rome(database, user_id)
        for worker in workers:
            worker.summarise(chat)
        assert started.wait(60)
        # A second chat of each process goes through meanwhile: so both have looked.
        others = [chat_about_rome(database, user_id) for _ in workers]
        for worker, other in zip(workers, others, strict=True):
            worker.summarise(chat)
            worker.summarise(other)
        wait_until(lambda: all((row := summary_of(database, other)) and row.summary for other in others))
        assert len(claude.requests) == 3
        release.set()
        wait_until(lambda: (row := summary_of(database, chat)) and row.summary == "Es geht nach Rom.")
        assert len(claude.requests) == 3
    finally:
        release.set()
        for worker in workers:
            worker.stop()


def test_a_failing_chat_waits_for_its_time_and_a_wake_takes_it_up_again(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    claude.say_to_summary(overloaded())
    chat = chat_about_rome(database, user_id)
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    try:
        wait_until(lambda: (row := summary_of(database, chat)) and row.failures == 1)
        worker.wake()
        other = chat_about_rome(database, user_id)
        worker.wake()
        wait_until(lambda: (row := summary_of(database, other)) and row.summary)
        assert len(claude.requests) == 2
        with database.begin() as connection:
            retry_now(connection, user_id=user_id, conversation_id=chat)
        worker.wake()
        wait_until(lambda: summary_of(database, chat).summary)
    finally:
        worker.stop()


def test_a_chat_that_fails_while_the_scanner_looks_is_not_tried_again_at_once(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    started, release = Event(), Event()
    claude.say_to_summary(Text("", started=started, release=release))
    chat = chat_about_rome(database, user_id)
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    try:
        assert started.wait(60)
        # A round of the scanner meanwhile, seen by the other chat that it takes up.
        other = chat_about_rome(database, user_id)
        worker.wake()
        wait_until(lambda: (row := summary_of(database, other)) and row.summary)
        release.set()
        wait_until(lambda: (row := summary_of(database, chat)) and row.failures == 1)
        last = chat_about_rome(database, user_id)
        worker.summarise(last)
        wait_until(lambda: (row := summary_of(database, last)) and row.summary)
        assert len(claude.requests) == 3
        assert summary_of(database, chat).failures == 1
    finally:
        release.set()
        worker.stop()


def test_a_hanging_summary_delays_neither_other_chats_nor_the_stop(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    reply, started, release = held("Zu spät.")
    claude.say_to_summary(reply)
    hanging = chat_about_rome(database, user_id)
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    try:
        assert started.wait(60)
        other = chat_about_rome(database, user_id)
        worker.summarise(other)
        wait_until(lambda: (row := summary_of(database, other)) and row.summary)
        with database.try_lock(Lock.TURN, hanging) as ours:
            assert ours, "a turn of the same chat is free to start"
        stopped = InBackground(lambda: worker.stop(0.2))
        stopped.result()
        assert not release.is_set()
        assert summary_of(database, hanging) is None
        assert pending(database) == [hanging]
    finally:
        release.set()


def test_a_stop_does_not_wait_for_jobs_that_have_not_begun(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    replies = [held("Rom.") for _ in range(WORKERS)]
    claude.say_to_summary(*(reply for reply, _, _ in replies))
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    for _ in range(WORKERS + 4):
        worker.summarise(chat_about_rome(database, user_id))
    for _, started, _release in replies:
        assert started.wait(60)
    stop = InBackground(lambda: worker.stop(600))
    for _, _, release in replies:
        release.set()
    stop.result()
    assert len(claude.requests) == WORKERS
    assert len(pending(database)) == 4
    worker.summarise(pending(database)[0])
    assert len(claude.requests) == WORKERS


def test_the_process_ends_although_a_summary_hangs() -> None:
    script = """
import threading
from jarvis_memory import background
from jarvis_memory.settings import Settings

started = threading.Event()
def hang(**_):
    started.set()
    threading.Event().wait()
background.update_conversation_summary = hang
worker = background.Background(settings=Settings(_env_file=None), database=None, claude=None, embeddings=None)
worker.start()
worker.summarise(1)
assert started.wait(60)
worker.stop(0.1)
print("stopped")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT_FOLDER, capture_output=True, text=True, timeout=60, check=True
    )
    assert "stopped" in ended.stdout


def test_without_a_key_nothing_is_summarised_and_nothing_fails(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    chat = chat_about_rome(database, user_id)
    remember_fact(database, user_id=user_id, fact="Ich mag Tee")
    worker = background(
        database, claude, NoEmbeddings(), anthropic_api_key=None, anthropic_base_url="https://api.anthropic.com"
    )
    worker.start()
    try:
        wait_until(lambda: one(database, "SELECT embedding_model FROM memory_facts").embedding_model == "none")
        assert pending(database) == [chat]
        assert summary_of(database, chat) is None
    finally:
        worker.stop()


def test_forgettings_that_are_too_old_are_removed_by_the_background(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    worker = background(database, claude, NoEmbeddings())
    worker.start()
    try:
        for _ in range(2):
            run(
                database,
                """INSERT INTO forgettings (user_id, fact, excluded_message_ids, summaries, created_at)
                   VALUES (:user_id, '{}', '[]', '[]', now() - interval '31 days')""",
                user_id=user_id,
            )
            worker.wake()
            wait_until(lambda: one(database, "SELECT count(*) AS n FROM forgettings").n == 0)
    finally:
        worker.stop()


# --- vectors ----------------------------------------------------------------------------------------------


def test_a_summary_is_saved_while_the_embedding_service_is_down_and_gets_its_vector_later(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    with FakeOllama() as ollama:
        ollama.always = embedding_fails()
        chat = chat_about_rome(database, user_id)
        remember_fact(database, user_id=user_id, fact="Ich mag Tee")
        worker = background(database, claude, OllamaEmbeddings(ollama.base_url, "embeddinggemma"))
        worker.start()
        try:
            wait_until(lambda: worker.embedding_error)
            wait_until(lambda: (row := summary_of(database, chat)) and row.summary)
            assert worker.embedding_error == "EmbeddingUnavailable"
            assert summary_of(database, chat).embedding is None
            assert pending(database) == []
            ollama.always = None
            worker.wake()
            wait_until(lambda: summary_of(database, chat).embedding_model == "ollama/embeddinggemma")
            wait_until(lambda: one(database, "SELECT embedding FROM memory_facts").embedding is not None)
            wait_until(lambda: worker.embedding_error is None)
        finally:
            worker.stop()


def test_after_a_change_of_the_model_everything_is_embedded_anew_and_never_mixed(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    chats = [chat_about_rome(database, user_id, summary=f"Reise {number} nach Rom") for number in range(20)]
    remember_fact(database, user_id=user_id, fact="Ich mag Rom")

    def models() -> set[str | None]:
        with database.begin() as connection:
            rows = connection.exec_driver_sql(
                "SELECT embedding_model FROM conversation_summaries UNION SELECT embedding_model FROM memory_facts"
            )
            return {row[0] for row in rows}

    def found(embeddings: Embeddings) -> int:
        with database.begin() as connection:
            return len(
                search_similar_conversation_summaries(
                    connection,
                    user_id=user_id,
                    embedding=embeddings.embed_query("Rom"),
                    embedding_model=embeddings.model,
                    limit=50,
                )
            )

    with FakeOllama() as ollama:
        old, new = (OllamaEmbeddings(ollama.base_url, name) for name in ("nomic-embed-text", "embeddinggemma"))
        for embeddings in (old, new):
            worker = background(database, claude, embeddings)
            worker.start()
            try:
                wait_until(lambda model=embeddings.model: models() == {model})
            finally:
                worker.stop()
            assert found(embeddings) == len(chats)
        assert found(old) == 0
        prefixes = {text.split(":")[0] for request in ollama.requests for text in request["input"]}
        assert prefixes == {"search_document", "search_query", "title", "task"}


def test_a_vector_belongs_to_the_text_that_it_was_made_of(database: Database, user_id: int, claude: FakeClaude) -> None:
    """The summary changes while its former text is being embedded."""
    chat = chat_about_rome(database, user_id, summary="Alt.")
    embedding, go_on = Event(), Event()

    class Slow(NoEmbeddings):
        texts: list[str] = []

        def embed_passages(self, texts: Any) -> list[list[float]]:
            self.texts.extend(texts)
            embedding.set()
            assert go_on.wait(60)
            return super().embed_passages(texts)

    worker = background(database, claude, Slow())
    worker.start()
    try:
        assert embedding.wait(60)
        run(database, "UPDATE conversation_summaries SET summary = 'Neu.' WHERE conversation_id = :id", id=chat)
        go_on.set()
        wait_until(lambda: summary_of(database, chat).embedding_model)
        wait_until(lambda: "Neu." in Slow.texts[-1])
        assert [text.split("\n")[-1] for text in Slow.texts if "\n" in text and "." in text[-1]][0] == "Alt."
    finally:
        go_on.set()
        worker.stop()

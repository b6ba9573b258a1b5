"""A turn whose database goes away: an error that keeps the text, or an answer that is saved once it is back."""

import json
import logging
import os
import signal
from collections.abc import Iterator

import psycopg2
import pytest

from jarvis_memory import chat_turn, turn_saver
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.database import Database, Lock
from jarvis_memory.errors import DatabaseUnavailable
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import locks_held, one, summary_of, wait_until
from tests.integration.conftest import Server
from tests.integration.turns import ask, ask_again, ended, errors_of, held, texts_of

QUESTION = "Was frisst mein Hund Bruno gern?"


class Outage:
    """Takes the test's database away, and brings it back."""

    def __init__(self, server: Server, database: Database) -> None:
        self._server = server
        self._name = one(database, "SELECT current_database() AS name").name

    def begin(self) -> None:
        self._server.admin(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        self._server.admin(
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )

    def end(self) -> None:
        self._server.admin(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")


@pytest.fixture
def outage(server: Server, database: Database) -> Iterator[Outage]:
    outage = Outage(server, database)
    yield outage
    outage.end()


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def test_without_a_database_a_message_is_refused_and_nothing_is_left(parts: Parts, outage: Outage) -> None:
    chat = ask(parts, QUESTION).conversation_id
    outage.begin()
    for conversation_id in (None, chat):
        with pytest.raises(DatabaseUnavailable):
            start_turn(parts, user_id=parts.user_id, message="Hallo?", conversation_id=conversation_id)
    with pytest.raises(DatabaseUnavailable):
        retry_turn(parts, user_id=parts.user_id, conversation_id=chat)
    outage.end()
    assert len(texts_of(parts, chat)) == 2
    assert one(parts.database, "SELECT count(*) AS n FROM conversations").n == 1
    assert ask(parts, "Hallo?", conversation_id=chat).status == "complete"


@pytest.mark.parametrize("broken", ["insert_message", "_insert_answer", "create_conversation"])
def test_a_database_that_fails_while_the_message_is_saved_leaves_no_empty_conversation(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def goes_away(*_: object, **__: object) -> None:
        raise psycopg2.OperationalError("the connection was lost")

    with monkeypatch.context() as patched, pytest.raises((DatabaseUnavailable, psycopg2.OperationalError)):
        patched.setattr(chat_turn, broken, goes_away)
        start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert one(parts.database, "SELECT * FROM conversations") is None
    assert one(parts.database, "SELECT * FROM messages") is None
    assert locks_held(parts.database, Lock.TURN) == 0
    assert ask(parts, QUESTION).status == "complete"


def test_an_answer_that_was_streaming_is_saved_when_the_database_is_back(
    parts: Parts, claude: FakeClaude, outage: Outage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn_saver, "SAVE_WAITS", (0.05,) * 400)
    text, started, release = held("Er frisst gern Käse.")
    claude.say(text)
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    outage.begin()
    release.set()
    with caplog.at_level(logging.WARNING):
        wait_until(lambda: "Saving the answer" in caplog.text)
    assert not turn.done.is_set()
    outage.end()
    answer = ended(parts, turn)
    assert (answer.content, answer.status, errors_of(answer)) == ("Er frisst gern Käse.", "complete", [])
    assert ask(parts, "Danke", conversation_id=turn.conversation_id).status == "complete"
    wait_until(lambda: (row := summary_of(parts.database, turn.conversation_id)) and row.summary)


def test_a_database_that_is_away_at_the_wrong_moment_is_an_error_in_the_answer(
    parts: Parts, claude: FakeClaude, outage: Outage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool needs it, and it is not there: the turn ends, what came and the reason are saved later."""
    monkeypatch.setattr(turn_saver, "SAVE_WAITS", (0.05,) * 400)
    text, started, release = held("Das merke ich mir.")
    claude.say([text, ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"})], "Gemerkt.")
    turn = start_turn(parts, user_id=parts.user_id, message="Merk dir das")
    assert started.wait(60)
    outage.begin()
    release.set()
    with caplog.at_level(logging.WARNING):
        wait_until(lambda: "Saving the answer" in caplog.text)
    outage.end()
    broken = ended(parts, turn)
    assert (broken.content, broken.status) == ("Das merke ich mir.", "interrupted")
    assert errors_of(broken) == ["DatabaseUnavailable"]
    assert ask_again(parts, turn.conversation_id).status == "complete"


def test_sessions_that_the_server_ended_are_not_noticed(parts: Parts, claude: FakeClaude, outage: Outage) -> None:
    text, started, release = held("Er frisst gern Käse.")
    claude.say(text, "Gern.")
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    outage.begin()
    outage.end()
    # The server has forgotten that this chat answers; the background must not summarise half of it for that.
    parts.background.summarise(turn.conversation_id)
    wait_until(lambda: not parts.background._at_work)
    release.set()
    assert ended(parts, turn).status == "complete"
    wait_until(lambda: (row := summary_of(parts.database, turn.conversation_id)) and row.summary)
    summaries = [json.dumps(one, ensure_ascii=False) for one in claude.requests if not one.get("tools")]
    assert len(summaries) == 1
    assert "Er frisst gern Käse." in summaries[0]
    assert ask(parts, "Danke", conversation_id=turn.conversation_id).content == "Gern."


def test_a_killed_server_comes_back_by_itself_and_nothing_is_lost(
    server: Server, parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server.embedded is None:
        pytest.skip("the server belongs to somebody else")
    monkeypatch.setattr(turn_saver, "SAVE_WAITS", (0.05,) * 400)
    text, started, release = held("Er frisst gern Käse.")
    claude.say(text, "Gern.")
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    assert server.embedded.pid
    os.kill(server.embedded.pid, signal.SIGKILL)
    release.set()
    answer = ended(parts, turn)
    assert (answer.content, answer.status) == ("Er frisst gern Käse.", "complete")
    assert texts_of(parts, turn.conversation_id)[0] == ("user", QUESTION)
    assert ask(parts, "Danke", conversation_id=turn.conversation_id).content == "Gern."

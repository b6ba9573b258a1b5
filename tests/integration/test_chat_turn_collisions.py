"""Turns that meet: two tabs on one chat, two processes on one database, many chats at the same time."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from jarvis_memory import turn_request, turn_worker
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.conversations import Message
from jarvis_memory.database import Database
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.errors import TurnRunning
from jarvis_memory.running_turns import RunningTurn, RunningTurns
from tests.fake_claude import Drop, FakeClaude, Text, ToolUse
from tests.integration.chats import at_once, messages_of, one, wait_until
from tests.integration.turns import ask, ask_again, chat_requests, ended, held, plain, texts_of

QUESTION = "Was frisst mein Hund Bruno gern?"


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


@pytest.fixture
def another_process(build, server, database: Database) -> Iterator[Parts]:
    """The parts of a second process: a way to the same database of its own."""
    second = server.database(name_of(database))
    yield build(database=second)
    second.engine.dispose()


def name_of(database: Database) -> str:
    return one(database, "SELECT current_database() AS name").name


@pytest.fixture
def in_another_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningTurns]:
    """From here on turns are those of another process, which sees nothing of this one's register."""
    register = RunningTurns()
    monkeypatch.setattr(turn_worker, "TURNS", register)
    yield register
    register.shutdown(20)


def running(parts: Parts, claude: FakeClaude) -> tuple[RunningTurn, threading.Event]:
    """A turn in the middle of its answer, and the event that lets it end."""
    text, started, release = held("Er frisst gern Käse.")
    claude.say(text)
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    return turn, release


def test_a_second_message_while_the_chat_answers_is_refused_and_not_saved(parts: Parts, claude: FakeClaude) -> None:
    turn, release = running(parts, claude)
    with pytest.raises(TurnRunning):
        start_turn(parts, user_id=parts.user_id, message="Hallo?", conversation_id=turn.conversation_id)
    assert ask(parts, "Etwas anderes").status == "complete", "other chats go on"
    release.set()
    assert ended(parts, turn).content == "Er frisst gern Käse."
    assert texts_of(parts, turn.conversation_id) == [("user", QUESTION), ("assistant", "Er frisst gern Käse.")]
    assert ask(parts, "Hallo?", conversation_id=turn.conversation_id).status == "complete"


def test_a_second_message_from_another_process_is_refused_and_not_saved(
    parts: Parts, claude: FakeClaude, another_process: Parts, request: pytest.FixtureRequest
) -> None:
    turn, release = running(parts, claude)
    request.getfixturevalue("in_another_process")
    with pytest.raises(TurnRunning):
        start_turn(another_process, user_id=parts.user_id, message="Hallo?", conversation_id=turn.conversation_id)
    with pytest.raises(TurnRunning):
        retry_turn(another_process, user_id=parts.user_id, conversation_id=turn.conversation_id)
    release.set()
    assert ended(parts, turn).content == "Er frisst gern Käse."
    assert len(texts_of(parts, turn.conversation_id)) == 2
    assert ask(another_process, "Hallo?", conversation_id=turn.conversation_id).status == "complete"


def test_of_many_tabs_that_send_to_one_chat_at_once_one_wins_and_nothing_doubles(
    parts: Parts, claude: FakeClaude
) -> None:
    chat = ask(parts, QUESTION).conversation_id
    text, _, release = held("Die eine Antwort.")
    claude.say(text)
    messages = [f"Nachricht {number}" for number in range(40)]
    results = at_once(
        *(
            lambda message=message: start_turn(parts, user_id=parts.user_id, message=message, conversation_id=chat)
            for message in messages
        )
    )
    winners = [result for result in results if isinstance(result, RunningTurn)]
    assert [type(result) for result in results if result not in winners] == [TurnRunning] * 39
    release.set()
    ended(parts, winners[0])
    said = messages[results.index(winners[0])]
    assert texts_of(parts, chat)[2:] == [("user", said), ("assistant", "Die eine Antwort.")]


def test_tabs_that_send_one_after_the_other_never_interleave(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, "Anfang der Unterhaltung").conversation_id

    def tab(name: str) -> None:
        for number in range(3):

            def sent(message: str = f"{name} {number}") -> bool:
                try:
                    ask(parts, message, conversation_id=chat)
                except TurnRunning:
                    return False
                return True

            wait_until(sent, 60)

    results = at_once(*(lambda name=name: tab(name) for name in ("A", "B", "C")))
    assert results == [None] * 3
    roles = [role for role, _ in texts_of(parts, chat)]
    assert roles == ["user", "assistant"] * 10
    counted = Counter(text for role, text in texts_of(parts, chat) if role == "user")
    assert set(counted.values()) == {1}
    assert len(counted) == 10
    for request in chat_requests(claude):
        assert [role for role, _ in plain(request["messages"])][::2] == ["user"] * (len(request["messages"]) // 2 + 1)


def test_two_tabs_that_press_retry_at_once_get_one_answer(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Drop("Er frisst"))
    chat = ask(parts, QUESTION).conversation_id
    text, _, release = held("Die eine Antwort.")
    claude.say(text)
    results = at_once(*[lambda: retry_turn(parts, user_id=parts.user_id, conversation_id=chat)] * 8)
    winners = [result for result in results if isinstance(result, RunningTurn)]
    assert [type(result) for result in results if result not in winners] == [TurnRunning] * 7
    release.set()
    ended(parts, winners[0])
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Die eine Antwort.")]


def test_retry_and_a_new_message_at_once_never_mix(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Drop("Er frisst"))
    chat = ask(parts, QUESTION).conversation_id
    results = at_once(lambda: ask_again(parts, chat), lambda: ask(parts, "Hallo?", conversation_id=chat))
    assert len([result for result in results if not isinstance(result, TurnRunning)]) in (1, 2)
    roles = [role for role, _ in texts_of(parts, chat)]
    assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_ten_turns_in_different_chats_run_at_the_same_time(parts: Parts, claude: FakeClaude) -> None:
    release = threading.Event()
    texts = [Text("Dieselbe Antwort.", started=threading.Event(), release=release) for _ in range(10)]
    claude.say(*texts)
    turns = at_once(
        *(
            lambda number=number: start_turn(parts, user_id=parts.user_id, message=f"Frage Nummer {number}")
            for number in range(10)
        )
    )
    for text in texts:
        assert text.started and text.started.wait(60), "all of them stream at the same time"
    release.set()
    for number, turn in enumerate(turns):
        assert ended(parts, turn).status == "complete"
        assert texts_of(parts, turn.conversation_id) == [
            ("user", f"Frage Nummer {number}"),
            ("assistant", "Dieselbe Antwort."),
        ]


def test_more_turns_than_workers_and_connections_all_complete_in_the_end(parts: Parts, claude: FakeClaude) -> None:
    turns = at_once(
        *(
            lambda number=number: start_turn(parts, user_id=parts.user_id, message=f"Frage Nummer {number}")
            for number in range(40)
        )
    )
    for turn in turns:
        assert ended(parts, turn).status == "complete"
    assert one(parts.database, "SELECT count(*) AS n FROM conversations").n == 40


def test_tabs_that_have_the_same_remembered_at_once_store_it_once(parts: Parts, claude: FakeClaude) -> None:
    claude.say(*[ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"})] * 4)
    answers = at_once(*[lambda: ask(parts, "Merk dir, dass der Hund Bruno heißt")] * 4)
    assert [answer.status for answer in answers] == ["complete"] * 4
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1


def test_a_chat_that_is_deleted_while_it_answers_is_not_brought_back(parts: Parts, claude: FakeClaude) -> None:
    turn, release = running(parts, claude)
    with parts.database.begin() as connection:
        delete_conversation(connection, user_id=parts.user_id, conversation_id=turn.conversation_id)
    release.set()
    assert turn.done.wait(60)
    assert messages_of(parts.database, parts.user_id, turn.conversation_id) == []
    assert one(parts.database, "SELECT * FROM conversations") is None


def test_a_chat_that_is_deleted_before_its_answer_begins_ends_in_silence(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load = turn_request._load

    def delete_and_load(parts: Parts, user_id: int, turn: RunningTurn) -> list[Message]:
        with parts.database.begin() as connection:
            delete_conversation(connection, user_id=user_id, conversation_id=turn.conversation_id)
        return load(parts, user_id, turn)

    monkeypatch.setattr(turn_request, "_load", delete_and_load)
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert turn.done.wait(60)
    assert chat_requests(claude) == []
    assert one(parts.database, "SELECT * FROM conversations") is None
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []

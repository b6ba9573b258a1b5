"""The register of running turns: one a conversation, gone when its work ends, stopped and waited for at the end."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jarvis_memory.errors import TurnRunning
from jarvis_memory.running_turns import WORKERS, RunningTurn, RunningTurns


class Works:
    """Work that says that it began, then waits for its turn's stop or for `release`."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.release = threading.Event()
        self.ended: list[int] = []

    def __call__(self, turn: RunningTurn) -> None:
        self.began.release()
        while not self.release.is_set() and not turn.stop.wait(0.01):
            pass
        self.ended.append(turn.conversation_id)


@pytest.fixture
def works() -> Iterator[Works]:
    work = Works()
    yield work
    work.release.set()


@pytest.fixture
def turns() -> Iterator[RunningTurns]:
    register = RunningTurns()
    yield register
    register.shutdown()


def a_turn(conversation_id: int = 1, user_id: int = 1) -> RunningTurn:
    return RunningTurn(user_id=user_id, conversation_id=conversation_id, user_message_id=10, answer_message_id=11)


def test_a_running_turn_is_found_until_its_work_ends(turns: RunningTurns, works: Works) -> None:
    turn = a_turn()
    turns.start(turn, works)
    assert works.began.acquire(timeout=20)
    assert turns.get(1) is turn
    assert turns.running() == {1}
    assert not turn.done.is_set()
    works.release.set()
    assert turn.done.wait(20)
    assert turns.get(1) is None
    assert turns.running() == set()


def test_a_second_turn_of_a_conversation_is_refused_and_the_first_stays(turns: RunningTurns, works: Works) -> None:
    first = a_turn()
    turns.start(first, works)
    assert works.began.acquire(timeout=20)
    with pytest.raises(TurnRunning):
        turns.start(a_turn(), works)
    assert turns.get(1) is first
    works.release.set()
    assert first.done.wait(20)
    assert works.ended == [1]


def test_turns_of_different_conversations_run_side_by_side(turns: RunningTurns, works: Works) -> None:
    for number in range(WORKERS):
        turns.start(a_turn(number), works)
    for _ in range(WORKERS):
        assert works.began.acquire(timeout=20)
    assert turns.running() == set(range(WORKERS))


def raises(error: BaseException) -> Callable[[RunningTurn], Any]:
    def work(_: RunningTurn) -> None:
        raise error

    return work


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(1)], ids=["exception", "exit"])
def test_a_turn_whose_work_fails_is_unregistered_and_done(turns: RunningTurns, error: BaseException) -> None:
    turn = a_turn()
    turns.start(turn, raises(error))
    assert turn.done.wait(20)
    assert turns.get(1) is None


def test_a_turn_that_cannot_start_is_unregistered(turns: RunningTurns, works: Works) -> None:
    turns._pool.shutdown()
    with pytest.raises(RuntimeError):
        turns.start(a_turn(), works)
    assert turns.get(1) is None


def test_after_a_turn_the_conversation_takes_the_next_one(turns: RunningTurns, works: Works) -> None:
    works.release.set()
    for _ in range(3):
        turn = a_turn()
        turns.start(turn, works)
        assert turn.done.wait(20)
    assert works.ended == [1, 1, 1]


def test_a_shutdown_stops_every_turn_and_waits_for_its_end(turns: RunningTurns, works: Works) -> None:
    running = [a_turn(number) for number in range(3)]
    for turn in running:
        turns.start(turn, works)
    for _ in running:
        assert works.began.acquire(timeout=20)
    turns.shutdown(seconds=20)
    assert all(turn.stop.is_set() and turn.done.is_set() for turn in running)
    assert sorted(works.ended) == [0, 1, 2]
    assert turns.running() == set()


def test_stopping_one_persons_turns_leaves_the_others_running(turns: RunningTurns) -> None:
    def until_stopped(turn: RunningTurn) -> None:
        turn.stop.wait(20)

    mine, theirs = a_turn(1, user_id=1), a_turn(2, user_id=2)
    for turn in (mine, theirs):
        turns.start(turn, until_stopped)
    turns.stop(user_id=1)
    assert mine.done.is_set()
    assert (theirs.stop.is_set(), turns.running()) == (False, {2})


def test_a_shutdown_also_ends_turns_that_still_wait_for_a_worker(turns: RunningTurns, works: Works) -> None:
    running = [a_turn(number) for number in range(WORKERS + 4)]
    for turn in running:
        turns.start(turn, works)
    for _ in range(WORKERS):
        assert works.began.acquire(timeout=20)
    turns.shutdown(seconds=20)
    assert sorted(works.ended) == [turn.conversation_id for turn in running]


def test_a_shutdown_does_not_wait_for_ever_for_a_turn_that_hangs(turns: RunningTurns) -> None:
    began, release = threading.Event(), threading.Event()

    def hang(_: RunningTurn) -> None:
        began.set()
        release.wait(60)

    turn = a_turn()
    turns.start(turn, hang)
    assert began.wait(20)
    turns.shutdown(seconds=0.1)
    assert not turn.done.is_set()
    release.set()
    assert turn.done.wait(20)


def test_turns_start_again_after_a_shutdown(turns: RunningTurns, works: Works) -> None:
    turns.shutdown()
    works.release.set()
    turn = a_turn()
    turns.start(turn, works)
    assert turn.done.wait(20)


def test_what_a_page_read_stays_as_it_was_when_the_turn_goes_on() -> None:
    turn = a_turn()
    turn.write(content="Ich sehe nach.", block={"type": "tool", "id": "a", "name": "search_memory"})
    content, blocks, thinking = turn.snapshot()
    turn.write(content="Ich sehe nach. Bruno.", result={"id": "a", "result": {"facts": []}}, thinking=True)
    turn.write(block={"type": "notice"})
    assert (content, thinking) == ("Ich sehe nach.", False)
    assert blocks == [{"type": "tool", "id": "a", "name": "search_memory"}]


def test_a_result_goes_to_the_call_with_its_id() -> None:
    turn = a_turn()
    for name in ("a", "b"):
        turn.write(block={"type": "tool", "id": name})
    turn.write(result={"id": "b", "result": {"deleted": True}, "is_error": False})
    assert turn.snapshot()[1] == [
        {"type": "tool", "id": "a"},
        {"type": "tool", "id": "b", "result": {"deleted": True}, "is_error": False},
    ]

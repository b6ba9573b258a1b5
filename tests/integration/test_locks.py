"""The advisory locks: one holder over all threads and processes, few connections, nothing left behind."""

import contextlib
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from jarvis_memory.database import Database, Lock
from jarvis_memory.errors import DatabaseUnavailable
from tests.integration.chats import at_once, locks_held, one
from tests.integration.conftest import Server

SESSIONS = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"


@pytest.fixture
def another_process(server: Server, database: Database) -> Iterator[Database]:
    """A second way to the same database, as another process has it."""
    second = server.database(one(database, "SELECT current_database() AS name").name)
    yield second
    second.engine.dispose()


def is_free(database: Database, number: int) -> bool:
    with database.try_lock(Lock.TURN, number) as ours:
        return ours


def end_sessions(database: Database) -> None:
    """As a restart of the server does."""
    with database.begin() as connection:
        connection.execute(
            text(
                """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()"""
            )
        )


def test_a_lock_is_held_by_one_until_its_block_ends(database: Database, another_process: Database) -> None:
    with database.try_lock(Lock.TURN, 1) as ours:
        assert ours
        assert not is_free(database, 1)
        assert not is_free(another_process, 1)
        assert is_free(another_process, 2)
        with another_process.try_lock(Lock.SUMMARY, 1) as other_kind:
            assert other_kind
    assert is_free(another_process, 1)
    assert locks_held(database, Lock.TURN) == 0


def test_a_lock_is_given_back_when_its_block_raises(database: Database, another_process: Database) -> None:
    with pytest.raises(ValueError), database.try_lock(Lock.TURN, 1):
        raise ValueError
    assert is_free(another_process, 1)


def test_somebody_who_did_not_get_the_lock_does_not_give_it_back(database: Database, another_process: Database) -> None:
    with database.try_lock(Lock.TURN, 1):
        assert [is_free(database, 1), is_free(another_process, 1)] == [False, False]
        assert not is_free(another_process, 1)


def test_of_many_threads_one_gets_the_lock(database: Database) -> None:
    with contextlib.ExitStack() as kept:
        results = at_once(*[lambda: kept.enter_context(database.try_lock(Lock.TURN, 1))] * 20)
        assert sorted(results) == [False] * 19 + [True]


def test_many_locks_take_one_connection_and_no_lock_takes_none(database: Database) -> None:
    before = one(database, SESSIONS).n
    with contextlib.ExitStack() as kept:
        for number in range(60):
            assert kept.enter_context(database.try_lock(Lock.TURN, number))
        assert locks_held(database, Lock.TURN) == 60
        assert one(database, SESSIONS).n == before + 1
    assert locks_held(database, Lock.TURN) == 0
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_lock_that_the_server_lost_stays_with_its_holder(database: Database, another_process: Database) -> None:
    with database.try_lock(Lock.TURN, 1):
        end_sessions(another_process)
        assert not is_free(database, 1), "in this process it is never given twice"
        assert is_free(database, 2), "the next use of a lock takes the lost ones again"
        assert not is_free(another_process, 1)
    assert is_free(another_process, 1)


def test_a_lock_ends_in_silence_when_the_server_has_lost_it(database: Database, another_process: Database) -> None:
    with database.try_lock(Lock.TURN, 1):
        end_sessions(another_process)
    assert is_free(database, 1)
    assert locks_held(database, Lock.TURN) == 0


def test_without_a_database_there_is_no_lock_but_an_error(server: Server) -> None:
    name = server.create()
    database = server.database(name)
    server.drop(name)
    with pytest.raises(DatabaseUnavailable), database.try_lock(Lock.TURN, 1):
        raise AssertionError("no lock")

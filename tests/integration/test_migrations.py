"""The schema: from nothing, twice at once, by hand, and never backwards."""

import io
import threading

import pytest
from alembic import command
from alembic.util import CommandError
from sqlalchemy import inspect, text

from jarvis_memory.database import Database, migrate, migration_config
from jarvis_memory.errors import DatabaseTooNew
from jarvis_memory.tables import metadata
from tests.integration.chats import indexed
from tests.integration.test_documents import Library


def test_an_empty_database_gets_every_table(empty_database: Database) -> None:
    migrate(empty_database)
    assert set(inspect(empty_database.engine).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_migrating_twice_changes_nothing(empty_database: Database) -> None:
    migrate(empty_database)
    migrate(empty_database)
    with empty_database.begin() as connection:
        assert connection.scalar(text("SELECT count(*) FROM alembic_version")) == 1


def test_processes_that_start_at_once_migrate_one_after_the_other(empty_database: Database) -> None:
    failures = []

    def start() -> None:
        try:
            migrate(empty_database)
        except Exception as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_tables_of_the_code_are_those_of_the_migrations(database: Database) -> None:
    config = migration_config()
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.check(config)


def test_a_difference_between_code_and_migrations_is_noticed(database: Database) -> None:
    config = migration_config()
    with database.begin() as connection:
        connection.execute(text("ALTER TABLE memory_facts DROP COLUMN origin"))
        config.attributes["connection"] = connection
        with pytest.raises(CommandError):
            command.check(config)
        connection.rollback()


def test_chats_of_the_release_before_are_kept_and_indexed_by_the_background(empty_database: Database) -> None:
    with empty_database.begin() as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("INSERT INTO users (id, login) VALUES (1, 'somebody')"))
        connection.execute(text("INSERT INTO conversations (id, user_id, title) VALUES (1, 1, 'Der Hund')"))
        connection.execute(
            text(
                """INSERT INTO messages (id, conversation_id, user_id, role, content)
                   VALUES (1, 1, 1, 'user', 'Mein Hund heißt Bruno'), (2, 1, 1, 'assistant', 'Schön.')"""
            )
        )
        connection.execute(
            text(
                """INSERT INTO conversation_summaries (conversation_id, user_id, summary, through_message_id)
                   VALUES (1, 1, 'Ein Hund namens Bruno.', 2)"""
            )
        )
    migrate(empty_database)
    indexed(empty_database)
    with empty_database.begin() as connection:
        counts = connection.execute(text("SELECT word, count FROM conversation_words WHERE user_id = 1"))
        words = {row.word: row.count for row in counts}
        assert (words["bruno"], words["hund"]) == (2, 3)
        assert connection.scalar(text("SELECT count(*) FROM exchanges")) == 1
        assert connection.scalar(text("SELECT embedding_model FROM conversation_summaries")) == "test/one"


def test_every_chat_of_the_release_before_gets_a_name_of_its_own_for_exports(empty_database: Database) -> None:
    with empty_database.begin() as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.execute(text("INSERT INTO users (id, login, language) VALUES (1, 'somebody', 'en')"))
        connection.execute(text("INSERT INTO conversations (user_id, remember) VALUES (1, true), (1, false)"))
    migrate(empty_database)
    with empty_database.begin() as connection:
        chats = connection.execute(
            text(
                "SELECT external_id, remember, reads_memory, temporary, pinned, archived FROM conversations ORDER BY id"
            )
        ).all()
        assert len({chat.external_id for chat in chats}) == 2
        assert [tuple(chat)[1:] for chat in chats] == [
            (True, True, False, False, False),
            (False, True, False, False, False),
        ]
        assert tuple(connection.execute(text("SELECT language, instructions FROM users")).one()) == ("en", "")


def test_what_the_release_before_documents_held_is_kept_and_documents_can_be_added(empty_database: Database) -> None:
    with empty_database.begin() as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        connection.execute(text("INSERT INTO users (id, login) OVERRIDING SYSTEM VALUE VALUES (1, 'somebody')"))
        connection.execute(text("INSERT INTO conversations (user_id, title) VALUES (1, 'Der Hund')"))
        connection.execute(text("INSERT INTO memory_facts (user_id, content, content_key) VALUES (1, 'Hund', 'hund')"))
    migrate(empty_database)
    library = Library(empty_database, 1)
    library.read("Brief.txt", "Der Hund heißt Bruno.")
    indexed(empty_database)
    assert library.search("Bruno")[0].document == "Brief.txt"
    with empty_database.begin() as connection:
        assert connection.scalar(text("SELECT title FROM conversations")) == "Der Hund"
        assert connection.scalar(text("SELECT embedding_model FROM memory_facts")) == "test/one"


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew):
        migrate(database)


def test_the_plain_sql_for_use_by_hand_makes_the_same_schema(database: Database, empty_database: Database) -> None:
    config = migration_config()
    config.output_buffer = io.StringIO()
    command.upgrade(config, "head", sql=True)
    with empty_database.engine.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(config.output_buffer.getvalue())
        connection.connection.commit()
    columns = text(
        """SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
           WHERE table_schema = 'public' ORDER BY 1, 2"""
    )
    with database.begin() as ours, empty_database.begin() as by_hand:
        assert by_hand.execute(columns).all() == ours.execute(columns).all()

"""Deleting a person's whole memory, or everything of theirs, with a receipt of what really went."""

import logging
import time

from sqlalchemy import Connection, text

from jarvis_memory.database import Database
from jarvis_memory.deletions import Deletion
from jarvis_memory.tables import metadata
from jarvis_memory.users import lock_memory

log = logging.getLogger(__name__)

# How long a rewrite of the tables waits for transactions that may still look at what was deleted.
OLDER_TRANSACTIONS_SECONDS = 10.0


def delete_all_memory(database: Database, *, user_id: int) -> Deletion:
    """Delete facts and summaries, and what Undo and "What is sent" keep of them. The chats stay readable.

    What was said so far is excluded, so that no later summary brings it back.
    """
    with database.begin() as connection:
        lock_memory(connection, user_id=user_id)
        _run(connection, "SELECT FROM conversations WHERE user_id = :user_id ORDER BY id FOR NO KEY UPDATE", user_id)
        # What Undo would bring back: forgotten facts, and deleted chats with their summaries and facts.
        # And what waits for a decision: it may be a fact, and its turn goes on with what the memory told.
        for table in ("forgettings", "deletions", "pending_actions"):
            _run(connection, f"DELETE FROM {table} WHERE user_id = :user_id", user_id)
        facts = _run(connection, "DELETE FROM memory_facts WHERE user_id = :user_id", user_id)
        summaries = connection.scalar(
            text("SELECT count(*) FROM conversation_summaries WHERE user_id = :user_id AND summary IS NOT NULL"),
            {"user_id": user_id},
        )
        _run(
            connection,
            """
            INSERT INTO conversation_summaries AS s (conversation_id, user_id, through_message_id, revision)
            SELECT c.id, c.user_id, coalesce((SELECT max(m.id) FROM messages m WHERE m.conversation_id = c.id), 0), 1
            FROM conversations c WHERE c.user_id = :user_id AND c.remember
            ON CONFLICT (conversation_id) DO UPDATE SET summary = NULL, indexed_text = NULL, embedding = NULL,
                embedding_model = NULL,
                through_message_id = excluded.through_message_id, revision = s.revision + 1, failures = 0,
                last_error = NULL, retry_at = NULL, updated_at = now()
            """,
            user_id,
        )
        _run(
            connection,
            """
            UPDATE messages SET excluded_from_memory = true, sent = NULL, rounds = NULL, words_indexed = false,
                exchange_model = NULL, status = CASE WHEN status = 'waiting' THEN 'interrupted' ELSE status END,
                blocks = (
                SELECT coalesce(jsonb_agg(block ORDER BY place), '[]'::jsonb)
                FROM jsonb_array_elements(blocks) WITH ORDINALITY AS kept(block, place)
                WHERE block ->> 'type' NOT IN ('earlier', 'recalled', 'memory', 'tool'))
            WHERE user_id = :user_id
            """,
            user_id,
        )
        # Titles that a summary gave are a part of it; a recalled conversation is named by its title.
        _run(connection, "UPDATE conversations SET words = 0 WHERE user_id = :user_id", user_id)
        _run(connection, "UPDATE conversations SET title = '' WHERE user_id = :user_id AND NOT title_by_user", user_id)
        for table in ("exchanges", "conversation_words"):
            _run(connection, f"DELETE FROM {table} WHERE user_id = :user_id", user_id)
    return Deletion(facts=facts, summaries=summaries or 0)


def delete_everything(database: Database, *, user_id: int) -> Deletion:
    """Delete all rows of this person but their language and time zone, and rewrite the files so that no text stays.

    That is the tables, and the write-ahead log of the embedded server. The log of another server, its backups and
    replicas are in the hands of whoever runs it. Raises DatabaseUnavailable, perhaps when only the rows are gone.
    """
    with database.begin() as connection:
        lock_memory(connection, user_id=user_id)
        _run(connection, "SELECT FROM conversations WHERE user_id = :user_id ORDER BY id FOR UPDATE", user_id)
        summaries = connection.scalar(
            text("SELECT count(*) FROM conversation_summaries WHERE user_id = :user_id AND summary IS NOT NULL"),
            {"user_id": user_id},
        )
        messages = connection.scalar(
            text("SELECT count(*) FROM messages WHERE user_id = :user_id"), {"user_id": user_id}
        )
        for table in ("forgettings", "deletions", "token_usage"):
            _run(connection, f"DELETE FROM {table} WHERE user_id = :user_id", user_id)
        _run(connection, "UPDATE users SET instructions = '' WHERE id = :user_id", user_id)
        facts = _run(connection, "DELETE FROM memory_facts WHERE user_id = :user_id", user_id)
        conversations = _run(connection, "DELETE FROM conversations WHERE user_id = :user_id", user_id)
        _run(connection, "SELECT FROM documents WHERE user_id = :user_id ORDER BY id FOR UPDATE", user_id)
        documents = _run(connection, "DELETE FROM documents WHERE user_id = :user_id", user_id)
    _rewrite_files(database)
    return Deletion(
        conversations=conversations,
        messages=messages or 0,
        facts=facts,
        summaries=summaries or 0,
        documents=documents,
    )


def _run(connection: Connection, statement: str, user_id: int) -> int:
    return connection.execute(text(statement), {"user_id": user_id}).rowcount


def _rewrite_files(database: Database) -> None:
    with database.autocommit() as connection:
        _wait_for_older_transactions(connection)
        for table in metadata.tables:
            connection.execute(text(f"VACUUM FULL {table}"))
    if database.embedded is not None:
        database.embedded.discard_wal()


def _wait_for_older_transactions(connection: Connection) -> None:
    """VACUUM keeps a deleted row for a transaction that began before the deletion, also of another table."""
    began = connection.scalar(text("SELECT clock_timestamp()"))
    older = text(
        """SELECT count(*) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < :began"""
    )
    deadline = time.monotonic() + OLDER_TRANSACTIONS_SECONDS
    while connection.scalar(older, {"began": began}):
        if time.monotonic() > deadline:
            log.warning(
                "A transaction is still open; some of what was deleted stays in the files until the next VACUUM"
            )
            return
        time.sleep(0.05)

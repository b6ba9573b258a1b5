"""Deleting a person's whole memory, or everything of theirs, with a receipt of what really went."""

import logging

from sqlalchemy import Connection, text

from jarvis_memory.conversations import Deletion
from jarvis_memory.database import Database
from jarvis_memory.tables import metadata

log = logging.getLogger(__name__)


def delete_all_memory(database: Database, *, user_id: int) -> Deletion:
    """Delete facts and summaries, and what Undo and "What is sent" keep of them. The chats stay readable.

    What was said so far is excluded, so that no later summary brings it back.
    """
    with database.begin() as connection:
        _run(connection, "DELETE FROM forgettings WHERE user_id = :user_id", user_id)
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
            ON CONFLICT (conversation_id) DO UPDATE SET summary = NULL, embedding = NULL, embedding_model = NULL,
                through_message_id = excluded.through_message_id, revision = s.revision + 1, failures = 0,
                last_error = NULL, retry_at = NULL, updated_at = now()
            """,
            user_id,
        )
        _run(
            connection,
            """
            UPDATE messages SET excluded_from_memory = true, sent = NULL, blocks = (
                SELECT coalesce(jsonb_agg(block ORDER BY place), '[]'::jsonb)
                FROM jsonb_array_elements(blocks) WITH ORDINALITY AS kept(block, place)
                WHERE block ->> 'type' NOT IN ('recalled', 'memory', 'tool'))
            WHERE user_id = :user_id
            """,
            user_id,
        )
    return Deletion(facts=facts, summaries=summaries or 0)


def delete_everything(database: Database, *, user_id: int) -> Deletion:
    """Delete all rows of this person but the user itself, and rewrite the tables so that no text stays in the files."""
    with database.begin() as connection:
        summaries = connection.scalar(
            text("SELECT count(*) FROM conversation_summaries WHERE user_id = :user_id AND summary IS NOT NULL"),
            {"user_id": user_id},
        )
        messages = connection.scalar(
            text("SELECT count(*) FROM messages WHERE user_id = :user_id"), {"user_id": user_id}
        )
        _run(connection, "DELETE FROM forgettings WHERE user_id = :user_id", user_id)
        facts = _run(connection, "DELETE FROM memory_facts WHERE user_id = :user_id", user_id)
        conversations = _run(connection, "DELETE FROM conversations WHERE user_id = :user_id", user_id)
    _rewrite_tables(database)
    return Deletion(conversations=conversations, messages=messages or 0, facts=facts, summaries=summaries or 0)


def _run(connection: Connection, statement: str, user_id: int) -> int:
    return connection.execute(text(statement), {"user_id": user_id}).rowcount


def _rewrite_tables(database: Database) -> None:
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in metadata.tables:
            connection.execute(text(f"VACUUM FULL {table}"))

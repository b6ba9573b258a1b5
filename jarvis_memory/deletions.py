"""Deleting a conversation, and the way back for as long as Undo is offered.

What Undo needs is stored in the deletion's own transaction, and leaves the database after UNDO_HOURS.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, func, select, text

from jarvis_memory.conversations import withdraw_recalled
from jarvis_memory.errors import ConversationNotFound, DeletionExpired
from jarvis_memory.tables import memory_facts, messages
from jarvis_memory.users import lock_memory

UNDO_HOURS = 1
# PostgreSQL refuses a jsonb of 256 MB; a chat near that is deleted without Undo.
LARGEST_UNDO_BYTES = 128 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """The receipt of a deletion: what really went, in rows."""

    conversations: int = 0
    messages: int = 0
    facts: int = 0
    summaries: int = 0
    documents: int = 0
    # What `undo_deletion` wants; None where nothing is kept for it.
    id: int | None = field(default=None, compare=False)


def count_facts_from(connection: Connection, *, user_id: int, conversation_id: int) -> int:
    """How many facts were remembered in this conversation."""
    query = select(func.count()).where(*_facts_from(user_id, conversation_id))
    return int(connection.scalars(query).one())


def _facts_from(user_id: int, conversation_id: int) -> tuple[Any, ...]:
    said_there = select(messages.c.id).where(messages.c.conversation_id == conversation_id)
    return (memory_facts.c.user_id == user_id, memory_facts.c.source_message_id.in_(said_there))


def delete_conversation(
    connection: Connection, *, user_id: int, conversation_id: int, with_facts: bool = False
) -> Deletion:
    """Delete a conversation with its messages and summary, its traces in other chats' prompts, and on request the
    facts that came from it. Returns the receipt. Raises ConversationNotFound.

    A turn that runs in it has to be stopped before. A temporary chat is gone for good.
    """
    lock_memory(connection, user_id=user_id)
    here = {"id": conversation_id, "user_id": user_id}
    found = connection.execute(
        text("SELECT FROM conversations WHERE id = :id AND user_id = :user_id FOR UPDATE"), here
    ).one_or_none()
    if found is None:
        raise ConversationNotFound
    deletion_id = connection.scalars(
        text(_KEEP), here | {"with_facts": with_facts, "largest": LARGEST_UNDO_BYTES}
    ).one_or_none()
    if deletion_id is not None:
        connection.execute(
            text(
                """UPDATE attachments SET deletion_id = :deletion_id, message_id = NULL
                   WHERE message_id IN (SELECT id FROM messages WHERE conversation_id = :id)"""
            ),
            here | {"deletion_id": deletion_id},
        )
    facts = 0
    if with_facts:
        facts = connection.execute(delete(memory_facts).where(*_facts_from(user_id, conversation_id))).rowcount
    counts = connection.execute(
        text(
            """SELECT (SELECT count(*) FROM messages WHERE conversation_id = :id) AS messages,
                      (SELECT count(*) FROM conversation_summaries
                       WHERE conversation_id = :id AND summary IS NOT NULL) AS summaries"""
        ),
        here,
    ).one()
    connection.execute(text("DELETE FROM conversations WHERE id = :id AND user_id = :user_id"), here)
    withdraw_recalled(connection, user_id=user_id, conversation_ids=[conversation_id])
    # What Undo of a forgotten fact would put back must not hold a deleted chat's summary.
    connection.execute(
        text(
            """UPDATE forgettings SET summaries = jsonb_path_query_array(
                   summaries, '$[*] ? (@.id != $gone)', jsonb_build_object('gone', CAST(:id AS bigint)))
               WHERE user_id = :user_id"""
        ),
        here,
    )
    return Deletion(conversations=1, messages=counts.messages, facts=facts, summaries=counts.summaries, id=deletion_id)


# The rows as they are to come back: without what the index has of them, which the background makes anew.
_KEEP = """
    WITH said AS MATERIALIZED (
        SELECT m.id, to_jsonb(m) || '{"words_indexed": false, "exchange_model": null, "rounds": null}'
            -- What waited for a decision does not wait any more.
            || CASE WHEN m.status = 'waiting' THEN '{"status": "interrupted"}'::jsonb ELSE '{}' END AS kept
        FROM messages m WHERE m.conversation_id = :id
    ), sources AS (
        SELECT f.id, f.source_message_id, to_jsonb(f) - 'embedding' - 'embedding_model' AS kept
        FROM memory_facts f WHERE f.user_id = :user_id AND f.source_message_id IN (SELECT id FROM said)
    )
    INSERT INTO deletions (user_id, content)
    SELECT :user_id, jsonb_build_object(
        'conversation', to_jsonb(c) || '{"words": 0}',
        'messages', (SELECT coalesce(jsonb_agg(kept ORDER BY id), '[]') FROM said),
        'versions', (SELECT coalesce(jsonb_agg(to_jsonb(v) ORDER BY v.id), '[]')
                     FROM message_versions v WHERE v.conversation_id = c.id),
        'summaries', (SELECT coalesce(jsonb_agg(to_jsonb(s) - 'embedding' - 'embedding_model' - 'indexed_text'), '[]')
                      FROM conversation_summaries s WHERE s.conversation_id = c.id),
        'facts', (SELECT coalesce(jsonb_agg(kept), '[]') FROM sources WHERE :with_facts),
        'sources', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'message_id', source_message_id)), '[]')
                    FROM sources),
        'attachments', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'message_id', a.message_id)), '[]')
                        FROM attachments a WHERE a.message_id IN (SELECT id FROM said)))
    FROM conversations c
    WHERE c.id = :id AND NOT c.temporary
      AND (SELECT coalesce(sum(pg_column_size(kept)), 0) FROM said) <= :largest
    RETURNING id
"""

# In this order: each refers to what stands above it.
_BRING_BACK = (
    """INSERT INTO messages OVERRIDING SYSTEM VALUE
       SELECT kept.* FROM deletions d, jsonb_populate_recordset(NULL::messages, d.content -> 'messages') AS kept
       WHERE d.id = :id""",
    """INSERT INTO message_versions OVERRIDING SYSTEM VALUE
       SELECT kept.* FROM deletions d, jsonb_populate_recordset(NULL::message_versions, d.content -> 'versions') AS kept
       WHERE d.id = :id""",
    """INSERT INTO conversation_summaries
       SELECT kept.* FROM deletions d,
              jsonb_populate_recordset(NULL::conversation_summaries, d.content -> 'summaries') AS kept
       WHERE d.id = :id""",
    # A summary that was being written when the chat was deleted is none of this one.
    """INSERT INTO conversation_summaries AS s (conversation_id, user_id, revision)
       SELECT c.id, c.user_id, 1 FROM deletions d JOIN conversations c
           ON c.id = CAST(d.content -> 'conversation' ->> 'id' AS bigint) AND c.remember
       WHERE d.id = :id
       ON CONFLICT (conversation_id) DO UPDATE SET revision = s.revision + 1""",
    # What was remembered anew in the meantime stays as it is.
    """INSERT INTO memory_facts OVERRIDING SYSTEM VALUE
       SELECT kept.* FROM deletions d, jsonb_populate_recordset(NULL::memory_facts, d.content -> 'facts') AS kept
       WHERE d.id = :id ON CONFLICT (user_id, content_key) DO NOTHING""",
    """UPDATE memory_facts f SET source_message_id = former.message_id
       FROM deletions d, jsonb_to_recordset(d.content -> 'sources') AS former(id bigint, message_id bigint)
       WHERE d.id = :id AND f.id = former.id AND f.user_id = d.user_id AND f.source_message_id IS NULL""",
    """UPDATE attachments a SET message_id = former.message_id, deletion_id = NULL
       FROM deletions d, jsonb_to_recordset(d.content -> 'attachments') AS former(id bigint, message_id bigint)
       WHERE d.id = :id AND a.id = former.id AND a.deletion_id = d.id""",
    "DELETE FROM deletions WHERE id = :id",
)


def undo_deletion(connection: Connection, *, user_id: int, deletion_id: int) -> int:
    """Bring the deleted conversation back, with its facts. Returns its id.

    What other chats had recalled of it stays withdrawn. Raises DeletionExpired when it is too late, or was done.
    """
    lock_memory(connection, user_id=user_id)
    conversation_id = connection.scalars(
        text(
            """
            INSERT INTO conversations OVERRIDING SYSTEM VALUE
            SELECT kept.* FROM deletions d,
                   jsonb_populate_record(NULL::conversations, d.content -> 'conversation') AS kept
            WHERE d.id = :id AND d.user_id = :user_id AND d.created_at > now() - make_interval(hours => :hours)
            -- An import brought the chat back already.
            ON CONFLICT DO NOTHING RETURNING id
            """
        ),
        {"id": deletion_id, "user_id": user_id, "hours": UNDO_HOURS},
    ).one_or_none()
    if conversation_id is None:
        raise DeletionExpired
    for statement in _BRING_BACK:
        connection.execute(text(statement), {"id": deletion_id})
    withdraw_recalled(connection, user_id=user_id, conversation_ids=_recalled_and_gone(connection, conversation_id))
    return int(conversation_id)


def _recalled_and_gone(connection: Connection, conversation_id: int) -> list[int]:
    """What this conversation has copies of although it was deleted or left the memory meanwhile."""
    rows = connection.scalars(
        text(
            """SELECT DISTINCT CAST(recalled ->> 'id' AS bigint)
               FROM messages m, jsonb_array_elements(m.blocks) AS block,
                    jsonb_array_elements(block -> 'conversations') AS recalled
               WHERE m.conversation_id = :id AND block ->> 'type' = 'recalled'
                 AND CAST(recalled ->> 'id' AS bigint) NOT IN (SELECT c.id FROM conversations c WHERE c.remember)"""
        ),
        {"id": conversation_id},
    )
    return [int(number) for number in rows]


def drop_deletions(connection: Connection, *, user_id: int) -> None:
    """From now on none of this person's deletions can be undone."""
    connection.execute(text("DELETE FROM deletions WHERE user_id = :user_id"), {"user_id": user_id})


def purge_old_deletions(connection: Connection) -> None:
    """Remove what Undo kept for longer than UNDO_HOURS, of everybody."""
    connection.execute(
        text("DELETE FROM deletions WHERE created_at <= now() - make_interval(hours => :hours)"), {"hours": UNDO_HOURS}
    )

"""Forgetting completely: the fact, the exchanges that state it, the summaries that tell it, and the way back.

An exchange is a user's message with the answer that follows it. One that states the fact stays readable in its
chat and is never summarised or recalled again; the summaries concerned are written anew from what remains.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from jarvis_memory.conversations import withdraw_recalled
from jarvis_memory.database import Database
from jarvis_memory.deletions import drop_deletions
from jarvis_memory.errors import FactNotFound
from jarvis_memory.facts import Fact, delete_memory_fact, find_facts_to_forget, get_memory_fact
from jarvis_memory.recall_index import (
    FILE_NAMES,
    index_summaries,
    index_words,
    lock_conversations_of,
    remove_from_index,
)
from jarvis_memory.statements import messages_that_state
from jarvis_memory.text import comparison_key
from jarvis_memory.users import lock_memory

FORGETTING_KEPT_DAYS = 30

# What forgettings that can still be undone have excluded, all but one of them.
_FORGOTTEN_MESSAGES = """
    SELECT CAST(jsonb_array_elements_text(excluded_message_ids) AS bigint) FROM forgettings
    WHERE user_id = :user_id AND NOT undone AND id <> :but
"""


@dataclass(frozen=True, kw_only=True)
class Forgetting:
    """What `forget_fact` did. `id` is what Undo wants; it is None when nothing was deleted."""

    id: int | None = None
    fact: Fact | None = None
    # Several facts fit, so none was deleted.
    matches: list[Fact] = field(default_factory=list)
    # The conversations whose exchanges left the memory: (id, title).
    conversations: list[tuple[int, str]] = field(default_factory=list)
    exchanges: int = 0


def forget_fact(
    database: Database,
    *,
    user_id: int,
    query: str = "",
    fact_id: int | None = None,
    also_exclude: tuple[int, ...] = (),
) -> Forgetting:
    """Forget the one fact that `query` or `fact_id` means, with everything that states it.

    Chats that were deleted shortly before cannot be brought back after it.
    Deletes nothing when none or several fit. `also_exclude` are messages of the turn that asks for it, which
    states the fact itself and is not complete yet.
    """
    with database.begin() as connection:
        lock_memory(connection, user_id=user_id)
        found = find_facts_to_forget(connection, user_id=user_id, query=query, fact_id=fact_id)
        if len(found) != 1:
            return Forgetting(matches=found)
        fact = found[0]
        stating = messages_that_state(connection, user_id=user_id, fact=fact)
        if not delete_memory_fact(connection, user_id=user_id, fact_id=fact.id):
            return Forgetting()
        # A deleted chat can state the fact too, and must not come back with it.
        drop_deletions(connection, user_id=user_id)
        leaving = sorted({*stating, *also_exclude})
        lock_conversations_of(connection, leaving)
        excluded, exchanges = _exclude(connection, user_id, leaving)
        concerned = _rebuild_summaries(connection, user_id, excluded)
        withdraw_recalled(connection, user_id=user_id, conversation_ids=[row["id"] for row in concerned])
        _redact_sent(connection, user_id, f"- [{fact.id}] {fact.content}", f"- [{fact.id}] …")
        forgetting_id = connection.scalars(
            text(
                """INSERT INTO forgettings (user_id, fact, excluded_message_ids, summaries)
                   VALUES (:user_id, CAST(:fact AS jsonb), CAST(:excluded AS jsonb), CAST(:summaries AS jsonb))
                   RETURNING id"""
            ),
            {
                "user_id": user_id,
                "fact": json.dumps(asdict(fact), default=datetime.isoformat),
                "excluded": json.dumps(excluded),
                "summaries": json.dumps(concerned),
            },
        ).one()
    return Forgetting(
        id=int(forgetting_id),
        fact=fact,
        conversations=[(row["id"], row["shown_title"]) for row in concerned],
        exchanges=exchanges,
    )


def _exclude(connection: Connection, user_id: int, message_ids: list[int]) -> tuple[list[int], int]:
    """Exclude these messages. Returns the ids that Undo will bring back, and how many exchanges they are.

    What another forgetting had excluded already belongs to both: it comes back when both are undone.
    """
    rows = connection.execute(
        text(
            f"""
            WITH excluded AS (
                UPDATE messages SET excluded_from_memory = true
                WHERE user_id = :user_id AND id = ANY(:ids) AND NOT excluded_from_memory RETURNING id, role
            )
            SELECT id, role FROM excluded UNION
            SELECT id, role FROM messages WHERE user_id = :user_id AND id = ANY(:ids) AND id IN ({_FORGOTTEN_MESSAGES})
            """
        ),
        {"user_id": user_id, "ids": message_ids, "but": 0},
    ).all()
    ids = sorted(int(row.id) for row in rows)
    remove_from_index(connection, user_id=user_id, message_ids=ids)
    return ids, sum(row.role == "user" for row in rows)


def _rebuild_summaries(connection: Connection, user_id: int, excluded: list[int]) -> list[dict[str, Any]]:
    """Drop the summaries and automatic titles of the chats of these messages, to be written anew.

    Returns, for each chat, what it had: id, title, shown_title, summary, through_message_id.
    """
    rows = connection.execute(
        text(
            f"""
            SELECT c.id, c.title, s.summary, coalesce(s.through_message_id, 0) AS through_message_id,
                   coalesce(nullif(c.title, ''), (
                       SELECT coalesce(nullif(left(m.content, 60), ''), {FILE_NAMES}) FROM messages m
                       WHERE m.conversation_id = c.id AND m.role = 'user' ORDER BY m.id LIMIT 1)) AS shown_title
            FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
            WHERE c.user_id = :user_id AND c.remember
              AND c.id IN (SELECT conversation_id FROM messages WHERE id = ANY(:ids))
            ORDER BY c.id FOR UPDATE OF c
            """
        ),
        {"user_id": user_id, "ids": excluded},
    )
    concerned = [dict(row._mapping) for row in rows]
    chats = [row["id"] for row in concerned]
    ids = {"user_id": user_id, "ids": chats}
    connection.execute(
        text(
            """
            INSERT INTO conversation_summaries AS s (conversation_id, user_id, revision)
            SELECT id, user_id, 1 FROM conversations WHERE user_id = :user_id AND id = ANY(:ids)
            ON CONFLICT (conversation_id) DO UPDATE SET summary = NULL, embedding = NULL, embedding_model = NULL,
                through_message_id = 0, revision = s.revision + 1, failures = 0, last_error = NULL, retry_at = NULL
            """
        ),
        ids,
    )
    connection.execute(
        text(
            """UPDATE conversations SET title = ''
               WHERE user_id = :user_id AND id = ANY(:ids) AND NOT title_by_user"""
        ),
        ids,
    )
    index_summaries(connection, conversation_ids=chats)
    return concerned


def _redact_sent(connection: Connection, user_id: int, line: str, instead: str) -> None:
    """Replace a line of the facts in the records of what was sent; a JSON text holds it escaped."""
    connection.execute(
        text(
            """
            WITH change AS (
                SELECT substr(line, 2, length(line) - 2) AS line, substr(instead, 2, length(instead) - 2) AS instead
                FROM (SELECT CAST(to_jsonb(CAST(:line AS text)) AS text) AS line,
                             CAST(to_jsonb(CAST(:instead AS text)) AS text) AS instead) AS quoted
            )
            UPDATE messages SET sent = CAST(replace(CAST(sent AS text), line, instead) AS jsonb)
            FROM change WHERE user_id = :user_id AND position(line IN CAST(sent AS text)) > 0
            """
        ),
        {"user_id": user_id, "line": line, "instead": instead},
    )


def undo_forgetting(database: Database, *, user_id: int, forgetting_id: int) -> Fact:
    """Put back the fact, its exchanges and the former summaries and titles. Returns the fact.

    A second Undo changes nothing. Raises FactNotFound when there is nothing to undo any more.
    """
    with database.begin() as connection:
        lock_memory(connection, user_id=user_id)
        row = connection.execute(
            text(
                """SELECT fact, excluded_message_ids, summaries, undone FROM forgettings
                   WHERE id = :id AND user_id = :user_id FOR UPDATE"""
            ),
            {"id": forgetting_id, "user_id": user_id},
        ).one_or_none()
        if row is None:
            raise FactNotFound(forgetting_id=forgetting_id)
        fact = row.fact
        if not row.undone:
            _restore_fact(connection, user_id, fact)
            _restore_exchanges(connection, user_id, forgetting_id, row.excluded_message_ids, row.summaries)
            _redact_sent(connection, user_id, f"- [{fact['id']}] …", f"- [{fact['id']}] {fact['content']}")
            connection.execute(text("UPDATE forgettings SET undone = true WHERE id = :id"), {"id": forgetting_id})
        return get_memory_fact(connection, user_id=user_id, fact_id=fact["id"])


def _restore_fact(connection: Connection, user_id: int, fact: dict[str, Any]) -> None:
    # Remembered anew in the meantime: the old row, which links point to, takes its place.
    connection.execute(
        text("DELETE FROM memory_facts WHERE user_id = :user_id AND content_key = :key"),
        {"user_id": user_id, "key": comparison_key(fact["content"])},
    )
    connection.execute(
        text(
            """
            INSERT INTO memory_facts
                (id, user_id, content, content_key, origin, source_message_id, created_at, updated_at)
            OVERRIDING SYSTEM VALUE
            VALUES (:id, :user_id, :content, :key, :origin, (SELECT id FROM messages WHERE id = :source),
                    CAST(:created_at AS timestamptz), CAST(:updated_at AS timestamptz))
            """
        ),
        {
            "id": fact["id"],
            "user_id": user_id,
            "content": fact["content"],
            "key": comparison_key(fact["content"]),
            "origin": fact["origin"],
            "source": fact["source_message_id"],
            "created_at": fact["created_at"],
            "updated_at": fact["updated_at"],
        },
    )


def _restore_exchanges(
    connection: Connection,
    user_id: int,
    forgetting_id: int,
    excluded: list[int],
    summaries: list[dict[str, Any]],
) -> None:
    others = {"user_id": user_id, "but": forgetting_id}
    lock_conversations_of(connection, excluded)
    connection.execute(
        text(
            f"""UPDATE messages SET excluded_from_memory = false
                WHERE user_id = :user_id AND id = ANY(:ids) AND id NOT IN ({_FORGOTTEN_MESSAGES})"""
        ),
        others | {"ids": excluded},
    )
    index_words(connection, user_id=user_id, message_ids=excluded)
    # A former summary can tell what was forgotten besides: it is written anew then.
    concerned_besides = connection.scalars(
        text(
            """SELECT CAST(former ->> 'id' AS bigint) FROM forgettings, jsonb_array_elements(summaries) AS former
               WHERE user_id = :user_id AND NOT undone AND id <> :but"""
        ),
        others,
    ).all()
    anew = {"title": "", "summary": None, "through_message_id": 0}
    restored = [row | anew if row["id"] in concerned_besides else row for row in summaries]
    former = {"user_id": user_id, "former": json.dumps(restored)}
    connection.execute(
        text(
            """
            UPDATE conversation_summaries s
            SET summary = f.summary, embedding = NULL, embedding_model = NULL, updated_at = now(),
                through_message_id = f.through_message_id, revision = s.revision + 1, failures = 0,
                last_error = NULL, retry_at = NULL
            FROM jsonb_to_recordset(CAST(:former AS jsonb)) AS f(id bigint, summary text, through_message_id bigint)
            WHERE s.conversation_id = f.id AND s.user_id = :user_id
            """
        ),
        former,
    )
    connection.execute(
        text(
            """
            UPDATE conversations c SET title = f.title
            FROM jsonb_to_recordset(CAST(:former AS jsonb)) AS f(id bigint, title text)
            WHERE c.id = f.id AND c.user_id = :user_id AND NOT c.title_by_user
            """
        ),
        former,
    )
    still_there = connection.scalars(
        text("SELECT id FROM conversations WHERE user_id = :user_id AND id = ANY(:ids)"),
        {"user_id": user_id, "ids": [row["id"] for row in restored]},
    )
    index_summaries(connection, conversation_ids=still_there.all())


def purge_old_forgettings(connection: Connection) -> None:
    """Remove what Undo kept for longer than FORGETTING_KEPT_DAYS; the forgotten texts go with it."""
    connection.execute(
        text("DELETE FROM forgettings WHERE created_at < now() - make_interval(days => :days)"),
        {"days": FORGETTING_KEPT_DAYS},
    )


def undone_forgettings(connection: Connection, *, user_id: int, forgetting_ids: list[int]) -> dict[int, bool]:
    """Which of these forgettings were undone; those that cannot be undone any more are missing."""
    rows = connection.execute(
        text("SELECT id, undone FROM forgettings WHERE user_id = :user_id AND id = ANY(:ids)"),
        {"user_id": user_id, "ids": forgetting_ids},
    )
    return {int(row.id): bool(row.undone) for row in rows}

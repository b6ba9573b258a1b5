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
from jarvis_memory.errors import FactNotFound
from jarvis_memory.facts import Fact, delete_memory_fact, find_facts_to_forget, get_memory_fact
from jarvis_memory.text import comparison_key

FORGETTING_KEPT_DAYS = 30

# A text states a fact when it has the fact's rarest word and this share of its words, weighted by rarity. Half:
# "Bruno ist mein Hund" states "Mein Hund heißt Bruno"; "Wie groß wird ein Hund?" and "Wie heißt du?" do not.
STATES = 0.5


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

    Deletes nothing when none or several fit. `also_exclude` are messages of the turn that asks for it, which
    states the fact itself and is not complete yet.
    """
    with database.begin() as connection:
        found = find_facts_to_forget(connection, user_id=user_id, query=query, fact_id=fact_id)
        if len(found) != 1:
            return Forgetting(matches=found)
        fact = found[0]
        stating = _messages_that_state(connection, user_id, fact)
        if not delete_memory_fact(connection, user_id=user_id, fact_id=fact.id):
            return Forgetting()
        excluded = _exclude(connection, user_id, sorted({*stating, *also_exclude}))
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
        exchanges=_count_exchanges(len(excluded)),
    )


def _count_exchanges(excluded_messages: int) -> int:
    return (excluded_messages + 1) // 2


def _messages_that_state(connection: Connection, user_id: int, fact: Fact) -> list[int]:
    """The ids of all messages in exchanges that state the fact.

    Candidates come from the word index; an exchange is judged as one text, because "Wie heißt mein Hund?" and
    "Bruno." state the fact only together. Weights are inverse document frequencies, as in BM25.
    """
    rows = connection.execute(
        text(
            """
            WITH fact AS (
                SELECT word FROM unnest(tsvector_to_array(to_tsvector('german', :fact))) AS word
            ), asked AS (
                SELECT CAST(string_agg(quote_literal(word) || ':*', ' | ') AS tsquery) AS words FROM fact
            ), hits AS (
                SELECT m.id, m.conversation_id, m.role FROM messages m, asked
                WHERE m.user_id = :user_id AND to_tsvector('german', left(m.content, 100000)) @@ asked.words
                UNION
                SELECT m.id, m.conversation_id, m.role FROM messages m
                WHERE m.user_id = :user_id AND (m.id = :source OR position(:literal IN lower(m.content)) > 0)
            ), beginnings AS (
                SELECT DISTINCT conversation_id, CASE WHEN role = 'user' THEN id ELSE (
                    SELECT max(u.id) FROM messages u
                    WHERE u.conversation_id = hits.conversation_id AND u.role = 'user' AND u.id < hits.id
                ) END AS user_message_id
                FROM hits
            ), exchanges AS (
                SELECT b.conversation_id, b.user_message_id, array_agg(m.id) AS ids,
                       string_agg(left(m.content, 100000), E'\\n' ORDER BY m.id) AS content
                FROM beginnings b JOIN messages m ON m.conversation_id = b.conversation_id
                    AND m.id >= b.user_message_id AND m.id < coalesce((
                        SELECT min(u.id) FROM messages u WHERE u.conversation_id = b.conversation_id
                        AND u.role = 'user' AND u.id > b.user_message_id), 9223372036854775807)
                GROUP BY 1, 2
            ), present AS (
                SELECT e.user_message_id, f.word FROM exchanges e, fact f
                WHERE EXISTS (SELECT 1 FROM unnest(tsvector_to_array(to_tsvector('german', e.content))) AS said
                              WHERE starts_with(said, f.word))
            ), weights AS (
                SELECT f.word, ln(1 + (SELECT count(*) FROM exchanges) / (0.5 + count(p.word))) AS weight
                FROM fact f LEFT JOIN present p USING (word) GROUP BY f.word
            ), judged AS (
                SELECT p.user_message_id, sum(w.weight) AS said,
                       bool_or(w.weight >= (SELECT max(weight) FROM weights)) AS rarest_said
                FROM present p JOIN weights w USING (word) GROUP BY 1
            ), told AS (
                -- A summary can put together what no single exchange says ("er", "sie" become names there).
                SELECT s.conversation_id FROM conversation_summaries s, weights w
                WHERE s.user_id = :user_id AND s.conversation_id IN (SELECT conversation_id FROM exchanges)
                  AND EXISTS (SELECT 1 FROM unnest(tsvector_to_array(to_tsvector('german', s.summary))) AS said
                              WHERE starts_with(said, w.word))
                GROUP BY 1 HAVING sum(w.weight) >= :states * (SELECT sum(weight) FROM weights)
            )
            SELECT unnest(e.ids) FROM exchanges e LEFT JOIN judged j USING (user_message_id)
            WHERE (j.rarest_said AND (j.said >= :states * (SELECT sum(weight) FROM weights)
                                      OR e.conversation_id IN (SELECT conversation_id FROM told)))
               OR position(:literal IN lower(e.content)) > 0
               OR :source = ANY(e.ids)
            """
        ),
        {
            "fact": fact.content,
            "literal": fact.content.lower().rstrip(" .!?"),
            "user_id": user_id,
            "source": fact.source_message_id,
            "states": STATES,
        },
    )
    return [int(row[0]) for row in rows]


def _exclude(connection: Connection, user_id: int, message_ids: list[int]) -> list[int]:
    """Exclude these messages; returns the ids of those that were not excluded before."""
    rows = connection.execute(
        text(
            """UPDATE messages SET excluded_from_memory = true
               WHERE user_id = :user_id AND id = ANY(:ids) AND NOT excluded_from_memory RETURNING id"""
        ),
        {"user_id": user_id, "ids": message_ids},
    )
    return sorted(int(row[0]) for row in rows)


def _rebuild_summaries(connection: Connection, user_id: int, excluded: list[int]) -> list[dict[str, Any]]:
    """Drop the summaries and automatic titles of the chats of these messages, to be written anew.

    Returns, for each chat, what it had: id, title, shown_title, summary, through_message_id.
    """
    rows = connection.execute(
        text(
            """
            SELECT c.id, c.title, s.summary, coalesce(s.through_message_id, 0) AS through_message_id,
                   coalesce(nullif(c.title, ''), (SELECT left(m.content, 60) FROM messages m
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
    ids = {"user_id": user_id, "ids": [row["id"] for row in concerned]}
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
    return concerned


def _redact_sent(connection: Connection, user_id: int, line: str, instead: str) -> None:
    """Replace a line of the facts in the records of what was sent; a JSON text holds it escaped."""
    connection.execute(
        text(
            """
            WITH change AS (
                SELECT trim(BOTH '"' FROM CAST(to_jsonb(CAST(:line AS text)) AS text)) AS line,
                       trim(BOTH '"' FROM CAST(to_jsonb(CAST(:instead AS text)) AS text)) AS instead
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
            _restore(connection, user_id, fact, row.excluded_message_ids, row.summaries)
            _redact_sent(connection, user_id, f"- [{fact['id']}] …", f"- [{fact['id']}] {fact['content']}")
            connection.execute(text("UPDATE forgettings SET undone = true WHERE id = :id"), {"id": forgetting_id})
        return get_memory_fact(connection, user_id=user_id, fact_id=fact["id"])


def _restore(
    connection: Connection,
    user_id: int,
    fact: dict[str, Any],
    excluded: list[int],
    summaries: list[dict[str, Any]],
) -> None:
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
    connection.execute(
        text("UPDATE messages SET excluded_from_memory = false WHERE user_id = :user_id AND id = ANY(:ids)"),
        {"user_id": user_id, "ids": excluded},
    )
    former = {"user_id": user_id, "former": json.dumps(summaries)}
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


def purge_old_forgettings(connection: Connection) -> None:
    """Remove what Undo kept for longer than FORGETTING_KEPT_DAYS; the forgotten texts go with it."""
    connection.execute(
        text("DELETE FROM forgettings WHERE created_at < now() - make_interval(days => :days)"),
        {"days": FORGETTING_KEPT_DAYS},
    )

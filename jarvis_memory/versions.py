"""What an edited message or a regenerated answer replaced: put aside to look at, no part of the conversation any more.

The conversation itself stays one line of messages: what stands in `messages` is what Claude gets, what is summarised
and what is recalled. A version is only read by a person.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from jarvis_memory.recall_index import remove_from_index
from jarvis_memory.summaries import regenerate_if_known

VERSIONS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Version:
    """What stood in place of a message, with all that followed it. `messages` have role, content and files (names)."""

    id: int
    message_id: int
    messages: list[dict[str, Any]]
    created_at: datetime


def replace_messages(connection: Connection, *, user_id: int, conversation_id: int, first_id: int, by_id: int) -> None:
    """Put the messages from `first_id` on, up to `by_id`, aside as a version of `by_id`, which is there already.

    They leave the index and the summary. Their attachments and the facts that were remembered for them belong to the
    new message from then on. The caller holds the memory (`lock_memory`), which forgetting changes in another order.
    """
    values: dict[str, Any] = {"user_id": user_id, "chat": conversation_id, "first": first_id, "by": by_id}
    replaced = connection.scalars(
        text(
            """SELECT id FROM messages
               WHERE conversation_id = :chat AND user_id = :user_id AND id >= :first AND id < :by ORDER BY id"""
        ),
        values,
    ).all()
    remove_from_index(connection, user_id=user_id, message_ids=list(replaced))
    values["ids"] = list(replaced)
    for statement in (
        """INSERT INTO message_versions (user_id, conversation_id, message_id, messages)
           SELECT :user_id, :chat, :by, jsonb_agg(jsonb_build_object('role', role, 'content', content, 'files', (
                      SELECT coalesce(jsonb_agg(block -> 'name'), '[]') FROM jsonb_array_elements(blocks) AS block
                      WHERE block ->> 'type' = 'attachment')) ORDER BY id)
           FROM messages WHERE id = ANY(:ids) HAVING bool_or(content <> '')""",
        # What those messages had replaced themselves.
        "UPDATE message_versions SET message_id = :by WHERE message_id = ANY(:ids)",
        "UPDATE attachments SET message_id = :by WHERE message_id = :first AND user_id = :user_id",
        "UPDATE memory_facts SET source_message_id = :by WHERE source_message_id = ANY(:ids)",
        "DELETE FROM messages WHERE id = ANY(:ids)",
        # Undo of a forgotten fact must not bring back a summary that tells what was replaced.
        """UPDATE forgettings SET summaries = (
               SELECT jsonb_agg(CASE WHEN CAST(former ->> 'id' AS bigint) = :chat
                   THEN former || '{"title": "", "summary": null, "through_message_id": 0}' ELSE former END)
               FROM jsonb_array_elements(summaries) AS former)
           WHERE user_id = :user_id
             AND summaries @> jsonb_build_array(jsonb_build_object('id', CAST(:chat AS bigint)))""",
    ):
        connection.execute(text(statement), values)
    regenerate_if_known(connection, user_id=user_id, conversation_id=conversation_id, message_id=first_id)


def load_versions(connection: Connection, *, user_id: int, message_ids: list[int]) -> dict[int, list[Version]]:
    """The versions of these messages, by message, the newest first and at most VERSIONS_SHOWN of each."""
    rows = connection.execute(
        text(
            """
            SELECT id, message_id, messages, created_at FROM (
                SELECT v.*, row_number() OVER (PARTITION BY message_id ORDER BY id DESC) AS place
                FROM message_versions v WHERE user_id = :user_id AND message_id = ANY(:ids)) AS numbered
            WHERE place <= :limit ORDER BY id DESC
            """
        ),
        {"user_id": user_id, "ids": message_ids, "limit": VERSIONS_SHOWN},
    )
    found: dict[int, list[Version]] = {}
    for row in rows:
        found.setdefault(row.message_id, []).append(Version(**row._mapping))
    return found

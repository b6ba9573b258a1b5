"""Conversations and their messages: rows in, values out. What Claude gets of them is history.py's matter."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, text, update

from jarvis_memory.errors import ConversationNotFound
from jarvis_memory.recall_index import index_words, remove_from_index
from jarvis_memory.tables import conversations, memory_facts, messages
from jarvis_memory.text import clean, clean_deep, one_line, shorten
from jarvis_memory.users import lock_memory

Role = Literal["user", "assistant"]
Status = Literal["complete", "interrupted", "failed"]

TITLE_CHARACTERS = 80


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A conversation as lists and headings show it."""

    id: int
    # What to show: the title, or the beginning of the first message while there is none.
    title: str
    remember: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message; for an answer, `blocks` holds its tool calls and what went wrong."""

    id: int
    conversation_id: int
    role: Role
    content: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    status: Status = "complete"
    excluded_from_memory: bool = False
    tokens_used: int = 0
    created_at: datetime

    def blocks_of(self, kind: str) -> list[dict[str, Any]]:
        """The blocks whose type is `kind`, in order."""
        return [block for block in self.blocks if block.get("type") == kind]


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """The receipt of a deletion: what really went, in rows."""

    conversations: int = 0
    messages: int = 0
    facts: int = 0
    summaries: int = 0


_MESSAGE_COLUMNS = [messages.c[name] for name in Message.__dataclass_fields__]

_CONVERSATIONS = """
    SELECT c.id, c.title, c.remember, c.created_at, c.updated_at, first.content AS first_message
    FROM conversations c
    LEFT JOIN LATERAL (
        SELECT left(m.content, 200) AS content FROM messages m
        WHERE m.conversation_id = c.id AND m.role = 'user' ORDER BY m.id LIMIT 1
    ) first ON c.title = ''
    WHERE c.user_id = :user_id
"""


def _conversation(row: Row[Any]) -> Conversation:
    title = row.title or shorten(one_line(row.first_message or ""), TITLE_CHARACTERS)
    return Conversation(
        id=row.id, title=title, remember=row.remember, created_at=row.created_at, updated_at=row.updated_at
    )


def reserve_conversation_id(connection: Connection) -> int:
    """The id for a conversation that is created later, so that it can be locked before anybody sees it."""
    return int(connection.scalars(text("SELECT nextval(pg_get_serial_sequence('conversations', 'id'))")).one())


def create_conversation(
    connection: Connection, *, user_id: int, remember: bool = True, conversation_id: int | None = None
) -> int:
    """The id of a new conversation, the reserved one if there is one. `remember=False` makes a temporary chat."""
    values = {"user_id": user_id, "remember": remember}
    if conversation_id is not None:
        values["id"] = conversation_id
    return int(connection.scalars(insert(conversations).values(values).returning(conversations.c.id)).one())


def list_conversations(connection: Connection, *, user_id: int, limit: int = 50) -> list[Conversation]:
    """The newest conversations, at most `limit`."""
    query = text(_CONVERSATIONS + " ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit")
    return [_conversation(row) for row in connection.execute(query, {"user_id": user_id, "limit": limit})]


def get_conversation(connection: Connection, *, user_id: int, conversation_id: int) -> Conversation:
    """The conversation. Raises ConversationNotFound, also when it belongs to somebody else."""
    query = text(_CONVERSATIONS + " AND c.id = :id")
    row = connection.execute(query, {"user_id": user_id, "id": conversation_id}).one_or_none()
    if row is None:
        raise ConversationNotFound
    return _conversation(row)


def insert_message(
    connection: Connection,
    *,
    user_id: int,
    conversation_id: int,
    role: Role,
    content: str,
    status: Status = "complete",
) -> int:
    """The id of the new message; the conversation counts as used now. Raises ConversationNotFound.

    A complete one is searchable by its words at once.
    """
    touched = connection.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.user_id == user_id)
        .values(updated_at=func.now())
    )
    if touched.rowcount == 0:
        raise ConversationNotFound
    values = {
        "conversation_id": conversation_id,
        "user_id": user_id,
        "role": role,
        "content": clean(content),
        "status": status,
    }
    message_id = int(connection.scalars(insert(messages).values(values).returning(messages.c.id)).one())
    if status == "complete":
        index_words(connection, user_id=user_id, message_ids=[message_id])
    return message_id


def update_message(connection: Connection, *, user_id: int, message_id: int, **values: Any) -> bool:
    """Set columns of a message. False when it is gone, so that a deleted chat is not brought back."""
    cleaned = {name: clean_deep(value) for name, value in values.items()}
    result = connection.execute(
        update(messages).where(messages.c.id == message_id, messages.c.user_id == user_id).values(cleaned)
    )
    return result.rowcount == 1


def load_messages(
    connection: Connection,
    *,
    user_id: int,
    conversation_id: int,
    limit: int = 50,
    before_id: int | None = None,
    after_id: int | None = None,
    oldest_first: bool = False,
) -> list[Message]:
    """The newest `limit` messages (or the oldest), in the order they were said, between two ids (both excluded)."""
    query = select(*_MESSAGE_COLUMNS).where(
        messages.c.conversation_id == conversation_id, messages.c.user_id == user_id
    )
    if before_id is not None:
        query = query.where(messages.c.id < before_id)
    if after_id is not None:
        query = query.where(messages.c.id > after_id)
    order = messages.c.id.asc() if oldest_first else messages.c.id.desc()
    found = [Message(**row._mapping) for row in connection.execute(query.order_by(order).limit(limit))]
    return found if oldest_first else found[::-1]


def load_sent(connection: Connection, *, user_id: int, message_id: int) -> dict[str, Any] | None:
    """What went to Claude for this answer: `system`, `recalled`, `messages` (their number), `model`; or None."""
    query = select(messages.c.sent).where(messages.c.id == message_id, messages.c.user_id == user_id)
    return connection.scalars(query).one_or_none()


def remove_unfinished_answer(connection: Connection, *, user_id: int, conversation_id: int) -> int:
    """Take away the last answer, which is not complete, so that Retry can replace it.

    Returns the id of the user's message it belonged to. Raises ConversationNotFound when there is no such pair.
    """
    last = load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=2)
    if not last or (last[-1].role == "assistant" and (last[-1].status == "complete" or len(last) < 2)):
        raise ConversationNotFound
    if last[-1].role == "user":
        return last[-1].id
    remove_from_index(connection, user_id=user_id, message_ids=[last[-1].id])
    connection.execute(delete(messages).where(messages.c.id == last[-1].id, messages.c.user_id == user_id))
    return last[-2].id


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
    """
    lock_memory(connection, user_id=user_id)
    facts = 0
    if with_facts:
        facts = connection.execute(delete(memory_facts).where(*_facts_from(user_id, conversation_id))).rowcount
    counts = connection.execute(
        text(
            """SELECT (SELECT count(*) FROM messages WHERE conversation_id = :id AND user_id = :user_id) AS messages,
                      (SELECT count(*) FROM conversation_summaries
                       WHERE conversation_id = :id AND user_id = :user_id AND summary IS NOT NULL) AS summaries"""
        ),
        {"id": conversation_id, "user_id": user_id},
    ).one()
    gone = connection.execute(
        delete(conversations).where(conversations.c.id == conversation_id, conversations.c.user_id == user_id)
    )
    if gone.rowcount == 0:
        raise ConversationNotFound
    withdraw_recalled(connection, user_id=user_id, conversation_ids=[conversation_id])
    # What Undo of a forgotten fact would put back must not hold a deleted chat's summary.
    connection.execute(
        text(
            """UPDATE forgettings SET summaries = jsonb_path_query_array(
                   summaries, '$[*] ? (@.id != $gone)', jsonb_build_object('gone', CAST(:id AS bigint)))
               WHERE user_id = :user_id"""
        ),
        {"id": conversation_id, "user_id": user_id},
    )
    return Deletion(conversations=1, messages=counts.messages, facts=facts, summaries=counts.summaries)


def withdraw_recalled(connection: Connection, *, user_id: int, conversation_ids: list[int]) -> None:
    """Remove recalled copies of these conversations from the messages that they were sent with.

    A recalled block is one text for all its conversations, so the whole block goes; the same turn's record of
    what was sent loses it too.
    """
    connection.execute(
        text(
            """
            WITH concerned AS (
                SELECT m.id FROM messages m, jsonb_array_elements(m.blocks) AS block,
                       jsonb_array_elements(block -> 'conversations') AS recalled
                WHERE m.user_id = :user_id AND block ->> 'type' = 'recalled'
                  AND CAST(recalled ->> 'id' AS bigint) = ANY(:ids)
            ), answers AS (
                UPDATE messages SET sent = sent || '{"recalled": null, "withdrawn": true}'::jsonb
                WHERE user_id = :user_id AND sent IS NOT NULL AND id IN (
                    SELECT (SELECT min(a.id) FROM messages a
                            WHERE a.conversation_id = m.conversation_id AND a.id > m.id AND a.role = 'assistant')
                    FROM messages m JOIN concerned USING (id))
            )
            UPDATE messages SET blocks = (
                SELECT coalesce(jsonb_agg(block ORDER BY place), '[]'::jsonb)
                FROM jsonb_array_elements(blocks) WITH ORDINALITY AS kept(block, place)
                WHERE block ->> 'type' <> 'recalled')
            WHERE id IN (SELECT id FROM concerned)
            """
        ),
        {"user_id": user_id, "ids": conversation_ids},
    )

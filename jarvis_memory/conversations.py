"""Conversations and their messages: rows in, values out. What Claude gets of them is history.py's matter."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, func, insert, select, text, update

from jarvis_memory.attachments import Attachment, insert_attachments
from jarvis_memory.errors import ConversationNotFound, TitleUnusable
from jarvis_memory.recall_index import FILE_NAMES, index_summaries, index_words
from jarvis_memory.tables import conversations, messages
from jarvis_memory.text import clean, clean_deep, one_line, shorten

Role = Literal["user", "assistant"]
Status = Literal["complete", "interrupted", "failed", "waiting"]

TITLE_CHARACTERS = 80


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A conversation as lists and headings show it."""

    id: int
    # What to show: the title, or the beginning of the first message while there is none.
    title: str
    # Whether it becomes part of the memory, and whether it gets anything from it.
    remember: bool
    reads_memory: bool
    temporary: bool
    pinned: bool
    archived: bool
    # None: the person's default.
    model: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """How a new conversation is to be; by default it reads the memory and becomes part of it."""

    remember: bool = True
    reads_memory: bool = True
    temporary: bool = False
    # None: the person's default.
    model: str | None = None


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
    # Of an answer: model, input, output, cache_read, cache_write in tokens, cost in US dollars or None.
    usage: dict[str, Any] | None = None
    created_at: datetime

    def blocks_of(self, kind: str) -> list[dict[str, Any]]:
        """The blocks whose type is `kind`, in order."""
        return [block for block in self.blocks if block.get("type") == kind]


_MESSAGE_COLUMNS = [messages.c[name] for name in Message.__dataclass_fields__]

_CONVERSATIONS = f"""
    SELECT c.id, c.title, c.remember, c.reads_memory, c.temporary, c.pinned, c.archived, c.model, c.created_at,
        c.updated_at, first.content AS first_message
    FROM (SELECT * FROM conversations WHERE user_id = :user_id AND {{chosen}}) AS c
    LEFT JOIN LATERAL (
        SELECT coalesce(nullif(left(m.content, 200), ''), {FILE_NAMES}) AS content FROM messages m
        WHERE m.conversation_id = c.id AND m.role = 'user' ORDER BY m.id LIMIT 1
    ) first ON c.title = ''
"""
_ORDER = "ORDER BY pinned DESC, updated_at DESC, id DESC"


_DEFAULT = ConversationOptions()


def _conversation(row: Row[Any]) -> Conversation:
    values = dict(row._mapping)
    beginning = values.pop("first_message") or ""
    return Conversation(**values | {"title": row.title or shorten(one_line(beginning), TITLE_CHARACTERS)})


def reserve_conversation_id(connection: Connection) -> int:
    """The id for a conversation that is created later, so that it can be locked before anybody sees it."""
    return int(connection.scalars(text("SELECT nextval(pg_get_serial_sequence('conversations', 'id'))")).one())


def create_conversation(
    connection: Connection,
    *,
    user_id: int,
    options: ConversationOptions = _DEFAULT,
    conversation_id: int | None = None,
) -> int:
    """The id of a new conversation, the reserved one if there is one."""
    values = {"user_id": user_id, **asdict(options)}
    if conversation_id is not None:
        values["id"] = conversation_id
    return int(connection.scalars(insert(conversations).values(values).returning(conversations.c.id)).one())


def update_conversation(connection: Connection, *, user_id: int, conversation_id: int, **values: Any) -> None:
    """Set columns of a conversation. It does not count as used by that. Raises ConversationNotFound."""
    result = connection.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.user_id == user_id)
        .values({name: clean_deep(value) for name, value in values.items()})
    )
    if result.rowcount == 0:
        raise ConversationNotFound


def rename_conversation(connection: Connection, *, user_id: int, conversation_id: int, title: str) -> None:
    """Give it this title for good: no summary changes it any more, and the memory finds the chat by it.

    Raises TitleUnusable when blank or too long, ConversationNotFound.
    """
    wanted = one_line(clean(title))
    if not 0 < len(wanted) <= TITLE_CHARACTERS:
        raise TitleUnusable(length=len(wanted), limit=TITLE_CHARACTERS)
    update_conversation(connection, user_id=user_id, conversation_id=conversation_id, title=wanted, title_by_user=True)
    index_summaries(connection, conversation_ids=[conversation_id])


def list_conversations(
    connection: Connection, *, user_id: int, limit: int = 50, archived: bool = False
) -> list[Conversation]:
    """The pinned conversations, then the others, each the newest first; at most `limit`, and no temporary ones."""
    chosen = f"NOT temporary AND archived = :archived {_ORDER} LIMIT :limit"
    query = text(f"{_CONVERSATIONS.format(chosen=chosen)} {_ORDER}")
    rows = connection.execute(query, {"user_id": user_id, "archived": archived, "limit": limit})
    return [_conversation(row) for row in rows]


def count_archived(connection: Connection, *, user_id: int) -> int:
    """How many conversations `list_conversations(archived=True)` would find without a limit."""
    query = select(func.count()).where(
        conversations.c.user_id == user_id, conversations.c.archived, ~conversations.c.temporary
    )
    return int(connection.scalars(query).one())


def get_conversation(connection: Connection, *, user_id: int, conversation_id: int) -> Conversation:
    """The conversation. Raises ConversationNotFound, also when it belongs to somebody else."""
    query = text(_CONVERSATIONS.format(chosen="id = :id"))
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
    blocks: Sequence[dict[str, Any]] = (),
    files: Sequence[Attachment] = (),
) -> int:
    """The id of the new message, stored with its files; the conversation counts as used now and leaves the archive.

    A complete one is searchable by its words at once, also by the names of its files, of which `blocks` may already
    name some. Raises ConversationNotFound.
    """
    touched = connection.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.user_id == user_id)
        .values(updated_at=func.now(), archived=False)
    )
    if touched.rowcount == 0:
        raise ConversationNotFound
    values = {
        "conversation_id": conversation_id,
        "user_id": user_id,
        "role": role,
        "content": clean(content),
        "status": status,
        "blocks": clean_deep(list(blocks)),
    }
    message_id = int(connection.scalars(insert(messages).values(values).returning(messages.c.id)).one())
    if files:
        stored = insert_attachments(connection, user_id=user_id, message_id=message_id, files=files)
        update_message(connection, user_id=user_id, message_id=message_id, blocks=[*blocks, *stored])
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


def count_messages(connection: Connection, *, user_id: int, conversation_id: int, before_id: int) -> int:
    """How many messages the conversation has before this one."""
    query = select(func.count()).where(
        messages.c.conversation_id == conversation_id, messages.c.user_id == user_id, messages.c.id < before_id
    )
    return int(connection.scalars(query).one())


def load_sent(connection: Connection, *, user_id: int, message_id: int) -> dict[str, Any] | None:
    """What went to Claude for this answer: `system`, `earlier`, `recalled`, `messages` (number), `model`; or None."""
    query = select(messages.c.sent).where(messages.c.id == message_id, messages.c.user_id == user_id)
    return connection.scalars(query).one_or_none()


def load_rounds(connection: Connection, *, user_id: int, message_id: int) -> dict[str, Any]:
    """What was said in the turn of an answer that waits: `rounds`, and the `results` that are there for the last."""
    query = select(messages.c.rounds).where(messages.c.id == message_id, messages.c.user_id == user_id)
    return connection.scalars(query).one_or_none() or {"rounds": [], "results": []}


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
    # What stands for the beginning of these conversations in their own prompts was a summary, too.
    for statement in (
        """UPDATE messages SET blocks = (
               SELECT coalesce(jsonb_agg(block ORDER BY place), '[]'::jsonb)
               FROM jsonb_array_elements(blocks) WITH ORDINALITY AS kept(block, place)
               WHERE block ->> 'type' <> 'earlier')
           WHERE user_id = :user_id AND conversation_id = ANY(:ids) AND blocks @> '[{"type": "earlier"}]'""",
        """UPDATE messages SET sent = sent || '{"earlier": null}'
           WHERE user_id = :user_id AND conversation_id = ANY(:ids) AND sent ->> 'earlier' IS NOT NULL""",
    ):
        connection.execute(text(statement), {"user_id": user_id, "ids": conversation_ids})

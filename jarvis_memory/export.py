"""`write_export`: everything of one person as one JSON file, written while it is read, whatever its size.

Not in it: keys and settings of the environment, the index (it is made anew), temporary chats, what waits for an Undo,
and what was sent to Claude. Numbers of this database are replaced by external ids and places in a conversation.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, BinaryIO

from sqlalchemy import Connection, Row, text

from jarvis_memory.archive import FORMAT, VERSION
from jarvis_memory.database import Database
from jarvis_memory.preferences import load_choices

CONVERSATIONS_AT_ONCE = 100
ROWS_AT_ONCE = 200

_SHOWN_BLOCKS = ("tool", "notice", "error")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """The receipt of an export."""

    conversations: int
    messages: int
    facts: int
    documents: int


def write_export(database: Database, *, user_id: int, file: BinaryIO) -> Exported:
    """Write the person's data into the file, one item a line. Raises DatabaseUnavailable, OSError."""
    with database.begin() as connection:
        # All queries see the same moment, whatever is said meanwhile.
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        work = _Export(connection, user_id)
        head = {
            "format": FORMAT,
            "version": VERSION,
            "exported_at": _time(datetime.now(UTC)),
            "preferences": load_choices(connection, user_id=user_id),
        }
        # Conversations first: the others refer to their messages.
        lists = {
            "conversations": work.conversations(),
            "facts": work.facts(),
            "versions": work.versions(),
            "attachments": work.attachments(),
            "documents": work.documents(),
        }
        file.write(f"{_json(head)[:-1]}".encode())
        for name, items in lists.items():
            file.write(f',\n"{name}": ['.encode())
            for number, item in enumerate(items):
                file.write(f"{',' if number else ''}\n{_json(item)}".encode())
            file.write(b"\n]")
        file.write(b"}\n")
    return Exported(
        conversations=work.written,
        messages=work.messages,
        facts=work.written_facts,
        documents=work.written_documents,
    )


class _Export:
    """The items of an export, one after the other, in the order of the file."""

    def __init__(self, connection: Connection, user_id: int) -> None:
        self._connection = connection
        self._user_id = user_id
        self.written = 0
        self.messages = 0
        self.written_facts = 0
        self.written_documents = 0
        # The messages that something refers to: conversation and number, filled in as they pass.
        self._places: dict[int, dict[str, Any] | None] = dict.fromkeys(self._referred_to())
        # The pages of a PDF stand in its message alone.
        self._pages: dict[int, int] = {}

    def _rows(self, query: str, **values: Any) -> Iterable[Row[Any]]:
        """The rows, fetched as they are needed."""
        options = {"yield_per": ROWS_AT_ONCE}
        return self._connection.execute(text(query), {"user_id": self._user_id} | values, execution_options=options)

    def _referred_to(self) -> Iterator[int]:
        query = """SELECT source_message_id AS id FROM memory_facts
                   WHERE user_id = :user_id AND source_message_id IS NOT NULL
                   UNION SELECT message_id FROM message_versions WHERE user_id = :user_id
                   UNION SELECT message_id FROM attachments WHERE user_id = :user_id AND message_id IS NOT NULL"""
        return (row.id for row in self._rows(query))

    def conversations(self) -> Iterator[dict[str, Any]]:
        """The conversations with their messages and summaries, oldest first."""
        after = 0
        while batch := list(self._batch(after)):
            after = batch[-1].id
            of_batch = {row.id: row for row in batch}
            query = """SELECT id, conversation_id, role, content, blocks, status, excluded_from_memory, tokens_used,
                              usage, created_at FROM messages
                       WHERE user_id = :user_id AND conversation_id = ANY(:ids) ORDER BY conversation_id, id"""
            rows = self._rows(query, ids=list(of_batch))
            for conversation_id, said in groupby(rows, key=lambda row: row.conversation_id):
                self.written += 1
                yield self._conversation(of_batch[conversation_id], said)

    def _batch(self, after: int) -> Iterable[Row[Any]]:
        query = """SELECT c.*, s.conversation_id IS NOT NULL AS has_summary, s.summary, s.through_message_id,
                          s.updated_at AS summary_updated_at
                   FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
                   WHERE c.user_id = :user_id AND NOT c.temporary AND c.id > :after ORDER BY c.id LIMIT :limit"""
        return self._rows(query, after=after, limit=CONVERSATIONS_AT_ONCE)

    def _conversation(self, row: Row[Any], said: Iterable[Row[Any]]) -> dict[str, Any]:
        messages = []
        known = 0
        for number, message in enumerate(said):
            if message.id in self._places:
                self._places[message.id] = {"conversation": row.external_id, "message": number}
            for block in message.blocks:
                if block.get("type") == "attachment":
                    self._pages[block["id"]] = block.get("pages", 0)
            known += row.has_summary and message.id <= row.through_message_id
            messages.append(_message(message))
        self.messages += len(messages)
        summary = {"text": row.summary, "messages": known, "updated_at": _time(row.summary_updated_at)}
        return {
            **{name: getattr(row, name) for name in ("external_id", "title", "title_by_user", "remember")},
            **{name: getattr(row, name) for name in ("reads_memory", "pinned", "archived", "model")},
            "created_at": _time(row.created_at),
            "updated_at": _time(row.updated_at),
            "summary": summary if row.has_summary else None,
            "messages": messages,
        }

    def facts(self) -> Iterator[dict[str, Any]]:
        """The facts, oldest first."""
        query = """SELECT content, origin, source_message_id, created_at, updated_at FROM memory_facts
                   WHERE user_id = :user_id ORDER BY id"""
        for row in self._rows(query):
            self.written_facts += 1
            yield {
                "content": row.content,
                "origin": row.origin,
                # None also for one from a temporary chat.
                "source": self._places.get(row.source_message_id),
                "created_at": _time(row.created_at),
                "updated_at": _time(row.updated_at),
            }

    def versions(self) -> Iterator[dict[str, Any]]:
        """What messages replaced."""
        query = "SELECT message_id, messages, created_at FROM message_versions WHERE user_id = :user_id ORDER BY id"
        for row in self._rows(query):
            if place := self._places[row.message_id]:
                yield {
                    "at": place,
                    "messages": [
                        {"role": one["role"], "content": one["content"], "files": one.get("files", [])}
                        for one in row.messages
                    ],
                    "created_at": _time(row.created_at),
                }

    def attachments(self) -> Iterator[dict[str, Any]]:
        """The files, each with its bytes in base64."""
        query = """SELECT id, message_id, name, media_type, content, created_at FROM attachments
                   WHERE user_id = :user_id AND message_id IS NOT NULL ORDER BY id"""
        options = {"yield_per": 1}
        rows = self._connection.execute(text(query), {"user_id": self._user_id}, execution_options=options)
        for row in rows:
            if place := self._places[row.message_id]:
                yield {
                    "at": place,
                    "name": row.name,
                    "media_type": row.media_type,
                    "pages": self._pages.get(row.id, 0),
                    "created_at": _time(row.created_at),
                    "content": base64.b64encode(row.content).decode(),
                }

    def documents(self) -> Iterator[dict[str, Any]]:
        """The originals, each with its bytes in base64; they are read anew where they are imported."""
        query = "SELECT name, content, created_at FROM documents WHERE user_id = :user_id ORDER BY id"
        options = {"yield_per": 1}
        for row in self._connection.execute(text(query), {"user_id": self._user_id}, execution_options=options):
            self.written_documents += 1
            yield {
                "name": row.name,
                "created_at": _time(row.created_at),
                "content": base64.b64encode(row.content).decode(),
            }


def _message(row: Row[Any]) -> dict[str, Any]:
    return {
        "role": row.role,
        "content": row.content,
        # What waits for a decision here cannot wait elsewhere.
        "status": "interrupted" if row.status == "waiting" else row.status,
        "created_at": _time(row.created_at),
        "blocks": [_block(block) for block in row.blocks if block.get("type") in _SHOWN_BLOCKS],
        "excluded_from_memory": row.excluded_from_memory,
        "tokens_used": row.tokens_used,
        "usage": row.usage,
    }


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "tool":
        return block
    card = {"at": 0} | block
    if "result" in card:
        result = _without_numbers(card["result"])
        # These would be links to chats of this database.
        if block["name"] == "forget_fact" and "conversations" in result:
            result["conversations"] = []
        card = {"is_error": False} | card | {"result": result}
    return card


def _without_numbers(value: Any) -> Any:
    """A tool's result without ids of this database: in another one they are somebody else's."""
    if isinstance(value, list):
        return [_without_numbers(item) for item in value]
    if isinstance(value, dict):
        return {
            key: None
            if key in ("id", "fact_id", "forgetting_id", "document_id", "passage_id")
            else _without_numbers(item)
            for key, item in value.items()
        }
    return value


def _time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

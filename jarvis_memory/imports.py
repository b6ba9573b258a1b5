"""`import_file`: store what a file holds for one person: all of it or nothing, and a second time nothing more.

A conversation is recognised by its external id, a fact by its text. What is here already stays as it is: an import
adds and never changes. One exception: where a conversation went on in the file, and all that is said here is its
beginning word for word, the rest is appended.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from sqlalchemy import Connection, insert, text
from sqlalchemy.dialects.postgresql import insert as insert_or_not

from jarvis_memory.archive import (
    Archived,
    ArchivedAttachment,
    ArchivedConversation,
    ArchivedDocument,
    ArchivedFact,
    ArchivedPreferences,
    ArchivedVersion,
)
from jarvis_memory.attachments import attachment_block
from jarvis_memory.database import Database
from jarvis_memory.documents import document_row
from jarvis_memory.import_file import check_file, read_file
from jarvis_memory.imported_conversations import ImportedConversations
from jarvis_memory.preferences import load_choices, save_choices
from jarvis_memory.tables import attachments, documents, memory_facts, message_versions
from jarvis_memory.text import comparison_key
from jarvis_memory.users import lock_memory

ITEMS_AT_ONCE = 100
CHARACTERS_AT_ONCE = 4_000_000


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The receipt of an import, in rows."""

    conversations_new: int
    # Were here and went on in the file.
    conversations_grown: int
    # Were here, as they are in the file or not.
    conversations_known: int
    # Nobody said anything in them.
    conversations_empty: int
    messages: int
    summaries: int
    facts_new: int
    facts_known: int
    attachments: int
    documents_new: int
    documents_known: int
    # Whether a choice was taken over.
    preferences: bool


def import_file(database: Database, *, user_id: int, file: BinaryIO) -> Imported:
    """Check the whole file, then store what is not here yet, in one transaction. Returns the receipt.

    Becoming searchable is left to the background: wake it. Raises what `check_file` raises, DatabaseUnavailable.
    """
    contents = check_file(file)
    with database.begin() as connection:
        # One import of a person at a time: two at once would both find a conversation missing.
        lock_memory(connection, user_id=user_id)
        # All that may be appended to, in the order in which everybody locks conversations.
        connection.execute(
            text(
                """SELECT FROM conversations WHERE user_id = :user_id AND external_id = ANY(:external_ids)
                   ORDER BY id FOR NO KEY UPDATE"""
            ),
            {"user_id": user_id, "external_ids": list(contents.external_ids)},
        )
        chats = ImportedConversations(connection=connection, user_id=user_id)
        rest = _Rest(connection, user_id, chats)
        for batch in _batches(read_file(file)):
            if isinstance(batch[0], ArchivedConversation):
                chats.store(batch)
            else:
                rest.store(batch)
    return Imported(
        conversations_new=chats.new,
        conversations_grown=chats.grown,
        conversations_known=chats.known,
        conversations_empty=chats.empty,
        messages=chats.messages,
        summaries=chats.summaries,
        facts_new=rest.facts_new,
        facts_known=rest.facts_known,
        attachments=rest.attachments,
        documents_new=rest.documents_new,
        documents_known=rest.documents_known,
        preferences=rest.preferences,
    )


def count_known(connection: Connection, *, user_id: int, external_ids: Collection[str]) -> int:
    """How many of these conversations are here already."""
    query = text("SELECT count(*) FROM conversations WHERE user_id = :user_id AND external_id = ANY(:external_ids)")
    return int(connection.scalars(query, {"user_id": user_id, "external_ids": list(external_ids)}).one())


def _batches(items: Iterator[Archived]) -> Iterator[list[Any]]:
    """Neighbours of one kind, as many as one statement may store and memory may hold."""
    batch: list[Archived] = []
    size = 0
    for item in items:
        if batch and (type(item) is not type(batch[0]) or len(batch) >= ITEMS_AT_ONCE or size >= CHARACTERS_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(item)
        if isinstance(item, ArchivedConversation):
            size += sum(len(message.content) for message in item.messages)
        elif isinstance(item, ArchivedAttachment):
            size += len(item.file.content)
        elif isinstance(item, ArchivedDocument):
            size += len(item.content)
    if batch:
        yield batch


class _Rest:
    """What stands beside the conversations of the file, and refers to their messages."""

    def __init__(self, connection: Connection, user_id: int, chats: ImportedConversations) -> None:
        self._connection = connection
        self._user_id = user_id
        self._chats = chats
        self.facts_new = 0
        self.facts_known = 0
        self.attachments = 0
        self.documents_new = 0
        self.documents_known = 0
        self.preferences = False

    def store(self, batch: list[Any]) -> None:
        """Store items of one kind."""
        match batch[0]:
            case ArchivedFact():
                self._store_facts(batch)
            case ArchivedVersion():
                self._store_versions(batch)
            case ArchivedAttachment():
                self._store_attachments(batch)
            case ArchivedDocument():
                self._store_documents(batch)
            case ArchivedPreferences():
                self._store_preferences(batch[0])

    def _store_facts(self, batch: list[ArchivedFact]) -> None:
        rows = {}
        for fact in batch:
            source = self._chats.place(fact.source) if fact.source else None
            rows[comparison_key(fact.content)] = {
                "user_id": self._user_id,
                "content": fact.content,
                "content_key": comparison_key(fact.content),
                "origin": fact.origin,
                "source_message_id": source.message_id if source else None,
                "created_at": fact.created_at,
                "updated_at": fact.updated_at,
            }
        stored = self._connection.execute(
            insert_or_not(memory_facts)
            .values(list(rows.values()))
            .on_conflict_do_nothing(index_elements=["user_id", "content_key"])
            .returning(memory_facts.c.id)
        ).all()
        self.facts_new += len(stored)
        self.facts_known += len(batch) - len(stored)

    def _store_versions(self, batch: list[ArchivedVersion]) -> None:
        rows = [
            {
                "user_id": self._user_id,
                "conversation_id": place.conversation_id,
                "message_id": place.message_id,
                "messages": one.messages,
                "created_at": one.created_at,
            }
            for one in batch
            if (place := self._chats.place(one.at)) and place.is_new
        ]
        if rows:
            self._connection.execute(insert(message_versions), rows)

    def _store_attachments(self, batch: list[ArchivedAttachment]) -> None:
        placed = [(place, one) for one in batch if (place := self._chats.place(one.at)) and place.is_new]
        if not placed:
            return
        rows = [
            {
                "user_id": self._user_id,
                "message_id": place.message_id,
                "name": one.file.name,
                "media_type": one.file.media_type,
                "content": one.file.content,
                "size": len(one.file.content),
                "created_at": one.created_at,
            }
            for place, one in placed
        ]
        stored = insert(attachments).returning(attachments.c.id, sort_by_parameter_order=True)
        ids = self._connection.scalars(stored, rows).all()
        blocks = [
            {"message_id": place.message_id, "block": attachment_block(number, one.file)}
            for number, (place, one) in zip(ids, placed, strict=True)
        ]
        self._connection.execute(
            text(
                """
                UPDATE messages m SET blocks = m.blocks || added.blocks FROM (
                    SELECT message_id, jsonb_agg(block ORDER BY block -> 'id') AS blocks
                    FROM jsonb_to_recordset(CAST(:blocks AS jsonb)) AS b(message_id bigint, block jsonb) GROUP BY 1
                ) AS added WHERE m.id = added.message_id
                """
            ),
            {"blocks": json.dumps(blocks)},
        )
        self.attachments += len(rows)

    def _store_documents(self, batch: list[ArchivedDocument]) -> None:
        """Those whose bytes are not here yet; the background reads them."""
        rows = {row["sha256"]: row for row in (_document_row(self._user_id, one) for one in batch)}
        stored = self._connection.execute(
            insert_or_not(documents)
            .values(list(rows.values()))
            .on_conflict_do_nothing(index_elements=["user_id", "sha256"])
            .returning(documents.c.id)
        ).all()
        self.documents_new += len(stored)
        self.documents_known += len(batch) - len(stored)

    def _store_preferences(self, found: ArchivedPreferences) -> None:
        """Take over what the person has not chosen here themselves."""
        chosen = load_choices(self._connection, user_id=self._user_id)
        taken = {name: value for name, value in found.choices.items() if value and not chosen[name]}
        if taken:
            save_choices(self._connection, user_id=self._user_id, **taken)
            self.preferences = True


def _document_row(user_id: int, one: ArchivedDocument) -> dict[str, Any]:
    return document_row(user_id, one.name, one.content) | {"created_at": one.created_at}

"""Storing the conversations of an archive, and knowing afterwards which message of the file has which id here."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, text
from sqlalchemy.dialects.postgresql import insert as insert_or_not

from jarvis_memory.archive import ArchivedConversation, ArchivedMessage, MessageReference
from jarvis_memory.tables import conversation_summaries, conversations, messages

_COLUMNS = (
    "external_id",
    "title",
    "title_by_user",
    "remember",
    "reads_memory",
    "pinned",
    "archived",
    "model",
    "created_at",
    "updated_at",
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A message of the file as it stands here."""

    conversation_id: int
    message_id: int
    # Whether this import brought it.
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class _Chat:
    """A conversation of the file as it stands here. Of its messages, those from `first_new` on are new."""

    id: int
    message_ids: list[int]
    first_new: int


@dataclass(kw_only=True)
class ImportedConversations:
    """The conversations of one import, which holds the locks. The numbers are the receipt."""

    connection: Connection
    user_id: int
    new: int = 0
    grown: int = 0
    known: int = 0
    empty: int = 0
    messages: int = 0
    summaries: int = 0
    # Only those whose messages are here as they are in the file.
    _chats: dict[str, _Chat] = field(default_factory=dict)

    def place(self, at: MessageReference) -> Place | None:
        """Where this message stands; None when its conversation went another way here."""
        chat = self._chats.get(at.conversation)
        if chat is None:
            return None
        return Place(
            conversation_id=chat.id, message_id=chat.message_ids[at.message], is_new=at.message >= chat.first_new
        )

    def store(self, batch: list[ArchivedConversation]) -> None:
        """Store those that are not here, and what was said since in those that are. Without messages none is stored."""
        said = [one for one in batch if one.messages]
        self.empty += len(batch) - len(said)
        if not said:
            return
        rows = [{"user_id": self.user_id} | {name: getattr(one, name) for name in _COLUMNS} for one in said]
        stored = self.connection.execute(
            insert_or_not(conversations)
            .values(rows)
            .on_conflict_do_nothing(index_elements=["user_id", "external_id"])
            .returning(conversations.c.external_id, conversations.c.id)
        )
        new = {row.external_id: int(row.id) for row in stored}
        # A split export can have a conversation twice: the first is new, the other one known.
        fresh = list({one.external_id: one for one in reversed(said) if one.external_id in new}.values())
        for one in fresh:
            self._chats[one.external_id] = _Chat(id=new[one.external_id], message_ids=[], first_new=0)
        self.new += len(fresh)
        self._append_messages(fresh)
        self._store_summaries(fresh)
        self._compare([one for one in said if not any(one is other for other in fresh)])

    def _compare(self, known: list[ArchivedConversation]) -> None:
        """Append to those that are here and whose beginning in the file is, word for word, what is here."""
        here = self._here([one.external_id for one in known])
        grown = []
        for one in known:
            conversation_id, ids, marks = here.get(one.external_id, (0, [], []))
            if not ids or [_mark(message) for message in one.messages[: len(marks)]] != marks:
                continue
            self._chats[one.external_id] = _Chat(id=conversation_id, message_ids=ids, first_new=len(ids))
            if len(one.messages) > len(ids):
                grown.append(one)
        self.grown += len(grown)
        self.known += len(known) - len(grown)
        self._append_messages(grown)
        self._note_growth(grown)

    def _here(self, external_ids: list[str]) -> dict[str, tuple[int, list[int], list[list[str]]]]:
        """The id, the messages' ids and their marks of each conversation."""
        rows = self.connection.execute(
            text(
                """
                SELECT c.external_id, c.id, array_agg(m.id ORDER BY m.id) AS ids,
                       array_agg(ARRAY[m.role, md5(m.content)] ORDER BY m.id) AS marks
                FROM conversations c JOIN messages m ON m.conversation_id = c.id
                WHERE c.user_id = :user_id AND c.external_id = ANY(:external_ids) GROUP BY 1, 2
                """
            ),
            {"user_id": self.user_id, "external_ids": external_ids},
        )
        return {row.external_id: (row.id, row.ids, row.marks) for row in rows}

    def _append_messages(self, found: list[ArchivedConversation]) -> None:
        """Store the messages of each from where it ends here. The background makes them searchable."""
        waiting = [(one, one.messages[len(self._chats[one.external_id].message_ids) :]) for one in found]
        total = sum(len(added) for _, added in waiting)
        if not total:
            return
        # Reserved, because the order of the ids is the order of the conversation.
        reserve = text("SELECT nextval(pg_get_serial_sequence('messages', 'id')) FROM generate_series(1, :total)")
        numbers = iter(sorted(self.connection.scalars(reserve, {"total": total})))
        rows: list[dict[str, Any]] = []
        for one, added in waiting:
            chat = self._chats[one.external_id]
            ids = [next(numbers) for _ in added]
            self._chats[one.external_id] = _Chat(
                id=chat.id, message_ids=chat.message_ids + ids, first_new=chat.first_new
            )
            rows += [
                vars(message) | {"id": number, "conversation_id": chat.id, "user_id": self.user_id}
                for number, message in zip(ids, added, strict=True)
            ]
        self.connection.execute(insert(messages), rows)
        self.messages += total

    def _store_summaries(self, found: list[ArchivedConversation]) -> None:
        rows = []
        for one in found:
            if one.summary is not None:
                known = self._chats[one.external_id].message_ids[: one.summary.messages]
                rows.append(
                    {
                        "conversation_id": self._chats[one.external_id].id,
                        "user_id": self.user_id,
                        "summary": one.summary.text,
                        "through_message_id": known[-1] if known else 0,
                        "updated_at": one.summary.updated_at,
                    }
                )
        if rows:
            self.connection.execute(insert(conversation_summaries), rows)
        self.summaries += sum(row["summary"] is not None for row in rows)

    def _note_growth(self, grown: list[ArchivedConversation]) -> None:
        """They were last used when they were in the file.

        Their summaries are written anew, from what is here: a part of it may have been forgotten since the export. But
        not where the file wants none: another program's chats would cost a call each.
        """
        if not grown:
            return
        rows = []
        for one in grown:
            chat = self._chats[one.external_id]
            unwanted = one.summary is not None and not one.summary.text and one.summary.messages == len(one.messages)
            rows.append(
                {
                    "id": chat.id,
                    "at": one.updated_at,
                    # No summary goes that far back.
                    "before": chat.message_ids[chat.first_new - 1] if unwanted else -1,
                    "last": chat.message_ids[-1],
                }
            )
        self.connection.execute(
            text("UPDATE conversations SET updated_at = greatest(updated_at, :at) WHERE id = :id"), rows
        )
        self.connection.execute(
            text(
                """UPDATE conversation_summaries SET through_message_id = :last
                   WHERE conversation_id = :id AND through_message_id = :before"""
            ),
            rows,
        )


def _mark(message: ArchivedMessage) -> list[str]:
    """What tells two messages apart, as the database makes it too."""
    return [message.role, hashlib.md5(message.content.encode(), usedforsecurity=False).hexdigest()]

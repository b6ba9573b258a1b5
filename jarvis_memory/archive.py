"""What an export holds, as values: the conversations and the memory of one person, free of any database's numbers.

Reading them from a file is jarvis_exports.py and foreign_exports.py, storing them imports.py.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jarvis_memory.attachments import Attachment
from jarvis_memory.conversations import Role, Status
from jarvis_memory.facts import Origin

FORMAT = "jarvis-export"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ArchivedMessage:
    """A message; its place in the conversation is its number."""

    role: Role
    content: str
    # Only what is needed to show it: tool cards, notices, errors.
    blocks: list[dict[str, Any]] = field(default_factory=list)
    status: Status = "complete"
    excluded_from_memory: bool = False
    tokens_used: int = 0
    usage: dict[str, Any] | None = None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedSummary:
    """What stands in conversation_summaries: None as text where nothing was worth a summary, or none is wanted."""

    text: str | None
    # How many of the messages, from the first on, it knows. With less than all of them it is written anew.
    messages: int
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedConversation:
    """A conversation with its messages in order; without any it is not stored."""

    external_id: str
    title: str
    title_by_user: bool = False
    remember: bool = True
    reads_memory: bool = True
    pinned: bool = False
    archived: bool = False
    model: str | None = None
    created_at: datetime
    updated_at: datetime
    messages: list[ArchivedMessage]
    # None: it waits for its summary.
    summary: ArchivedSummary | None


@dataclass(frozen=True, kw_only=True)
class MessageReference:
    """A message of the archive: the conversation's external id, and the message's number in it, from 0."""

    conversation: str
    message: int


@dataclass(frozen=True, kw_only=True)
class ArchivedFact:
    """A fact, with the message that it was remembered for where that is in the archive."""

    content: str
    origin: Origin
    source: MessageReference | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedVersion:
    """What a message replaced: role, content and files (names) of each message."""

    at: MessageReference
    messages: list[dict[str, Any]]
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedAttachment:
    """A file that was sent with a message."""

    at: MessageReference
    file: Attachment
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedDocument:
    """An original of the knowledge base. Whether it can be read is found out by reading it."""

    name: str
    content: bytes
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ArchivedPreferences:
    """What the person chose: language, time_zone, model, memory (None where nothing), instructions."""

    choices: dict[str, str | None]


Archived = (
    ArchivedConversation | ArchivedFact | ArchivedVersion | ArchivedAttachment | ArchivedDocument | ArchivedPreferences
)

"""Reading an export of JARVIS itself: every piece is checked to the last field before anything is made of it."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, get_args

from jarvis_memory.answers import NOTICED_STOP_REASONS
from jarvis_memory.archive import (
    FORMAT,
    VERSION,
    Archived,
    ArchivedAttachment,
    ArchivedConversation,
    ArchivedDocument,
    ArchivedFact,
    ArchivedMessage,
    ArchivedPreferences,
    ArchivedSummary,
    ArchivedVersion,
    MessageReference,
)
from jarvis_memory.attachments import PDF, TEXT, Attachment
from jarvis_memory.conversations import Role
from jarvis_memory.errors import FactUnusable, ImportTooNew, ImportUnknown
from jarvis_memory.facts import FACT_CHARACTERS, Origin, usable_fact
from jarvis_memory.fields import Fields, invalid
from jarvis_memory.json_stream import Piece
from jarvis_memory.preferences import is_usable
from jarvis_memory.uploads import clean_name

MESSAGES_A_CONVERSATION = 100_000
CONTENT_CHARACTERS = 5_000_000
BLOCKS_A_MESSAGE = 1_000
NAME_CHARACTERS = 500
ATTACHMENT_BYTES = 64 << 20

_NOTICES = (*NOTICED_STOP_REASONS, "too_many_rounds")
# What may be attached, and how each begins: Claude refuses a chat with one that is something else.
_BEGINNINGS = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG", PDF: b"%PDF", TEXT: b""}


def read_jarvis(found: Iterator[Piece]) -> Iterator[Archived]:
    """What the pieces of an export hold, in order. Raises ImportInvalid, ImportTooNew, ImportUnknown."""
    reader = _Reader()
    for piece in found:
        yield from reader.read(piece)
    # A file may be empty but for its head; the head itself has to be there.
    reader.require_head()


class _Reader:
    """Knows which messages the file has had, so that every reference can be checked."""

    def __init__(self) -> None:
        self._format: Any = None
        self._version: Any = None
        self._messages: dict[str, int] = {}

    def require_head(self) -> None:
        """The file must have said by now what it is."""
        if self._format != FORMAT:
            raise ImportUnknown
        if not isinstance(self._version, int) or isinstance(self._version, bool) or self._version < 1:
            raise invalid("version", "is no number of a version")
        if self._version > VERSION:
            raise ImportTooNew(version=self._version)

    def read(self, piece: Piece) -> Iterator[Archived]:
        match piece.name:
            case "format":
                self._format = piece.value
            case "version":
                self._version = piece.value
            case "preferences":
                self.require_head()
                yield _preferences(Fields(piece.value, piece.place))
            case "conversations":
                self.require_head()
                yield self._conversation(Fields(piece.value, piece.place))
            case "facts":
                self.require_head()
                yield self._fact(Fields(piece.value, piece.place))
            case "versions":
                self.require_head()
                yield self._replaced(Fields(piece.value, piece.place))
            case "attachments":
                self.require_head()
                yield self._attachment(Fields(piece.value, piece.place))
            case "documents":
                self.require_head()
                yield _document(Fields(piece.value, piece.place))
        # Anything else is of no concern: "exported_at", or what a person added.

    def _conversation(self, fields: Fields) -> ArchivedConversation:
        external_id = fields.word("external_id", NAME_CHARACTERS)
        if external_id in self._messages:
            raise invalid(f"{fields.place}.external_id", "is there twice")
        messages = [_message(item) for item in fields.items("messages", MESSAGES_A_CONVERSATION)]
        self._messages[external_id] = len(messages)
        return ArchivedConversation(
            external_id=external_id,
            title=fields.text("title", NAME_CHARACTERS),
            title_by_user=fields.flag("title_by_user"),
            remember=fields.flag("remember"),
            reads_memory=fields.flag("reads_memory"),
            pinned=fields.flag("pinned"),
            archived=fields.flag("archived"),
            model=fields.word("model", NAME_CHARACTERS) if fields.has("model") else None,
            created_at=fields.moment("created_at"),
            updated_at=fields.moment("updated_at"),
            messages=messages,
            summary=_summary(fields.inner("summary"), len(messages)) if fields.has("summary") else None,
        )

    def _fact(self, fields: Fields) -> ArchivedFact:
        try:
            content = usable_fact(fields.text("content", FACT_CHARACTERS))
        except FactUnusable as error:
            raise invalid(f"{fields.place}.content", "is empty") from error
        return ArchivedFact(
            content=content,
            origin=fields.one_of("origin", get_args(Origin)),
            source=self._reference(fields.inner("source")) if fields.has("source") else None,
            created_at=fields.moment("created_at"),
            updated_at=fields.moment("updated_at"),
        )

    def _replaced(self, fields: Fields) -> ArchivedVersion:
        return ArchivedVersion(
            at=self._reference(fields.inner("at")),
            messages=[
                {
                    "role": item.one_of("role", get_args(Role)),
                    "content": item.text("content", CONTENT_CHARACTERS),
                    "files": item.texts("files", NAME_CHARACTERS),
                }
                for item in fields.items("messages", MESSAGES_A_CONVERSATION)
            ],
            created_at=fields.moment("created_at"),
        )

    def _attachment(self, fields: Fields) -> ArchivedAttachment:
        content = _bytes(fields)
        media_type = fields.one_of("media_type", tuple(_BEGINNINGS))
        if not content.startswith(_BEGINNINGS[media_type]) or (media_type == TEXT and not _is_text(content)):
            raise invalid(f"{fields.place}.content", f"is no {media_type}")
        return ArchivedAttachment(
            at=self._reference(fields.inner("at")),
            file=Attachment(
                name=fields.word("name", NAME_CHARACTERS),
                media_type=media_type,
                content=content,
                pages=fields.number("pages"),
            ),
            created_at=fields.moment("created_at"),
        )

    def _reference(self, fields: Fields) -> MessageReference:
        conversation = fields.word("conversation", NAME_CHARACTERS)
        message = fields.number("message")
        if message >= self._messages.get(conversation, 0):
            raise invalid(fields.place, "names a message that does not stand before it in the file")
        return MessageReference(conversation=conversation, message=message)


def _bytes(fields: Fields) -> bytes:
    try:
        return base64.b64decode(fields.text("content", ATTACHMENT_BYTES * 4 // 3 + 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"{fields.place}.content", "is not base64") from error


def _document(fields: Fields) -> ArchivedDocument:
    content = _bytes(fields)
    if not content.strip():
        raise invalid(f"{fields.place}.content", "is empty")
    return ArchivedDocument(
        name=clean_name(fields.word("name", NAME_CHARACTERS)), content=content, created_at=fields.moment("created_at")
    )


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _message(fields: Fields) -> ArchivedMessage:
    role = fields.one_of("role", get_args(Role))
    return ArchivedMessage(
        role=role,
        content=fields.text("content", CONTENT_CHARACTERS),
        blocks=[_block(item) for item in fields.items("blocks", BLOCKS_A_MESSAGE)],
        status=fields.one_of("status", ("complete", "interrupted", "failed")),
        excluded_from_memory=fields.flag("excluded_from_memory"),
        tokens_used=fields.number("tokens_used"),
        usage=_usage(fields.inner("usage")) if fields.has("usage") else None,
        created_at=fields.moment("created_at"),
    )


def _summary(fields: Fields, messages: int) -> ArchivedSummary:
    return ArchivedSummary(
        text=fields.word("text", CONTENT_CHARACTERS) if fields.has("text") else None,
        messages=fields.number("messages", messages),
        updated_at=fields.moment("updated_at"),
    )


def _usage(fields: Fields) -> dict[str, Any]:
    return {
        "model": fields.word("model", NAME_CHARACTERS),
        **{name: fields.number(name) for name in ("input", "output", "cache_read", "cache_write")},
        "cost": fields.amount("cost") if fields.has("cost") else None,
    }


def _preferences(fields: Fields) -> ArchivedPreferences:
    choices: dict[str, str | None] = {}
    for name in ("language", "time_zone", "model", "memory", "instructions"):
        choices[name] = fields.text(name, CONTENT_CHARACTERS).strip() if fields.has(name) else None
        if choices[name] is not None and not is_usable(name, choices[name]):
            raise invalid(f"{fields.place}.{name}", "cannot be chosen")
    return ArchivedPreferences(choices=choices)


# --- what a page draws of an answer: it relies on each field -------------------------------------------------


def _block(fields: Fields) -> dict[str, Any]:
    match fields.one_of("type", ("tool", "notice", "error")):
        case "tool":
            return _tool_card(fields)
        case "notice":
            kind = fields.word("kind", NAME_CHARACTERS)
            return {"type": "notice", "kind": kind if kind in _NOTICES else "unknown"}
    details = fields.json("details")
    if not all(isinstance(value, str | int) for value in details.values()):
        raise invalid(f"{fields.place}.details", "has something else than texts and numbers")
    return {"type": "error", "error": fields.word("error", NAME_CHARACTERS), "details": details}


def _tool_card(fields: Fields) -> dict[str, Any]:
    card: dict[str, Any] = {
        "type": "tool",
        "id": fields.word("id", NAME_CHARACTERS),
        "name": fields.word("name", NAME_CHARACTERS),
        "input": fields.json("input"),
        "at": fields.number("at"),
    }
    if not fields.has("result"):
        return card
    is_error = fields.flag("is_error")
    result = fields.inner("result")
    if not is_error:
        _check_result(card["name"], result)
        if card["name"] == "read_document" and (given := fields.inner("input")).has("pages"):
            given.text("pages", NAME_CHARACTERS)
    for name in ("matches", "suggestions"):
        for item in result.items(name, BLOCKS_A_MESSAGE) if result.has(name) else ():
            item.text("content", CONTENT_CHARACTERS)
    return card | {"result": fields.json("result"), "is_error": is_error}


def _check_result(tool: str, result: Fields) -> None:
    match tool:
        case "remember_fact":
            result.flag("already_known")
            result.text("fact", CONTENT_CHARACTERS)
        case "update_fact":
            result.text("fact", CONTENT_CHARACTERS)
            result.text("former", CONTENT_CHARACTERS)
        case "forget_fact" if result.flag("deleted"):
            result.text("content", CONTENT_CHARACTERS)
            if list(result.items("conversations", 0)) or result.has("forgetting_id"):
                raise invalid(f"{result.place}.forgetting_id", "belongs to another database")
        case "forget_fact":
            list(result.items("matches", BLOCKS_A_MESSAGE))
        case "search_documents" | "read_document":
            for passage in result.items("passages", BLOCKS_A_MESSAGE):
                passage.text("text", CONTENT_CHARACTERS)
                for name in ("heading", "document"):
                    if passage.has(name):
                        passage.text(name, CONTENT_CHARACTERS)
                if passage.has("page"):
                    passage.number("page")
                for number in ("document_id", "passage_id"):
                    if passage.has(number):
                        raise invalid(f"{passage.place}.{number}", "belongs to another database")
            if tool == "read_document":
                result.text("document", NAME_CHARACTERS)
            if result.has("document_id"):
                raise invalid(f"{result.place}.document_id", "belongs to another database")
        case "search_memory":
            list(result.items("facts", BLOCKS_A_MESSAGE))
            list(result.items("conversations", BLOCKS_A_MESSAGE))

"""Files that were sent with a message: the value, the limits of one message, and the rows.

What may become one is decided in uploads.py; what Claude gets of it is sent_files.py's matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from jarvis_memory.errors import (
    AttachmentsTooLarge,
    PdfsNotUnderstood,
    PdfsTooLong,
    TextFilesTooLong,
    TooManyAttachments,
)
from jarvis_memory.tables import attachments

MEGABYTE = 1_000_000
PDF = "application/pdf"
TEXT = "text/plain"

# Of one message, so that a request with it stays within the API's 32 MB (of base64) and 100 pages.
FILES_A_MESSAGE = 10
BYTES_A_MESSAGE = 15 * MEGABYTE
PAGES_A_MESSAGE = 100
# About 70,000 tokens, less than LONGEST_HISTORY: a text stays in sight in the turns that follow.
CHARACTERS_A_MESSAGE = 250_000


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file as it is kept and sent: an image of a size that Claude takes, a PDF, or a text in UTF-8."""

    name: str
    # image/jpeg, image/png, application/pdf, or text/plain for every kind of text.
    media_type: str
    content: bytes
    # Of a PDF.
    pages: int = 0

    @property
    def is_image(self) -> bool:
        """Whether it can be shown as a picture."""
        return self.media_type.startswith("image/")


def check_attachments(files: Sequence[Attachment], *, pdfs: bool) -> None:
    """Whether one message can take all of them; `pdfs` is False for a server that does not understand them.

    Raises TooManyAttachments, AttachmentsTooLarge, PdfsTooLong, TextFilesTooLong, PdfsNotUnderstood.
    """
    if len(files) > FILES_A_MESSAGE:
        raise TooManyAttachments(limit=FILES_A_MESSAGE)
    if sum(len(file.content) for file in files) > BYTES_A_MESSAGE:
        raise AttachmentsTooLarge(name=_names(files), limit=BYTES_A_MESSAGE // MEGABYTE)
    documents = [file for file in files if file.media_type == PDF]
    if documents and not pdfs:
        raise PdfsNotUnderstood(name=_names(documents))
    if sum(file.pages for file in documents) > PAGES_A_MESSAGE:
        raise PdfsTooLong(name=_names(documents), limit=PAGES_A_MESSAGE)
    texts = [file for file in files if file.media_type == TEXT]
    if sum(len(file.content.decode()) for file in texts) > CHARACTERS_A_MESSAGE:
        raise TextFilesTooLong(name=_names(texts), limit=CHARACTERS_A_MESSAGE)


def _names(files: Sequence[Attachment]) -> str:
    return ", ".join(file.name for file in files)


def insert_attachments(
    connection: Connection, *, user_id: int, message_id: int, files: Sequence[Attachment]
) -> list[dict[str, Any]]:
    """Store them with their message. Returns its blocks, by which it knows its files without their bytes."""
    rows = [
        {
            "user_id": user_id,
            "message_id": message_id,
            "name": file.name,
            "media_type": file.media_type,
            "content": file.content,
            "size": len(file.content),
        }
        for file in files
    ]
    inserted = insert(attachments).returning(attachments.c.id, sort_by_parameter_order=True)
    ids = connection.scalars(inserted, rows).all() if rows else []
    return [attachment_block(number, file) for number, file in zip(ids, files, strict=True)]


def attachment_block(number: int, file: Attachment) -> dict[str, Any]:
    """What a message knows of its file with this id."""
    return {
        "type": "attachment",
        "id": int(number),
        "name": file.name,
        "media_type": file.media_type,
        "size": len(file.content),
        "pages": file.pages,
    }


def load_attachments(connection: Connection, *, user_id: int, ids: Sequence[int]) -> dict[int, Attachment]:
    """These files with their bytes, by id, in one query; somebody else's and those that are gone are not among them."""
    if not ids:
        return {}
    columns = (attachments.c.id, attachments.c.name, attachments.c.media_type, attachments.c.content)
    query = select(*columns).where(attachments.c.user_id == user_id, attachments.c.id.in_(ids))
    return {
        row.id: Attachment(name=row.name, media_type=row.media_type, content=bytes(row.content))
        for row in connection.execute(query)
    }

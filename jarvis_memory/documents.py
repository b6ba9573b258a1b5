"""The person's documents: the originals with their state. What they say is in document_chunks, see document_index.py.

An original lies in the database, so a backup of it is complete, and so is a deletion.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from sqlalchemy import Connection, Row, literal_column, text
from sqlalchemy.dialects.postgresql import insert as insert_or_not

from jarvis_memory.attachments import MEGABYTE
from jarvis_memory.errors import DocumentEmpty, DocumentNameUnusable, DocumentNotFound, DocumentTooLarge
from jarvis_memory.tables import documents
from jarvis_memory.text import escape_like, one_line
from jarvis_memory.uploads import clean_name

NAME_CHARACTERS = 120
# By which the kinds of text are told apart, and those that people know the others by.
ENDINGS = (".pdf", ".docx", ".odt", ".txt", ".md", ".markdown", ".html", ".htm", ".eml", ".csv", ".tsv")

Status = Literal["waiting", "ready", "failed"]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document as lists show it."""

    id: int
    name: str
    size: int  # in bytes
    # What it was read as; None until it is.
    kind: str | None
    # 0 where the file has none.
    pages: int
    status: Status
    # The name of an error class with its details, of one that could not be read.
    error: str | None
    error_details: dict[str, Any]
    # The document whose place it takes once it is read.
    replaces_id: int | None
    created_at: datetime
    # Its passages, and how many of them can be found by their meaning.
    chunks: int
    embedded: int

    @property
    def is_pending(self) -> bool:
        """Whether the background still has something to do with it."""
        return self.status == "waiting" or (self.status == "ready" and self.embedded < self.chunks)


@dataclass(frozen=True, kw_only=True)
class DeletedDocument:
    """The receipt of a deletion, in rows."""

    name: str
    pages: int
    chunks: int


_DOCUMENTS = """
    SELECT d.id, d.name, d.size, d.kind, d.pages, d.status, d.error, d.error_details, d.replaces_id, d.created_at,
           counted.chunks, counted.embedded
    FROM ({chosen}) AS d CROSS JOIN LATERAL (
        SELECT count(*) AS chunks, count(*) FILTER (WHERE c.embedding_model = :model) AS embedded
        FROM document_chunks c WHERE c.document_id = d.id
    ) AS counted ORDER BY d.created_at DESC, d.id DESC
"""


def add_document(
    connection: Connection,
    *,
    user_id: int,
    name: str,
    content: bytes,
    megabytes: int,
    replaces_id: int | None = None,
) -> tuple[int, bool]:
    """Store an original; the background reads it. Returns its id, and False when the same bytes were there already.

    `replaces_id` is the document whose place it takes once it could be read; until then that one stays as it is. Where
    that one waits to take another's place itself, it is that other one's; where it is gone, the new one stands alone.
    Raises DocumentEmpty, DocumentTooLarge (with `details["limit"]`, which is `megabytes`).
    """
    name = clean_name(name)
    if not content.strip():
        raise DocumentEmpty(name=name)
    if len(content) > megabytes * MEGABYTE:
        raise DocumentTooLarge(name=name, limit=megabytes)
    replaced = None
    if replaces_id is not None:
        replaced = connection.scalar(
            text(
                """SELECT id FROM documents WHERE user_id = :user_id AND id = (
                       SELECT coalesce(replaces_id, id) FROM documents WHERE user_id = :user_id AND id = :id)
                   FOR KEY SHARE"""
            ),
            {"user_id": user_id, "id": replaces_id},
        )
    added = insert_or_not(documents).values(document_row(user_id, name, content) | {"replaces_id": replaced})
    # An update of nothing, because it returns the row that is there, whatever others do at this moment.
    row = connection.execute(
        added.on_conflict_do_update(
            index_elements=["user_id", "sha256"], set_={"sha256": added.excluded.sha256}
        ).returning(documents.c.id, literal_column("xmax = 0").label("is_new"))
    ).one()
    return int(row.id), bool(row.is_new)


def document_row(user_id: int, name: str, content: bytes) -> dict[str, Any]:
    """The columns of an original that waits to be read."""
    return {
        "user_id": user_id,
        "name": name,
        "content": content,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def count_documents(connection: Connection, *, user_id: int, query: str = "") -> int:
    """How many documents have this in their names."""
    return int(connection.scalars(text(f"SELECT count(*) FROM documents WHERE {_NAMED}"), _named(user_id, query)).one())


def list_documents(
    connection: Connection, *, user_id: int, embedding_model: str, query: str = "", limit: int, offset: int = 0
) -> list[Document]:
    """Those that have this in their names, the newest first. `embedded` counts vectors of this model."""
    chosen = f"""SELECT * FROM documents WHERE {_NAMED} ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset"""
    values = _named(user_id, query) | {"model": embedding_model, "limit": limit, "offset": offset}
    return [_document(row) for row in connection.execute(text(_DOCUMENTS.format(chosen=chosen)), values)]


def get_document(connection: Connection, *, user_id: int, document_id: int, embedding_model: str) -> Document:
    """One document. Raises DocumentNotFound."""
    chosen = "SELECT * FROM documents WHERE user_id = :user_id AND id = :id"
    values = {"user_id": user_id, "id": document_id, "model": embedding_model}
    row = connection.execute(text(_DOCUMENTS.format(chosen=chosen)), values).one_or_none()
    if row is None:
        raise DocumentNotFound
    return _document(row)


def find_document_ids(connection: Connection, *, user_id: int, name: str, limit: int) -> list[int]:
    """The documents of exactly this name; where there is none, those that have it in their names. The newest first."""
    rows = connection.execute(
        text(
            f"""SELECT id, lower(name) = lower(:name) AS is_it FROM documents WHERE {_NAMED}
                ORDER BY lower(name) = lower(:name) DESC, created_at DESC, id DESC LIMIT :limit"""
        ),
        _named(user_id, name) | {"name": one_line(name), "limit": limit},
    ).all()
    exact = [int(row.id) for row in rows if row.is_it]
    return exact or [int(row.id) for row in rows]


def find_namesake(connection: Connection, *, user_id: int, name: str, content: bytes) -> int | None:
    """The newest document of this name, when these bytes are in no document; None where there is none.

    Not one that waits for another's place, or could not take it: then it is that other one.
    """
    row = document_row(user_id, clean_name(name), content)
    found = connection.scalar(
        text(
            """SELECT coalesce(replaces_id, id) FROM documents WHERE user_id = :user_id AND lower(name) = lower(:name)
                 AND NOT EXISTS (SELECT FROM documents d WHERE d.user_id = :user_id AND d.sha256 = :sha256)
               ORDER BY created_at DESC, id DESC LIMIT 1"""
        ),
        {name: row[name] for name in ("user_id", "name", "sha256")},
    )
    return None if found is None else int(found)


def load_original(connection: Connection, *, user_id: int, document_id: int) -> bytes:
    """The file as it was uploaded. Raises DocumentNotFound."""
    query = text("SELECT content FROM documents WHERE user_id = :user_id AND id = :id")
    content = connection.scalar(query, {"user_id": user_id, "id": document_id})
    if content is None:
        raise DocumentNotFound
    return bytes(content)


def read_again(connection: Connection, *, user_id: int, document_id: int) -> None:
    """Have the background read it anew; what was read stays searchable until then. Raises DocumentNotFound."""
    query = text(
        """UPDATE documents SET status = 'waiting', error = NULL, error_details = NULL
           WHERE user_id = :user_id AND id = :id"""
    )
    if connection.execute(query, {"user_id": user_id, "id": document_id}).rowcount == 0:
        raise DocumentNotFound


def delete_document(connection: Connection, *, user_id: int, document_id: int) -> DeletedDocument:
    """Delete the original with all that was read from it. Returns the receipt. Raises DocumentNotFound."""
    here = {"user_id": user_id, "id": document_id}
    found = connection.execute(
        text("SELECT name, pages FROM documents WHERE user_id = :user_id AND id = :id FOR UPDATE"), here
    ).one_or_none()
    if found is None:
        raise DocumentNotFound
    chunks = connection.execute(text("DELETE FROM document_chunks WHERE document_id = :id"), here).rowcount
    connection.execute(text("DELETE FROM documents WHERE id = :id"), here)
    return DeletedDocument(name=found.name, pages=found.pages, chunks=chunks)


def rename_document(connection: Connection, *, user_id: int, document_id: int, name: str) -> str:
    """Give it another name; its ending stays, because by that it is read. Returns the name as it is stored.

    By the words of the new name it is found once the background has counted them. Raises DocumentNotFound,
    DocumentNameUnusable.
    """
    if not one_line(name) or len(one_line(name)) > NAME_CHARACTERS:
        raise DocumentNameUnusable(limit=NAME_CHARACTERS)
    here = {"user_id": user_id, "id": document_id}
    query = text("SELECT name FROM documents WHERE user_id = :user_id AND id = :id FOR UPDATE")
    former = connection.scalar(query, here)
    if former is None:
        raise DocumentNotFound
    # Typed by a person: a slash is no path.
    new = with_ending_of(former, clean_name(name.replace("/", "-").replace("\\", "-")))
    connection.execute(text("UPDATE documents SET name = :name WHERE id = :id"), here | {"name": new})
    return new


def with_ending_of(file: str, name: str) -> str:
    """`name` with the ending that `file` has, in place of none or of one that a document may have."""
    ending, own = PurePosixPath(file).suffix, PurePosixPath(name).suffix
    if own.lower() == ending.lower():
        return name
    return clean_name((name.removesuffix(own) if own.lower() in ENDINGS else name) + ending)


_NAMED = "user_id = :user_id AND name ILIKE :pattern"


def _named(user_id: int, query: str) -> dict[str, Any]:
    return {"user_id": user_id, "pattern": f"%{escape_like(one_line(query))}%"}


def _document(row: Row[Any]) -> Document:
    return Document(**(dict(row._mapping) | {"error_details": row.error_details or {}}))

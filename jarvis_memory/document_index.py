"""What documents say, as the search finds it: reading those that wait, their passages, and the words of each.

The background calls `read_next_document`; vectors of passages are made by indexing.py. What is pending is read from the
data: a document waits until its passages are stored in one transaction with its new state.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from jarvis_memory.database import Database, Lock
from jarvis_memory.document_process import ReadDocument, read_document
from jarvis_memory.documents import with_ending_of
from jarvis_memory.errors import (
    DatabaseUnavailable,
    DocumentReadingStopped,
    DocumentUnreadable,
    JarvisError,
)
from jarvis_memory.settings import Settings
from jarvis_memory.text import sql_words

log = logging.getLogger(__name__)

# So many waiting documents are looked at for one that nobody else is reading.
LOOKED_AT = 20

# "Rechnung_Mai.pdf" is one word for PostgreSQL.
_COUNT = f"""
    WITH counted AS (
        SELECT c.id, c.user_id, word, cardinality(positions) AS count
        FROM document_chunks c JOIN documents d ON d.id = c.document_id, LATERAL unnest({
    sql_words("concat_ws(' ', translate(d.name, '._-', '   '), c.heading, c.content)")
}) AS t(word, positions, _)
        WHERE c.document_id = :id AND c.words = 0
    ), stored AS (
        INSERT INTO chunk_words (chunk_id, word, user_id, count) SELECT id, word, user_id, count FROM counted
    )
    UPDATE document_chunks c SET words = of_chunk.count
    FROM (SELECT id, sum(count) AS count FROM counted GROUP BY 1) AS of_chunk WHERE c.id = of_chunk.id
"""

# What is as it was keeps its row: the links to it, and its vector.
_NEW_CHUNKS = """
    CREATE TEMPORARY TABLE new_chunks ON COMMIT DROP AS
    SELECT * FROM jsonb_to_recordset(CAST(:chunks AS jsonb)) AS n(number int, page int, heading text, content text)
"""
_SAME = """n.number = c.number AND n.page IS NOT DISTINCT FROM c.page AND n.heading = c.heading
    AND n.content = c.content"""


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    """A document that is to be read."""

    id: int
    user_id: int
    name: str
    sha256: str
    content: bytes


def read_next_document(database: Database, settings: Settings, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Read one document that waits and that no other process is at. False when there is none, or `stop()` is true.

    What cannot be read is noted with the document. Raises DatabaseUnavailable.
    """
    query = text("SELECT id FROM documents WHERE status = 'waiting' ORDER BY id LIMIT :limit")
    with database.begin() as connection:
        waiting = connection.scalars(query, {"limit": LOOKED_AT}).all()
    for document_id in waiting:
        if stop():
            break
        with database.try_lock(Lock.DOCUMENT, int(document_id)) as ours:
            if ours and _read(database, settings, int(document_id), stop):
                return True
    return False


def _read(database: Database, settings: Settings, document_id: int, stop: Callable[[], bool]) -> bool:
    with database.begin() as connection:
        document = _load_waiting(connection, document_id)
    if document is None:  # another process was faster
        return False
    try:
        read = read_document(
            document.name,
            document.content,
            pages=settings.jarvis_document_pages,
            seconds=settings.jarvis_document_seconds,
            megabytes=settings.jarvis_document_memory,
            stop=stop,
        )
        with database.begin() as connection:
            store_read_document(connection, document, read)
    except DocumentReadingStopped:
        return False
    except DatabaseUnavailable:
        raise
    except DocumentUnreadable as error:
        log.info("Document %s cannot be read: %s", document_id, type(error).__name__)
        _note_failure(database, document, error)
    except Exception as error:  # noqa: BLE001 - it would stop all documents behind it, for ever
        log.exception("Document %s could not be stored", document_id)
        _note_failure(database, document, JarvisError(cause=type(error).__name__))
    return True


def _load_waiting(connection: Connection, document_id: int) -> _Waiting | None:
    row = connection.execute(
        text("SELECT id, user_id, name, sha256, content FROM documents WHERE id = :id AND status = 'waiting'"),
        {"id": document_id},
    ).one_or_none()
    return _Waiting(**(dict(row._mapping) | {"content": bytes(row.content)})) if row else None


def _note_failure(database: Database, document: _Waiting, error: JarvisError) -> None:
    details = {name: value for name, value in error.details.items() if isinstance(value, str | int)}
    with database.begin() as connection:
        connection.execute(
            text(
                """UPDATE documents SET status = 'failed', error = :error, error_details = CAST(:details AS jsonb)
                   WHERE id = :id AND sha256 = :sha256 AND status = 'waiting'"""
            ),
            {
                "id": document.id,
                "sha256": document.sha256,
                "error": type(error).__name__,
                "details": json.dumps(details),
            },
        )


def store_read_document(connection: Connection, document: _Waiting, read: ReadDocument) -> None:
    """Put its passages and their words in place of what stood there; searchable by words at once.

    Nothing happens when it was deleted or replaced while it was read. A new version takes the place of the old one.
    """
    here: dict[str, Any] = {"id": document.id, "sha256": document.sha256, "kind": read.kind, "pages": read.pages}
    # The older one first, in the order in which a deletion of it comes to the newer one.
    connection.execute(
        text(
            """SELECT FROM documents WHERE id = :id OR id = (SELECT replaces_id FROM documents WHERE id = :id)
               ORDER BY id FOR UPDATE"""
        ),
        here,
    )
    found = connection.execute(
        text("SELECT replaces_id FROM documents WHERE id = :id AND sha256 = :sha256 AND status = 'waiting'"), here
    ).one_or_none()
    if found is None:
        return
    if found.replaces_id is not None:
        here["id"] = _take_the_place_of(connection, found.replaces_id, document)
    connection.execute(
        text(
            """UPDATE documents SET status = 'ready', kind = :kind, pages = :pages, error = NULL, error_details = NULL
               WHERE id = :id"""
        ),
        here,
    )
    chunks = [vars(chunk) for chunk in read.chunks]
    connection.execute(text(_NEW_CHUNKS), {"chunks": json.dumps(chunks)})
    connection.execute(
        text(
            f"""DELETE FROM document_chunks c WHERE c.document_id = :id
                AND NOT EXISTS (SELECT FROM new_chunks n WHERE {_SAME})"""
        ),
        here,
    )
    connection.execute(
        text(
            f"""INSERT INTO document_chunks (user_id, document_id, number, page, heading, content)
                SELECT :user_id, :id, n.number, n.page, n.heading, n.content FROM new_chunks n
                WHERE NOT EXISTS (SELECT FROM document_chunks c WHERE c.document_id = :id AND {_SAME})
                ORDER BY n.number"""
        ),
        here | {"user_id": document.user_id},
    )
    connection.execute(text("DROP TABLE new_chunks"))
    _count_words(connection, int(here["id"]))


def _take_the_place_of(connection: Connection, replaced_id: int, document: _Waiting) -> int:
    """The document of this id becomes the new version. Its number stays, so that links to it go on to work, and its
    name but for the ending. Older files that were to take its place are gone with it.
    """
    row = connection.execute(
        text("DELETE FROM documents WHERE id = :id RETURNING id, name, content, size, created_at"), {"id": document.id}
    ).one()
    here = {"replaced": replaced_id, "user_id": document.user_id, "id": document.id}
    connection.execute(
        text("DELETE FROM documents WHERE replaces_id = :replaced AND user_id = :user_id AND id < :id"), here
    )
    former = connection.scalar(text("SELECT name FROM documents WHERE id = :replaced"), here)
    connection.execute(
        text(
            """UPDATE documents SET name = :name, content = :content, size = :size, sha256 = :sha256,
                   created_at = :created_at, replaces_id = NULL
               WHERE id = :replaced AND user_id = :user_id"""
        ),
        dict(row._mapping) | here | {"sha256": document.sha256, "name": with_ending_of(row.name, str(former))},
    )
    return replaced_id


def count_pending_names(connection: Connection) -> bool:
    """Count the words of one document anew that was renamed. False when there is none."""
    found = connection.scalar(
        text(
            """SELECT id FROM documents WHERE status = 'ready' AND counted_name IS DISTINCT FROM name
               LIMIT 1 FOR UPDATE SKIP LOCKED"""
        )
    )
    if found is not None:
        _count_words(connection, int(found))
    return found is not None


def _count_words(connection: Connection, document_id: int) -> None:
    """Count those of new passages; of all, where the document has another name since."""
    here = {"id": document_id}
    renamed = connection.scalar(text("SELECT counted_name IS DISTINCT FROM name FROM documents WHERE id = :id"), here)
    if renamed:
        connection.execute(
            text("DELETE FROM chunk_words w USING document_chunks c WHERE c.document_id = :id AND w.chunk_id = c.id"),
            here,
        )
        connection.execute(text("UPDATE document_chunks SET words = 0 WHERE document_id = :id AND words > 0"), here)
    connection.execute(text(_COUNT), here)
    connection.execute(text("UPDATE documents SET counted_name = name WHERE id = :id"), here)

"""Passages of documents: the best for a question, by meaning and by words together, and those of a page.

The ranking is that of recall.py without what only conversations have. Its figures are in benchmarks/README.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from jarvis_memory.embeddings import Vector
from jarvis_memory.hybrid_search import (
    SEARCH_SETTINGS,
    FoundBy,
    found_by,
    search_values,
    words_ranking,
)

# So many come into consideration from each ranking. Far more by words: a passage that means the right thing is to get
# what its words are worth also where many others have more of them.
NEAREST = 30
BY_WORDS = 300
WORDS_WEIGHT = 0.3
# What stands for the meaning of a passage that has no vector yet.
UNKNOWN_MEANING = 0.34


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a document's text, in one page and below one heading."""

    id: int
    document_id: int
    document: str
    # Its place in the document, from 0.
    number: int
    # None in a document without pages.
    page: int | None
    heading: str
    content: str
    # None where nobody searched for it.
    found_by: FoundBy | None = None


_COLUMNS = "c.id, c.document_id, d.name AS document, c.number, c.page, c.heading, c.content"
_OF_ALL = {
    "wanted": "true",
    # With the index of vectors, which knows no documents.
    "nearest": "embedding <#> CAST(:embedding AS vector)",
}
_OF_SOME = {
    "wanted": "c.document_id = ANY(:documents)",
    # All vectors of these documents are compared.
    "nearest": "(embedding <#> CAST(:embedding AS vector)) + 0",
}


def _passages(wanted: str, nearest: str) -> str:
    words = words_ranking(
        texts="document_chunks",
        counts="chunk_words",
        key="chunk_id",
        part_of_all="true",
        wanted=wanted,
        limit=BY_WORDS,
        few=wanted != "true",
    )
    return f"""
        WITH {words}, by_meaning AS MATERIALIZED (
            SELECT id FROM document_chunks c
            WHERE user_id = :user_id AND embedding_model = :model AND CAST(:embedding AS text) IS NOT NULL AND {wanted}
            ORDER BY {nearest} LIMIT {NEAREST}
        )
        SELECT {_COLUMNS}, coalesce(b.score, 0) AS words,
               CASE WHEN c.embedding_model = :model THEN -(c.embedding <#> CAST(:embedding AS vector)) END AS meaning
        FROM (SELECT id FROM by_words UNION SELECT id FROM by_meaning) AS found
        JOIN document_chunks c ON c.id = found.id AND c.user_id = :user_id JOIN documents d ON d.id = c.document_id
        LEFT JOIN by_words b ON b.id = c.id
    """


def search_passages(
    connection: Connection,
    *,
    user_id: int,
    query: str,
    embedding: Vector | None,
    embedding_model: str,
    limit: int,
    document_ids: Sequence[int] | None = None,
) -> list[Passage]:
    """The best passages for `query`, best first, of all documents or of these. Without an embedding by words alone."""
    values = search_values(user_id=user_id, query=query, embedding=embedding, embedding_model=embedding_model)
    connection.execute(text(SEARCH_SETTINGS))
    rows = connection.execute(
        text(_passages(**(_OF_ALL if document_ids is None else _OF_SOME))),
        values if document_ids is None else values | {"documents": list(document_ids)},
    ).all()
    best = sorted(rows, key=lambda row: (-_score(row), row.id))[:limit]
    return [_passage(row, found_by(row.meaning or 0.0, row.words)) for row in best]


def _score(row: Row[Any]) -> float:
    meaning = UNKNOWN_MEANING if row.meaning is None else row.meaning
    return float(meaning + WORDS_WEIGHT * row.words)


def passages_of(
    connection: Connection,
    *,
    user_id: int,
    document_id: int,
    first: int,
    last: int,
    by_page: bool,
    from_number: int = 0,
    limit: int,
) -> list[Passage]:
    """The document's passages on the pages `first` to `last`, or with these numbers; in order, the first `limit` of
    those that have at least the number `from_number`.
    """
    column = "c.page" if by_page else "c.number"
    rows = connection.execute(
        text(
            f"""SELECT {_COLUMNS} FROM document_chunks c JOIN documents d ON d.id = c.document_id
                WHERE c.user_id = :user_id AND c.document_id = :id AND {column} BETWEEN :first AND :last
                  AND c.number >= :from_number
                ORDER BY c.number LIMIT :limit"""
        ),
        {"user_id": user_id, "id": document_id, "first": first, "last": last, "limit": limit}
        | {"from_number": from_number},
    )
    return [_passage(row, None) for row in rows]


def get_passage(connection: Connection, *, user_id: int, passage_id: int) -> Passage | None:
    """One passage; None when its document is gone or was read anew with another text there."""
    row = connection.execute(
        text(
            f"""SELECT {_COLUMNS} FROM document_chunks c JOIN documents d ON d.id = c.document_id
                WHERE c.user_id = :user_id AND c.id = :id"""
        ),
        {"user_id": user_id, "id": passage_id},
    ).one_or_none()
    return _passage(row, None) if row else None


def _passage(row: Row[Any], reason: FoundBy | None) -> Passage:
    fields = ("id", "document_id", "document", "number", "page", "heading", "content")
    return Passage(**{name: row._mapping[name] for name in fields}, found_by=reason)

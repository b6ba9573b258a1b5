"""Which earlier conversations fit a message: by the meaning of their summaries, by words without a vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from jarvis_memory.embeddings import Vector
from jarvis_memory.text import clean, sql_words, without_marks

RECALLED_CONVERSATIONS = 3


@dataclass(frozen=True, kw_only=True)
class RecalledConversation:
    """An earlier conversation as it is recalled."""

    id: int
    title: str
    summary: str
    updated_at: datetime


_RANKED = """
    SELECT c.id, c.title, s.summary, c.updated_at
    FROM conversation_summaries s JOIN conversations c ON c.id = s.conversation_id {joins}
    WHERE s.user_id = :user_id AND c.remember AND s.summary IS NOT NULL AND c.id <> ALL(:without) AND {condition}
    ORDER BY {order}, c.id DESC LIMIT :limit
"""

# The person's words, any of them, stemmed. German stemming leaves English words usable.
_ANY_WORD = """CROSS JOIN (
    SELECT CAST(replace(CAST(plainto_tsquery('german', :query) AS text), '&', '|') AS tsquery) AS words
) asked"""


def search_conversation_summaries(
    connection: Connection,
    *,
    user_id: int,
    query: str,
    embedding: Vector | None,
    embedding_model: str,
    limit: int = RECALLED_CONVERSATIONS,
    without: Sequence[int] = (),
) -> list[RecalledConversation]:
    """The best conversations for `query`: by meaning with an embedding, by words without one."""
    if embedding is None:
        return search_conversation_summaries_by_words(
            connection, user_id=user_id, query=query, limit=limit, without=without
        )
    return search_similar_conversation_summaries(
        connection,
        user_id=user_id,
        embedding=embedding,
        embedding_model=embedding_model,
        limit=limit,
        without=without,
    )


def search_similar_conversation_summaries(
    connection: Connection,
    *,
    user_id: int,
    embedding: Vector,
    embedding_model: str,
    limit: int = RECALLED_CONVERSATIONS,
    without: Sequence[int] = (),
) -> list[RecalledConversation]:
    """The conversations whose summaries are nearest by cosine, among vectors of this model; nearest first."""
    query = _RANKED.format(
        joins="", condition="s.embedding_model = :model", order="s.embedding <=> CAST(:embedding AS vector)"
    )
    return _recalled(connection, query, user_id, limit, without, embedding=str(embedding), model=embedding_model)


def search_conversation_summaries_by_words(
    connection: Connection,
    *,
    user_id: int,
    query: str,
    limit: int = RECALLED_CONVERSATIONS,
    without: Sequence[int] = (),
) -> list[RecalledConversation]:
    """The conversations whose title or summary shares words with `query`, best first."""
    document = sql_words("c.title || ' ' || s.summary")
    statement = _RANKED.format(
        joins=_ANY_WORD,
        condition=f"{document} @@ asked.words",
        order=f"ts_rank({document}, asked.words) DESC",
    )
    return _recalled(connection, statement, user_id, limit, without, query=without_marks(clean(query)))


def _recalled(
    connection: Connection, statement: str, user_id: int, limit: int, without: Sequence[int], **values: Any
) -> list[RecalledConversation]:
    values |= {"user_id": user_id, "limit": limit, "without": list(without)}
    # An untyped empty array needs its type said.
    statement = statement.replace(":without", "CAST(:without AS bigint[])")
    return [RecalledConversation(**row._mapping) for row in connection.execute(text(statement), values)]

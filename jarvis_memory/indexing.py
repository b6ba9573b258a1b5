"""Bringing the index up to date, one bounded step at a time. The background calls it; a benchmark can, too.

What is missing is read from the data: words that nobody counted, and texts without a vector of the current model.
"""

from collections.abc import Callable

from sqlalchemy import text

from jarvis_memory.database import Database
from jarvis_memory.document_index import count_pending_names
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.recall_index import (
    index_pending_summaries,
    index_pending_words,
    pending_exchanges,
    pieces_of,
    store_exchange,
)

EMBEDDED_AT_ONCE = 16

# Tables with one text a row to embed: the table, its key, the text, which come first. A summary is more with its title,
# a passage of a document with the headings above it. Of documents the first passages of each, so that none waits behind
# a long one.
_EMBEDDED = (
    ("memory_facts", "id", "content", "updated_at DESC"),
    ("conversation_summaries", "conversation_id", "indexed_text", "updated_at DESC"),
    ("document_chunks", "id", "concat_ws(E'\\n', nullif(heading, ''), content)", "number, id"),
)


def index_some(database: Database, embeddings: Embeddings, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """A step of each kind of work, so that a long backlog of one does not hold up the others. False: all is done.

    Ends early when `stop()` is true. Raises EmbeddingUnavailable, DatabaseUnavailable.
    """
    with database.begin() as connection:
        more = index_pending_words(connection)
    with database.begin() as connection:
        more |= index_pending_summaries(connection)
    with database.begin() as connection:
        more |= count_pending_names(connection)
    for table, key, content, order in _EMBEDDED:
        more |= not stop() and _embed_some(database, embeddings, table, key, content, order)
    return _embed_exchanges(database, embeddings, stop) or more


def _embed_exchanges(database: Database, embeddings: Embeddings, stop: Callable[[], bool]) -> bool:
    with database.begin() as connection:
        exchanges = pending_exchanges(connection, embedding_model=embeddings.model, limit=EMBEDDED_AT_ONCE)
    for exchange in exchanges:
        if stop():
            break
        vectors = embeddings.embed_passages(pieces_of(exchange.question, exchange.answer))
        with database.begin() as connection:
            store_exchange(connection, exchange, vectors=vectors, embedding_model=embeddings.model)
    return bool(exchanges)


def _embed_some(database: Database, embeddings: Embeddings, table: str, key: str, content: str, order: str) -> bool:
    model = embeddings.model
    with database.begin() as connection:
        rows = connection.execute(
            text(
                f"""SELECT {key} AS key, {content} AS content FROM {table}
                    WHERE {content} IS NOT NULL
                      AND (embedding_model IS NULL OR embedding_model < :model OR embedding_model > :model)
                    ORDER BY {order} LIMIT :limit"""
            ),
            {"model": model, "limit": EMBEDDED_AT_ONCE},
        ).all()
    if not rows:
        return False
    vectors = embeddings.embed_passages([row.content for row in rows])
    # Only where the text is still the one that was embedded.
    store = f"""UPDATE {table} SET embedding = CAST(:embedding AS vector), embedding_model = :model
                WHERE {key} = :key AND {content} = :content"""
    for row, vector in zip(rows, vectors, strict=True):
        # A transaction for each: several locked rows could meet a forgetting that locks them in another order.
        with database.begin() as connection:
            connection.execute(
                text(store), {"key": row.key, "content": row.content, "embedding": str(vector), "model": model}
            )
    return True

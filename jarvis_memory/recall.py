"""Which earlier conversations fit a message: by the meaning of their exchanges and summaries, and by their words.

What is searched is kept by recall_index.py and summaries.py. How the ranking was found, and what else was tried, is
in benchmarks/README.md; the figures here are from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
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
from jarvis_memory.recall_gate import asks_the_memory
from jarvis_memory.recall_index import Exchange, load_exchanges, pieces_of
from jarvis_memory.text import shorten
from jarvis_memory.time_expressions import DAY, time_ranges

RECALLED_CONVERSATIONS = 3
EXCERPT_CHARACTERS = 600
# So many come into consideration from each ranking; of the pieces more, because several can be of one conversation.
CANDIDATES = 30
NEAREST_PIECES = 100

SUMMARY_WEIGHT = 0.5
WORDS_WEIGHT = 0.2
TIME_WEIGHT = 0.2
# What stands for a summary that is not written yet (a share of the exchange's cosine), and for both.
MISSING_SUMMARY = 0.8
UNKNOWN_MEANING = 0.34
# Without an embedding less is enough: among few chats a word that nobody said weighs much.
WORDS_ALONE = 0.25


@dataclass(frozen=True, kw_only=True)
class RecalledConversation:
    """An earlier conversation as it is recalled. `summary` and `excerpt` are empty where there is none (yet)."""

    id: int
    title: str
    summary: str
    # The exchange that fits best, at most EXCERPT_CHARACTERS of it.
    excerpt: str
    found_by: FoundBy
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A candidate with its place in the ranking; `message_id` and `piece` name the exchange that fits best."""

    id: int
    score: float
    meaning: float
    words: float
    of: int  # how many conversations there are
    found_by: FoundBy
    message_id: int | None
    piece: int | None


_WORDS = words_ranking(
    texts="conversations",
    counts="conversation_words",
    key="conversation_id",
    part_of_all="c.remember",
    wanted="c.id <> ALL(CAST(:without AS bigint[]))",
    limit=CANDIDATES,
)
_CANDIDATES = f"""
    WITH {_WORDS}, by_exchange AS MATERIALIZED (
        SELECT conversation_id AS id FROM exchanges
        WHERE user_id = :user_id AND embedding_model = :model AND conversation_id <> ALL(CAST(:without AS bigint[]))
          AND CAST(:embedding AS text) IS NOT NULL
        ORDER BY embedding <#> CAST(:embedding AS halfvec(768)) LIMIT {NEAREST_PIECES}
    ), by_summary AS MATERIALIZED (
        SELECT conversation_id AS id FROM conversation_summaries
        WHERE user_id = :user_id AND embedding_model = :model AND conversation_id <> ALL(CAST(:without AS bigint[]))
          AND CAST(:embedding AS text) IS NOT NULL
        ORDER BY embedding <=> CAST(:embedding AS vector) LIMIT {CANDIDATES}
    ), times AS MATERIALIZED (
        SELECT * FROM unnest(CAST(:starts AS timestamptz[]), CAST(:ends AS timestamptz[]), CAST(:times AS float[]))
            AS t(begins, ends, weight)
    ), by_time AS MATERIALIZED (
        SELECT c.id FROM conversations c JOIN times t ON c.created_at < t.ends AND c.updated_at >= t.begins
        WHERE c.user_id = :user_id AND c.remember AND c.id <> ALL(CAST(:without AS bigint[]))
        ORDER BY t.weight DESC, c.updated_at DESC LIMIT {CANDIDATES}
    )
    SELECT c.id, best.message_id, best.piece, best.cosine AS exchange,
           1 - (s.embedding <=> CAST(:embedding AS vector)) AS summary, coalesce(b.score, 0) AS words,
           coalesce((SELECT max(t.weight) FROM times t
                     WHERE known_as.created_at < t.ends AND known_as.updated_at >= t.begins), 0) AS time,
           corpus.size
    FROM (
        SELECT id FROM by_words UNION SELECT id FROM by_exchange UNION SELECT id FROM by_summary
        UNION SELECT id FROM by_time
    ) AS c CROSS JOIN corpus
    JOIN conversations known_as ON known_as.id = c.id AND known_as.remember
    LEFT JOIN by_words b ON b.id = c.id
    LEFT JOIN conversation_summaries s ON s.conversation_id = c.id AND s.embedding_model = :model
    LEFT JOIN LATERAL (
        SELECT e.message_id, e.piece, -(e.embedding <#> CAST(:embedding AS halfvec(768))) AS cosine FROM exchanges e
        WHERE e.conversation_id = c.id AND e.embedding_model = :model AND CAST(:embedding AS text) IS NOT NULL
        ORDER BY 3 DESC LIMIT 1
    ) AS best ON true
"""


def recall_conversations(
    connection: Connection,
    *,
    user_id: int,
    message: str,
    embedding: Vector | None,
    embedding_model: str,
    without: Sequence[int] = (),
    now: datetime | None = None,
) -> list[RecalledConversation]:
    """The earlier conversations that go with a message: up to three, and none where nothing fits.

    Small talk and questions about the world recall nothing, see recall_gate.py. `now` is the present in the person's
    time zone, from which "last week" is counted. Without an embedding only words are searched.
    """
    found = _search(connection, user_id, message, embedding, embedding_model, without, now)
    if embedding is None:
        best = [one for one in found if one.words >= WORDS_ALONE]
    elif found and asks_the_memory(
        embedding,
        embedding_model=embedding_model,
        best_meaning=max(one.meaning for one in found),
        conversations=found[0].of,
    ):
        best = found
    else:
        best = []
    return _described(connection, user_id, best[:RECALLED_CONVERSATIONS])


def search_conversations(
    connection: Connection,
    *,
    user_id: int,
    query: str,
    embedding: Vector | None,
    embedding_model: str,
    limit: int,
    without: Sequence[int] = (),
    now: datetime | None = None,
) -> list[RecalledConversation]:
    """The best conversations for `query` however well they fit, best first: for who asked for a search."""
    found = _search(connection, user_id, query, embedding, embedding_model, without, now)
    return _described(connection, user_id, found[:limit])


def _search(
    connection: Connection,
    user_id: int,
    query: str,
    embedding: Vector | None,
    embedding_model: str,
    without: Sequence[int],
    now: datetime | None,
) -> list[_Found]:
    now = now or datetime.now().astimezone()
    times = time_ranges(query, now.date())
    connection.execute(text(SEARCH_SETTINGS))
    candidates = connection.execute(
        text(_CANDIDATES),
        search_values(user_id=user_id, query=query, embedding=embedding, embedding_model=embedding_model)
        | {
            "without": list(without),
            "starts": [datetime.combine(one.first, time.min, now.tzinfo) for one in times],
            "ends": [datetime.combine(one.last + DAY, time.min, now.tzinfo) for one in times],
            "times": [one.weight for one in times],
        },
    )
    return _ranked(candidates.all())


def _ranked(candidates: Sequence[Row[Any]]) -> list[_Found]:
    """The candidates, best first."""
    found = []
    for row in candidates:
        meaning = _meaning(row.exchange, row.summary)
        found.append(
            _Found(
                id=row.id,
                score=meaning + WORDS_WEIGHT * row.words + TIME_WEIGHT * row.time,
                meaning=meaning,
                words=row.words,
                of=round(row.size),
                found_by=found_by(row.exchange or 0.0, row.words),
                message_id=row.message_id,
                piece=row.piece,
            )
        )
    return sorted(found, key=lambda one: (-one.score, -one.id))


def _meaning(exchange: float | None, summary: float | None) -> float:
    """Both cosines as one; a chat that is not indexed or not summarised yet is judged by what there is."""
    if exchange is None and summary is None:
        return UNKNOWN_MEANING
    if exchange is None:
        exchange = summary
    elif summary is None:
        summary = MISSING_SUMMARY * exchange
    return (exchange or 0.0) + SUMMARY_WEIGHT * (summary or 0.0)


def _described(connection: Connection, user_id: int, found: list[_Found]) -> list[RecalledConversation]:
    """What is told of these conversations, in their order."""
    rows = connection.execute(
        text(
            """
            SELECT c.id, c.title, coalesce(s.summary, '') AS summary, c.updated_at
            FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
            WHERE c.user_id = :user_id AND c.id = ANY(:ids)
            """
        ),
        {"user_id": user_id, "ids": [one.id for one in found]},
    )
    about = {row.id: row for row in rows}
    message_ids = [one.message_id for one in found if one.message_id is not None]
    exchanges = load_exchanges(connection, user_id=user_id, message_ids=message_ids)
    return [
        RecalledConversation(
            **about[one.id]._mapping,
            excerpt=_excerpt(exchanges.get(one.message_id or 0), one.piece or 0),
            found_by=one.found_by,
        )
        for one in found
    ]


def _excerpt(exchange: Exchange | None, piece: int) -> str:
    if exchange is None:
        return ""
    pieces = pieces_of(exchange.question, exchange.answer)
    return shorten(pieces[min(piece, len(pieces) - 1)], EXCERPT_CHARACTERS)


def search_similar_conversation_summaries(
    connection: Connection,
    *,
    user_id: int,
    embedding: Vector,
    embedding_model: str,
    limit: int = RECALLED_CONVERSATIONS,
) -> list[int]:
    """The conversations whose summaries are nearest by cosine, nearest first: the design that benchmarks start from."""
    rows = connection.scalars(
        text(
            """
            SELECT conversation_id FROM conversation_summaries WHERE user_id = :user_id AND embedding_model = :model
            ORDER BY embedding <=> CAST(:embedding AS vector), conversation_id DESC LIMIT :limit
            """
        ),
        {"user_id": user_id, "model": embedding_model, "embedding": str(embedding), "limit": limit},
    )
    return [int(number) for number in rows]

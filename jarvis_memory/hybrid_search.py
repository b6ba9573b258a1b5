"""Searching texts by their words and by their meaning together: the SQL that conversations and documents share.

What is searched, and how both rankings become one, is the matter of recall.py and document_search.py.
"""

from typing import Any, Literal

from jarvis_memory.embeddings import Vector
from jarvis_memory.text import clean, sql_words, without_marks

# A word that so many texts hold tells them apart too little to be worth its time.
COMMON = 2_000
# Of a long question its beginning is searched, and of that so many words, the rarest.
QUERY_CHARACTERS = 4_000
WORDS_SEARCHED = 12
# How many neighbours the index of vectors looks at; more is slower and misses less.
NEIGHBOURS_SEEN = 200
# From where on words (the share of the question's weight) and meaning (the cosine) are called a reason.
WORDS_TELL = 0.5
MEANING_TELLS = 0.3

FoundBy = Literal["words", "meaning", "both"]

# Iterative: the nearest vectors can all be of another person or another model, then the index has to look on.
SEARCH_SETTINGS = f"""
    SELECT set_config('hnsw.ef_search', '{NEIGHBOURS_SEEN}', true),
           set_config('hnsw.iterative_scan', 'strict_order', true)
"""


def words_ranking(
    *, texts: str, counts: str, key: str, part_of_all: str, wanted: str, limit: int, few: bool = False
) -> str:
    """CTEs, of which the last, `by_words`, has id and score of the best texts; `corpus` has their number as `size`.

    `texts` is a table with id, user_id and words, `counts` the one with the count of each word by `key`. Of the texts
    (the alias `c`) those count that `part_of_all` is true for, and those can be found that `wanted` is true for, too;
    the first `limit` of them come into consideration. With `few` those are few, and how rare a word is is reckoned
    among them alone: elsewhere it can be so common that it would not count. The score is BM25 (k1 = 1.2, b = 0.75) as
    a share: 1 for a text of usual length with all words of the question.
    """
    among = f"JOIN {texts} c ON c.id = w.{key} AND {wanted}" if few else ""
    return f"""
    asked AS MATERIALIZED (
        -- Filler words of English as well: among German texts they are rare, and would count as telling.
        SELECT DISTINCT word FROM unnest(tsvector_to_array({sql_words("CAST(:query AS text)")})) AS word
        WHERE to_tsvector('english', word) <> CAST('' AS tsvector)
    ), corpus AS MATERIALIZED (
        SELECT CAST(greatest(count(*), 1) AS float) AS size, CAST(greatest(avg(words), 1) AS float) AS length
        FROM {texts} c WHERE user_id = :user_id AND {part_of_all} AND words > 0 AND {wanted if few else "true"}
    ), known AS MATERIALIZED (
        SELECT word, found.count FROM asked CROSS JOIN LATERAL (
            SELECT count(*) FROM (
                SELECT FROM {counts} w {among} WHERE w.user_id = :user_id AND w.word = asked.word LIMIT {COMMON}
            ) AS w
        ) AS found
    ), weights AS MATERIALIZED (
        SELECT word, count, ln(1 + greatest(size - count + 0.5, 0.5) / (count + 0.5)) AS weight FROM known, corpus
    ), told AS MATERIALIZED (
        SELECT word, weight FROM weights WHERE count BETWEEN 1 AND {COMMON - 1} ORDER BY count LIMIT {WORDS_SEARCHED}
    ), reach AS MATERIALIZED (
        -- What a text with all the words could score; words that nobody said count, too.
        SELECT greatest(sum(weight), 0.1) AS weight FROM weights
    ), by_words AS MATERIALIZED (
        SELECT c.id,
               sum(told.weight * w.count * 2.2 / (w.count + 1.2 * (0.25 + 0.75 * c.words / corpus.length)))
               / min(reach.weight) AS score
        FROM told JOIN {counts} w ON w.user_id = :user_id AND w.word = told.word
        JOIN {texts} c ON c.id = w.{key} AND {part_of_all}, corpus, reach
        WHERE {wanted}
        GROUP BY 1 ORDER BY 2 DESC LIMIT {limit}
    )"""


def search_values(*, user_id: int, query: str, embedding: Vector | None, embedding_model: str) -> dict[str, Any]:
    """The parameters of such a search; without an embedding it goes by words alone."""
    return {
        "user_id": user_id,
        "query": without_marks(clean(query[:QUERY_CHARACTERS])),
        "embedding": None if embedding is None else str(embedding),
        "model": embedding_model,
    }


def found_by(meaning: float, words: float) -> FoundBy:
    """What a text was found by, as a person is told."""
    if words < WORDS_TELL:
        return "meaning"
    return "both" if meaning >= MEANING_TELLS else "words"

"""The recall index: which words every conversation holds, and what every exchange means.

An exchange is a user's message with the answer that follows it. Words are counted when a message is saved, vectors
are made by the background; what is missing is derived from the messages, so nothing is lost when the process dies.
Searching it is in recall.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from jarvis_memory.database import Lock, nobody_holds
from jarvis_memory.embeddings import Vector
from jarvis_memory.text import sql_words

# Measured (benchmarks/README.md). The overlap keeps a sentence that is cut whole in one of the two.
PIECE_CHARACTERS = 600
OVERLAP_CHARACTERS = 100
# What is said after this in one exchange is found by its words alone.
PIECES_AN_EXCHANGE = 12
INDEXED_CHARACTERS = 100_000

# The names of the files that came with the message `m`: the memory knows no more of them. NULL without files.
FILE_NAMES = """(SELECT string_agg(block ->> 'name', ', ' ORDER BY place)
    FROM jsonb_array_elements(m.blocks) WITH ORDINALITY AS files(block, place) WHERE block ->> 'type' = 'attachment')"""

_COUNTED = """
    SELECT conversation_id, user_id, word, CAST(sum(cardinality(positions)) AS int) AS count
    FROM ({texts}) AS said, LATERAL unnest({words}) AS t(word, positions, _) GROUP BY 1, 2, 3
"""

_ADD = """
    WITH counted AS ({counted}), stored AS (
        INSERT INTO conversation_words AS w (conversation_id, user_id, word, count)
        SELECT conversation_id, user_id, word, count FROM counted
        ON CONFLICT (conversation_id, word) DO UPDATE SET count = w.count + excluded.count
    )
    UPDATE conversations c SET words = c.words + more.count
    FROM (SELECT conversation_id, sum(count) AS count FROM counted GROUP BY 1) AS more
    WHERE c.id = more.conversation_id
"""

_REMOVE = """
    WITH counted AS ({counted}), gone AS (
        DELETE FROM conversation_words w USING counted
        WHERE w.conversation_id = counted.conversation_id AND w.word = counted.word AND w.count <= counted.count
    ), fewer AS (
        UPDATE conversation_words w SET count = w.count - counted.count FROM counted
        WHERE w.conversation_id = counted.conversation_id AND w.word = counted.word AND w.count > counted.count
    )
    UPDATE conversations c SET words = c.words - less.count
    FROM (SELECT conversation_id, sum(count) AS count FROM counted GROUP BY 1) AS less
    WHERE c.id = less.conversation_id
"""

# "Rechnung_Mai.pdf" is one word for PostgreSQL.
_MESSAGES = f"""
    SELECT conversation_id, user_id, concat_ws(' ', translate({FILE_NAMES}, '._-', '   '), content) AS content
    FROM messages m WHERE id = ANY(:ids)
"""
_SUMMARIES = """SELECT conversation_id, user_id, indexed_text AS content FROM conversation_summaries
    WHERE conversation_id = ANY(:ids) AND indexed_text IS NOT NULL"""

# What a summary adds to the words of its conversation: its own, and those of the title.
_TO_BE_INDEXED = "CASE WHEN c.remember THEN c.title || E'\\n' || s.summary END"


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A user's message with what was answered, as it is to be indexed."""

    message_id: int
    conversation_id: int
    user_id: int
    # Of the exchange; another one means that it was answered anew.
    last_message_id: int
    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class IndexProgress:
    """How many exchanges are not searchable by their meaning yet, of how many."""

    waiting: int
    total: int


def lock_conversations_of(connection: Connection, message_ids: Sequence[int]) -> None:
    """Hold the conversations of these messages until the transaction ends.

    Whoever changes messages and what is counted of them does this first: a deleted conversation takes its messages
    with it in the same order, conversations, messages, words, and no two can wait for each other.
    """
    connection.execute(
        text(
            """SELECT FROM conversations WHERE id IN (SELECT conversation_id FROM messages WHERE id = ANY(:ids))
               ORDER BY id FOR NO KEY UPDATE"""
        ),
        {"ids": list(message_ids)},
    )


def index_words(connection: Connection, *, user_id: int, message_ids: list[int]) -> None:
    """Count the words of these messages for their conversations, each message once.

    Messages that are excluded from the memory or belong to a temporary chat are left out.
    """
    lock_conversations_of(connection, message_ids)
    changed = connection.scalars(
        text(
            """
            UPDATE messages m SET words_indexed = true FROM conversations c
            WHERE m.id = ANY(:ids) AND m.user_id = :user_id AND NOT m.words_indexed AND NOT m.excluded_from_memory
              AND c.id = m.conversation_id AND c.remember
            RETURNING m.id
            """
        ),
        {"user_id": user_id, "ids": message_ids},
    ).all()
    _count(connection, _ADD, _MESSAGES, changed)


def remove_from_index(connection: Connection, *, user_id: int, message_ids: list[int]) -> None:
    """Take the words of these messages, and every exchange that one of them belongs to, out of the index.

    What is still part of the memory is indexed anew by the background.
    """
    lock_conversations_of(connection, message_ids)
    changed = connection.scalars(
        text(
            """UPDATE messages SET words_indexed = false
               WHERE id = ANY(:ids) AND user_id = :user_id AND words_indexed RETURNING id"""
        ),
        {"user_id": user_id, "ids": message_ids},
    ).all()
    _count(connection, _REMOVE, _MESSAGES, changed)
    connection.execute(
        text(
            """
            WITH opening AS (
                SELECT DISTINCT CASE WHEN m.role = 'user' THEN m.id ELSE (
                    SELECT max(u.id) FROM messages u
                    WHERE u.conversation_id = m.conversation_id AND u.role = 'user' AND u.id < m.id) END AS id
                FROM messages m WHERE m.id = ANY(:ids) AND m.user_id = :user_id
            ), gone AS (
                DELETE FROM exchanges WHERE message_id IN (SELECT id FROM opening)
            )
            UPDATE messages SET exchange_model = NULL WHERE id IN (SELECT id FROM opening)
            """
        ),
        {"user_id": user_id, "ids": message_ids},
    )


def index_summaries(connection: Connection, *, conversation_ids: Sequence[int]) -> None:
    """Count the words of these conversations' summaries and titles as they are now, in place of the former ones.

    Their vectors are made anew by the background.
    """
    ids = {"ids": list(conversation_ids)}
    connection.execute(text("SELECT FROM conversations WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"), ids)
    _count(connection, _REMOVE, _SUMMARIES, conversation_ids)
    connection.execute(
        text(
            f"""UPDATE conversation_summaries s
                SET indexed_text = {_TO_BE_INDEXED}, embedding = NULL, embedding_model = NULL
                FROM conversations c WHERE c.id = s.conversation_id AND c.id = ANY(:ids)"""
        ),
        ids,
    )
    _count(connection, _ADD, _SUMMARIES, conversation_ids)


def _count(connection: Connection, statement: str, texts: str, ids: Sequence[int]) -> None:
    if ids:
        counted = _COUNTED.format(texts=texts, words=sql_words(f"left(said.content, {INDEXED_CHARACTERS})"))
        connection.execute(text(statement.format(counted=counted)), {"ids": list(ids)})


def pieces_of(question: str, answer: str) -> list[str]:
    """An exchange as the pieces that are indexed: one in most cases, overlapping ones when it is long."""
    whole = f"{question.strip()}\n{answer.strip()}".strip()
    step = PIECE_CHARACTERS - OVERLAP_CHARACTERS
    starts = range(0, max(1, len(whole) - OVERLAP_CHARACTERS), step)
    return [whole[start : start + PIECE_CHARACTERS] for start in starts][:PIECES_AN_EXCHANGE]


# The exchange that the message `m` begins ends before the next message of the user.
_IN_EXCHANGE = """
    a.conversation_id = m.conversation_id AND a.id >= m.id AND NOT a.excluded_from_memory AND a.id < coalesce((
        SELECT min(u.id) FROM messages u
        WHERE u.conversation_id = m.conversation_id AND u.role = 'user' AND u.id > m.id), 9223372036854775807)
"""
_LAST_OF_EXCHANGE = f"(SELECT max(a.id) FROM messages a WHERE {_IN_EXCHANGE})"
_EXCHANGE = f"""
    m.id AS message_id, m.conversation_id, m.user_id, {_LAST_OF_EXCHANGE} AS last_message_id,
    concat_ws(E'\\n', '[' || {FILE_NAMES} || ']', nullif(left(m.content, {INDEXED_CHARACTERS}), '')) AS question,
    coalesce((SELECT string_agg(left(a.content, {INDEXED_CHARACTERS}), E'\\n' ORDER BY a.id)
              FROM messages a WHERE {_IN_EXCHANGE} AND a.role = 'assistant'), '') AS answer
"""
_NO_TURN_IS_RUNNING = nobody_holds(Lock.TURN, "m.conversation_id")


# --- what the background does -----------------------------------------------------------------------------


def index_pending_words(connection: Connection, *, limit: int = 200) -> bool:
    """Count the words of messages that nobody has counted: from before an update, or of a process that died.

    False when there are none.
    """
    rows = connection.execute(
        text(
            f"""
            SELECT m.user_id, array_agg(m.id) AS ids FROM (
                SELECT m.id, m.user_id FROM messages m JOIN conversations c ON c.id = m.conversation_id
                WHERE NOT m.words_indexed AND NOT m.excluded_from_memory AND c.remember AND {_NO_TURN_IS_RUNNING}
                ORDER BY m.id LIMIT :limit) AS m
            GROUP BY 1
            """
        ),
        {"limit": limit},
    ).all()
    for row in rows:
        index_words(connection, user_id=row.user_id, message_ids=row.ids)
    return bool(rows)


def index_pending_summaries(connection: Connection, *, limit: int = 200) -> bool:
    """Count the words of summaries that are not counted as they are. False when there are none."""
    found = connection.scalars(
        text(
            f"""SELECT c.id FROM conversation_summaries s JOIN conversations c ON c.id = s.conversation_id
                WHERE s.indexed_text IS DISTINCT FROM {_TO_BE_INDEXED} ORDER BY c.id LIMIT :limit"""
        ),
        {"limit": limit},
    ).all()
    if found:
        index_summaries(connection, conversation_ids=found)
    return bool(found)


def pending_exchanges(connection: Connection, *, embedding_model: str, limit: int = 16) -> list[Exchange]:
    """Exchanges of all users without vectors of this model, the newest first."""
    rows = connection.execute(
        text(
            f"""
            SELECT {_EXCHANGE}
            FROM messages m JOIN conversations c ON c.id = m.conversation_id
            WHERE m.role = 'user' AND NOT m.excluded_from_memory AND c.remember
              AND (m.exchange_model IS NULL OR m.exchange_model < :model OR m.exchange_model > :model)
              AND {_NO_TURN_IS_RUNNING}
            ORDER BY m.id DESC LIMIT :limit
            """
        ),
        {"model": embedding_model, "limit": limit},
    )
    return [Exchange(**row._mapping) for row in rows]


def store_exchange(
    connection: Connection, exchange: Exchange, *, vectors: Sequence[Vector], embedding_model: str
) -> None:
    """Put the vectors of the exchange's pieces into the index, in place of what stood there.

    Nothing happens when the exchange was changed, excluded or deleted while they were made, or its chat's memory
    switched off.
    """
    found = {"id": exchange.message_id, "last": exchange.last_message_id, "model": embedding_model}
    # Locked first and looked at afterwards: whoever changes an exchange changes this row as well.
    lock_conversations_of(connection, [exchange.message_id])
    connection.execute(text("SELECT FROM messages WHERE id = :id FOR UPDATE"), found)
    is_the_same = connection.scalar(
        text(
            f"""SELECT {_LAST_OF_EXCHANGE} = :last FROM messages m JOIN conversations c ON c.id = m.conversation_id
                WHERE m.id = :id AND NOT m.excluded_from_memory AND c.remember"""
        ),
        found,
    )
    if not is_the_same:
        return
    connection.execute(text("UPDATE messages SET exchange_model = :model WHERE id = :id"), found)
    connection.execute(text("DELETE FROM exchanges WHERE message_id = :id"), found)
    if vectors:
        connection.execute(
            text(
                """INSERT INTO exchanges (message_id, piece, conversation_id, user_id, embedding, embedding_model)
                   VALUES (:message_id, :piece, :conversation_id, :user_id, CAST(:embedding AS halfvec), :model)"""
            ),
            [
                {
                    "message_id": exchange.message_id,
                    "piece": piece,
                    "conversation_id": exchange.conversation_id,
                    "user_id": exchange.user_id,
                    "embedding": str(vector),
                    "model": embedding_model,
                }
                for piece, vector in enumerate(vectors)
            ],
        )


def load_exchanges(connection: Connection, *, user_id: int, message_ids: list[int]) -> dict[int, Exchange]:
    """The exchanges that these messages begin, by the message's id."""
    rows = connection.execute(
        text(f"SELECT {_EXCHANGE} FROM messages m WHERE m.user_id = :user_id AND m.id = ANY(:ids)"),
        {"user_id": user_id, "ids": message_ids},
    )
    return {row.message_id: Exchange(**row._mapping) for row in rows}


def index_progress(connection: Connection, *, user_id: int, embedding_model: str) -> IndexProgress:
    """How many of the person's exchanges wait for their vectors, and how many there are."""
    row = connection.execute(
        text(
            """
            SELECT count(*) FILTER (WHERE m.exchange_model IS DISTINCT FROM :model) AS waiting, count(*) AS total
            FROM messages m JOIN conversations c ON c.id = m.conversation_id
            WHERE m.user_id = :user_id AND m.role = 'user' AND NOT m.excluded_from_memory AND c.remember
            """
        ),
        {"user_id": user_id, "model": embedding_model},
    ).one()
    return IndexProgress(waiting=row.waiting, total=row.total)

"""A large memory made by chance, for `benchmarks.scale`: conversations with vectors and words, written by COPY.

The shape is what matters: words are as unequal as in real texts (Zipf), each conversation has words of its topic, and
vectors of one topic lie together in a narrow cone, as those of e5 do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text

from jarvis_memory.database import Database
from jarvis_memory.tables import exchanges

EXCHANGES = 10
WORDS_AN_EXCHANGE = 60
VOCABULARY = 60_000
NUMBERS = 384  # of the built-in model
PADDED = 768
AT_ONCE = 1_000  # conversations in one COPY

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: words as a text, and a vector as the model would make it."""

    text: str
    vector: list[float]


class SyntheticMemory:
    """Draws conversations and writes them for one user; the same seed gives the same memory."""

    def __init__(self, *, user_id: int, model: str, seed: int = 1) -> None:
        self._user_id = user_id
        self._model = model
        self._random = np.random.default_rng(seed)
        self._mean = self._unit(self._random.standard_normal(NUMBERS))
        self.count = 0

    def grow(self, database: Database, conversations: int) -> float:
        """Add conversations until there are this many. Returns the seconds that building the index of vectors took."""
        with database.begin() as connection:
            connection.execute(text("DROP INDEX ix_exchanges_embedding"))
        while self.count < conversations:
            first = self.count + 1
            self.count = min(conversations, self.count + AT_ONCE)
            self._write(database, first, self.count)
        started = perf_counter()
        with database.begin() as connection:
            connection.execute(text("SET LOCAL maintenance_work_mem = '1GB'"))
            [index] = [index for index in exchanges.indexes if index.name == "ix_exchanges_embedding"]
            index.create(connection)
        built = perf_counter() - started
        with database.autocommit() as connection:
            connection.execute(text("VACUUM ANALYZE"))
        return built

    def questions(self, number: int) -> Iterator[Question]:
        """Questions about a conversation that is there: a vector near one of its exchanges, a few of its words."""
        for _ in range(number):
            conversation = int(self._random.integers(1, self.count + 1))
            topic, words = self._topic(conversation)
            own = self._random.choice(words, 3)
            common = self._zipf(5)
            asked = " ".join(_word(word) for word in [*own, *common])
            yield Question(text=asked, vector=[*self._near(topic, 0.5).tolist(), *[0.0] * (PADDED - NUMBERS)])

    # --- drawing --------------------------------------------------------------------------------------------

    @staticmethod
    def _unit(vector: Any) -> Floats:
        return (vector / np.linalg.norm(vector, axis=-1, keepdims=True)).astype(np.float32)

    def _topic(self, conversation: int) -> tuple[Floats, NDArray[np.int64]]:
        """Direction and own words of a conversation, from its number alone."""
        own = np.random.default_rng(1_000_003 * conversation)
        neighbourhood = np.random.default_rng(17 * (conversation % 400))  # near neighbours share a subject
        direction = 0.6 * neighbourhood.standard_normal(NUMBERS) + 0.6 * own.standard_normal(NUMBERS)
        words = np.concatenate([neighbourhood.integers(200, VOCABULARY, 30), own.integers(200, VOCABULARY, 20)])
        return self._unit(direction), words

    def _near(self, topic: Floats, spread: float, rows: int | None = None) -> Floats:
        shape = NUMBERS if rows is None else (rows, NUMBERS)
        noise = self._unit(self._random.standard_normal(shape))
        # All vectors of e5 share a direction: cosines of unrelated texts are about 0.75.
        return self._unit(1.5 * self._mean + topic + spread * noise)

    def _zipf(self, number: int) -> NDArray[np.int64]:
        return np.minimum(self._random.zipf(1.15, number), VOCABULARY - 1)

    # --- writing --------------------------------------------------------------------------------------------

    def _write(self, database: Database, first: int, last: int) -> None:
        numbers = range(first, last + 1)
        conversations, messages, words, summaries = StringIO(), StringIO(), StringIO(), StringIO()
        vectors: list[Floats] = []
        for number in numbers:
            topic, own = self._topic(number)
            said = np.concatenate(
                [self._zipf(EXCHANGES * WORDS_AN_EXCHANGE * 2 // 3), self._random.choice(own, EXCHANGES * 20)]
            )
            self._random.shuffle(said)
            conversations.write(f"{number}\t{self._user_id}\tChat {number}\t{len(said)}\n")
            for place, part in enumerate(np.array_split(said, EXCHANGES * 2)):
                role = "assistant" if place % 2 else "user"
                id_ = (number - 1) * EXCHANGES * 2 + place + 1
                model = "\\N" if place % 2 else self._model
                content = " ".join(map(_word, part))
                messages.write(f"{id_}\t{number}\t{self._user_id}\t{role}\t{content}\tt\t{model}\n")
            for word, count in zip(*np.unique(said, return_counts=True), strict=True):
                words.write(f"{number}\t{_word(word)}\t{self._user_id}\t{count}\n")
            vectors.append(self._near(topic, 0.7, EXCHANGES))
            summary = ",".join(f"{value:.5f}" for value in self._near(topic, 0.4)) + ",0" * (PADDED - NUMBERS)
            told = " ".join(map(_word, self._random.choice(own, 30)))
            through = number * EXCHANGES * 2
            summaries.write(
                f"{number}\t{self._user_id}\t{told}\tChat {number}\\n{told}\t[{summary}]\t{self._model}\t{through}\n"
            )
        with database.begin() as connection:
            cursor = connection.connection.cursor()
            for target, source in (
                ("conversations (id, user_id, title, words)", conversations),
                ("messages (id, conversation_id, user_id, role, content, words_indexed, exchange_model)", messages),
                ("conversation_words (conversation_id, word, user_id, count)", words),
                (
                    "conversation_summaries (conversation_id, user_id, summary, indexed_text, embedding,"
                    " embedding_model, through_message_id)",
                    summaries,
                ),
            ):
                source.seek(0)
                cursor.copy_expert(f"COPY {target} FROM STDIN", source)
            columns = "(message_id, piece, conversation_id, user_id, embedding, embedding_model)"
            rows = BytesIO(self._exchange_rows(first, np.concatenate(vectors)))
            cursor.copy_expert(f"COPY exchanges {columns} FROM STDIN (FORMAT binary)", rows)

    def _exchange_rows(self, first: int, vectors: Floats) -> bytes:
        """The rows in PostgreSQL's binary COPY format, which spares writing and reading a billion numbers as text."""
        model = self._model.encode()
        row = np.dtype(
            [
                ("columns", ">i2"),
                ("message_size", ">i4"),
                ("message_id", ">i8"),
                ("piece_size", ">i4"),
                ("piece", ">i2"),
                ("conversation_size", ">i4"),
                ("conversation_id", ">i8"),
                ("user_size", ">i4"),
                ("user_id", ">i8"),
                ("embedding_size", ">i4"),
                ("dimensions", ">i2"),
                ("unused", ">i2"),
                ("embedding", ">f2", PADDED),
                ("model_size", ">i4"),
                ("model", f"S{len(model)}"),
            ]
        )
        rows = np.zeros(len(vectors), row)
        rows["columns"] = 6
        for name, size in (("message", 8), ("piece", 2), ("conversation", 8), ("user", 8)):
            rows[f"{name}_size"] = size
        place = np.arange(len(vectors))
        rows["conversation_id"] = first + place // EXCHANGES
        rows["message_id"] = ((first - 1) * EXCHANGES + place) * 2 + 1
        rows["user_id"] = self._user_id
        rows["embedding_size"] = 4 + 2 * PADDED
        rows["dimensions"] = PADDED
        rows["embedding"][:, :NUMBERS] = vectors
        rows["model_size"] = len(model)
        rows["model"] = model
        return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"


def _word(number: Any) -> str:
    return f"wort{number}x"

"""`python -m benchmarks.scale`: how recall's time and size grow with the memory, from 1,000 to 50,000 conversations.

The memory is synthetic (synthetic.py); the search is the product's own. Next to the time stands how often its three
conversations are those of an exact search, and the time of embedding one real question on this machine.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
from sqlalchemy import text

from benchmarks.synthetic import EXCHANGES, Question, SyntheticMemory
from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.embeddings import BuiltInEmbeddings, Vector
from jarvis_memory.memory_context import build_memory_context
from jarvis_memory.recall import recall_conversations
from jarvis_memory.settings import Settings
from jarvis_memory.users import ensure_user

Result = TypeVar("Result")

QUESTIONS = 100
REAL_QUESTION = "Was hatten wir letzten Monat über die Reparatur der Heizung besprochen?"


class SyntheticEmbeddings:
    """The built-in model's time, with the vector of the synthetic question in place of its own."""

    # Of another model than the built-in one recall takes every message for a question to the memory.
    model = "synthetic"

    def __init__(self, model: BuiltInEmbeddings) -> None:
        self._model = model
        self.vector: Vector = []

    def embed_query(self, _: str) -> Vector:
        self._model.embed_query(REAL_QUESTION)
        return self.vector

    def embed_passages(self, texts: object) -> list[Vector]:
        raise NotImplementedError


def main() -> int:
    """Grow the memory step by step and print a row for each size."""
    arguments = argparse.ArgumentParser(description="Recall in a large memory.")
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000], metavar="N")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Settings(_env_file=None, jarvis_data_dir=Path(folder)))
        try:
            measure(database, sorted(options.sizes))
        finally:
            database.close()
    return 0


def measure(database: Database, sizes: list[int]) -> None:
    """Print the table."""
    migrate(database)
    with database.begin() as connection:
        user_id = ensure_user(connection)
    embeddings = SyntheticEmbeddings(BuiltInEmbeddings())
    embeddings.embed_query("")
    memory = SyntheticMemory(user_id=user_id, model=embeddings.model)
    print("Times in ms, p50 / p95 of 100 questions.\n")
    print(
        "| conversations | exchanges | embedding | SQL | SQL, exact | whole context | as exact |"
        " index of vectors | words | all | index built in |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for size in sizes:
        built = memory.grow(database, size)
        questions = list(memory.questions(QUESTIONS + 20))
        for question in questions[:20]:
            found(database, user_id, embeddings.model, question)  # warm
        asked = questions[20:]
        embedding, _ = timed(asked, lambda _: embeddings.embed_query(""))
        sql, answers = timed(asked, lambda question: found(database, user_id, embeddings.model, question))
        slow, exact = timed(asked, lambda question: found(database, user_id, embeddings.model, question, exact=True))

        def whole(question: Question) -> None:
            embeddings.vector = question.vector
            build_memory_context(
                database=database,
                embeddings=embeddings,
                user_id=user_id,
                conversation_id=0,
                message=question.text,
                already_recalled=[],
                facts_budget=20_000,
                language="de",
            )

        context, _ = timed(asked, whole)
        same = sum(set(one) == set(other) for one, other in zip(answers, exact, strict=True))
        sizes_on_disk = " | ".join(f"{megabytes:.0f} MB" for megabytes in disk(database))
        print(
            f"| {size} | {size * EXCHANGES} | {embedding} | {sql} | {slow} | {context} | {same} of {QUESTIONS} |"
            f" {sizes_on_disk} | {built:.0f} s |",
            flush=True,
        )


def timed(questions: list[Question], call: Callable[[Question], Result]) -> tuple[str, list[Result]]:
    """The 50th and the 95th percentile of the call's time, and what it returned."""
    times, results = [], []
    for question in questions:
        started = perf_counter()
        results.append(call(question))
        times.append(perf_counter() - started)
    p50, p95 = np.percentile(times, [50, 95]) * 1_000
    return f"{p50:.1f} / {p95:.1f}", results


def found(database: Database, user_id: int, model: str, question: Question, *, exact: bool = False) -> list[int]:
    """The conversations that recall finds; `exact` looks at every vector."""
    with database.begin() as connection:
        if exact:
            connection.execute(text("SET LOCAL enable_indexscan = off"))
        return [
            conversation.id
            for conversation in recall_conversations(
                connection,
                user_id=user_id,
                message=question.text,
                embedding=question.vector,
                embedding_model=model,
            )
        ]


def disk(database: Database) -> list[float]:
    """Megabytes of the index of vectors, of the words with their indexes, and of the whole database."""
    with database.begin() as connection:
        row = connection.execute(
            text(
                """SELECT pg_relation_size('ix_exchanges_embedding'), pg_total_relation_size('conversation_words'),
                          pg_database_size(current_database())"""
            )
        ).one()
    return [size / 1_000_000 for size in row]


if __name__ == "__main__":
    sys.exit(main())

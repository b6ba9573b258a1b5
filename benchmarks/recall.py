"""`python -m benchmarks.recall --locomo FILE` and `--german`: does recall find the right conversation, and how fast?

Everything goes through the product's own code: its tables, its indexer, its search. Next to it, in the same run,
stands the design that recall started from: cosine on the summaries alone.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from sqlalchemy import text

from benchmarks.sets import Asked, RecallSet, german_set, locomo_set
from jarvis_memory.conversations import create_conversation, insert_message
from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.embeddings import Embeddings, Vector, build_embeddings
from jarvis_memory.indexing import index_some
from jarvis_memory.recall import recall_conversations, search_similar_conversation_summaries
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import upsert_conversation_summary
from jarvis_memory.users import ensure_user


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one way of searching found for one question."""

    asked: Asked
    found: list[str]

    @property
    def hit(self) -> bool:
        return bool(self.asked.answers & set(self.found))

    @property
    def recall(self) -> float:
        return len(self.asked.answers & set(self.found)) / len(self.asked.answers)

    @property
    def reciprocal_rank(self) -> float:
        ranks = [rank for rank, key in enumerate(self.found, 1) if key in self.asked.answers]
        return 1 / ranks[0] if ranks else 0.0


def main() -> int:
    """Measure the sets that were asked for, each in a database of its own."""
    arguments = argparse.ArgumentParser(description="Quality and speed of recall.")
    arguments.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    arguments.add_argument("--german", action="store_true", help="the German set of this folder")
    arguments.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the filled databases for the next run")
    options = arguments.parse_args()
    sets = [locomo_set(options.locomo)] if options.locomo else []
    sets += [german_set()] if options.german else []
    if not sets:
        arguments.error("Name a set: --locomo FILE, --german or both.")
    with tempfile.TemporaryDirectory() as folder:
        for one in sets:
            measure(one, (options.keep or Path(folder)) / one.name)
    return 0


def measure(recall_set: RecallSet, folder: Path) -> None:
    """Fill a database with the set, ask its questions, print the figures."""
    settings = Settings(_env_file=None, jarvis_data_dir=folder)
    database, embeddings = open_database(settings), build_embeddings(settings)
    try:
        migrate(database)
        with database.begin() as connection:
            user_id = ensure_user(connection)
        keys = fill(database, user_id, recall_set)
        started = perf_counter()
        while index_some(database, embeddings):
            pass
        print(f"\n## {recall_set.name}: {len(recall_set.told)} conversations, {len(recall_set.asked)} questions")
        print(f"Indexing took {perf_counter() - started:.0f} s ({embeddings.model}).")
        ask(database, embeddings, user_id, keys, recall_set)
    finally:
        database.close()


def fill(database: Database, user_id: int, recall_set: RecallSet) -> dict[int, str]:
    """Write the conversations as chats would, unless they are there from an earlier run. Their keys by their ids."""
    keys = {}
    with database.begin() as connection:
        ids = connection.scalars(text("SELECT id FROM conversations WHERE user_id = :id ORDER BY id"), {"id": user_id})
        there = list(ids)
    for place, told in enumerate(recall_set.told):
        if place < len(there):
            keys[there[place]] = told.key
            continue
        with database.begin() as connection:
            chat = create_conversation(connection, user_id=user_id)
            for turn, content in enumerate(told.messages):
                role = "assistant" if turn % 2 else "user"
                last = insert_message(connection, user_id=user_id, conversation_id=chat, role=role, content=content)
            dates = {"id": chat, "title": told.title, "date": told.date}
            connection.execute(
                text(
                    """UPDATE conversations SET title = :title, title_by_user = true, created_at = :date,
                       updated_at = :date WHERE id = :id"""
                ),
                dates,
            )
            connection.execute(text("UPDATE messages SET created_at = :date WHERE conversation_id = :id"), dates)
            upsert_conversation_summary(
                connection, user_id=user_id, conversation_id=chat, summary=told.summary, through_message_id=last
            )
        keys[chat] = told.key
    return keys


def ask(database: Database, embeddings: Embeddings, user_id: int, keys: dict[int, str], recall_set: RecallSet) -> None:
    """Ask every question both ways and print what came of it."""
    seconds: dict[str, list[float]] = {"embedding": [], "SQL": []}

    def timed(what: str, call: Callable[[], list[int]]) -> list[int]:
        started = perf_counter()
        result = call()
        seconds[what].append(perf_counter() - started)
        return result

    jarvis, seed = [], []
    for asked in recall_set.asked:
        started = perf_counter()
        vector = embeddings.embed_query(asked.text)
        seconds["embedding"].append(perf_counter() - started)

        def by_jarvis(asked: Asked = asked, vector: Vector = vector) -> list[int]:
            with database.begin() as connection:
                found = recall_conversations(
                    connection,
                    user_id=user_id,
                    message=asked.text,
                    embedding=vector,
                    embedding_model=embeddings.model,
                    now=recall_set.today,
                )
            return [conversation.id for conversation in found]

        jarvis.append(Answer(asked=asked, found=[keys[number] for number in timed("SQL", by_jarvis)]))
        with database.begin() as connection:
            nearest = search_similar_conversation_summaries(
                connection, user_id=user_id, embedding=vector, embedding_model=embeddings.model
            )
        seed.append(Answer(asked=asked, found=[keys[number] for number in nearest]))
    report(jarvis, seed)
    for what, times in seconds.items():
        p50, p95 = np.percentile(times, [50, 95]) * 1_000
        print(f"{what}: p50 {p50:.1f} ms, p95 {p95:.1f} ms")


def report(jarvis: list[Answer], seed: list[Answer]) -> None:
    """Print the table: hit@3, recall@3 and MRR of both, by kind, by half and in total."""
    print("\n| questions | number | hit@3 | recall@3 | MRR | hit@3 of the seed | recall@3 | MRR |")
    print("|---|---|---|---|---|---|---|---|")
    answered = [place for place, answer in enumerate(jarvis) if answer.asked.answers]
    kinds = dict.fromkeys(jarvis[place].asked.kind for place in answered)
    groups: list[tuple[str, list[int]]] = [
        (kind, [place for place in answered if jarvis[place].asked.kind == kind]) for kind in kinds
    ]
    for half in ("tune", "report"):
        groups.append((f"all, half “{half}”", [place for place in answered if jarvis[place].asked.half == half]))
    groups.append(("all", answered))
    for name, places in groups:
        figures = [*_figures(jarvis[place] for place in places), *_figures(seed[place] for place in places)]
        print(f"| {name} | {len(places)} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")
    empty = [answer for answer in jarvis if not answer.asked.answers]
    for kind in dict.fromkeys(answer.asked.kind for answer in empty):
        for half in ("tune", "report"):
            of_kind = [a for a in empty if a.asked.kind == kind and a.asked.half == half]
            right = sum(not answer.found for answer in of_kind)
            print(f"\n{kind}, half “{half}”: rightly recalled nothing in {right} of {len(of_kind)}")


def _figures(answers: Iterable[Answer]) -> list[float]:
    rows = [(answer.hit, answer.recall, answer.reciprocal_rank) for answer in answers]
    return [float(value) for value in np.mean(rows, axis=0)]


if __name__ == "__main__":
    sys.exit(main())

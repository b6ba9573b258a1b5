"""`python -m benchmarks.documents`: does the search find the right passage, and what does a long document cost?

Everything goes through the product's own code. In the same run stand its two halves: the vectors alone and BM25 alone.
The documents and questions in documents_set/ are ours; what they are like is told in README.md.
"""

import argparse
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import psutil
from sqlalchemy import text

from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.document_index import read_next_document
from jarvis_memory.document_search import search_passages
from jarvis_memory.documents import add_document, delete_document, get_document
from jarvis_memory.embeddings import Embeddings, Vector, build_embeddings
from jarvis_memory.indexing import index_some
from jarvis_memory.settings import Settings
from jarvis_memory.users import ensure_user
from tests.document_files import pdf_of

FOLDER = Path(__file__).with_name("documents_set")
FOUND = 5
LINES_A_PAGE, CHARACTERS_A_LINE = 40, 68
WAYS = ("both", "vectors", "BM25")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question, and the words of the passage that answers it."""

    text: str
    document: str
    quote: str
    kind: str
    half: str  # "tune" or "report"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A passage that a search found."""

    document: str
    content: str


def main() -> int:
    """Quality on the set, then the long document."""
    arguments = argparse.ArgumentParser(description="Quality and cost of the knowledge base.")
    arguments.add_argument("--pages", type=int, default=300, metavar="N", help="of the long PDF; 0 leaves it out")
    arguments.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the filled database for the next run")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, jarvis_data_dir=options.keep or Path(folder))
        database, embeddings = open_database(settings), build_embeddings(settings)
        try:
            migrate(database)
            with database.begin() as connection:
                user_id = ensure_user(connection)
            embeddings.embed_query("")  # loaded
            fill(database, user_id, settings, embeddings)
            ask(database, embeddings, user_id, questions())
            if options.pages:
                long_document(database, embeddings, user_id, settings, options.pages)
        finally:
            database.close()
    return 0


def questions() -> list[Asked]:
    """All questions; every second one of each kind is for reporting."""
    asked: list[Asked] = []
    seen: dict[str, int] = {}
    for path in sorted(FOLDER.glob("questions_*.json")):
        for one in json.loads(path.read_text(encoding="utf-8")):
            number = seen[one["kind"]] = seen.get(one["kind"], 0) + 1
            half = "report" if number % 2 else "tune"
            asked.append(
                Asked(text=one["question"], document=one["document"], quote=one["quote"], kind=one["kind"], half=half)
            )
    return asked


def fill(database: Database, user_id: int, settings: Settings, embeddings: Embeddings) -> None:
    """Add, read and embed the documents of the set."""
    for path in sorted(FOLDER.glob("*.md")):
        with database.begin() as connection:
            add_document(connection, user_id=user_id, name=path.name, content=path.read_bytes(), megabytes=50)
    while read_next_document(database, settings):
        pass
    while index_some(database, embeddings):
        pass


def ask(database: Database, embeddings: Embeddings, user_id: int, asked: list[Asked]) -> None:
    """Ask every question in each way, and print how often the passage was among the first FOUND."""
    seconds: dict[str, list[float]] = {way: [] for way in ("embedding", *WAYS)}
    hits: dict[str, list[bool]] = {way: [] for way in WAYS}
    for one in asked:
        started = perf_counter()
        vector = embeddings.embed_query(one.text)
        seconds["embedding"].append(perf_counter() - started)
        for way in WAYS:
            started = perf_counter()
            found = search(database, user_id, one.text, vector, embeddings.model, way)
            seconds[way].append(perf_counter() - started)
            hits[way].append(any(answers(passage, one) for passage in found))
    chunks = count(database, "document_chunks")
    print(f"\n## {count(database, 'documents')} documents, {chunks} passages, {len(asked)} questions: hit@{FOUND}\n")
    print("| questions | number | " + " | ".join(WAYS) + " |\n|---|---|" + "---|" * len(WAYS))
    for name, places in groups(asked):
        rates = [float(np.mean([hits[way][place] for place in places])) for way in WAYS]
        print(f"| {name} | {len(places)} | " + " | ".join(f"{rate:.3f}" for rate in rates) + " |")
    for what, times in seconds.items():
        p50, p95 = np.percentile(np.array(times) * 1000, [50, 95])
        print(f"{what}: {p50:.1f} ms (p50), {p95:.1f} ms (p95)")


def groups(asked: list[Asked]) -> Iterable[tuple[str, list[int]]]:
    """The rows of the table: the places of the questions of each kind, of each half, and all."""
    for kind in dict.fromkeys(one.kind for one in asked):
        yield kind, [place for place, one in enumerate(asked) if one.kind == kind]
    for half in ("tune", "report"):
        yield f"all, half “{half}”", [place for place, one in enumerate(asked) if one.half == half]
    yield "all", list(range(len(asked)))


def search(database: Database, user_id: int, query: str, vector: Vector, model: str, way: str) -> list[Found]:
    """The first FOUND passages in this way of searching."""
    with database.begin() as connection:
        if way == "vectors":
            rows = connection.execute(
                text(
                    """SELECT d.name AS document, c.content FROM document_chunks c JOIN documents d
                       ON d.id = c.document_id WHERE c.user_id = :user_id AND c.embedding_model = :model
                       ORDER BY c.embedding <=> CAST(:vector AS vector) LIMIT :limit"""
                ),
                {"user_id": user_id, "model": model, "vector": str(vector), "limit": FOUND},
            )
            return [Found(document=row.document, content=row.content) for row in rows]
        passages = search_passages(
            connection,
            user_id=user_id,
            query=query,
            embedding=vector if way == "both" else None,
            embedding_model=model,
            limit=FOUND,
        )
    return [Found(document=one.document, content=one.content) for one in passages]


def answers(passage: Found, asked: Asked) -> bool:
    """Whether the passage has the words of the answer; of a quote that is cut in two, the greater part."""
    said, quote = squeezed(passage.content), squeezed(asked.quote)
    half = len(quote) // 2 + 1
    return passage.document == asked.document and (quote in said or quote[:half] in said or quote[-half:] in said)


def squeezed(said: str) -> str:
    return re.sub(r"[\s*_`#]+", " ", said).strip()


def count(database: Database, table: str) -> int:
    with database.begin() as connection:
        return int(connection.scalars(text(f"SELECT count(*) FROM {table}")).one())


def long_document(database: Database, embeddings: Embeddings, user_id: int, settings: Settings, pages: int) -> None:
    """Until a long PDF is searchable, the memory that takes, and what a question waits meanwhile."""
    print(f"\n## A PDF of {pages} pages\n")
    memory = Memory()
    question = "Wie lange ist die Frist für die Kündigung der Wohnung?"
    before = timed(lambda: embeddings.embed_query(question), 30)
    pdf = long_pdf(pages)
    started = perf_counter()
    with database.begin() as connection:
        number, _ = add_document(connection, user_id=user_id, name="lang.pdf", content=pdf, megabytes=50)
    while read_next_document(database, settings):
        pass
    words = perf_counter() - started
    with database.begin() as connection:
        document = get_document(connection, user_id=user_id, document_id=number, embedding_model=embeddings.model)
    print(f"{document.pages} pages, {document.chunks} passages, {len(pdf) / 1e6:.1f} MB")
    print(f"searchable by words after {words:.1f} s; largest process then {memory.largest():.0f} MB")
    stop = threading.Event()

    def embed() -> None:
        while not stop.is_set() and index_some(database, embeddings, stop=stop.is_set):
            pass

    indexing = threading.Thread(target=embed)
    started = perf_counter()
    indexing.start()
    sleep(2)
    during = timed(lambda: embeddings.embed_query(question), 30)
    done = count_embedded(database, number, embeddings.model)
    rate = done / (perf_counter() - started)
    stop.set()
    indexing.join()
    print(f"vectors: {rate:.1f} passages a second, so {document.chunks / rate:.0f} s for all")
    for name, times in (("idle", before), ("while it is embedded", during)):
        print(f"embedding a question, {name}: {times[0]:.0f} ms (p50), {times[1]:.0f} ms (p95)")
    print(f"largest process at the end: {memory.largest():.0f} MB")
    memory.stop()
    # A kept database is asked again.
    with database.begin() as connection:
        delete_document(connection, user_id=user_id, document_id=number)


def timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    """p50 and p95 in ms."""
    taken = []
    for _ in range(times):
        started = perf_counter()
        call()
        taken.append((perf_counter() - started) * 1000)
    p50, p95 = np.percentile(taken, [50, 95])
    return float(p50), float(p95)


def count_embedded(database: Database, document_id: int, model: str) -> int:
    query = text("SELECT count(*) FROM document_chunks WHERE document_id = :id AND embedding_model = :model")
    with database.begin() as connection:
        return int(connection.scalars(query, {"id": document_id, "model": model}).one())


def long_pdf(pages: int) -> bytes:
    """The documents of the set one after the other, over and over, each time with other numbers."""
    words = re.sub(r"\s+", " ", " ".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))))
    size = LINES_A_PAGE * CHARACTERS_A_LINE
    made = []
    for page in range(pages):
        begin = page * size % max(1, len(words) - size)
        said = words[begin : begin + size].encode("cp1252", "replace").decode("cp1252")
        lines = [said[at : at + CHARACTERS_A_LINE] for at in range(0, size, CHARACTERS_A_LINE)]
        made.append("\n".join([f"Seite {page + 1}, Vorgang {page * 7919 % 10007}", *lines]))
    return pdf_of(made)


class Memory:
    """Watches this process and its children: the most memory that one of them had, in MB."""

    def __init__(self) -> None:
        self._most = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        own = psutil.Process()
        while not self._stop.wait(0.05):
            for process in (own, *own.children(recursive=True)):
                try:
                    self._most = max(self._most, process.memory_info().rss / 1e6)
                except psutil.Error:
                    continue

    def largest(self) -> float:
        """In MB, of one process."""
        return self._most

    def stop(self) -> None:
        """No more looking."""
        self._stop.set()
        self._thread.join()


if __name__ == "__main__":
    sys.exit(main())

"""After "delete everything" no text of the person is left in any file of the embedded database."""

import random
import string
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from jarvis_memory import erasure
from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.documents import rename_document
from jarvis_memory.erasure import delete_everything
from jarvis_memory.facts import remember_fact, update_fact
from jarvis_memory.forgetting import forget_fact
from jarvis_memory.settings import Settings
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import (
    InBackground,
    OneVector,
    beside_the_memory,
    one,
    run,
    said,
    somebody_else,
    summary_of,
    wait_until,
)
from tests.integration.test_documents import Library
from tests.integration.turns import ask


class Words:
    """Words that stand nowhere else, so that one that is left in a file is found."""

    def __init__(self) -> None:
        self._numbers = random.Random(4711)
        self.all: list[str] = []

    def new(self) -> str:
        self.all.append("".join(self._numbers.choices(string.ascii_lowercase, k=14)))
        return self.all[-1]

    def long_text(self) -> str:
        """Far beyond what fits into a row, and not to be compressed: it is stored out of line."""
        filling = "".join(self._numbers.choices(string.ascii_letters + string.digits + " ", k=30_000))
        return f"Das Wort {self.new()} {filling} {self.new()} ist das Ende"


@pytest.fixture
def parts(tmp_path: Path, claude: FakeClaude) -> Iterator[Parts]:
    """Parts with a data folder, and so with a server, of their own."""
    settings = Settings(
        _env_file=None, jarvis_data_dir=tmp_path, anthropic_api_key="test-key", anthropic_base_url=claude.base_url
    )
    parts = build_parts(settings, embeddings=OneVector())
    yield parts
    parts.close()
    assert claude.refused == []


@pytest.fixture
def found(tmp_path: Path) -> Callable[[list[str]], dict[str, list[str]]]:
    """Says which words stand in which files of the data folder: tables, log of the transactions, log of the server."""

    def search(words: list[str]) -> dict[str, list[str]]:
        places: dict[str, list[str]] = {}
        for path in sorted(tmp_path.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                for word in words:
                    if word.encode() in content:
                        places.setdefault(word, []).append(str(path.relative_to(tmp_path)))
        return places

    return search


def checkpoint(parts: Parts) -> None:
    """What is in memory is in the files now, and the planner has its statistics."""
    assert parts.database.embedded
    with closing(parts.database.embedded.admin_connect("jarvis")) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("ANALYZE")
        cursor.execute("CHECKPOINT")


def lived(parts: Parts, claude: FakeClaude, words: Words) -> None:
    """A life with JARVIS: long and short messages, tools, facts corrected and forgotten, summaries, a title, Retry."""
    claude.say_to_summary(f"Titel: {words.new()}\nZusammenfassung: Es ging um {words.new()} und {words.new()}.")
    claude.say(
        [f"Antwort {words.new()}", ToolUse("remember_fact", {"fact": f"Der Hund heißt {words.new()}"})],
        f"Gemerkt {words.new()}",
    )
    chat = ask(parts, f"Merk dir, dass der Hund {words.new()} heißt").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.embedding_model)
    ask(parts, f"Was war mit dem Hund {words.new()}?")
    ask(parts, words.long_text(), remember=False)
    claude.say(words.long_text())
    ask(parts, f"Erzähl von {words.new()}")
    fact, _ = remember_fact(parts.database, user_id=parts.user_id, fact=f"Der Kater heißt {words.new()}")
    update_fact(parts.database, user_id=parts.user_id, fact_id=fact.id, fact=f"Der Kater heißt {words.new()}")
    assert forget_fact(parts.database, user_id=parts.user_id, fact_id=fact.id).id
    library = Library(parts.database, parts.user_id)
    library.add(f"{words.new()}.md", f"# {words.new()}\n\n{words.long_text()}")
    renamed = library.add(f"{words.new()}.txt", f"Ein Brief von {words.new()}")
    wait_until(lambda: not any(library.get(number).is_pending for number in library.numbers()))
    with parts.database.begin() as connection:
        rename_document(connection, user_id=parts.user_id, document_id=renamed, name=f"{words.new()}.txt")
    beside_the_memory(parts.database, parts.user_id, chat, words.new())
    run(
        parts.database,
        "UPDATE conversations SET title = :title, title_by_user = true WHERE user_id = :user_id",
        title=words.new(),
        user_id=parts.user_id,
    )
    wait_until(lambda: not parts.background._at_work)


def test_no_word_is_left_in_any_file(
    parts: Parts, claude: FakeClaude, found: Callable[[list[str]], dict[str, list[str]]]
) -> None:
    words = Words()
    lived(parts, claude, words)
    checkpoint(parts)
    assert sorted(found(words.all)) == sorted(words.all), "a search that finds nothing would prove nothing"
    receipt = delete_everything(parts.database, user_id=parts.user_id)
    assert (receipt.conversations, receipt.messages, receipt.facts, receipt.documents) == (4, 8, 1, 3)
    assert found(words.all) == {}
    checkpoint(parts)
    assert found(words.all) == {}, "nor does one come back from the memory of the server"


def test_no_word_is_left_in_the_statistics_of_the_planner(parts: Parts) -> None:
    words = [f"Wort{number:04}" for number in range(300)]
    for word in words:
        said(parts.database, parts.user_id, (word, f"Ja, {word}"), title=word, summary=word)
        remember_fact(parts.database, user_id=parts.user_id, fact=word)
    checkpoint(parts)
    delete_everything(parts.database, user_id=parts.user_id)
    assert parts.database.embedded
    with closing(parts.database.embedded.admin_connect("jarvis")) as connection, connection.cursor() as cursor:
        # Compressed in the files, so that a search there would not find them.
        cursor.execute("SELECT s::text FROM pg_statistic s WHERE s::text ILIKE '%wort0%'")
        assert cursor.fetchall() == []


def test_the_words_of_somebody_else_are_still_there(
    parts: Parts, claude: FakeClaude, found: Callable[[list[str]], dict[str, list[str]]]
) -> None:
    mine, theirs = Words(), ["xylophonspielerin", "quittengeleeglas"]
    stranger = somebody_else(parts.database)
    said(parts.database, stranger, (theirs[0], "Ja."), summary=f"Es ging um {theirs[0]}")
    remember_fact(parts.database, user_id=stranger, fact=f"Ich mag {theirs[1]}")
    lived(parts, claude, mine)
    delete_everything(parts.database, user_id=parts.user_id)
    checkpoint(parts)
    assert found(mine.all) == {}
    assert sorted(found(theirs)) == sorted(theirs)
    assert one(parts.database, "SELECT count(*) AS n FROM messages").n == 2


def test_a_transaction_that_looks_at_the_past_is_waited_for(
    parts: Parts,
    found: Callable[[list[str]], dict[str, list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = Words()
    said(parts.database, parts.user_id, (words.new(), words.new()))
    waiting = threading.Event()

    def sleep(seconds: float) -> None:
        waiting.set()
        time.sleep(seconds)

    monkeypatch.setattr(erasure, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    with parts.database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        # A snapshot from before, of which VACUUM must not take the rows.
        old.exec_driver_sql("SELECT 1")
        deletion = InBackground(lambda: delete_everything(parts.database, user_id=parts.user_id))
        assert waiting.wait(60)
        old.rollback()
    assert deletion.result().messages == 2
    checkpoint(parts)
    assert found(words.all) == {}


def test_a_transaction_that_does_not_end_is_not_waited_for_for_ever(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(erasure, "OLDER_TRANSACTIONS_SECONDS", 0.1)
    said(parts.database, parts.user_id, ("Hallo", "Guten Tag"))
    with parts.database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as old:
        old.exec_driver_sql("SELECT 1")
        assert delete_everything(parts.database, user_id=parts.user_id).messages == 2
    assert "transaction is still open" in caplog.text

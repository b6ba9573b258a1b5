"""A document that was made to break its reader breaks nothing else: the right error, and no process is left."""

import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

from jarvis_memory import document_process
from jarvis_memory.document_chunks import Chunk
from jarvis_memory.document_process import CHUNKS, ReadDocument, read_document
from jarvis_memory.errors import (
    DocumentBroken,
    DocumentLocked,
    DocumentReadingStopped,
    DocumentTooFine,
    DocumentTooHungry,
    DocumentTooLong,
    DocumentTooManyPages,
    DocumentTooSlow,
    DocumentUnreadable,
)
from tests.document_files import LOREM, docx_of, exploding_docx, exploding_pdf, laughing_docx, laughing_odt, pdf_of

# Ten seconds of work in a file of some kilobytes.
SLOW = exploding_pdf(b"(abc def) Tj T* " * 1_000, 300)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


def read(
    name: str,
    data: bytes,
    *,
    pages: int = 3_000,
    seconds: float = 60,
    megabytes: int = 300,
    stop: Callable[[], bool] = lambda: False,
) -> ReadDocument:
    return read_document(name, data, pages=pages, seconds=seconds, megabytes=megabytes, stop=stop)


def with_child(do: Callable[[psutil.Process], None]) -> Callable[[], bool]:
    """A `stop` that never stops, but does this once the reading process is at work."""
    done: list[psutil.Process] = []

    def stop() -> bool:
        for process in psutil.Process().children():
            if not done and document_process.__name__ in process.cmdline():
                done.append(process)
                do(process)
        return False

    return stop


def answering(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let the process be this Python instead."""
    popen = subprocess.Popen
    monkeypatch.setattr(
        document_process.subprocess, "Popen", lambda _, **options: popen([sys.executable, "-c", script], **options)
    )


def test_a_document_is_read_in_chunks_with_their_headings_and_pages() -> None:
    assert read("Vertrag.pdf", pdf_of(["§ 5 Kündigung\nDie Frist.", "Größe"])) == ReadDocument(
        kind="pdf",
        pages=2,
        chunks=[
            Chunk(number=0, page=1, heading="§ 5 Kündigung", content="Die Frist."),
            Chunk(number=1, page=2, heading="§ 5 Kündigung", content="Größe"),
        ],
    )
    document = read("B\x00rie\ud800f ü\n.md", "# Über\n\nText".encode())
    assert document == ReadDocument(
        kind="markdown", pages=0, chunks=[Chunk(number=0, page=None, heading="Über", content="Text")]
    )


def test_a_pdf_of_2000_pages_is_read() -> None:
    document = read("Buch.pdf", pdf_of([f"Seite {number}\n{LOREM}" for number in range(1, 2_001)]))
    assert document.pages == len(document.chunks) == 2_000
    assert document.chunks[-1].page == 2_000
    assert document.chunks[-1].content == f"Seite 2000 {LOREM}"


@pytest.mark.parametrize(
    ("name", "data", "error", "details"),
    [
        ("a.pdf", pdf_of(["x"], password="x"), DocumentLocked, {}),
        ("a.pdf", pdf_of(["x"] * 11), DocumentTooManyPages, {"limit": 10}),
        ("a.docx", laughing_docx(), DocumentBroken, {"cause": "XMLSyntaxError"}),
        ("a.odt", laughing_odt(), DocumentBroken, {"cause": "XMLSyntaxError"}),
        ("a.pdf", exploding_pdf(b" (x) Tj " * 10_000, 20_000), DocumentBroken, {"cause": "LimitReachedError"}),
        ("a.docx", exploding_docx(b" " * 1_000_000, 2_000), DocumentTooLong, {"limit": 10_000_000}),
    ],
    ids=["locked", "pages", "laughing docx", "laughing odt", "exploding pdf", "exploding docx"],
)
def test_what_cannot_be_read_is_refused(
    name: str, data: bytes, error: type[DocumentUnreadable], details: dict[str, object]
) -> None:
    with pytest.raises(DocumentUnreadable) as raised:
        read(name, data, pages=10)
    assert (type(raised.value), raised.value.details) == (error, details)


def test_a_document_that_takes_too_much_memory_is_refused() -> None:
    for data in (
        exploding_docx(b"<w:p/>" * 100_000, 300),
        exploding_docx(b"<w:p/>" * 100_000, 5_000, said_size=1_000),  # 3 GB that say they are 1 KB
    ):
        with pytest.raises(DocumentTooHungry) as raised:
            read("a.docx", data)
        assert raised.value.details == {"limit": 300}


def test_a_text_that_falls_into_too_many_passages_is_refused() -> None:
    with pytest.raises(DocumentTooFine) as raised:
        read("fein.md", b"# a\nb\n" * (CHUNKS + 1), pages=10)
    assert raised.value.details["limit"] == CHUNKS


def test_the_process_limits_its_memory_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the parent's eye on it.
    monkeypatch.setattr(document_process.psutil.Process, "memory_info", lambda _: SimpleNamespace(rss=0))
    with pytest.raises(DocumentTooHungry):
        read("a.docx", exploding_docx(b"<w:p/>" * 100_000, 300))  # unpacked, it is too much
    with pytest.raises(DocumentTooHungry):
        read("a.docx", exploding_docx(b"<w:p/>" * 100_000, 60))  # parsed, it is


def test_the_parent_limits_the_memory_where_the_system_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "x = b'x' * 400_000_000\nimport time\ntime.sleep(60)")
    with pytest.raises(DocumentTooHungry):
        read("a.txt", b"x")


def test_a_document_that_takes_too_long_is_refused() -> None:
    with pytest.raises(DocumentTooSlow) as raised:
        read("a.pdf", SLOW, seconds=0.5)
    assert raised.value.details == {"limit": 0.5}


def test_a_process_that_sleeps_takes_too_long_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "import time\ntime.sleep(60)")
    with pytest.raises(DocumentTooSlow):
        read("a.txt", b"x", seconds=0.3)


def test_an_ordinary_document_is_read_with_little_memory() -> None:
    assert read("a.docx", docx_of(*[(LOREM, "Normal")] * 300), megabytes=120).chunks


def test_the_reading_can_be_stopped() -> None:
    with pytest.raises(DocumentReadingStopped):
        read("a.pdf", SLOW, stop=lambda: True)


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGXCPU, DocumentTooSlow), (signal.SIGSEGV, DocumentBroken), (signal.SIGKILL, DocumentBroken)],
)
def test_a_process_that_dies_is_an_error_of_the_document(
    number: signal.Signals, error: type[DocumentUnreadable], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(DocumentUnreadable) as raised:
        read("Geheimer Name.pdf", SLOW, stop=with_child(lambda process: process.send_signal(number)))
    assert type(raised.value) is error
    assert "Geheim" not in caplog.text
    assert bool(caplog.records) == (error is DocumentBroken)


def test_the_process_has_its_limits_and_goes_behind_everything_else() -> None:
    found: dict[str, object] = {}

    def look(process: psutil.Process) -> None:
        for _ in range(200):
            if process.nice() == 10:  # the last of what it does before it reads
                break
            psutil.wait_procs([process], timeout=0.05)
        for name in ("AS", "CPU", "FSIZE", "CORE"):
            found[name] = process.rlimit(getattr(psutil, f"RLIMIT_{name}"))

    with pytest.raises(DocumentTooSlow):
        read("a.pdf", SLOW, seconds=1.5, stop=with_child(look))
    assert found == {
        "AS": (400_000_000, 400_000_000),
        "CPU": (3, 4),
        "FSIZE": (100_000_000, 100_000_000),
        "CORE": (0, 0),
    }


def test_no_key_is_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "geheim")
    found: list[dict[str, str]] = []
    with pytest.raises(DocumentTooSlow):
        read("a.pdf", SLOW, seconds=0.3, stop=with_child(lambda process: found.append(process.environ())))
    assert found == [{}]


def test_a_name_is_on_no_command_line() -> None:
    found: list[str] = []
    with pytest.raises(DocumentTooSlow):
        read("Geheim.pdf", SLOW, seconds=0.3, stop=with_child(lambda process: found.extend(process.cmdline())))
    assert found
    assert not [one for one in found if "Geheim" in one]


def test_what_the_process_started_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(
        monkeypatch,
        "import subprocess, sys\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid, flush=True)",
    )
    monkeypatch.setattr(
        document_process.json, "loads", lambda said: {"error": "DocumentBroken", "details": {"n": int(said)}}
    )
    pids: list[int] = []
    monkeypatch.setattr(document_process, "_details", lambda said: pids.append(said["n"]) or {})
    with pytest.raises(DocumentBroken):
        read("a.txt", b"x")
    (pid,) = pids
    assert has_ended(pid)


def has_ended(pid: int) -> bool:
    """Once the signal has arrived; waited for by nobody, it may stay as a zombie."""
    for _ in range(200):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.05)
                continue
        return True
    return False


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "kein JSON",
        "[]",
        "1",
        "[" * 100_000,
        json.dumps({"error": "SystemExit", "details": {}}),
        json.dumps({"error": "DocumentLocked"}),
        json.dumps({"kind": "exe", "pages": 0, "chunks": []}),
        json.dumps({"kind": "pdf", "pages": "x", "chunks": []}),
        json.dumps({"kind": "pdf", "pages": 1, "chunks": [{"page": 1, "heading": "", "content": 5}]}),
        json.dumps({"kind": "pdf", "pages": 1, "chunks": [[]]}),
    ],
)
def test_an_answer_that_is_none_is_not_believed(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    answering(monkeypatch, f"print({answer!r})")
    with pytest.raises(DocumentBroken):
        read("a.txt", b"x")


def test_of_an_answer_only_what_can_be_stored_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = {"number": 7, "page": None, "heading": "a\x00", "content": "b\ud800"}
    answering(monkeypatch, f"print({json.dumps({'kind': 'text', 'pages': 0, 'chunks': [chunk]})!r})")
    assert read("a.txt", b"x").chunks == [Chunk(number=0, page=None, heading="a", content="b")]


def test_an_answer_has_at_most_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_process, "ANSWER_BYTES", 50)
    with pytest.raises(DocumentBroken):
        read("a.txt", b"Hallo")


def test_a_text_whose_chunks_are_too_many_for_an_answer_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_process, "ANSWER_BYTES", 50)
    assert json.loads(document_process._read("a.txt", b"Hallo", 1)) == {
        "error": "DocumentTooLong",
        "details": {"limit": 10_000_000},
    }

"""`read_document`: reads an uploaded document in a process of its own, which may take only so much time and memory.

A document that explodes, hangs or crashes its parser takes that process with it, and nothing else. The process gets no
environment, so no key is in it, and what it answers is checked like anything that comes from outside.
"""

import json
import logging
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, get_args

import psutil

from jarvis_memory.document_blocks import TEXT_CHARACTERS, Kind
from jarvis_memory.document_chunks import Chunk, chunks_of
from jarvis_memory.document_formats import read_document_text
from jarvis_memory.errors import (
    DocumentBroken,
    DocumentReadingStopped,
    DocumentTooFine,
    DocumentTooHungry,
    DocumentTooLong,
    DocumentTooSlow,
    DocumentUnreadable,
)
from jarvis_memory.text import clean

# Of the answer: 10 million characters of any writing, with what stands around them.
ANSWER_BYTES = 100_000_000
# Each gets a vector. A book of 3,000 pages has 20,000.
CHUNKS = 40_000
# Between two looks at the process.
PAUSE = 0.05
# Address space that is mapped and never filled: the interpreter, the libraries, what malloc keeps.
HEAD_ROOM = 100_000_000

_PROJECT = Path(__file__).resolve().parents[1]
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
_ERRORS = {error.__name__: error for error in DocumentUnreadable.__subclasses__()}
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReadDocument:
    """A document in chunks; there is at least one."""

    kind: Kind
    # 0 for a kind that has none.
    pages: int
    chunks: list[Chunk]


def read_document(
    name: str,
    data: bytes,
    *,
    pages: int,
    seconds: float,
    megabytes: int,
    stop: Callable[[], bool] = lambda: False,
) -> ReadDocument:
    """The document's chunks, read within these limits; `stop` is asked all the time whether to give up.

    Raises a DocumentUnreadable, or DocumentReadingStopped. No process outlives the call.
    """
    request = {"name": clean(name), "pages": pages, "seconds": seconds, "megabytes": megabytes}
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
        question.write(json.dumps(request).encode() + b"\n")
        question.write(data)
        question.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=_PROJECT,
            env={},
            stdin=question,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _wait(psutil.Process(process.pid), seconds, megabytes, stop)
        finally:
            # Before it is waited for: until then nobody else can have its number.
            with suppress(ProcessLookupError, PermissionError):  # macOS allows none at one that has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == -signal.SIGXCPU:
            raise DocumentTooSlow(limit=seconds)
        return _answered(process.returncode, answer)


def _wait(process: psutil.Process, seconds: float, megabytes: int, stop: Callable[[], bool]) -> None:
    """Until the process has ended."""
    deadline = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            if stop():
                raise DocumentReadingStopped
            if time.monotonic() > deadline:
                raise DocumentTooSlow(limit=seconds)
            if process.memory_info().rss > megabytes * 1_000_000:
                raise DocumentTooHungry(limit=megabytes)
            time.sleep(PAUSE)


def _answered(returncode: int, file: IO[bytes]) -> ReadDocument:
    """What the process answered. A broken parser may have written it, so nothing of it is taken for granted."""
    file.seek(0)
    try:
        if returncode:
            raise ValueError("it has no answer")
        answer = json.loads(file.read(ANSWER_BYTES))
        if "error" in answer:
            raise _ERRORS[answer["error"]](**_details(answer["details"]))
        return ReadDocument(
            kind=_KINDS[answer["kind"]],
            pages=int(answer["pages"]),
            chunks=[_chunk(number, one) for number, one in enumerate(answer["chunks"])],
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # Neither the document's name nor its text belongs in a log; the error may quote it.
        _logger.warning("The process that read a document ended with %s: %s", returncode, type(error).__name__)
        raise DocumentBroken from None


def _details(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: said[name]
        for name, kind in {"limit": int | float, "cause": str}.items()
        if isinstance(said.get(name), kind)
    }


def _chunk(number: int, said: dict[str, Any]) -> Chunk:
    page = said["page"] if said["page"] is None else int(said["page"])
    return Chunk(number=number, page=page, heading=clean(said["heading"]), content=clean(said["content"]))


# --- in the process ---------------------------------------------------------------------------------------


def main() -> None:
    """Read the limits and the document from standard input, and write the answer to standard output."""
    request = json.loads(sys.stdin.buffer.readline())
    _take_limits(request["seconds"], request["megabytes"])
    try:
        answer = _read(request["name"], sys.stdin.buffer.read(), request["pages"])
    except MemoryError:
        answer = _failed(DocumentTooHungry(limit=request["megabytes"]))
    sys.stdout.buffer.write(answer)


def _take_limits(seconds: float, megabytes: int) -> None:
    # The parent looks after these too; they hold what is too quick for it, and also when it is no more.
    processor = math.ceil(seconds) + 1
    limits = {
        resource.RLIMIT_AS: (megabytes * 1_000_000 + HEAD_ROOM,) * 2,
        resource.RLIMIT_CPU: (processor, processor + 1),  # SIGXCPU, then SIGKILL
        resource.RLIMIT_FSIZE: (ANSWER_BYTES,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, limit in limits.items():
        with suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(kind, limit)
    os.nice(10)  # a chat goes first


def _read(name: str, data: bytes, pages_limit: int) -> bytes:
    try:
        document = read_document_text(name, data, pages_limit=pages_limit)
    except DocumentUnreadable as error:
        return _failed(error)
    chunks = [asdict(chunk) for chunk in chunks_of(document.blocks)]
    if len(chunks) > CHUNKS:
        return _failed(DocumentTooFine(limit=CHUNKS))
    answer = json.dumps({"kind": document.kind, "pages": document.pages, "chunks": chunks}, ensure_ascii=False).encode()
    return answer if len(answer) <= ANSWER_BYTES else _failed(DocumentTooLong(limit=TEXT_CHARACTERS))


def _failed(error: DocumentUnreadable) -> bytes:
    return json.dumps({"error": type(error).__name__, "details": error.details}).encode()


if __name__ == "__main__":
    main()

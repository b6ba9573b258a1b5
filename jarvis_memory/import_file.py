"""A file to import, whatever it is: JSON or a ZIP archive with it, of JARVIS, ChatGPT or Claude."""

import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, Literal, cast

from jarvis_memory.archive import Archived, ArchivedConversation, ArchivedDocument, ArchivedFact
from jarvis_memory.chatgpt_exports import read_chatgpt
from jarvis_memory.claude_exports import read_claude
from jarvis_memory.errors import ImportTooLarge, ImportUnknown, ImportUnreadable
from jarvis_memory.jarvis_exports import read_jarvis
from jarvis_memory.json_stream import Piece, pieces

Program = Literal["jarvis", "chatgpt", "claude"]

# Big exports of ChatGPT are split: conversations-000.json, conversations-001.json, …
_CONVERSATIONS = re.compile(r"conversations([-_.]\d+)?\.json")
FILES_AN_ARCHIVE = 1_000
# Text as a ZIP is a tenth of it; a hundredth is a trap that fills memory and disk.
COMPRESSION = 100
CONVERSATIONS = 200_000


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a checked file holds."""

    program: Program
    conversations: int
    # Of these, how many hold nothing that anybody said.
    empty: int
    messages: int
    facts: int
    documents: int
    external_ids: frozenset[str]


def check_file(file: BinaryIO) -> Contents:
    """Read the file to its end and check all of it.

    Raises ImportUnreadable, ImportUnknown, ImportTooNew, ImportTooLarge, ImportInvalid.
    """
    program: Program = "jarvis"
    conversations = empty = messages = facts = documents = 0
    external_ids: set[str] = set()
    for item in read_file(file):
        if isinstance(item, ArchivedConversation):
            conversations += 1
            empty += not item.messages
            messages += len(item.messages)
            external_ids.add(item.external_id)
            if conversations > CONVERSATIONS:
                raise ImportTooLarge(f"The file has more than {CONVERSATIONS} conversations.")
            prefix = item.external_id.partition(":")[0]
            if prefix in ("chatgpt", "claude"):
                program = cast(Program, prefix)
        facts += isinstance(item, ArchivedFact)
        documents += isinstance(item, ArchivedDocument)
    return Contents(
        program=program,
        conversations=conversations,
        empty=empty,
        messages=messages,
        facts=facts,
        documents=documents,
        external_ids=frozenset(external_ids),
    )


def read_file(file: BinaryIO) -> Iterator[Archived]:
    """What the file holds, piece by piece and in order. Raises the same as `check_file`, perhaps in the middle."""
    file.seek(0)
    if file.read(4) == b"PK\x03\x04":
        with _readable(), zipfile.ZipFile(file) as archive:
            for entry in _entries(archive):
                with archive.open(entry) as member:
                    yield from _read_json(cast(BinaryIO, member))
    else:
        file.seek(0)
        yield from _read_json(file)


def _read_json(file: BinaryIO) -> Iterator[Archived]:
    found = pieces(file)
    first = next(found, None)
    if first is None:
        raise ImportUnknown
    found = itertools.chain([first], found)
    yield from read_jarvis(found) if first.name else _read_foreign(found)


def _read_foreign(found: Iterator[Piece]) -> Iterator[Archived]:
    """The conversations of the list, whoever's each is."""
    for piece in found:
        conversation = piece.value if isinstance(piece.value, dict) else {}
        if "mapping" in conversation or "conversation_id" in conversation:
            yield read_chatgpt(conversation, piece.place)
        elif "chat_messages" in conversation:
            yield from read_claude(conversation, piece.place)
        else:
            raise ImportUnknown


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        # A RuntimeError asks for a password, a NotImplementedError is an unknown compression.
        raise ImportUnreadable(f"The ZIP archive cannot be read: {type(error).__name__}.") from error


def _entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files to read: the conversations, or the only JSON there is."""
    texts = [entry for entry in archive.infolist() if entry.filename.endswith(".json") and not _is_shadow(entry)]
    named = [entry for entry in texts if _CONVERSATIONS.fullmatch(PurePosixPath(entry.filename).name)]
    chosen = sorted(named or texts, key=lambda entry: entry.filename)
    if not chosen or (not named and len(chosen) > 1):
        raise ImportUnknown
    if len(chosen) > FILES_AN_ARCHIVE:
        raise ImportTooLarge(f"The archive has more than {FILES_AN_ARCHIVE} files of conversations.")
    # zipfile reads no more of an entry than is said here.
    if any(entry.file_size > COMPRESSION * max(entry.compress_size, 10_000) for entry in chosen):
        raise ImportTooLarge("The archive is a ZIP bomb: it unpacks to far more than any text would.")
    return chosen


def _is_shadow(entry: zipfile.ZipInfo) -> bool:
    """What macOS puts beside each file."""
    return entry.filename.startswith("__MACOSX/") or PurePosixPath(entry.filename).name.startswith("._")

"""`read_document_text`: what a document says, as headings and paragraphs, judged by its content. No database, no page.

A document is what somebody else made: it can be damaged, or made to break its reader. What it may take of time and
memory is not decided here but in document_process.py, which calls this in a process of its own.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from lxml import etree

from jarvis_memory.document_blocks import TEXT_CHARACTERS, Block, Kind
from jarvis_memory.errors import (
    DocumentBroken,
    DocumentEmpty,
    DocumentLocked,
    DocumentTooLong,
    DocumentUnknown,
    DocumentUnreadable,
    DocumentWithoutText,
)
from jarvis_memory.mail_text import html_lines, readable
from jarvis_memory.mails import parse_mail
from jarvis_memory.office_documents import OLE, read_archive
from jarvis_memory.pdf_documents import open_pdf, pdf_blocks
from jarvis_memory.text import decoded_text, one_line
from jarvis_memory.text_lines import paragraphs_of


@dataclass(frozen=True, kw_only=True)
class DocumentText:
    """What a document says. At least one block has text."""

    kind: Kind
    # 0 for a kind that has none.
    pages: int
    blocks: list[Block]


def read_document_text(name: str, data: bytes, *, pages_limit: int) -> DocumentText:
    """The text of the document. Of the name only its ending counts, and only to tell one kind of text from another.

    Raises DocumentUnknown, DocumentEmpty, DocumentBroken, DocumentLocked, DocumentWithoutText, DocumentTooManyPages,
    DocumentTooLong, MemoryError.
    """
    if not data.strip():
        raise DocumentEmpty
    try:
        kind, pages, found = _read(name, data, pages_limit)
        blocks = list(_cleaned(found))
    except (DocumentUnreadable, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - the libraries raise nearly everything at a broken file
        if isinstance(error, etree.XMLSyntaxError) and error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        raise DocumentBroken(cause=type(error).__name__) from error
    if not blocks:
        raise DocumentWithoutText if kind == "pdf" else DocumentEmpty
    return DocumentText(kind=kind, pages=pages, blocks=blocks)


def _read(name: str, data: bytes, pages_limit: int) -> tuple[Kind, int, Iterable[Block]]:
    if data[:1_000].lstrip().startswith(b"%PDF-"):
        reader = open_pdf(data, pages_limit)
        return "pdf", len(reader.pages), pdf_blocks(reader)
    if data.startswith(b"PK\x03\x04"):
        kind, blocks = read_archive(data)
        return kind, 0, blocks
    if data.startswith(OLE) and "EncryptedPackage".encode("utf-16-le") in data:
        raise DocumentLocked
    said = decoded_text(data)
    if said is None:
        raise DocumentUnknown
    start = said[:1_000].lstrip().lower()
    ending = name.rpartition(".")[2].lower()
    if start.startswith("{\\rtf"):  # its commands would be read as its text
        raise DocumentUnknown
    if ending in ("md", "markdown"):
        return "markdown", 0, _markdown_blocks(said)
    if ending in ("html", "htm") or start.startswith(("<!doctype html", "<html")):
        return "html", 0, (Block(text=line, page=None, heading_level=level) for line, level in html_lines(said))
    if ending == "eml":
        return "mail", 0, _mail_blocks(data)
    if ending in ("csv", "tsv"):
        return "csv", 0, _csv_blocks(said)
    return "text", 0, paragraphs_of(readable(said), None, unwrap=False)


def _cleaned(blocks: Iterable[Block]) -> Iterator[Block]:
    """Those that have text, without what is invisible; raises DocumentTooLong."""
    characters = 0
    for block in blocks:
        said = readable(unicodedata.normalize("NFC", block.text))
        said = one_line(said) if block.heading_level else said
        characters += len(said)
        if characters > TEXT_CHARACTERS:
            raise DocumentTooLong(limit=TEXT_CHARACTERS)
        if said:
            yield Block(text=said, page=block.page, heading_level=block.heading_level)


_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_MARKED_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_CSV_SAMPLE = 4_000


def _markdown_blocks(said: str) -> Iterator[Block]:
    paragraph: list[str] = []
    fence = ""
    for line in [*readable(said).split("\n"), ""]:
        opened, heading, underline = _FENCE.match(line), _MARKED_HEADING.match(line), _UNDERLINE.match(line)
        if fence:
            paragraph.append(line)
            if opened and opened[1].startswith(fence) and line.strip() == opened[1]:
                fence = ""
        elif opened:
            paragraph.append(line)
            fence = opened[1]
        elif underline and len(paragraph) == 1:
            yield Block(text=paragraph.pop(), page=None, heading_level=1 if "=" in underline[1] else 2)
        elif heading or not line:
            yield Block(text="\n".join(paragraph), page=None)
            paragraph = []
            if heading:
                yield Block(text=heading[2], page=None, heading_level=len(heading[1]))
        else:
            paragraph.append(line)
    yield Block(text="\n".join(paragraph), page=None)  # a fence that nobody closed


def _mail_blocks(data: bytes) -> Iterator[Block]:
    mail = parse_mail(data)
    date = mail.date.isoformat(" ", "minutes") if mail.date else ""
    named = ", ".join(one.name for one in mail.attachments)
    headers = {"From": mail.sender, "To": ", ".join(mail.to), "Date": date}
    yield Block(text=mail.subject, page=None, heading_level=1)
    yield Block(text="\n".join(f"{name}: {value}" for name, value in headers.items() if value), page=None)
    yield from paragraphs_of(mail.text, None, unwrap=False)
    yield Block(text=f"Attachments: {named}" if named else "", page=None)


def _csv_blocks(said: str) -> Iterator[Block]:
    """Each row with the names of its columns, so that it can be understood alone."""
    try:
        rows = list(csv.reader(io.StringIO(said, newline=""), delimiter=_delimiter(said)))
    except csv.Error:  # a line that is longer than a cell may be: no table
        yield from paragraphs_of(readable(said), None, unwrap=False)
        return
    rows = [[one_line(cell) for cell in row] for row in rows if any(cell.strip() for cell in row)]
    names, rest = (rows[0], rows[1:]) if len(rows) > 1 else ([], rows)
    for row in rest:
        cells = [(name, cell) for name, cell in zip_longest(names, row, fillvalue="") if cell]
        yield Block(text="; ".join(f"{name}: {cell}" if name else cell for name, cell in cells), page=None)


def _delimiter(said: str) -> str:
    sample = said[:_CSV_SAMPLE]
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t").delimiter
    except csv.Error:  # of one column, or of too few rows
        return max(";\t,", key=sample.split("\n")[0].count)

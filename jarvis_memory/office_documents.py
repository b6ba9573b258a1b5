"""Documents of word processors (DOCX, ODT), both of them ZIP archives of XML."""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import docx
from lxml import etree

from jarvis_memory.document_blocks import TEXT_CHARACTERS, Block, Kind
from jarvis_memory.errors import DocumentLocked, DocumentTooLong, DocumentUnknown
from jarvis_memory.text import one_line

# Of all that is in the archive: some kilobytes can become gigabytes.
UNPACKED_BYTES = 200_000_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ODT = b"application/vnd.oasis.opendocument.text"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD_NAMES = {"w": _WORD, "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006"}
_WORD_CONTAINERS = ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")
_WORD_STYLE = re.compile(r"(?:heading|überschrift) ?([1-9])|(title|titel)", re.IGNORECASE)
# What is said twice for older readers, or was moved away, counts once.
_word_text = etree.XPath(
    "(.//w:t | .//w:r/w:tab | .//w:br | .//w:cr | .//w:noBreakHyphen | .//w:p)"
    "[not(ancestor::mc:Fallback or ancestor::w:moveFrom)]",
    namespaces=_WORD_NAMES,
)
_word_cells = etree.XPath("w:tc | w:sdt/w:sdtContent/w:tc", namespaces=_WORD_NAMES)
_SIGNS = {"tab": " ", "noBreakHyphen": "-", "s": " "}
# A change that was made undone, a comment, what is drawn.
_ODT_LEFT_OUT = ("tracked-changes", "annotation", "annotation-end", "title", "desc", "forms", "binary-data")


def read_archive(data: bytes) -> tuple[Kind, Iterable[Block]]:
    """Its kind and what it says. Raises DocumentUnknown, DocumentLocked, DocumentTooLong."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if sum(entry.file_size for entry in archive.infolist()) > UNPACKED_BYTES:
            raise DocumentTooLong(limit=TEXT_CHARACTERS)
        if "word/document.xml" in names:
            return "docx", _docx_blocks(data)
        if "mimetype" not in names or not archive.read("mimetype").startswith(_ODT):
            raise DocumentUnknown
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise DocumentLocked
        content = archive.read("content.xml")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    return "odt", _odt_blocks(etree.fromstring(content, parser))


def _docx_blocks(data: bytes) -> Iterator[Block]:
    document = docx.Document(io.BytesIO(data))
    named = {style.style_id: _WORD_STYLE.match(style.name or "") for style in document.styles}
    levels = {style: min(6, int(name[1] or 1)) for style, name in named.items() if name}
    return _word_blocks(document.element.body, levels)


def _word_blocks(container: Any, levels: dict[str, int]) -> Iterator[Block]:
    for element in container.iterchildren(etree.Element):
        tag = _tag(element)
        if tag == "p":
            yield Block(text=_word_said(element), page=None, heading_level=levels.get(element.style or "", 0))
        elif tag == "tbl":
            for row in element.iterchildren(f"{{{_WORD}}}tr"):
                yield _row([_word_said(cell) for cell in _word_cells(row)])
        elif tag in _WORD_CONTAINERS:
            yield from _word_blocks(element, levels)


def _word_said(element: Any) -> str:
    found = _word_text(element)
    return "".join(one.text or "" if _tag(one) == "t" else _SIGNS.get(_tag(one), "\n") for one in found)


def _odt_blocks(element: Any) -> Iterator[Block]:
    for child in element.iterchildren(etree.Element):
        tag = _tag(child)
        if tag in ("p", "h"):
            level = next((value for name, value in child.attrib.items() if name.endswith("}outline-level")), "1")
            heading = min(6, max(1, int(level))) if tag == "h" else 0
            yield Block(text="".join(_odt_said(child)), page=None, heading_level=heading)
        elif tag == "table-row":
            yield _row(["".join(_odt_said(cell)) for cell in child.iterchildren(etree.Element)])
        elif tag not in _ODT_LEFT_OUT:
            yield from _odt_blocks(child)


def _odt_said(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element.iterchildren():
        tag = _tag(child)
        if tag and tag not in _ODT_LEFT_OUT:
            yield "\n" if tag in ("p", "h", "line-break") else _SIGNS.get(tag, "")
            yield from _odt_said(child)
        yield child.tail or ""


def _row(cells: list[str]) -> Block:
    return Block(text=" | ".join(one_line(cell) for cell in cells).strip(" |"), page=None)


def _tag(element: Any) -> str:
    """The name without its namespace; none for an entity that is not resolved."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""

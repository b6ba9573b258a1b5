"""Text in a mail, from bytes and headers and HTML to what can be shown and read. Whatever they hold, nothing breaks."""

import email.errors
import re
from email.header import decode_header

from inscriptis import get_annotated_text, get_text
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_properties import Display
from inscriptis.model.config import ParserConfig
from inscriptis.model.css import CssParse
from inscriptis.model.html_document_state import HtmlDocumentState
from inscriptis.model.html_element import HtmlElement
from inscriptis.model.tag import CustomHtmlTagHandlerMapping

from jarvis_memory.text import clean, one_line

# Of HTML that is turned into text; a newsletter has 100,000.
HTML_CHARACTERS = 500_000
# What the libraries raise at a mail that is broken, or made to break them.
BROKEN = (RecursionError, ValueError, LookupError, TypeError, AttributeError, AssertionError, email.errors.MessageError)

# Signs that are invisible: they turn the direction of writing, fill the preview of newsletters, or hide a text that
# only a machine reads.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e0fff]"
)
# Ends a cell of a table for the library, which would make one blank of several.
_CELL_END = "\x01"
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_TAG = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def decoded(data: bytes, charset: str | None) -> str:
    """In its own charset, or in the first that fits."""
    for encoding in (charset, "utf-8", "cp1252"):
        if encoding:
            try:
                return data.decode(encoding)
            except (LookupError, ValueError):  # an unknown one, or a wrong one
                continue
    return data.decode("latin-1")


def readable(said: str) -> str:
    """Without signs that are invisible, and without more than one blank line at a time."""
    said = clean(said).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    said = INVISIBLE.sub("", _CONTROLS.sub("", said))
    said = "\n".join(line.rstrip() for line in said.split("\n"))
    return _BLANK_LINES.sub("\n\n", said).strip()


def _between_cells(state: HtmlDocumentState) -> None:
    state.tags[-1].write(_CELL_END)


def _nothing(*_: object) -> None:
    pass


def _is_shown(style: str, element: HtmlElement) -> None:
    for one in style.lower().split(";"):
        name, _, value = one.partition(":")
        if name.strip() == "display":
            CssParse.attr_display(value.replace("!important", "").strip(), element)


def _layout() -> ParserConfig:
    """Without widths and margins: a mail of some kilobytes could ask for gigabytes of blanks.

    A row of a table is a line. The library would make all cells of a column as wide as the widest, and each of a row as
    high as the highest.
    """
    blocks = ("table", "tr", "caption", "ul", "ol")
    config = ParserConfig(
        css=CSS_PROFILES["strict"] | {tag: HtmlElement(display=Display.block) for tag in blocks},
        annotation_rules={f"h{level}": [str(level)] for level in range(1, 7)},
        custom_html_tag_handler_mapping=CustomHtmlTagHandlerMapping(
            start_tag_mapping=dict.fromkeys(("table", "tr", "td", "th"), _nothing),
            end_tag_mapping={"table": _nothing, "td": _between_cells, "th": _between_cells},
        ),
    )
    config.attribute_handler.attribute_mapping = {"style": _is_shown}
    return config


_LAYOUT = _layout()


def html_text(html: str) -> str:
    """The text of a web page: no scripts, no images, nothing that is loaded."""
    html = _CONTROLS.sub("", html[:HTML_CHARACTERS])
    try:
        said = get_text(html, _LAYOUT).replace(_CELL_END, "  ")
    except BROKEN:
        said = ""
    return readable(said) or readable(_TAG.sub(" ", html))  # nested deeper than the library goes


def html_lines(html: str) -> list[tuple[str, int]]:
    """The lines of a whole web page, each with its level where it is a heading (1 to 6), else with 0."""
    html = _CONTROLS.sub("", html)
    try:
        page = get_annotated_text(html, _LAYOUT)
    except BROKEN:
        page = {}
    said = page.get("text", "")
    found, place = [], 0
    for start, end, level in sorted(page.get("label", [])):
        if start >= place:  # else a heading in a heading
            found += [(line, 0) for line in said[place:start].split("\n")]
            found.append((one_line(said[start:end]).removeprefix("* "), int(level)))
            place = end
    found += [(line, 0) for line in said[place:].split("\n")]
    lines = [(readable(line.replace(_CELL_END, "  ")), level) for line, level in found]
    bare = [] if said.strip() else readable(_TAG.sub(" ", html)).split("\n")  # nested deeper than the library goes
    return [one for one in lines if one[0]] + [(line, 0) for line in bare if line]


def decoded_header(value: object) -> str:
    """A header, or a part of one, on one line."""
    try:
        # A str with bytes of no charset in it comes as a Header; both are taken by decode_header.
        pieces = decode_header(value)  # type: ignore[arg-type]
    except BROKEN:
        pieces = [(str(value), None)]
    said = "".join(
        piece if isinstance(piece, str) else decoded(piece, None if charset == "unknown-8bit" else charset)
        for piece, charset in pieces
    )
    return one_line(INVISIBLE.sub("", _CONTROLS.sub(" ", clean(said))))

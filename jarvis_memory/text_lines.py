"""Lines of text: their paragraphs, and their headings in German and English."""

import re
from collections.abc import Iterator

from jarvis_memory.document_blocks import Block

# Of a line that is a heading.
HEADING_CHARACTERS = 90

_NUMBER = r"(?:\d{1,4}[a-z]?|[IVXLC]{1,7}|[A-Z])"
_TITLE = r"[.:]?(?:\s*[-–—:]?\s+[\"„“»(]?[A-ZÄÖÜ0-9].*)?"
# From the outer to the inner, in the order in which laws, contracts and books have them.
_NAMED_HEADINGS = [
    re.compile(rf"(?:Teil|Part)\s+{_NUMBER}{_TITLE}"),
    re.compile(rf"(?:(?:Kapitel|Chapter)\s+|(?:Anhang|Anlage|Appendix|Annex)(?:\s+|(?=[:.]|$))){_NUMBER}?{_TITLE}"),
    re.compile(rf"(?:Abschnitt|Section)\s+{_NUMBER}(?:\.\d{{1,3}})*{_TITLE}"),
    re.compile(rf"(?:(?:Artikel|Article)\s+|§\s*){_NUMBER}(?!\s+(?:Abs|Satz|Nr)\b){_TITLE}"),
]
_NUMBERED_HEADING = re.compile(r"((?:[1-9]\d?)(?:\.[1-9]\d?)*)(\.?)\s+[\"„“»(]?([A-ZÄÖÜ]\w*).*")
# "1. Januar", "24.12. Anna", "3.50 Euro": a date or an amount.
_DATE = re.compile(r"\d\d\.\d\d\.")
_MONTH_OR_UNIT = re.compile(
    "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|January|February|March|"
    "May|June|July|October|December|Euro|EUR|USD|CHF|Dollar|Franken|Cent|Uhr|Prozent|Mio|Millionen|Mrd|Milliarden|"
    "Stunden|Minuten|Tage|Wochen|Monate|Jahre|Liter|Kilo|Kilogramm|Gramm|Meter|Kilometer|Grad|Punkte|Stück|GB|MB|TB"
)
_BARE_NUMBER = re.compile(rf"(?:\w+\s+|§\s*){_NUMBER}\.")
_ITEM = re.compile(r"(?:[-–—•▪◦‣*·o]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_SENTENCE_END = re.compile(r"[.!?:;…][\"”“«’')\]]*$")
_HYPHEN_IN_WORD = re.compile(r"(?<=[^\W\d_])[-‐]\n(?!(?:und|oder|bzw|sowie|and|or)\b)(?=[a-zß-öø-ÿ])")
_HYPHEN_OF_COMPOUND = re.compile(r"(?<=\w[-‐])\n(?=[A-ZÄÖÜ0-9])")


def paragraphs_of(said: str, page: int | None, *, unwrap: bool) -> Iterator[Block]:
    """The text's headings and paragraphs; with `unwrap`, for lines that a layout broke, each paragraph on one line."""
    lines = [line.strip() for line in said.split("\n")]
    lengths = sorted(len(line) for line in lines if line)
    # Three of four are not longer. What is clearly shorter ended before the edge of the page.
    short = 0.8 * lengths[len(lengths) * 3 // 4] if lengths else 0
    paragraph: list[str] = []
    before = ""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        level = _heading_level(line)
        # In the midst of a sentence, or one of several items.
        if level and before and not (_SENTENCE_END.search(before) or len(before) < short):
            level = 0
        if level and (after[:1].islower() or (_ITEM.match(line) and (_ITEM.match(before) or _ITEM.match(after)))):
            level = 0
        ended = bool(before) and len(before) < short and bool(_SENTENCE_END.search(before))
        if level or not line or (unwrap and (ended or _ITEM.match(line))):
            yield Block(text=_joined(paragraph) if unwrap else "\n".join(paragraph), page=page)
            paragraph = []
        if level:
            yield Block(text=line, page=page, heading_level=level)
        elif line:
            paragraph.append(line)
        before = "" if level else line
    yield Block(text=_joined(paragraph) if unwrap else "\n".join(paragraph), page=page)


def _joined(lines: list[str]) -> str:
    said = _HYPHEN_IN_WORD.sub("", "\n".join(lines))
    return _HYPHEN_OF_COMPOUND.sub("", said).replace("\n", " ")


def _heading_level(line: str) -> int:
    """The level of a line that reads like a heading, or 0."""
    if len(line) > HEADING_CHARACTERS or (line.endswith((".", ",", ";")) and not _BARE_NUMBER.fullmatch(line)):
        return 0
    for level, named in enumerate(_NAMED_HEADINGS, 1):
        if named.fullmatch(line):
            return level
    numbered = _NUMBERED_HEADING.fullmatch(line)
    if not numbered or _MONTH_OR_UNIT.fullmatch(numbered[3]) or _DATE.match(line):
        return 0
    depth = numbered[1].count(".") + 1
    if depth == 1:
        return 2 if numbered[2] else 0  # as a chapter; "3 Eier" is none
    return min(6, 3 + depth)  # below "§ 5" too, where "5.1" belongs

"""`chunks_of`: a document cut into passages that are found and shown. No database, no file.

A chunk stays on one page and under one heading. All chunks in order are the whole text: nothing stands in two of them,
and a heading stands above what it is the heading of, or, where nothing follows it, in a chunk of its own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from jarvis_memory.document_blocks import Block
from jarvis_memory.text import shorten

CHUNK_CHARACTERS = 600
# A rest that is smaller than this says too little alone: it goes to the chunk before, which is then a bit longer.
REST_CHARACTERS = 120
HEADING_CHARACTERS = 200

_BETWEEN = " › "
# Where a sentence may end. What begins in lower case goes on with it.
_MAYBE_END = re.compile(r"(\S{0,30}?)([.!?…])[\"”“«’')\]]{0,3}\s+(?![\sa-zß-öø-ÿ])")
_ABBREVIATION = re.compile(
    "abs|abb|approx|art|aufl|bd|betr|bspw?|bzgl|bzw|ca|dipl|dr|etc|evtl|fa|fig|fr|ggf|gem|hr|hrsg|inkl|ing|jan|feb|kap|"
    "lt|max|min|mind|mio|mrd?|mrs|ms|nr|prof|rd|rn|sog|st|str|tel|usw|vgl|vol|vs|ziff|zzgl|"
    r"e\.g|i\.e|d\.h|z\.b|u\.a|o\.ä|v\.a|s\.o|s\.u|p\.a"
)
# Of an ordinal number ("1. Januar"), an abbreviation ("z. B."), or a name ("J. Bach").
_NUMBER_OR_LETTER = re.compile(r"\d{1,2}|[^\W\d_]")
# At most so much, up to the end of a line where that is possible, else to a blank, else anywhere.
_PART = re.compile(
    rf"\S(?:.{{0,{CHUNK_CHARACTERS - 2}}}\S)?(?=[ \t]*(?:\n|\Z))"
    rf"|\S(?:.{{0,{CHUNK_CHARACTERS - 2}}}\S)?(?=\s)"
    rf"|\S{{1,{CHUNK_CHARACTERS}}}",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A passage of a document."""

    # From 0, in the document's order.
    number: int
    page: int | None
    # The headings above it, from the outermost to its own; "" where there is none.
    heading: str
    content: str


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A paragraph or a part of a long one, with what stands between it and the piece before."""

    between: str
    text: str


def chunks_of(blocks: Sequence[Block]) -> list[Chunk]:
    """The document in chunks of about CHUNK_CHARACTERS."""
    return [replace(chunk, number=number) for number, chunk in enumerate(_chunks(blocks))]


def _chunks(blocks: Iterable[Block]) -> Iterator[Chunk]:
    path: list[Block] = []
    # Headings that no text has followed yet.
    bare: list[tuple[Block, list[Block]]] = []
    texts: list[Block] = []
    for block in blocks:
        # A heading as long as a paragraph is one: above its chunks it would be cut.
        if block.heading_level > 0 and len(block.text) <= HEADING_CHARACTERS:
            yield from _section(path, texts)
            texts = []
            while path and path[-1].heading_level >= block.heading_level:
                path.pop()
            bare.append((block, list(path)))
            path.append(block)
            continue
        if bare:
            yield from _bare_chunks([one for one in bare if not any(one[0] is above for above in path)])
            bare = []
        if texts and texts[-1].page != block.page:
            yield from _section(path, texts)
            texts = []
        texts.append(block)
    yield from _section(path, texts)
    yield from _bare_chunks(bare)


def _bare_chunks(bare: list[tuple[Block, list[Block]]]) -> Iterator[Chunk]:
    """Headings without text (of a table of contents, of a title page), as the text of chunks."""
    for _, group in groupby(bare, key=lambda one: one[0].page):
        together = list(group)
        # Only what is above all of them.
        above = [one for one in together[0][1] if all(any(one is other for other in path) for _, path in together)]
        yield from _section(above, [heading for heading, _ in together])


def _section(path: list[Block], texts: list[Block]) -> Iterator[Chunk]:
    """The chunks of the texts between two headings, or of those on one page."""
    if texts:
        heading = _heading(path)
        for content in _contents(texts):
            yield Chunk(number=0, page=texts[0].page, heading=heading, content=content)


def _heading(path: list[Block]) -> str:
    """The path on one line; where it is too long, what is above is cut and the last heading is whole."""
    *above, own = [one.text for one in path] or [""]
    room = HEADING_CHARACTERS - len(own) - len(_BETWEEN)
    return _BETWEEN.join([shorten(_BETWEEN.join(above), room), own]) if above and room > 1 else own


def _contents(texts: list[Block]) -> list[str]:
    found: list[_Piece] = []
    for piece in _pieces(texts):
        last = found[-1] if found else None
        if last and len(last.text) + len(piece.between) + len(piece.text) <= CHUNK_CHARACTERS:
            found[-1] = replace(last, text=last.text + piece.between + piece.text)
            continue
        found = _without_rest(found)
        found.append(piece)
    return [one.text for one in _without_rest(found)]


def _without_rest(found: list[_Piece]) -> list[_Piece]:
    """The last one joined to the one before where it is very small."""
    if len(found) > 1 and len(found[-1].text) < REST_CHARACTERS:
        found[-2:] = [replace(found[-2], text=found[-2].text + found[-1].between + found[-1].text)]
    return found


def _pieces(texts: list[Block]) -> Iterator[_Piece]:
    """Paragraphs that fit, whole; of the others the sentences; of a sentence that is too long, parts."""
    for block in texts:
        if len(block.text) <= CHUNK_CHARACTERS:
            yield _Piece(between="\n", text=block.text)
            continue
        place = 0
        for start, end in pairwise([0, *_sentence_ends(block.text), len(block.text)]):
            for part in _PART.finditer(block.text, start, end):
                gap = block.text[place : part.start()]
                yield _Piece(between="\n" if not place or "\n" in gap else gap[:1], text=part[0])
                place = part.end()


def _sentence_ends(said: str) -> Iterator[int]:
    for end in _MAYBE_END.finditer(said):
        word = end[1].lstrip('(["„“»‚').lower()
        if end[2] != "." or not (_NUMBER_OR_LETTER.fullmatch(word) or _ABBREVIATION.fullmatch(word)):
            yield end.end()

"""A big JSON document read piece by piece, so that no more of it is in memory than its largest piece.

A piece is a member of the outermost object or list; of a list in that object, each item is one. What the pieces mean
is not known here.
"""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from jarvis_memory.errors import ImportTooLarge, ImportUnreadable

READ_AT_ONCE = 1 << 20
PIECE_CHARACTERS = 100_000_000
DOCUMENT_BYTES = 4 << 30


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One member. `name` is its key, empty in a document that is a list; `place` says where it stands, for errors."""

    name: str
    place: str
    value: Any


def pieces(file: BinaryIO) -> Iterator[Piece]:
    """The members of the document in UTF-8, in order; an empty list has none.

    Raises ImportUnreadable where it is no JSON, ImportTooLarge beyond PIECE_CHARACTERS and DOCUMENT_BYTES.
    """
    text = _Text(file)
    opening = text.sign()
    if opening == "[":
        yield from _items(text, "")
    elif opening == "{":
        yield from _members(text)
    else:
        raise ImportUnreadable("The file does not begin like JSON, with { or [.")
    if text.peek():
        raise text.damaged()


def _members(text: "_Text") -> Iterator[Piece]:
    if text.peek() == "}":
        text.sign()
        return
    separator = ","
    while separator == ",":
        if text.peek() != '"':
            raise text.damaged()
        name = text.value()
        if text.sign() != ":":
            raise text.damaged()
        if text.peek() == "[":
            text.sign()
            yield from _items(text, name)
        else:
            yield Piece(name=name, place=name, value=text.value())
        separator = text.sign()
    if separator != "}":
        raise text.damaged()


def _items(text: "_Text", name: str) -> Iterator[Piece]:
    if text.peek() == "]":
        text.sign()
        return
    separator, number = ",", 0
    while separator == ",":
        yield Piece(name=name, place=f"{name}[{number}]", value=text.value())
        separator, number = text.sign(), number + 1
    if separator != "]":
        raise text.damaged()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


class _Text:
    """The document from where it was read to; more of the file is added at the end as it is needed."""

    _decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._before = 0
        self._bytes = 0
        self._ended = False

    def peek(self) -> str:
        """The next sign that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def sign(self) -> str:
        """Go past that sign, and return it."""
        found = self.peek()
        self._at += 1
        return found

    def value(self) -> Any:
        """Go past the value that begins here, and return it."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise ImportUnreadable("The file is nested too deeply.") from error
            except ValueError as error:
                if self._goes_on(error) and self._more():
                    continue
                raise self.damaged() from error
            length, left = end - self._at, len(self._text) - end
            # A number at the end may go on, also behind its "." or "e+".
            if isinstance(value, int | float) and left < 3 and self._more():
                continue
            self._at += length
            return value

    def damaged(self) -> ImportUnreadable:
        """The error for what stands here."""
        place = self._before + self._at
        return ImportUnreadable(f"The file is no JSON at character {place}, or it is cut off.", field=str(place))

    def _goes_on(self, error: ValueError) -> bool:
        """Whether it may only be that the end of the value has not been read. Else it is wrong at once."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated") or error.pos > len(self._text) - 16

    def _more(self) -> bool:
        """Read as much again as is waiting, so that a long value is not looked at too often. False at the end."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > PIECE_CHARACTERS:
            raise ImportTooLarge(f"A part of the file has more than {PIECE_CHARACTERS} characters.")
        read = self._file.read(max(READ_AT_ONCE, len(rest)))
        self._bytes += len(read)
        if self._bytes > DOCUMENT_BYTES:
            raise ImportTooLarge(f"The file has more than {DOCUMENT_BYTES} bytes.")
        self._ended = not read
        try:
            added = self._decode.decode(read, final=self._ended)
        except UnicodeDecodeError as error:
            raise ImportUnreadable("The file is no text in UTF-8.") from error
        self._before += self._at
        self._text, self._at = rest + added, 0
        return bool(added) or not self._ended

"""Reading a big JSON document piece by piece."""

import io
import json
from typing import Any

import pytest

from jarvis_memory import json_stream
from jarvis_memory.errors import ImportTooLarge, ImportUnreadable
from jarvis_memory.json_stream import pieces


def read(content: bytes | str) -> list[tuple[str, str, Any]]:
    file = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return [(piece.name, piece.place, piece.value) for piece in pieces(file)]


@pytest.fixture(params=[1, 2, 3, 7, 1 << 20])
def read_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of the file is read at once."""
    monkeypatch.setattr(json_stream, "READ_AT_ONCE", request.param)


@pytest.mark.usefixtures("read_at_once")
def test_the_items_of_a_list_come_one_by_one() -> None:
    items = [{"a": 'ä\\"]}😀'}, [], 12.5, -3e2, True, None, "", {"b": [{"c": {}}]}, 123456]
    for text in (json.dumps(items), json.dumps(items, indent=2, ensure_ascii=False), f" \n{json.dumps(items)}\r\n "):
        assert [value for _, _, value in read(text)] == items
    assert read("[]") == []
    assert read(" [ ] ") == []


@pytest.mark.usefixtures("read_at_once")
def test_the_members_of_an_object_come_by_name_and_those_of_its_lists_one_by_one() -> None:
    document = {"format": "x", "version": 17, "empty": [], "list": [{"a": 1}, {"a": 2}], "object": {"b": [1, 2]}}
    assert read(json.dumps(document)) == [
        ("format", "format", "x"),
        ("version", "version", 17),
        ("list", "list[0]", {"a": 1}),
        ("list", "list[1]", {"a": 2}),
        ("object", "object", {"b": [1, 2]}),
    ]
    assert read("{}") == []


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read(b"\xef\xbb\xbf[1]") == [("", "[0]", 1)]


@pytest.mark.usefixtures("read_at_once")
@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "x",
        '"text"',
        "12",
        "[1",
        "[1,",
        "[1,]",
        "[1 2]",
        "[1]]",
        "[1] x",
        '["cut',
        '["\\u12',
        "[tru",
        "[1}",
        "{",
        "{]",
    ]
    + ['{"a"', '{"a":', '{"a":1', '{"a":1,}', "{1:2}", '{"a" 1}', '{"a":[1}', '{"a":1]', "[NaN]", "[-Infinity]"]
    + [b"[\xff\xfe]", b'["\xc3', b"PK\x03\x04", '["a\x01b"]', "[" + "9" * 5_000 + "]"],
)
def test_what_is_no_json_is_refused(damaged: str | bytes) -> None:
    with pytest.raises(ImportUnreadable):
        read(damaged)


def test_a_mistake_is_found_without_reading_to_the_end() -> None:
    class Endless(io.RawIOBase):
        asked = 0

        def read(self, size: int = -1) -> bytes:
            self.asked += 1
            return b'[{"a": wrong, "b": "and so on"' if self.asked == 1 else b" " * size

    file = Endless()
    with pytest.raises(ImportUnreadable):
        list(pieces(file))  # type: ignore[arg-type]
    assert file.asked == 1


@pytest.mark.parametrize("deep", ["[" * 200_000, '[{"a":' * 100_000])
def test_a_document_nested_without_end_is_refused(deep: str) -> None:
    with pytest.raises(ImportUnreadable):
        read(deep)


def test_a_piece_or_a_document_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "READ_AT_ONCE", 10)
    monkeypatch.setattr(json_stream, "PIECE_CHARACTERS", 1_000)
    assert len(read(json.dumps(["x" * 100] * 50))) == 50
    with pytest.raises(ImportTooLarge):
        read(json.dumps(["x" * 3_000]))
    monkeypatch.setattr(json_stream, "DOCUMENT_BYTES", 2_000)
    with pytest.raises(ImportTooLarge):
        read(json.dumps(["x" * 100] * 50))

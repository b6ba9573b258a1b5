"""Taking values out of JSON from outside: each of its type and within its limits, or an error that names the place."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from jarvis_memory.errors import ImportInvalid
from jarvis_memory.text import clean

NESTING = 20
# Dates that every page can show in every time zone.
YEARS = range(1970, 2201)
LARGEST_NUMBER = 2**31 - 1

Choice = TypeVar("Choice", bound=str)


def invalid(place: str, reason: str) -> ImportInvalid:
    """The error for what stands at this place of the file."""
    return ImportInvalid(f"{place} {reason}.", field=place)


class Fields:
    """An object of the file. `place` is where it stands. Each method raises ImportInvalid."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise invalid(place, "is no object")
        self._values = value
        self.place = place

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}"

    def has(self, name: str) -> bool:
        """Whether there is such a field with something in it."""
        return self._values.get(name) is not None

    def text(self, name: str, limit: int) -> str:
        """A text of at most `limit` characters, cleaned."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise invalid(self._at(name), "is no text")
        if len(value) > limit:
            raise invalid(self._at(name), f"has more than {limit} characters")
        return clean(value)

    def word(self, name: str, limit: int) -> str:
        """The same, and not blank."""
        value = self.text(name, limit).strip()
        if not value:
            raise invalid(self._at(name), "is empty")
        return value

    def one_of(self, name: str, choices: tuple[Choice, ...]) -> Choice:
        """One of these texts."""
        for choice in choices:
            if self._values.get(name) == choice:
                return choice
        raise invalid(self._at(name), f"is not one of {', '.join(choices)}")

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise invalid(self._at(name), "is neither true nor false")
        return value

    def number(self, name: str, most: int = LARGEST_NUMBER) -> int:
        """A whole number from 0 to `most`."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise invalid(self._at(name), f"is no whole number from 0 to {most}")
        return value

    def amount(self, name: str) -> float:
        """A number of 0 or more."""
        value = self._values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST_NUMBER:
            raise invalid(self._at(name), "is no number of 0 or more")
        return float(value)

    def moment(self, name: str) -> datetime:
        """A time of ISO 8601 with its zone."""
        value = self._values.get(name)
        try:
            found = datetime.fromisoformat(value) if isinstance(value, str) else None
            moment = found.astimezone(UTC) if found and found.tzinfo else None
        except (ValueError, OverflowError):
            moment = None
        if moment is None or moment.year not in YEARS:
            raise invalid(self._at(name), "is no time with a zone, like 2026-11-12T09:30:00+00:00")
        return moment

    def inner(self, name: str) -> "Fields":
        """The object in this field."""
        return Fields(self._values.get(name), self._at(name))

    def items(self, name: str, limit: int) -> Iterator["Fields"]:
        """The objects of the list in this field."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise invalid(self._at(name), "is no list")
        if len(value) > limit:
            raise invalid(self._at(name), f"has more than {limit} items")
        for number, item in enumerate(value):
            yield Fields(item, f"{self._at(name)}[{number}]")

    def texts(self, name: str, limit: int) -> list[str]:
        """A list of at most so many texts of at most so many characters."""
        value = self._values.get(name)
        if not isinstance(value, list) or len(value) > limit:
            raise invalid(self._at(name), f"is no list of at most {limit} texts")
        if not all(isinstance(item, str) and len(item) <= limit for item in value):
            raise invalid(self._at(name), f"has something else than texts of at most {limit} characters")
        return [clean(item) for item in value]

    def json(self, name: str) -> dict[str, Any]:
        """An object of any content that the database can store."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise invalid(self._at(name), "is no object")
        storable: dict[str, Any] = _storable(value, self._at(name), 0)
        return storable


def _storable(value: Any, place: str, depth: int) -> Any:
    if depth > NESTING:
        raise invalid(place, f"is nested more than {NESTING} times")
    if isinstance(value, dict):
        return {clean(key): _storable(item, place, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_storable(item, place, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(place, "has a number that is too large")
    return clean(value) if isinstance(value, str) else value

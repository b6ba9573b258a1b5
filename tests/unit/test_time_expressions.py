"""The times in questions, as seen from Monday, 30 November 2026."""

from datetime import date

import pytest

from jarvis_memory.time_expressions import time_ranges

TODAY = date(2026, 11, 30)


def days(text: str) -> list[tuple[str, str]]:
    return [(str(one.first), str(one.last)) for one in time_ranges(text, TODAY)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Was hatten wir letzte Woche zum Rasenmäher?", "2026-11-22", "2026-11-29"),
        ("What did we talk about last week?", "2026-11-22", "2026-11-29"),
        ("Worum ging es gestern?", "2026-11-29", "2026-11-29"),
        ("und vorgestern", "2026-11-28", "2026-11-28"),
        ("Was war am Freitag?", "2026-11-27", "2026-11-27"),
        ("Was war am Montag?", "2026-11-23", "2026-11-23"),
        ("Im Mai haben wir geplant", "2026-05-01", "2026-05-31"),
        ("im Dezember", "2025-12-01", "2025-12-31"),
        ("Anfang Juni", "2026-06-01", "2026-06-12"),
        ("Mitte März", "2026-03-09", "2026-03-22"),
        ("Ende September", "2026-09-19", "2026-09-30"),
        ("im Mai 2025", "2025-05-01", "2025-05-31"),
        ("am 12.5.", "2026-05-12", "2026-05-12"),
        ("am 12.5.2024", "2024-05-12", "2024-05-12"),
        ("am 3. Oktober", "2026-10-03", "2026-10-03"),
        ("on October 3rd", "2026-10-03", "2026-10-03"),
        ("31.12.", "2025-12-31", "2025-12-31"),
        ("letzten Monat", "2026-10-01", "2026-10-31"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("letzten Sommer", "2026-06-01", "2026-08-31"),
        ("im Winter", "2025-12-01", "2026-02-28"),
        ("voriges Jahr", "2025-01-01", "2025-12-31"),
        ("vor drei Wochen", "2026-11-02", "2026-11-16"),
        ("two days ago", "2026-11-28", "2026-11-28"),
        ("in den letzten zwei Wochen", "2026-11-16", "2026-11-30"),
        ("an Ostern", "2026-03-26", "2026-04-15"),
    ],
)
def test_a_time_is_read(text: str, first: str, last: str) -> None:
    assert days(text) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    [
        "nächste Woche",
        "morgen",
        "May I ask you something?",
        "Wie geht es dir?",
        "12.5 Prozent",
        "am 31.2.",
        "1.13.",
        "",
    ],
)
def test_what_names_no_time_of_the_past_is_left_alone(text: str) -> None:
    assert days(text) == []


def test_a_time_is_read_once() -> None:
    assert len(days("im Mai 2025, am 3. Juni 2025 und letzte Woche")) == 3


def test_a_range_that_has_begun_ends_today() -> None:
    assert days("im November") == [("2026-11-01", "2026-11-30")]


def test_the_29th_of_february_needs_a_leap_year() -> None:
    assert days("am 29.2.2024") == [("2024-02-29", "2024-02-29")]


def test_the_shorter_the_time_the_more_it_tells() -> None:
    [day], [month], [year] = (time_ranges(text, TODAY) for text in ("gestern", "im Mai", "2024"))
    assert day.weight > month.weight > year.weight >= 0
    assert month.weight == pytest.approx(1, abs=0.02)

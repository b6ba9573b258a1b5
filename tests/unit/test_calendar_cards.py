"""The cards of the calendar's tools: what they say, in the person's words, with nothing of others formatted."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.ui.calendar_cards import SHOWN, calendar_headline
from jarvis_memory.ui.dates import written_period
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

TEXTS = Texts("de")
TITLE = "*Jour fixe* ![x](https://example.org/x.png)"
EVENT = {
    "event_id": "/w.ics#20261026T100000",
    "calendar": "Arbeit & Büro",
    "title": TITLE,
    "start": "2026-10-26T10:00+01:00",
    "end": "2026-10-26T11:00+01:00",
    "all_day": False,
    "attendees": [
        {"name": "Ben", "email": "ben@example.org", "status": "accepted"},
        {"email": "eva@example.org", "status": "x-odd"},
    ],
    "recurring": True,
}
WHEN = plain("Mo., 26. Oktober 2026, 10:00–11:00")
SHORT = f"{plain(TITLE)}, {WHEN}"
ACTION = {"event_id": EVENT["event_id"], "scope": "this", "version": "1", "event": EVENT}
NOTHING = {"events": [], "more": 0, "calendars": ["Privat"], "skipped": 0}


def draw(function: str, *arguments: object) -> None:
    """A script of its own, as Streamlit runs it."""
    from jarvis_memory.ui import calendar_cards
    from jarvis_memory.ui.frame import Page
    from jarvis_memory.ui.texts import Texts

    page = Page(parts=None, preferences=None, texts=Texts("de"))  # type: ignore[arg-type]
    getattr(calendar_cards, function)(page, *arguments)


def shown(function: str, *arguments: Any) -> list[str]:
    """Every line that is drawn."""
    page = AppTest.from_function(draw, args=(function, *arguments), default_timeout=30).run()
    assert not page.exception
    return [line for element in [*page.markdown, *page.caption] for line in element.value.split("\n")]


@pytest.mark.parametrize(
    ("name", "result", "headline"),
    [
        ("list_calendar_events", NOTHING, "**Kalender:** keine Termine"),
        ("list_calendar_events", NOTHING | {"events": [EVENT]}, "**Kalender:** 1 Termin"),
        ("list_calendar_events", NOTHING | {"events": [EVENT], "more": 4}, "**Kalender:** 5 Termine"),
        ("find_free_time", {"free": [EVENT, EVENT]}, "**Freie Zeit:** 2 Lücken"),
        ("create_calendar_event", {"event": EVENT}, f"**Eingetragen:** {SHORT}"),
        ("update_calendar_event", ACTION, f"**Termin geändert:** {SHORT}"),
        ("delete_calendar_event", ACTION, f"**Termin gelöscht:** {SHORT}"),
    ],
)
def test_a_headline_says_what_was_done(name: str, result: dict[str, Any], headline: str) -> None:
    assert calendar_headline(TEXTS, {"name": name, "input": {}, "result": result}) == headline


@pytest.mark.parametrize(
    ("start", "end", "german", "english"),
    [
        (
            *("2026-10-26T10:00+01:00", "2026-10-26T11:30+01:00"),
            *("Mo., 26. Oktober 2026, 10:00–11:30", "Mon, 26 October 2026, 10:00–11:30"),
        ),
        (
            *("2026-10-24T22:00+02:00", "2026-10-25T02:00+01:00"),
            *("Sa., 24. Oktober 2026, 22:00 – So., 25. Oktober 2026, 02:00", None),
        ),
        ("2026-10-26", "2026-10-26", "Mo., 26. Oktober 2026", "Mon, 26 October 2026"),
        ("2026-10-26", "2026-10-27", "Mo., 26. Oktober 2026 – Di., 27. Oktober 2026", None),
    ],
)
def test_a_period_is_written_as_it_stands_in_the_appointment(
    start: str, end: str, german: str, english: str | None
) -> None:
    assert written_period(start, end, "de") == german
    assert english is None or written_period(start, end, "en") == english


def test_a_list_shows_the_first_appointments_and_what_is_missing() -> None:
    result = NOTHING | {"events": [EVENT] * (SHOWN + 2), "more": 3, "skipped": 1, "unreadable_calendars": ["*Fest*"]}
    lines = shown(
        "draw_calendar_result", {"name": "list_calendar_events", "input": {"query": "*fix*"}, "result": result}
    )
    assert lines.count(f"- {SHORT}") == SHOWN
    assert TEXTS.counted("calendar.more", 5) in lines
    assert TEXTS("calendar.query", query=plain("*fix*")) in lines
    assert TEXTS.counted("calendar.skipped", 1) in lines
    assert TEXTS("calendar.unread", names=plain("*Fest*")) in lines


def test_what_was_entered_shows_where_and_with_whom() -> None:
    result = {"created": True, "event": EVENT | {"location": "Raum *1*", "repeats": {"unit": "month", "every": 1}}}
    assert shown("draw_calendar_result", {"name": "create_calendar_event", "input": {}, "result": result}) == [
        "- **Wiederholt sich:** jeden Monat",
        f"- **Kalender:** {plain('Arbeit & Büro')}",
        f"- **Ort:** {plain('Raum *1*')}",
        f"- **Teilnehmende:** {plain('Ben ben@example.org')} (zugesagt), {plain('eva@example.org')}",
    ]


def test_a_new_appointment_that_waits_shows_all_of_it() -> None:
    action = {
        "title": "Essen",
        "start": "2026-10-26",
        "end": "2026-10-27",
        "calendar": "Privat",
        "description": "*Los*",
        "repeats": {"unit": "week", "every": 2, "until": "2026-12-21"},
    }
    assert shown("draw_calendar_action", "create_calendar_event", action | {"attendees": ["ben@example.org"]}) == [
        "- **Titel:** Essen",
        f"- **Zeit:** {plain('Mo., 26. Oktober 2026 – Di., 27. Oktober 2026')}",
        f"- **Wiederholt sich:** alle 2 Wochen, bis {plain('Mo., 21. Dezember 2026')}",
        "- **Kalender:** Privat",
        f"- **Beschreibung:** {plain('*Los*')}",
        f"- **Teilnehmende:** {plain('ben@example.org')}",
    ]


def test_a_change_that_waits_shows_what_is_and_what_would_be_and_for_how_many() -> None:
    changes = {"title": "Neu", "end": "2026-10-26T11:30+01:00", "location": "Raum 2"}
    lines = shown("draw_calendar_action", "update_calendar_event", ACTION | {"changes": changes})
    assert lines[:4] == [
        SHORT,
        f"- **Titel:** {plain(TITLE)} → Neu",
        f"- **Zeit:** {WHEN} → {plain('Mo., 26. Oktober 2026, 10:00–11:30')}",
        "- **Ort:** (leer) → Raum 2",
    ]
    assert TEXTS("calendar.only_this") in lines
    assert TEXTS("calendar.may_notify") in lines


def test_a_deletion_that_waits_shows_what_and_whether_all_of_a_series_go() -> None:
    lines = shown("draw_calendar_action", "delete_calendar_event", ACTION | {"scope": "all"})
    assert {f"- **Titel:** {plain(TITLE)}", f"- **Zeit:** {WHEN}", TEXTS("calendar.whole_series")} <= set(lines)
    alone = ACTION | {"scope": "all", "event": EVENT | {"recurring": False, "attendees": []}}
    lines = shown("draw_calendar_action", "delete_calendar_event", alone)
    assert TEXTS("calendar.whole_series") not in lines
    assert TEXTS("calendar.may_notify") not in lines

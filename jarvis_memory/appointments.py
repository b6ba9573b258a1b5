"""What stands in an appointment: the text that calendars keep (iCalendar) read, with its repetitions expanded.

Text of others is only cleaned here; it is data wherever it goes. How such texts are changed: appointment_changes.py.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

from jarvis_memory.errors import AppointmentUnreadable
from jarvis_memory.text import clean, one_line, shorten

TITLE_CHARACTERS = 300
TEXT_CHARACTERS = 5_000
ATTENDEES = 50
# Rules by the minute, and those that hardly ever fit, keep the library counting for minutes: no person means them.
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_NOT_BY_DAY_OR_WEEK = ("BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS")

# A moment with its zone, or a day.
When = datetime | date
# The library's own types are unions of everything that can stand in a file.
VEvent = Any


@dataclass(frozen=True, kw_only=True)
class Attendee:
    """Somebody who was invited. `status`: accepted, declined, tentative, needs-action, …"""

    name: str
    email: str
    status: str


@dataclass(frozen=True, kw_only=True)
class Appointment:
    """One occurrence, as a person sees it. `end` is the last day where `all_day`."""

    # Names the occurrence within its series; empty where nothing repeats.
    occurrence: str
    title: str
    start: When
    end: When
    location: str
    description: str
    attendees: tuple[Attendee, ...]
    recurring: bool
    # Whether the time counts as free all the same, as with a birthday.
    free: bool

    @property
    def all_day(self) -> bool:
        """Whether it is about days."""
        return not isinstance(self.start, datetime)

    def span(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """From when to when, also where it is about days."""
        if isinstance(self.start, datetime) and isinstance(self.end, datetime):
            return self.start, self.end
        return midnight(self.start, zone), midnight(self.end + timedelta(days=1), zone)


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The beginning of the day."""
    return datetime(day.year, day.month, day.day, tzinfo=zone)


def read_calendar(data: str) -> icalendar.Calendar:
    """The parsed text. Raises AppointmentUnreadable."""
    try:
        calendar = icalendar.Calendar.from_ical(data)
        events = events_of(calendar)
        usable = bool(events) and all(event.get("UID") and isinstance(event.start, date) for event in events)
        usable = usable and all(_is_sane(rule) for event in events for rule in _list(event.get("RRULE")))
    except Exception as error:  # noqa: BLE001 - a broken text makes the library raise anything
        raise AppointmentUnreadable from error
    if not usable:
        raise AppointmentUnreadable
    return calendar


def events_of(calendar: icalendar.Calendar) -> list[VEvent]:
    """The events of an object: the one with the rule, and those of a series that differ."""
    return list(calendar.walk("VEVENT"))


def _is_sane(rule: Any) -> bool:
    frequency = rule["FREQ"][0].upper()
    return frequency in _FREQUENCIES and (
        frequency in ("MONTHLY", "YEARLY") or not any(part in rule for part in _NOT_BY_DAY_OR_WEEK)
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def occurrences(data: str, start: datetime, end: datetime, zone: ZoneInfo) -> list[Appointment]:
    """What of this object happens between these moments, cancelled ones aside. Raises AppointmentUnreadable."""
    calendar = read_calendar(data)
    try:
        # A day more on both sides: days, and times without a zone, are the person's and not UTC's.
        day = timedelta(days=1)
        found = recurring_ical_events.of(calendar).between(start - day, end + day)
        shown = [as_appointment(event, zone, recurring=is_series(calendar)) for event in found if not _is_off(event)]
    except Exception as error:  # noqa: BLE001 - see above
        raise AppointmentUnreadable from error
    return [one for one in shown if _overlaps(one, start, end, zone)]


def is_series(calendar: icalendar.Calendar) -> bool:
    """Whether the object repeats."""
    parts = ("RRULE", "RDATE", "RECURRENCE-ID")
    return any(part in event for event in events_of(calendar) for part in parts)


def _is_off(event: VEvent) -> bool:
    return str(event.get("STATUS", "")).upper() == "CANCELLED"


def _overlaps(one: Appointment, start: datetime, end: datetime, zone: ZoneInfo) -> bool:
    first, last = one.span(zone)
    return first < end and (last > start or first == last == start)


def as_appointment(event: VEvent, zone: ZoneInfo, *, recurring: bool) -> Appointment:
    """The event as a person of this time zone sees it."""
    start, end = in_zone(event.start, zone), in_zone(event.end, zone)
    if not isinstance(end, datetime):
        # Their end is the first day after; broken programs write the day itself.
        end = max(end - timedelta(days=1), start)
    return Appointment(
        occurrence=occurrence_of(event) if recurring else "",
        title=shorten(one_line(_text(event, "SUMMARY")), TITLE_CHARACTERS),
        start=start,
        end=end,
        location=shorten(one_line(_text(event, "LOCATION")), TITLE_CHARACTERS),
        description=shorten(_text(event, "DESCRIPTION").strip(), TEXT_CHARACTERS),
        attendees=tuple(_attendee(one) for one in _list(event.get("ATTENDEE"))[:ATTENDEES]),
        recurring=recurring,
        free=str(event.get("TRANSP", "")).upper() == "TRANSPARENT",
    )


def occurrence_of(event: VEvent) -> str:
    """The name of an occurrence: when it would be if nobody had moved it, in its series' own time."""
    moment = event["RECURRENCE-ID"] if "RECURRENCE-ID" in event else event["DTSTART"]
    return str(moment.to_ical().decode())


def in_zone(moment: When, zone: ZoneInfo) -> When:
    """The same in the person's time; a time without a zone is theirs already."""
    if not isinstance(moment, datetime):
        return moment
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)


def _text(event: VEvent, name: str) -> str:
    return clean(str(_list(event.get(name, ""))[0]))


def _attendee(address: Any) -> Attendee:
    return Attendee(
        name=shorten(one_line(clean(str(address.params.get("CN", "")))), 100),
        email=shorten(one_line(clean(str(address))).removeprefix("mailto:").removeprefix("MAILTO:"), 200),
        status=shorten(one_line(clean(str(address.params.get("PARTSTAT", "NEEDS-ACTION")))), 20).lower(),
    )

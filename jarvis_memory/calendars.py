"""What can be done with the person's calendars: look, find free time, create, change, delete.

The server is calendar_server.py's matter, what stands in an appointment appointments.py's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from jarvis_memory.appointment_changes import changed, find_event, new_object, without
from jarvis_memory.appointments import (
    Appointment,
    as_appointment,
    events_of,
    is_series,
    occurrences,
    read_calendar,
)
from jarvis_memory.calendar_server import TIMEOUT, Calendar, CalendarServer, StoredObject, connect
from jarvis_memory.errors import (
    AppointmentChanged,
    AppointmentUnreadable,
    CalendarUnknown,
    ServiceAnswerUnusable,
)
from jarvis_memory.settings import Settings
from jarvis_memory.text import comparison_key

Scope = Literal["this", "all"]
GAPS = 50


@dataclass(frozen=True, kw_only=True)
class Event:
    """An appointment and where it is kept. `id` names the occurrence, too; `version` differs once it was changed."""

    id: str
    version: str
    calendar: Calendar
    appointment: Appointment


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What was found, in the order of time. `skipped`: objects that are damaged; `unread`: calendars that failed."""

    events: list[Event]
    calendars: list[Calendar]
    skipped: int
    unread: list[Calendar]


def check_calendar(settings: Settings, *, timeout: float = TIMEOUT) -> None:
    """Connect, log in and look for calendars, as every tool does. Raises a ServiceError that says what to check."""
    with connect(settings, timeout=timeout) as server:
        server.calendars()


def list_events(server: CalendarServer, start: datetime, end: datetime, zone: ZoneInfo, query: str = "") -> Listing:
    """What happens between these moments in all calendars, with these words anywhere in it. Raises a ServiceError."""
    calendars = server.calendars()
    events, unread, skipped = [], [], 0
    day = timedelta(days=1)
    for calendar in calendars:
        try:
            # What a day is, and a time without a zone, the server takes as UTC's.
            found = server.search(calendar, (start - day).astimezone(UTC), (end + day).astimezone(UTC))
        except ServiceAnswerUnusable:
            unread.append(calendar)
            continue
        for stored in found:
            try:
                shown = occurrences(stored.data, start, end, zone)
            except AppointmentUnreadable:
                skipped += 1
                continue
            events += [_event(stored, one) for one in shown if _fits(one, query)]
    if len(unread) == len(calendars):
        raise ServiceAnswerUnusable(service="caldav")
    events.sort(key=lambda event: (event.appointment.span(zone)[0].astimezone(UTC), event.appointment.title))
    return Listing(events=events, calendars=calendars, skipped=skipped, unread=unread)


def _event(stored: StoredObject, one: Appointment) -> Event:
    event_id = f"{stored.path}#{one.occurrence}" if one.occurrence else stored.path
    return Event(id=event_id, version=stored.version, calendar=stored.calendar, appointment=one)


def _fits(one: Appointment, query: str) -> bool:
    people = (f"{attendee.name} {attendee.email}" for attendee in one.attendees)
    text = " ".join((one.title, one.location, one.description, *people)).casefold()
    return all(word in text for word in query.casefold().split())


def find_free_time(
    server: CalendarServer, start: datetime, end: datetime, zone: ZoneInfo, *, length: timedelta, hours: tuple[int, int]
) -> list[tuple[datetime, datetime]]:
    """Gaps of at least this length between these hours of each day, at most GAPS. Raises a ServiceError."""
    listing = list_events(server, start, end, zone)
    if listing.unread:  # what cannot be seen is not free
        raise ServiceAnswerUnusable(service="caldav")
    busy = [event.appointment.span(zone) for event in listing.events if not event.appointment.free]
    gaps: list[tuple[datetime, datetime]] = []
    day = start.astimezone(zone).date()
    while day <= end.astimezone(zone).date() and len(gaps) < GAPS:
        # In UTC, where an hour is an hour.
        free_from = max(_at(day, hours[0], zone), start.astimezone(UTC))
        until = min(_at(day, hours[1], zone), end.astimezone(UTC))
        for begin, finish in [*busy, (until, until)]:
            if min(begin.astimezone(UTC), until) - free_from >= length:
                gaps.append((free_from.astimezone(zone), min(begin.astimezone(UTC), until).astimezone(zone)))
            free_from = max(free_from, finish.astimezone(UTC))
        day += timedelta(days=1)
    return gaps[:GAPS]


def _at(day: Any, hour: int, zone: ZoneInfo) -> datetime:
    day, hour = (day + timedelta(days=1), 0) if hour == 24 else (day, hour)
    return datetime.combine(day, time(hour), zone).astimezone(UTC)


def get_event(server: CalendarServer, event_id: str, zone: ZoneInfo) -> Event:
    """The appointment as it is now; AppointmentChanged where it is gone, AppointmentUnreadable, a ServiceError."""
    stored, occurrence = _load(server, event_id)
    calendar = read_calendar(stored.data)
    found = find_event(calendar, occurrence)
    return _event(stored, as_appointment(found, zone, recurring=is_series(calendar)))


def check_update(
    server: CalendarServer, event_id: str, changes: Mapping[str, Any], scope: Scope, zone: ZoneInfo
) -> None:
    """Raises what `update_event` would, without changing anything."""
    stored, occurrence = _load(server, event_id)
    changed(stored.data, occurrence, changes, whole=scope == "all", zone=zone)


def _load(server: CalendarServer, event_id: str) -> tuple[StoredObject, str]:
    path, _, occurrence = event_id.partition("#")
    for calendar in server.calendars():
        # Only what lies in a calendar: the name comes from outside.
        if calendar.holds(path):
            stored = server.load(calendar, path)
            if stored is not None:
                return stored, occurrence
    raise AppointmentChanged


def choose_calendar(server: CalendarServer, name: str | None) -> Calendar:
    """The calendar of this name, or the first one; of those that can be written to. Raises CalendarUnknown."""
    calendars = [calendar for calendar in server.calendars() if calendar.writable]
    for calendar in calendars:
        if name is None or comparison_key(calendar.name) == comparison_key(name):
            return calendar
    raise CalendarUnknown(names=[calendar.name for calendar in calendars])


def create_event(server: CalendarServer, calendar: Calendar, values: Mapping[str, Any], zone: ZoneInfo) -> Event:
    """The new appointment: title, start, end (the last day for days), where given location, description, attendees.

    `repeats`, where given, has `unit` (day, week, month, year), `every` (2: each second one) and maybe `until`, a day
    as text. Returned is the first occurrence. Raises CalendarReadOnly, a ServiceError.
    """
    name, data = new_object(values)
    stored = server.create(calendar, f"{name}.ics", data)
    return _event(stored, as_appointment(events_of(read_calendar(data))[0], zone, recurring="repeats" in values))


def update_event(
    server: CalendarServer, event_id: str, version: str, changes: Mapping[str, Any], scope: Scope, zone: ZoneInfo
) -> Event:
    """The appointment with other values, where it still is this version.

    Raises AppointmentChanged, AppointmentUnreadable, CalendarReadOnly, SeriesCannotMove, a ServiceError.
    """
    stored, occurrence = _load_version(server, event_id, version)
    data = changed(stored.data, occurrence, changes, whole=scope == "all", zone=zone)
    server.replace(stored, data)
    calendar = read_calendar(data)
    try:
        found = find_event(calendar, occurrence)
    except AppointmentChanged:  # a series that was moved: its occurrences have other names now
        found = next(event for event in events_of(calendar) if "RECURRENCE-ID" not in event)
    return _event(stored, as_appointment(found, zone, recurring=is_series(calendar)))


def delete_event(server: CalendarServer, event_id: str, version: str, scope: Scope) -> None:
    """Delete the appointment, or one of a series, where it still is this version. Raises as `update_event`."""
    stored, occurrence = _load_version(server, event_id, version)
    data = without(stored.data, occurrence) if occurrence and scope == "this" else ""
    if data:
        server.replace(stored, data)
    else:
        server.delete(stored)


def _load_version(server: CalendarServer, event_id: str, version: str) -> tuple[StoredObject, str]:
    stored, occurrence = _load(server, event_id)
    if stored.version != version:
        raise AppointmentChanged
    return stored, occurrence

"""How the text of an appointment (iCalendar) is written and changed: one that is new, one of a series, or all of it."""

import copy
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

from jarvis_memory.appointments import VEvent, When, events_of, in_zone, is_series, occurrence_of, read_calendar
from jarvis_memory.errors import AppointmentChanged, SeriesCannotMove

_TEXTS = {"title": "SUMMARY", "location": "LOCATION", "description": "DESCRIPTION"}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_OF_A_SERIES = ("RRULE", "RDATE", "EXDATE", "EXRULE")


def new_object(values: Mapping[str, Any]) -> tuple[str, str]:
    """The name and the text of a new object: title, start, end; where given location, description, attendees, rule."""
    name = str(uuid.uuid4())
    event = icalendar.Event.new(uid=name, summary=values["title"])
    _set_times(event, values["start"], _end_in_file(values["end"]))
    if not isinstance(values["start"], datetime):
        # As other programs do: a day's note does not make the day busy.
        event.add("TRANSP", "TRANSPARENT")
    if "repeats" in values:
        event.add("RRULE", _rule(values["repeats"], values["start"]))
    for field in ("location", "description"):
        if values.get(field):
            event.add(_TEXTS[field], values[field])
    for email in values.get("attendees", ()):
        address = icalendar.vCalAddress(f"mailto:{email}")
        # They are noted, nobody is written to: mail goes out only after the person saw it.
        address.params["SCHEDULE-AGENT"] = "NONE"
        address.params["PARTSTAT"] = "NEEDS-ACTION"
        event.add("ATTENDEE", address, encode=False)
    calendar = icalendar.Calendar()
    calendar.add("PRODID", "-//JARVIS//DE")
    calendar.add("VERSION", "2.0")
    calendar.add_component(event)
    return name, _written(calendar)


def _rule(repeats: Mapping[str, Any], start: When) -> dict[str, Any]:
    rule: dict[str, Any] = {"FREQ": _FREQUENCIES[repeats["unit"]], "INTERVAL": repeats["every"]}
    if "until" in repeats:
        last: When = date.fromisoformat(repeats["until"])
        if isinstance(start, datetime):
            # RFC 5545, 3.3.10: in UTC where the start has a zone. The whole day belongs to it.
            last = datetime.combine(last, time(23, 59, 59), start.tzinfo).astimezone(UTC)
        rule["UNTIL"] = last
    return rule


def find_event(calendar: icalendar.Calendar, occurrence: str) -> VEvent:
    """The event that holds this occurrence as it is now. Raises AppointmentChanged where there is none."""
    if not occurrence:
        if is_series(calendar):
            raise AppointmentChanged
        return events_of(calendar)[0]
    for event in events_of(calendar):
        if "RECURRENCE-ID" in event and occurrence_of(event) == occurrence:
            return event
    moment = _moment(occurrence, _master(calendar))
    day = timedelta(days=1)
    for event in recurring_ical_events.of(calendar).between(moment - day, moment + day):
        if occurrence_of(event) == occurrence:
            return event
    raise AppointmentChanged


def changed(data: str, occurrence: str, changes: Mapping[str, Any], *, whole: bool, zone: ZoneInfo) -> str:
    """The text with other values: of this occurrence, or of the whole series.

    `changes` has some of title, start, end, location, description; the times are those of this occurrence.
    Raises AppointmentChanged, AppointmentUnreadable, SeriesCannotMove.
    """
    calendar = read_calendar(data)
    event = find_event(calendar, occurrence)
    start, end = _new_times(event, changes, zone)
    moved = "start" in changes or "end" in changes
    if occurrence and whole:
        master = _master(calendar)
        former = {field: str(master.get(name, "")) for field, name in _TEXTS.items()}
        for one in events_of(calendar):
            # What is different in one of them stays so.
            _set_texts(
                one, {f: v for f, v in changes.items() if f in former and str(one.get(_TEXTS[f], "")) == former[f]}
            )
            _touch(one)
        if moved:
            _move_series(calendar, event, start, end)
        return _written(calendar)
    if occurrence and event not in calendar.subcomponents:
        event = _own_event(calendar, event)
    _set_texts(event, changes)
    if moved:
        _set_times(event, start, end)
    _touch(event)
    return _written(calendar)


def without(data: str, occurrence: str) -> str:
    """The text of a series without this occurrence, empty when nothing is left.

    Raises AppointmentChanged, AppointmentUnreadable.
    """
    calendar = read_calendar(data)
    event = find_event(calendar, occurrence)
    if event in calendar.subcomponents:
        calendar.subcomponents.remove(event)
    # Without a rule it was one of the single dates of a series that a person was invited to.
    for master in events_of(calendar):
        if "RECURRENCE-ID" not in master:
            master.add("EXDATE", event["RECURRENCE-ID"].dt)
            _touch(master)
    return _written(calendar) if events_of(calendar) else ""


def _master(calendar: icalendar.Calendar) -> VEvent:
    """The event with the rule."""
    for event in events_of(calendar):
        if "RECURRENCE-ID" not in event:
            return event
    # Somebody was invited to single dates of a series only.
    raise AppointmentChanged


def _moment(occurrence: str, master: VEvent) -> datetime:
    try:
        moment = icalendar.vDDDTypes.from_ical(occurrence)  # type: ignore[no-untyped-call]
    except ValueError:
        raise AppointmentChanged from None
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    zone = master.start.tzinfo if isinstance(master.start, datetime) else None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone or UTC)


def _own_event(calendar: icalendar.Calendar, occurrence: VEvent) -> VEvent:
    """An event of its own for one occurrence of the series, so that it can differ."""
    event = copy.deepcopy(_master(calendar))
    for name in _OF_A_SERIES:
        event.pop(name, None)
    for name in ("DTSTART", "DTEND", "RECURRENCE-ID"):
        event[name] = occurrence[name]
    event.pop("DURATION", None)
    calendar.add_component(event)
    return event


def _new_times(event: VEvent, changes: Mapping[str, Any], zone: ZoneInfo) -> tuple[When, When]:
    """The new start and end; the end as iCalendar has it. Where only the start changes, it stays as long as it is."""
    was, until = in_zone(event.start, zone), in_zone(event.end, zone)
    start: When = changes.get("start", was)
    if "end" in changes:
        return start, _end_in_file(changes["end"])
    if isinstance(start, datetime) is isinstance(was, datetime):
        return start, start + (until - was)
    return start, start + (timedelta(hours=1) if isinstance(start, datetime) else timedelta(days=1))


def _end_in_file(end: When) -> When:
    """The end as iCalendar has it: where it is about days, the first one after."""
    return end if isinstance(end, datetime) else end + timedelta(days=1)


def _move_series(calendar: icalendar.Calendar, event: VEvent, start: When, end: When) -> None:
    """Move all of it by as much as this occurrence moves, by the clock on its own wall. Raises SeriesCannotMove."""
    # Adding to a moment with a zone moves what the clock shows, which is what a series repeats.
    was = event["RECURRENCE-ID"].dt
    if isinstance(was, datetime) is not isinstance(start, datetime):
        raise SeriesCannotMove
    by = _wall(start, was) - _wall(was, was)
    length = _wall(end, was) - _wall(start, was)
    master = _master(calendar)
    for rule in master.get("RRULE") if isinstance(master.get("RRULE"), list) else [master.get("RRULE")]:
        if rule is not None:
            _move_rule(rule, (_day(start, was) - _day(was, was)).days, by)
    for one in events_of(calendar):
        own = one.get("RECURRENCE-ID")
        if own is None or one.start == own.dt:  # one that was moved by itself stays where it is
            _set_times(one, one.start + by, one.start + by + length)
        if own is not None:
            _set(one, "RECURRENCE-ID", [own.dt + by])
        for name in ("EXDATE", "RDATE"):
            moments = [value.dt for values in _list(one.get(name)) for value in values.dts]
            if any(isinstance(moment, tuple) for moment in moments):
                raise SeriesCannotMove
            _set(one, name, [moment + by for moment in moments])


def _move_rule(rule: Any, days: int, by: timedelta) -> None:
    if "UNTIL" in rule:
        rule["UNTIL"] = [until + by for until in rule["UNTIL"]]
    parts = {part.upper() for part in rule if part.upper().startswith("BY")}
    if parts - {"BYDAY"} and (days or parts & {"BYHOUR", "BYMINUTE", "BYSECOND"}):
        raise SeriesCannotMove
    if days and "BYDAY" in parts:
        weekdays = [str(day).upper() for day in rule["BYDAY"]]
        if any(day not in _WEEKDAYS for day in weekdays):  # the first Monday of the month
            raise SeriesCannotMove
        rule["BYDAY"] = [_WEEKDAYS[(_WEEKDAYS.index(day) + days) % 7] for day in weekdays]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _wall(moment: When, like: When) -> datetime:
    """What the clock shows in the time zone of `like`."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    zone = like.tzinfo if isinstance(like, datetime) else None
    return (moment.astimezone(zone) if zone and moment.tzinfo else moment).replace(tzinfo=None)


def _day(moment: When, like: When) -> date:
    return _wall(moment, like).date()


def _set_texts(event: VEvent, changes: Mapping[str, Any]) -> None:
    for field, name in _TEXTS.items():
        if field in changes:
            event.pop(name, None)
            if changes[field]:
                event.add(name, changes[field])


def _set_times(event: VEvent, start: When, end: When) -> None:
    event.pop("DURATION", None)
    _set(event, "DTSTART", [start])
    _set(event, "DTEND", [end])


def _set(event: VEvent, name: str, moments: list[Any]) -> None:
    event.pop(name, None)
    for moment in moments:
        event.add(name, moment)


def _touch(event: VEvent) -> None:
    """Tell other programs that this is newer than what they have."""
    now = datetime.now(UTC).replace(microsecond=0)
    for name, value in (("DTSTAMP", now), ("LAST-MODIFIED", now), ("SEQUENCE", int(event.get("SEQUENCE", 0)) + 1)):
        event.pop(name, None)
        event.add(name, value)


def _written(calendar: icalendar.Calendar) -> str:
    calendar.add_missing_timezones()
    return str(calendar.to_ical().decode())

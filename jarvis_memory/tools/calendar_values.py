"""Values of the calendar's tools: what Claude gives, read and checked; what it gets, as JSON."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from babel.dates import LOCALTZ

from jarvis_memory.appointments import Appointment, When, midnight
from jarvis_memory.calendars import Event
from jarvis_memory.errors import ToolError
from jarvis_memory.text import clean, one_line, shorten
from jarvis_memory.tools.tool import ToolContext

LISTED_DESCRIPTION = 300
LISTED_ATTENDEES = 10


def zone_of(context: ToolContext) -> ZoneInfo:
    """The person's time zone."""
    if context.time_zone is not None:
        return context.time_zone
    return ZoneInfo(str(LOCALTZ) if str(LOCALTZ) in available_timezones() else "UTC")


def _when(text: str, zone: ZoneInfo) -> When:
    """A day, or a moment in the person's time zone; without an offset it is their local time."""
    try:
        moment = date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
        if not 1900 <= moment.year <= 2200:
            raise ValueError
        if not isinstance(moment, datetime):
            return moment
        # By way of UTC, where there is no hour that a clock skips in spring.
        local = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return local.astimezone(UTC).astimezone(zone)
    except (ValueError, OverflowError):
        raise ToolError(f"{text[:40]!r} is no date like 2026-11-12 and no time like 2026-11-12T15:00.") from None


def read_range(context: ToolContext, arguments: Mapping[str, Any], days: int) -> tuple[datetime, datetime]:
    """From when to when; a day as the end is meant with all of its hours."""
    zone = zone_of(context)
    start, end = _when(arguments["start"], zone), _when(arguments["end"], zone)
    first = start if isinstance(start, datetime) else midnight(start, zone)
    last = end if isinstance(end, datetime) else midnight(end + timedelta(days=1), zone)
    if last <= first:
        raise ToolError("The end must be after the start.")
    if last - first > timedelta(days=days):
        raise ToolError(f"That is too long a time; ask for at most {days} days at once.")
    return first, last


def read_new(context: ToolContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be created, with times as times; an hour or a day long where no end is given."""
    values = read_values(context, arguments)
    start = values["start"]
    if not values["title"]:
        raise ToolError("An appointment needs a title.")
    values.setdefault("end", start + timedelta(hours=1) if isinstance(start, datetime) else start)
    check_times(start, values["end"])
    if "repeats" in arguments:
        values["repeats"] = _read_repeats(arguments["repeats"], start)
    if arguments.get("attendees"):
        values["attendees"] = list(dict.fromkeys(arguments["attendees"]))
    return values


def _read_repeats(repeats: Mapping[str, Any], start: When) -> dict[str, Any]:
    if "until" not in repeats:
        return {"every": 1, **repeats}
    try:
        until = date.fromisoformat(repeats["until"])
    except ValueError:
        raise ToolError(f"repeats.until: {repeats['until']!r} is no date like 2026-11-12.") from None
    if until < (start.date() if isinstance(start, datetime) else start):
        raise ToolError("repeats.until must not be before the start.")
    return {"every": 1, **repeats}


def read_values(context: ToolContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given fields, clean, with times as times."""
    values: dict[str, Any] = {}
    for field in ("title", "start", "end", "location", "description"):
        if field in arguments:
            text = clean(arguments[field])
            if field in ("start", "end"):
                values[field] = _when(text.strip(), zone_of(context))
            else:
                values[field] = text.strip() if field == "description" else one_line(text)
    return values


def check_times(start: When, end: When) -> None:
    """Raises ToolError for an end that does not fit."""
    if isinstance(start, datetime) is not isinstance(end, datetime):
        raise ToolError("Start and end must both be dates, or both be times.")
    if end < start:
        raise ToolError("The end must not be before the start.")


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with their times as text."""
    return {field: written(value) if isinstance(value, date) else value for field, value in values.items()}


def end_after_move(now: Appointment, start: When) -> When:
    """The end where only the start changes: it stays as long as it is; an hour or a day where it becomes the other."""
    was: Any = now.start
    if isinstance(start, datetime) is isinstance(was, datetime):
        length: timedelta = now.end - was
        return start + length
    return start + timedelta(hours=1) if isinstance(start, datetime) else start


def event_as_json(event: Event, *, short: bool = False) -> dict[str, Any]:
    """The appointment as Claude and the cards get it, without what is empty."""
    one = event.appointment
    attendees = one.attendees[:LISTED_ATTENDEES] if short else one.attendees
    shown = {
        "event_id": event.id,
        "calendar": event.calendar.name,
        "title": one.title,
        "weekday": one.start.strftime("%A"),
        "start": written(one.start),
        "end": written(one.end),
        "all_day": one.all_day,
        "location": one.location,
        "description": shorten(one.description, LISTED_DESCRIPTION) if short else one.description,
        "attendees": [
            {key: value for key, value in (("name", a.name), ("email", a.email), ("status", a.status)) if value}
            for a in attendees
        ],
        "recurring": one.recurring,
    }
    return {key: value for key, value in shown.items() if value or isinstance(value, bool) or key == "title"}


def written(moment: When) -> str:
    """A time as text."""
    return moment.isoformat(timespec="minutes") if isinstance(moment, datetime) else moment.isoformat()

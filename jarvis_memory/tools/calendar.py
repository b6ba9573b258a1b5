"""The tools of the calendar: thin translations between Claude's arguments and calendars.py."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from jarvis_memory import calendars
from jarvis_memory.appointments import TEXT_CHARACTERS, TITLE_CHARACTERS
from jarvis_memory.calendar_server import CalendarServer, connect
from jarvis_memory.calendars import Event
from jarvis_memory.errors import (
    AppointmentChanged,
    AppointmentUnreadable,
    CalendarReadOnly,
    CalendarUnknown,
    SeriesCannotMove,
    ServiceError,
    ToolError,
)
from jarvis_memory.tools.calendar_values import (
    as_json,
    check_times,
    end_after_move,
    event_as_json,
    read_new,
    read_range,
    read_values,
    written,
    zone_of,
)
from jarvis_memory.tools.tool import Tool, ToolContext

LISTED_EVENTS = 100
# Claude gets 20,000 characters of a result; a list that is cut in the middle is none.
LISTED_CHARACTERS = 15_000
DAYS_AT_ONCE = 400
FREE_DAYS_AT_ONCE = 62
# Where the person says nothing about it.
FROM_HOUR, TO_HOUR = 8, 20

_TEXT_FIELDS = {"title": TITLE_CHARACTERS, "location": TITLE_CHARACTERS, "description": TEXT_CHARACTERS}


@contextmanager
def _calendar_server(context: ToolContext) -> Iterator[CalendarServer]:
    """The person's server; what goes wrong with it is a sentence for Claude."""
    try:
        with connect(context.settings) as server:
            yield server
    except ServiceError as error:
        raise ToolError(f"The calendar cannot be used now: {error} Tell the person so; do not try again.") from error
    except CalendarUnknown as error:
        raise ToolError(f"{error} list_calendar_events names the calendars.") from error
    except (AppointmentChanged, AppointmentUnreadable, CalendarReadOnly, SeriesCannotMove) as error:
        raise ToolError(str(error)) from error


def _list_calendar_events(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    start, end = read_range(context, arguments, DAYS_AT_ONCE)
    with _calendar_server(context) as server:
        found = calendars.list_events(server, start, end, zone_of(context), arguments.get("query", ""))
    events: list[dict[str, Any]] = []
    characters = 0
    for event in found.events[:LISTED_EVENTS]:
        shown = event_as_json(event, short=True)
        characters += len(json.dumps(shown, ensure_ascii=False))
        if characters > LISTED_CHARACTERS and events:
            break
        events.append(shown)
    result: dict[str, Any] = {
        "events": events,
        "more": len(found.events) - len(events),
        "calendars": [calendar.name for calendar in found.calendars],
        "skipped": found.skipped,
    }
    if found.unread:
        result["unreadable_calendars"] = [calendar.name for calendar in found.unread]
    return result


def _find_free_time(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    start, end = read_range(context, arguments, FREE_DAYS_AT_ONCE)
    hours = int(arguments.get("from_hour", FROM_HOUR)), int(arguments.get("to_hour", TO_HOUR))
    if hours[0] >= hours[1]:
        raise ToolError("from_hour must be before to_hour.")
    length = timedelta(minutes=int(arguments["minutes"]))
    with _calendar_server(context) as server:
        gaps = calendars.find_free_time(server, start, end, zone_of(context), length=length, hours=hours)
    return {
        "free": [
            {"weekday": begin.strftime("%A"), "start": written(begin), "end": written(finish)} for begin, finish in gaps
        ]
    }


def _prepare_creation(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    values = read_new(context, arguments)
    with _calendar_server(context) as server:
        calendar = calendars.choose_calendar(server, arguments.get("calendar"))
    return as_json(values) | {"calendar": calendar.name}


def _create_calendar_event(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    values = read_new(context, arguments)
    with _calendar_server(context) as server:
        calendar = calendars.choose_calendar(server, arguments.get("calendar"))
        event = calendars.create_event(server, calendar, values, zone_of(context))
    repeats = {"repeats": values["repeats"]} if "repeats" in values else {}
    return {"created": True, "event": event_as_json(event) | repeats}


def _prepare_update(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    zone, values = zone_of(context), read_values(context, arguments)
    if values.get("title") == "":
        raise ToolError("An appointment needs a title.")
    with _calendar_server(context) as server:
        event = calendars.get_event(server, arguments["event_id"], zone)
        scope = _scope(event, arguments)
        now = event.appointment
        changes = {field: value for field, value in values.items() if value != getattr(now, field)}
        if not changes:
            raise ToolError("The appointment is like that already; there is nothing to change.")
        if "start" in changes:
            changes["end"] = values.get("end", end_after_move(now, changes["start"]))
        check_times(changes.get("start", now.start), changes.get("end", now.end))
        calendars.check_update(server, event.id, changes, scope, zone)
    return _prepared(event, scope) | {"changes": as_json(changes)}


def _update_calendar_event(context: ToolContext, action: dict[str, Any]) -> dict[str, Any]:
    changes = read_values(context, action["changes"])
    with _calendar_server(context) as server:
        event = calendars.update_event(
            server, action["event_id"], action["version"], changes, action["scope"], zone_of(context)
        )
    return {"updated": True, "scope": action["scope"], "event": event_as_json(event)}


def _prepare_deletion(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    with _calendar_server(context) as server:
        event = calendars.get_event(server, arguments["event_id"], zone_of(context))
    return _prepared(event, _scope(event, arguments))


def _delete_calendar_event(context: ToolContext, action: dict[str, Any]) -> dict[str, Any]:
    with _calendar_server(context) as server:
        calendars.delete_event(server, action["event_id"], action["version"], action["scope"])
    return {"deleted": True, "scope": action["scope"], "event": action["event"]}


def _prepared(event: Event, scope: calendars.Scope) -> dict[str, Any]:
    return {"event_id": event.id, "scope": scope, "version": event.version, "event": event_as_json(event)}


def _scope(event: Event, arguments: Mapping[str, Any]) -> calendars.Scope:
    if not event.appointment.recurring:
        return "all"
    scope: calendars.Scope | None = arguments.get("scope")
    if scope is None:
        raise ToolError(
            "This appointment repeats. Ask the person whether they mean this one only or all of the series, "
            'then call again with scope "this" or "all".'
        )
    return scope


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_WHEN = {"type": "string", "minLength": 10, "maxLength": 40}
_START = _WHEN | {"description": "2026-11-12T15:00 in the person's time, or 2026-11-12 for a whole day"}
_END = _WHEN | {"description": "As start; the last day, where it is about days"}
_EVENT_ID = {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "As listed, unchanged"}
_SCOPE = {
    "type": "string",
    "enum": ["this", "all"],
    "description": "For one that repeats: this one only, or all. Never guess it: ask the person",
}
_REPEATS = {
    "type": "object",
    "description": "For one that repeats. On several weekdays: make one for each",
    "properties": {
        "unit": {"type": "string", "enum": ["day", "week", "month", "year"]},
        "every": {"type": "integer", "minimum": 1, "maximum": 99, "description": "2: each second day, week, …"},
        "until": {
            "type": "string",
            "pattern": r"^\d{4}-\d{2}-\d{2}$",
            "description": "The last day; without it no end",
        },
    },
    "required": ["unit"],
    "additionalProperties": False,
}
_TEXTS = {field: {"type": "string", "maxLength": limit} for field, limit in _TEXT_FIELDS.items()}

CALENDAR_TOOLS = [
    Tool(
        name="list_calendar_events",
        description="The appointments of all the person's calendars between two times, at most "
        f"{DAYS_AT_ONCE} days apart. `more`: how many did not fit, so ask for a shorter time; `skipped`: damaged ones.",
        input_schema=_object(
            ["start", "end"],
            start=_START,
            end=_END,
            query={"type": "string", "maxLength": 200, "description": "Only those that contain all of these words"},
        ),
        run=_list_calendar_events,
        foreign="appointment",
    ),
    Tool(
        name="find_free_time",
        description="When the person has nothing in their calendars for at least so many minutes, "
        f"at most {FREE_DAYS_AT_ONCE} days at once, within the given hours of each day ({FROM_HOUR} to {TO_HOUR}).",
        input_schema=_object(
            ["start", "end", "minutes"],
            start=_START,
            end=_END,
            minutes={"type": "integer", "minimum": 5, "maximum": 1_440},
            from_hour={"type": "integer", "minimum": 0, "maximum": 23},
            to_hour={"type": "integer", "minimum": 1, "maximum": 24},
        ),
        run=_find_free_time,
    ),
    Tool(
        name="create_calendar_event",
        description="Put an appointment into the calendar, when the person asks for it. Without an end it takes an "
        "hour or a day. Attendees are noted in it; nobody is written to.",
        input_schema=_object(
            ["title", "start"],
            **_TEXTS,
            start=_START,
            end=_END,
            repeats=_REPEATS,
            calendar={"type": "string", "maxLength": 100, "description": "Name of the calendar, where one is meant"},
            attendees={
                "type": "array",
                "maxItems": 50,
                "items": {"type": "string", "maxLength": 200, "pattern": r"^[^\s@,;:<>\"]+@[^\s@,;:<>\"]+$"},
            },
        ),
        run=_create_calendar_event,
        approval="after_foreign",
        prepare=_prepare_creation,
    ),
    Tool(
        name="update_calendar_event",
        description="Change an appointment; the person sees the change and approves of it. Give only what changes. "
        "Where only the start changes, it stays as long as it is. With scope all, start and end are the new ones of "
        "the named occurrence, and the others move by as much.",
        input_schema=_object(["event_id"], event_id=_EVENT_ID, scope=_SCOPE, **_TEXTS, start=_START, end=_END),
        run=_update_calendar_event,
        approval="always",
        prepare=_prepare_update,
        foreign="appointment",
    ),
    Tool(
        name="delete_calendar_event",
        description="Delete an appointment, or one of a series; the person sees it and approves of it.",
        input_schema=_object(["event_id"], event_id=_EVENT_ID, scope=_SCOPE),
        run=_delete_calendar_event,
        approval="always",
        prepare=_prepare_deletion,
        foreign="appointment",
    ),
]

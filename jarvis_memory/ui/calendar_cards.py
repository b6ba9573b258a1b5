"""What the cards of the calendar's tools say: what was found or done, and exactly what would happen."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from jarvis_memory.ui.dates import written_period
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

SHOWN = 20
FIELDS = ("title", "when", "repeats", "calendar", "location", "description", "attendees")
# What the calendars of others say; anything else is not said.
STATUSES = ("accepted", "declined", "tentative", "needs-action")


def calendar_headline(texts: Texts, call: dict[str, Any]) -> str:
    """What a call of one of the calendar's tools has done, as Markdown; the call is finished without an error."""
    result = call["result"]
    match call["name"]:
        case "list_calendar_events":
            return texts.counted("calendar.found", len(result["events"]) + result["more"])
        case "find_free_time":
            return texts.counted("calendar.free", len(result["free"]))
        case "create_calendar_event":
            return texts("calendar.created", event=_in_short(texts, result["event"]))
        case "update_calendar_event":
            return texts("calendar.updated", event=_in_short(texts, result["event"]))
        case _:
            return texts("calendar.deleted", event=_in_short(texts, result["event"]))


def draw_calendar_result(page: Page, call: dict[str, Any]) -> None:
    """What the headline does not say: the appointments and the free times that were found, the rest of a new one."""
    texts, result = page.texts, call["result"]
    match call["name"]:
        case "list_calendar_events":
            if call["input"].get("query"):
                st.caption(texts("calendar.query", query=plain(call["input"]["query"])))
            _draw_list(texts, [_in_short(texts, event) for event in result["events"]], more=result["more"])
            if result["skipped"]:
                st.caption(texts.counted("calendar.skipped", result["skipped"]))
            if result.get("unreadable_calendars"):
                st.caption(texts("calendar.unread", names=plain(", ".join(result["unreadable_calendars"]))))
        case "find_free_time":
            _draw_list(texts, [_when(texts, gap) for gap in result["free"]], more=0)
        case "create_calendar_event":
            _draw_fields(texts, result["event"], ("repeats", "calendar", "location", "attendees"))
        case _:
            _draw_scope(texts, result)


def draw_calendar_action(page: Page, tool: str, action: dict[str, Any]) -> None:
    """Exactly what would happen when the person approves of it."""
    texts = page.texts
    if tool == "create_calendar_event":
        _draw_fields(texts, action, FIELDS)
        return
    event = action["event"]
    if tool == "update_calendar_event":
        st.markdown(_in_short(texts, event))
        st.markdown("\n".join(f"- {change}" for change in _changes(texts, event, action["changes"])))
        _draw_fields(texts, event, ("calendar", "attendees"))
    else:
        _draw_fields(texts, event, FIELDS)
    _draw_scope(texts, action)
    if event.get("attendees"):
        st.caption(texts("calendar.may_notify"))


def _draw_list(texts: Texts, lines: list[str], *, more: int) -> None:
    if lines:
        st.markdown("\n".join(f"- {line}" for line in lines[:SHOWN]))
    more += len(lines[SHOWN:])
    if more:
        st.caption(texts.counted("calendar.more", more))


def _draw_fields(texts: Texts, event: dict[str, Any], fields: tuple[str, ...]) -> None:
    lines = [(field, _value(texts, event, field)) for field in fields]
    shown = [texts("calendar.line", name=texts(f"calendar.{field}"), value=value) for field, value in lines if value]
    st.markdown("\n".join(f"- {line}" for line in shown))


def _draw_scope(texts: Texts, action: dict[str, Any]) -> None:
    if action["event"].get("recurring"):
        st.markdown(texts("calendar.only_this" if action["scope"] == "this" else "calendar.whole_series"))


def _changes(texts: Texts, event: dict[str, Any], changes: dict[str, Any]) -> Iterator[str]:
    """The fields that change, with what they are and what they would be."""
    changed = event | changes
    for field in FIELDS:
        former, new = _value(texts, event, field), _value(texts, changed, field)
        if former != new:
            empty = texts("calendar.empty")
            yield texts("calendar.change", name=texts(f"calendar.{field}"), former=former or empty, new=new or empty)


def _in_short(texts: Texts, event: dict[str, Any]) -> str:
    return f"{_value(texts, event, 'title')}, {_when(texts, event)}"


def _value(texts: Texts, event: dict[str, Any], field: str) -> str:
    """One field as Markdown, empty where there is nothing."""
    match field:
        case "title":
            return plain(event["title"]) or texts("calendar.untitled")
        case "when":
            return _when(texts, event)
        case "repeats":
            return _repeats(texts, event.get("repeats"))
        case "attendees":
            return ", ".join(_attendee(texts, one) for one in event.get("attendees", ()))
        case _:
            return plain(event.get(field, ""))


def _when(texts: Texts, event: dict[str, Any]) -> str:
    return plain(written_period(event["start"], event["end"], texts.language))


def _repeats(texts: Texts, repeats: dict[str, Any] | None) -> str:
    if repeats is None:
        return ""
    rhythm = texts.counted(f"calendar.every_{repeats['unit']}", repeats["every"])
    if "until" not in repeats:
        return rhythm
    return texts(
        "calendar.until", rhythm=rhythm, day=plain(written_period(repeats["until"], repeats["until"], texts.language))
    )


def _attendee(texts: Texts, attendee: dict[str, str] | str) -> str:
    if isinstance(attendee, str):  # one that is to be noted
        return plain(attendee)
    name = plain(" ".join(filter(None, (attendee.get("name"), attendee.get("email")))))
    status = attendee.get("status")
    return f"{name} ({texts(f'calendar.status_{status}')})" if status in STATUSES else name

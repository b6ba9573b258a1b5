"""Dates as a person reads them."""

from datetime import datetime
from zoneinfo import ZoneInfo

from jarvis_memory.prompts import Language, written_date


def written_moment(moment: datetime, language: Language, zone: ZoneInfo | None) -> str:
    """ "12. November 2026, 14:05" in the person's language and time zone."""
    return f"{written_date(moment, language, zone)}, {moment.astimezone(zone):%H:%M}"

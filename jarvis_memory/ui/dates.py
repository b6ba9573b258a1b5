"""Dates as a person reads them."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from babel.dates import format_date

from jarvis_memory.prompts import Language, written_date


def written_moment(moment: datetime, language: Language, zone: ZoneInfo | None) -> str:
    """ "12. November 2026, 14:05" in the person's language and time zone."""
    return f"{written_date(moment, language, zone)}, {moment.astimezone(zone):%H:%M}"


def written_month(day: date, language: Language) -> str:
    """ "November 2026"."""
    return str(format_date(day, "LLLL y", locale=language))


_DAY: dict[Language, str] = {"de": "EEE, d. MMMM y", "en": "EEE, d MMMM y"}


def written_period(start: str, end: str, language: Language) -> str:
    """ "Mo., 26. Oktober 2026, 15:00–16:00" for two times in ISO format, as they stand there; days for two dates."""
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    day, last_day = (str(format_date(one, _DAY[language], locale=language)) for one in (first, last))
    if "T" not in start:
        return day if day == last_day else f"{day} – {last_day}"
    if day == last_day:
        return f"{day}, {first:%H:%M}–{last:%H:%M}"
    return f"{day}, {first:%H:%M} – {last_day}, {last:%H:%M}"

"""The times that a question names, German and English: "letzte Woche", "im Mai", "vor drei Tagen", "on Friday".

For recall: a conversation of that time is more likely meant. Only the past counts, and nothing is changed here.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from math import log

DAY = timedelta(days=1)


def _table(lines: str, first: int = 1) -> dict[str, int]:
    """Every word of a line with the line's number."""
    return {word: number for number, line in enumerate(lines.strip().splitlines(), first) for word in line.split()}


_MONTHS = _table(
    """
    januar jänner jan january
    februar feber feb february
    märz maerz mär march mar
    april apr
    mai may
    juni jun june
    juli jul july
    august aug
    september sept sep
    oktober okt october oct
    november nov
    dezember dez december dec
    """
)
_WEEKDAYS = _table(
    """
    montag monday
    dienstag tuesday
    mittwoch wednesday
    donnerstag thursday
    freitag friday
    samstag sonnabend saturday
    sonntag sunday
    """,
    first=0,
)
_NUMBERS = _table(
    """
    ein eine einem einer einen a an one
    zwei two
    drei three
    vier four
    fünf five
    sechs six
    sieben seven
    acht eight
    neun nine
    zehn ten
    elf eleven
    zwölf twelve
    """
)
# First and last month; winter begins in the year before it ends.
_SEASONS = {
    **dict.fromkeys(("frühling", "frühjahr", "spring"), (3, 5)),
    **dict.fromkeys(("sommer", "summer"), (6, 8)),
    **dict.fromkeys(("herbst", "autumn"), (9, 11)),
    "winter": (12, 2),
}
# Days before and after Easter Sunday, or first and last day as month and day.
_FEASTS: dict[str, tuple[int, int] | tuple[int, int, int, int]] = {
    **dict.fromkeys(("fasching", "fasnet", "fasnacht", "karneval", "carnival"), (-52, -46)),
    **dict.fromkeys(("karfreitag", "good friday"), (-2, -2)),
    **dict.fromkeys(("oster", "easter"), (-7, 7)),
    **dict.fromkeys(("himmelfahrt", "vatertag"), (39, 39)),
    **dict.fromkeys(("pfingst", "pentecost", "whitsun"), (43, 57)),
    "muttertag": (5, 8, 5, 14),
    "mother's day": (5, 8, 5, 14),
    "halloween": (10, 31, 10, 31),
    "advent": (11, 29, 12, 24),
    **dict.fromkeys(("nikolaus", "st nicholas"), (12, 6, 12, 6)),
    **dict.fromkeys(("weihnacht", "heiligabend", "christmas"), (12, 20, 12, 31)),
    **dict.fromkeys(("silvester", "new year's eve"), (12, 31, 12, 31)),
    **dict.fromkeys(("neujahr", "new year"), (1, 1, 1, 2)),
}
# Before and after a feast one speaks of it as well.
_AROUND_A_FEAST = 3 * DAY
_RECENTLY = 45 * DAY


@dataclass(frozen=True, kw_only=True)
class TimeRange:
    """From the first to the last day, both included."""

    first: date
    last: date

    @property
    def weight(self) -> float:
        """How much it tells: 1 for a month, more for less, 0 for more than a year."""
        days = max(3, (self.last - self.first).days + 1)
        return max(0.0, log(400 / days) / log(400 / 30))


def time_ranges(text: str, today: date) -> list[TimeRange]:
    """The times named in `text`, as seen from `today`; those that lie in the future are left out."""
    left = text.lower()
    found: list[TimeRange] = []
    for pattern, read in _EXPRESSIONS:

        def take(match: re.Match[str], read: _Reader = read) -> str:
            days = read(match, today)
            if days is None:
                return match[0]
            if days[0] <= today:
                found.append(TimeRange(first=days[0], last=min(days[1], today)))
            return " # "  # read once: "im Mai 2025" is not also "2025"

        left = pattern.sub(take, left)
    return found


# --- how each expression is read --------------------------------------------------------------------------

_Days = tuple[date, date]
_Reader = Callable[[re.Match[str], date], _Days | None]


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_LAST = r"(?:letzt|vorig|vergangen)(?:e|er|es|en|em)|last|past|previous"
_THIS = r"dies(?:e|er|es|en|em)|this"
_FEW = r"paar|ein paar|einigen|few|a few|couple of|a couple of"
_NUMBER = rf"(\d{{1,3}}|{_one_of(_NUMBERS)}|{_FEW})"
_UNIT = r"(tage?n?|days?|wochen?|weeks?|monate?n?|months?|jahre?n?|years?)"
_MONTH = f"({_one_of(_MONTHS)})"
_PART = r"(anfang|mitte|ende|early|beginning of|start of|mid|middle of|late|end of)?\s*"


def _month(year: int, month: int) -> _Days:
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _day(day: str, month: int, year: str | None, today: date) -> _Days | None:
    number = today.year if year is None else int(year) + (2000 if len(year) == 2 else 0)
    try:
        found = date(number, month, int(day))
    except ValueError:
        return None
    if year is None and found > today:
        found = found.replace(year=number - 1) if (month, int(day)) != (2, 29) else found - 366 * DAY
    return found, found


def _part(days: _Days, part: str | None) -> _Days:
    first, last = days
    if not part:
        return days
    if part.startswith(("anfang", "early", "beginning", "start")):
        return first, first + 11 * DAY
    if part.startswith("mi"):
        return first + 8 * DAY, first + 21 * DAY
    return last - 11 * DAY, last


def _named_month(match: re.Match[str], today: date) -> _Days | None:
    part, lead, name = match.groups()
    # "may", "march" and the short forms are also other words.
    if not (part or lead) and (len(name) == 3 or name in ("march", "august")):
        return None
    month = _MONTHS[name]
    return _part(_month(today.year if month <= today.month else today.year - 1, month), part)


def _weekday(match: re.Match[str], today: date) -> _Days:
    found = today - ((today.weekday() - _WEEKDAYS[match[1]]) % 7 or 7) * DAY
    return found, found


def _days_in(unit: str) -> float:
    return {"t": 1, "d": 1, "w": 7, "m": 30.4, "j": 365, "y": 365}[unit[0]]


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS.get(word, 3)


def _ago(match: re.Match[str], today: date) -> _Days:
    days = round(_count(match[1]) * _days_in(match[2]))
    # "Vor drei Wochen" is seldom to the day, and the less so the longer ago.
    blur = days if re.fullmatch(_FEW, match[1]) else round(days * 0.15) + (0 if days < 5 else 4)
    return today - (days + blur) * DAY, today - (days - blur) * DAY


def _span(match: re.Match[str], today: date) -> _Days:
    return today - round(_count(match[1]) * _days_in(match[2])) * DAY, today


def _week(weeks_back: int) -> _Reader:
    def read(_: re.Match[str], today: date) -> _Days:
        monday = today - (today.weekday() + 7 * weeks_back) * DAY
        return monday - DAY, monday + 6 * DAY

    return read


def _weekend(_: re.Match[str], today: date) -> _Days:
    monday = today - today.weekday() * DAY
    return monday - 3 * DAY, monday


def _month_back(months: int) -> _Reader:
    def read(_: re.Match[str], today: date) -> _Days:
        place = today.year * 12 + today.month - 1 - months
        return _month(place // 12, place % 12 + 1)

    return read


def _year_back(years: int) -> _Reader:
    return lambda _, today: (date(today.year - years, 1, 1), date(today.year - years, 12, 31))


def _season(match: re.Match[str], today: date) -> _Days:
    begin, end = _SEASONS[match[1]]

    def of(year: int) -> _Days:
        return date(year, begin, 1), _month(year + (end < begin), end)[1]

    if match[2]:
        return of(int(match[2]))
    return of(today.year) if of(today.year)[0] <= today else of(today.year - 1)


def _feast(match: re.Match[str], today: date) -> _Days | None:
    days = _FEASTS[match[1]]
    for year in (today.year, today.year - 1):
        if len(days) == 2:
            first, last = (_easter(year) + number * DAY for number in days)
        else:
            first, last = date(year, days[0], days[1]), date(year, days[2], days[3])
        if first <= today:
            return first - _AROUND_A_FEAST, last + _AROUND_A_FEAST
    return None


def _easter(year: int) -> date:
    """Easter Sunday by the Gregorian computus (Meeus, Jones, Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    f = d + e - 7 * ((a + 11 * d + 22 * e) // 451) + 114
    return date(year, f // 31, f % 31 + 1)


def _back(first: timedelta, last: timedelta) -> _Reader:
    return lambda _, today: (today - first, today - last)


def _expressions() -> Iterator[tuple[str, _Reader]]:
    """The patterns, the more specific before the more general: each takes what it reads out of the text."""
    yield r"\b(\d{4})-(\d\d)-(\d\d)\b", lambda m, t: _day(m[3], int(m[2]), m[1], t) if 0 < int(m[2]) < 13 else None
    yield r"\b(\d{1,2})\.\s?(0?[1-9]|1[0-2])\.(\d{4}|\d\d)?(?!\d)", lambda m, t: _day(m[1], int(m[2]), m[3], t)
    yield (
        rf"\b(\d{{1,2}})(?:\.|st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b\.?(?:,?\s+(\d{{4}}))?",
        lambda m, t: _day(m[1], _MONTHS[m[2]], m[3], t),
    )
    yield (
        rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,?\s+(\d{{4}}))?",
        lambda m, t: _day(m[2], _MONTHS[m[1]], m[3], t),
    )
    yield (
        rf"\b{_PART}(?:(?:im|in|vom|seit|since|{_LAST}|{_THIS})\s+)?{_MONTH}\s+(?:of\s+)?(20\d\d)\b",
        lambda m, _: _part(_month(int(m[3]), _MONTHS[m[2]]), m[1]),
    )
    yield rf"\b{_PART}((?:im|in|seit|since|{_LAST}|{_THIS}|vom|of)\s+)?(?:monat\s+)?\b{_MONTH}\b", _named_month
    yield rf"\b(?:am|on|{_LAST})\s+({_one_of(_WEEKDAYS)})\b", _weekday
    yield rf"\bvor\s+(?:etwa\s+|ungefähr\s+|gut\s+|rund\s+|genau\s+|ca\.?\s+|knapp\s+)?{_NUMBER}\s+{_UNIT}\b", _ago
    yield rf"\b{_NUMBER}\s+{_UNIT}\s+ago\b", _ago
    yield rf"\b(?:{_LAST})\s+{_NUMBER}\s+{_UNIT}\b", _span
    yield r"\b(?:vorletzte[rn]?\s+woche|week before last)\b", _week(2)
    yield rf"\b(?:{_LAST})\s+(?:woche|week)\b", _week(1)
    yield rf"\b(?:{_THIS})\s+(?:woche|week)\b", _week(0)
    yield rf"\b(?:{_LAST})\s+(?:wochenende|weekend)\b|\b(?:am|übers?)\s+wochenende\b", _weekend
    yield r"\bvorletzten\s+monat\b", _month_back(2)
    yield rf"\b(?:{_LAST})\s+(?:monat|month)\b", _month_back(1)
    yield rf"\b(?:{_THIS})\s+(?:monat|month)\b", _month_back(0)
    yield rf"(?<!\w)({_one_of(_FEASTS)})\w*", _feast
    yield (
        rf"\b(?:im|in|zu|zum|an|am|über|seit|{_LAST}|{_THIS}|the)\s+(?:the\s+)?({_one_of(_SEASONS)})s?"
        rf"(?:\s+(20\d\d))?\b",
        _season,
    )
    yield rf"\b(?:{_LAST})\s+(?:jahr|year)\b", _year_back(1)
    yield rf"\b(?:{_THIS})\s+(?:jahr|year)\b", _year_back(0)
    yield r"\b(20\d\d)\b", lambda m, _: (date(int(m[1]), 1, 1), date(int(m[1]), 12, 31))
    yield r"\bvorgestern\b", _back(2 * DAY, 2 * DAY)
    yield r"\b(?:gestern|yesterday)\b", _back(DAY, DAY)
    yield r"\bheute (?:morgen|früh|vormittag|mittag)\b|\bthis morning\b|\bearlier today\b", _back(0 * DAY, 0 * DAY)
    yield (
        r"\b(?:neulich|kürzlich|vor kurzem|letztens|jüngst|unlängst|recently|the other day|lately)\b",
        _back(_RECENTLY, 0 * DAY),
    )


_EXPRESSIONS = [(re.compile(pattern), read) for pattern, read in _expressions()]

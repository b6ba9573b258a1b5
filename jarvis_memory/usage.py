"""What answers and summaries took: one row each, and the sums for the person's view. Prices are in models.py."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from jarvis_memory.answers import Usage

Purpose = Literal["chat", "summary"]

DAYS = 30
MONTHS = 12
# Far more than the models of a family in a year; a bound all the same.
SUMS = 1_000


@dataclass(frozen=True, kw_only=True)
class UsageSum:
    """What one model took for one purpose in one period."""

    # The first day of the period.
    since: date
    model: str
    purpose: Purpose
    usage: Usage


def record_usage(
    connection: Connection, *, user_id: int, conversation_id: int, purpose: Purpose, model: str, usage: Usage
) -> None:
    """Write down what an answer or a summary took; nothing when it took nothing.

    Nothing either when the conversation was deleted meanwhile: "delete everything" must find nothing coming back.
    """
    if not usage.total:
        return
    connection.execute(
        text(
            """
            INSERT INTO token_usage (user_id, purpose, model, input, output, cache_read, cache_write, cost)
            SELECT c.user_id, :purpose, :model, :input, :output, :cache_read, :cache_write, :cost
            FROM conversations c WHERE c.id = :conversation_id AND c.user_id = :user_id FOR KEY SHARE
            """
        ),
        {"user_id": user_id, "conversation_id": conversation_id, "purpose": purpose, "model": model, **vars(usage)},
    )


def usage_of_answer(model: str, usage: Usage) -> dict[str, Any] | None:
    """What is kept with the answer itself, to be shown under it; None when it took nothing."""
    if not usage.total:
        return None
    return {**vars(usage), "model": model, "cost": float(usage.cost) if usage.cost is not None else None}


def usage_by_day(connection: Connection, *, user_id: int, zone: ZoneInfo | None, today: date) -> list[UsageSum]:
    """The sums of the last DAYS days with today, as days begin in the person's zone; oldest first."""
    return _sums(connection, user_id, zone, last_days(today))


def usage_by_month(connection: Connection, *, user_id: int, zone: ZoneInfo | None, today: date) -> list[UsageSum]:
    """The sums of the last MONTHS months with this one; oldest first."""
    return _sums(connection, user_id, zone, last_months(today))


def last_days(today: date) -> list[date]:
    """The last DAYS days with today."""
    return [today - timedelta(days=days) for days in range(DAYS - 1, -1, -1)]


def last_months(today: date) -> list[date]:
    """The first days of the last MONTHS months with this one."""
    this_month = today.year * 12 + today.month - 1
    return [date(month // 12, month % 12 + 1, 1) for month in range(this_month - MONTHS + 1, this_month + 1)]


def _sums(connection: Connection, user_id: int, zone: ZoneInfo | None, days: list[date]) -> list[UsageSum]:
    # The moments at which the periods begin, so that the database need not know the zone.
    starts = [_midnight(day, zone) for day in days]
    rows = connection.execute(
        text(
            """
            SELECT width_bucket(created_at, :starts) AS period, model, purpose, sum(input) AS input,
                   sum(output) AS output, sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
                   sum(cost) AS cost
            FROM token_usage WHERE user_id = :user_id AND created_at >= :since
            GROUP BY period, model, purpose ORDER BY period, model, purpose LIMIT :limit
            """
        ),
        {"user_id": user_id, "starts": starts, "since": starts[0], "limit": SUMS},
    )
    return [
        UsageSum(
            since=days[row.period - 1],
            model=row.model,
            purpose=row.purpose,
            usage=Usage(
                input=int(row.input),
                output=int(row.output),
                cache_read=int(row.cache_read),
                cache_write=int(row.cache_write),
                # What is known of it; None where nothing is.
                cost=row.cost if row.cost is None else Decimal(row.cost),
            ),
        )
        for row in rows
    ]


def _midnight(day: date, zone: ZoneInfo | None) -> datetime:
    moment = datetime.combine(day, time(), zone)
    return moment if zone else moment.astimezone()

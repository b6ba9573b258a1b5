"""What answers and summaries took: a chart and a table per day or month, and the sum of this month."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import streamlit as st
from babel.dates import format_date

from jarvis_memory.answers import Usage
from jarvis_memory.models import PRICES_AS_OF
from jarvis_memory.prompts import Language
from jarvis_memory.ui.figures import written_dollars, written_number
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts
from jarvis_memory.usage import UsageSum, last_days, last_months, usage_by_day, usage_by_month

CHART_HEIGHT = 280
PERIOD_WIDTH = 85
# How the chart writes dollars beside its axis, as an expression of Vega, which knows numbers in English only.
_DOLLARS: dict[Language, str] = {
    "de": "replace(format(datum.value, '.4~f'), '.', ',') + ' $'",
    "en": "'$' + format(datum.value, '.4~f')",
}


def draw_usage(page: Page) -> None:
    """This month's sums, then the days or months."""
    texts, zone = page.texts, page.preferences.time_zone
    today = datetime.now(zone).date()
    with page.parts.database.begin() as connection:
        by_month = usage_by_month(connection, user_id=page.user_id, zone=zone, today=today)
        by_day = usage_by_day(connection, user_id=page.user_id, zone=zone, today=today)
    if not by_month and not by_day:
        st.info(texts("usage.empty"), icon=":material/monitoring:")
        return
    _draw_month(texts, [one for one in by_month if one.since == today.replace(day=1)])
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        period = _chosen(texts, "period", ("days", "months"))
        priced = any(one.usage.cost is not None for one in by_month)
        what = _chosen(texts, "measure", ("cost", "count") if priced else ("count",))
    sums = by_day if period == "days" else by_month
    periods = last_days(today) if period == "days" else last_months(today)
    if sums:
        _draw_chart(texts, sums, periods, period, what)
        _draw_table(texts, sums, period)
    else:
        st.info(texts("usage.none_in_days"), icon=":material/monitoring:")
    _draw_prices(texts, by_month)


def _chosen(texts: Texts, name: str, options: Sequence[str]) -> str:
    chosen: str = st.segmented_control(
        texts(f"usage.{name}"),
        options=options,
        format_func=lambda option: texts(f"usage.{option}"),
        default=options[0],
        required=True,
        key=f"usage_{name}",
        label_visibility="collapsed",
    )
    return chosen


def _draw_month(texts: Texts, sums: list[UsageSum]) -> None:
    known = [one.usage.cost for one in sums if one.usage.cost is not None]
    tokens = sum(one.usage.total for one in sums)
    with st.container(horizontal=True):
        if known or not sums:
            st.metric(texts("usage.month_cost"), _escaped(written_dollars(sum(known, Decimal()), texts.language)))
        st.metric(texts("usage.month_count"), written_number(tokens, texts.language))


def _draw_chart(texts: Texts, sums: list[UsageSum], periods: list[date], period: str, what: str) -> None:
    """Bars stacked by model, one for each period, also where it is empty."""
    language = texts.language
    values = []
    for model in sorted({one.model for one in sums}):
        for since in periods:
            usage = reduce(add, (one.usage for one in sums if (one.model, one.since) == (model, since)), Usage())
            cost = usage.cost or Decimal()
            told = written_dollars(cost, language) if what == "cost" else written_number(usage.total, language)
            height = float(cost) if what == "cost" else usage.total
            values.append({"when": _named(since, period, language), "model": model, "height": height, "told": told})
    titles = {"when": "usage.column_period", "model": "usage.column_model", "told": f"usage.{what}"}
    tooltip = [{"field": field, "type": "nominal", "title": texts(key)} for field, key in titles.items()]
    spec: dict[str, Any] = {
        "mark": {"type": "bar", "cornerRadius": 2},
        "encoding": {
            "x": {"field": "when", "type": "ordinal", "sort": None, "title": None, "axis": _PERIOD_AXIS},
            "y": {
                "field": "height",
                "type": "quantitative",
                "title": None,
                "axis": {"labelExpr": _DOLLARS[language]} if what == "cost" else {"format": "~s", "tickMinStep": 1},
            },
            "color": {"field": "model", "type": "nominal", "title": None, "legend": {"orient": "top", "columns": 2}},
            "tooltip": tooltip,
        },
    }
    st.vega_lite_chart(values, spec, height=CHART_HEIGHT, alt=texts("usage.chart"))


_PERIOD_AXIS = {"labelAngle": 0, "labelOverlap": "parity", "labelSeparation": 8}


def _draw_table(texts: Texts, sums: list[UsageSum], period: str) -> None:
    rows = [
        {
            texts("usage.column_period"): _named(one.since, period, texts.language),
            texts("usage.column_model"): one.model,
            texts("usage.column_purpose"): texts(f"usage.purpose_{one.purpose}"),
            texts("usage.column_read"): one.usage.prompt,
            texts("usage.column_cached"): one.usage.cache_read,
            texts("usage.column_written"): one.usage.output,
            texts("usage.cost"): None if one.usage.cost is None else float(one.usage.cost),
        }
        for one in reversed(sums)
    ]
    # Numbers and no texts, so that a click on a heading sorts them; the browser writes them.
    tokens = st.column_config.NumberColumn(format="localized")
    columns: dict[str, Any] = {texts(f"usage.column_{name}"): tokens for name in ("read", "cached", "written")}
    columns[texts("usage.column_period")] = st.column_config.Column(width=PERIOD_WIDTH)
    columns[texts("usage.cost")] = st.column_config.NumberColumn(format="dollar")
    st.dataframe(rows, column_config=columns, hide_index=True, placeholder="–")


def _draw_prices(texts: Texts, sums: list[UsageSum]) -> None:
    """How the costs come about, and for which models they are not known."""
    if any(one.usage.cost is not None for one in sums):
        when = format_date(PRICES_AS_OF, "long", locale=texts.language)
        st.caption(texts("usage.prices", date=plain(when)))
    unknown = sorted({one.model for one in sums if one.usage.cost is None})
    if unknown:
        st.caption(texts("usage.unpriced", models=plain(", ".join(unknown))))


def _named(since: date, period: str, language: Language) -> str:
    """ "1. Dez." or "Dez. 2026"."""
    skeleton = {"days": {"de": "d. MMM", "en": "d MMM"}[language], "months": "MMM y"}[period]
    return str(format_date(since, skeleton, locale=language))


def _escaped(amount: str) -> str:
    # Two of them in one text would make a formula of it.
    return amount.replace("$", "\\$")

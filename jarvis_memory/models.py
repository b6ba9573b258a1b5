"""What is known about Claude's models: prices and context windows. One table, with the date of its prices."""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from jarvis_memory.answers import Usage
from jarvis_memory.settings import Settings

# From https://platform.claude.com/docs/en/about-claude/pricing and …/about-claude/models/overview.
PRICES_AS_OF = date(2026, 10, 24)

# For models that the table does not know: what every model of Anthropic's has, and what a home server is started with.
OFFICIAL_WINDOW = 200_000
OWN_SERVER_WINDOW = 32_000

MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Prices:
    """US dollars per million tokens; `cache_write` is that of the cache of five minutes, the one we use."""

    input: Decimal
    output: Decimal
    cache_write: Decimal
    cache_read: Decimal


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model of Anthropic's."""

    # The longest prompt with its answer, in tokens.
    window: int
    prices: Prices
    # Above this many tokens of prompt, cached ones included, every token of the request costs `long_prices`.
    long_prompt: int | None = None
    long_prices: Prices | None = None
    # Whether it takes output_config.effort; the older small models answer 400.
    takes_effort: bool = True


def _prices(prompt: str, output: str, cache_write: str, cache_read: str) -> Prices:
    return Prices(
        input=Decimal(prompt), output=Decimal(output), cache_write=Decimal(cache_write), cache_read=Decimal(cache_read)
    )


_FABLE_5_1 = Model(window=MILLION, prices=_prices("10", "50", "12.50", "0.25"))
_FABLE_5 = Model(window=MILLION, prices=_prices("10", "50", "12.50", "1.00"))
_OPUS = Model(window=MILLION, prices=_prices("5", "25", "6.25", "0.50"))

# The ids of the SDK (anthropic/types/model.py) whose prices are published; a dated id counts as the one without date.
MODELS = {
    "claude-haiku-5-5": Model(
        window=MILLION,
        prices=_prices("0.10", "0.50", "0.125", "0.01"),
        long_prompt=100_000,
        long_prices=_prices("0.50", "2.50", "0.625", "0.05"),
    ),
    # Reading its cache costs half of what it did before 2026-10-07.
    "claude-sonnet-5-5": Model(window=MILLION, prices=_prices("2", "10", "2.50", "0.10")),
    "claude-opus-5-5": Model(window=MILLION, prices=_prices("4", "20", "5.00", "0.20")),
    "claude-fable-5-1": _FABLE_5_1,
    "claude-mythos-5-1": _FABLE_5_1,
    "claude-sonnet-5": Model(window=MILLION, prices=_prices("2", "10", "2.50", "0.20")),
    "claude-fable-5": _FABLE_5,
    "claude-mythos-5": _FABLE_5,
    "claude-opus-5": _OPUS,
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-opus-4-5": Model(window=200_000, prices=_OPUS.prices),
    "claude-sonnet-4-6": Model(window=MILLION, prices=_prices("3", "15", "3.75", "0.30")),
    "claude-sonnet-4-5": Model(window=200_000, prices=_prices("3", "15", "3.75", "0.30"), takes_effort=False),
    "claude-haiku-4-5": Model(window=200_000, prices=_prices("1", "5", "1.25", "0.10"), takes_effort=False),
}


def known(model: str) -> Model | None:
    """What is known about the model of this id, with or without a date at its end."""
    return MODELS.get(re.sub(r"-\d{8}$", "", model))


def cost_of(model: str, usage: Usage) -> Decimal | None:
    """What one request to Anthropic costs, in US dollars; None where the price is not known.

    Of one request, because the length of its prompt decides the price: the costs of several are added.
    """
    found = known(model)
    if found is None:
        return None
    prices = found.prices
    if found.long_prompt is not None and found.long_prices is not None and usage.prompt > found.long_prompt:
        prices = found.long_prices
    total = (
        usage.input * prices.input
        + usage.output * prices.output
        + usage.cache_write * prices.cache_write
        + usage.cache_read * prices.cache_read
    )
    return total / MILLION


def context_window(model: str, settings: Settings) -> int:
    """How many tokens the model takes, prompt and answer together; JARVIS_CONTEXT_TOKENS for an unknown one."""
    found = known(model)
    if found is not None:
        return found.window
    return settings.jarvis_context_tokens or (OFFICIAL_WINDOW if settings.claude_is_official else OWN_SERVER_WINDOW)

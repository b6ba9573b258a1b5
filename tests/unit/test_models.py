"""Prices and windows: of known models exact, of unknown ones None, never a guess."""

from decimal import Decimal
from typing import get_args

import pytest
from anthropic.types.model import Model as SdkModel

from jarvis_memory.answers import Usage
from jarvis_memory.models import MODELS, context_window, cost_of
from jarvis_memory.settings import Settings

OWN = {"anthropic_base_url": "http://localhost:11434"}


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        # A million of each: input + output + cache write + cache read.
        ("claude-sonnet-5-5", "14.60"),
        ("claude-sonnet-5", "14.70"),
        ("claude-opus-5-5", "29.20"),
        ("claude-opus-4-5-20251101", "36.75"),
        ("claude-haiku-4-5-20251001", "7.35"),
        ("claude-sonnet-4-6", "22.05"),
        ("claude-fable-5-1", "72.75"),
        ("claude-mythos-5", "73.50"),
    ],
)
def test_each_kind_of_token_has_its_price(model: str, cost: str) -> None:
    million = Usage(input=1_000_000, output=1_000_000, cache_write=1_000_000, cache_read=1_000_000)
    assert cost_of(model, million) == Decimal(cost)


@pytest.mark.parametrize("model", ["qwen3", "claude-sonnet-5-5-fast", "claude-sonnet", "", "claude-fable-5-2"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert cost_of(model, Usage(input=1_000)) is None


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input=100_000, output=1_000), "0.0105"),
        (Usage(input=100_001, output=1_000), "0.0525005"),
        # What is in the cache counts for the length, too.
        (Usage(input=1_000, cache_read=60_000, cache_write=40_000, output=1_000), "0.031"),
        (Usage(input=1_000, cache_read=50_000, cache_write=40_000, output=1_000), "0.0061"),
    ],
)
def test_a_long_prompt_makes_every_token_of_haiku_5_5_dearer(usage: Usage, cost: str) -> None:
    assert cost_of("claude-haiku-5-5", usage) == Decimal(cost)


def test_two_requests_below_the_bound_are_not_one_above_it() -> None:
    half = Usage(input=60_000)
    one = cost_of("claude-haiku-5-5", half)
    together = Usage(input=60_000, cost=one) + Usage(input=60_000, cost=one)
    assert together.cost == Decimal("0.012") != cost_of("claude-haiku-5-5", together)


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    assert (Usage(cost=Decimal(1)) + Usage(cost=None)).cost is None
    assert (Usage() + Usage(cost=Decimal(1))).cost == 1


def test_every_model_of_the_table_is_one_of_the_sdk() -> None:
    known = {name for part in get_args(SdkModel) for name in get_args(part)}
    assert set(MODELS) <= known


def test_a_window_is_known_by_the_model() -> None:
    settings = Settings(_env_file=None, jarvis_context_tokens=8_000)
    assert context_window("claude-sonnet-5-5", settings) == 1_000_000
    assert context_window("claude-haiku-4-5-20251001", settings) == 200_000


def test_the_window_of_an_unknown_model_is_the_one_of_the_settings() -> None:
    assert context_window("qwen3", Settings(_env_file=None, **OWN, jarvis_context_tokens=8_000)) == 8_000
    assert context_window("qwen3", Settings(_env_file=None, **OWN)) == 32_000
    assert context_window("claude-x", Settings(_env_file=None)) == 200_000

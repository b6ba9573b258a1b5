"""What a model's answer is made of: the events while it streams, the whole at the end, the tokens it took."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Block = dict[str, Any]

# Reasons to end that the person should see beside the answer. Everything else ends a turn silently.
NOTICED_STOP_REASONS = ("max_tokens", "refusal", "pause_turn", "model_context_window_exceeded")


@dataclass(frozen=True, kw_only=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Thinking:
    """The model thinks; nothing to show but that it does."""


@dataclass(frozen=True, kw_only=True)
class Restarted:
    """The request is sent again: what this request has streamed so far is void."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens as the API counts them, those of the cache apart, and what they cost."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    # In US dollars; None where the price is not known.
    cost: Decimal | None = Decimal(0)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
        )

    @property
    def prompt(self) -> int:
        """All tokens that the model read, those of the cache included."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """All tokens of the request and the answer."""
        return self.prompt + self.output


@dataclass(frozen=True, kw_only=True)
class Used:
    """What one request took, once it is over; also one that broke off, because it has to be paid for too."""

    usage: Usage


StreamEvent = TextDelta | Thinking | Restarted | Used


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer. `blocks` go back unchanged within the turn; a tool call cut short has `input` None."""

    blocks: list[Block]
    stop_reason: str

"""What a model's answer is made of: the events while it streams, the whole at the end, the tokens it took."""

from dataclasses import dataclass
from typing import Any

Block = dict[str, Any]


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


StreamEvent = TextDelta | Thinking | Restarted


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens as the API counts them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        """All tokens of the request and the answer."""
        return self.input + self.output + self.cache_read + self.cache_write


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer. `blocks` go back unchanged within the turn; a tool call cut short has `input` None."""

    blocks: list[Block]
    stop_reason: str
    usage: Usage

"""What a scripted Claude can answer, and how it looks on the wire. How it is sent: see fake_claude.py."""

import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.history_rules import Body, sign_thinking


@dataclass(frozen=True)
class Text:
    """Text in chunks. After the first chunk `started` is set, and the rest waits for `release`.

    Where the answer is not streamed the whole of it waits.
    """

    text: str
    chunk_size: int = 12
    pause: float = 0.0  # seconds between chunks
    started: threading.Event | None = None
    release: threading.Event | None = None


@dataclass(frozen=True)
class ToolUse:
    name: str
    input: dict[str, Any]
    id: str | None = None  # None: a fresh one


@dataclass(frozen=True)
class Thinking:
    """Signed thinking. As with the real models the text is empty unless `thinking.display` asks for it."""

    text: str


@dataclass(frozen=True)
class CutToolJson:
    """A tool call whose arguments were cut off by max_tokens."""

    name: str
    partial_json: str


Event = dict[str, Any]
Block = Text | ToolUse | Thinking | CutToolJson
Blocks = str | Block | Sequence[str | Block]


@dataclass(frozen=True)
class Reply:
    blocks: Blocks
    stop_reason: str | None = None  # None: follows from the blocks
    usage: Mapping[str, int] = field(default_factory=dict)  # replaces the counted tokens


@dataclass(frozen=True)
class Fails:
    """An error instead of an answer."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Breaks:
    """A stream that breaks after these blocks; a last block of text is never finished."""

    after: Blocks = ()


@dataclass(frozen=True)
class ErrorInStream(Breaks):
    type: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True)
class Stall(Breaks):
    """Only silence; the connection is closed once `release` is set."""

    release: threading.Event | None = None


class PingsForever(Breaks):
    """Pings until the client goes away."""


class Drop(Breaks):
    """The socket is closed in the middle of a chunk."""


class EndsEarly(Breaks):
    """A clean end of the body without message_delta and message_stop."""


class CorruptChunk(Breaks):
    """An event whose data is no JSON."""


@dataclass(frozen=True)
class NotSse:
    """Status 200 with a web page, as a proxy or a login portal answers."""

    html: str = "<html><body>Please log in</body></html>"


Answer = Blocks | Reply | Fails | Breaks | NotSse


def wrong_key() -> Fails:
    return Fails(401, "authentication_error", "invalid x-api-key")


def unknown_model(model: str) -> Fails:
    return Fails(404, "not_found_error", f"model: {model}")


def rate_limited(retry_after: int = 1) -> Fails:
    message = "This request would exceed your organization's rate limit of 50 requests per minute."
    return Fails(429, "rate_limit_error", message, {"retry-after": str(retry_after)})


def spend_limit_reached() -> Fails:
    """The monthly limit of the tier: a rate_limit_error too, known by its error_code, without retry-after."""
    message = "You have reached your API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."
    return Fails(429, "rate_limit_error", message, {}, {"error_code": "enforced_spend_limit_reached"})


def own_spend_limit_reached() -> Fails:
    """The limit that the organization set for itself: the real API answers 400."""
    message = "You have reached your specified API usage limits. You will regain access on 2027-01-01."
    return invalid_request(message)


def billing_problem() -> Fails:
    return Fails(402, "billing_error", "There is an issue with your billing or payment information.")


def overloaded() -> Fails:
    return Fails(529, "overloaded_error", "Overloaded")


def server_error() -> Fails:
    return Fails(500, "api_error", "Internal server error")


def invalid_request(message: str) -> Fails:
    return Fails(400, "invalid_request_error", message)


def whole_message(body: Body, reply: Reply) -> Event:
    """The finished message that answers `body`, its thinking signed."""
    content: list[Event] = []
    for block in as_blocks(reply.blocks):
        content.append(_content(body, content, block))
    counted = {
        "input_tokens": len(json.dumps(body)) // 4,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": max(1, len(json.dumps(content)) // 4),
        "service_tier": "standard",
    }
    return {
        "id": "msg_" + uuid.uuid4().hex[:24],
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reply.stop_reason or _stop_reason(as_blocks(reply.blocks)),
        "stop_sequence": None,
        "stop_details": None,
        "usage": counted | dict(reply.usage),
    }


def as_blocks(blocks: Blocks) -> list[Block]:
    several = [blocks] if isinstance(blocks, str) or not isinstance(blocks, Sequence) else blocks
    return [Text(one) if isinstance(one, str) else one for one in several]


def _content(body: Body, before: list[Event], block: Block) -> Event:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Thinking):
        thinking = body.get("thinking") or {}
        shown = thinking.get("display") == "summarized" or thinking.get("type") == "between_tools"
        text = block.text if shown else ""
        return {"type": "thinking", "thinking": text, "signature": sign_thinking(body, before, text)}
    called = {"name": block.name, "input": block.input if isinstance(block, ToolUse) else {}}
    id_ = (block.id if isinstance(block, ToolUse) else None) or "toolu_" + uuid.uuid4().hex[:24]
    return {"type": "tool_use", "id": id_, **called, "caller": {"type": "direct"}}


def _stop_reason(blocks: list[Block]) -> str:
    if any(isinstance(block, CutToolJson) for block in blocks):
        return "max_tokens"
    return "tool_use" if any(isinstance(block, ToolUse) for block in blocks) else "end_turn"


def _opened(content: Event) -> Event:
    """The block as content_block_start shows it: still empty."""
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in content.items()}


def _deltas(block: Block, content: Event) -> list[Event]:
    """The pieces that fill the opened block, in order."""
    if isinstance(block, Text):
        return [{"type": "text_delta", "text": piece} for piece in _pieces(block.text, block.chunk_size)]
    if isinstance(block, Thinking):
        text = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(content["thinking"], 12)]
        return [*text, {"type": "signature_delta", "signature": content["signature"]}]
    arguments = block.partial_json if isinstance(block, CutToolJson) else json.dumps(block.input)
    return [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(arguments, 10)]]


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def events(body: Body, script: Reply | Breaks) -> Iterator[tuple[Event, Text | None]]:
    """The events of the stream, text chunks with their block, whose pauses the sender keeps."""
    whole = isinstance(script, Reply)
    reply = script if isinstance(script, Reply) else Reply(script.after)
    message = whole_message(body, reply)
    usage = message["usage"]
    unfinished = {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield {"type": "message_start", "message": message | unfinished}, None
    yield {"type": "ping"}, None
    blocks = as_blocks(reply.blocks)
    for index, (block, content) in enumerate(zip(blocks, message["content"], strict=True)):
        text = block if isinstance(block, Text) else None
        yield {"type": "content_block_start", "index": index, "content_block": _opened(content)}, None
        for delta in _deltas(block, content):
            yield {"type": "content_block_delta", "index": index, "delta": delta}, text
        if whole or text is None or index + 1 < len(blocks):
            yield {"type": "content_block_stop", "index": index}, None
    if whole:
        ended = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
        counts = {key: value for key, value in usage.items() if key != "service_tier"}
        yield {"type": "message_delta", "delta": ended, "usage": counts}, None
        yield {"type": "message_stop"}, None

"""The only module that knows the Anthropic SDK: one answer streamed, one short text completed, errors translated.

Retries are our own, because the SDK's sleep as long as the server says.
"""

import contextlib
import json
import logging
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import anthropic
import httpx2

from jarvis_memory.answers import Answer, Block, Restarted, StreamEvent, TextDelta, Thinking, Usage, Used
from jarvis_memory.errors import (
    AnswerInterrupted,
    AnswerStopped,
    ClaudeAnswerUnreadable,
    ClaudeBusy,
    ClaudeError,
    ClaudeKeyRejected,
    ClaudeModelUnknown,
    ClaudeNotConfigured,
    ClaudeRequestRejected,
    ClaudeSpendLimit,
    ClaudeUnreachable,
)
from jarvis_memory.models import cost_of, known
from jarvis_memory.settings import Settings
from jarvis_memory.stream_watchdog import Watchdog, open_unless_stopped
from jarvis_memory.text import clean, clean_deep

log = logging.getLogger(__name__)
# The SDK's debug log holds every request, and with it all that was said.
logging.getLogger("anthropic").setLevel(logging.INFO)

ANSWER_TOKENS = 16_000
SUMMARY_TOKENS = 4_000
CHECK_TOKENS = 16
# A model of one's own may have to be loaded first.
CHECK_SECONDS = 60.0
RETRY_WAITS = (1.0, 2.0, 4.0)
LONGEST_WAIT = 20.0
CHARACTERS_A_TOKEN = 4


@dataclass
class _Received:
    """What has arrived of a running stream."""

    began: bool = False
    blocks: dict[int, Block] = field(default_factory=dict)
    tool_json: dict[int, str] = field(default_factory=dict)
    stop_reason: str | None = None
    usage: Usage = field(default_factory=Usage)


class Claude:
    """A client for one service. Safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._official = settings.claude_is_official
        # A local model may read a long prompt for minutes before its first word.
        self._patience = 120.0 if self._official else 600.0
        key = settings.anthropic_api_key
        self._client = anthropic.Anthropic(
            api_key=key.get_secret_value() if key else "local",
            base_url=settings.anthropic_base_url,
            max_retries=0,
            timeout=httpx2.Timeout(self._patience, connect=10.0),
        )

    def stream_answer(
        self,
        *,
        model: str,
        system: list[Block],
        messages: list[Block],
        tools: list[Block],
        stop: threading.Event,
    ) -> Generator[StreamEvent, None, Answer]:
        """Stream one answer; the generator's return value is the whole of it.

        Overload and failed connections are retried, at most three times; a stream that breaks off is not.
        Raises a ClaudeError; AnswerInterrupted when the stream broke off, AnswerStopped when `stop` was set.
        """
        request: dict[str, Any] = {
            "model": model,
            "max_tokens": ANSWER_TOKENS,
            "system": system,
            "messages": messages,
            "stream": True,
        }
        if tools:
            request["tools"] = tools
        if self._takes_effort(model):
            request["output_config"] = {"effort": "medium"}
        waits = iter(RETRY_WAITS)
        while True:
            try:
                return (yield from self._stream_once(request, stop))
            except ClaudeRequestRejected as error:
                stripped = _without_thinking(request["messages"])
                if "thinking" not in str(error.details.get("cause", "")) or stripped == request["messages"]:
                    raise
                request["messages"] = stripped
            except (ClaudeBusy, ClaudeUnreachable) as error:
                wait = next(waits, None)
                if wait is None:
                    raise
                if stop.wait(_bounded_wait(error, wait)):
                    raise AnswerStopped from error
            yield Restarted()

    def complete(self, *, model: str, system: str, text: str) -> tuple[str, Usage]:
        """The answer to one message, without tools, not streamed. Not retried: the caller has its own schedule.

        Raises a ClaudeError.
        """
        self._require_configured()
        request: dict[str, Any] = {
            "model": model,
            "max_tokens": SUMMARY_TOKENS,
            "system": system,
            "messages": [{"role": "user", "content": clean(text)}],
        }
        if self._takes_effort(model):
            request["output_config"] = {"effort": "low"}
        with _translated(model):
            answer = self._client.messages.create(**request)
            if not isinstance(answer, anthropic.types.Message):
                raise ClaudeAnswerUnreadable
        said = "".join(block.text for block in answer.content if block.type == "text")
        if answer.stop_reason == "refusal":
            raise ClaudeError("The model refused to summarise.")
        return clean(said), self._priced(model, _usage(answer.usage))

    def check(self, *, model: str) -> None:
        """Have a few tokens answered, which shows that address, key and model are right. Raises a ClaudeError."""
        self._require_configured()
        with _translated(model):
            answer = self._client.messages.create(
                model=model,
                max_tokens=CHECK_TOKENS,
                messages=[{"role": "user", "content": "OK?"}],
                timeout=CHECK_SECONDS,
            )
        if not isinstance(answer, anthropic.types.Message):
            raise ClaudeAnswerUnreadable

    def _takes_effort(self, model: str) -> bool:
        found = known(model)
        return self._official and (found is None or found.takes_effort)

    def _priced(self, model: str, usage: Usage) -> Usage:
        # What another server charges for a model of the same name is not known.
        return replace(usage, cost=cost_of(model, usage) if self._official else None)

    def _require_configured(self) -> None:
        if not self._settings.claude_is_configured:
            raise ClaudeNotConfigured

    def _stream_once(self, request: dict[str, Any], stop: threading.Event) -> Generator[StreamEvent, None, Answer]:
        self._require_configured()
        received = _Received()
        try:
            with _translated(request["model"], received, stop):
                stream = open_unless_stopped(lambda: self._client.messages.create(**request), stop)
                with stream, Watchdog(stream.response, stop, self._patience) as watchdog:
                    for event in stream:
                        watchdog.alive()
                        yield from _take(event, received)
            if stop.is_set() and received.stop_reason is None:
                raise AnswerStopped
            if not received.began:  # a web page: the SDK finds no event in it
                raise ClaudeAnswerUnreadable(cause="no answer began")
            if received.stop_reason is None:
                raise AnswerInterrupted(cause="the stream ended early")
        except AnswerInterrupted:
            yield Used(usage=self._priced(request["model"], _usage_so_far(received)))
            raise
        usage = self._priced(request["model"], received.usage)
        log.info("Answer of %s: %s", request["model"], usage)
        yield Used(usage=usage)
        return Answer(
            blocks=[received.blocks[index] for index in sorted(received.blocks)],
            stop_reason=received.stop_reason,
        )


def _take(event: Any, received: _Received) -> Iterator[StreamEvent]:
    """Add one event of the stream to what was received; yields what there is to show."""
    if event.type == "message_start":
        received.began = True
        received.usage = _usage(event.message.usage)
    elif event.type == "content_block_start":
        block = event.content_block.to_dict()
        if block["type"] == "tool_use":
            received.tool_json[event.index] = ""
            block = {**block, "name": clean(block["name"]), "input": None}
        elif block["type"] == "text":
            block = {"type": "text", "text": clean(block.get("text") or "")}
            if block["text"]:
                yield TextDelta(text=block["text"])
        received.blocks[event.index] = block
    elif event.type == "content_block_delta":
        yield from _take_delta(event.index, event.delta, received)
    elif event.type == "content_block_stop" and event.index in received.tool_json:
        received.blocks[event.index]["input"] = _arguments(received.tool_json[event.index])
    elif event.type == "message_delta":
        received.stop_reason = event.delta.stop_reason or received.stop_reason
        final = _usage(event.usage)
        received.usage = Usage(
            input=final.input or received.usage.input,
            output=final.output or received.usage.output,
            cache_read=final.cache_read or received.usage.cache_read,
            cache_write=final.cache_write or received.usage.cache_write,
        )


def _arguments(said: str) -> dict[str, Any] | None:
    """The arguments of a tool call. None when they are cut, no object, or hold numbers that JSON does not have."""
    try:
        arguments = clean_deep(json.loads(said or "{}"))
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _take_delta(index: int, delta: Any, received: _Received) -> Iterator[StreamEvent]:
    block = received.blocks[index]
    if delta.type == "text_delta":
        text = clean(delta.text)
        block["text"] += text
        if text:
            yield TextDelta(text=text)
    elif delta.type == "input_json_delta":
        received.tool_json[index] = received.tool_json.get(index, "") + delta.partial_json
    elif delta.type == "thinking_delta":
        block["thinking"] = block.get("thinking", "") + clean(delta.thinking)
        yield Thinking()
    elif delta.type == "signature_delta":
        block["signature"] = block.get("signature", "") + delta.signature
        yield Thinking()


def _usage(usage: Any) -> Usage:
    return Usage(
        input=getattr(usage, "input_tokens", None) or 0,
        output=getattr(usage, "output_tokens", None) or 0,
        cache_read=getattr(usage, "cache_read_input_tokens", None) or 0,
        cache_write=getattr(usage, "cache_creation_input_tokens", None) or 0,
    )


def _usage_so_far(received: _Received) -> Usage:
    """What an answer took that broke off. The output is counted at the end only; until then its length tells it."""
    characters = sum(map(len, received.tool_json.values()))
    characters += sum(len(block.get("text", "")) + len(block.get("thinking", "")) for block in received.blocks.values())
    return replace(received.usage, output=max(received.usage.output, characters // CHARACTERS_A_TOKEN))


def _without_thinking(messages: list[Block]) -> list[Block]:
    kept = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            content = [block for block in content if block.get("type") not in ("thinking", "redacted_thinking")]
        if content:
            kept.append({**message, "content": content})
    return kept


def _bounded_wait(error: ClaudeError, wait: float) -> float:
    try:
        # In this order NaN loses.
        return min(LONGEST_WAIT, max(wait, float(error.details.get("retry_after") or 0)))
    except ValueError:
        return wait


@contextlib.contextmanager
def _translated(model: str, received: _Received | None = None, stop: threading.Event | None = None) -> Iterator[None]:
    """Turn what the SDK and the connection raise into our errors. What came before decides what a break means."""
    try:
        yield
    except anthropic.APIStatusError as error:
        raise _status_error(error, model) from error
    except anthropic.APIConnectionError as error:
        raise ClaudeUnreachable(cause=type(error.__cause__ or error).__name__) from error
    except (
        httpx2.HTTPError,
        httpx2.StreamError,
        json.JSONDecodeError,
        AssertionError,
        anthropic.APIError,
    ) as error:
        if stop is not None and stop.is_set():
            raise AnswerStopped from error
        if isinstance(error, httpx2.HTTPError | httpx2.StreamError) or (received and received.blocks):
            raise AnswerInterrupted(cause=type(error).__name__) from error
        raise ClaudeAnswerUnreadable(cause=type(error).__name__) from error
    except TypeError as error:
        # The SDK's own complaint about missing credentials.
        if "authentication" in str(error):
            raise ClaudeNotConfigured from error
        raise


def _status_error(error: anthropic.APIStatusError, model: str) -> ClaudeError:
    """Our error for an error answer, which may also have arrived inside a stream (then its status is 200)."""
    status, kind, code = error.status_code, error.type or "", error.error_code or ""
    message = clean(error.api_message or "")
    details: dict[str, Any] = {"cause": message[:300], "status": status, "model": model}
    # A limit that somebody set or a card that expired: waiting does not help, so it is not a rate limit.
    if kind == "billing_error" or "spend_limit" in code or "API usage limits" in message or "credit balance" in message:
        return ClaudeSpendLimit(**details)
    if kind == "authentication_error" or status in (401, 403):
        return ClaudeKeyRejected(**details)
    if kind == "not_found_error" or status == 404:
        return ClaudeModelUnknown(**details)
    if status in (408, 409, 429) or status >= 500 or kind in ("overloaded_error", "api_error", "rate_limit_error"):
        return ClaudeBusy(retry_after=error.response.headers.get("retry-after"), **details)
    if kind == "timeout_error":
        return ClaudeBusy(**details)
    return ClaudeRequestRejected(f"Claude's service did not accept the request: {message[:300]}", **details)

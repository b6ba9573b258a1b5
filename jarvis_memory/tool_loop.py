"""`run_chat_completion`: ask Claude, run tools, repeat. It yields events and knows no screen and no database."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jarvis_memory.answers import NOTICED_STOP_REASONS, Answer, Block, StreamEvent, TextDelta
from jarvis_memory.claude import Claude
from jarvis_memory.tools.tool import ToolResult, ToolWaits

MAX_TOOL_ROUNDS = 8

_QUIET_STOP_REASONS = ("end_turn", "stop_sequence", "tool_use")


@dataclass(frozen=True, kw_only=True)
class RoundStarted:
    """A request goes out; a Restarted voids the text since the last of these."""


@dataclass(frozen=True, kw_only=True)
class ToolStarted:
    """A tool is about to run."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolFinished:
    """A tool has run."""

    id: str
    result: ToolResult


@dataclass(frozen=True, kw_only=True)
class ToolWaiting:
    """A tool has not run: the person has to decide about `action`."""

    id: str
    action: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Tools wait, so the loop ends here. It goes on with `rounds` and a result for every call of the last of them.

    `rounds`: the messages that followed the person's own, byte for byte; `results`: those that are there already.
    """

    rounds: list[Block]
    results: list[Block]


@dataclass(frozen=True, kw_only=True)
class Notice:
    """The answer ended for a reason worth telling: one of NOTICED_STOP_REASONS, `too_many_rounds` or `unknown`."""

    kind: str


LoopEvent = StreamEvent | RoundStarted | ToolStarted | ToolFinished | ToolWaiting | Paused | Notice


def run_chat_completion(
    *,
    claude: Claude,
    model: str,
    system: list[Block],
    messages: list[Block],
    tools: list[Block],
    execute: Callable[[str, dict[str, Any] | None], ToolResult | ToolWaits],
    rounds: list[Block],
    stop: threading.Event,
    give_up: str,
) -> Iterator[LoopEvent]:
    """Let Claude answer, running the tools it asks for, at most MAX_TOOL_ROUNDS requests; then `give_up` is said.

    `rounds` are those of a turn that was paused, with all of their results. Each request that has to be paid for yields
    a `Used`. Raises a ClaudeError, or what `execute` raises.
    """
    rounds = list(rounds)
    for round_number in range(1, MAX_TOOL_ROUNDS + 1):
        yield RoundStarted()
        answer = yield from claude.stream_answer(
            model=model, system=system, messages=_with_breakpoint([*messages, *rounds]), tools=tools, stop=stop
        )
        calls = _calls(answer)
        if not calls:
            if answer.stop_reason not in _QUIET_STOP_REASONS:
                known = answer.stop_reason in NOTICED_STOP_REASONS
                yield Notice(kind=answer.stop_reason if known else "unknown")
            return
        if round_number == MAX_TOOL_ROUNDS:
            break
        rounds.append({"role": "assistant", "content": _replayed(answer.blocks)})
        results = []
        for call in calls:
            yield ToolStarted(id=call["id"], name=call["name"], input=call["input"] or {})
            outcome = execute(call["name"], call["input"])
            if isinstance(outcome, ToolWaits):
                yield ToolWaiting(id=call["id"], action=outcome.action)
                continue
            yield ToolFinished(id=call["id"], result=outcome)
            results.append(result_block(call["id"], outcome))
        if len(results) < len(calls):
            yield Paused(rounds=rounds, results=results)
            return
        rounds.append({"role": "user", "content": results})
    yield Notice(kind="too_many_rounds")
    yield TextDelta(text="\n\n" + give_up)


def _calls(answer: Answer) -> list[Block]:
    # Decided by the blocks: other servers name other stop reasons. A cut answer runs nothing.
    if answer.stop_reason in ("max_tokens", "refusal", "model_context_window_exceeded"):
        return []
    return [block for block in answer.blocks if block["type"] == "tool_use"]


def result_block(call_id: str, result: ToolResult) -> Block:
    """What Claude gets for its call."""
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": result.content}
    return block | {"is_error": True} if result.is_error else block


def _replayed(blocks: list[Block]) -> list[Block]:
    """The answer as it goes back: unchanged, but blank texts, which the API refuses, and unreadable arguments."""
    kept = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    return [
        {**block, "input": {}} if block["type"] == "tool_use" and block["input"] is None else block for block in kept
    ]


def _with_breakpoint(messages: list[Block]) -> list[Block]:
    """The messages with a cache breakpoint at their end, so that the next request reads all of them from the cache."""
    *earlier, last = messages
    *blocks, end = last["content"]
    return [*earlier, {**last, "content": [*blocks, {**end, "cache_control": {"type": "ephemeral"}}]}]

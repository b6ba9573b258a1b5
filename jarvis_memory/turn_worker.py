"""The worker of a turn: holds the chat's turn over all processes, recalls, asks, runs tools, saves what came.

What sets a turn going is chat_turn.py.
"""

import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jarvis_memory.answers import Block, Restarted, TextDelta, Thinking, Used
from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import Status, load_messages
from jarvis_memory.database import Lock
from jarvis_memory.errors import AnswerInterrupted, JarvisError, TurnRunning
from jarvis_memory.facts import Origin
from jarvis_memory.pending_actions import (
    PendingAction,
    begin_action,
    finish_action,
    load_pending_actions,
    outcome_of,
)
from jarvis_memory.preferences import load_preferences
from jarvis_memory.prompts import TOO_MANY_ROUNDS
from jarvis_memory.running_turns import TURNS, RunningTurn
from jarvis_memory.tool_loop import (
    Notice,
    Paused,
    RoundStarted,
    ToolFinished,
    ToolStarted,
    ToolWaiting,
    result_block,
    run_chat_completion,
)
from jarvis_memory.tools.tool import ToolContext, ToolResult, ToolWaits, carry_out, execute_tool, find_tool
from jarvis_memory.turn_request import prepare_request, resume_request
from jarvis_memory.turn_saver import TurnSaver

log = logging.getLogger(__name__)

Work = Callable[[Parts, int, RunningTurn], None]


def take_turn(parts: Parts, conversation_id: int, lock: contextlib.ExitStack) -> None:
    """Hold the conversation's turn over all processes for as long as `lock`. Raises TurnRunning."""
    # The register too: a turn gives its lock back shortly before it leaves the register.
    if TURNS.get(conversation_id) or not lock.enter_context(parts.database.try_lock(Lock.TURN, conversation_id)):
        raise TurnRunning


def start_worker(parts: Parts, user_id: int, turn: RunningTurn, lock: contextlib.ExitStack, run: Work) -> None:
    """Register the turn and run it in a worker thread, which takes over the lock. Raises TurnRunning."""
    held = lock.pop_all()

    def work(running: RunningTurn) -> None:
        try:
            run(parts, user_id, running)
        finally:
            held.close()
            parts.background.summarise(running.conversation_id)

    try:
        TURNS.start(turn, work)
    except BaseException:
        held.close()
        raise


def run_turn(parts: Parts, user_id: int, turn: RunningTurn) -> None:
    """Recall, ask, run tools, save. Whatever happens, what came is saved with how it ended."""
    status: Status = "failed"
    saver = TurnSaver(parts, user_id, turn)
    try:
        with saver:
            _answer(parts, user_id, turn)
        status = "waiting" if turn.paused else "complete"
    except AnswerInterrupted as error:
        status = "interrupted"
        _show_error(turn, error)
    except JarvisError as error:
        status = "interrupted" if turn.content else "failed"
        log.warning("Turn in conversation %s: %s (%s)", turn.conversation_id, error, error.details)
        _show_error(turn, error)
    except Exception as error:  # noqa: BLE001 - the person must see that it failed, the log has the cause
        status = "interrupted" if turn.content else "failed"
        log.exception("Turn in conversation %s failed", turn.conversation_id)
        _show_error(turn, JarvisError(cause=type(error).__name__))
    finally:
        saver.finish(status)


def _answer(parts: Parts, user_id: int, turn: RunningTurn) -> None:
    """Ask Claude and let its tools run; what comes is written to the running turn."""
    request = (resume_request if turn.rounds else prepare_request)(parts, user_id, turn)

    def execute(name: str, tool_input: dict[str, Any] | None) -> ToolResult | ToolWaits:
        return execute_tool(request.tools, _context(parts, user_id, turn, request.has_files), name, tool_input)

    events = run_chat_completion(
        claude=parts.claude,
        model=turn.model,
        system=request.system,
        messages=request.messages,
        tools=[tool.for_claude() for tool in request.tools],
        execute=execute,
        rounds=turn.rounds,
        stop=turn.stop,
        give_up=TOO_MANY_ROUNDS[request.language],
    )
    said_before_round = ""
    for event in events:
        if isinstance(event, TextDelta):
            turn.write(content=turn.content + event.text)
        elif isinstance(event, Thinking):
            turn.write(thinking=True)
        elif isinstance(event, RoundStarted):
            # Texts before and after a tool call are paragraphs of one answer.
            said_before_round = turn.content.rstrip() + "\n\n" if turn.content.strip() else ""
            turn.write(content=said_before_round)
        elif isinstance(event, Restarted):
            turn.write(content=said_before_round)
        elif isinstance(event, ToolStarted):
            call = {"type": "tool", "id": event.id, "name": event.name, "input": event.input}
            turn.write(block=call | {"at": len(turn.content)})
        elif isinstance(event, ToolFinished):
            shown = event.result.data or {"message": event.result.content}
            turn.write(result={"id": event.id, "result": shown, "is_error": event.result.is_error})
        elif isinstance(event, ToolWaiting):
            turn.write(result={"id": event.id, "action": event.action})
        elif isinstance(event, Paused):
            turn.paused = {"rounds": event.rounds, "results": event.results}
        elif isinstance(event, Notice):
            turn.write(block={"type": "notice", "kind": event.kind})
        elif isinstance(event, Used):
            turn.usage += event.usage


def _context(parts: Parts, user_id: int, turn: RunningTurn, has_files: bool) -> ToolContext:
    """What a tool may use now: foreign from the first foreign text on that this turn has read."""
    origin: Origin = "document" if has_files else "said"
    for block in turn.snapshot()[1]:
        tool = find_tool(parts.tools, block["name"]) if block["type"] == "tool" and "result" in block else None
        if tool is not None and tool.foreign is not None:
            origin = tool.foreign
    with parts.database.begin() as connection:
        preferences = load_preferences(connection, user_id=user_id, settings=parts.settings)
    return ToolContext(
        database=parts.database,
        embeddings=parts.embeddings,
        user_id=user_id,
        conversation_id=turn.conversation_id,
        user_message_id=turn.user_message_id,
        answer_message_id=turn.answer_message_id,
        settings=parts.settings,
        origin=origin,
        time_zone=preferences.time_zone,
    )


def run_resumed(parts: Parts, user_id: int, turn: RunningTurn) -> None:
    """Carry out what the person approved, tell Claude all decisions, and let it go on.

    The answer waits until all of that is done, so a crash before leaves it to be resumed: what was carried out
    is known then, and what was under way is not done again.
    """
    try:
        results = _carry_out_decided(parts, user_id, turn)
    except JarvisError as error:
        log.warning("Actions of conversation %s: %s (%s)", turn.conversation_id, error, error.details)
        return
    calls = [block["id"] for block in turn.rounds[-1]["content"] if block["type"] == "tool_use"]
    turn.rounds.append({"role": "user", "content": [results[call] for call in calls]})
    run_turn(parts, user_id, turn)


def _carry_out_decided(parts: Parts, user_id: int, turn: RunningTurn) -> dict[str, Block]:
    """The results of the decided calls and of those that were there already, by call."""
    assert turn.paused is not None
    results = {block["tool_use_id"]: block for block in turn.paused["results"]}
    turn.paused = None
    ids = [turn.answer_message_id]
    with parts.database.begin() as connection:
        actions = load_pending_actions(connection, user_id=user_id, message_ids=ids)
        [question] = load_messages(
            connection,
            user_id=user_id,
            conversation_id=turn.conversation_id,
            limit=1,
            before_id=turn.user_message_id + 1,
        )
    proposed = {block["id"]: block.get("action") for block in turn.blocks if block["type"] == "tool"}
    for action in actions:
        if action.call_id in results or proposed.get(action.call_id) is None:
            continue
        result = _outcome(parts, user_id, turn, action, bool(question.blocks_of("attachment")))
        shown = result.data or {"message": result.content}
        turn.write(
            result={
                "id": action.call_id,
                "action": action.action,
                "decision": "approved" if action.status in ("approved", "running", "done") else action.status,
                "comment": action.comment,
                "result": shown,
                "is_error": result.is_error,
            }
        )
        if action.action != proposed[action.call_id]:
            changed = "The person changed the action before they approved it; this is what it was then: "
            content = f"{changed}{json.dumps(action.action, ensure_ascii=False)}\n{result.content}"
            result = replace(result, content=content)
        results[action.call_id] = result_block(action.call_id, result)
    return results


def _outcome(parts: Parts, user_id: int, turn: RunningTurn, action: PendingAction, has_files: bool) -> ToolResult:
    """Carry the action out if it is approved; what came of it, or why nothing did."""
    if action.status == "approved":
        with parts.database.begin() as connection:
            is_ours = begin_action(connection, user_id=user_id, action_id=action.id)
        if is_ours:
            context = _context(parts, user_id, turn, has_files)
            result = carry_out(parts.tools, context, action.tool, action.action)
            with parts.database.begin() as connection:
                finish_action(connection, user_id=user_id, action_id=action.id, result=result)
            return result
        action = replace(action, status="running")
    return outcome_of(action)


def _show_error(turn: RunningTurn, error: JarvisError) -> None:
    details = {key: value for key, value in error.details.items() if isinstance(value, str | int)}
    turn.write(block={"type": "error", "error": type(error).__name__, "details": details})

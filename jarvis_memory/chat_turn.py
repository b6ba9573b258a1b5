"""One turn of a chat, from the person's message to the saved answer: the steps in order, and nothing else.

The turn lives in a worker thread; `start_turn` returns as soon as the message is saved.
"""

import contextlib
import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from jarvis_memory.answers import Restarted, TextDelta, Thinking, Usage
from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import (
    Message,
    Status,
    create_conversation,
    insert_message,
    load_messages,
    remove_unfinished_answer,
    reserve_conversation_id,
    update_message,
)
from jarvis_memory.database import Lock
from jarvis_memory.errors import (
    AnswerInterrupted,
    ConversationNotFound,
    DatabaseUnavailable,
    JarvisError,
    MessageUnusable,
    TurnRunning,
)
from jarvis_memory.history import build_history, unfinished_calls
from jarvis_memory.memory_context import MemoryContext, build_memory_context
from jarvis_memory.prompts import MEMORY_ASSISTANT_INSTRUCTIONS, TOO_MANY_ROUNDS, context_block
from jarvis_memory.recall_index import index_words, lock_conversations_of
from jarvis_memory.running_turns import TURNS, RunningTurn
from jarvis_memory.text import clean
from jarvis_memory.tool_loop import Notice, RoundStarted, ToolFinished, ToolStarted, run_chat_completion
from jarvis_memory.tools.tool import ToolContext, ToolResult, execute_tool

log = logging.getLogger(__name__)

MESSAGE_CHARACTERS = 100_000
HISTORY_MESSAGES = 1_000
SAVE_SECONDS = 2.0
# How long a finished answer waits for a database that went away.
SAVE_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


def usable_message(message: str) -> str:
    """The text as it is saved and sent. Raises MessageUnusable when blank or too long."""
    text = clean(message)
    if not text.strip() or len(text) > MESSAGE_CHARACTERS:
        raise MessageUnusable(length=len(text), limit=MESSAGE_CHARACTERS)
    return text


def start_turn(
    parts: Parts, *, user_id: int, message: str, conversation_id: int | None = None, remember: bool = True
) -> RunningTurn:
    """Save the message (in a new conversation without an id) and start answering it.

    Raises MessageUnusable, ConversationNotFound, TurnRunning while this chat is answering, in this process or
    another, and DatabaseUnavailable. Nothing was saved then.
    """
    text = usable_message(message)
    is_new = conversation_id is None
    if conversation_id is None:
        with parts.database.begin() as connection:
            conversation_id = reserve_conversation_id(connection)
    with contextlib.ExitStack() as lock:
        _take_turn(parts, conversation_id, lock)
        # All or nothing: a conversation without its message would be an empty line in every list.
        with parts.database.begin() as connection:
            if is_new:
                create_conversation(connection, user_id=user_id, remember=remember, conversation_id=conversation_id)
            user_message_id = insert_message(
                connection, user_id=user_id, conversation_id=conversation_id, role="user", content=text
            )
            turn = _insert_answer(connection, user_id, conversation_id, user_message_id)
        _start(parts, user_id, turn, lock)
    return turn


def retry_turn(parts: Parts, *, user_id: int, conversation_id: int) -> RunningTurn:
    """Answer the last message again in place of the unfinished answer. Claude is told what its tools did already.

    Raises ConversationNotFound when the last answer is complete, TurnRunning, DatabaseUnavailable.
    """
    with contextlib.ExitStack() as lock:
        _take_turn(parts, conversation_id, lock)
        with parts.database.begin() as connection:
            last = load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=2)
            user_message_id = remove_unfinished_answer(connection, user_id=user_id, conversation_id=conversation_id)
            calls = unfinished_calls(last[-1], parts.settings.jarvis_language)
            if calls:
                blocks = [*last[0].blocks, {"type": "earlier_try", "text": calls}]
                update_message(connection, user_id=user_id, message_id=user_message_id, blocks=blocks)
            turn = _insert_answer(connection, user_id, conversation_id, user_message_id)
        _start(parts, user_id, turn, lock)
    return turn


def _take_turn(parts: Parts, conversation_id: int, lock: contextlib.ExitStack) -> None:
    """Hold the conversation's turn over all processes for as long as `lock`. Raises TurnRunning."""
    # The register too: a turn gives its lock back shortly before it leaves the register.
    if TURNS.get(conversation_id) or not lock.enter_context(parts.database.try_lock(Lock.TURN, conversation_id)):
        raise TurnRunning


def _insert_answer(connection: Connection, user_id: int, conversation_id: int, user_message_id: int) -> RunningTurn:
    answer_message_id = insert_message(
        connection,
        user_id=user_id,
        conversation_id=conversation_id,
        role="assistant",
        content="",
        # "interrupted" until it is complete: should this process die, nothing has to be repaired.
        status="interrupted",
    )
    return RunningTurn(
        user_id=user_id,
        conversation_id=conversation_id,
        user_message_id=user_message_id,
        answer_message_id=answer_message_id,
    )


def _start(parts: Parts, user_id: int, turn: RunningTurn, lock: contextlib.ExitStack) -> None:
    held = lock.pop_all()

    def work(running: RunningTurn) -> None:
        try:
            _run_turn(parts, user_id, running)
        finally:
            held.close()
            parts.background.summarise(running.conversation_id)

    try:
        TURNS.start(turn, work)
    except BaseException:
        held.close()
        raise


def _run_turn(parts: Parts, user_id: int, turn: RunningTurn) -> None:
    """Recall, ask, run tools, save. Whatever happens, what came is saved with how it ended."""
    status: Status = "failed"
    usage = Usage()
    saver = _Saver(parts, user_id, turn)
    try:
        with saver:
            usage = _answer(parts, user_id, turn)
        status = "complete"
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
        saver.finish(status, usage.total)


def _answer(parts: Parts, user_id: int, turn: RunningTurn) -> Usage:
    settings = parts.settings
    language = settings.jarvis_language
    history = _load(parts, user_id, turn)
    memory = build_memory_context(
        database=parts.database,
        embeddings=parts.embeddings,
        user_id=user_id,
        conversation_id=turn.conversation_id,
        message=history[-1].content,
        already_recalled=_already_recalled(history),
        facts_budget=settings.jarvis_facts_budget,
        language=language,
        time_zone=settings.time_zone,
    )
    system = [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        for text in (MEMORY_ASSISTANT_INSTRUCTIONS[language], memory.facts_text)
    ]
    history = _save_with_message(parts, user_id, turn, memory, history)
    messages = build_history(history, language)
    _save_sent(parts, user_id, turn, memory, system, len(messages))
    turn.write(block=_memory_block(memory))
    context = ToolContext(
        database=parts.database,
        embeddings=parts.embeddings,
        user_id=user_id,
        conversation_id=turn.conversation_id,
        user_message_id=turn.user_message_id,
        answer_message_id=turn.answer_message_id,
    )

    def execute(name: str, tool_input: dict[str, Any] | None) -> ToolResult:
        return execute_tool(parts.tools, context, name, tool_input)

    completion = run_chat_completion(
        claude=parts.claude,
        model=settings.jarvis_model,
        system=system,
        messages=messages,
        tools=[tool.for_claude() for tool in sorted(parts.tools, key=lambda tool: tool.name)],
        execute=execute,
        stop=turn.stop,
        give_up=TOO_MANY_ROUNDS[language],
    )
    said_before_round = ""
    while True:
        try:
            event = next(completion)
        except StopIteration as end:
            usage: Usage = end.value
            return usage
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
        elif isinstance(event, Notice):
            turn.write(block={"type": "notice", "kind": event.kind})


def _load(parts: Parts, user_id: int, turn: RunningTurn) -> list[Message]:
    """The conversation up to and with the message that is to be answered."""
    with parts.database.begin() as connection:
        history = load_messages(
            connection,
            user_id=user_id,
            conversation_id=turn.conversation_id,
            limit=HISTORY_MESSAGES,
            before_id=turn.user_message_id + 1,
        )
    if not history:  # deleted meanwhile
        raise ConversationNotFound
    return history


def _already_recalled(history: list[Message]) -> list[int]:
    return [
        conversation["id"]
        for message in history[:-1]
        for block in message.blocks_of("recalled")
        for conversation in block["conversations"]
    ]


def _save_with_message(
    parts: Parts, user_id: int, turn: RunningTurn, memory: MemoryContext, history: list[Message]
) -> list[Message]:
    """Store what goes with the message exactly as it is sent, and read the conversation again with it."""
    now = context_block(datetime.now(UTC), parts.settings.jarvis_language, parts.settings.time_zone)
    blocks: list[dict[str, Any]] = [{"type": "now", "text": now}, *history[-1].blocks_of("earlier_try")]
    if memory.recalled_text:
        recalled = [
            {
                "id": one.id,
                "title": one.title,
                "summary": one.summary,
                "excerpt": one.excerpt,
                "found_by": one.found_by,
            }
            for one in memory.recalled
        ]
        blocks.insert(0, {"type": "recalled", "text": memory.recalled_text, "conversations": recalled})
    with parts.database.begin() as connection:
        update_message(connection, user_id=user_id, message_id=turn.user_message_id, blocks=blocks)
    return _load(parts, user_id, turn)


def _save_sent(
    parts: Parts,
    user_id: int,
    turn: RunningTurn,
    memory: MemoryContext,
    system: list[dict[str, Any]],
    messages: int,
) -> None:
    sent = {
        "model": parts.settings.jarvis_model,
        "system": [block["text"] for block in system],
        "recalled": memory.recalled_text or None,
        "messages": messages,
    }
    with parts.database.begin() as connection:
        update_message(connection, user_id=user_id, message_id=turn.answer_message_id, sent=sent)


def _memory_block(memory: MemoryContext) -> dict[str, Any]:
    return {
        "type": "memory",
        "fact_ids": [fact.id for fact in memory.facts],
        "more_facts": memory.more_facts,
        "conversations": [
            {"id": one.id, "title": one.title, "date": one.updated_at.isoformat()} for one in memory.recalled
        ],
    }


def _show_error(turn: RunningTurn, error: JarvisError) -> None:
    details = {key: value for key, value in error.details.items() if isinstance(value, str | int)}
    turn.write(block={"type": "error", "error": type(error).__name__, "details": details})


class _Saver:
    """Writes the growing answer to the database every two seconds, from a thread of its own."""

    def __init__(self, parts: Parts, user_id: int, turn: RunningTurn) -> None:
        self._parts = parts
        self._user_id = user_id
        self._turn = turn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_saving, name="turn-saver", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _keep_saving(self) -> None:
        while not self._ended.wait(SAVE_SECONDS):
            self._save("interrupted", 0, ())

    def finish(self, status: Status, tokens: int) -> None:
        """Save the answer as it ended, from then on searchable; again after a while when the database is away."""
        self._save(status, tokens, SAVE_WAITS)

    def _save(self, status: Status, tokens: int, waits: tuple[float, ...]) -> None:
        content, blocks, _ = self._turn.snapshot()
        for wait in (*waits, None):
            try:
                with self._parts.database.begin() as connection:
                    if waits:
                        lock_conversations_of(connection, [self._turn.answer_message_id])
                    update_message(
                        connection,
                        user_id=self._user_id,
                        message_id=self._turn.answer_message_id,
                        content=content.strip(),
                        blocks=blocks,
                        status=status,
                        tokens_used=tokens,
                    )
                    if waits:
                        index_words(connection, user_id=self._user_id, message_ids=[self._turn.answer_message_id])
                return
            except DatabaseUnavailable as error:
                log.warning("Saving the answer of conversation %s: %s", self._turn.conversation_id, error)
                if wait is not None:
                    time.sleep(wait)

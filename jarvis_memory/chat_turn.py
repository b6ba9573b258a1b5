"""What sets a turn going: a message, another try, an edited message, a decision. The turn itself is turn_worker.py.

Each returns as soon as what it changes is saved; the turn lives in a worker thread.
"""

import contextlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from jarvis_memory.answers import Usage
from jarvis_memory.assembly import Parts
from jarvis_memory.attachments import Attachment, check_attachments
from jarvis_memory.conversations import (
    ConversationOptions,
    Message,
    create_conversation,
    insert_message,
    load_messages,
    load_rounds,
    reserve_conversation_id,
    update_message,
)
from jarvis_memory.errors import ActionDecided, ConversationNotFound, MessageUnusable, TurnRunning
from jarvis_memory.history import calls_of_earlier_try
from jarvis_memory.pending_actions import (
    decide_action,
    expire_actions,
    get_pending_action,
    load_pending_actions,
    outcome_of,
)
from jarvis_memory.preferences import load_preferences
from jarvis_memory.recall_index import remove_from_index
from jarvis_memory.running_turns import RunningTurn
from jarvis_memory.summaries import regenerate_if_known
from jarvis_memory.text import clean
from jarvis_memory.tools.tool import find_tool
from jarvis_memory.turn_worker import run_resumed, run_turn, start_worker, take_turn
from jarvis_memory.users import lock_memory
from jarvis_memory.versions import replace_messages

MESSAGE_CHARACTERS = 100_000
_DEFAULT_OPTIONS = ConversationOptions()


def usable_message(message: str, *, with_files: bool = False) -> str:
    """The text as it is saved and sent. Raises MessageUnusable when too long, or blank without files."""
    text = clean(message)
    is_blank = not text.strip()
    if (is_blank and not with_files) or len(text) > MESSAGE_CHARACTERS:
        raise MessageUnusable(length=len(text), limit=MESSAGE_CHARACTERS)
    return "" if is_blank else text


def start_turn(
    parts: Parts,
    *,
    user_id: int,
    message: str,
    conversation_id: int | None = None,
    options: ConversationOptions = _DEFAULT_OPTIONS,
    files: Sequence[Attachment] = (),
) -> RunningTurn:
    """Save the message with its files (without an id in a new conversation with these options) and start answering it.

    Raises MessageUnusable, what `check_attachments` raises, ConversationNotFound, TurnRunning while this chat is
    answering, in this process or another, and DatabaseUnavailable. Nothing was saved then.
    """
    text = usable_message(message, with_files=bool(files))
    check_attachments(files, pdfs=parts.settings.claude_reads_documents)
    is_new = conversation_id is None
    if conversation_id is None:
        with parts.database.begin() as connection:
            conversation_id = reserve_conversation_id(connection)
    with contextlib.ExitStack() as lock:
        take_turn(parts, conversation_id, lock)
        # All or nothing: a conversation without its message would be an empty line in every list.
        with parts.database.begin() as connection:
            if is_new:
                create_conversation(connection, user_id=user_id, options=options, conversation_id=conversation_id)
            else:
                _stop_waiting(connection, user_id, conversation_id)
            user_message_id = insert_message(
                connection, user_id=user_id, conversation_id=conversation_id, role="user", content=text, files=files
            )
            turn = _insert_answer(connection, user_id, conversation_id, user_message_id)
        start_worker(parts, user_id, turn, lock, run_turn)
    return turn


def retry_turn(parts: Parts, *, user_id: int, conversation_id: int) -> RunningTurn:
    """Answer the last message again in place of the unfinished answer. Claude is told what its tools did already.

    Raises ConversationNotFound when the last answer is complete, TurnRunning, DatabaseUnavailable.
    """
    return _answer_again(parts, user_id, conversation_id, lambda answer: answer.status in ("interrupted", "failed"))


def regenerate_turn(parts: Parts, *, user_id: int, conversation_id: int, answer_id: int) -> RunningTurn:
    """Answer the last message again in place of this answer, which stays as a version of the new one.

    Raises ConversationNotFound when it is not the last answer (any more), TurnRunning, DatabaseUnavailable.
    """
    return _answer_again(parts, user_id, conversation_id, lambda answer: answer.id == answer_id)


def _answer_again(
    parts: Parts, user_id: int, conversation_id: int, may_replace: Callable[[Message], bool]
) -> RunningTurn:
    with contextlib.ExitStack() as lock:
        take_turn(parts, conversation_id, lock)
        with parts.database.begin() as connection:
            lock_memory(connection, user_id=user_id)
            last = load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=2)
            answer = last.pop() if last and last[-1].role == "assistant" else None
            if not last or last[-1].role != "user" or (answer and not may_replace(answer)):
                raise ConversationNotFound
            question = last[-1]
            turn = _insert_answer(connection, user_id, conversation_id, question.id)
            if answer:
                preferences = load_preferences(connection, user_id=user_id, settings=parts.settings)
                calls = calls_of_earlier_try(answer, preferences.language)
                if calls:
                    blocks = [*question.blocks, {"type": "earlier_try", "text": calls}]
                    update_message(connection, user_id=user_id, message_id=question.id, blocks=blocks)
                replace_messages(
                    connection,
                    user_id=user_id,
                    conversation_id=conversation_id,
                    first_id=answer.id,
                    by_id=turn.answer_message_id,
                )
        start_worker(parts, user_id, turn, lock, run_turn)
    return turn


def edit_turn(parts: Parts, *, user_id: int, conversation_id: int, message_id: int, message: str) -> RunningTurn:
    """Put another text in place of the person's message and answer it. What followed stays as a version to look at.

    Attachments stay with the message. Raises what `start_turn` raises; nothing was changed then.
    """
    with contextlib.ExitStack() as lock:
        take_turn(parts, conversation_id, lock)
        with parts.database.begin() as connection:
            lock_memory(connection, user_id=user_id)
            found = load_messages(
                connection,
                user_id=user_id,
                conversation_id=conversation_id,
                limit=1,
                after_id=message_id - 1,
                oldest_first=True,
            )
            if not found or found[0].id != message_id or found[0].role != "user":
                raise ConversationNotFound
            files = found[0].blocks_of("attachment")
            edited_id = insert_message(
                connection,
                user_id=user_id,
                conversation_id=conversation_id,
                role="user",
                content=usable_message(message, with_files=bool(files)),
                blocks=files,
            )
            replace_messages(
                connection, user_id=user_id, conversation_id=conversation_id, first_id=message_id, by_id=edited_id
            )
            turn = _insert_answer(connection, user_id, conversation_id, edited_id)
        start_worker(parts, user_id, turn, lock, run_turn)
    return turn


def decide(
    parts: Parts,
    *,
    user_id: int,
    action_id: int,
    approve: bool,
    comment: str = "",
    edits: dict[str, Any] | None = None,
) -> RunningTurn | None:
    """Write down what the person decided about an action, with their changes of its editable fields.

    The turn goes on, and is returned, once nothing of it waits any more. Raises ActionDecided, ActionExpired,
    ConversationNotFound, DatabaseUnavailable, and what the tool's `check` raises; nothing was decided then.
    """
    with parts.database.begin() as connection:
        waiting = get_pending_action(connection, user_id=user_id, action_id=action_id)
        tool = find_tool(parts.tools, waiting.tool)
        changed = {name: value for name, value in (edits or {}).items() if tool and name in tool.editable}
        if approve and tool and tool.check:
            tool.check(waiting.action | changed)
        action = decide_action(
            connection, user_id=user_id, action_id=action_id, approve=approve, comment=comment, edits=changed
        )
    # In a transaction of its own, after the commit: of two decisions at the same moment the later one sees both.
    with parts.database.begin() as connection:
        others = load_pending_actions(connection, user_id=user_id, message_ids=[action.message_id])
    if any(other.status == "pending" for other in others):
        return None
    try:
        return resume_turn(parts, user_id=user_id, conversation_id=action.conversation_id)
    except (TurnRunning, ActionDecided):  # whoever decided about another of its actions at the same moment was first
        return None


def resume_turn(parts: Parts, *, user_id: int, conversation_id: int) -> RunningTurn:
    """Go on with the turn whose actions are all decided, also after a restart.

    Raises ActionDecided when nothing is left to go on with, TurnRunning, DatabaseUnavailable.
    """
    with contextlib.ExitStack() as lock:
        take_turn(parts, conversation_id, lock)
        with parts.database.begin() as connection:
            lock_memory(connection, user_id=user_id)
            last = load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=2)
            if len(last) < 2 or last[-1].status != "waiting":
                raise ActionDecided
            question, answer = last
            actions = load_pending_actions(connection, user_id=user_id, message_ids=[answer.id])
            if any(action.status == "pending" for action in actions):
                raise ActionDecided
            # The answer grows on, so what the memory has of it is made anew.
            remove_from_index(connection, user_id=user_id, message_ids=[answer.id])
            regenerate_if_known(connection, user_id=user_id, conversation_id=conversation_id, message_id=answer.id)
            kept = load_rounds(connection, user_id=user_id, message_id=answer.id)
        turn = RunningTurn(
            user_id=user_id,
            conversation_id=conversation_id,
            user_message_id=question.id,
            answer_message_id=answer.id,
            content=answer.content,
            blocks=answer.blocks,
            usage_before=_usage_of(answer),
            rounds=kept["rounds"],
            paused=kept,
        )
        start_worker(parts, user_id, turn, lock, run_resumed)
    return turn


def _usage_of(answer: Message) -> Usage:
    """What the answer took so far."""
    if answer.usage is None:
        return Usage()
    cost = answer.usage["cost"]
    tokens = {name: answer.usage[name] for name in ("input", "output", "cache_read", "cache_write")}
    return Usage(**tokens, cost=Decimal(str(cost)) if cost is not None else None)


def _stop_waiting(connection: Connection, user_id: int, conversation_id: int) -> None:
    """Who writes on instead of deciding does not want what waits: it never happens, and the answer ends there."""
    last = load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=1)
    if not last or last[0].status != "waiting":
        return
    answer = last[0]
    expire_actions(connection, user_id=user_id, message_id=answer.id)
    actions = load_pending_actions(connection, user_id=user_id, message_ids=[answer.id])
    ended = {}
    for action in actions:
        result = outcome_of(action)
        shown = {"result": result.data or {"message": result.content}, "is_error": result.is_error}
        ended[action.call_id] = shown | {"decision": "approved" if action.status == "done" else action.status}
    blocks = [
        block | ended[block["id"]]
        if block["type"] == "tool" and "result" not in block and block["id"] in ended
        else block
        for block in answer.blocks
    ]
    update_message(connection, user_id=user_id, message_id=answer.id, status="complete", rounds=None, blocks=blocks)


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

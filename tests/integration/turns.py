"""What the tests of the turn share: a message said and answered in one line, and what Claude got for it."""

import threading
from collections.abc import Sequence
from typing import Any

from jarvis_memory.assembly import Parts
from jarvis_memory.attachments import Attachment
from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.conversations import ConversationOptions, Message
from jarvis_memory.running_turns import RunningTurn
from tests.fake_claude import FakeClaude, Text
from tests.integration.chats import messages_of

# What a person says of the dog, and what a summary says of it.
DOG = "Mein Hund Bruno frisst gern Käse."


def ask(
    parts: Parts,
    message: str,
    *,
    conversation_id: int | None = None,
    files: Sequence[Attachment] = (),
    **options: Any,
) -> Message:
    """Say it, wait for the end of the turn, and read the saved answer."""
    turn = start_turn(
        parts,
        user_id=parts.user_id,
        message=message,
        conversation_id=conversation_id,
        options=ConversationOptions(**options),
        files=files,
    )
    return ended(parts, turn)


def ask_again(parts: Parts, conversation_id: int) -> Message:
    """Press Retry, wait, and read the saved answer."""
    return ended(parts, retry_turn(parts, user_id=parts.user_id, conversation_id=conversation_id))


def ended(parts: Parts, turn: RunningTurn) -> Message:
    assert turn.done.wait(60), "the turn did not end"
    return saved(parts, turn)


def saved(parts: Parts, turn: RunningTurn) -> Message:
    """The answer as it is in the database now."""
    messages = messages_of(parts.database, parts.user_id, turn.conversation_id)
    return next(message for message in messages if message.id == turn.answer_message_id)


def texts_of(parts: Parts, conversation_id: int) -> list[tuple[str, str]]:
    """Role and text of every message of the conversation."""
    return [(one.role, one.content) for one in messages_of(parts.database, parts.user_id, conversation_id)]


def errors_of(answer: Message) -> list[str]:
    """The names of the errors that are shown with the answer."""
    return [block["error"] for block in answer.blocks_of("error")]


def notices_of(answer: Message) -> list[str]:
    return [block["kind"] for block in answer.blocks_of("notice")]


def chat_requests(claude: FakeClaude) -> list[dict[str, Any]]:
    """The requests of turns; those for summaries are not streamed."""
    return [request for request in claude.requests if request.get("stream")]


def plain(messages: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Role and texts of each message of a request."""
    return [(one["role"], [block.get("text", block["type"]) for block in one["content"]]) for one in messages]


def held(text: str) -> tuple[Text, threading.Event, threading.Event]:
    """A text that stops after its first 12 characters, the event of that, and the event that lets it go on."""
    started, release = threading.Event(), threading.Event()
    return Text(text, started=started, release=release), started, release

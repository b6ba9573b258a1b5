"""A conversation as the Messages API wants it. Earlier turns go as plain text, without tools or thinking."""

import json

from jarvis_memory.answers import Block
from jarvis_memory.conversations import Message
from jarvis_memory.prompts import ALREADY_DONE, OUTCOME_UNKNOWN, Language
from jarvis_memory.text import shorten

# About 100,000 tokens: within every current model's window, with room for tools and the answer.
HISTORY_CHARACTERS = 300_000
NOTE_CHARACTERS = 500

# The blocks of a user's message that go to Claude in front of its text.
SENT_BLOCKS = ("recalled", "now", "earlier_try")


def build_history(messages: list[Message], language: Language) -> list[Block]:
    """Alternating messages that begin and end with the user's, no blank texts, trimmed at a user turn.

    A user's message is preceded by the blocks that were sent with it when it was new, so that the beginning of the
    prompt stays the same from turn to turn and can be read from the cache.
    """
    history: list[Block] = []
    for message in _trimmed(messages):
        content = _user_content(message) if message.role == "user" else _answer_content(message, language)
        if not content:
            continue
        if history and history[-1]["role"] == message.role:
            history[-1]["content"] += content
        else:
            history.append({"role": message.role, "content": content})
    while history and history[0]["role"] != "user":
        del history[0]
    while history and history[-1]["role"] != "user":
        del history[-1]
    return history


def _user_content(message: Message) -> list[Block]:
    blocks = [block["text"] for block in message.blocks if block.get("type") in SENT_BLOCKS]
    return [{"type": "text", "text": said} for said in [*blocks, message.content] if said.strip()]


def _answer_content(message: Message, language: Language) -> list[Block]:
    said = "\n\n".join(part for part in (message.content, unfinished_calls(message, language)) if part.strip())
    return [{"type": "text", "text": said}] if said else []


def unfinished_calls(message: Message, language: Language) -> str:
    """What Claude has to know of an unfinished answer's tool calls, so that no effect is repeated unknowingly.

    The text of a complete answer tells what its tools did; an unfinished one may end before it comes to that.
    """
    notes = []
    for call in message.blocks_of("tool"):
        if "result" not in call:
            notes.append(OUTCOME_UNKNOWN[language].format(tool=call["name"]))
        elif message.status != "complete":
            notes.append(
                ALREADY_DONE[language].format(
                    tool=call["name"], input=_as_note(call["input"]), result=_as_note(call["result"])
                )
            )
    return "\n".join(notes)


def _as_note(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), NOTE_CHARACTERS)


def _trimmed(messages: list[Message]) -> list[Message]:
    size = 0
    for place in range(len(messages) - 1, -1, -1):
        size += len(messages[place].content)
        size += sum(len(block.get("text", "")) for block in messages[place].blocks_of("recalled"))
        if size > HISTORY_CHARACTERS and place < len(messages) - 1:
            return messages[place + 1 :]  # an answer at the beginning is dropped by build_history
    return messages

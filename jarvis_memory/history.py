"""A conversation as the Messages API wants it. Earlier turns go as plain text, without tools or thinking."""

import json
from collections.abc import Mapping
from typing import Any

from jarvis_memory.answers import Block
from jarvis_memory.attachments import Attachment
from jarvis_memory.conversations import Message
from jarvis_memory.prompts import ALREADY_DONE, DONE_BEFORE, NOT_DONE, OUTCOME_UNKNOWN, Language
from jarvis_memory.sent_files import file_blocks
from jarvis_memory.text import shorten

NOTE_CHARACTERS = 500

# The blocks of a user's message that go to Claude in front of its text.
SENT_BLOCKS = ("earlier", "recalled", "now", "earlier_try")


def build_history(
    messages: list[Message],
    language: Language,
    files: Mapping[int, Attachment],
    *,
    documents: bool,
    recalled: bool,
) -> list[Block]:
    """Alternating messages that begin and end with the user's, no blank texts.

    A user's message is preceded by its files and by the blocks that were sent with it when it was new, so that the
    beginning of the prompt stays the same from turn to turn and can be read from the cache. `files` are those that
    go along, by id; `documents`: whether the server knows documents; `recalled`: whether what was recalled goes along,
    which it does not in a chat whose memory was switched off since.
    """
    history: list[Block] = []
    for message in messages:
        if message.role == "user":
            content = file_blocks(message, files, language, documents=documents) + _user_content(
                message, recalled=recalled
            )
        else:
            content = _answer_content(message, language)
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


def _user_content(message: Message, *, recalled: bool) -> list[Block]:
    sent = [kind for kind in SENT_BLOCKS if recalled or kind != "recalled"]
    blocks = [block["text"] for block in message.blocks if block.get("type") in sent]
    return [{"type": "text", "text": said} for said in [*blocks, message.content] if said.strip()]


def _answer_content(message: Message, language: Language) -> list[Block]:
    said = "\n\n".join(part for part in (message.content, unfinished_calls(message, language)) if part.strip())
    return [{"type": "text", "text": said}] if said else []


def calls_of_earlier_try(message: Message, language: Language) -> str:
    """What Claude has to know of the tool calls of an answer that another one takes the place of."""
    if message.status != "complete":
        return unfinished_calls(message, language)
    return "\n".join(_as_done(call, DONE_BEFORE[language]) for call in message.blocks_of("tool") if "result" in call)


def unfinished_calls(message: Message, language: Language) -> str:
    """What Claude has to know of an unfinished answer's tool calls, so that no effect is repeated unknowingly.

    The text of a complete answer tells what its tools did, but not what nobody decided about; an unfinished one may end
    before it comes to that.
    """
    notes = []
    for call in message.blocks_of("tool"):
        decision = call.get("decision")
        if "result" not in call:
            notes.append(OUTCOME_UNKNOWN[language].format(tool=call["name"]))
        elif decision == "expired" or (decision == "declined" and message.status != "complete"):
            notes.append(NOT_DONE[language].format(tool=call["name"], input=_as_note(call["input"])))
        elif message.status != "complete":
            notes.append(_as_done(call, ALREADY_DONE[language]))
    return "\n".join(notes)


def _as_done(call: dict[str, Any], sentence: str) -> str:
    return sentence.format(tool=call["name"], input=_as_note(call["input"]), result=_as_note(call["result"]))


def _as_note(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), NOTE_CHARACTERS)

"""A conversation as the Messages API wants it. Earlier turns go as plain text, without tools or thinking."""

from jarvis_memory.answers import Block
from jarvis_memory.conversations import Message
from jarvis_memory.prompts import OUTCOME_UNKNOWN, Language

# About 100,000 tokens: within every current model's window, with room for tools and the answer.
HISTORY_CHARACTERS = 300_000


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
    blocks = [block["text"] for block in message.blocks if block.get("type") in ("recalled", "now")]
    return [{"type": "text", "text": said} for said in [*blocks, message.content] if said.strip()]


def _answer_content(message: Message, language: Language) -> list[Block]:
    parts = [message.content]
    parts += [
        OUTCOME_UNKNOWN[language].format(tool=call["name"])
        for call in message.blocks_of("tool")
        if "result" not in call
    ]
    said = "\n\n".join(part for part in parts if part.strip())
    return [{"type": "text", "text": said}] if said else []


def _trimmed(messages: list[Message]) -> list[Message]:
    size = 0
    for place in range(len(messages) - 1, -1, -1):
        size += len(messages[place].content)
        size += sum(len(block.get("text", "")) for block in messages[place].blocks_of("recalled"))
        if size > HISTORY_CHARACTERS and place < len(messages) - 1:
            kept = messages[place + 1 :]
            first_user = next((i for i, message in enumerate(kept) if message.role == "user"), 0)
            return kept[first_user:]
    return messages

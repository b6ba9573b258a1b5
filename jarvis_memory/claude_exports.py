"""Reading Claude's `conversations.json`: a list of messages for each conversation, in newer exports with branches."""

import re
from collections.abc import Iterator
from typing import Any

from jarvis_memory.archive import Archived, ArchivedAttachment, ArchivedMessage, MessageReference
from jarvis_memory.attachments import CHARACTERS_A_MESSAGE, TEXT, Attachment
from jarvis_memory.conversations import Role
from jarvis_memory.fields import invalid
from jarvis_memory.foreign_exports import (
    MESSAGES_A_CONVERSATION,
    add_message,
    as_list,
    as_object,
    branch,
    file_note,
    foreign_conversation,
    foreign_id,
    iso,
)
from jarvis_memory.text import clean, one_line, shorten

NAME_CHARACTERS = 120

_ROLES: dict[str, Role] = {"human": "user", "assistant": "assistant"}
_SAID = ("text", "voice_note")
# What stands in the flattened text for what the export left out.
_LEFT_OUT = re.compile(r"\s*```\s*This block is not supported on your current device yet\.\s*```\s*")


def read_claude(conversation: dict[str, Any], place: str) -> Iterator[Archived]:
    """What was said in this conversation of the list, then the texts that were attached. Raises ImportInvalid."""
    said = conversation.get("chat_messages")
    if not isinstance(said, list) or len(said) > MESSAGES_A_CONVERSATION:
        raise invalid(f"{place}.chat_messages", f"is no list of at most {MESSAGES_A_CONVERSATION} messages")
    external_id = foreign_id("claude", conversation.get("uuid"), f"{place}.uuid")
    created = iso(conversation.get("created_at"))
    messages: list[ArchivedMessage] = []
    attached: list[tuple[int, dict[str, Any]]] = []
    for one in _branch(conversation, [one for one in said if isinstance(one, dict)]):
        role = _ROLES.get(str(one.get("sender")))
        files = [file for file in map(as_object, as_list(one.get("attachments"))) if _content(file)]
        content = _text(one)
        if not content and files:
            # What was pasted may be all of the message.
            content = "\n\n".join(file_note(_name(file)) for file in files)
        at = iso(one.get("created_at"))
        if role and content and add_message(messages, role, content, at=at, otherwise=created):
            attached += [(len(messages) - 1, file) for file in files]
    yield foreign_conversation(
        external_id,
        conversation.get("name"),
        messages,
        created=created,
        updated=iso(conversation.get("updated_at")),
        pinned=conversation.get("is_starred") is True,
    )
    for number, file in attached:
        yield ArchivedAttachment(
            at=MessageReference(conversation=external_id, message=number),
            file=Attachment(name=_name(file), media_type=TEXT, content=_content(file).encode()),
            created_at=messages[number].created_at,
        )


def _branch(conversation: dict[str, Any], said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parents = {
        str(one.get("uuid")): one["parent_message_uuid"]
        for one in said
        if isinstance(one.get("parent_message_uuid"), str)
    }
    if not parents:
        return said
    nodes = {str(one.get("uuid")): one for one in said}
    return branch(nodes, parents, conversation.get("current_leaf_message_uuid"))


def _text(message: dict[str, Any]) -> str:
    blocks = [as_object(block) for block in as_list(message.get("content"))]
    texts = [block["text"] for block in blocks if block.get("type") in _SAID and isinstance(block.get("text"), str)]
    said = "\n\n".join(text.strip() for text in texts if text.strip())
    if not said and isinstance(message.get("text"), str):
        said = _LEFT_OUT.sub("\n\n", message["text"])
    files = [file_note(as_object(file).get("file_name")) for file in as_list(message.get("files"))]
    return clean("\n\n".join(part for part in (said, *files) if part)).strip()


def _content(file: dict[str, Any]) -> str:
    content = file.get("extracted_content")
    return clean(content).strip()[:CHARACTERS_A_MESSAGE] if isinstance(content, str) else ""


def _name(file: dict[str, Any]) -> str:
    return shorten(one_line(clean(str(file.get("file_name") or ""))), NAME_CHARACTERS) or "paste.txt"

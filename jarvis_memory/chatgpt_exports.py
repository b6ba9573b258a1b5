"""Reading ChatGPT's `conversations.json`: a tree of messages for each conversation."""

import json
import re
from typing import Any

from jarvis_memory.archive import ArchivedConversation, ArchivedMessage
from jarvis_memory.conversations import Role
from jarvis_memory.fields import invalid
from jarvis_memory.foreign_exports import (
    MESSAGES_A_CONVERSATION,
    add_message,
    as_list,
    as_object,
    branch,
    epoch,
    file_note,
    foreign_conversation,
    foreign_id,
)
from jarvis_memory.text import clean, one_line

# Images and sounds are not in the file.
_IMAGE = "🖼️"
_AUDIO = "🎤"

# Citations and other widgets, in signs of the private use area.
_WIDGETS = re.compile("\ue200[^\ue201]*\ue201")


def read_chatgpt(conversation: dict[str, Any], place: str) -> ArchivedConversation:
    """What was said in this conversation of the list. Raises ImportInvalid."""
    # Real exports have conversations without any; they count as empty.
    mapping = conversation.get("mapping") or {}
    if not isinstance(mapping, dict) or len(mapping) > MESSAGES_A_CONVERSATION:
        raise invalid(f"{place}.mapping", f"is no object of at most {MESSAGES_A_CONVERSATION} messages")
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    updated = epoch(conversation.get("update_time"))
    created = epoch(conversation.get("create_time")) or updated
    messages: list[ArchivedMessage] = []
    for node in branch(nodes, _parents(nodes), conversation.get("current_node")):
        message = as_object(node.get("message"))
        said = _said(message)
        if said is not None:
            add_message(messages, *said, at=epoch(message.get("create_time")), otherwise=created)
    number = conversation.get("conversation_id") or conversation.get("id")
    return foreign_conversation(
        foreign_id("chatgpt", number, f"{place}.conversation_id"),
        conversation.get("title"),
        messages,
        created=created,
        updated=updated,
        remember=conversation.get("is_do_not_remember") is not True,
        archived=conversation.get("is_archived") is True,
        pinned=conversation.get("is_starred") is True,
    )


def _parents(nodes: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The parent of each node, from the lists of children where the node itself does not say."""
    parents = {
        child: key for key, node in nodes.items() for child in as_list(node.get("children")) if isinstance(child, str)
    }
    return parents | {key: node["parent"] for key, node in nodes.items() if isinstance(node.get("parent"), str)}


def _said(message: dict[str, Any]) -> tuple[Role, str] | None:
    """Who said what; None for what belongs to tools, is hidden, or empty."""
    author, metadata, content = (as_object(message.get(name)) for name in ("author", "metadata", "content"))
    role = author.get("role")
    if role not in ("user", "assistant") or metadata.get("is_visually_hidden_from_conversation"):
        return None
    recipient = message.get("recipient") or "all"
    if recipient == "canmore.create_textdoc":
        # A canvas as it began; changes to it are patterns, which nobody wants to read.
        said = _canvas(content)
    elif recipient == "all":
        said = _WIDGETS.sub("", _text(content, metadata))
    else:
        return None
    said = clean(said).strip()
    return (role, said) if said else None


def _text(content: dict[str, Any], metadata: dict[str, Any]) -> str:
    match content.get("content_type"):
        case "text" | "multimodal_text":
            parts = [_part(part) for part in as_list(content.get("parts"))]
            parts += [_attached(as_object(file)) for file in as_list(metadata.get("attachments"))]
            return "\n\n".join(part for part in parts if part)
        case "code" if isinstance(content.get("text"), str) and content["text"].strip():
            return _fenced(content["text"], content.get("language"))
    return ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part.strip()
    found = as_object(part)
    if isinstance(found.get("text"), str):
        # What was said aloud, as ChatGPT wrote it down.
        return str(found["text"]).strip()
    # The sound beside a transcription says nothing more.
    return {"image_asset_pointer": _IMAGE, "audio_asset_pointer": _AUDIO}.get(str(found.get("content_type")), "")


def _attached(file: dict[str, Any]) -> str:
    # An image is a part of the message already.
    is_image = str(file.get("mime_type") or file.get("mimeType")).startswith("image/")
    return "" if is_image else file_note(file.get("name"))


def _canvas(content: dict[str, Any]) -> str:
    source = content.get("text") or next(iter(as_list(content.get("parts"))), "")
    try:
        document = as_object(json.loads(source)) if isinstance(source, str) else {}
    except (ValueError, RecursionError):
        return ""
    text, name, kind = (str(document.get(field) or "") for field in ("content", "name", "type"))
    if not text.strip():
        return ""
    heading = f"**{one_line(name)}**\n\n" if name.strip() else ""
    return heading + (_fenced(text, kind.removeprefix("code/")) if kind.startswith("code/") else text)


def _fenced(text: str, language: Any) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    known = isinstance(language, str) and language != "unknown" and re.fullmatch(r"[\w+-]{1,20}", language)
    return f"{fence}{language if known else ''}\n{text.strip()}\n{fence}"

"""Files to import, as the tests make them: exports of JARVIS, ChatGPT and Claude, in a file that can be read."""

import copy
import io
import json
import zipfile
from typing import Any

MOMENT = "2026-11-12T09:30:00+00:00"

MESSAGE = {
    "role": "user",
    "content": "Mein Hund heißt Bruno",
    "status": "complete",
    "created_at": MOMENT,
    "blocks": [],
    "excluded_from_memory": False,
    "tokens_used": 0,
    "usage": None,
}
CONVERSATION = {
    "external_id": "one",
    "title": "Bruno",
    "title_by_user": False,
    "remember": True,
    "reads_memory": True,
    "pinned": False,
    "archived": False,
    "model": None,
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "summary": None,
    "messages": [MESSAGE, MESSAGE | {"role": "assistant", "content": "Schöner Name!"}],
}
FACT = {
    "content": "Der Hund heißt Bruno",
    "origin": "said",
    "source": {"conversation": "one", "message": 0},
    "created_at": MOMENT,
    "updated_at": MOMENT,
}
ATTACHMENT = {
    "at": {"conversation": "one", "message": 0},
    "name": "impfpass.txt",
    "media_type": "text/plain",
    "pages": 0,
    "created_at": MOMENT,
    "content": "VG9sbHd1dA==",
}
DOCUMENT = {"name": "Mietvertrag.md", "created_at": MOMENT, "content": "RGllIE1pZXRl"}
VERSION = {
    "at": {"conversation": "one", "message": 0},
    "messages": [{"role": "user", "content": "Mein Hund heißt Brno", "files": []}],
    "created_at": MOMENT,
}


def export_of(**changes: Any) -> dict[str, Any]:
    """An export of JARVIS with one of each; `changes` replaces members."""
    return copy.deepcopy(
        {
            "format": "jarvis-export",
            "version": 1,
            "exported_at": MOMENT,
            "preferences": {"language": "en", "time_zone": None, "model": None, "instructions": ""},
            "conversations": [CONVERSATION],
            "facts": [FACT],
            "versions": [VERSION],
            "attachments": [ATTACHMENT],
            "documents": [DOCUMENT],
        }
        | changes
    )


def file_of(value: Any) -> io.BytesIO:
    """The value as a JSON file."""
    return io.BytesIO(value if isinstance(value, bytes) else json.dumps(value).encode())


def zip_of(files: dict[str, Any]) -> io.BytesIO:
    """A ZIP archive with these files: bytes, or values as JSON."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in files.items():
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            file.writestr(name, content)
    archive.seek(0)
    return archive


def node(number: str, parent: str | None, role: str = "user", said: Any = "", **more: Any) -> dict[str, Any]:
    """A node of ChatGPT's tree. `said` is a text, a list of parts, or the whole content."""
    if isinstance(said, str):
        said = {"content_type": "text", "parts": [said]}
    elif isinstance(said, list):
        said = {"content_type": "multimodal_text", "parts": said}
    message = {"id": number, "author": {"role": role}, "content": said, "create_time": 1_700_000_000.5, "metadata": {}}
    return {"id": number, "parent": parent, "children": [], "message": message | {"recipient": "all"} | more}


def chatgpt(*nodes: dict[str, Any], number: str = "c1", **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT with these nodes, of which the last is the current one."""
    return {
        "conversation_id": number,
        "id": number,
        "title": "Urlaub",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_100.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": nodes[-1]["id"] if nodes else None,
    } | more


def said_to_claude(number: str, sender: str, text: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A message of Claude's export."""
    return (
        {
            "uuid": number,
            "sender": sender,
            "text": text,
            "content": [{"type": "text", "text": text}],
            "created_at": "2026-03-01T10:00:00.123456Z",
            "attachments": [],
            "files": [],
        }
        | ({"parent_message_uuid": parent} if parent else {})
        | more
    )


def claude(*messages: dict[str, Any], number: str = "u1", **more: Any) -> dict[str, Any]:
    """A conversation of Claude's export."""
    return {
        "uuid": number,
        "name": "Urlaub",
        "created_at": "2026-03-01T10:00:00Z",
        "updated_at": "2026-03-02T10:00:00Z",
        "chat_messages": list(messages),
    } | more

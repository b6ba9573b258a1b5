"""What reading the exports of other programs has in common. Each program has a module of its own beside this one.

Their formats are neither documented nor stable, so the readers are lenient: what they do not know is left out. What is
taken is what was said, along the branch that was open last; not what tools did, what the model thought and what was
hidden from the conversation.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from jarvis_memory.archive import ArchivedConversation, ArchivedMessage, ArchivedSummary
from jarvis_memory.conversations import TITLE_CHARACTERS, Role
from jarvis_memory.fields import YEARS, invalid
from jarvis_memory.text import clean, one_line, shorten

MESSAGES_A_CONVERSATION = 100_000
CONTENT_CHARACTERS = 5_000_000
ID_CHARACTERS = 200


def foreign_conversation(
    external_id: str,
    title: Any,
    messages: list[ArchivedMessage],
    *,
    created: datetime | None,
    updated: datetime | None,
    remember: bool = True,
    archived: bool = False,
    pinned: bool = False,
) -> ArchivedConversation:
    """The conversation as it is stored."""
    title = shorten(one_line(clean(title)), TITLE_CHARACTERS) if isinstance(title, str) else ""
    beginning = created or (messages[0].created_at if messages else datetime.now(UTC))
    end = updated or (messages[-1].created_at if messages else beginning)
    return ArchivedConversation(
        external_id=external_id,
        title=title,
        # The person knows it by that title: a later summary must not rename it.
        title_by_user=bool(title),
        remember=remember,
        archived=archived,
        pinned=pinned,
        created_at=beginning,
        updated_at=end,
        messages=messages,
        # A summary of each would be a paid call for each: hundreds for one import. As if all of it had been
        # summarised to nothing it is found by its exchanges and words, and summarised once it goes on.
        summary=ArchivedSummary(text=None, messages=len(messages), updated_at=end),
    )


def add_message(
    messages: list[ArchivedMessage], role: Role, content: str, *, at: datetime | None, otherwise: datetime | None
) -> bool:
    """Append what was said, with the time of the message before it, or `otherwise`, where it has none.

    False for an answer to nothing: a conversation begins with what the person said.
    """
    if not messages and role == "assistant":
        return False
    at = at or (messages[-1].created_at if messages else otherwise) or datetime.now(UTC)
    messages.append(ArchivedMessage(role=role, content=content[:CONTENT_CHARACTERS], created_at=at))
    return True


def foreign_id(program: str, number: Any, place: str) -> str:
    """The id of a conversation among those of all programs. Raises ImportInvalid."""
    if not isinstance(number, str) or not clean(number).strip() or len(number) > ID_CHARACTERS:
        raise invalid(place, "is no id")
    return f"{program}:{clean(number).strip()}"


def branch(nodes: dict[str, dict[str, Any]], parents: dict[str, str], leaf: Any) -> list[dict[str, Any]]:
    """The nodes from the beginning to the leaf; to the newest one where the leaf is not (any more) there."""
    key = leaf if isinstance(leaf, str) and leaf in nodes else None
    if key is None:
        inner = set(parents.values())
        key = next((one for one in reversed(nodes) if one not in inner), None)
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    while key is not None and key in nodes and key not in seen:
        seen.add(key)
        found.append(nodes[key])
        key = parents.get(key)
    return found[::-1]


def file_note(name: Any) -> str:
    """What stands for a file that is not in the export, in every language; "" without a name."""
    return f"📎 {one_line(clean(name))}" if isinstance(name, str) and name.strip() else ""


def epoch(seconds: Any) -> datetime | None:
    """The time, None where there is no usable one."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not math.isfinite(seconds):
        return None
    return _usable(lambda: datetime.fromtimestamp(seconds, UTC))


def iso(moment: Any) -> datetime | None:
    """The time, in UTC where it does not say its zone; None where there is no usable one."""
    if not isinstance(moment, str):
        return None
    return _usable(lambda: datetime.fromisoformat(moment))


def _usable(read: Callable[[], datetime]) -> datetime | None:
    try:
        found = read()
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.year in YEARS else None


def as_object(value: Any) -> dict[str, Any]:
    """The object, an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The list, an empty one where it is none."""
    return value if isinstance(value, list) else []

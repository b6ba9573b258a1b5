"""Calls of tools that wait for the person's click: stored with their answer, decided once, carried out once.

What a decision sets going is chat_turn.py's and turn_worker.py's matter.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from jarvis_memory.errors import ActionDecided, ActionExpired, ConversationNotFound
from jarvis_memory.text import clean, clean_deep
from jarvis_memory.tools.tool import ToolResult

# A weekend and a holiday; what is older hardly fits any more.
ACTION_DAYS = 7
COMMENT_CHARACTERS = 1_000
# Calls in one answer; far more than a model asks for.
LISTED = 500

ActionStatus = Literal["pending", "approved", "declined", "expired", "running", "done"]


@dataclass(frozen=True, kw_only=True)
class PendingAction:
    """One call that waits or waited. `action` is exactly what happens, or happened, once it is approved."""

    id: int
    conversation_id: int
    message_id: int
    call_id: str
    tool: str
    action: dict[str, Any]
    status: ActionStatus
    comment: str
    # What the tool returned.
    result: ToolResult | None
    expires_at: datetime


_COLUMNS = """id, conversation_id, message_id, call_id, tool, action, comment, result, expires_at,
    CASE WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END AS status"""


def _action(row: Any) -> PendingAction:
    values = dict(row._mapping)
    return PendingAction(**values | {"result": ToolResult(**row.result) if row.result else None})


def insert_pending_actions(
    connection: Connection, *, user_id: int, conversation_id: int, message_id: int, calls: Sequence[dict[str, Any]]
) -> None:
    """Store the calls of this answer that wait: tool blocks with `id`, `name` and `action`. Known ones stay."""
    for call in calls:
        connection.execute(
            text(
                """INSERT INTO pending_actions
                       (user_id, conversation_id, message_id, call_id, tool, action, expires_at)
                   VALUES (:user_id, :conversation_id, :message_id, :call_id, :tool, :action,
                           now() + make_interval(days => :days))
                   ON CONFLICT (message_id, call_id) DO NOTHING"""
            ).bindparams(bindparam("action", type_=JSONB)),
            {
                "user_id": user_id,
                "conversation_id": conversation_id,
                "message_id": message_id,
                "call_id": call["id"],
                "tool": call["name"],
                "action": call["action"],
                "days": ACTION_DAYS,
            },
        )


def load_pending_actions(connection: Connection, *, user_id: int, message_ids: list[int]) -> list[PendingAction]:
    """The actions of these answers in the order Claude asked for them, decided ones too; at most LISTED."""
    rows = connection.execute(
        text(
            f"""SELECT {_COLUMNS} FROM pending_actions
                WHERE user_id = :user_id AND message_id = ANY(:ids) ORDER BY id LIMIT :limit"""
        ),
        {"user_id": user_id, "ids": message_ids, "limit": LISTED},
    )
    return [_action(row) for row in rows]


def get_pending_action(connection: Connection, *, user_id: int, action_id: int) -> PendingAction:
    """The action. Raises ConversationNotFound when it went with its chat."""
    row = connection.execute(
        text(f"SELECT {_COLUMNS} FROM pending_actions WHERE id = :id AND user_id = :user_id"),
        {"id": action_id, "user_id": user_id},
    ).one_or_none()
    if row is None:
        raise ConversationNotFound
    return _action(row)


def decide_action(
    connection: Connection,
    *,
    user_id: int,
    action_id: int,
    approve: bool,
    comment: str = "",
    edits: dict[str, Any] | None = None,
) -> PendingAction:
    """Write the decision down, with the person's changes of the action. Of several at once, one is first.

    Raises ActionDecided, ActionExpired, ConversationNotFound.
    """
    row = connection.execute(
        text(
            f"""UPDATE pending_actions SET status = :status, comment = :comment, action = action || :edits
                WHERE id = :id AND user_id = :user_id AND status = 'pending' AND expires_at > now()
                RETURNING {_COLUMNS}"""
        ).bindparams(bindparam("edits", type_=JSONB)),
        {
            "id": action_id,
            "user_id": user_id,
            "status": "approved" if approve else "declined",
            "comment": clean(comment).strip()[:COMMENT_CHARACTERS],
            "edits": clean_deep(edits or {}) if approve else {},
        },
    ).one_or_none()
    if row is not None:
        return _action(row)
    known = get_pending_action(connection, user_id=user_id, action_id=action_id)
    raise ActionExpired if known.status == "expired" else ActionDecided


def begin_action(connection: Connection, *, user_id: int, action_id: int) -> bool:
    """Claim an approved action before its tool runs. False when it was claimed already: then nobody runs it again."""
    claimed = connection.execute(
        text(
            """UPDATE pending_actions SET status = 'running'
               WHERE id = :id AND user_id = :user_id AND status = 'approved'"""
        ),
        {"id": action_id, "user_id": user_id},
    )
    return claimed.rowcount == 1


def finish_action(connection: Connection, *, user_id: int, action_id: int, result: ToolResult) -> None:
    """Write down what came of it."""
    connection.execute(
        text(
            "UPDATE pending_actions SET status = 'done', result = :result WHERE id = :id AND user_id = :user_id"
        ).bindparams(bindparam("result", type_=JSONB)),
        {"id": action_id, "user_id": user_id, "result": clean_deep(asdict(result))},
    )


def expire_actions(connection: Connection, *, user_id: int, message_id: int) -> None:
    """What has not been carried out of this answer never will be."""
    connection.execute(
        text(
            """UPDATE pending_actions SET status = 'expired'
               WHERE message_id = :id AND user_id = :user_id AND status IN ('pending', 'approved')"""
        ),
        {"id": message_id, "user_id": user_id},
    )


def outcome_of(action: PendingAction) -> ToolResult:
    """What Claude is told of an action that is not to be carried out now."""
    if action.result is not None:
        return action.result
    if action.status == "declined":
        said = f" They said: {action.comment}" if action.comment else ""
        return ToolResult(content=f"The person declined. Nothing was done; do not try it again.{said}", is_error=True)
    if action.status == "running":
        return ToolResult(
            content="Interrupted while it was carried out; whether it was is unknown. Do not repeat it; say so.",
            is_error=True,
        )
    return ToolResult(content="The person did not decide about it. Nothing was done.", is_error=True)

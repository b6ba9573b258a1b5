"""A long conversation is cut at a message of the user, to well below the budget, and the cut stays where it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from jarvis_memory.conversations import Message, Role
from jarvis_memory.history_cut import LONGEST_HISTORY, SHORTEST_HISTORY, history_budget, last_cut, new_cut


def message(role: Role, content: str, *blocks: dict[str, Any]) -> Message:
    return Message(
        id=1,
        conversation_id=1,
        role=role,
        content=content,
        blocks=list(blocks),
        created_at=datetime(2026, 11, 12, tzinfo=UTC),
    )


def exchanges(count: int, size: int = 10) -> list[Message]:
    return [message(role, "x" * size) for _ in range(count) for role in ("user", "assistant")]


def test_a_history_within_the_budget_is_whole() -> None:
    assert new_cut([*exchanges(5), message("user", "x" * 10)], budget=110) == 0


def test_a_history_that_is_too_long_is_cut_at_a_message_of_the_user_with_room_left() -> None:
    messages = [*exchanges(5), message("user", "x" * 10)]
    cut = new_cut(messages, budget=109)
    assert messages[cut].role == "user"
    # Six tenths of 109 are six messages; the sixth from the end would be an answer.
    assert len(messages) - cut == 5


def test_the_next_turns_do_not_move_the_cut() -> None:
    messages = [*exchanges(5), message("user", "x" * 10)]
    kept = messages[new_cut(messages, budget=109) :]
    for turn in range(2):
        kept += [message("assistant", "x" * 10), message("user", "x" * 10)]
        assert new_cut(kept, budget=109) == 0, turn
    kept += [message("assistant", "x" * 10), message("user", "x" * 10)]
    assert new_cut(kept, budget=109) > 0


def test_what_was_sent_with_a_message_counts() -> None:
    recalled = {"type": "recalled", "text": "r" * 30, "conversations": []}
    messages = [message("user", "a" * 10, recalled), message("assistant", "b" * 10), message("user", "c" * 10)]
    assert new_cut(messages, budget=40) == 2
    assert new_cut(messages, budget=60) == 0


def test_the_newest_message_is_kept_however_long_it_is() -> None:
    assert new_cut([*exchanges(1), message("user", "c" * 1_000)], budget=5) == 2
    assert new_cut([message("user", "c" * 1_000)], budget=5) == 0


def test_the_history_begins_at_the_newest_cut() -> None:
    earlier = {"type": "earlier", "text": "…"}
    messages = [message("user", "a", earlier), message("assistant", "b"), message("user", "c", earlier)]
    assert last_cut(messages) == 2
    assert last_cut(messages[:2]) == 0
    assert last_cut([]) == 0


@pytest.mark.parametrize(
    ("window", "budget"),
    [(4_096, SHORTEST_HISTORY), (32_000, 15_000), (64_000, 95_000), (200_000, LONGEST_HISTORY)],
)
def test_the_budget_follows_the_window_of_the_model(window: int, budget: int) -> None:
    assert history_budget(window) == budget

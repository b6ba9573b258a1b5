"""The two sets of conversations and questions that recall is measured on, as one kind of value.

LoCoMo (Maharana et al., ACL 2024, CC BY-NC 4.0) is read from a file of its own and is no part of this project; the
German set is ours.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

GERMAN_SET = Path(__file__).with_name("german_set.json")
# The day on which the German questions are asked.
GERMAN_TODAY = datetime(2026, 11, 30, 12, tzinfo=UTC)

# LoCoMo's categories by their number; the fifth has no answer in the conversations and is left out.
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


@dataclass(frozen=True, kw_only=True)
class Told:
    """A conversation: its messages in turn the user's and the assistant's."""

    key: str
    date: datetime
    title: str
    summary: str
    messages: list[str]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question with the keys of the conversations that answer it; none where nothing is to be recalled."""

    text: str
    answers: frozenset[str]
    kind: str
    half: str  # "tune" or "report"


@dataclass(frozen=True, kw_only=True)
class RecallSet:
    """What one measurement runs on. `today` is the day of the questions, None where they have none."""

    name: str
    told: list[Told]
    asked: list[Asked]
    today: datetime | None = None


def german_set() -> RecallSet:
    """The German set: one household, near neighbours, a part of the questions without an answer."""
    read = json.loads(GERMAN_SET.read_text(encoding="utf-8"))
    told = [
        Told(
            key=one["key"],
            date=datetime.fromisoformat(one["date"]).replace(hour=12, tzinfo=UTC),
            title=one["title"],
            summary=one["summary"],
            messages=[message["content"] for message in one["messages"]],
        )
        for one in read["conversations"]
    ]
    asked = [
        Asked(text=one["question"], answers=frozenset(one["answers"]), kind=one["kind"], half=one["half"])
        for one in read["questions"]
    ]
    return RecallSet(name="German", told=told, asked=asked, today=GERMAN_TODAY)


def locomo_set(path: Path) -> RecallSet:
    """LoCoMo pooled: every session of every pair is a conversation, and all stand in one memory.

    The questions of categories 1 to 4 whose evidence names a session; every second one of a category is for tuning.
    """
    told, asked = [], []
    seen: dict[str, int] = {}
    for sample in json.loads(path.read_text(encoding="utf-8")):
        name, sessions = sample["sample_id"], sample["conversation"]
        numbers = [key for key in sessions if re.fullmatch(r"session_\d+", key) and sessions[key]]
        for session in numbers:
            number = session.removeprefix("session_")
            told.append(
                Told(
                    key=f"{name}/{number}",
                    date=_locomo_date(sessions[f"{session}_date_time"]),
                    title="",
                    summary=sample["session_summary"].get(f"session_{number}_summary", ""),
                    messages=[f"{turn['speaker']}: {_said(turn)}" for turn in sessions[session]],
                )
            )
        keys = {one.key for one in told}
        for question in sample["qa"]:
            evidence = re.findall(r"D(\d+):\d+", " ".join(map(str, question.get("evidence", []))))
            answers = frozenset(f"{name}/{number}" for number in evidence) & keys
            if question["category"] in _CATEGORIES and answers:
                kind = _CATEGORIES[question["category"]]
                seen[kind] = seen.get(kind, 0) + 1
                half = "report" if seen[kind] % 2 else "tune"
                asked.append(Asked(text=question["question"], answers=answers, kind=kind, half=half))
    return RecallSet(name="LoCoMo", told=told, asked=asked)


def _said(turn: dict[str, Any]) -> str:
    # Of a picture that was shown, LoCoMo has a caption.
    caption = turn.get("blip_caption")
    return f"{turn['text']} [{caption}]" if caption else str(turn["text"])


def _locomo_date(written: str) -> datetime:
    return datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)

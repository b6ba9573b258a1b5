"""What a person chose in the settings, on top of what the environment says for everybody."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import Connection, select, update

from jarvis_memory.errors import PreferenceUnusable
from jarvis_memory.prompts import Language
from jarvis_memory.settings import Settings
from jarvis_memory.tables import users
from jarvis_memory.text import clean

INSTRUCTIONS_CHARACTERS = 4_000
LANGUAGES: tuple[Language, ...] = ("de", "en")

_CHOSEN = (users.c.language, users.c.time_zone, users.c.model, users.c.memory, users.c.instructions)


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """What is in effect for one person."""

    language: Language
    # None: the machine's.
    time_zone: ZoneInfo | None
    model: str
    # Whether a new chat reads the memory and becomes part of it.
    memory: bool
    instructions: str


def load_preferences(connection: Connection, *, user_id: int, settings: Settings) -> Preferences:
    """The person's choices, with the environment's values where they made none."""
    row = connection.execute(select(*_CHOSEN, users.c.browser_time_zone).where(users.c.id == user_id)).one()
    zone = row.time_zone or settings.jarvis_time_zone or row.browser_time_zone
    return Preferences(
        language=row.language or settings.jarvis_language,
        # A zone that this machine does not know (any more) must not break every turn.
        time_zone=ZoneInfo(zone) if zone in available_timezones() else None,
        model=row.model or settings.jarvis_model,
        memory=row.memory != "off",
        instructions=row.instructions,
    )


def load_choices(connection: Connection, *, user_id: int) -> dict[str, Any]:
    """What the person themselves chose: language, time_zone, model, memory (None where nothing), instructions."""
    return dict(connection.execute(select(*_CHOSEN).where(users.c.id == user_id)).one()._mapping)


def save_choices(connection: Connection, *, user_id: int, **choices: str | None) -> None:
    """Set some of the choices; None takes one back. Raises PreferenceUnusable with the field's name."""
    cleaned = {name: clean(value).strip() if value is not None else None for name, value in choices.items()}
    for name, value in cleaned.items():
        if not is_usable(name, value):
            raise PreferenceUnusable(field=name, limit=INSTRUCTIONS_CHARACTERS)
    connection.execute(update(users).where(users.c.id == user_id).values(cleaned))


def is_usable(name: str, value: str | None) -> bool:
    """Whether this choice can be made."""
    if name == "instructions":
        return value is not None and len(value) <= INSTRUCTIONS_CHARACTERS
    if value is None:
        return True
    if name == "memory":
        return value in ("on", "off")
    if name == "model":
        return value != "" and not any(character.isspace() for character in value)
    return value in (LANGUAGES if name == "language" else available_timezones())


def note_browser_time_zone(connection: Connection, *, user_id: int, zone: str | None) -> None:
    """Keep the zone that the browser tells, where it is one; nothing is written while it stays the same."""
    if zone in available_timezones():
        connection.execute(
            update(users)
            .where(users.c.id == user_id, users.c.browser_time_zone.is_distinct_from(zone))
            .values(browser_time_zone=zone)
        )

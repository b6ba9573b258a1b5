"""What a person chose: on top of the environment, checked before it is kept, in effect from the next turn on."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.database import Database
from jarvis_memory.errors import PreferenceUnusable
from jarvis_memory.preferences import (
    Preferences,
    load_choices,
    load_preferences,
    note_browser_time_zone,
    save_choices,
)
from jarvis_memory.settings import Settings
from tests.fake_claude import FakeClaude
from tests.integration.chats import run, somebody_else
from tests.integration.turns import ask, chat_requests

ENVIRONMENT = {"jarvis_language": "en", "jarvis_time_zone": "Europe/London", "jarvis_model": "claude-opus-5-5"}


def preferences(database: Database, user_id: int, **settings: Any) -> Preferences:
    with database.begin() as connection:
        return load_preferences(connection, user_id=user_id, settings=Settings(_env_file=None, **settings))


def choose(database: Database, user_id: int, **choices: str | None) -> None:
    with database.begin() as connection:
        save_choices(connection, user_id=user_id, **choices)


def browser_tells(database: Database, user_id: int, zone: str | None) -> None:
    with database.begin() as connection:
        note_browser_time_zone(connection, user_id=user_id, zone=zone)


def test_without_a_choice_the_environment_decides(database: Database, user_id: int) -> None:
    assert preferences(database, user_id, **ENVIRONMENT) == Preferences(
        language="en", time_zone=ZoneInfo("Europe/London"), model="claude-opus-5-5", memory=True, instructions=""
    )


def test_a_choice_goes_before_the_environment_and_can_be_taken_back(database: Database, user_id: int) -> None:
    choose(
        database,
        user_id,
        language="de",
        time_zone="Europe/Berlin",
        model="claude-haiku-5-5",
        memory="off",
        instructions="Duze mich.",
    )
    assert preferences(database, user_id, **ENVIRONMENT) == Preferences(
        language="de",
        time_zone=ZoneInfo("Europe/Berlin"),
        model="claude-haiku-5-5",
        memory=False,
        instructions="Duze mich.",
    )
    choose(database, user_id, language=None, time_zone=None, model=None)
    assert preferences(database, user_id, **ENVIRONMENT).language == "en"
    with database.begin() as connection:
        chosen = load_choices(connection, user_id=user_id)
    assert chosen == {"language": None, "time_zone": None, "model": None, "memory": "off", "instructions": "Duze mich."}


def test_one_person_s_choice_is_not_another_s(database: Database, user_id: int) -> None:
    choose(database, somebody_else(database), language="en", instructions="Be brief.")
    assert preferences(database, user_id).language == "de"
    assert preferences(database, user_id).instructions == ""


@pytest.mark.parametrize(
    "choice",
    [
        {"language": "tlh"},
        {"time_zone": "Mars/Olympus"},
        {"model": "two words"},
        {"model": " "},
        {"memory": "maybe"},
        {"instructions": "x" * 4_001},
        {"instructions": None},
    ],
)
def test_a_bad_choice_is_refused_by_its_name_and_nothing_is_kept(
    database: Database, user_id: int, choice: dict[str, str]
) -> None:
    with pytest.raises(PreferenceUnusable) as refused:
        choose(database, user_id, **choice)
    assert refused.value.details["field"] == next(iter(choice))
    assert preferences(database, user_id) == preferences(database, somebody_else(database))


def test_the_browser_s_time_zone_counts_where_nobody_says_one(database: Database, user_id: int) -> None:
    browser_tells(database, user_id, "America/New_York")
    assert preferences(database, user_id).time_zone == ZoneInfo("America/New_York")
    assert preferences(database, user_id, **ENVIRONMENT).time_zone == ZoneInfo("Europe/London")
    for nonsense in (None, "", "Mars/Olympus", "../../etc/passwd"):
        browser_tells(database, user_id, nonsense)
    assert preferences(database, user_id).time_zone == ZoneInfo("America/New_York")


def test_a_zone_that_this_machine_does_not_know_breaks_nothing(database: Database, user_id: int) -> None:
    run(database, "UPDATE users SET time_zone = 'Mars/Olympus' WHERE id = :id", id=user_id)
    assert preferences(database, user_id).time_zone is None


def test_the_next_turn_follows_language_and_instructions(parts: Parts, claude: FakeClaude) -> None:
    choose(parts.database, parts.user_id, language="en", instructions="Talk like a pirate.")
    ask(parts, "Guten Tag")
    instructions, facts = (block["text"] for block in chat_requests(claude)[-1]["system"])
    assert instructions.startswith("You are JARVIS")
    assert instructions.endswith("Talk like a pirate.")
    assert facts.startswith("Known facts about the user:")

"""What answers and summaries took: written down whatever becomes of them, summed by the person's days."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from jarvis_memory.answers import Usage
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import start_turn
from jarvis_memory.conversations import load_sent, update_conversation
from jarvis_memory.database import Database
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.errors import JarvisError
from jarvis_memory.preferences import save_choices
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import update_conversation_summary
from jarvis_memory.usage import UsageSum, last_months, record_usage, usage_by_day, usage_by_month
from tests.fake_claude import Drop, FakeClaude, Reply, ToolUse, overloaded
from tests.integration.chats import run, said, somebody_else, wait_until
from tests.integration.turns import DOG, ask, ask_again, ended, held

BERLIN = ZoneInfo("Europe/Berlin")
TODAY = date(2026, 12, 1)
COUNTED = {"input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted Claude counts as Anthropic's own, whose prices are known."""
    monkeypatch.setattr(Settings, "claude_is_official", property(lambda _: True))


def rows(database: Database, purpose: str = "chat") -> list[dict[str, Any]]:
    """What is written down, in order."""
    with database.begin() as connection:
        query = "SELECT model, input, output, cache_read, cost FROM token_usage WHERE purpose = :purpose ORDER BY id"
        return [dict(row._mapping) for row in connection.execute(text(query), {"purpose": purpose})]


def used_at(
    database: Database, user_id: int, *moments: datetime, model: str = "claude-sonnet-5-5", **usage: Any
) -> None:
    """Something was used at these moments."""
    conversation_id = said(database, user_id)
    for moment in moments:
        with database.begin() as connection:
            record_usage(
                connection,
                user_id=user_id,
                conversation_id=conversation_id,
                purpose="chat",
                model=model,
                usage=Usage(**{"input": 1, "cost": None} | usage),
            )
        run(
            database,
            "UPDATE token_usage SET created_at = :moment WHERE id = (SELECT max(id) FROM token_usage)",
            moment=moment,
        )


def by_day(database: Database, user_id: int, zone: ZoneInfo = BERLIN) -> list[UsageSum]:
    with database.begin() as connection:
        return usage_by_day(connection, user_id=user_id, zone=zone, today=TODAY)


# --- what is written down ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("official")
def test_an_answer_with_tools_is_one_row_with_the_cost_of_all_its_requests(parts: Parts, claude: FakeClaude) -> None:
    claude.say(
        Reply(ToolUse("search_memory", {"query": "Hund"}), usage=COUNTED),
        Reply("Bruno.", usage=COUNTED | {"cache_read_input_tokens": 1_000}),
    )
    answer = ask(parts, "Wie heißt mein Hund?")
    # 2 × (1,000 × $2 + 100 × $10) and 1,000 × $0.10, per million
    row = {"model": "claude-sonnet-5-5", "input": 2_000, "output": 200, "cache_read": 1_000, "cost": Decimal("0.0061")}
    assert rows(parts.database) == [row]
    assert answer.usage == row | {"cache_write": 0, "cost": 0.0061}
    assert answer.tokens_used == 3_200


def test_the_price_of_another_server_is_not_known(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Reply("Hallo.", usage=COUNTED))
    answer = ask(parts, "Hallo, wie geht es dir?")
    assert [row["cost"] for row in rows(parts.database)] == [None]
    assert answer.usage is not None and answer.usage["cost"] is None


def test_an_answer_that_was_stopped_counts(parts: Parts, claude: FakeClaude) -> None:
    story, started, _ = held("Es war einmal eine sehr lange Geschichte.")
    claude.say(story)
    turn = start_turn(parts, user_id=parts.user_id, message="Erzähl mir etwas Langes")
    assert started.wait(60)
    wait_until(lambda: turn.snapshot()[0])
    turn.stop.set()
    answer = ended(parts, turn)
    assert answer.status == "interrupted"
    [row] = rows(parts.database)
    assert row["input"] > 0 and row["output"] > 0
    assert answer.usage is not None and answer.usage["input"] == row["input"]


def test_what_came_before_a_break_counts_and_so_does_the_retry(parts: Parts, claude: FakeClaude) -> None:
    claude.say(
        Reply(ToolUse("search_memory", {"query": "Hund"}), usage=COUNTED), Drop("Br"), Reply("Bruno.", usage=COUNTED)
    )
    broken = ask(parts, "Wie heißt mein Hund?")
    assert broken.status == "interrupted"
    [row] = rows(parts.database)
    assert row["input"] > 1_000
    ask_again(parts, broken.conversation_id)
    assert [row["input"] for row in rows(parts.database)][1:] == [1_000]


def test_an_answer_that_took_nothing_leaves_no_row(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jarvis_memory.claude.RETRY_WAITS", ())
    claude.say(overloaded())
    answer = ask(parts, "Wie heißt mein Hund?")
    assert (answer.status, answer.usage, rows(parts.database)) == ("failed", None, [])


def test_what_a_deleted_chat_took_stays(parts: Parts, claude: FakeClaude) -> None:
    answer = ask(parts, "Wie heißt mein Hund?")
    with parts.database.begin() as connection:
        delete_conversation(connection, user_id=parts.user_id, conversation_id=answer.conversation_id)
    assert len(rows(parts.database)) == 1


@pytest.mark.usefixtures("official")
def test_a_summary_counts_and_one_that_cannot_be_used_too(parts: Parts, claude: FakeClaude) -> None:
    parts.background.stop()
    conversation_id = said(parts.database, parts.user_id, (DOG, "Schön."))
    claude.say_to_summary(Reply("   ", usage=COUNTED), Reply("Titel: Hund\nZusammenfassung: Bruno.", usage=COUNTED))

    def summarise() -> bool:
        return update_conversation_summary(
            database=parts.database, claude=parts.claude, settings=parts.settings, conversation_id=conversation_id
        )

    with pytest.raises(JarvisError):
        summarise()
    assert summarise()
    row = {"model": "claude-haiku-5-5", "input": 1_000, "output": 100, "cache_read": 0, "cost": Decimal("0.00015")}
    assert rows(parts.database, "summary") == [row, row]


# --- which model answers ----------------------------------------------------------------------------------


def answered_by(parts: Parts, conversation_id: int | None, message: str, model: str | None = None) -> tuple[str, int]:
    """The model of the answer as it is kept in three places, and the conversation."""
    answer = ask(parts, message, conversation_id=conversation_id, model=model)
    with parts.database.begin() as connection:
        sent = load_sent(connection, user_id=parts.user_id, message_id=answer.id)
    assert sent is not None and answer.usage is not None
    [named] = {sent["model"], answer.usage["model"], rows(parts.database)[-1]["model"]}
    return named, answer.conversation_id


def test_the_chat_s_model_goes_before_the_person_s_and_that_before_the_environment_s(
    parts: Parts, claude: FakeClaude
) -> None:
    claude.models |= {"claude-opus-5-5", "claude-fable-5"}
    model, chat = answered_by(parts, None, "Was ist Wind?")
    assert model == "claude-sonnet-5-5"
    with parts.database.begin() as connection:
        save_choices(connection, user_id=parts.user_id, model="claude-opus-5-5")
    assert answered_by(parts, chat, "Und was ist Sturm?")[0] == "claude-opus-5-5"
    with parts.database.begin() as connection:
        update_conversation(connection, user_id=parts.user_id, conversation_id=chat, model="claude-fable-5")
    assert answered_by(parts, chat, "Und ein Orkan?")[0] == "claude-fable-5"
    assert claude.requests[-1]["model"] in ("claude-fable-5", "claude-haiku-5-5")


def test_a_new_chat_keeps_the_model_that_was_chosen_for_it(parts: Parts, claude: FakeClaude) -> None:
    claude.models.add("claude-opus-5-5")
    model, chat = answered_by(parts, None, "Was ist Wind?", model="claude-opus-5-5")
    assert model == "claude-opus-5-5"
    assert answered_by(parts, chat, "Und was ist Sturm?")[0] == "claude-opus-5-5"


# --- sums -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        (BERLIN, [date(2026, 11, 29), date(2026, 11, 30), date(2026, 11, 30)]),
        (ZoneInfo("UTC"), [date(2026, 11, 29), date(2026, 11, 29), date(2026, 11, 30)]),
    ],
)
def test_a_day_begins_at_the_person_s_midnight(
    database: Database, user_id: int, zone: ZoneInfo, days: list[date]
) -> None:
    moments = [
        datetime(2026, 11, 29, 22, 59, 59, tzinfo=UTC),
        datetime(2026, 11, 29, 23, 0, 0, tzinfo=UTC),
        datetime(2026, 11, 30, 22, 59, 59, tzinfo=UTC),
    ]
    used_at(database, user_id, *moments)
    found = {one.since: one.usage.input for one in by_day(database, user_id, zone)}
    assert found == {day: days.count(day) for day in days}


def test_a_day_with_a_change_of_the_clock_is_one_day(database: Database, user_id: int) -> None:
    # 25 October 2026 has 25 hours in Berlin.
    moments = [datetime(2026, 10, 24, 22, 0, tzinfo=UTC), datetime(2026, 10, 25, 22, 59, tzinfo=UTC)]
    used_at(database, user_id, *moments, datetime(2026, 10, 25, 23, 0, tzinfo=UTC))
    with database.begin() as connection:
        found = usage_by_day(connection, user_id=user_id, zone=BERLIN, today=date(2026, 10, 30))
    assert [(one.since.day, one.usage.input) for one in found] == [(25, 2), (26, 1)]


def test_days_and_months_before_those_shown_are_not_in_the_sums(database: Database, user_id: int) -> None:
    used_at(database, user_id, datetime(2026, 11, 1, 22, 59, tzinfo=UTC), datetime(2026, 11, 1, 23, 0, tzinfo=UTC))
    assert [one.since for one in by_day(database, user_id)] == [date(2026, 11, 2)]
    used_at(database, user_id, datetime(2025, 12, 31, 22, 59, tzinfo=UTC), datetime(2025, 12, 31, 23, 0, tzinfo=UTC))
    with database.begin() as connection:
        months = usage_by_month(connection, user_id=user_id, zone=BERLIN, today=TODAY)
    assert [(one.since, one.usage.input) for one in months] == [(date(2026, 1, 1), 1), (date(2026, 11, 1), 2)]


def test_models_and_purposes_are_summed_apart(database: Database, user_id: int) -> None:
    noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    used_at(database, user_id, noon, noon, output=2, cache_read=3, cache_write=4, cost=Decimal("0.25"))
    used_at(database, user_id, noon, model="qwen3")
    run(
        database,
        """INSERT INTO token_usage (user_id, purpose, model, input, output, cache_read, cache_write, created_at)
           VALUES (:user_id, 'summary', 'qwen3', 5, 0, 0, 0, :moment)""",
        user_id=user_id,
        moment=noon,
    )
    found = {(one.model, one.purpose): one.usage for one in by_day(database, user_id)}
    assert found == {
        ("claude-sonnet-5-5", "chat"): Usage(input=2, output=4, cache_read=6, cache_write=8, cost=Decimal("0.5")),
        ("qwen3", "chat"): Usage(input=1, cost=None),
        ("qwen3", "summary"): Usage(input=5, cost=None),
    }


def test_nobody_sees_what_another_person_used(database: Database, user_id: int) -> None:
    used_at(database, somebody_else(database), datetime(2026, 12, 1, 12, tzinfo=UTC))
    assert by_day(database, user_id) == []


def test_without_a_zone_the_machine_s_days_count(database: Database, user_id: int) -> None:
    used_at(database, user_id, datetime.combine(TODAY, datetime.min.time()).astimezone())
    with database.begin() as connection:
        [one] = usage_by_day(connection, user_id=user_id, zone=None, today=TODAY)
    assert one.since == TODAY


def test_twelve_months_go_over_the_turn_of_the_year() -> None:
    months = last_months(date(2026, 3, 31))
    assert (len(months), months[0], months[-1]) == (12, date(2025, 4, 1), date(2026, 3, 1))

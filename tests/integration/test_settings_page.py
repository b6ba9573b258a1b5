"""The Settings page and the picker with the real database, without a browser."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory import __version__
from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import get_conversation, update_conversation
from jarvis_memory.database import PROJECT_FOLDER, Database, _create_engine
from jarvis_memory.preferences import INSTRUCTIONS_CHARACTERS, load_choices, save_choices
from jarvis_memory.running_turns import TURNS
from jarvis_memory.ui import wiring
from jarvis_memory.ui.connections_view import SECTIONS
from jarvis_memory.ui.texts import Texts
from tests.fake_claude import FakeClaude, unknown_model, wrong_key
from tests.integration.chats import change_message, messages_of, run, said, somebody_else
from tests.integration.pages import CHAT, TEXTS, chat_page, click, drawn, texts_in
from tests.integration.turns import ask

NOWHERE = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"


def settings_page(view: str | None = None) -> AppTest:
    """The Settings page, drawn, with this view."""
    page = drawn(AppTest.from_file(str(CHAT), default_timeout=60).switch_page("pages/settings.py"))
    if view is not None:
        page.button_group(key="settings_view").set_value(view)
        page = drawn(page)
    return page


def choose(page: AppTest, key: str, value: str) -> AppTest:
    page.selectbox(key=key).set_value(value)
    return drawn(page)


def choices(parts: Parts) -> dict[str, Any]:
    with parts.database.begin() as connection:
        return load_choices(connection, user_id=parts.user_id)


# --- general ----------------------------------------------------------------------------------------------


def test_new_chats_can_begin_without_the_memory(pages: Parts) -> None:
    assert chat_page().toggle(key="new_memory").value is True
    page = settings_page()
    page.toggle(key="choice-memory").set_value(False)
    page = drawn(page)
    assert texts_in(page.toast) == [TEXTS("settings.saved")]
    assert choices(pages)["memory"] == "off"
    assert chat_page().toggle(key="new_memory").value is False
    page.toggle(key="choice-memory").set_value(True)
    drawn(page)
    assert chat_page().toggle(key="new_memory").value is True


def test_what_is_chosen_is_kept_confirmed_and_can_be_taken_back(pages: Parts) -> None:
    page = choose(settings_page(), "choice-time_zone", "Asia/Tokyo")
    assert texts_in(page.toast) == [TEXTS("settings.saved")]
    page = choose(page, "choice-model", "claude-sonnet-5-5")
    assert choices(pages) == {
        "language": None,
        "time_zone": "Asia/Tokyo",
        "model": "claude-sonnet-5-5",
        "memory": None,
        "instructions": "",
    }
    page = choose(page, "choice-time_zone", "")
    assert choices(pages)["time_zone"] is None
    assert not drawn(page).toast


def test_another_language_is_there_at_once(pages: Parts) -> None:
    page = choose(settings_page(), "choice-language", "en")
    english = Texts("en")
    assert page.selectbox(key="choice-language").label == english("settings.language")
    assert texts_in(page.toast) == [english("settings.saved")]
    assert choose(page, "choice-language", "").selectbox(key="choice-language").label == TEXTS("settings.language")


def test_a_choice_made_in_another_tab_is_shown(pages: Parts) -> None:
    page = settings_page()
    with pages.database.begin() as connection:
        save_choices(connection, user_id=pages.user_id, time_zone="Asia/Tokyo")
    page = drawn(page)
    assert page.selectbox(key="choice-time_zone").value == "Asia/Tokyo"
    assert choices(pages)["time_zone"] == "Asia/Tokyo"


def test_the_default_says_where_it_comes_from(build: Callable[..., Parts]) -> None:
    wiring.hand_in(build(jarvis_time_zone="Europe/Berlin", jarvis_model="claude-x"))
    page = settings_page()
    options = {name: page.selectbox(key=f"choice-{name}").options[0] for name in ("language", "time_zone", "model")}
    assert options == {
        "language": TEXTS("settings.default", value="Deutsch"),
        "time_zone": TEXTS("settings.default_environment", variable="JARVIS_TIME_ZONE", value="Europe/Berlin"),
        "model": TEXTS("settings.default_environment", variable="JARVIS_MODEL", value="claude-x"),
    }


def test_a_chosen_model_that_the_list_no_longer_has_is_still_shown(pages: Parts) -> None:
    with pages.database.begin() as connection:
        save_choices(connection, user_id=pages.user_id, model="claude-retired")
    box = settings_page().selectbox(key="choice-model")
    assert box.value == "claude-retired" and "claude-retired" in box.options


def test_own_instructions_are_saved_by_the_button(pages: Parts) -> None:
    page = settings_page()
    page.text_area(key="own-instructions").set_value("  Duze mich.  ")
    next(button for button in page.button if button.label == TEXTS("settings.save")).click()
    page = drawn(page)
    assert choices(pages)["instructions"] == "Duze mich."
    assert texts_in(page.toast) == [TEXTS("settings.saved")]


def test_instructions_that_are_too_long_are_refused_by_name_and_stay_in_the_field(pages: Parts) -> None:
    page = settings_page()
    page.text_area(key="own-instructions").set_value("x" * (INSTRUCTIONS_CHARACTERS + 1))
    next(button for button in page.button if button.label == TEXTS("settings.save")).click()
    page = drawn(page)
    details = {"field": TEXTS("settings.instructions"), "limit": INSTRUCTIONS_CHARACTERS}
    assert texts_in(page.error) == [TEXTS.error("PreferenceUnusable", details)]
    assert len(page.text_area(key="own-instructions").value) == INSTRUCTIONS_CHARACTERS + 1
    assert choices(pages)["instructions"] == ""


def test_without_a_database_there_is_one_sentence(pages: Parts) -> None:
    page = settings_page()
    wiring.hand_in(replace(pages, database=Database(_create_engine(NOWHERE))))
    page = choose(page, "choice-time_zone", "Asia/Tokyo")
    assert texts_in(page.error) == [TEXTS("error.DatabaseUnavailable")]


# --- usage ------------------------------------------------------------------------------------------------

USED = """INSERT INTO token_usage (user_id, purpose, model, input, output, cache_read, cache_write, cost, created_at)
          VALUES (:user_id, 'chat', :model, 1000, 200, 30, 4, :cost, now() - make_interval(days => :days))"""


def test_without_any_usage_there_is_a_hint(pages: Parts) -> None:
    run(pages.database, USED, user_id=somebody_else(pages.database), model="theirs", cost=1, days=0)
    page = settings_page("usage")
    assert texts_in(page.info) == [TEXTS("usage.empty")]
    assert not page.dataframe


def test_the_sums_of_this_month_the_chart_and_the_table_are_shown(pages: Parts) -> None:
    for model, cost in (("claude-sonnet-5-5", "1.5"), ("claude-sonnet-5-5", "0.25"), ("qwen3", None)):
        run(pages.database, USED, user_id=pages.user_id, model=model, cost=cost, days=0)
    page = settings_page("usage")
    assert [(one.label, one.value) for one in page.metric] == [
        (TEXTS("usage.month_cost"), "1,75\u00a0\\$"),
        (TEXTS("usage.month_count"), "3.702"),
    ]
    table = page.dataframe[0].value
    assert list(table[TEXTS("usage.column_model")]) == ["qwen3", "claude-sonnet-5-5"]
    assert list(table[TEXTS("usage.column_read")]) == [1034, 2068]
    assert list(table[TEXTS("usage.cost")])[1] == 1.75
    assert len(page.get("vega_lite_chart")) == 1
    assert any("qwen3" in text for text in texts_in(page.caption))


def test_months_show_what_was_before_the_last_30_days(pages: Parts) -> None:
    run(pages.database, USED, user_id=pages.user_id, model="claude-sonnet-5-5", cost=1, days=70)
    page = settings_page("usage")
    assert texts_in(page.info) == [TEXTS("usage.none_in_days")]
    page.button_group(key="usage_period").set_value("months")
    assert len(drawn(page).dataframe) == 1


def test_where_no_price_is_known_tokens_are_shown_alone(pages: Parts) -> None:
    run(pages.database, USED, user_id=pages.user_id, model="qwen3", cost=None, days=0)
    page = settings_page("usage")
    assert [one.label for one in page.metric] == [TEXTS("usage.month_count")]
    assert page.button_group(key="usage_measure").options == [TEXTS("usage.count")]


# --- system -----------------------------------------------------------------------------------------------


def test_the_system_view_tells_what_runs_and_keeps_the_secrets(build: Callable[..., Parts]) -> None:
    parts = build(
        anthropic_api_key="sk-hunter2",
        ollama_url="http://ada:hunter2@ollama.example:11434",
        database_url="postgresql://jarvis:hunter2@db.example/family",
        jarvis_model="claude-x",
    )
    wiring.hand_in(parts)
    page = settings_page("system")
    shown, sources = texts_in(page.text), texts_in(page.caption)
    assert "db.example/family" in shown
    assert "claude-x" in shown
    assert TEXTS("system.key_set") in shown
    assert any("JARVIS\\_MODEL" in source and "Umgebung" in source for source in sources)
    assert any("JARVIS\\_SUMMARY\\_MODEL" in source and "Standard" in source for source in sources)
    assert any(__version__.replace(".", "\\.") in text and "pgvector" in text for text in texts_in(page.markdown))
    assert "hunter2" not in str(page.main)


def test_a_password_in_the_address_of_a_server_is_not_shown(pages: Parts) -> None:
    settings = pages.settings.model_copy(update={"anthropic_base_url": "https://ada:hunter2@claude.example/api"})
    wiring.hand_in(replace(pages, settings=settings))
    page = settings_page("system")
    assert "https://claude.example/api" in texts_in(page.text)
    assert "hunter2" not in str(page.main)


# --- connections ------------------------------------------------------------------------------------------


def test_a_connection_that_works_says_so_and_one_that_does_not_says_why(pages: Parts, claude: FakeClaude) -> None:
    page = click(settings_page("connections"), "test-claude")
    [told] = texts_in(page.success)
    assert "claude\\-sonnet\\-5\\-5" in told and "claude\\-haiku\\-5\\-5" in told
    claude.say_to_summary(wrong_key())
    page = click(page, "test-claude")
    assert (texts_in(page.error), len(page.success)) == ([TEXTS("error.ClaudeKeyRejected")], 0)


def test_what_is_not_set_up_names_its_variables_and_cannot_be_tested(build: Callable[..., Parts]) -> None:
    wiring.hand_in(build(anthropic_api_key=None, anthropic_base_url="https://api.anthropic.com"))
    page = settings_page("connections")
    assert not [button for button in page.button if (button.key or "").startswith("test-")]
    hints = [text for text in texts_in(page.caption) if "README" in text]
    assert any("`ANTHROPIC_API_KEY`" in hint for hint in hints)
    readme = (PROJECT_FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"\n## {section}\n" in readme for section in SECTIONS.values())


def test_servers_that_are_not_there_are_told_and_no_password_is_shown(build: Callable[..., Parts]) -> None:
    mailbox = {"imap_host": "127.0.0.1", "imap_port": 1, "imap_username": "anna", "imap_password": "hunter2"}
    sending = {"smtp_host": "127.0.0.1", "smtp_port": 1, "smtp_username": "anna", "smtp_password": "hunter2"}
    calendar = {"caldav_url": "http://127.0.0.1:1/dav", "caldav_username": "anna", "caldav_password": "hunter2"}
    wiring.hand_in(build(**mailbox, **sending, **calendar, mail_from="anna@example.org"))
    page = settings_page("connections")
    assert {"anna · http://127.0.0.1:1/dav", "anna · 127.0.0.1:1 (tls)"} <= set(texts_in(page.text))
    for name in ("calendar", "mail", "sending"):
        page = click(page, f"test-{name}")
        assert texts_in(page.error) == [TEXTS("error.ServiceUnreachable")], name
        assert "hunter2" not in str(page.main)


# --- the model of a chat ----------------------------------------------------------------------------------


@pytest.fixture
def two_models(build: Callable[..., Parts], claude: FakeClaude) -> Parts:
    """Parts with a choice of models, in the hands of the pages."""
    claude.models.add("claude-opus-5-5")
    parts = build(jarvis_models="claude-opus-5-5")
    wiring.hand_in(parts)
    return parts


def model_of(parts: Parts, conversation_id: int) -> str | None:
    with parts.database.begin() as connection:
        return get_conversation(connection, user_id=parts.user_id, conversation_id=conversation_id).model


def test_the_picker_changes_the_model_of_a_chat_and_back_to_the_default(two_models: Parts) -> None:
    chat = said(two_models.database, two_models.user_id, ("Frage", "Antwort"))
    page = chat_page(chat)
    box = page.selectbox(key=f"model-{chat}")
    assert box.options == [TEXTS("model.default", model="claude-sonnet-5-5"), "claude-opus-5-5"]
    page = choose(page, f"model-{chat}", "claude-opus-5-5")
    assert model_of(two_models, chat) == "claude-opus-5-5"
    choose(page, f"model-{chat}", "claude-sonnet-5-5")
    # None, so that the chat follows the default when that changes.
    assert model_of(two_models, chat) is None


def test_a_model_of_a_chat_that_the_list_no_longer_has_is_shown(two_models: Parts) -> None:
    chat = said(two_models.database, two_models.user_id, ("Frage", "Antwort"))
    with two_models.database.begin() as connection:
        update_conversation(connection, user_id=two_models.user_id, conversation_id=chat, model="claude-retired")
    box = chat_page(chat).selectbox(key=f"model-{chat}")
    assert (box.value, box.options[-1]) == ("claude-retired", "claude-retired")


def test_the_model_chosen_for_a_new_chat_answers_in_it_and_in_no_other(two_models: Parts, claude: FakeClaude) -> None:
    page = choose(chat_page(), "model-new", "claude-opus-5-5")
    page.chat_input(key="message").set_value("Was ist Wind?")
    page = drawn(page)
    chat = int(page.query_params["c"][0])
    turn = TURNS.get(chat)
    assert turn is None or turn.done.wait(60)
    assert model_of(two_models, chat) == "claude-opus-5-5"
    assert claude.requests[0]["model"] == "claude-opus-5-5"
    assert "new_chat_model" not in page.session_state


def test_a_retired_model_tells_to_choose_another(two_models: Parts, claude: FakeClaude) -> None:
    claude.say(unknown_model("claude-sonnet-5-5"))
    answer = ask(two_models, "Was ist Wind?")
    page = chat_page(answer.conversation_id)
    assert any("Wähle im Chat ein anderes" in text for text in texts_in(page.warning))


# --- what stands under an answer --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (0.0042, " · ≈ 0,4 US-Cent"),
        (0.00004, " · unter 0,1 US-Cent"),
        (0.25, " · ≈ 25 US-Cent"),
        (1.234, " · ≈ 1,23\u00a0$"),
        (None, ""),
    ],
)
def test_under_an_answer_stand_its_model_its_tokens_and_its_cost(pages: Parts, cost: float | None, told: str) -> None:
    chat = said(pages.database, pages.user_id, ("Frage", "Antwort"))
    answer = messages_of(pages.database, pages.user_id, chat)[-1]
    usage = {"model": "claude-x", "input": 1000, "output": 56, "cache_read": 11000, "cache_write": 345, "cost": cost}
    memory = {"type": "memory", "fact_ids": [], "more_facts": 0, "conversations": []}
    change_message(pages.database, pages.user_id, answer.id, usage=usage, blocks=[memory])
    page = chat_page(chat)
    line = page.expander[0].caption[-1].value.replace("\\", "")
    assert line == "claude-x · " + TEXTS("usage.tokens", read="12.345", cached="11.000", written="56") + told

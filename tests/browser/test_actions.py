"""What a person does with messages and chats: answer again, edit, copy, look at what was, temporary, without memory."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from jarvis_memory.prompts import Language
from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import PHONE, Visitor, visiting
from tests.claude_replies import Text
from tests.demo_assistant import respond


@pytest.fixture(params=["desktop", "phone"])
def person(request: pytest.FixtureRequest, browser: Browser, app: AppProcess) -> Iterator[Visitor]:
    """Somebody at a desk, or with a phone."""
    options = PHONE if request.param == "phone" else {}
    with visiting(browser, app.address, **options) as visitor:
        yield visitor


def action(message: Locator, kind: str) -> Locator:
    buttons = message.locator(f"[class*='st-key-{kind}-'] button")
    # Streamlit draws a button with a tooltip twice, one of them out of sight.
    return buttons.filter(visible=True).first


def test_an_answer_is_given_again_and_the_former_one_can_be_looked_at(person: Visitor, app: AppProcess) -> None:
    app.claude.say("Die erste Antwort.", "Die zweite Antwort.")
    person.open_chat()
    answer = person.ask("Erzähl mir etwas")
    expect(answer).to_contain_text("Die erste Antwort.")
    action(answer, "regenerate").click()
    expect(answer).to_contain_text("Die zweite Antwort.")
    expect(person.answers).to_have_count(1)
    answer.get_by_role("button", name=person.texts.counted("actions.versions", 1)).click()
    expect(person.dialog.get_by_text("Die erste Antwort.")).to_be_visible()
    person.dialog.get_by_role("button", name="Close").click()
    person.page.reload()
    expect(person.complete_answer()).to_contain_text("Die zweite Antwort.")


def test_an_edited_message_goes_on_from_there(person: Visitor, app: AppProcess) -> None:
    app.claude.say("Katzen mögen Mäuse.", "Gern geschehen.", "Hunde mögen Käse.")
    person.open_chat()
    person.ask("Was mögen Katzen?")
    person.ask("Danke")
    action(person.questions.first, "edit").click()
    field = person.main.get_by_role("textbox", name=person.texts("actions.edit"))
    expect(field).to_have_value("Was mögen Katzen?")
    field.fill("Was mögen Hunde?")
    person.button("actions.send").click()
    expect(person.complete_answer()).to_contain_text("Hunde mögen Käse.")
    expect(person.questions).to_have_count(1)
    expect(person.questions).to_contain_text("Was mögen Hunde?")
    person.questions.get_by_role("button", name=person.texts.counted("actions.versions", 1)).click()
    for text in ("Was mögen Katzen?", "Katzen mögen Mäuse.", "Danke", "Gern geschehen."):
        expect(person.dialog.get_by_text(text, exact=True)).to_be_visible()


def test_editing_can_be_given_up_and_refused_text_stays_in_the_field(visitor: Visitor, app: AppProcess) -> None:
    visitor.open_chat()
    visitor.ask("Guten Tag")
    action(visitor.questions, "edit").click()
    field = visitor.main.get_by_role("textbox", name=visitor.texts("actions.edit"))
    field.fill("   ")
    visitor.button("actions.send").click()
    expect(visitor.main.get_by_text(visitor.texts.error("MessageUnusable", {"limit": 100000}))).to_be_visible()
    expect(field).to_have_value("   ")
    visitor.button("cancel").click()
    expect(field).to_have_count(0)
    expect(visitor.questions).to_contain_text("Guten Tag")


def test_an_answer_is_copied_as_it_was_written(browser: Browser, app: AppProcess) -> None:
    app.claude.say("Das ist **wichtig**:\n\n- eins\n- zwei")
    permissions = ["clipboard-read", "clipboard-write"]
    with visiting(browser, app.address, permissions=permissions) as visitor:
        visitor.open_chat()
        answer = visitor.ask("Erzähl")
        action(answer, "copy").click()
        expect(answer.get_by_role("button", name="Copied")).to_be_visible()
        copied = visitor.page.evaluate("navigator.clipboard.readText()")
    assert copied == "Das ist **wichtig**:\n\n- eins\n- zwei"


def test_nothing_can_be_changed_while_an_answer_is_running(visitor: Visitor, app: AppProcess) -> None:
    visitor.open_chat()
    visitor.ask("Guten Tag")
    release = threading.Event()
    app.claude.say(Text("Das dauert.", release=release))
    visitor.say("Erzähl mir etwas")
    expect(visitor.button("chat.stop")).to_be_visible()
    expect(visitor.main.locator("[class*='st-key-regenerate-'] button")).to_have_count(0)
    for number in range(2):
        expect(action(visitor.questions.nth(number), "edit")).to_be_disabled()
    release.set()
    visitor.complete_answer(1)
    expect(action(visitor.questions.first, "edit")).to_be_enabled()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_temporary_chat_is_marked_and_gone_when_it_is_left(
    browser: Browser, folder: Path, language: Language
) -> None:
    with (
        running_app(respond, folder, JARVIS_LANGUAGE=language) as app,
        visiting(browser, app.address, language=language, **PHONE) as visitor,
    ):
        texts = visitor.texts
        visitor.open_chat()
        visitor.main.get_by_text(texts("options.temporary"), exact=True).click()
        expect(visitor.main.get_by_text(texts("options.memory_read"), exact=True)).to_be_visible()
        visitor.ask(f"Ein Geheimnis in {language}")
        expect(visitor.main.get_by_text(texts("options.is_temporary"))).to_be_visible()
        address = f"/?c={visitor.conversation_id}"
        # A reload is no leaving.
        visitor.page.reload()
        expect(visitor.complete_answer()).to_be_visible()
        expect(visitor.listed(f"Ein Geheimnis in {language}")).to_have_count(0)
        visitor.page.get_by_test_id("stExpandSidebarButton").click()
        visitor.new_chat()
        visitor.open(address)
        expect(visitor.main.get_by_text(texts("chat.not_found"))).to_be_visible()


def test_a_chat_without_memory_knows_nothing_and_can_be_taken_into_it_later(visitor: Visitor, app: AppProcess) -> None:
    texts = visitor.texts
    visitor.open_memory()
    visitor.add_fact("Mein Esel heißt Grauchen.")
    visitor.open_chat()
    visitor.main.get_by_text(texts("options.memory"), exact=True).click()
    visitor.wait_until_drawn()
    app.claude.say(Text("Weiß ich nicht."))
    visitor.say("Wie heißt mein Esel?")
    expect(visitor.answers).to_contain_text("Weiß ich nicht.")
    expect(visitor.main.get_by_text(texts("options.is_without_memory"))).to_be_visible()
    assert "Grauchen" not in str(app.claude.requests[-1])
    visitor.main.get_by_test_id("stPopoverButton").filter(visible=True).click()
    visitor.page.get_by_test_id("stPopoverBody").get_by_text(texts("options.memory"), exact=True).click()
    expect(visitor.main.get_by_text(texts("options.is_without_memory"))).to_have_count(0)
    visitor.say("Wie heißt mein Esel?")
    expect(visitor.answers.nth(1)).to_contain_text("Grauchen")

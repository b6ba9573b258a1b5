"""Starts unlike the others: no key, a wrong setting, another language, another page first; and the headers."""

import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, expect

from app import CONTENT_SECURITY_POLICY
from jarvis_memory.ui.texts import Texts
from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.demo_assistant import respond


def test_without_a_key_there_is_a_set_up_card_and_the_memory_works(browser: Browser, folder: Path) -> None:
    with (
        running_app(respond, folder, ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="") as app,
        visiting(browser, app.address) as visitor,
    ):
        visitor.open()
        texts = visitor.texts
        expect(visitor.main.get_by_role("heading", name=texts("setup.heading"))).to_be_visible()
        expect(visitor.main.get_by_text("ANTHROPIC_API_KEY=sk-ant-…")).to_be_visible()
        expect(visitor.input).to_be_disabled()
        visitor.open_memory()
        visitor.add_fact("Ich wohne in Mainz.")


def test_a_wrong_setting_is_named_with_an_example_on_the_page_and_in_the_terminal(
    browser: Browser, folder: Path
) -> None:
    with (
        running_app(respond, folder, JARVIS_LANGUAGE="klingonisch", DATABASE_URL="mysql://geheim@db") as app,
        visiting(browser, app.address) as visitor,
    ):
        for path in ("/", "/memory"):
            visitor.open(path)
            for texts in (Texts("de"), Texts("en")):
                expect(visitor.main.get_by_text(texts("error.SettingsError"))).to_be_visible()
            expect(visitor.main.get_by_text("JARVIS_LANGUAGE=de")).to_be_visible()
            expect(visitor.main.get_by_text("DATABASE_URL=postgresql://")).to_be_visible()
            expect(visitor.main).not_to_contain_text("geheim")
        assert re.search(r"^JARVIS_LANGUAGE: .* Example: JARVIS_LANGUAGE=de$", app.log, re.MULTILINE)
        assert "geheim" not in app.log


def test_the_memory_page_can_be_the_first_one_after_a_start(browser: Browser, folder: Path) -> None:
    with running_app(respond, folder) as app, visiting(browser, app.address) as visitor:
        visitor.open("/memory")
        expect(visitor.main.get_by_text(visitor.texts("memory.no_facts"))).to_be_visible()
        visitor.sidebar.get_by_role("button", name=visitor.texts("nav.new_chat")).click()
        expect(visitor.main.get_by_text(visitor.texts("chat.empty_heading"))).to_be_visible()
        expect(visitor.page).to_have_url(visitor.address + "/")


# Words of the German texts that are no English ones, and long enough not to be found by chance.
GERMAN = re.compile(
    r"\b(?:Gedächtnis|Gespräch|Merken|Fakten|Vergessen|Löschen|Zusammenfassung|Rückgängig|Dezember|und|nicht|der|die|das)\b"
)


def test_the_english_interface_shows_no_german(browser: Browser, folder: Path) -> None:
    with (
        running_app(respond, folder, JARVIS_LANGUAGE="en") as app,
        visiting(browser, app.address, language="en", locale="en-GB") as visitor,
    ):
        visitor.open_chat()
        expect(visitor.page).to_have_title("Chat · JARVIS")
        expect_no_german(visitor)
        answer = visitor.ask("Remember that my dog is called Bruno")
        expect(visitor.cards("My dog is called Bruno")).to_contain_text("Remembered:")
        visitor.used(answer).locator("summary").click()
        expect_no_german(visitor)
        visitor.new_chat()
        expect(visitor.ask("What is my dog called?")).to_contain_text("Your dog is called Bruno.")
        visitor.ask("Forget that my dog is called Bruno")
        visitor.ask("Yes")
        expect(visitor.cards("My dog is called Bruno")).to_contain_text("No longer in the memory:")
        expect_no_german(visitor)
        visitor.wait_for_summaries()
        expect_no_german(visitor)
        visitor.choose_view("memory.summaries")
        expect(visitor.main).to_contain_text("No summaries yet.")
        expect_no_german(visitor)
        visitor.open_memory()
        expect(visitor.add_fact("I live in Vienna.")).to_contain_text("entered here on")
        expect_no_german(visitor)


def expect_no_german(visitor: Visitor) -> None:
    assert GERMAN.findall(visitor.page.locator("body").inner_text()) == []


@pytest.mark.parametrize("path", ["/", "/memory", "/_stcore/health", "/favicon.png"])
def test_every_answer_has_the_security_headers(app: AppProcess, path: str) -> None:
    with urlopen(app.address + path) as answer:
        headers = answer.headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_policy_keeps_the_page_from_asking_anybody_else(browser: Browser, app: AppProcess) -> None:
    with visiting(browser, app.address, peaceful=False) as visitor:
        visitor.open_chat()
        # As a flaw in the pages would do it. The browser says no, in its console.
        with visitor.page.expect_event("console", lambda message: "Content Security Policy" in message.text):
            visitor.page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://a.example/x.png'}))")


def test_the_app_listens_on_this_machine_only(app: AppProcess) -> None:
    assert "URL: http://127.0.0.1:" in app.log
    assert "Network URL" not in app.log and "External URL" not in app.log

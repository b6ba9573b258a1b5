"""The end of the app and its next start: quick, nothing lost, nothing left running."""

import signal
import threading
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.demo_assistant import respond
from tests.fake_claude import Text


def test_the_end_in_mid_answer_keeps_what_came_and_the_next_start_shows_it(browser: Browser, folder: Path) -> None:
    with running_app(respond, folder) as app:
        # The app goes away under the browser, which complains.
        with visiting(browser, app.address, peaceful=False) as visitor:
            visitor.open_chat()
            visitor.ask("Merk dir, dass mein Hund Bruno heißt")
            first = f"/?c={visitor.conversation_id}"
            visitor.new_chat()
            interrupted = interrupt(app, visitor, "Erzähl mir von der Elbe", by=signal.SIGTERM)
        app.start()
        with visiting(browser, app.address, peaceful=False) as visitor:
            visitor.open_chat(interrupted)
            expect(visitor.said).to_have_text(["Erzähl mir von der Elbe"])
            expect(visitor.answers).to_contain_text("Der Anfang.")
            expect(visitor.answers).to_contain_text(visitor.texts("chat.interrupted"))
            visitor.button("chat.retry").click()
            visitor.complete_answer()
            visitor.open_chat(first)
            expect(visitor.cards("Mein Hund heißt Bruno")).to_be_visible()
            visitor.new_chat()
            # Ctrl-C in the terminal ends it as well.
            interrupted = interrupt(app, visitor, "Erzähl mir von der Oder", by=signal.SIGINT)
        app.start()
        with visiting(browser, app.address) as visitor:
            visitor.open_chat(interrupted)
            expect(visitor.answers).to_contain_text("Der Anfang.")
            visitor.new_chat()
            expect(visitor.ask("Wie heißt mein Hund?")).to_contain_text("Dein Hund heißt Bruno.")


def interrupt(app: AppProcess, visitor: Visitor, message: str, *, by: signal.Signals) -> str:
    """End the app in the middle of the answer to this message. The address of the chat."""
    app.claude.say(Text("Der Anfang. Das Ende.", chunk_size=12, release=threading.Event()))
    visitor.say(message)
    expect(visitor.answers).to_contain_text("Der Anfang.")
    address = f"/?c={visitor.conversation_id}"
    # None would mean that it had to be killed.
    assert app.end(by) is not None
    assert not app.database_is_running
    assert "Traceback" not in app.log
    return address


def test_a_page_that_stayed_open_goes_on_after_a_restart(browser: Browser, folder: Path) -> None:
    with running_app(respond, folder) as app, visiting(browser, app.address, peaceful=False) as visitor:
        visitor.open_chat()
        visitor.ask("Merk dir, dass mein Hund Bruno heißt")
        app.end()
        app.start()
        expect(visitor.page.get_by_test_id("stApp")).to_have_attribute("data-test-connection-state", "CONNECTED")
        expect(visitor.ask("Wie heißt mein Hund?")).to_contain_text("Dein Hund heißt Bruno.")

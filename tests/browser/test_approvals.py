"""Cards that wait for a click: what would happen, Approve and Decline, after a reload and in two tabs."""

from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.browser.test_actions import PHONE
from tests.demo_assistant import respond
from tests.dovecot_server import Dovecot
from tests.fake_claude import ToolUse
from tests.smtp_server import USER, SmtpServer

LETTER = {"name": "brief.txt", "mimeType": "text/plain", "buffer": b"Merk dir die Nummer 4711"}
FACT = "Die Nummer der Praxis ist 4711"
MAIL = {"to": ["Bert <bert@example.org>"], "subject": "Treffen", "text": "Hallo Bert,\nbis morgen!"}


def ask_about_the_letter(visitor: Visitor, app: AppProcess) -> None:
    """A question with a file, whose answer wants to remember something."""
    app.claude.say(["Das steht darin.", ToolUse("remember_fact", {"fact": FACT})])
    visitor.open_chat()
    visitor.page.locator("[data-testid=stChatInput] input[type=file]").set_input_files([LETTER])
    expect(visitor.page.get_by_test_id("stChatInputSubmitButton")).to_be_enabled()
    visitor.say("Was steht darin?")
    expect(visitor.button("approval.approve")).to_be_visible()
    expect(visitor.main.get_by_text(visitor.texts("approval.waits"))).to_be_visible()


def test_a_card_waits_over_a_reload_and_what_one_tab_approves_the_other_cannot_decide_again(
    visitor: Visitor, app: AppProcess
) -> None:
    ask_about_the_letter(visitor, app)
    visitor.page.reload()
    card = visitor.cards(FACT)
    expect(card).to_contain_text(visitor.texts("approval.because_foreign"))
    other = visitor.another_tab(f"/?c={visitor.conversation_id}")
    expect(other.button("approval.decline")).to_be_visible()
    app.claude.say("Gemerkt.")
    visitor.button("approval.approve").click()
    expect(visitor.answers).to_contain_text("Gemerkt.")
    expect(card).to_contain_text(f"Gemerkt: {FACT}")
    expect(visitor.button("approval.approve")).to_have_count(0)
    expect(visitor.button("chat.retry")).to_have_count(0)
    # Instead of deciding once more it shows what was decided.
    other.button("approval.decline").click()
    expect(other.cards(FACT)).to_contain_text(f"Gemerkt: {FACT}")
    visitor.open_memory()
    expect(visitor.fact(FACT)).to_contain_text(visitor.texts("memory.origin_document", date="")[:12])


def test_what_is_declined_does_not_happen_and_claude_hears_why(visitor: Visitor, app: AppProcess) -> None:
    ask_about_the_letter(visitor, app)
    note = visitor.main.get_by_label(visitor.texts("approval.comment"), exact=True)
    note.fill("Die ist falsch")
    # Enter alone decides nothing.
    note.press("Enter")
    expect(visitor.button("approval.decline")).to_be_visible()
    app.claude.say("Dann lasse ich es.")
    visitor.button("approval.decline").click()
    expect(visitor.answers).to_contain_text("Dann lasse ich es.")
    expect(visitor.cards(FACT)).to_contain_text("Abgelehnt: Fakt merken")
    expect(visitor.cards(FACT)).to_contain_text("Die ist falsch")
    assert "Die ist falsch" in str(app.claude.requests)


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_a_mail_is_shown_changed_and_sent_by_a_click_on_a_phone_in_english(
    browser: Browser, folder: Path, dovecot: Dovecot, smtp_server: SmtpServer
) -> None:
    values = dovecot.settings("browser") | smtp_server.settings()
    environment = {name.upper(): str(value) for name, value in values.items()}
    with (
        running_app(
            respond,
            folder,
            JARVIS_LANGUAGE="en",
            MAIL_FROM=USER,
            SSL_CERT_FILE=str(dovecot.authority),
            **environment,
        ) as app,
        visiting(browser, app.address, language="en", **PHONE) as visitor,
    ):
        app.claude.say(["I am writing.", ToolUse("send_email", MAIL)])
        visitor.open_chat()
        visitor.say("Write to Bert")
        text = visitor.main.get_by_label(visitor.texts("mail.text"), exact=True)
        expect(text).to_have_value(MAIL["text"])
        expect(visitor.main.get_by_label(visitor.texts("mail.to"), exact=True)).to_have_value("Bert <bert@example.org>")
        recipient = visitor.main.get_by_label(visitor.texts("mail.to"), exact=True)
        recipient.fill("nobody")
        visitor.button("approval.approve").click()
        expect(visitor.page.get_by_test_id("stAlert").filter(has_text="nobody")).to_be_visible()
        assert smtp_server.mails == []
        recipient.fill("bert@example.org")
        text.fill("Hallo Bert,\nbis übermorgen!")
        app.claude.say("It is on its way.")
        visitor.button("approval.approve").dblclick()
        expect(visitor.answers).to_contain_text("It is on its way.")
        [mail] = smtp_server.mails
        assert isinstance(mail.content, bytes)
        body = message_from_bytes(mail.content, policy=default).get_content()
        assert body.split() == ["Hallo", "Bert,", "bis", "übermorgen!"]
        assert mail.rcpt_tos == ["bert@example.org"]
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390

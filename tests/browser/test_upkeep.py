"""The upkeep of the memory: what failed and why, the retry, and deleting all of it after typing a word."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.demo_assistant import respond
from tests.demo_phrases import PHRASES
from tests.fake_claude import wrong_key


@pytest.fixture
def own_app(browser: Browser, folder: Path) -> Iterator[AppProcess]:
    """An app whose whole content this test knows."""
    with running_app(respond, folder) as app:
        yield app


@pytest.fixture
def owner(browser: Browser, own_app: AppProcess) -> Iterator[Visitor]:
    """A person with a chat, a fact and a summary, who looks at the upkeep."""
    with visiting(browser, own_app.address) as owner:
        owner.open_chat()
        owner.ask("Merk dir, dass mein Hund Bruno heißt")
        owner.wait_for_summaries()
        yield owner


def confirmed_with(owner: Visitor, word: str, *, what: str) -> None:
    """Open the dialog of this deletion, type the word and press the button."""
    if owner.dialog.count() == 0:
        box = owner.page.locator(f".st-key-box-{what}")
        box.get_by_role("button", name=owner.texts("memory.open_dialog")).click()
    field = owner.dialog.get_by_label(owner.texts("memory.type_word", word=owner.texts("memory.word")))
    field.fill(word)
    owner.dialog.get_by_role("button", name=owner.texts("memory.really")).click()


def receipt(owner: Visitor, *, chats: str, messages: str) -> Locator:
    text = owner.texts(
        "memory.receipt",
        facts="1 Fakt",
        summaries="1 Zusammenfassung",
        conversations=chats,
        messages=messages,
        documents="keine Dokumente",
    )
    return owner.main.get_by_text(text)


def test_deleting_the_memory_takes_the_right_word_and_leaves_the_chats_readable(owner: Visitor) -> None:
    wrong = owner.texts("memory.wrong_word", word=owner.texts("memory.word"))
    confirmed_with(owner, "ja", what="delete_all")
    expect(owner.dialog.get_by_text(wrong)).to_be_visible()
    confirmed_with(owner, owner.texts("memory.word"), what="delete_all")
    expect(receipt(owner, chats="keine Chats", messages="keine Nachrichten")).to_be_visible()
    expect(owner.dialog).to_have_count(0)

    owner.choose_view("memory.facts")
    expect(owner.main.get_by_text(owner.texts("memory.no_facts"))).to_be_visible()
    owner.choose_view("memory.summaries")
    expect(owner.main.get_by_text(owner.texts("memory.no_summaries"))).to_be_visible()
    owner.open_from_sidebar("Merk dir, dass mein Hund Bruno heißt")
    expect(owner.said).to_have_text(["Merk dir, dass mein Hund Bruno heißt"])
    owner.new_chat()
    expect(owner.ask("Wie heißt mein Hund?")).to_contain_text(PHRASES["de"]["unknown"])


def test_deleting_everything_takes_the_right_word_and_leaves_nothing(owner: Visitor) -> None:
    confirmed_with(owner, "", what="delete_everything")
    wrong = owner.texts("memory.wrong_word", word=owner.texts("memory.word"))
    expect(owner.dialog.get_by_text(wrong)).to_be_visible()
    confirmed_with(owner, owner.texts("memory.word"), what="delete_everything")
    expect(receipt(owner, chats="1 Chat", messages="2 Nachrichten")).to_be_visible()
    expect(owner.sidebar.get_by_text(owner.texts("nav.no_conversations"))).to_be_visible()

    owner.choose_view("memory.facts")
    expect(owner.main.get_by_text(owner.texts("memory.no_facts"))).to_be_visible()
    owner.open("/?c=1")
    expect(owner.main.get_by_text(owner.texts("chat.empty_heading"))).to_be_visible()
    expect(owner.ask("Wie heißt mein Hund?")).to_contain_text(PHRASES["de"]["unknown"])


def test_a_summary_that_failed_is_named_with_its_reason_until_the_retry_works(
    visitor: Visitor, app: AppProcess
) -> None:
    app.claude.say_to_summary(wrong_key())
    visitor.open_chat()
    visitor.ask("Merk dir, dass ich am Montag schwimme")
    reason = visitor.texts.error("ClaudeKeyRejected")
    visitor.open_memory("memory.upkeep")
    failed = visitor.page.locator("[class*='st-key-pending-']").filter(has_text="Montag")
    expect(failed).to_contain_text(f"Fehlgeschlagen: {reason}")
    visitor.page.reload()
    stuck = visitor.texts.counted("health.failed", 1, reason=reason)
    expect(visitor.main.get_by_text(stuck)).to_be_visible()
    expect(visitor.sidebar.get_by_text(stuck)).to_be_visible()

    visitor.choose_view("memory.upkeep")
    failed.get_by_role("button", name=visitor.texts("memory.retry")).click()
    expect(visitor.main.get_by_text(visitor.texts("memory.nothing_pending"))).to_be_visible()
    visitor.page.reload()
    expect(visitor.main.get_by_role("radio", name=visitor.texts("memory.facts"))).to_be_checked()
    expect(visitor.page.get_by_text(stuck)).to_have_count(0)

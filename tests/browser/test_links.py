"""Addresses and conversations: links that lead nowhere, and a chat that is deleted."""

from playwright.sync_api import expect

from tests.browser.driver import Visitor
from tests.demo_phrases import PHRASES


def test_a_link_that_is_no_number_of_a_chat_gives_a_new_chat(visitor: Visitor) -> None:
    for wanted in ("abc", "²", "99999999999999999999"):
        visitor.open_chat(f"/?c={wanted}")
        expect(visitor.main.get_by_text(visitor.texts("chat.empty_heading"))).to_be_visible()
        expect(visitor.page.get_by_test_id("stException")).to_have_count(0)


def test_a_link_to_a_chat_that_is_gone_gives_a_new_chat_and_says_so(visitor: Visitor) -> None:
    visitor.open_chat("/?c=999999")
    expect(visitor.main.get_by_text(visitor.texts("chat.not_found"))).to_be_visible()
    expect(visitor.main.get_by_text(visitor.texts("chat.empty_heading"))).to_be_visible()
    expect(visitor.page).to_have_url(visitor.address + "/")
    visitor.ask("Hallo")
    expect(visitor.questions).to_have_text(["Hallo"])


def test_the_browsers_back_button_returns_to_the_former_chat(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie geht es dem Kanarienvogel?")
    first = visitor.page.url
    visitor.new_chat()
    visitor.ask("Und dem Wellensittich?")
    visitor.page.go_back()
    expect(visitor.questions).not_to_have_text(["Und dem Wellensittich?"])
    visitor.page.goto(first)
    expect(visitor.questions).to_have_text(["Wie geht es dem Kanarienvogel?"])


def test_a_chat_is_deleted_with_its_facts_when_one_says_so(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Merk dir, dass meine Schildkröte Lotte heißt")
    visitor.wait_for_summaries()
    visitor.open_from_sidebar("Meine Schildkröte heißt Lotte")
    link = f"/?c={visitor.conversation_id}"
    delete_chat(visitor, with_facts=True)
    gone = visitor.texts("chat.deleted", messages="2 Nachrichten", summaries="1 Zusammenfassung", facts="1 Fakt")
    expect(visitor.toasts).to_contain_text(gone)
    expect(visitor.main.get_by_text(visitor.texts("chat.empty_heading"))).to_be_visible()
    expect(visitor.listed("Meine Schildkröte heißt Lotte")).to_have_count(0)
    expect(visitor.ask("Wie heißt meine Schildkröte?")).to_contain_text(PHRASES["de"]["unknown"])
    visitor.open_chat(link)
    expect(visitor.main.get_by_text(visitor.texts("chat.not_found"))).to_be_visible()


def test_the_facts_of_a_deleted_chat_stay_when_one_does_not_say_so(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Merk dir, dass meine Ziege Frieda heißt")
    delete_chat(visitor, with_facts=False)
    expect(visitor.toasts).to_contain_text("keine Fakten")
    expect(visitor.ask("Wie heißt meine Ziege?")).to_contain_text("Deine Ziege heißt Frieda.")


def test_a_deletion_can_be_given_up(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie alt werden Störche?")
    visitor.page.locator(".st-key-heading").get_by_role("button").click()
    expect(visitor.dialog).to_contain_text("„Wie alt werden Störche“")
    visitor.dialog.get_by_role("button", name=visitor.texts("cancel")).click()
    expect(visitor.dialog).to_have_count(0)
    expect(visitor.questions).to_have_text(["Wie alt werden Störche?"])


def delete_chat(visitor: Visitor, *, with_facts: bool) -> None:
    visitor.page.locator(".st-key-heading").get_by_role("button").click()
    if with_facts:
        visitor.dialog.get_by_text(visitor.texts("chat.delete_facts", count=1)).click()
        expect(visitor.dialog.get_by_role("checkbox")).to_be_checked()
    visitor.dialog.get_by_role("button", name=visitor.texts("chat.delete"), exact=True).click()

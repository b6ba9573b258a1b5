"""Addresses of conversations: links that lead nowhere, and the browser's way back."""

from playwright.sync_api import expect

from tests.browser.driver import Visitor


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
    expect(visitor.said).to_have_text(["Hallo"])


def test_the_browsers_back_button_returns_to_the_former_chat(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie geht es dem Kanarienvogel?")
    first = visitor.page.url
    visitor.new_chat()
    visitor.ask("Und dem Wellensittich?")
    visitor.page.go_back()
    expect(visitor.said).not_to_have_text(["Und dem Wellensittich?"])
    visitor.page.goto(first)
    expect(visitor.said).to_have_text(["Wie geht es dem Kanarienvogel?"])

"""A window as small as a phone's: everything can be reached, nothing is cut off."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import PHONE, Visitor, visiting

WIDE = (
    "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 2
    + "\n\n| a | b | c | d |\n|---|---|---|---|\n|"
    + " lange Zelle mit Text |" * 4
    + "\n\n```\n"
    + "x" * 200
    + "\n```\n\n$$\n"
    + "a + " * 40
    + "b\n$$\n\nhttps://a.example/"
    + "y" * 200
)


@pytest.fixture
def phone(browser: Browser, app: AppProcess) -> Iterator[Visitor]:
    """A person with a phone."""
    with visiting(browser, app.address, **PHONE) as phone:
        yield phone


def open_sidebar(phone: Visitor) -> None:
    phone.page.get_by_test_id("stExpandSidebarButton").click()
    expect(phone.sidebar.get_by_role("button", name=phone.texts("nav.new_chat"))).to_be_in_viewport(ratio=1)


def in_reach(phone: Visitor, what: Locator) -> None:
    what.scroll_into_view_if_needed()
    expect(what).to_be_in_viewport(ratio=1)


def test_one_can_write_and_read(phone: Visitor, app: AppProcess) -> None:
    phone.open_chat()
    expect(phone.input).to_be_in_viewport(ratio=1)
    for number in (1, 2, 3):
        in_reach(phone, phone.button(f"chat.example_{number}"))
    app.claude.say(WIDE)
    phone.ask("Zeig mir etwas Breites " + "ohneleerzeichen" * 10)
    expect(phone.input).to_be_in_viewport(ratio=1)
    phone.expect_nothing_beside_the_screen()
    phone.ask("Merk dir, dass meine Katze Minka heißt")
    expect(phone.input).to_be_in_viewport(ratio=1)
    phone.expect_nothing_beside_the_screen()
    in_reach(phone, phone.menu)


def test_the_sidebar_opens_and_closes(phone: Visitor) -> None:
    phone.open_chat()
    expect(phone.sidebar.get_by_role("button", name=phone.texts("nav.new_chat"))).not_to_be_in_viewport()
    open_sidebar(phone)
    phone.page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    expect(phone.sidebar.get_by_role("button", name=phone.texts("nav.new_chat"))).not_to_be_in_viewport()
    expect(phone.input).to_be_in_viewport(ratio=1)


def test_a_chat_and_the_memory_are_reached_through_the_sidebar(phone: Visitor) -> None:
    phone.open_chat()
    phone.ask("Wie lang ist die Donau?")
    phone.open_chat()
    open_sidebar(phone)
    phone.listed("Wie lang ist die Donau").or_(phone.listed("Wie lang ist die Donau?")).click()
    expect(phone.said).to_have_text(["Wie lang ist die Donau?"])
    expect(phone.sidebar).not_to_be_in_viewport()
    open_sidebar(phone)
    phone.sidebar.get_by_role("button", name=phone.texts("nav.new_chat")).click()
    expect(phone.main.get_by_text(phone.texts("chat.empty_heading"))).to_be_in_viewport()
    expect(phone.sidebar).not_to_be_in_viewport()
    open_sidebar(phone)
    phone.sidebar.get_by_role("link", name=phone.texts("nav.memory")).click()
    expect(phone.main.get_by_text(phone.texts("memory.intro"))).to_be_in_viewport()
    expect(phone.sidebar).not_to_be_in_viewport()


def test_the_sidebar_stays_open_while_one_searches_and_closes_over_what_was_found(phone: Visitor) -> None:
    phone.open_chat()
    phone.ask("Wie tief ist der Bodensee?")
    for number in range(4):
        phone.ask(f"Nenne mir einen Fisch, den {number}.")
    phone.open_chat()
    open_sidebar(phone)
    phone.search("tief bodensee")
    expect(phone.found).to_have_count(1)
    expect(phone.found).to_be_in_viewport(ratio=1)
    phone.search("gibtesnicht")
    expect(phone.sidebar.get_by_text(phone.texts("list.nothing_found"))).to_be_in_viewport(ratio=1)
    phone.search("tief bodensee")
    phone.found.click()
    expect(phone.sidebar).not_to_be_in_viewport()
    expect(phone.questions.first).to_be_in_viewport()
    phone.expect_nothing_beside_the_screen()
    phone.wait_until_it_rests(phone.questions.first)
    expect(phone.questions.first).to_be_in_viewport()
    phone.choose("conversation.archive")
    expect(phone.button("conversation.unarchive")).to_be_in_viewport(ratio=1)
    phone.expect_nothing_beside_the_screen()


def test_the_memory_page_fits(phone: Visitor) -> None:
    phone.open_memory()
    in_reach(phone, phone.button("memory.add"))
    row = phone.add_fact("Mein Wort ist " + "Kuckuck" * 30, known_by="Kuckuck")
    for icon in ("edit icon", "delete icon"):
        in_reach(phone, row.get_by_role("button", name=icon))
    phone.expect_nothing_beside_the_screen()
    for view in ("memory.summaries", "memory.upkeep"):
        phone.choose_view(view)
        phone.expect_nothing_beside_the_screen()
    in_reach(phone, phone.page.locator(".st-key-delete_everything").get_by_role("button"))

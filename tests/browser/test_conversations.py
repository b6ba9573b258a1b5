"""The conversations in the sidebar: grouped, renamed, pinned, archived, deleted and brought back, found."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.driver import Visitor
from tests.demo_phrases import PHRASES


def background(what: Locator) -> str:
    color: str = what.evaluate("element => getComputedStyle(element).backgroundColor")
    return color


def test_a_chat_is_renamed_pinned_and_archived_by_its_menu(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie alt werden Störche?")
    visitor.wait_for_summaries()
    visitor.open_chat()
    visitor.open_from_sidebar("Wie alt werden Störche")
    visitor.choose("conversation.rename")
    title = visitor.dialog.get_by_label(visitor.texts("conversation.title"), exact=True)
    expect(title).to_have_value("Wie alt werden Störche")
    title.fill(" ")
    title.press("Enter")
    expect(visitor.dialog).to_contain_text(visitor.texts.error("TitleUnusable", {"limit": 80, "length": 0}))
    title.fill("Vögel & <Störche>")
    title.press("Enter")
    expect(visitor.dialog).to_have_count(0)
    expect(visitor.heading).to_have_text("Vögel & <Störche>")
    expect(visitor.listed("Vögel & <Störche>")).to_be_visible()
    expect(visitor.groups).to_have_text([visitor.texts("list.today")])

    visitor.choose("conversation.pin")
    expect(visitor.groups.first).to_have_text(visitor.texts("list.pinned"))
    visitor.choose("conversation.unpin")
    expect(visitor.groups.first).to_have_text(visitor.texts("list.today"))

    visitor.choose("conversation.archive")
    expect(visitor.main.get_by_text(visitor.texts("conversation.archived"))).to_be_visible()
    expect(visitor.listed("Vögel & <Störche>")).to_have_count(0)
    visitor.new_chat()
    archive = visitor.sidebar.get_by_role("button", name=f"{visitor.texts('list.archive')} (1)")
    archive.click()
    visitor.open_from_sidebar("Vögel & <Störche>")
    visitor.ask("Und wie alt werden Raben?")
    expect(visitor.main.get_by_text(visitor.texts("conversation.archived"))).to_have_count(0)
    expect(visitor.listed("Vögel & <Störche>")).to_be_visible()
    expect(archive).to_have_count(0)


def test_a_chat_is_deleted_with_its_facts_and_brought_back(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Merk dir, dass meine Schildkröte Lotte heißt")
    visitor.wait_for_summaries()
    visitor.open_from_sidebar("Meine Schildkröte heißt Lotte")
    link = f"/?c={visitor.conversation_id}"
    delete_chat(visitor, with_facts=True)
    gone = visitor.texts(
        "chat.deleted",
        title="Meine Schildkröte heißt Lotte",
        messages="2 Nachrichten",
        summaries="1 Zusammenfassung",
        facts="1 Fakt",
    )
    expect(visitor.main.get_by_text(gone)).to_be_visible()
    expect(visitor.main.get_by_text(visitor.texts("chat.empty_heading"))).to_be_visible()
    expect(visitor.listed("Meine Schildkröte heißt Lotte")).to_have_count(0)
    visitor.button("undo").click()
    expect(visitor.heading).to_have_text("Meine Schildkröte heißt Lotte")
    expect(visitor.said).to_have_text(["Merk dir, dass meine Schildkröte Lotte heißt"])
    expect(visitor.button("undo")).to_have_count(0)
    visitor.new_chat()
    expect(visitor.ask("Wie heißt meine Schildkröte?")).to_contain_text("Lotte")

    visitor.open_chat(link)
    delete_chat(visitor, with_facts=True)
    expect(visitor.button("undo")).to_be_visible()
    expect(visitor.ask("Wie heißt meine Schildkröte?")).to_contain_text(PHRASES["de"]["unknown"])
    visitor.new_chat()
    expect(visitor.button("undo")).to_have_count(0)
    visitor.open_chat(link)
    expect(visitor.main.get_by_text(visitor.texts("chat.not_found"))).to_be_visible()


def test_the_facts_of_a_deleted_chat_stay_when_one_does_not_say_so(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Merk dir, dass meine Ziege Frieda heißt")
    delete_chat(visitor, with_facts=False)
    expect(visitor.page.locator(".st-key-deleted")).to_contain_text("keine Fakten")
    expect(visitor.ask("Wie heißt meine Ziege?")).to_contain_text("Deine Ziege heißt Frieda.")


def test_a_deletion_can_be_given_up(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie hoch fliegen Gänse?")
    visitor.choose("chat.delete")
    expect(visitor.dialog).to_contain_text("„Wie hoch fliegen Gänse")
    visitor.dialog.get_by_role("button", name=visitor.texts("cancel")).click()
    expect(visitor.dialog).to_have_count(0)
    visitor.choose("chat.delete")
    expect(visitor.dialog.get_by_role("button", name=visitor.texts("cancel"))).to_be_visible()
    visitor.dialog.press("Escape")
    expect(visitor.dialog).to_have_count(0)
    expect(visitor.said).to_have_text(["Wie hoch fliegen Gänse?"])


def test_a_search_opens_the_chat_at_the_message_by_keyboard_alone(visitor: Visitor) -> None:
    visitor.open_chat()
    visitor.ask("Wie schreibt man Straußenfeder?")
    for number in range(5):
        visitor.ask(f"Erzähl mir noch etwas, zum {number}. Mal.")
    visitor.new_chat()
    searched = visitor.sidebar.get_by_role("searchbox", name=visitor.texts("list.search"))
    searched.press_sequentially("STRAUßENFEDER schreibt")
    expect(visitor.found).to_have_count(1)
    marked = visitor.found.locator(".stMarkdownColoredBackground")
    expect(marked.first).to_have_text(re.compile("schreibt|Straußenfeder"))
    expect(visitor.groups).to_have_count(0)
    searched.focus()
    for _ in range(4):
        visitor.page.keyboard.press("Tab")
        if visitor.found.evaluate("element => element === document.activeElement"):
            break
    visitor.page.keyboard.press("Enter")
    expect(visitor.questions).to_have_count(6)
    expect(visitor.questions.first).to_be_in_viewport()
    assert "&m=" in visitor.page.url
    expect(visitor.found).to_have_count(1)
    messages = visitor.page.get_by_test_id("stChatMessage")
    assert background(messages.nth(0)) != background(messages.nth(2)), "the message that was found is marked"
    visitor.ask("Danke, das genügt.")
    assert "&m=" not in visitor.page.url
    expect(visitor.questions.last).to_be_in_viewport()
    searched.fill("")
    expect(visitor.groups.first).to_be_visible()


def delete_chat(visitor: Visitor, *, with_facts: bool) -> None:
    visitor.choose("chat.delete")
    if with_facts:
        visitor.dialog.get_by_text(visitor.texts("chat.delete_facts", count=1)).click()
        expect(visitor.dialog.get_by_role("checkbox")).to_be_checked()
    visitor.dialog.get_by_role("button", name=visitor.texts("chat.delete"), exact=True).click()
    # Its messages are on the page until the new, empty chat is drawn.
    expect(visitor.questions).to_have_count(0)

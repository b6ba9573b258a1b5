"""The summaries on the Memory page: read, search, open the chat, write anew, delete."""

from playwright.sync_api import expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import Visitor


def talk(visitor: Visitor, *said: str) -> int:
    """A chat for each of these messages, summarised, and the list of summaries. The id of the last chat."""
    visitor.open_chat()
    for place, message in enumerate(said):
        if place:
            visitor.new_chat()
        visitor.ask(message)
    last_chat = visitor.conversation_id
    see_summaries(visitor)
    return last_chat


def see_summaries(visitor: Visitor) -> None:
    visitor.wait_for_summaries()
    visitor.choose_view("memory.summaries")


def test_a_summary_tells_what_was_said_and_leads_to_its_chat(visitor: Visitor) -> None:
    chat = talk(visitor, "Merk dir, dass ich Geige übe")
    row = visitor.summary("Geige")
    expect(row).to_contain_text("sprach der Nutzer über: Ich übe Geige.")
    row.get_by_role("link", name=visitor.texts("memory.to_chat")).click()
    expect(visitor.page).to_have_url(f"{visitor.address}/?c={chat}")
    expect(visitor.said).to_have_text(["Merk dir, dass ich Geige übe"])


def test_the_search_shows_the_summaries_with_these_words(visitor: Visitor) -> None:
    talk(visitor, "Merk dir, dass ich Dame spiele", "Merk dir, dass Erwin in Rom lebt")
    expect(visitor.summary("Dame")).to_be_visible()
    field = visitor.main.get_by_label(visitor.texts("memory.search_summaries"), exact=True)
    field.fill("ERWIN lebt")
    field.press("Enter")
    expect(visitor.summary("Dame")).to_have_count(0)
    expect(visitor.summary("Erwin")).to_be_visible()
    field.fill("Trompete")
    field.press("Enter")
    expect(visitor.main.get_by_text(visitor.texts("memory.nothing_found"))).to_be_visible()


def test_a_summary_is_written_anew_on_request(visitor: Visitor, app: AppProcess) -> None:
    talk(visitor, "Merk dir, dass Paula nach Bari zieht")
    app.claude.say_to_summary("Titel: Paulas Umzug\nZusammenfassung: Paula zieht von Rom nach Bari.")
    visitor.summary("Paula").get_by_role("button", name="refresh icon").click()
    expect(visitor.toasts).to_contain_text(visitor.texts("memory.regenerating"))
    see_summaries(visitor)
    expect(visitor.summary("Paula zieht von Rom nach Bari.")).to_contain_text("Paulas Umzug")


def test_a_deleted_summary_is_gone_and_stays_so_until_the_chat_goes_on(visitor: Visitor) -> None:
    chat = talk(visitor, "Merk dir, dass Hugo kocht", "Merk dir, dass Olga angelt")
    visitor.summary("Olga").get_by_role("button", name="delete icon").click()
    expect(visitor.toasts).to_contain_text(visitor.texts("memory.summary_deleted"))
    expect(visitor.summary("Olga")).to_have_count(0)
    see_summaries(visitor)
    expect(visitor.summary("Hugo")).to_be_visible()
    expect(visitor.summary("Olga")).to_have_count(0)

    visitor.open_chat(f"/?c={chat}")
    visitor.ask("Merk dir, dass Olga segelt")
    see_summaries(visitor)
    expect(visitor.summary("Olga segelt")).to_be_visible()

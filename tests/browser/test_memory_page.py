"""The facts on the Memory page: add, find, correct, delete, take back."""

import pytest
from playwright.sync_api import Locator, expect

from jarvis_memory.facts import FACT_CHARACTERS
from tests.browser.driver import Visitor


@pytest.fixture
def memory(visitor: Visitor) -> Visitor:
    """A person who looks at the facts."""
    visitor.open_memory()
    return visitor


def new_fact(memory: Visitor) -> Locator:
    return memory.main.get_by_label(memory.texts("memory.new_fact"), exact=True)


def search(memory: Visitor, query: str) -> None:
    field = memory.main.get_by_label(memory.texts("memory.search_facts"), exact=True)
    field.fill(query)
    field.press("Enter")


def test_a_fact_entered_here_is_listed_with_its_origin_and_leaves_the_input(memory: Visitor) -> None:
    row = memory.add_fact("Ich sammle Briefmarken aus Peru.")
    expect(row).to_contain_text(memory.texts("memory.origin_page").partition("{")[0])
    expect(memory.toasts).to_contain_text(memory.texts("memory.added", fact="Ich sammle Briefmarken aus Peru."))
    expect(new_fact(memory)).to_have_value("")


def test_a_known_fact_is_not_listed_twice(memory: Visitor) -> None:
    memory.add_fact("Ich spiele Oboe.")
    new_fact(memory).fill("ich spiele  oboe")
    memory.button("memory.add").click()
    expect(memory.toasts.filter(has_text=memory.texts("memory.known", fact="Ich spiele Oboe."))).to_be_visible()
    expect(memory.fact("Oboe")).to_have_count(1)


def test_what_is_no_fact_is_refused_and_stays_in_the_input(memory: Visitor) -> None:
    too_long = "Langer Satz. " * 100
    new_fact(memory).fill(too_long)
    memory.button("memory.add").click()
    refused = memory.texts.error("FactUnusable", {"limit": FACT_CHARACTERS, "length": len(too_long.strip())})
    expect(memory.main.get_by_text(refused)).to_be_visible()
    expect(new_fact(memory)).to_have_value(too_long)


def test_the_search_finds_what_contains_the_words_literally(memory: Visitor) -> None:
    memory.add_fact("Mein Rabatt beim Bäcker ist 10 %.")
    memory.add_fact("Mein Bus ist die Linie 107.")
    search(memory, "BÄCKER")
    expect(memory.fact("Linie 107")).to_have_count(0)
    expect(memory.fact("Rabatt")).to_be_visible()
    search(memory, "10 %")
    expect(memory.fact("Rabatt")).to_be_visible()
    search(memory, "10%7")
    expect(memory.main.get_by_text(memory.texts("memory.nothing_found"))).to_be_visible()
    search(memory, "")
    expect(memory.fact("Linie 107")).to_be_visible()


def test_a_fact_is_edited_in_place(memory: Visitor) -> None:
    row = memory.add_fact("Meine Tante wohnt in Ulm.")
    row.get_by_role("button", name="edit icon").click()
    text = memory.main.get_by_label(memory.texts("memory.edit"), exact=True)
    expect(text).to_have_value("Meine Tante wohnt in Ulm.")
    text.fill("Meine Tante wohnt in Aalen.")
    memory.button("memory.save").click()
    expect(memory.fact("Meine Tante wohnt in Aalen.")).to_be_visible()
    expect(memory.fact("Ulm")).to_have_count(0)
    memory.page.reload()
    expect(memory.fact("Meine Tante wohnt in Aalen.")).to_be_visible()


def test_an_edit_can_be_given_up(memory: Visitor) -> None:
    row = memory.add_fact("Mein Rad ist blau.")
    row.get_by_role("button", name="edit icon").click()
    memory.main.get_by_label(memory.texts("memory.edit"), exact=True).fill("Mein Rad ist rot.")
    memory.button("cancel").click()
    expect(memory.fact("Mein Rad ist blau.")).to_be_visible()
    expect(memory.fact("Mein Rad ist rot.")).to_have_count(0)


def test_an_edit_that_repeats_another_fact_is_refused_with_the_reason(memory: Visitor) -> None:
    memory.add_fact("Mein Boot heißt Möwe.")
    row = memory.add_fact("Mein Schiff heißt Möwe.")
    row.get_by_role("button", name="edit icon").click()
    memory.main.get_by_label(memory.texts("memory.edit"), exact=True).fill("mein Boot heißt Möwe")
    memory.button("memory.save").click()
    expect(memory.main.get_by_text(memory.texts("error.FactAlreadyKnown"))).to_be_visible()
    memory.button("cancel").click()
    expect(memory.fact("Möwe")).to_have_count(2)


def test_a_deleted_fact_comes_back_with_undo(memory: Visitor) -> None:
    row = memory.add_fact("Mein Auto steht in Reihe 7.")
    row.get_by_role("button", name="delete icon").click()
    expect(memory.fact("Reihe 7")).to_have_count(0)
    forgotten = memory.page.locator(".st-key-forgotten")
    expect(forgotten).to_contain_text("Vergessen: Mein Auto steht in Reihe 7.")
    forgotten.get_by_role("button", name=memory.texts("undo")).click()
    expect(memory.fact("Mein Auto steht in Reihe 7.")).to_be_visible()
    expect(forgotten).to_have_count(0)


def test_a_deletion_names_the_chats_that_no_longer_tell_it(memory: Visitor) -> None:
    memory.open_chat()
    memory.ask("Merk dir, dass mein Kater Moritz heißt")
    chat = memory.conversation_id
    memory.wait_for_summaries()
    memory.open_memory()
    memory.fact("Moritz").get_by_role("button", name="delete icon").click()
    forgotten = memory.page.locator(".st-key-forgotten")
    expect(forgotten).to_contain_text("Nicht mehr im Gedächtnis: 1 Wortwechsel aus")
    forgotten.get_by_role("button", name="Mein Kater heißt Moritz").click()
    expect(memory.page).to_have_url(f"{memory.address}/?c={chat}")
    # The chat itself stays readable.
    expect(memory.said).to_have_text(["Merk dir, dass mein Kater Moritz heißt"])
    memory.open_memory("memory.summaries")
    expect(memory.main.get_by_role("radio", name=memory.texts("memory.summaries"))).to_be_checked()
    expect(memory.summary("Moritz")).to_have_count(0)


def test_a_fact_leads_to_the_chat_it_comes_from(memory: Visitor) -> None:
    memory.open_chat()
    memory.ask("Merk dir, dass ich in Freiburg wohne")
    chat = memory.conversation_id
    memory.open_memory()
    row = memory.fact("Ich wohne in Freiburg")
    expect(row).to_contain_text(memory.texts("memory.origin_said").partition("{")[0])
    row.get_by_role("link", name=memory.texts("memory.to_chat")).click()
    expect(memory.page).to_have_url(f"{memory.address}/?c={chat}")
    expect(memory.said).to_have_text(["Merk dir, dass ich in Freiburg wohne"])

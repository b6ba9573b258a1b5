"""The walk: said in one chat, known in the next, recalled, forgotten completely, and brought back."""

from playwright.sync_api import expect

from tests.browser.driver import Visitor
from tests.demo_phrases import PHRASES

SAID = "Merk dir, dass mein Hund Bruno heißt"
FACT = "Mein Hund heißt Bruno"
UNKNOWN = PHRASES["de"]["unknown"]


def test_what_is_said_in_one_chat_is_known_in_the_next_until_it_is_forgotten(visitor: Visitor) -> None:
    texts = visitor.texts
    visitor.open_chat()
    remembers(visitor)
    first_chat = visitor.conversation_id

    visitor.new_chat()
    answer = visitor.ask("Wie heißt mein Hund?")
    expect(answer).to_contain_text("Dein Hund heißt Bruno.")
    expect(visitor.used(answer)).to_contain_text(texts("used.label", what="1 Fakt"))

    recalls_the_first_chat(visitor, first_chat)
    forgets_after_asking(visitor)
    forgetting_chat = visitor.conversation_id

    visitor.new_chat()
    answer = visitor.ask("Wie heißt mein Hund?")
    expect(answer).to_contain_text(UNKNOWN)
    expect(answer).not_to_contain_text("Bruno")

    visitor.open_chat(f"/?c={forgetting_chat}")
    visitor.cards(FACT).get_by_role("button", name=texts("undo")).click()
    expect(visitor.cards(FACT)).to_contain_text(texts("undo.done", fact=FACT))
    expect(visitor.button("undo")).to_have_count(0)

    visitor.new_chat()
    expect(visitor.ask("Wie heißt mein Hund?")).to_contain_text("Dein Hund heißt Bruno.")


def remembers(visitor: Visitor) -> None:
    answer = visitor.ask(SAID)
    expect(visitor.cards(FACT)).to_contain_text("Gemerkt: " + FACT)
    expect(answer).to_contain_text(PHRASES["de"]["remembered"].format(fact="Dein Hund heißt Bruno."))


def recalls_the_first_chat(visitor: Visitor, first_chat: int) -> None:
    visitor.wait_for_summaries()
    visitor.open_chat()
    answer = visitor.ask("Worüber haben wir wegen Bruno gesprochen?")
    expect(answer).to_contain_text("gesprochen: „Mein Hund heißt Bruno“")
    used = visitor.used(answer)
    expect(used).to_contain_text("frühere Gespräche")
    used.locator("summary").click()
    used.get_by_role("button", name=FACT).click()
    expect(visitor.page).to_have_url(f"{visitor.address}/?c={first_chat}")
    expect(visitor.said).to_have_text([SAID])


def forgets_after_asking(visitor: Visitor) -> None:
    visitor.new_chat()
    question = visitor.ask("Vergiss, dass mein Hund Bruno heißt")
    expect(question).to_contain_text(PHRASES["de"]["really"].format(fact=FACT))
    expect(visitor.cards(FACT)).to_have_count(0)
    visitor.ask("Ja")
    card = visitor.cards(FACT)
    expect(card).to_contain_text("Vergessen: " + FACT)
    # The first chat, which stated it, is named, and its name leads there.
    expect(card).to_contain_text("Nicht mehr im Gedächtnis:")
    expect(card.get_by_role("button", name=FACT)).to_be_visible()

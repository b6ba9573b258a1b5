"""How texts look: the model's Markdown, a fact with signs that format, what an answer was made of."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import Visitor

# Every way to write an image; each would tell its host that it was looked at.
IMAGES = """
![inline](https://a.example/1.png) ![ref][one] ![collapsed][] ![shortcut]
![nested [brackets]](https://a.example/2.png) ![brackets](https://a.example/(3).png)
[![linked](https://a.example/4.png)](https://a.example/) <img src="https://a.example/5.png">

| table |
|---|
| ![cell](https://a.example/6.png) |

\\`![no code](https://a.example/7.png)\\`

[one]: https://a.example/8.png
[collapsed]: https://a.example/9.png
[shortcut]: https://a.example/10.png
"""
# What Markdown or Streamlit would turn into something else.
SIGNS = (
    "1. **fett** _kursiv_ `code` <b>html</b> &amp; $5 und $10 $$a$$ :red[rot] :smile: :material/home: "
    "[Link](https://a.example) ![Bild](https://a.example/x.png) a -> b <- c -- d >= e # | back\\slash"
)


@pytest.fixture
def markdown(visitor: Visitor) -> Locator:
    """The answer of the demonstration that holds everything that is hard to show."""
    visitor.open_chat()
    return visitor.ask("Zeig mir Markdown")


def test_prices_stay_prices_beside_a_formula(markdown: Locator) -> None:
    expect(markdown).to_contain_text("Between $5 and $10, bold, italic, code")
    expect(markdown.locator(".katex-display")).to_have_count(1)
    expect(markdown.locator(".katex")).to_have_count(1)


def test_tables_lists_and_code_are_drawn(markdown: Locator) -> None:
    expect(markdown.get_by_role("row")).to_have_count(3)
    expect(markdown.get_by_role("cell", name="$10", exact=True)).to_be_visible()
    expect(markdown.get_by_test_id("stCode").first).to_contain_text('return f"Hallo {name}, das kostet $5"')
    expect(markdown.locator("ol > li")).to_have_text(["one", "two"])


def test_html_is_shown_and_not_obeyed(markdown: Locator) -> None:
    expect(markdown).to_contain_text("<b>html</b>")
    expect(markdown.locator("b")).to_have_count(0)


def test_an_image_of_the_model_is_a_link_and_is_fetched_from_nowhere(visitor: Visitor, app: AppProcess) -> None:
    app.claude.say(IMAGES)
    visitor.open_chat()
    answer = visitor.ask("Zeig mir Bilder")
    expect(answer.get_by_role("link", name="inline")).to_have_attribute("href", "https://a.example/1.png")
    expect(answer.get_by_role("link", name="shortcut")).to_have_attribute("href", "https://a.example/10.png")
    expect(answer.get_by_role("cell").get_by_role("link", name="cell")).to_be_visible()
    # Nothing was even tried, which the Content-Security-Policy would have reported; see `visiting`.
    expect(answer.locator("img")).to_have_count(0)
    visitor.page.wait_for_load_state("networkidle")


def test_a_script_in_a_message_a_title_or_a_fact_is_text(visitor: Visitor, app: AppProcess) -> None:
    attack = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
    app.claude.say(attack)
    visitor.open_chat()
    answer = visitor.ask(attack)
    expect(answer).to_contain_text(attack)
    expect(visitor.said).to_have_text([attack])
    visitor.open_memory()
    expect(visitor.add_fact(attack, known_by="onerror")).to_contain_text(attack)
    expect(visitor.page).to_have_title("Gedächtnis · JARVIS")


def test_a_fact_is_shown_sign_by_sign(visitor: Visitor) -> None:
    visitor.open_memory()
    row = visitor.add_fact(SIGNS, known_by="kursiv")
    shown = row.get_by_test_id("stMarkdownContainer").first.inner_text()
    assert shown.replace("\N{WORD JOINER}", "") == SIGNS
    expect(row.locator("strong, em, code, ol, .katex, img")).to_have_count(0)


def test_an_answer_shows_what_was_sent_for_it(visitor: Visitor) -> None:
    texts = visitor.texts
    visitor.open_memory()
    visitor.add_fact("Mein Pferd heißt Blitz.")
    visitor.open_chat()
    answer = visitor.ask("Wie heißt mein Pferd?")
    used = visitor.used(answer)
    used.locator("summary").click()
    expect(used.get_by_text("Mein Pferd heißt Blitz.")).to_be_visible()
    used.get_by_text(texts("sent.show")).click()
    sent = texts("sent.messages", count=1, model="claude-sonnet-5-5")
    expect(used.get_by_text(sent)).to_be_visible()
    expect(used.get_by_test_id("stCode").filter(has_text="] Mein Pferd heißt Blitz.")).to_be_visible()
    used.get_by_role("link", name=texts("used.to_memory")).click()
    expect(visitor.fact("Blitz")).to_be_visible()

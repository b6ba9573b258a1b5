"""A person at the browser: says things, reads answers, opens pages. What they expect to see is in the tests."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, Request, expect

from jarvis_memory.prompts import Language
from jarvis_memory.ui.texts import Texts

# Generous: a machine that is busy with other tests is no defect.
expect.set_options(timeout=60_000)

# What a test that failed saw last; not in the repository.
PICTURES = Path(__file__).parents[2] / "test-screenshots"
# What `visiting` takes for a window as small as a phone's.
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
# Streamlit looks for its server below the address of the page first.
PROBES = ("/_stcore/health", "/_stcore/host-config")


class Visitor:
    """One tab of a browser at the app."""

    def __init__(self, page: Page, address: str, language: Language) -> None:
        self.page = page
        self.address = address
        self.language = language
        self.texts = Texts(language)

    # --- going about

    def open(self, path: str = "/") -> None:
        """Go to an address of the app."""
        self.page.goto(self.address + path)

    def open_chat(self, path: str = "/") -> None:
        """Go to the chat page and wait until one can write."""
        self.open(path)
        expect(self.input).to_be_enabled()

    def new_chat(self) -> None:
        """Press "New chat"."""
        self.sidebar.get_by_role("button", name=self.texts("nav.new_chat")).click()
        expect(self.main.get_by_text(self.texts("chat.empty_heading"))).to_be_visible()
        expect(self.questions).to_have_count(0)

    def open_from_sidebar(self, title: str) -> None:
        """Choose a conversation from the list."""
        self.listed(title).click()
        expect(self.heading).to_have_text(title)
        self.wait_until_drawn()

    def another_tab(self, path: str = "/") -> "Visitor":
        """The same person in a second tab."""
        other = Visitor(self.page.context.new_page(), self.address, self.language)
        other.open(path)
        return other

    # --- what there is to see

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def sidebar(self) -> Locator:
        return self.page.get_by_test_id("stSidebar")

    def expect_nothing_beside_the_screen(self) -> None:
        """The page cannot be pushed sideways."""
        beyond = "[document.documentElement, document.querySelector('.stMain')].map(e => e.scrollWidth - innerWidth)"
        assert max(self.page.evaluate(beyond)) <= 0

    @property
    def heading(self) -> Locator:
        """The title above a conversation."""
        return self.page.locator(".st-key-heading h4")

    @property
    def input(self) -> Locator:
        return self.page.get_by_test_id("stChatInputTextArea")

    @property
    def questions(self) -> Locator:
        return self.page.get_by_role("group", name="Chat message from user")

    @property
    def said(self) -> Locator:
        """The texts of the person's messages, without the buttons beside them."""
        return self.questions.locator("[data-testid=stMarkdown] [data-testid=stMarkdownContainer]")

    @property
    def answers(self) -> Locator:
        return self.page.get_by_role("group", name="Chat message from assistant")

    @property
    def toasts(self) -> Locator:
        return self.page.get_by_test_id("stToast")

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def listed(self, title: str) -> Locator:
        """The entry of a conversation in the sidebar."""
        return self.page.locator(".st-key-conversations").get_by_role("button", name=title, exact=True)

    @property
    def groups(self) -> Locator:
        """The headings in the list of conversations."""
        return self.page.locator(".st-key-conversations").get_by_test_id("stCaptionContainer")

    @property
    def menu(self) -> Locator:
        """The button that opens what can be done with the open chat."""
        return self.page.locator(".st-key-menu").get_by_role("button")

    def choose(self, key: str) -> None:
        """Choose this from the menu of the open chat."""
        self.wait_until_drawn()
        self.menu.click()
        self.page.get_by_role("menuitem", name=self.texts(key)).click()

    def search(self, query: str) -> None:
        """Look for something in the sidebar."""
        self.sidebar.get_by_role("searchbox").fill(query)

    @property
    def found(self) -> Locator:
        """What the search in the sidebar found."""
        return self.page.locator(".st-key-found").get_by_role("button")

    def button(self, key: str) -> Locator:
        """The button of the page with this text of the catalogue."""
        return self.main.get_by_role("button", name=self.texts(key), exact=True)

    def cards(self, text: str) -> Locator:
        """The tool cards with this text."""
        return self.page.locator("[class*='st-key-tool-']").filter(has_text=text)

    def used(self, answer: Locator) -> Locator:
        """The expander under a complete answer: what of the memory went into it."""
        opening = self.texts("used.label").partition("{")[0]
        label = re.compile("|".join(map(re.escape, (opening, self.texts("used.none")))))
        return answer.get_by_test_id("stExpander").filter(has_text=label)

    @property
    def conversation_id(self) -> int:
        """The one in the address."""
        return int(parse_qs(urlsplit(self.page.url).query)["c"][0])

    # --- talking

    def say(self, text: str) -> None:
        """Write a message and send it."""
        self.input.fill(text)
        self.input.press("Enter")

    def ask(self, text: str) -> Locator:
        """Say it and wait for the whole answer."""
        said_before = self.questions.count()
        self.say(text)
        expect(self.questions).to_have_count(said_before + 1)
        return self.complete_answer(said_before)

    def complete_answer(self, number: int = 0) -> Locator:
        """The answer to the message with this number, once it is complete."""
        answer = self.answers.nth(number)
        expect(self.used(answer)).to_be_visible()
        expect(self.button("chat.stop")).to_have_count(0)
        self.wait_until_drawn()
        return answer

    # --- the Memory page

    def open_memory(self, view: str = "memory.facts") -> None:
        """Go to the Memory page and choose a view."""
        self.open("/memory")
        self.choose_view(view)

    def wait_until_drawn(self) -> None:
        """Until the page's script has run to its end: before that a button can be replaced under the pointer."""
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")

    def wait_until_it_rests(self, what: Locator) -> None:
        """Until this has kept its place for two seconds: the page scrolls to a hit while it is still being drawn."""
        places: list[float | None] = [None]
        while len(places) < 9 or len(set(places[-9:])) > 1:
            box = what.bounding_box()
            places.append(box["y"] if box else None)
            assert len(places) < 80, "it does not come to rest"
            self.page.wait_for_timeout(250)

    def choose_view(self, view: str) -> None:
        chosen = self.main.get_by_role("radio", name=self.texts(view), exact=True)
        chosen.click()
        expect(chosen).to_be_checked()

    def wait_for_summaries(self) -> None:
        """Look at the Memory page until every conversation is summarised."""
        self.open_memory("memory.upkeep")
        expect(self.main.get_by_text(self.texts("memory.nothing_pending"))).to_be_visible()

    def add_fact(self, fact: str, *, known_by: str | None = None) -> Locator:
        """Write a fact down on the Memory page; its row, once it can be pressed.

        `known_by` is a part of it that stands on the page as it was written.
        """
        self.main.get_by_label(self.texts("memory.new_fact"), exact=True).fill(fact)
        self.button("memory.add").click()
        row = self.fact(known_by or fact)
        # While the page is drawn anew, the row can be there twice: where it was and where it goes.
        expect(row).to_have_count(1)
        self.wait_until_drawn()
        expect(row).to_be_visible()
        return row

    def fact(self, text: str) -> Locator:
        """The row of a fact that is not being edited."""
        row = self.page.locator("[data-testid=stVerticalBlock][class*='st-key-fact-']")
        return row.filter(has_text=text, has_not=self.page.locator("textarea"))

    def summary(self, text: str) -> Locator:
        """The row of a summary."""
        return self.page.locator("[class*='st-key-summary-']").filter(has_text=text)


class Watch:
    """What a browser complained about and whom it asked, over all its tabs."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        context.on("console", self._console)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        address = str(message.location.get("url", ""))
        is_probe = "404" in message.text and urlsplit(address).path.endswith(PROBES)
        if message.type == "error" and not is_probe:
            self.complaints.append(f"{message.text} ({address})")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            self.hosts.add(parts.netloc)


def take_pictures(context: BrowserContext, name: str) -> None:
    """What every tab shows, for whoever looks for the reason of a failure."""
    for number, page in enumerate(context.pages):
        with suppress(Error):
            page.screenshot(path=PICTURES / f"{name}-{number}.png")


@contextmanager
def visiting(
    browser: Browser, address: str, *, language: Language = "de", peaceful: bool = True, **options: Any
) -> Iterator[Visitor]:
    """A visitor with a fresh browser profile.

    `peaceful`: an error in the browser's console, or a request to anybody but the app, fails the test.
    """
    settings = {"viewport": {"width": 1280, "height": 860}, "locale": "de-DE", "reduced_motion": "reduce"} | options
    context = browser.new_context(**settings)
    watch = Watch(context)
    try:
        yield Visitor(context.new_page(), address, language)
    except BaseException:
        take_pictures(context, "failed")
        raise
    finally:
        context.close()
    if peaceful:
        assert watch.complaints == []
        assert watch.hosts <= {urlsplit(address).netloc}, "the browser asked somebody else"

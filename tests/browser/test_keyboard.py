"""Everything by keyboard alone, in English: what is reached by Tab shows where one is, and Enter or Space does it."""

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.demo_assistant import respond
from tests.fake_claude import Text

MOST_STEPS = 60
HAS_FOCUS = "element => element === document.activeElement"
# Whether one sees where the keyboard is: a field has its cursor, anything else a ring around it or around a part of it.
IS_MARKED = """element => {
  if (element.matches("input[type=text], input[type=search], textarea")) return true;
  const parts = [element, element.parentElement, ...element.querySelectorAll("*"), ...element.parentElement.children];
  return parts.map(part => getComputedStyle(part)).some(style =>
    style.boxShadow !== "none" || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0)) }"""


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """An app in English with a second model to choose."""
    folder = tmp_path_factory.mktemp("app")
    with running_app(respond, folder, JARVIS_LANGUAGE="en", JARVIS_MODELS="claude-haiku-5-5") as app:
        yield app


@pytest.fixture
def visitor(browser: Browser, app: AppProcess) -> Iterator[Visitor]:
    """Somebody without a mouse."""
    with visiting(browser, app.address, language="en", locale="en-GB") as visitor:
        yield visitor


def tab_to(visitor: Visitor, wanted: Locator) -> None:
    """Press Tab until this has the focus, which has to be seen."""
    expect(wanted).to_be_visible()
    visitor.wait_until_drawn()
    for _ in range(MOST_STEPS):
        if wanted.evaluate(HAS_FOCUS):
            visitor.page.wait_for_timeout(300)  # the mark fades in
            if wanted.evaluate(HAS_FOCUS):  # else the chat was drawn for the first time just now
                assert wanted.evaluate(IS_MARKED), "one does not see where the keyboard is"
                return
        visitor.page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by Tab")


def press(visitor: Visitor, wanted: Locator, key: str = "Enter") -> None:
    tab_to(visitor, wanted)
    visitor.page.keyboard.press(key)


def choose(visitor: Visitor, key: str) -> None:
    """Choose this from the menu of the open chat."""
    press(visitor, visitor.menu)
    entry = visitor.page.get_by_role("menuitem", name=visitor.texts(key))
    expect(entry).to_be_visible()
    for _ in range(10):
        if entry.evaluate(HAS_FOCUS):
            break
        visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")


def test_a_chat_is_written_stopped_edited_renamed_and_left_by_keyboard(visitor: Visitor, app: AppProcess) -> None:
    texts, keyboard = visitor.texts, visitor.page.keyboard
    visitor.open_chat()
    tab_to(visitor, visitor.input)
    release = threading.Event()
    app.claude.say(Text("The beginning of a long answer.", release=release))
    keyboard.type("Tell me something")
    keyboard.press("Enter")
    press(visitor, visitor.button("chat.stop"))
    expect(visitor.button("chat.retry")).to_be_visible()
    release.set()

    press(visitor, visitor.main.get_by_role("button", name="edit", exact=False).first)
    tab_to(visitor, visitor.main.get_by_role("textbox", name=texts("actions.edit")))
    keyboard.press("Control+A")
    keyboard.type("Remember that my dog is called Bruno")
    press(visitor, visitor.button("actions.send"))
    expect(visitor.cards("My dog is called Bruno")).to_be_visible()
    visitor.complete_answer()

    choose(visitor, "conversation.rename")
    tab_to(visitor, visitor.dialog.get_by_role("textbox"))
    keyboard.press("Control+A")
    keyboard.type("My dog")
    press(visitor, visitor.dialog.get_by_role("button", name=texts("memory.save"), exact=True))
    expect(visitor.heading).to_have_text("My dog")

    press(visitor, visitor.sidebar.get_by_role("link", name=texts("nav.memory")))
    expect(visitor.fact("My dog is called Bruno")).to_be_visible()
    press(visitor, visitor.sidebar.get_by_role("button", name=texts("nav.new_chat")))
    expect(visitor.main.get_by_text(texts("chat.empty_heading"))).to_be_visible()
    press(visitor, visitor.main.get_by_role("switch", name=texts("options.temporary")).first, "Space")
    expect(visitor.main.get_by_text(texts("options.memory_read"), exact=True)).to_be_visible()


def test_a_file_is_sent_a_model_chosen_and_an_answer_given_again_by_keyboard(visitor: Visitor, app: AppProcess) -> None:
    texts, page = visitor.texts, visitor.page
    visitor.open_chat()
    with page.expect_file_chooser() as chooser:
        press(visitor, page.get_by_role("button", name="Upload files"))
    chooser.value.set_files({"name": "list.txt", "mimeType": "text/plain", "buffer": b"Milk and bread"})
    expect(page.get_by_test_id("stFileChip")).to_have_count(1)
    expect(page.get_by_test_id("stChatInputSubmitButton")).to_be_enabled()
    app.claude.say("Milk and bread.", "Bread and milk.")
    tab_to(visitor, visitor.input)
    page.keyboard.type("What do I have to buy?")
    page.keyboard.press("Enter")
    expect(visitor.complete_answer()).to_contain_text("Milk and bread.")

    press(visitor, page.locator(".st-key-options button:visible"))
    tab_to(visitor, page.get_by_role("combobox", name=texts("model.label")))
    page.keyboard.press("ArrowDown")
    option = page.get_by_role("option", name="claude-haiku-5-5", exact=True)
    expect(option).to_be_visible()
    page.keyboard.type("haiku")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    visitor.wait_until_drawn()
    press(visitor, visitor.answers.locator("[class*='st-key-regenerate-'] button").filter(visible=True).first)
    expect(visitor.answers.first).to_contain_text("Bread and milk.")
    answer = visitor.complete_answer()
    press(visitor, visitor.used(answer).locator("summary"))
    expect(answer.get_by_text("claude-haiku-5-5 · ")).to_be_visible()

    choose(visitor, "conversation.pin")
    expect(visitor.groups.first).to_have_text(texts("list.pinned"))
    choose(visitor, "conversation.archive")
    expect(visitor.button("conversation.unarchive")).to_be_visible()

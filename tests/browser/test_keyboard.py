"""Everything by keyboard alone, in English: what is reached by Tab shows where one is, and Enter or Space does it."""

import threading
from pathlib import Path

from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import running_app
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


def test_a_chat_is_written_stopped_edited_renamed_and_left_by_keyboard(browser: Browser, folder: Path) -> None:
    with (
        running_app(respond, folder, JARVIS_LANGUAGE="en") as app,
        visiting(browser, app.address, language="en", locale="en-GB") as visitor,
    ):
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

        press(visitor, visitor.menu)
        entry = visitor.page.get_by_role("menuitem", name=texts("conversation.rename"))
        expect(entry).to_be_visible()
        for _ in range(10):
            if entry.evaluate("element => element === document.activeElement"):
                break
            keyboard.press("ArrowDown")
        keyboard.press("Enter")
        field = visitor.dialog.get_by_role("textbox")
        tab_to(visitor, field)
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

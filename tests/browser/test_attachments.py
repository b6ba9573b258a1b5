"""Files in the input: dropped, sent, shown after a reload, fetched again; refused in a sentence and nothing lost."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import PHONE, Visitor, visiting
from tests.files import bomb, pdf, photo

PHOTO = {"name": "Garten.jpg", "mimeType": "image/jpeg", "buffer": photo((800, 600))}
BILL = {"name": "Rechnung_Mai.pdf", "mimeType": "application/pdf", "buffer": pdf(2)}
BOMB = {"name": "Bombe.png", "mimeType": "image/png", "buffer": bomb()}
ZIP = {"name": "Archiv.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04\0\0"}
# What Ctrl+V of a picture is for the page.
PASTE = """(input, [name, type, bytes]) => {
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([new Uint8Array(bytes)], name, {type}));
  input.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData}));
}"""
# The same for a file that is let go over the button.
DROP = """(target, [name, type, bytes]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([new Uint8Array(bytes)], name, {type}));
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer}));
}"""


def chips(visitor: Visitor) -> Locator:
    """The files in the input."""
    return visitor.page.get_by_test_id("stFileChip")


def attach(visitor: Visitor, *files: dict[str, Any]) -> None:
    """Choose files with the input's button, and wait until they are there."""
    there = chips(visitor).count()
    visitor.page.locator("[data-testid=stChatInput] input[type=file]").set_input_files(list(files))
    expect_uploaded(visitor, there + len(files))


def expect_uploaded(visitor: Visitor, count: int) -> None:
    """So many files are in the input, and all of them have arrived: before that Enter does nothing."""
    expect(chips(visitor)).to_have_count(count)
    expect(visitor.page.get_by_test_id("stChatInputSubmitButton")).to_be_enabled()


def shown_image(visitor: Visitor, name: str) -> Locator:
    return visitor.questions.get_by_role("img", name=name)


def expect_loaded(image: Locator) -> None:
    """The picture itself is there, with more pixels than it is shown with."""
    expect(image).to_be_visible()
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate("image => image.naturalWidth") == 800


def test_a_pasted_image_and_a_dropped_pdf_are_sent_shown_after_a_reload_and_fetched(
    visitor: Visitor, app: AppProcess
) -> None:
    visitor.open_chat()
    visitor.input.evaluate(PASTE, [PHOTO["name"], PHOTO["mimeType"], list(PHOTO["buffer"])])
    expect_uploaded(visitor, 1)
    button = visitor.page.get_by_test_id("stChatInputFileUploadButton")
    button.evaluate(DROP, [BILL["name"], BILL["mimeType"], list(BILL["buffer"])])
    expect_uploaded(visitor, 2)
    app.claude.say("Ein Garten und eine Rechnung.")
    visitor.ask("Was siehst du?")
    asked = next(one for one in reversed(app.claude.requests) if one.get("tools"))
    assert [block["type"] for block in asked["messages"][0]["content"]][:2] == ["image", "document"]
    visitor.page.reload()
    visitor.complete_answer()
    expect_loaded(shown_image(visitor, "Garten.jpg"))
    bill = visitor.questions.get_by_role("button", name="Rechnung_Mai.pdf")
    with visitor.page.expect_download() as download:
        bill.click()
    assert download.value.suggested_filename == "Rechnung_Mai.pdf"
    assert Path(download.value.path()).read_bytes() == BILL["buffer"]


def test_an_image_is_enlarged_by_keyboard_too(visitor: Visitor) -> None:
    visitor.open_chat()
    attach(visitor, PHOTO)
    visitor.input.press("Enter")
    visitor.complete_answer()
    image = shown_image(visitor, "Garten.jpg")
    expect_loaded(image)
    small = image.bounding_box()
    image.hover()
    enlarge = visitor.questions.get_by_role("button", name="Fullscreen: Garten.jpg")
    enlarge.focus()
    enlarge.press("Enter")
    large = image.bounding_box()
    assert small and large
    assert small["width"] == 240
    assert large["width"] > 600


def test_a_refused_file_costs_neither_text_nor_the_other_files(browser: Browser, app: AppProcess) -> None:
    with visiting(browser, app.address, **PHONE) as visitor:
        visitor.open_chat()
        attach(visitor, PHOTO, BOMB, ZIP, BILL)
        visitor.say("Und was ist hier los?")
        large = visitor.texts.error("ImageHasTooManyPixels", {"name": "Bombe.png", "limit": 80})
        expect(visitor.main.get_by_text(large)).to_be_visible()
        unknown = visitor.texts.error("AttachmentUnknown", {"name": "Archiv.zip"})
        expect(visitor.main.get_by_text(unknown)).to_be_visible()
        expect(visitor.input).to_have_value("Und was ist hier los?")
        kept = visitor.page.locator(".st-key-kept-files").get_by_role("button")
        expect(kept).to_have_count(2)
        visitor.expect_nothing_beside_the_screen()
        visitor.input.press("Enter")
        visitor.complete_answer()
        expect_loaded(shown_image(visitor, "Garten.jpg"))
        expect(visitor.questions.get_by_role("button", name="Rechnung_Mai.pdf")).to_be_visible()
        expect(kept).to_have_count(0)
        visitor.expect_nothing_beside_the_screen()

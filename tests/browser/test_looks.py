"""Looks: enough contrast in both themes, nothing cut off on a phone, nothing jumps while an answer comes."""

import threading
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import PHONE, Visitor, visiting
from tests.fake_claude import Text

# Streamlit's own red, which stands for nothing here.
DEFAULT_RED = "rgb(255, 75, 75)"

# Every seen text whose contrast is too low, as WCAG 2.2 computes it (1.4.3: 4.5 for text; 1.4.11: 3 for symbols;
# neither for what is disabled; the colors of code are the library's), and every element in the default theme's red.
TOO_PALE = """red => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const parse = color => {  // whatever way it is written in
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255] };
  const over = (front, back) => [0, 1, 2].map(i => front[i] * front[3] + back[i] * (1 - front[3]));
  const luminance = color => color.map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const background = element => element === null ? [255, 255, 255]
    : over(parse(getComputedStyle(element).backgroundColor), background(element.parentElement));
  const opacity = element => element === null ? 1 : getComputedStyle(element).opacity * opacity(element.parentElement);
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const style = getComputedStyle(element);
    if ([style.color, style.backgroundColor, style.borderTopColor].includes(red) && element.checkVisibility())
      found.push("red: " + element.outerHTML.slice(0, 80));
    const text = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data).join("").trim();
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (element.closest("[disabled], [aria-disabled=true], pre code, script, style")) continue;
    const back = background(element), front = parse(style.color);
    front[3] *= opacity(element);
    const [dark, light] = [luminance(over(front, back)), luminance(back)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < (element.matches("[data-testid=stIconMaterial]") ? 3 : 4.5))
      found.push(contrast.toFixed(2) + ": " + text.slice(0, 60));
  }
  return found }"""

# Notes on every frame where each message begins, counted from the beginning of the page.
NOTE_PLACES = """() => {
  window.places = {};
  const look = () => {
    const scrolled = document.querySelector(".stMain").scrollTop;
    document.querySelectorAll("[aria-label^='Chat message from']").forEach((message, number) => {
      const top = message.getBoundingClientRect().top + scrolled;
      (window.places[number] ??= []).push(top) });
    requestAnimationFrame(look) };
  look() }"""


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_and_nothing_is_cut_off(
    browser: Browser, app: AppProcess, theme: str, options: dict[str, Any]
) -> None:
    with visiting(browser, app.address, color_scheme=theme, **options) as visitor:
        visitor.open_chat()
        expect(visitor.main.get_by_text(visitor.texts("chat.empty_hint"))).to_be_visible()
        for number in (1, 2, 3):
            expect(visitor.button(f"chat.example_{number}")).to_be_visible()
        looks_well(visitor)
        answer = visitor.ask("Merk dir, dass mein Kater Felix heißt")
        visitor.used(answer).locator("summary").click()
        visitor.ask("Zeig mir Markdown")
        looks_well(visitor)
        for view in ("memory.facts", "memory.summaries", "memory.upkeep"):
            visitor.open_memory(view)
            looks_well(visitor)
        visitor.open("/documents")
        chooser = visitor.page.get_by_test_id("stFileUploaderDropzoneInput")
        files = {f"{theme}.md": b"# Kapitel\n\nEin Absatz.", "kaputt.pdf": b"%PDF-1.7 kaputt"}
        chooser.set_input_files([{"name": n, "mimeType": "text/plain", "buffer": b} for n, b in files.items()])
        looks_well(visitor)
        expect(visitor.main.get_by_text(visitor.texts("documents.ready")).first).to_be_visible()
        looks_well(visitor)
        visitor.page.locator("[class*=st-key-open-]").last.get_by_role("button").click()
        expect(visitor.button("documents.all")).to_be_visible()
        looks_well(visitor)
        visitor.open("/settings")
        for view in ("general", "connections", "usage", "data", "system"):
            visitor.choose_view(f"settings.{view}")
            looks_well(visitor)


def looks_well(visitor: Visitor) -> None:
    visitor.page.wait_for_timeout(300)  # until what was pressed has begun to be drawn
    visitor.wait_until_drawn()
    for _ in range(20):  # what fades in or out is pale meanwhile
        pale = visitor.page.evaluate(TOO_PALE, DEFAULT_RED)
        if not pale:
            break
        visitor.page.wait_for_timeout(300)
    assert not pale, "\n".join(pale)
    visitor.expect_nothing_beside_the_screen()


def test_nothing_jumps_while_an_answer_comes_and_when_it_is_complete(visitor: Visitor, app: AppProcess) -> None:
    visitor.open_chat()
    visitor.ask("Guten Tag")
    visitor.page.evaluate(NOTE_PLACES)
    release = threading.Event()
    app.claude.say(Text("Ein Satz von vielen. " * 60, release=release))
    visitor.say("Erzähl mir etwas")
    expect(visitor.button("chat.stop")).to_be_visible()
    expect(visitor.answers.nth(1)).to_contain_text("Ein Satz")
    release.set()
    visitor.complete_answer(1)
    places = visitor.page.evaluate("window.places")
    assert len(places) == 4
    assert {number: max(tops) - min(tops) for number, tops in places.items() if max(tops) - min(tops) > 2} == {}

"""The Settings page and the picker as a person uses them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, visiting
from tests.demo_assistant import respond


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """An app with a second model to choose."""
    folder = tmp_path_factory.mktemp("app")
    with running_app(respond, folder, JARVIS_MODELS="claude-haiku-5-5") as app:
        yield app


def box(visitor: Visitor, label: str) -> Locator:
    """The list of choices with this label of the catalogue."""
    return visitor.page.get_by_role("combobox", name=visitor.texts(label))


def choose(visitor: Visitor, label: str, option: str) -> None:
    box(visitor, label).click()
    visitor.page.get_by_role("option", name=option, exact=True).click()


def test_the_language_changes_at_once_and_for_every_page(visitor: Visitor, browser: Browser) -> None:
    visitor.open_chat()
    visitor.sidebar.get_by_role("link", name=visitor.texts("nav.settings")).click()
    choose(visitor, "settings.language", "English")
    with visiting(browser, visitor.address, language="en") as english:
        expect(visitor.toasts).to_contain_text(english.texts("settings.saved"))
        expect(visitor.sidebar.get_by_role("link", name=english.texts("nav.settings"))).to_be_visible()
        english.open_chat()
        expect(english.main.get_by_text(english.texts("chat.empty_heading"))).to_be_visible()
        english.open("/settings")
        choose(english, "settings.language", "Deutsch")
        expect(english.main.get_by_role("heading", name=visitor.texts("nav.settings"))).to_be_visible()


def test_the_model_of_a_chat_is_chosen_and_named_under_its_answer(visitor: Visitor, app: AppProcess) -> None:
    visitor.open_chat()
    visitor.page.locator(".st-key-options button:visible").click()
    choose(visitor, "model.label", "claude-haiku-5-5")
    visitor.page.keyboard.press("Escape")
    answer = visitor.ask("Wie hoch ist die Zugspitze?")
    visitor.used(answer).click()
    expect(answer.get_by_text("claude-haiku-5-5 · ")).to_be_visible()
    visitor.open_chat(f"/?c={visitor.conversation_id}")
    visitor.page.locator(".st-key-options button:visible").click()
    expect(box(visitor, "model.label")).to_have_value("claude-haiku-5-5")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_usage_is_drawn_and_fits(browser: Browser, app: AppProcess, width: int) -> None:
    with visiting(browser, app.address, viewport={"width": width, "height": 844}) as visitor:
        visitor.open_chat()
        visitor.ask(f"Wie breit ist der Rhein bei {width}?")
        visitor.open("/settings")
        visitor.choose_view("settings.usage")
        expect(visitor.main.get_by_text(visitor.texts("usage.month_count"))).to_be_visible()
        bars = visitor.page.get_by_test_id("stVegaLiteChart").locator(".mark-rect path")
        # The price of the scripted Claude is not known: a bar of tokens for each of the last 30 days.
        expect(bars).not_to_have_count(0)
        heights = bars.evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().height)")
        assert max(heights) > 20
        visitor.choose_view("usage.months")
        expect(visitor.page.get_by_test_id("stDataFrame")).to_be_visible()
        for view in ("settings.usage", "settings.system", "settings.general"):
            visitor.choose_view(view)
            visitor.wait_until_drawn()
            visitor.expect_nothing_beside_the_screen()

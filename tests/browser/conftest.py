"""A real browser at the real app. The tests of a file share one app with its scripted Claude: use distinct words."""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import Visitor, take_pictures, visiting
from tests.demo_assistant import respond

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A picture of what a failed test saw, while its pages are still open."""
    report = yield
    if report.when == "call" and report.failed:
        for visitor in getattr(item, "funcargs", {}).values():
            if isinstance(visitor, Visitor):
                take_pictures(visitor.page.context, f"failed-{item.name}")
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; each test has a profile of its own in it."""
    named = os.environ.get("JARVIS_TEST_CHROMIUM")
    path = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if path is None:
        reason = f"There is no browser: {named or ', '.join(NAMES)} (JARVIS_TEST_CHROMIUM names another one)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """The app of `make demo`, one for each file of tests."""
    with running_app(respond, tmp_path_factory.mktemp("app")) as app:
        yield app


@pytest.fixture
def visitor(browser: Browser, app: AppProcess) -> Iterator[Visitor]:
    """A person who opens the app."""
    with visiting(browser, app.address) as visitor:
        yield visitor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For the app of a test that needs its own."""
    return tmp_path

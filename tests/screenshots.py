"""`make screenshots`: each page in both themes and at two widths into test-screenshots/, the README's into docs/."""

import socket
import subprocess
import sys
import tempfile
import time
from shutil import copy, which
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

from jarvis_memory.ui.texts import Texts
from tests.demo import APP, app_command, app_environment
from tests.demo_assistant import respond
from tests.document_files import pdf_of
from tests.fake_claude import FakeClaude

PICTURES = APP.parent / "test-screenshots"
README_PICTURES = APP.parent / "docs"
SAID = (
    "Merk dir, dass mein Hund Bruno heißt",
    "Merk dir, dass ich in Freiburg wohne",
    "Merk dir, dass Lena am 14. Mai Geburtstag hat",
)
LEASE = pdf_of(
    [
        "Mietvertrag\n\n§ 1 Mietsache\nVermietet wird die Wohnung im zweiten Stock der Lindenallee 5 in Freiburg.",
        "§ 9 Kündigung\nDie Frist für eine Kündigung beträgt drei Monate zum Ende eines Monats, schriftlich."
        "\n\n§ 10 Rückgabe\nDie Wohnung ist besenrein und mit allen Schlüsseln zurückzugeben.",
    ]
)
MANUAL = b"# Waschmaschine\n\n## Fehler E18\n\nDas Wasser l\xc3\xa4uft nicht ab: Reinigen Sie das Flusensieb."
BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> int:
    """Write the pictures. 1 without a browser."""
    browser_path = which("chromium") or which("google-chrome")
    if browser_path is None:
        print("There is no chromium here.", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    README_PICTURES.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as data_dir, FakeClaude(respond) as claude, sync_playwright() as playwright:
        # Without the label of the demonstration: what is shown is the app itself.
        environment = app_environment(claude, data_dir, JARVIS_DEMO="false")
        app = subprocess.Popen(app_command(port), cwd=APP.parent, env=environment)
        try:
            _wait_for(f"http://127.0.0.1:{port}/_stcore/health")
            browser = playwright.chromium.launch(executable_path=browser_path, args=BROWSER_FLAGS)
            for theme in ("light", "dark"):
                for name, width, height in (("", 1100, 860), ("-phone", 390, 844)):
                    page = browser.new_page(
                        viewport={"width": width, "height": height}, color_scheme=theme, locale="de-DE"
                    )
                    _take(page, f"http://127.0.0.1:{port}", f"{name}-{theme}")
                    page.close()
            browser.close()
            for name in ("chat", "memory", "sources"):
                copy(PICTURES / f"{name}-light.png", README_PICTURES / f"{name}.png")
        finally:
            app.terminate()
            app.wait()
    return 0


def _wait_for(address: str) -> None:
    for _ in range(300):
        try:
            with urlopen(address, timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise TimeoutError(address)


def _take(page: Page, address: str, suffix: str) -> None:
    page.goto(address)
    page.get_by_test_id("stChatInputTextArea").wait_for()
    if suffix == "-light":
        for text in SAID:
            _say(page, text)
            page.goto(address)
    _shoot(page, f"empty{suffix}")
    _say(page, "Wie heißt mein Hund?")
    page.get_by_text("Aus dem Gedächtnis:").last.click()
    page.wait_for_timeout(1_500)
    page.locator(".st-key-heading").scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    _shoot(page, f"chat{suffix}")
    page.goto(f"{address}/memory")
    page.get_by_text("Neuer Fakt").wait_for()
    _shoot(page, f"memory{suffix}")
    page.goto(f"{address}/documents")
    page.get_by_text("Dokumente hinzufügen").wait_for()
    if suffix == "-light":
        files = {"Mietvertrag.pdf": LEASE, "Anleitung Waschmaschine.md": MANUAL, "Scan.pdf": pdf_of([""])}
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
            [{"name": name, "mimeType": "application/pdf", "buffer": content} for name, content in files.items()]
        )
        page.get_by_text("Durchsuchbar").nth(1).wait_for()
        page.reload()
        page.get_by_text("Durchsuchbar").nth(1).wait_for()
    _shoot(page, f"documents{suffix}")
    page.goto(address)
    page.get_by_test_id("stChatInputTextArea").wait_for()
    _say(page, "Was steht in meinen Dokumenten über Kündigung Frist?")
    page.locator(".st-key-heading").scroll_into_view_if_needed()
    _shoot(page, f"sources{suffix}")
    page.locator("[class*=st-key-sources-]").get_by_role("link").first.click()
    page.locator(".st-key-passage-marked").wait_for()
    _shoot(page, f"document{suffix}")
    page.goto(f"{address}/settings")
    page.get_by_text("Zeitzone").wait_for()
    _shoot(page, f"settings{suffix}")
    page.get_by_role("radio", name="Verbrauch").click()
    page.get_by_text("Tokens in diesem Monat").wait_for()
    _shoot(page, f"usage{suffix}")
    for view, shown, name in (("Daten", "Alles mitnehmen", "data"), ("System", "PostgreSQL", "system")):
        page.get_by_role("radio", name=view).click()
        page.get_by_text(shown).first.wait_for()
        _shoot(page, f"{name}{suffix}")
    page.goto(address)
    page.get_by_text("Temporärer Chat").click()
    _say(page, "Wie heißt mein Hund?")
    _shoot(page, f"temporary{suffix}")
    page.goto(address)
    page.get_by_test_id("stChatInputTextArea").wait_for()
    if "phone" in suffix:
        page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_placeholder(Texts("de")("list.search")).fill("Hund")
    page.keyboard.press("Enter")
    _shoot(page, f"search{suffix}")


def _say(page: Page, text: str) -> None:
    page.get_by_test_id("stChatInputTextArea").fill(text)
    page.keyboard.press("Enter")
    page.get_by_test_id("stExpander").last.wait_for(timeout=20_000)
    page.get_by_role("button", name="Stopp").wait_for(state="hidden", timeout=20_000)


def _shoot(page: Page, name: str) -> None:
    # The fonts and the last animation.
    page.wait_for_timeout(1_500)
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())

"""The data of a person: an export is downloaded, deleted and brought back; chats come along from ChatGPT."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.archives import chatgpt, file_of, node, zip_of
from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import PHONE, Visitor, visiting
from tests.demo_assistant import respond


@pytest.fixture
def own_app(browser: Browser, folder: Path) -> Iterator[AppProcess]:
    """An app whose whole content this test knows."""
    with running_app(respond, folder) as app:
        yield app


def open_data(visitor: Visitor) -> None:
    visitor.open("/settings")
    visitor.choose_view("settings.data")


def choose_file(visitor: Visitor, name: str, content: bytes) -> None:
    chooser = visitor.page.get_by_test_id("stFileUploaderDropzoneInput")
    chooser.set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})


def test_what_was_exported_comes_back_after_everything_was_deleted(browser: Browser, own_app: AppProcess) -> None:
    with visiting(browser, own_app.address, accept_downloads=True) as owner:
        owner.open_chat()
        owner.ask("Merk dir, dass mein Hund Bruno heißt")
        owner.wait_for_summaries()
        open_data(owner)
        owner.button("data.prepare").click()
        expect(owner.main.get_by_text("1 Chat, 2 Nachrichten, 1 Fakt, keine Dokumente.")).to_be_visible()
        with owner.page.expect_download() as download:
            owner.page.locator(".st-key-download-export").get_by_role("button").click()
        assert download.value.suggested_filename.startswith("jarvis-20")
        content = Path(download.value.path()).read_bytes()
        assert len(json.loads(content)["conversations"]) == 1

        owner.open_memory("memory.upkeep")
        box = owner.page.locator(".st-key-box-delete_everything")
        box.get_by_role("button", name=owner.texts("memory.open_dialog")).click()
        field = owner.dialog.get_by_label(owner.texts("memory.type_word", word=owner.texts("memory.word")))
        field.fill(owner.texts("memory.word"))
        owner.dialog.get_by_role("button", name=owner.texts("memory.really")).click()
        expect(owner.sidebar.get_by_text(owner.texts("nav.no_conversations"))).to_be_visible()

        open_data(owner)
        choose_file(owner, download.value.suggested_filename, content)
        owner.button("data.start").click()
        done = owner.texts("data.imported", what="1 Chat, 2 Nachrichten, 1 Fakt, 1 Zusammenfassung")
        expect(owner.main.get_by_text(done)).to_be_visible()
        expect(owner.main.get_by_text(owner.texts("data.searchable"))).to_be_visible()
        owner.new_chat()
        expect(owner.ask("Wie heißt mein Hund?")).to_contain_text("Bruno")


def test_chats_of_chatgpt_come_along_in_their_archive_also_on_a_phone(browser: Browser, own_app: AppProcess) -> None:
    tree = [node("a", None, "user", "Wohin im Mai?"), node("b", "a", "assistant", "An die Ostsee.")]
    chats = [chatgpt(*tree, title="Reise an die Ostsee"), chatgpt(number="c2")]
    with visiting(browser, own_app.address, **PHONE) as phone:
        open_data(phone)
        choose_file(phone, "export.zip", zip_of({"conversations.json": [{"uuid": "x"}]}).getvalue())
        expect(phone.main.get_by_text(phone.texts.error("ImportUnknown"))).to_be_visible()
        expect(phone.button("data.start")).to_have_count(0)

        choose_file(phone, "export.zip", zip_of({"conversations.json": chats, "chat.html": b"<html>"}).getvalue())
        expect(phone.main.get_by_text(phone.texts("data.program_chatgpt"))).to_be_visible()
        phone.expect_nothing_beside_the_screen()
        phone.button("data.start").click()
        expect(phone.main.get_by_text(phone.texts("data.imported", what="1 Chat, 2 Nachrichten"))).to_be_visible()
        expect(phone.main.get_by_text(phone.texts.counted("data.empty", 1))).to_be_visible()

        phone.page.get_by_test_id("stExpandSidebarButton").click()
        phone.listed("Reise an die Ostsee").click()
        expect(phone.questions).to_have_count(1)
        expect(phone.questions).to_contain_text("Wohin im Mai?")
        expect(phone.answers.first).to_contain_text("An die Ostsee.")
        assert own_app.claude.requests == []
        phone.ask("Und wie warm ist es dort?")
        expect(phone.heading).to_have_text("Reise an die Ostsee")


def test_a_file_beyond_the_small_limit_of_attachments_can_be_imported(browser: Browser, own_app: AppProcess) -> None:
    tree = [node(str(n), str(n - 1), ("user", "assistant")[n % 2], "Viel Text. " * 9_000) for n in range(300)]
    content = file_of([chatgpt(*tree)]).getvalue()
    assert len(content) > 25_000_000
    with visiting(browser, own_app.address) as owner:
        open_data(owner)
        choose_file(owner, "conversations.json", content)
        owner.button("data.start").click(timeout=60_000)
        expect(owner.main.get_by_text(owner.texts("data.imported", what="1 Chat, 300 Nachrichten"))).to_be_visible()

"""The data on the Settings page: an export to download, a file checked and imported, and how far it is searchable."""

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.errors import DatabaseUnavailable
from jarvis_memory.ui import data_view
from jarvis_memory.ui.safe_markdown import plain
from tests.archives import chatgpt, export_of, node
from tests.integration.chats import one, wait_until
from tests.integration.pages import CHAT, TEXTS, click, drawn, texts_in

# Without a language, which would be taken over at once.
EXPORT = export_of(preferences={})


def data_page() -> AppTest:
    """The Settings page with the view of the data."""
    page = drawn(AppTest.from_file(str(CHAT), default_timeout=60).switch_page("pages/settings.py"))
    page.button_group(key="settings_view").set_value("data")
    return drawn(page)


def upload(page: AppTest, content: Any, name: str = "conversations.json") -> AppTest:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    page.file_uploader[0].set_value((name, data, "application/json"))
    return drawn(page)


def test_an_export_is_made_on_request_and_offered_with_what_is_in_it(pages: Parts) -> None:
    page = upload(data_page(), EXPORT)
    page = click(page, "start-import")
    assert len(page.download_button) == 0
    page = click(page, "prepare-export")
    assert any("1 Chat, 2 Nachrichten, 1 Fakt, 1 Dokument." in text for text in texts_in(page.success))
    assert page.download_button[0].label == TEXTS("data.download", megabytes="0,1")
    prepared = page.session_state["export"]
    assert json.loads(prepared.read())["conversations"][0]["external_id"] == "one"
    # A second download has all of it, too.
    assert prepared.read() == prepared.read() != b""


def test_a_file_is_checked_first_and_imported_when_told_to(pages: Parts) -> None:
    tree = [node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer.")]
    page = upload(data_page(), [chatgpt(*tree), chatgpt(number="c2")])
    found = TEXTS("data.found", program=TEXTS("data.program_chatgpt"), what="2 Chats, 2 Nachrichten")
    assert texts_in(page.info) == [found]
    assert one(pages.database, "SELECT count(*) FROM conversations")[0] == 0
    page = click(page, "start-import")
    assert TEXTS("data.imported", what="1 Chat, 2 Nachrichten") in texts_in(page.success)
    assert TEXTS.counted("data.empty", 1) in texts_in(page.caption)
    assert one(pages.database, "SELECT count(*) FROM messages")[0] == 2
    wait_until(lambda: one(pages.database, "SELECT count(*) FROM exchanges")[0])
    page = drawn(page)
    assert any(TEXTS("data.searchable") in text for text in texts_in(page.caption))


def test_the_same_file_once_more_changes_nothing_and_says_so(pages: Parts) -> None:
    page = click(upload(data_page(), EXPORT), "start-import")
    page = upload(page, EXPORT)
    assert TEXTS.counted("data.known", 1) in texts_in(page.caption)
    page = click(page, "start-import")
    assert TEXTS("data.nothing_new") in texts_in(page.success)
    assert TEXTS.counted("data.facts_known", 1) in texts_in(page.caption)


def test_what_cannot_be_imported_is_named_and_there_is_no_button_for_it(pages: Parts) -> None:
    for content, error, details in (
        (b"Liebes Tagebuch", "ImportUnreadable", {}),
        ([1], "ImportUnknown", {}),
        (export_of(version=9), "ImportTooNew", {}),
        (export_of(facts=[{"content": 1}]), "ImportInvalid", {"field": plain("facts[0].content")}),
    ):
        page = upload(data_page(), content)
        assert texts_in(page.error) == [TEXTS.error(error, details)]
        assert "start-import" not in [button.key for button in page.button]


def test_an_import_that_fails_is_said_and_can_be_tried_again(pages: Parts, monkeypatch: Any) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseUnavailable

    page = upload(data_page(), EXPORT)
    with monkeypatch.context() as broken:
        broken.setattr(data_view, "import_file", fail)
        page = click(page, "start-import")
    assert texts_in(page.error) == [TEXTS.error("DatabaseUnavailable")]
    page = click(page, "start-import")
    assert one(pages.database, "SELECT count(*) FROM messages")[0] == 2


def test_the_file_is_not_read_again_on_every_run(pages: Parts, monkeypatch: Any) -> None:
    page = upload(data_page(), EXPORT)
    monkeypatch.setattr(data_view, "check_file", None)
    page = drawn(page)
    assert len(page.info) == 1


def test_the_command_line_is_named_for_what_is_too_large_here(pages: Parts) -> None:
    assert TEXTS("data.command_line") in texts_in(data_page().caption)

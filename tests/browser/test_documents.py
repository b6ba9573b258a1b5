"""The Documents page: files go in, are read, are asked about in a chat, and the source leads to the marked passage."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from jarvis_memory.prompts import Language
from tests.browser.app_process import AppProcess, running_app
from tests.browser.driver import PHONE, Visitor, visiting
from tests.demo_assistant import respond
from tests.document_files import pdf_of

LEASE = pdf_of(
    [
        "Mietvertrag\n\n§ 1 Mietsache\nVermietet wird die Wohnung im zweiten Stock der Lindenallee 5.",
        "§ 9 Kündigung\nDie Frist für eine Kündigung beträgt drei Monate zum Ende eines Monats.",
    ]
)


@pytest.fixture
def own_app(browser: Browser, folder: Path) -> Iterator[AppProcess]:
    """An app whose whole content this test knows."""
    with running_app(respond, folder) as app:
        yield app


def upload(visitor: Visitor, *files: tuple[str, bytes]) -> None:
    visitor.wait_until_drawn()
    chooser = visitor.page.get_by_test_id("stFileUploaderDropzoneInput").last
    chooser.set_input_files(
        [{"name": name, "mimeType": "application/octet-stream", "buffer": content} for name, content in files]
    )


def open_documents(visitor: Visitor) -> None:
    visitor.open("/documents")
    expect(visitor.main.get_by_text(visitor.texts("documents.intro"))).to_be_visible()


def row(visitor: Visitor, name: str) -> Locator:
    """The row of the document with this name."""
    rows = visitor.page.locator("[data-testid=stVerticalBlock][class*='st-key-document-']:not([class*=head])")
    button = visitor.page.get_by_role("button", name=name)
    return rows.filter(has=button)


def ready(visitor: Visitor, name: str) -> Locator:
    """The row, once the document can be found by its meaning, too."""
    found = row(visitor, name)
    expect(found.get_by_text(visitor.texts("documents.ready"))).to_be_visible()
    return found


def choose(visitor: Visitor, name: str, key: str) -> None:
    """Choose this from the menu of the document."""
    expect(row(visitor, name)).to_be_visible()
    visitor.wait_until_drawn()
    row(visitor, name).locator("[class*=st-key-menu-]").get_by_role("button").click()
    visitor.page.get_by_role("menuitem", name=visitor.texts(key)).click()


@pytest.mark.parametrize(("language", "options"), [("de", {}), ("en", PHONE)], ids=["desk", "phone"])
def test_a_contract_is_read_asked_about_and_opened_at_the_passage(
    browser: Browser, folder: Path, language: Language, options: dict[str, Any]
) -> None:
    question = {
        "de": "Was steht in meinen Dokumenten über Kündigung Frist?",
        "en": "What do my documents say about Kündigung Frist?",
    }
    with (
        running_app(respond, folder, JARVIS_LANGUAGE=language) as app,
        visiting(browser, app.address, language=language, **options) as tenant,
    ):
        open_documents(tenant)
        expect(tenant.main.get_by_text(tenant.texts("documents.none"))).to_be_visible()
        upload(tenant, ("Mietvertrag.pdf", LEASE), ("kaputt.pdf", b"%PDF-1.7 kaputt"), ("Notiz.txt", b"Brot kaufen"))
        expect(tenant.main.get_by_text(re.compile("Mietvertrag.pdf, kaputt.pdf, Notiz.txt"))).to_be_visible()
        expect(ready(tenant, "Mietvertrag.pdf")).to_contain_text(tenant.texts.counted("count.pages", 2))
        broken = tenant.texts.error("DocumentBroken", {"name": "kaputt.pdf"})
        expect(row(tenant, "kaputt.pdf").get_by_text(broken)).to_be_visible()
        tenant.expect_nothing_beside_the_screen()

        tenant.open_chat()
        answer = tenant.ask(question[language])
        expect(answer).to_contain_text("drei Monate")
        place = tenant.texts("documents.at_page", name="Mietvertrag.pdf", page=2)
        tenant.expect_nothing_beside_the_screen()
        answer.get_by_role("link", name=place).click()
        marked = tenant.page.locator(".st-key-passage-marked")
        expect(marked).to_contain_text("beträgt drei Monate")
        expect(marked).to_be_in_viewport()
        expect(tenant.main.get_by_text(tenant.texts("documents.page", page=2, pages=2)).first).to_be_visible()
        tenant.expect_nothing_beside_the_screen()
        tenant.page.locator(".st-key-page-back-top").get_by_role("button").click()
        expect(tenant.main.get_by_text("Lindenallee 5")).to_be_visible()
        expect(marked).to_have_count(0)
        with tenant.page.expect_download() as download:
            tenant.button("documents.download").click()
        assert download.value.suggested_filename == "Mietvertrag.pdf"
        assert Path(download.value.path()).read_bytes() == LEASE
        tenant.button("documents.all").click()
        expect(row(tenant, "Notiz.txt")).to_be_visible()


def test_a_namesake_is_asked_about_and_takes_the_place_of_the_old_version(
    browser: Browser, own_app: AppProcess
) -> None:
    with visiting(browser, own_app.address) as owner:
        open_documents(owner)
        upload(owner, ("Plan.txt", "Wir fahren nach Rügen.".encode()))
        ready(owner, "Plan.txt")
        upload(owner, ("Plan.txt", "Wir fahren nach Rügen.".encode()))
        expect(owner.main.get_by_text(owner.texts("documents.known", names="Plan.txt"))).to_be_visible()
        upload(owner, ("Plan.txt", b"Wir fahren nach Usedom."))
        owner.button("documents.replace").click()
        expect(owner.main.get_by_text(owner.texts("documents.added", names="Plan.txt"))).to_be_visible()
        owner.wait_until_drawn()
        expect(row(owner, "Plan.txt")).to_have_count(1)
        ready(owner, "Plan.txt")
        row(owner, "Plan.txt").get_by_role("button", name="Plan.txt").click()
        expect(owner.main.get_by_text("Usedom")).to_be_visible()
        # The same from the menu, and a version that cannot be read leaves the old one.
        owner.button("documents.all").click()
        choose(owner, "Plan.txt", "documents.version")
        expect(owner.dialog).to_be_visible()
        upload(owner, ("Plan.pdf", b"%PDF-1.7 kaputt"))
        expect(owner.dialog).to_have_count(0)
        expect(row(owner, "Plan.pdf")).to_contain_text("beschädigt")
        ready(owner, "Plan.txt")


def test_a_document_is_renamed_read_again_and_deleted(browser: Browser, own_app: AppProcess) -> None:
    with visiting(browser, own_app.address) as owner:
        open_documents(owner)
        upload(owner, ("Alt.md", b"# Fahrrad\n\nDie Rahmennummer ist WX 4711."))
        ready(owner, "Alt.md")
        choose(owner, "Alt.md", "documents.rename")
        owner.dialog.get_by_label(owner.texts("documents.name")).fill("Fahrradpass.md")
        owner.dialog.get_by_role("button", name=owner.texts("memory.save")).click()
        expect(row(owner, "Alt.md")).to_have_count(0)
        ready(owner, "Fahrradpass.md")
        choose(owner, "Fahrradpass.md", "documents.again")
        owner.wait_until_drawn()
        ready(owner, "Fahrradpass.md")
        owner.open_chat()
        answer = owner.ask("Was steht in meinen Dokumenten über Rahmennummer?")
        link = answer.get_by_role("link", name="Fahrradpass.md")
        address = link.get_attribute("href")
        open_documents(owner)
        choose(owner, "Fahrradpass.md", "documents.delete")
        owner.dialog.get_by_role("button", name=owner.texts("documents.delete")).click()
        receipt = owner.texts(
            "documents.deleted", name="Fahrradpass.md", passages=owner.texts.counted("count.passages", 1)
        )
        expect(owner.main.get_by_text(receipt)).to_be_visible()
        expect(owner.main.get_by_text(owner.texts("documents.none"))).to_be_visible()
        owner.open(f"/{address}")
        expect(owner.main.get_by_text(owner.texts.error("DocumentNotFound"))).to_be_visible()

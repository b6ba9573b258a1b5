"""The Documents page drawn without a browser: states, choices, the reader, and the sources under an answer."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.documents import list_documents
from jarvis_memory.ui import wiring
from jarvis_memory.ui.safe_markdown import plain
from tests.document_files import pdf_of
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import somebody_else, wait_until
from tests.integration.pages import CHAT, TEXTS, chat_page, click, drawn, texts_in
from tests.integration.test_documents import LEASE, Library
from tests.integration.turns import ask

LETTER = pdf_of(["Sehr geehrte Frau Anna.", "Die Kundennummer ist 4711.\n\nMit Gruß."])


@pytest.fixture
def library(pages: Parts) -> Library:
    return Library(pages.database, pages.user_id)


def documents_page(**address: object) -> AppTest:
    page = AppTest.from_file(str(CHAT), default_timeout=60).switch_page("pages/documents.py")
    for name, value in address.items():
        page.query_params[name] = str(value)
    return drawn(page)


def upload(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    page.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in files])
    return drawn(page)


def shown(page: AppTest) -> str:
    """All that is written on the page."""
    kinds = (page.markdown, page.caption, page.success, page.info, page.error)
    return "\n".join(text for kind in kinds for text in texts_in(kind))


def read(library: Library) -> None:
    """Wait for the background, which may be at it already."""
    wait_until(lambda: "waiting" not in [library.get(number).status for number in library.numbers()])


def test_without_documents_the_page_says_so_and_what_can_be_read(library: Library) -> None:
    page = documents_page()
    assert TEXTS("documents.none") in texts_in(page.info)
    assert TEXTS("documents.intro") in texts_in(page.caption)


def test_files_are_taken_and_each_that_cannot_be_says_why(library: Library) -> None:
    page = upload(documents_page(), ("Brief.pdf", LETTER), ("leer.txt", b""), ("Notiz.md", b"# Brot"))
    assert TEXTS("documents.added", names=f"{plain('Brief.pdf')}, {plain('Notiz.md')}") in texts_in(page.success)
    assert TEXTS.error("DocumentEmpty", {"name": plain("leer.txt")}) in texts_in(page.error)
    read(library)
    assert sorted(library.names()) == ["Brief.pdf", "Notiz.md"]
    # The page draws itself anew when they are read: the reason stays until it is closed.
    page = drawn(page)
    assert TEXTS.error("DocumentEmpty", {"name": plain("leer.txt")}) in texts_in(page.error)
    assert texts_in(page.success) == []
    assert texts_in(click(page, "close-taken").error) == []


def test_a_file_above_the_limit_is_refused_with_the_limit_and_the_setting(build: Callable[..., Parts]) -> None:
    wiring.hand_in(build(jarvis_document_megabytes=1))
    page = upload(documents_page(), ("gross.txt", b"x" * 1_000_001))
    [error] = texts_in(page.error)
    assert "höchstens 1 MB" in error
    assert "JARVIS_DOCUMENT_MEGABYTES" in error


def test_the_same_file_is_told_and_a_namesake_asked_about(library: Library) -> None:
    page = upload(documents_page(), ("Plan.txt", b"Erst"))
    page = upload(page, ("Plan.txt", b"Erst"))
    assert TEXTS("documents.known", names=plain("Plan.txt")) in texts_in(page.info)
    page = upload(page, ("Plan.txt", b"Dann"))
    assert TEXTS("documents.namesake", name=plain("Plan.txt")) in shown(page)
    page = click(page, "beside-1")
    assert library.names() == ["Plan.txt", "Plan.txt"]
    page = upload(page, ("Plan.txt", b"Zuletzt"))
    page = click(page, "drop-2")
    assert library.names() == ["Plan.txt", "Plan.txt"]
    assert not any((button.key or "").startswith("drop-") for button in page.button)


def test_a_list_shows_state_size_pages_and_date(library: Library) -> None:
    library.read("Brief.pdf", LETTER)
    library.read("kaputt.pdf", b"%PDF-1.7 kaputt")
    text = shown(documents_page())
    assert "PDF · 1 KB · 2 Seiten · " in text
    assert TEXTS.error("DocumentBroken", {"name": plain("kaputt.pdf")}) in text


def test_a_long_list_has_pages_and_a_search(library: Library) -> None:
    for number in range(25):
        library.add(f"Brief {number}.txt", f"Brief {number}")
    page = documents_page()
    assert sum((button.key or "").startswith("open-") for button in page.button) == 20
    page = click(page, "next-documents")
    assert sum((button.key or "").startswith("open-") for button in page.button) == 5
    page.text_input(key="search-documents").set_value("Brief 7")
    page = drawn(page)
    assert [button.label for button in page.button if (button.key or "").startswith("open-")] == [plain("Brief 7.txt")]


def test_a_document_opens_at_the_page_of_the_passage_and_marks_it(library: Library) -> None:
    number = library.read("Brief.pdf", LETTER)
    passage = library.search("Kundennummer")[0]
    page = documents_page(d=number, s=passage.id)
    assert TEXTS("documents.page", page=2, pages=2) in texts_in(page.markdown)
    assert "4711" in shown(page)
    assert "Sehr geehrte" not in shown(page)
    page = click(page, "page-back-top")
    assert "Sehr geehrte" in shown(page)
    assert page.query_params["p"] == "1"


def test_a_passage_that_is_gone_is_said_and_the_page_is_shown_all_the_same(library: Library) -> None:
    number = library.read("Brief.pdf", LETTER)
    page = documents_page(d=number, s=99_999, p=2)
    assert TEXTS("documents.passage_gone") in texts_in(page.info)
    assert "4711" in shown(page)


def test_a_document_without_pages_is_shown_in_parts(library: Library) -> None:
    number = library.read("lang.md", "\n\n".join(f"# Kapitel {n}\n\nInhalt von Kapitel {n}." for n in range(30)))
    page = documents_page(d=number, p=2)
    assert TEXTS("documents.part", page=2, pages=3) in texts_in(page.markdown)
    assert "Inhalt von Kapitel 12" in shown(page)
    assert "Inhalt von Kapitel 11" not in shown(page)


@pytest.mark.parametrize("address", [{"d": 4711}, {"d": 4711, "s": 1, "p": 3}])
def test_a_document_that_is_not_there_is_said(library: Library, address: dict[str, Any]) -> None:
    assert TEXTS.error("DocumentNotFound") in texts_in(documents_page(**address).info)


@pytest.mark.parametrize("nonsense", ["abc", "-1", "1.5", "99999999999"])
def test_nonsense_in_the_address_shows_the_list_or_the_first_page(library: Library, nonsense: str) -> None:
    assert TEXTS("documents.intro") in texts_in(documents_page(d=nonsense).caption)
    number = library.read("Brief.pdf", LETTER)
    assert "Sehr geehrte" in shown(documents_page(d=number, p=nonsense, s=nonsense))


def test_a_document_of_somebody_else_is_not_there(library: Library, pages: Parts) -> None:
    number = Library(pages.database, somebody_else(pages.database)).read("Brief.txt", "Geheim")
    page = documents_page(d=number)
    assert TEXTS.error("DocumentNotFound") in texts_in(page.info)
    assert "Geheim" not in shown(page)


def test_what_stands_in_a_document_is_shown_as_it_is_and_loads_nothing(library: Library) -> None:
    number = library.read("bild.txt", "![x](https://evil.example/x.png) <script>alert(1)</script> **fett** $1 $2")
    text = shown(documents_page(d=number))
    assert plain("![x](https://evil.example/x.png) <script>alert(1)</script> **fett** $1 $2") in text


def test_the_sources_that_an_answer_names_stand_under_it_as_links(
    library: Library, pages: Parts, claude: FakeClaude
) -> None:
    number = library.read("Brief.pdf", LETTER)
    library.read("Mietvertrag.md", LEASE)
    claude.say(
        [ToolUse("search_documents", {"query": "Kundennummer Miete Kündigung"}, id="toolu_a")],
        "Die Kundennummer ist 4711 (Brief.pdf, S. 2).",
    )
    answer = ask(pages, "Wie ist meine Kundennummer?")
    page = chat_page(answer.conversation_id)
    links = [link for link in page.get("page_link") if "documents" in link.proto.page]
    labels = [link.proto.label for link in links]
    place = TEXTS("documents.at_page", name=plain("Brief.pdf"), page=2)
    sources = [label for label in labels if label.startswith(place)]
    assert sources
    assert not any(plain("Mietvertrag.md") in label for label in labels), "it was found but is not named"
    [address] = {link.proto.query_string for link in links if link.proto.label in sources[:1]}
    assert f"d={number}" in address
    assert "p=2" in address
    assert TEXTS("documents.sources") in shown(page)


def test_an_answer_that_names_no_document_shows_what_was_found(
    library: Library, pages: Parts, claude: FakeClaude
) -> None:
    library.read("Mietvertrag.md", LEASE)
    claude.say([ToolUse("search_documents", {"query": "Miete"}, id="toolu_a")], "Die Miete beträgt 840 Euro.")
    page = chat_page(ask(pages, "Was kostet die Wohnung?").conversation_id)
    assert TEXTS("documents.found") in shown(page)
    # Without vectors, as long as there are none, it is one.
    assert any(TEXTS.counted("documents.searched", count, query="Miete") in shown(page) for count in (1, 2))


def test_sources_of_a_deleted_document_do_not_break_the_chat(
    library: Library, pages: Parts, claude: FakeClaude
) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    claude.say(
        [ToolUse("read_document", {"document_id": number, "pages": "1"}, id="toolu_a")], "Drei Monate (Mietvertrag.md)."
    )
    answer = ask(pages, "Wie lange ist die Frist?")
    library.delete(number)
    page = chat_page(answer.conversation_id)
    assert TEXTS("documents.sources") in shown(page)
    assert TEXTS("documents.read_pages", name=plain("Mietvertrag.md"), pages="1") in shown(page)


def test_a_document_can_be_deleted_with_a_receipt(library: Library, pages: Parts) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    page = documents_page()
    page.session_state["document_dialog"] = ("delete", number)
    page = click(drawn(page), "sure-document")
    with pages.database.begin() as connection:
        assert list_documents(connection, user_id=pages.user_id, embedding_model="x", limit=9) == []
    receipt = TEXTS("documents.deleted", name=plain("Mietvertrag.md"), passages=TEXTS.counted("count.passages", 2))
    assert receipt in texts_in(page.success)

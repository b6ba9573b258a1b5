"""The tools of the knowledge base, through `execute_tool` and through whole turns with the scripted Claude."""

import json
from typing import Any

import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.database import Database
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.errors import EmbeddingUnavailable
from jarvis_memory.pending_actions import load_pending_actions
from jarvis_memory.prompts import DOCUMENT_ASSISTANT_INSTRUCTIONS
from jarvis_memory.settings import Settings
from jarvis_memory.tools.documents import DOCUMENT_TOOLS
from jarvis_memory.tools.tool import RESULT_CHARACTERS, ToolContext, ToolResult, execute_tool
from tests.document_files import pdf_of
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import somebody_else
from tests.integration.test_documents import LEASE, MANUAL, Library
from tests.integration.turns import ask, chat_requests


class NoEmbeddings:
    """An embedding service that is down."""

    model = "test/down"

    def embed_query(self, text: str) -> list[float]:
        raise EmbeddingUnavailable

    def embed_passages(self, texts: object) -> list[list[float]]:
        raise EmbeddingUnavailable


@pytest.fixture
def library(database: Database, user_id: int) -> Library:
    return Library(database, user_id)


@pytest.fixture
def context(library: Library, encoder: Embeddings) -> ToolContext:
    return context_of(library, encoder)


def context_of(library: Library, embeddings: Embeddings, user_id: int = 0) -> ToolContext:
    return ToolContext(
        database=library.database,
        embeddings=embeddings,
        user_id=user_id or library.user_id,
        conversation_id=1,
        user_message_id=1,
        answer_message_id=2,
        settings=Settings(_env_file=None),
    )


def call(context: ToolContext, name: str, **arguments: Any) -> ToolResult:
    result = execute_tool(DOCUMENT_TOOLS, context, name, arguments)
    assert isinstance(result, ToolResult)
    assert len(result.content) <= RESULT_CHARACTERS
    if not result.is_error:
        assert json.loads(result.content) == result.data, "nothing was cut in the middle"
    return result


def test_a_search_tells_document_page_and_text(context: ToolContext, library: Library, encoder: Embeddings) -> None:
    number = library.read("Brief.pdf", pdf_of(["Anrede und Dank.", "Die Rechnung ist am 12. Mai zu zahlen."]))
    library.embed(encoder)
    passage = call(context, "search_documents", query="Wann muss die Rechnung bezahlt sein?").data["passages"][0]
    assert (passage["document_id"], passage["document"], passage["page"]) == (number, "Brief.pdf", 2)
    assert "12. Mai" in passage["text"]


def test_a_search_goes_on_by_words_while_the_embedding_service_is_down(library: Library) -> None:
    library.read("Anleitung.md", MANUAL)
    found = call(context_of(library, NoEmbeddings()), "search_documents", query="E18").data["passages"]
    assert [one["heading"] for one in found] == ["Waschmaschine › Fehler E18"]


def test_a_search_in_one_document_finds_nothing_of_the_others(context: ToolContext, library: Library) -> None:
    library.read("Mietvertrag.md", LEASE)
    library.read("Anleitung.md", MANUAL)
    found = call(context, "search_documents", query="Wasser Miete Schlauch", document="mietv").data["passages"]
    assert {one["document"] for one in found} == {"Mietvertrag.md"}


def test_of_an_exact_name_and_longer_ones_the_exact_one_is_searched(context: ToolContext, library: Library) -> None:
    library.read("Brief.md", "Der Brief an die Bank.")
    library.read("Brief.md.bak.md", "Der andere Brief an die Bank.")
    found = call(context, "search_documents", query="Brief Bank", document="brief.md").data["passages"]
    assert {one["document"] for one in found} == {"Brief.md"}


def test_who_names_a_document_that_is_not_there_is_told_those_that_are(context: ToolContext, library: Library) -> None:
    library.read("Mietvertrag.md", LEASE)
    result = call(context, "search_documents", query="Miete", document="Kaufvertrag")
    assert result.is_error
    assert "Mietvertrag.md" in result.content


def test_a_search_without_a_hit_tells_the_names_of_the_documents(context: ToolContext, library: Library) -> None:
    library.read("Mietvertrag.md", LEASE)
    data = call(context, "search_documents", query="Xylophon").data
    assert (data["passages"], data["documents"]) == ([], ["Mietvertrag.md"])
    assert call(context_of(library, NoEmbeddings(), somebody_else(library.database)), "search_documents", query="Miete")


def test_pages_are_read_as_they_are_asked_for(context: ToolContext, library: Library) -> None:
    number = library.read("Brief.pdf", pdf_of([f"Das ist die Seite Nummer {page}." for page in range(1, 6)]))

    def pages(said: str | None = None) -> list[int]:
        arguments = {} if said is None else {"pages": said}
        data = call(context, "read_document", document_id=number, **arguments).data
        assert (data["document"], data["pages"]) == ("Brief.pdf", 5)
        return [one["page"] for one in data["passages"]]

    assert pages() == [1, 2, 3, 4, 5]
    assert pages("3") == [3]
    assert pages("2-4") == [2, 3, 4]
    assert pages("4-9") == [4, 5]
    beginning = call(context, "read_document", document_id=number, pages="1-2").data
    assert "call again with pages 3-5" in beginning["message"]


def test_a_document_without_pages_is_read_by_its_passages(context: ToolContext, library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    data = call(context, "read_document", document_id=number, pages="1").data
    assert [(one["passage"], one["heading"]) for one in data["passages"]] == [(1, "Mietvertrag › § 9 Kündigung")]
    assert data["passages_in_all"] == 2


@pytest.mark.parametrize("pages", ["9", "0-1-2", "3-2", "x", "1.5", "-1"])
def test_pages_that_are_none_are_an_answer_for_claude(context: ToolContext, library: Library, pages: str) -> None:
    number = library.read("Brief.pdf", pdf_of(["Text eins.", "Text zwei."]))
    assert call(context, "read_document", document_id=number, pages=pages).is_error


def test_a_long_document_is_cut_at_a_passage_and_says_where_it_goes_on(context: ToolContext, library: Library) -> None:
    long = "\n\n".join(f"Absatz {number}: " + "Ein Satz mit einigen Wörtern. " * 22 for number in range(80))
    number = library.read("lang.txt", long)
    data = call(context, "read_document", document_id=number).data
    last = data["passages"][-1]["passage"]
    assert 0 < last < data["passages_in_all"] - 1
    assert f"from_passage {last + 1}." in data["message"]
    on = call(context, "read_document", document_id=number, from_passage=last + 1).data
    assert [one["passage"] for one in on["passages"]][:3] == [last + 1, last + 2, last + 3]


def test_a_page_that_is_longer_than_a_result_is_read_to_its_end(context: ToolContext, library: Library) -> None:
    sentences = "\n".join(f"Der Satz Nummer {number} steht auf einer langen Seite." for number in range(700))
    number, told, place = library.read("lang.pdf", pdf_of([sentences])), "", 0
    for _ in range(9):
        data = call(context, "read_document", document_id=number, pages="1", from_passage=place).data
        told += " ".join(one["text"] for one in data["passages"])
        place = data["passages"][-1]["passage"] + 1
        if "from_passage" not in data["message"]:
            break
    assert "Nummer 0 " in told
    assert "Nummer 699 " in told


def test_many_long_passages_stay_within_the_size_of_a_result(context: ToolContext, library: Library) -> None:
    # Each of these signs takes several characters in JSON.
    library.read("zeichen.txt", "\n\n".join('Wort "\\" ' * 70 for _ in range(12)))
    assert call(context, "search_documents", query="Wort", limit=10).data["passages"]


@pytest.mark.parametrize("state", ["unknown", "of somebody else", "not read yet"])
def test_a_document_that_cannot_be_read_on_is_an_answer_for_claude(
    context: ToolContext, library: Library, state: str
) -> None:
    stranger = Library(library.database, somebody_else(library.database))
    number = {
        "unknown": lambda: 4711,
        "of somebody else": lambda: stranger.read("Brief.txt", "Geheim"),
        "not read yet": lambda: library.add("Brief.txt", "Hallo"),
    }[state]()
    result = call(context, "read_document", document_id=number)
    assert result.is_error
    assert "Geheim" not in result.content


def test_claude_is_told_how_to_quote_and_gets_the_passages(parts: Parts, claude: FakeClaude) -> None:
    library = Library(parts.database, parts.user_id)
    library.read("Mietvertrag.md", LEASE)
    claude.say(ToolUse("search_documents", {"query": "Kündigung"}), "Drei Monate (Mietvertrag.md).")
    answer = ask(parts, "Wie lange ist die Kündigungsfrist?")
    first, second = chat_requests(claude)
    assert DOCUMENT_ASSISTANT_INSTRUCTIONS["de"] in first["system"][0]["text"]
    assert {"search_documents", "read_document"} <= {tool["name"] for tool in first["tools"]}
    assert "drei Monate" in str(second["messages"][-1])
    assert answer.blocks_of("tool")[0]["result"]["passages"][0]["document"] == "Mietvertrag.md"


def test_after_a_document_a_fact_is_remembered_only_with_a_click(parts: Parts, claude: FakeClaude) -> None:
    Library(parts.database, parts.user_id).read("Mietvertrag.md", LEASE)
    claude.say(
        ToolUse("search_documents", {"query": "Miete"}, id="toolu_a"),
        [ToolUse("remember_fact", {"fact": "Die Miete beträgt 840 Euro."}, id="toolu_b")],
    )
    answer = ask(parts, "Was kostet die Wohnung?")
    assert answer.status == "waiting"
    with parts.database.begin() as connection:
        [action] = load_pending_actions(connection, user_id=parts.user_id, message_ids=[answer.id])
    assert (action.tool, action.status) == ("remember_fact", "pending")

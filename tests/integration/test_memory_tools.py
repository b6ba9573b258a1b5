"""The tools of the memory, through `execute_tool`: what Claude gets for what it asks."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from jarvis_memory.conversations import create_conversation, insert_message
from jarvis_memory.database import Database
from jarvis_memory.embeddings import OllamaEmbeddings
from jarvis_memory.errors import DatabaseUnavailable, ToolError
from jarvis_memory.facts import count_memory_facts
from jarvis_memory.forgetting import undo_forgetting
from jarvis_memory.indexing import index_some
from jarvis_memory.settings import Settings
from jarvis_memory.tools.memory import MEMORY_TOOLS
from jarvis_memory.tools.tool import RESULT_CHARACTERS, Tool, ToolContext, ToolResult, execute_tool
from tests.fake_ollama import FakeOllama, server_error
from tests.integration.chats import excluded_of, said, somebody_else


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    with FakeOllama() as fake:
        yield fake


@pytest.fixture
def context(database: Database, user_id: int, ollama: FakeOllama) -> ToolContext:
    """A turn that is under way."""
    with database.begin() as connection:
        chat = create_conversation(connection, user_id=user_id)
        said_here = {"user_id": user_id, "conversation_id": chat}
        question = insert_message(connection, **said_here, role="user", content="Kannst du das bitte tun?")
        answer = insert_message(connection, **said_here, role="assistant", content="", status="interrupted")
    return ToolContext(
        database=database,
        embeddings=OllamaEmbeddings(ollama.base_url, "embeddinggemma"),
        user_id=user_id,
        conversation_id=chat,
        user_message_id=question,
        answer_message_id=answer,
        settings=Settings(),
    )


def use(context: ToolContext, name: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call that works."""
    result = execute_tool(MEMORY_TOOLS, context, name, arguments)
    assert not result.is_error, result.content
    assert json.loads(result.content) == result.data
    return result.data


def refused(context: ToolContext, name: str, arguments: dict[str, Any] | None) -> str:
    """The sentence of a call that does not work."""
    result = execute_tool(MEMORY_TOOLS, context, name, arguments)
    assert result.is_error
    assert result.data == {}
    return result.content


def count(context: ToolContext) -> int:
    with context.database.begin() as connection:
        return count_memory_facts(connection, user_id=context.user_id)


# --- remember_fact, update_fact ---------------------------------------------------------------------------


def test_remembering_says_what_was_stored_and_where_it_came_from(context: ToolContext) -> None:
    result = use(context, "remember_fact", fact=" Mein Hund\nheißt Bruno. ")
    assert result == {
        "remembered": True,
        "already_known": False,
        "fact_id": result["fact_id"],
        "fact": "Mein Hund heißt Bruno.",
        "message": "Remembered.",
    }
    use(context, "forget_fact", query="", fact_id=result["fact_id"])
    assert excluded_of(context.database, context.user_id, context.conversation_id) != []


def test_remembering_what_is_known_says_so_and_stores_nothing(context: ToolContext) -> None:
    first = use(context, "remember_fact", fact="Mein Hund heißt Bruno.")
    again = use(context, "remember_fact", fact="mein hund heißt BRUNO")
    assert again == {
        "remembered": False,
        "already_known": True,
        "fact_id": first["fact_id"],
        "fact": "Mein Hund heißt Bruno.",
        "message": "This was known already; nothing was stored twice.",
    }
    assert count(context) == 1


def test_updating_says_what_it_was_before(context: ToolContext) -> None:
    number = use(context, "remember_fact", fact="Mein Hund heißt Bruno")["fact_id"]
    assert use(context, "update_fact", fact_id=number, fact="Mein Hund heißt Rex") == {
        "updated": True,
        "fact_id": number,
        "fact": "Mein Hund heißt Rex",
        "former": "Mein Hund heißt Bruno",
    }


def test_an_update_that_cannot_be_is_an_answer_that_helps_on(context: ToolContext) -> None:
    dog = use(context, "remember_fact", fact="Mein Hund heißt Bruno")["fact_id"]
    cat = use(context, "remember_fact", fact="Meine Katze heißt Mimi")["fact_id"]
    assert refused(context, "update_fact", {"fact_id": 999, "fact": "Neu"}) == "There is no fact with the id 999."
    assert f"The fact {cat} says this already" in refused(
        context, "update_fact", {"fact_id": dog, "fact": "meine katze heißt mimi!"}
    )
    assert "1 to 1,000" in refused(context, "update_fact", {"fact_id": dog, "fact": " \n "})


# --- forget_fact ------------------------------------------------------------------------------------------


def test_forgetting_the_one_that_fits_names_the_chats_and_the_way_back(context: ToolContext) -> None:
    database, user_id = context.database, context.user_id
    chat = said(database, user_id, ("Bruno ist mein Hund", "Ja."), title="Der Hund", summary="Der Hund heißt Bruno.")
    number = use(context, "remember_fact", fact="Mein Hund heißt Bruno.")["fact_id"]
    result = use(context, "forget_fact", query="bruno")
    assert result == {
        "deleted": True,
        "content": "Mein Hund heißt Bruno.",
        "fact_id": number,
        "forgetting_id": result["forgetting_id"],
        "conversations": sorted(
            [
                {"id": chat, "title": "Der Hund"},
                {"id": context.conversation_id, "title": "Kannst du das bitte tun?"},
            ],
            key=lambda one: one["id"],
        ),
        "exchanges": 2,
        "message": "Forgotten, together with what earlier conversations said about it.",
    }
    restored = undo_forgetting(database, user_id=user_id, forgetting_id=result["forgetting_id"])
    assert restored.id == number


def test_when_several_facts_fit_all_are_listed_with_their_numbers(context: ToolContext) -> None:
    numbers = {
        fact: use(context, "remember_fact", fact=fact)["fact_id"] for fact in ("Bruno mag Käse", "Bruno mag Wurst")
    }
    result = use(context, "forget_fact", query="Bruno")
    assert sorted(result) == ["deleted", "matches", "message"]
    assert result["deleted"] is False
    assert {match["content"]: match["fact_id"] for match in result["matches"]} == numbers
    assert count(context) == 2
    assert use(context, "forget_fact", query="Bruno", fact_id=numbers["Bruno mag Käse"])["content"] == "Bruno mag Käse"
    assert use(context, "forget_fact", query="bruno mag wurst.")["deleted"] is True


def test_when_nothing_contains_the_query_the_most_similar_are_suggested_and_kept(context: ToolContext) -> None:
    for fact in ("Ich trinke grünen Tee", "Mein Hund heißt Bruno", "Mein Auto ist rot", *"ABCDEF"):
        use(context, "remember_fact", fact=fact)
    result = use(context, "forget_fact", query="Wie mein Hund heißt")
    assert (result["deleted"], result["matches"]) == (False, [])
    assert result["suggestions"][0]["content"] == "Mein Hund heißt Bruno"
    assert len(result["suggestions"]) <= 5
    assert count(context) == 9


def test_the_only_similar_fact_is_not_deleted_either(context: ToolContext) -> None:
    use(context, "remember_fact", fact="Mein Hund heißt Bruno")
    result = use(context, "forget_fact", query="Bruno ist ein Hund")
    assert (result["deleted"], result["matches"], len(result["suggestions"])) == (False, [], 1)
    assert count(context) == 1


@pytest.mark.parametrize("query", ["", "  ", "%", "_", "*", "\\"])
def test_a_blank_query_or_one_of_wildcards_deletes_nothing(context: ToolContext, query: str) -> None:
    use(context, "remember_fact", fact="Mein Hund heißt Bruno")
    result = use(context, "forget_fact", query=query)
    assert (result["deleted"], result["matches"]) == (False, [])
    assert count(context) == 1


def test_suggestions_come_by_words_when_the_embedding_service_is_down(context: ToolContext, ollama: FakeOllama) -> None:
    use(context, "remember_fact", fact="Mein Hund heißt Bruno")
    ollama.always = server_error()
    assert len(use(context, "forget_fact", query="alles über Hunde")["suggestions"]) == 1
    assert use(context, "search_memory", query="Hund")["facts"] != []


# --- search_memory ----------------------------------------------------------------------------------------


def embed_all(context: ToolContext) -> None:
    while index_some(context.database, context.embeddings):
        pass


@pytest.mark.parametrize("service_is_down", [False, True])
def test_a_search_finds_facts_and_conversations_but_not_the_running_one(
    context: ToolContext, ollama: FakeOllama, service_is_down: bool
) -> None:
    database, user_id = context.database, context.user_id
    trip = said(database, user_id, ("Rom?", "Ja."), title="Reise nach Rom", summary="Die Reise nach Rom ist im Mai.")
    said(database, user_id, ("Auto?", "Ja."), title="Auto", summary="Das rote Auto.")
    other = somebody_else(database)
    said(database, other, ("Rom?", "Ja."), title="Fremde Reise nach Rom", summary="Reise nach Rom.")
    said(
        database,
        user_id,
        ("Rom?", "Ja."),
        conversation_id=context.conversation_id,
        title="Läuft",
        summary="Reise nach Rom.",
    )
    number = use(context, "remember_fact", fact="Rom ist meine Lieblingsstadt")["fact_id"]
    embed_all(context)
    if service_is_down:
        ollama.always = server_error()
    result = use(context, "search_memory", query="Reise nach Rom", limit=1)
    assert result["facts"] == [{"fact_id": number, "content": "Rom ist meine Lieblingsstadt"}]
    (conversation,) = result["conversations"]
    assert conversation == {
        "id": trip,
        "title": "Reise nach Rom",
        "date": conversation["date"],
        "summary": "Die Reise nach Rom ist im Mai.",
        "excerpt": "" if service_is_down else "Rom?\nJa.",
    }
    found = use(context, "search_memory", query="Reise nach Rom", limit=20)["conversations"]
    assert "Fremde Reise nach Rom" not in [one["title"] for one in found]
    assert "Läuft" not in [one["title"] for one in found]


def test_a_search_in_an_empty_memory_finds_nothing(context: ToolContext) -> None:
    result = use(context, "search_memory", query="Hund")
    assert (result["facts"], result["conversations"]) == ([], [])


# --- arguments and failures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("remember_fact", {}, "'fact' is a required property"),
        ("remember_fact", {"fact": 7}, "Bad arguments at fact"),
        ("remember_fact", {"fact": ""}, "Bad arguments at fact"),
        ("remember_fact", {"fact": "x" * 1001}, "Bad arguments at fact"),
        ("remember_fact", {"fact": " \x00 "}, "1 to 1,000 characters"),
        ("remember_fact", {"fact": "Ja", "origin": "mail"}, "'origin' was unexpected"),
        ("update_fact", {"fact": "Ja"}, "'fact_id' is a required property"),
        ("update_fact", {"fact_id": "1", "fact": "Ja"}, "Bad arguments at fact_id"),
        ("update_fact", {"fact_id": True, "fact": "Ja"}, "Bad arguments at fact_id"),
        ("update_fact", {"fact_id": 2**63, "fact": "Ja"}, "Bad arguments at fact_id"),
        ("forget_fact", {"fact_id": 1}, "'query' is a required property"),
        ("forget_fact", {"query": None}, "Bad arguments at query"),
        ("forget_fact", {"query": "x", "fact_id": 0}, "Bad arguments at fact_id"),
        ("search_memory", {"query": "x", "limit": 21}, "Bad arguments at limit"),
        ("search_memory", {"query": "x", "limit": 0}, "Bad arguments at limit"),
        ("search_memory", {"query": ["x"]}, "Bad arguments at query"),
        ("search_memory", None, "not readable JSON"),
        ("delete_everything", {}, "no tool named 'delete_everything'"),
    ],
)
def test_bad_arguments_are_an_answer_for_claude(
    context: ToolContext, name: str, arguments: dict[str, Any] | None, says: str
) -> None:
    message = refused(context, name, arguments)
    assert says in message
    assert len(message) < 500
    assert count(context) == 0


def test_whole_numbers_written_with_a_point_are_taken(context: ToolContext) -> None:
    number = use(context, "remember_fact", fact="Ich mag Tee")["fact_id"]
    assert use(context, "update_fact", fact_id=float(number), fact="Ich mag Kaffee")["fact_id"] == number
    assert use(context, "search_memory", query="Kaffee", limit=2.0)["facts"] != []


@pytest.mark.parametrize("query", ["\x00", "'", '"; DROP TABLE users; --', "& | ! ( :* <->", "🐶", "\\", "x" * 500])
def test_any_text_can_be_searched_for(context: ToolContext, query: str) -> None:
    use(context, "remember_fact", fact="Ich mag Tee")
    use(context, "search_memory", query=query)
    use(context, "forget_fact", query=query)
    assert count(context) == 1


def test_the_descriptions_for_claude_are_sorted_and_closed(context: ToolContext) -> None:
    assert [tool.name for tool in MEMORY_TOOLS] == sorted(tool.name for tool in MEMORY_TOOLS)
    for tool in MEMORY_TOOLS:
        assert sorted(tool.for_claude()) == ["description", "input_schema", "name"]
        assert tool.input_schema["additionalProperties"] is False


def made_of(run_tool: Any) -> Tool:
    return Tool(name="made", description="…", input_schema={"type": "object"}, run=run_tool)


def raises(error: Exception) -> Tool:
    def run_tool(*_: Any) -> dict[str, Any]:
        raise error

    return made_of(run_tool)


def test_an_exception_in_a_tool_is_an_error_for_claude_and_a_line_in_the_log(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = execute_tool([raises(ZeroDivisionError("geheim"))], context, "made", {})
    assert result.is_error
    assert "geheim" not in result.content
    assert "ZeroDivisionError: geheim" in caplog.text


@pytest.mark.parametrize("returned", [{"x": object()}, ["no", "object"], None])
def test_a_result_that_is_no_json_object_is_a_failure_of_the_tool(context: ToolContext, returned: Any) -> None:
    assert execute_tool([made_of(lambda *_: returned)], context, "made", {}).is_error


def test_what_a_tool_says_on_purpose_is_passed_on(context: ToolContext) -> None:
    result = execute_tool([raises(ToolError("Ask for the year."))], context, "made", {})
    assert result == ToolResult(content="Ask for the year.", is_error=True)


def test_an_unreachable_database_is_raised(context: ToolContext) -> None:
    with pytest.raises(DatabaseUnavailable):
        execute_tool([raises(DatabaseUnavailable())], context, "made", {})


def test_a_lost_connection_is_raised_too(context: ToolContext, database: Database) -> None:
    def kill(*_: Any) -> dict[str, Any]:
        with database.begin() as connection:
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        return {}

    with pytest.raises(DatabaseUnavailable):
        execute_tool([made_of(kill)], context, "made", {})


def test_a_result_is_capped_and_cleaned(context: ToolContext) -> None:
    tool = made_of(lambda *_: {"text": "a\x00b\ud800c" + "x" * 50_000})
    result = execute_tool([tool], context, "made", {})
    assert result.content.startswith('{"text": "abcxxx')
    assert result.content.endswith("… (cut)")
    assert len(result.content) <= RESULT_CHARACTERS + 10
    assert result.data["text"].startswith("abcxxx")


def test_a_large_memory_gives_a_whole_result_below_the_cap(context: ToolContext) -> None:
    for number in range(25):
        use(context, "remember_fact", fact=f"Bruno {number} " + "x" * 300)
    assert len(use(context, "forget_fact", query="Bruno")["matches"]) == 20

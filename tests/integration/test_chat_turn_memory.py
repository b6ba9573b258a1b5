"""What a turn sends to Claude, block by block: instructions, facts, recalled conversations, date, earlier turns."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jarvis_memory import history_cut, turn_request
from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import Message, load_sent
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.embeddings import OllamaEmbeddings
from jarvis_memory.facts import remember_fact
from jarvis_memory.forgetting import forget_fact
from jarvis_memory.prompts import DOCUMENT_ASSISTANT_INSTRUCTIONS, MEMORY_ASSISTANT_INSTRUCTIONS, Language
from jarvis_memory.summaries import pending_conversations
from tests.fake_claude import FakeClaude, Reply, ToolUse
from tests.fake_ollama import FakeOllama
from tests.fake_ollama import server_error as embedding_fails
from tests.integration.chats import one, ready_to_be_recalled, run, said, summarised, summary_of, wait_until
from tests.integration.turns import ask, chat_requests, errors_of, notices_of, plain, texts_of

QUESTION = "Was frisst mein Hund Bruno gern?"
SECRETS = ["schluessel", "Wasserkocher", "Staubsauger", "Toaster", "Mixer", "Ofen", "Kuehlschrank", "Waschmaschine"]
SUMMARY = "Der Hund Bruno frisst gern Käse."


def instructions_in(language: Language) -> str:
    """What Claude is told where neither calendar nor mail is set up."""
    return f"{MEMORY_ASSISTANT_INSTRUCTIONS[language]}\n\n{DOCUMENT_ASSISTANT_INSTRUCTIONS[language]}"


@pytest.fixture(autouse=True)
def nothing_is_refused(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def earlier_chat(parts: Parts, summary: str = SUMMARY, title: str = "Der Hund") -> int:
    """A conversation of another day, summarised and ready to be recalled."""
    chat = said(parts.database, parts.user_id, ("Bruno frisst Käse", "Schön."), title=title, summary=summary)
    ready_to_be_recalled(parts)
    return chat


def texts_in(message: dict[str, Any]) -> list[str]:
    return [block["text"] for block in message["content"]]


def recalled_in(request: dict[str, Any]) -> list[str]:
    """The recalled blocks of a request, oldest first."""
    texts = [text for message in request["messages"] for text in texts_in(message)]
    return [text for text in texts if text.startswith("<recalled_conversations>")]


def sent_for(parts: Parts, answer: Message) -> Any:
    with parts.database.begin() as connection:
        return load_sent(connection, user_id=parts.user_id, message_id=answer.id)


# --- the system role --------------------------------------------------------------------------------------


def test_the_system_role_holds_instructions_and_facts_cached_and_nothing_that_changes(
    parts: Parts, claude: FakeClaude
) -> None:
    fact, _ = remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
    earlier_chat(parts)
    ask(parts, QUESTION)
    ask(parts, "Wie wird das Wetter morgen?")
    first, second = chat_requests(claude)
    assert first["system"] == second["system"]
    instructions, facts = first["system"]
    assert instructions["text"] == instructions_in("de")
    assert facts["text"] == f"Bekannte Fakten ueber den Nutzer:\n- [{fact.id}] Ich wohne in Bonn"
    assert [block["cache_control"] for block in first["system"]] == [{"type": "ephemeral"}] * 2
    assert not re.search(r"20\d\d|\d\d:\d\d", facts["text"])


def test_the_tools_are_sorted_by_name(parts: Parts, claude: FakeClaude) -> None:
    ask(parts, QUESTION)
    names = [tool["name"] for tool in chat_requests(claude)[0]["tools"]]
    documents = ["read_document", "search_documents"]
    assert names == sorted(["forget_fact", "remember_fact", "search_memory", "update_fact", *documents])


def test_in_english_everything_that_jarvis_writes_is_english(build: Callable[..., Parts], claude: FakeClaude) -> None:
    parts = build(jarvis_language="en", jarvis_time_zone="Europe/London")
    ask(parts, "What does my dog eat?")
    request = chat_requests(claude)[0]
    assert request["system"][0]["text"] == instructions_in("en")
    assert request["system"][1]["text"] == "Known facts about the user:\n(none yet)"
    assert re.fullmatch(
        r"<context>\w+day, \d+ \w+ 20\d\d, \d\d:\d\d \(Europe/London\)</context>", texts_in(request["messages"][0])[0]
    )


# --- with the message -------------------------------------------------------------------------------------


def test_recalled_conversations_and_the_date_go_in_front_of_the_users_own_text(
    parts: Parts, claude: FakeClaude
) -> None:
    chat = earlier_chat(parts)
    answer = ask(parts, QUESTION)
    recalled, now, text = texts_in(chat_requests(claude)[0]["messages"][0])
    assert recalled.startswith("<recalled_conversations>")
    assert f'<conversation id="{chat}" title="Der Hund"' in recalled
    assert SUMMARY in recalled
    assert now.startswith("<context>")
    assert text == QUESTION
    memory = answer.blocks_of("memory")[0]
    assert [one["id"] for one in memory["conversations"]] == [chat]


def test_the_record_of_what_was_sent_is_what_claude_got(parts: Parts, claude: FakeClaude) -> None:
    remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
    earlier_chat(parts)
    first = ask(parts, QUESTION)
    second = ask(parts, "Und morgen?", conversation_id=first.conversation_id)
    for answer, request in zip((first, second), chat_requests(claude), strict=True):
        sent = sent_for(parts, answer)
        assert sent["model"] == request["model"]
        assert sent["system"] == [block["text"] for block in request["system"]]
        assert sent["messages"] == len(request["messages"])
    assert sent_for(parts, first)["recalled"] == recalled_in(chat_requests(claude)[0])[0]
    assert sent_for(parts, second)["recalled"] is None


def test_a_later_turn_begins_with_the_very_same_bytes(parts: Parts, claude: FakeClaude) -> None:
    """So the second turn reads the first one from the cache."""
    earlier_chat(parts)
    claude.say(["Ich sehe nach.", ToolUse("search_memory", {"query": "Hund"})], "Käse.", "Gern.")
    chat = ask(parts, QUESTION).conversation_id
    run(parts.database, "UPDATE conversation_summaries SET summary = 'Jetzt etwas anderes.'")
    ask(parts, "Danke", conversation_id=chat)
    first, second = chat_requests(claude)[0], chat_requests(claude)[-1]
    assert json.dumps(plain(second["messages"])[:1]) == json.dumps(plain(first["messages"]))
    assert plain(second["messages"])[1] == ("assistant", ["Ich sehe nach.\n\nKäse."])
    assert texts_in(second["messages"][2])[-1] == "Danke"
    assert len(second["messages"]) == 3


def test_a_conversation_that_was_recalled_in_this_chat_is_not_sent_again(parts: Parts, claude: FakeClaude) -> None:
    earlier_chat(parts)
    chat = ask(parts, QUESTION).conversation_id
    other = earlier_chat(parts, "Die Katze Minka trinkt Milch.", "Die Katze")
    ask(parts, "Und was trinkt die Katze Minka, die beim Hund Bruno wohnt?", conversation_id=chat)
    first, second = recalled_in(chat_requests(claude)[-1])
    assert [first] == recalled_in(chat_requests(claude)[0])
    assert f'id="{other}"' in second
    assert SUMMARY not in second
    ask(parts, QUESTION, conversation_id=chat)
    assert recalled_in(chat_requests(claude)[-1]) == [first, second]


def test_what_a_deleted_chat_said_is_not_replayed_in_the_chat_that_recalled_it(
    parts: Parts, claude: FakeClaude
) -> None:
    earlier = earlier_chat(parts)
    first = ask(parts, QUESTION)
    with parts.database.begin() as connection:
        delete_conversation(connection, user_id=parts.user_id, conversation_id=earlier)
    ask(parts, "Danke", conversation_id=first.conversation_id)
    assert SUMMARY not in json.dumps(chat_requests(claude)[-1], ensure_ascii=False)
    assert SUMMARY not in json.dumps(sent_for(parts, first), ensure_ascii=False)


def test_a_greeting_recalls_nothing_and_the_facts_are_there_all_the_same(parts: Parts, claude: FakeClaude) -> None:
    remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
    earlier_chat(parts)
    ask(parts, "Hallo")
    request = chat_requests(claude)[0]
    assert recalled_in(request) == []
    assert "Bonn" in request["system"][1]["text"]


def test_a_fact_of_one_chat_is_known_in_the_next(parts: Parts, claude: FakeClaude) -> None:
    claude.say(ToolUse("remember_fact", {"fact": "Mein Hund heißt Bruno"}), "Gemerkt.")
    ask(parts, "Merk dir, dass mein Hund Bruno heißt")
    ask(parts, "Wie heißt mein Hund?")
    assert "Mein Hund heißt Bruno" in chat_requests(claude)[-1]["system"][1]["text"]


def test_what_one_chat_was_about_is_recalled_in_the_next(parts: Parts, claude: FakeClaude) -> None:
    claude.say_to_summary(f"Titel: Der Hund\nZusammenfassung: {SUMMARY}")
    chat = ask(parts, "Mein Hund Bruno frisst gern Käse").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.embedding_model)
    ask(parts, QUESTION)
    assert SUMMARY in recalled_in(chat_requests(claude)[-1])[0]


def test_a_temporary_chat_knows_the_memory_and_leaves_no_trace_in_it(parts: Parts, claude: FakeClaude) -> None:
    earlier_chat(parts)
    temporary = ask(parts, QUESTION, remember=False).conversation_id
    assert SUMMARY in recalled_in(chat_requests(claude)[0])[0]
    # A chat that comes later is summarised: so the background has been past the temporary one.
    later = ask(parts, "Meine Katze Minka trinkt Milch").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, later)) and row.embedding_model)
    assert summary_of(parts.database, temporary) is None
    with parts.database.begin() as connection:
        assert pending_conversations(connection) == []
    assert not any(QUESTION in json.dumps(request) for request in claude.requests if not request.get("tools"))
    ask(parts, QUESTION)
    assert f'id="{temporary}"' not in recalled_in(chat_requests(claude)[-1])[0]


# --- when a part is missing -------------------------------------------------------------------------------


def test_without_embeddings_the_turn_goes_on_with_facts_and_words(
    build: Callable[..., Parts], claude: FakeClaude
) -> None:
    with FakeOllama() as ollama:
        ollama.always = embedding_fails()
        parts = build(embeddings=OllamaEmbeddings(ollama.base_url, "embeddinggemma"))
        remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
        said(parts.database, parts.user_id, ("Bruno", "Ja."), title="Der Hund", summary=SUMMARY)
        claude.say(ToolUse("search_memory", {"query": "Bruno"}), "Käse.")
        answer = ask(parts, QUESTION)
    assert (answer.content, answer.status, errors_of(answer)) == ("Käse.", "complete", [])
    assert SUMMARY in recalled_in(chat_requests(claude)[0])[0]
    assert "Bonn" in chat_requests(claude)[0]["system"][1]["text"]
    assert answer.blocks_of("tool")[0]["result"]["conversations"][0]["summary"] == SUMMARY


def long_chat(parts: Parts, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    """A chat of which about ten exchanges are sent."""
    monkeypatch.setattr(turn_request, "history_budget", lambda window: 1_000)
    exchanges = [(f"Frage {n} ".ljust(40, "."), f"Antwort {n} ".ljust(40, ".")) for n in range(20)]
    return said(parts.database, parts.user_id, *exchanges, **options)


def beginning(claude: FakeClaude) -> list[str]:
    """The texts of the first message of the last request."""
    role, texts = plain(chat_requests(claude)[-1]["messages"])[0]
    assert role == "user"
    return texts


def test_a_long_chat_is_sent_from_a_message_of_the_user_on_with_the_summary_of_what_was_cut_in_front(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = long_chat(parts, monkeypatch, summary="Es ging um <viele> Fragen.")
    answer = ask(parts, "Frage 20", conversation_id=chat)
    earlier, question = beginning(claude)
    assert question.startswith("Frage 14 ")
    assert earlier.startswith("<earlier_in_this_chat>\nDer Anfang dieses Chats (28 Nachrichten)")
    assert "Es ging um &lt;viele&gt; Fragen." in earlier
    with parts.database.begin() as connection:
        sent = load_sent(connection, user_id=parts.user_id, message_id=answer.id)
    assert sent and sent["earlier"] == earlier
    assert sent["messages"] == 13


def test_the_cut_stays_where_it_is_so_that_the_prompt_is_read_from_the_cache(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = long_chat(parts, monkeypatch, summary="Es ging um viele Fragen.")
    ask(parts, "Frage 20", conversation_id=chat)
    first = chat_requests(claude)[-1]["messages"]
    summarised(parts.database, parts.user_id, chat, "Jetzt etwas anderes.")
    ask(parts, "Frage 21", conversation_id=chat)
    second = chat_requests(claude)[-1]["messages"]
    assert json.dumps(second[:12]) == json.dumps(first[:12])
    for number in range(22, 30):
        ask(parts, f"Frage {number} ".ljust(40, "."), conversation_id=chat)
    assert "Frage 14 " not in json.dumps(chat_requests(claude)[-1])
    [earlier] = [text for text in beginning(claude) if "earlier_in_this_chat" in text]
    assert earlier.count("Zusammenfassung") + earlier.count("Darum ging es") <= 1


def test_a_chat_without_a_summary_says_that_its_beginning_is_missing(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = long_chat(parts, monkeypatch, remember=False)
    ask(parts, "Frage 20", conversation_id=chat)
    sentence = "Der Anfang dieses Chats (28 Nachrichten) steht hier nicht mehr."
    assert beginning(claude)[0] == f"<earlier_in_this_chat>\n{sentence}\n</earlier_in_this_chat>"


def test_a_chat_of_more_messages_than_are_loaded_is_cut_too(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (turn_request, history_cut):
        monkeypatch.setattr(module, "MOST_MESSAGES", 6)
    chat = said(parts.database, parts.user_id, *((f"Frage {n}", f"Antwort {n}") for n in range(10)))
    assert ask(parts, "Frage 10", conversation_id=chat).status == "complete"
    assert [text for text in beginning(claude) if text.startswith("Frage")] == ["Frage 9"]
    assert "(18 Nachrichten)" in beginning(claude)[0]


def test_what_a_forgotten_fact_said_leaves_the_beginning_too(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_request, "history_budget", lambda window: 300)
    exchanges = [
        ("Mein Hund Bruno frisst gern Käse", "Schön."),
        *((f"Frage {n}".ljust(60, "."), "Ja.") for n in range(9)),
    ]
    chat = said(parts.database, parts.user_id, *exchanges, summary="Der Hund Bruno frisst gern Käse.")
    remember_fact(parts.database, user_id=parts.user_id, fact="Mein Hund Bruno frisst gern Käse")
    answer = ask(parts, "Und nun?", conversation_id=chat)
    assert "Käse" in beginning(claude)[0]
    forget_fact(parts.database, user_id=parts.user_id, query="Käse")
    with parts.database.begin() as connection:
        sent = load_sent(connection, user_id=parts.user_id, message_id=answer.id)
    assert "Käse" not in json.dumps(sent, ensure_ascii=False)
    ask(parts, "Und jetzt?", conversation_id=chat)
    assert "Käse" not in json.dumps(chat_requests(claude)[-1], ensure_ascii=False)


def test_neither_texts_nor_keys_reach_the_log(
    build: Callable[..., Parts], claude: FakeClaude, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    parts = build(anthropic_api_key="geheimer-schluessel")
    earlier_chat(parts, "Zusammenfassung mit Wasserkocher")
    claude.say(
        ["Antwort mit Staubsauger", ToolUse("remember_fact", {"fact": "Fakt mit Toaster"}), ToolUse("zaubern", {})],
        Reply("Schluss mit Mixer", stop_reason="refusal"),
    )
    claude.say_to_summary("Titel: Ofen\nZusammenfassung: Es ging um den Kuehlschrank.")
    answer = ask(parts, "Frage mit Waschmaschine")
    assert notices_of(answer) == ["refusal"]
    wait_until(lambda: (row := summary_of(parts.database, answer.conversation_id)) and row.summary)
    assert len(texts_of(parts, answer.conversation_id)) == 2
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1
    assert "Answer of claude-sonnet-5-5" in caplog.text, "the log is being read"
    for word in SECRETS:
        assert word not in caplog.text

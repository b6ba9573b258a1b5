"""What a chat may know and what becomes of it: the memory switched off and on, and temporary chats."""

import json
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from jarvis_memory import background as background_module
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import start_turn
from jarvis_memory.conversations import ConversationOptions, list_conversations
from jarvis_memory.database import Database
from jarvis_memory.errors import ConversationNotFound
from jarvis_memory.facts import remember_fact
from jarvis_memory.memory_switch import switch_memory
from jarvis_memory.recall import search_conversations
from jarvis_memory.summaries import pending_conversations
from jarvis_memory.temporary_chats import (
    UNSEEN_MINUTES,
    close_temporary_chat,
    delete_unseen_temporary_chats,
    see_temporary_chat,
)
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import indexed, messages_of, one, run, said, somebody_else, summary_of, wait_until
from tests.integration.turns import ask, chat_requests, held, texts_of

DOG = ("Mein Hund Bruno frisst gern Käse", "Das klingt nach einem Genießer.")
SUMMARY = "Der Hund Bruno frisst gern Käse."


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def switch(database: Database, user_id: int, chat: int, *, on: bool) -> None:
    with database.begin() as connection:
        switch_memory(connection, user_id=user_id, conversation_id=chat, on=on)


def recalled(database: Database, user_id: int, query: str) -> list[int]:
    with database.begin() as connection:
        found = search_conversations(
            connection, user_id=user_id, query=query, embedding=[1.0] + [0.0] * 767, embedding_model="test/one", limit=9
        )
    return [conversation.id for conversation in found]


def tools_of(request: dict) -> list[str]:
    return [tool["name"] for tool in request.get("tools", [])]


# --- the switch -------------------------------------------------------------------------------------------


def test_a_chat_without_memory_gets_no_facts_no_earlier_chats_and_no_tools_for_them(
    parts: Parts, claude: FakeClaude
) -> None:
    said(parts.database, parts.user_id, DOG, summary=SUMMARY)
    remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
    ask(parts, "Was frisst mein Hund Bruno gern?", remember=False, reads_memory=False)
    request = chat_requests(claude)[-1]
    assert "Bonn" not in json.dumps(request)
    assert "Käse" not in json.dumps(request, ensure_ascii=False)
    assert len(request["system"]) == 1
    assert "ist das Gedächtnis ausgeschaltet" in request["system"][0]["text"]
    assert tools_of(request) == ["read_document", "search_documents"], "documents are no memory"


def test_a_tool_that_claude_was_not_offered_does_not_run(parts: Parts, claude: FakeClaude) -> None:
    claude.say(ToolUse("remember_fact", {"fact": "Ich wohne in Bonn"}), "Geht hier nicht.")
    answer = ask(parts, "Merk dir, dass ich in Bonn wohne", remember=False, reads_memory=True, temporary=True)
    assert answer.blocks_of("tool")[0]["is_error"]
    assert one(parts.database, "SELECT * FROM memory_facts") is None


def test_switched_off_a_chat_leaves_the_memory_with_everything_and_comes_back_when_switched_on(
    database: Database, user_id: int
) -> None:
    chat = said(database, user_id, DOG, title="Hund", summary=SUMMARY)
    other = said(database, user_id, ("Was frisst Bruno?", "Käse."), summary="Eine Frage.")
    indexed(database)
    assert chat in recalled(database, user_id, "Käse")
    run(
        database,
        """UPDATE messages SET blocks = jsonb_build_array(jsonb_build_object('type', 'recalled', 'text', 'Käse',
               'conversations', jsonb_build_array(jsonb_build_object('id', CAST(:chat AS int)))))
           WHERE conversation_id = :other AND role = 'user'""",
        chat=chat,
        other=other,
    )
    switch(database, user_id, chat, on=False)
    indexed(database)
    assert recalled(database, user_id, "Käse") == [other]
    assert summary_of(database, chat) is None
    for table in ("exchanges", "conversation_words"):
        assert one(database, f"SELECT count(*) AS n FROM {table} WHERE conversation_id = :chat", chat=chat).n == 0
    assert one(database, "SELECT words FROM conversations WHERE id = :chat", chat=chat).words == 0
    assert messages_of(database, user_id, other)[0].blocks == [], "no chat sends it on"
    with database.begin() as connection:
        assert pending_conversations(connection) == [], "nor is it summarised"
    assert [message.content for message in messages_of(database, user_id, chat)] == list(DOG), "the chat is readable"
    switch(database, user_id, chat, on=True)
    indexed(database)
    assert chat in recalled(database, user_id, "Käse")
    with database.begin() as connection:
        assert pending_conversations(connection) == [chat]


def test_switched_off_in_mid_chat_what_was_recalled_before_goes_along_no_more(parts: Parts, claude: FakeClaude) -> None:
    said(parts.database, parts.user_id, DOG, summary=SUMMARY)
    chat = ask(parts, "Was frisst mein Hund Bruno gern?").conversation_id
    assert "Käse" in json.dumps(chat_requests(claude)[-1], ensure_ascii=False)
    switch(parts.database, parts.user_id, chat, on=False)
    ask(parts, "Und sonst?", conversation_id=chat)
    assert "Käse" not in json.dumps(chat_requests(claude)[-1], ensure_ascii=False)


def test_a_summary_that_was_being_written_does_not_bring_it_back(parts: Parts, claude: FakeClaude) -> None:
    summary, started, release = held(f"Titel: Hund\nZusammenfassung: {SUMMARY}")
    claude.say_to_summary(summary)
    chat = ask(parts, DOG[0]).conversation_id
    assert started.wait(60)
    switch(parts.database, parts.user_id, chat, on=False)
    release.set()
    wait_until(lambda: not parts.background._at_work)
    assert summary_of(parts.database, chat) is None


def test_nobody_switches_somebody_else_s_chat(database: Database, user_id: int) -> None:
    chat = said(database, user_id, DOG, summary=SUMMARY)
    with pytest.raises(ConversationNotFound):
        switch(database, somebody_else(database), chat, on=False)
    assert summary_of(database, chat).summary == SUMMARY


# --- temporary chats --------------------------------------------------------------------------------------


def unseen(database: Database, chat: int, minutes: float) -> None:
    """The page that showed it last did so this long ago."""
    run(
        database,
        """UPDATE conversations SET seen_at = now() - make_interval(mins => 1) * :minutes,
               updated_at = now() - make_interval(mins => 1) * :minutes WHERE id = :id""",
        id=chat,
        minutes=minutes,
    )


def there_are(database: Database) -> list[int]:
    with database.begin() as connection:
        return list(connection.scalars(text("SELECT id FROM conversations ORDER BY id")))


def test_a_temporary_chat_knows_the_memory_and_may_not_change_it(parts: Parts, claude: FakeClaude) -> None:
    remember_fact(parts.database, user_id=parts.user_id, fact="Ich wohne in Bonn")
    ask(parts, "Wo wohne ich?", temporary=True, remember=False)
    request = chat_requests(claude)[-1]
    assert "Bonn" in request["system"][1]["text"]
    assert "temporärer Chat" in request["system"][0]["text"]
    assert tools_of(request) == ["read_document", "search_documents", "search_memory"]


def test_a_temporary_chat_is_in_no_list_and_goes_on_like_any_other(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, "Eins", temporary=True, remember=False).conversation_id
    ask(parts, "Zwei", conversation_id=chat)
    assert len(texts_of(parts, chat)) == 4
    with parts.database.begin() as connection:
        assert list_conversations(connection, user_id=parts.user_id) == []


def test_a_closed_temporary_chat_is_gone_with_all_that_was_said(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, "Geheim", temporary=True, remember=False).conversation_id
    with parts.database.begin() as connection:
        close_temporary_chat(connection, user_id=somebody_else(parts.database), conversation_id=chat)
    assert there_are(parts.database) == [chat]
    with parts.database.begin() as connection:
        close_temporary_chat(connection, user_id=parts.user_id, conversation_id=chat)
    assert there_are(parts.database) == []
    assert one(parts.database, "SELECT * FROM messages") is None


def test_closing_an_ordinary_chat_deletes_nothing(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, "Hallo").conversation_id
    with parts.database.begin() as connection:
        close_temporary_chat(connection, user_id=parts.user_id, conversation_id=chat)
    assert there_are(parts.database) == [chat]


def test_a_temporary_chat_that_no_page_shows_any_more_is_deleted(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, ("Geheim", "Ja."), remember=False) for _ in range(3)]
    ordinary = said(database, user_id, ("Hallo", "Ja."))
    run(database, "UPDATE conversations SET temporary = true WHERE id = ANY(:ids)", ids=chats)
    closed, seen, fresh = chats
    for chat in (closed, seen, ordinary):
        unseen(database, chat, UNSEEN_MINUTES + 1)
    with database.begin() as connection:
        see_temporary_chat(connection, user_id=user_id, conversation_id=seen)
        assert delete_unseen_temporary_chats(connection) == 1
    assert there_are(database) == [seen, fresh, ordinary]


def test_a_temporary_chat_that_is_answering_is_not_deleted(parts: Parts, claude: FakeClaude) -> None:
    answer, started, release = held("Eine lange Antwort.")
    claude.say(answer)
    chat = ask_and_leave(parts)
    assert started.wait(60)
    unseen(parts.database, chat, UNSEEN_MINUTES + 1)
    with parts.database.begin() as connection:
        assert delete_unseen_temporary_chats(connection) == 0
    release.set()


def ask_and_leave(parts: Parts) -> int:
    options = ConversationOptions(temporary=True, remember=False)
    return start_turn(parts, user_id=parts.user_id, message="Erzähl", options=options).conversation_id


def test_the_background_deletes_them_but_not_right_after_a_start_or_a_sleep(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ask(parts, "Geheim", temporary=True, remember=False).conversation_id
    unseen(parts.database, chat, UNSEEN_MINUTES + 1)
    later = ask(parts, "Meine Katze Minka trinkt Milch").conversation_id
    parts.background.wake()
    wait_until(lambda: summary_of(parts.database, later))
    assert chat in there_are(parts.database), "the background has been there, and left it to a page to come back"
    monkeypatch.setattr(background_module, "AWAKE_AFTER_SECONDS", 0.0)
    parts.background._looked_at = 2**40
    parts.background.wake()
    wait_until(lambda: there_are(parts.database) == [later])

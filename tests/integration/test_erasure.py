"""Deleting all memory and deleting everything: one person's, completely, with a receipt that tells the truth."""

import json
from collections.abc import Iterator

import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import start_turn
from jarvis_memory.conversations import load_sent
from jarvis_memory.database import Database
from jarvis_memory.deletions import Deletion, delete_conversation
from jarvis_memory.erasure import delete_all_memory, delete_everything
from jarvis_memory.errors import ConversationNotFound, FactNotFound
from jarvis_memory.facts import remember_fact
from jarvis_memory.forgetting import forget_fact, undo_forgetting
from jarvis_memory.tables import metadata
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import (
    at_once,
    beside_the_memory,
    indexed,
    messages_of,
    one,
    said,
    somebody_else,
    summary_of,
    wait_until,
)
from tests.integration.turns import ask, chat_requests, held

BRUNO = ("Mein Hund Bruno frisst gern Käse", "Das klingt nach einem Genießer.")
SUMMARY = "Der Hund Bruno frisst gern Käse."


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def remembered(database: Database, user_id: int) -> int:
    """A person's memory: a summarised chat (its id), two facts, one forgotten fact that Undo could bring back."""
    chat = said(database, user_id, BRUNO, title="Hund Bruno", summary=SUMMARY)
    for fact in ("Der Hund heißt Bruno", "Ich wohne in Bonn", "Ich mag Tee"):
        remember_fact(database, user_id=user_id, fact=fact)
    assert forget_fact(database, user_id=user_id, query="Tee").id
    beside_the_memory(database, user_id, chat)
    return chat


def rows(database: Database, user_id: int) -> dict[str, list[str]]:
    """Everything that the database holds of a person, by table."""
    found = {}
    for table in sorted(set(metadata.tables) - {"users"}):
        with database.begin() as connection:
            result = connection.exec_driver_sql(
                f"SELECT CAST(to_jsonb(t) AS text) FROM {table} t WHERE user_id = %s ORDER BY 1", (user_id,)
            )
            found[table] = [row[0] for row in result]
    return found


# --- all memory -------------------------------------------------------------------------------------------


def test_all_memory_goes_with_a_receipt_and_the_chats_stay_readable(database: Database, user_id: int) -> None:
    chat = remembered(database, user_id)
    assert delete_all_memory(database, user_id=user_id) == Deletion(facts=2, summaries=1)
    assert [message.content for message in messages_of(database, user_id, chat)] == list(BRUNO)
    left = rows(database, user_id)
    assert (left["memory_facts"], left["forgettings"], left["deletions"]) == ([], [], [])
    assert all(left[kept] for kept in ("message_versions", "attachments", "token_usage", "document_chunks"))
    assert summary_of(database, chat).summary is None
    assert delete_all_memory(database, user_id=user_id) == Deletion(), "nothing is left to count"


@pytest.mark.parametrize("delete", [delete_all_memory, delete_everything])
def test_somebody_elses_rows_stay_as_they_are(database: Database, user_id: int, delete) -> None:
    stranger = somebody_else(database)
    for person in (user_id, stranger):
        remembered(database, person)
    indexed(database)
    before = rows(database, stranger)
    delete(database, user_id=user_id)
    assert rows(database, stranger) == before
    assert all(before.values())


def test_what_was_said_before_comes_back_in_no_later_summary(parts: Parts, claude: FakeClaude) -> None:
    chat = remembered(parts.database, parts.user_id)
    delete_all_memory(parts.database, user_id=parts.user_id)
    # A model that gives no title: the one of the deleted summary must not stand in for it.
    claude.say_to_summary("Es ging um das Wetter in Bonn.")
    ask(parts, "Wie wird das Wetter in Bonn?", conversation_id=chat)
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.embedding_model)
    assert summary_of(parts.database, chat).summary == "Es ging um das Wetter in Bonn."
    requests = [json.dumps(one, ensure_ascii=False) for one in claude.requests if not one.get("tools")]
    assert len(requests) == 1
    assert "Wetter" in requests[0]
    assert "Käse" not in requests[0]
    ask(parts, "Was frisst mein Hund Bruno, und wie wird das Wetter?")
    sent = json.dumps(chat_requests(claude)[-1], ensure_ascii=False)
    assert "Es ging um das Wetter" in sent, "the chat itself is recalled"
    assert "Käse" not in sent
    assert "Hund Bruno" not in sent.replace("Was frisst mein Hund Bruno", "")


def test_a_summary_that_was_being_written_does_not_bring_it_back(parts: Parts, claude: FakeClaude) -> None:
    summary, started, release = held(f"Titel: Hund Bruno\nZusammenfassung: {SUMMARY}")
    claude.say_to_summary(summary)
    chat = ask(parts, BRUNO[0]).conversation_id
    assert started.wait(60)
    delete_all_memory(parts.database, user_id=parts.user_id)
    release.set()
    # The next chat is summarised by the same background: after it the first one has had its chance.
    other = ask(parts, "Wie wird das Wetter in Bonn?").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, other)) and row.summary)
    wait_until(lambda: not parts.background._at_work)
    assert summary_of(parts.database, chat).summary is None
    assert summary_of(parts.database, chat).title == ""


def test_a_title_of_the_persons_own_stays(database: Database, user_id: int) -> None:
    chat = said(database, user_id, BRUNO, title="Mein Titel", title_by_user=True, summary=SUMMARY)
    delete_all_memory(database, user_id=user_id)
    assert summary_of(database, chat).title == "Mein Titel"


def test_what_earlier_turns_were_sent_and_what_tools_stored_goes_too(parts: Parts, claude: FakeClaude) -> None:
    remembered(parts.database, parts.user_id)
    parts.background.wake()
    wait_until(lambda: one(parts.database, "SELECT * FROM conversation_summaries WHERE embedding_model IS NOT NULL"))
    claude.say(ToolUse("remember_fact", {"fact": "Bruno ist ein Dackel"}), "Gemerkt.")
    answer = ask(parts, "Was frisst Bruno?")
    chat = answer.conversation_id
    delete_all_memory(parts.database, user_id=parts.user_id)
    question, answer = messages_of(parts.database, parts.user_id, chat)
    assert [block["type"] for block in question.blocks] == ["now"]
    assert answer.blocks == []
    with parts.database.begin() as connection:
        assert load_sent(connection, user_id=parts.user_id, message_id=answer.id) is None
    ask(parts, "Und sonst?", conversation_id=chat)
    sent = chat_requests(claude)[-1]
    assert "Dackel" not in json.dumps(sent, ensure_ascii=False)
    assert "<recalled" not in json.dumps(sent["messages"])


def test_undo_of_an_earlier_forgetting_brings_nothing_back(database: Database, user_id: int) -> None:
    remember_fact(database, user_id=user_id, fact="Ich mag Tee")
    forgetting = forget_fact(database, user_id=user_id, query="Tee")
    assert forgetting.id
    delete_all_memory(database, user_id=user_id)
    with pytest.raises(FactNotFound):
        undo_forgetting(database, user_id=user_id, forgetting_id=forgetting.id)
    assert rows(database, user_id)["memory_facts"] == []


# --- everything -------------------------------------------------------------------------------------------


def test_everything_goes_with_a_receipt_of_what_there_was(database: Database, user_id: int) -> None:
    remembered(database, user_id)
    said(database, user_id, BRUNO, BRUNO)
    said(database, user_id, BRUNO, remember=False)
    expected = Deletion(conversations=3, messages=8, facts=2, summaries=1, documents=1)
    assert delete_everything(database, user_id=user_id) == expected
    assert not any(rows(database, user_id).values())
    assert delete_everything(database, user_id=user_id) == Deletion()
    assert one(database, "SELECT count(*) AS n FROM users").n == 1, "the person can go on"


def test_a_turn_that_was_running_brings_nothing_back(parts: Parts, claude: FakeClaude) -> None:
    text, started, release = held("Das merke ich mir.")
    claude.say([text, ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"})], "Gemerkt.")
    turn = start_turn(parts, user_id=parts.user_id, message="Merk dir das")
    assert started.wait(60)
    delete_everything(parts.database, user_id=parts.user_id)
    release.set()
    assert turn.done.wait(60)
    assert not any(rows(parts.database, parts.user_id).values())


def test_a_summary_job_that_was_running_brings_nothing_back(parts: Parts, claude: FakeClaude) -> None:
    summary, started, release = held(f"Titel: Hund Bruno\nZusammenfassung: {SUMMARY}")
    claude.say_to_summary(summary)
    ask(parts, BRUNO[0])
    assert started.wait(60)
    delete_everything(parts.database, user_id=parts.user_id)
    release.set()
    wait_until(lambda: not parts.background._at_work)
    assert not any(rows(parts.database, parts.user_id).values())


def test_deletions_that_meet_do_not_stand_in_each_others_way(database: Database, user_id: int) -> None:
    remembered(database, user_id)
    chats = [said(database, user_id, BRUNO, summary=SUMMARY) for _ in range(6)]
    for chat in chats:
        source = messages_of(database, user_id, chat)[0].id
        for number in range(20):
            fact = f"Der {number}. Fakt aus Chat {chat}"
            remember_fact(database, user_id=user_id, fact=fact, source_message_id=source)

    def delete_chat(chat: int) -> None:
        with database.begin() as connection:
            delete_conversation(connection, user_id=user_id, conversation_id=chat, with_facts=True)

    results = at_once(
        lambda: forget_fact(database, user_id=user_id, query="Der Hund heißt Bruno"),
        lambda: delete_all_memory(database, user_id=user_id),
        lambda: delete_everything(database, user_id=user_id),
        lambda: delete_everything(database, user_id=user_id),
        *(lambda chat=chat: delete_chat(chat) for chat in chats),
    )
    assert [one for one in results if isinstance(one, Exception) and not isinstance(one, ConversationNotFound)] == []
    assert not any(rows(database, user_id).values())

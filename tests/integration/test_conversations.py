"""Conversations and messages: listed, paged, deleted with a receipt, each person's for themselves."""

from typing import Any

import pytest

from jarvis_memory.conversations import (
    Deletion,
    count_facts_from,
    create_conversation,
    delete_conversation,
    get_conversation,
    insert_message,
    list_conversations,
    load_messages,
    load_sent,
    remove_unfinished_answer,
    update_message,
)
from jarvis_memory.database import Database
from jarvis_memory.errors import ConversationNotFound
from jarvis_memory.facts import get_all_memory_facts, remember_fact
from tests.integration.chats import at_once, change_message, messages_of, one, run, said, somebody_else


def titles(database: Database, user_id: int, **options: int) -> list[str]:
    with database.begin() as connection:
        return [conversation.title for conversation in list_conversations(connection, user_id=user_id, **options)]


def delete(database: Database, user_id: int, conversation_id: int, **options: bool) -> Deletion:
    with database.begin() as connection:
        return delete_conversation(connection, user_id=user_id, conversation_id=conversation_id, **options)


# --- the list ---------------------------------------------------------------------------------------------


def test_the_newest_conversations_come_first_up_to_the_limit(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, (f"Frage {number}", "Ja.")) for number in range(5)]
    assert titles(database, user_id) == [f"Frage {number}" for number in (4, 3, 2, 1, 0)]
    assert titles(database, user_id, limit=2) == ["Frage 4", "Frage 3"]
    said(database, user_id, ("Noch etwas", "Ja."), conversation_id=chats[1])
    assert titles(database, user_id) == [f"Frage {number}" for number in (1, 4, 3, 2, 0)]


def test_conversations_of_the_same_moment_have_an_order(database: Database, user_id: int) -> None:
    for number in range(5):
        said(database, user_id, (f"Frage {number}", "Ja."))
    run(database, "UPDATE conversations SET updated_at = now()")
    assert titles(database, user_id) == [f"Frage {number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("first", "title"),
    [
        ("Wie wird\n\n  das Wetter?", "Wie wird das Wetter?"),
        ("wort " * 100, "wort " * 14 + "wort…"),
        ("x" * 300, "x" * 79 + "…"),
    ],
)
def test_without_a_title_the_beginning_of_the_first_message_stands_for_it(
    database: Database, user_id: int, first: str, title: str
) -> None:
    chat = said(database, user_id, (first, "Ja."), ("Und dann?", "Nichts."))
    assert titles(database, user_id) == [title]
    with database.begin() as connection:
        assert get_conversation(connection, user_id=user_id, conversation_id=chat).title == title


def test_a_title_is_shown_instead_of_the_first_message(database: Database, user_id: int) -> None:
    said(database, user_id, ("Wie wird das Wetter?", "Gut."), title="Wetter")
    assert titles(database, user_id) == ["Wetter"]


def test_a_temporary_chat_is_marked(database: Database, user_id: int) -> None:
    said(database, user_id, ("Geheim", "Ja."), remember=False)
    with database.begin() as connection:
        (conversation,) = list_conversations(connection, user_id=user_id)
    assert conversation.remember is False


# --- messages ---------------------------------------------------------------------------------------------


def test_messages_are_loaded_in_pages_in_the_order_they_were_said(database: Database, user_id: int) -> None:
    chat = said(database, user_id, *((f"Frage {number}", f"Antwort {number}") for number in range(10)))
    said(database, user_id, ("Anderer Chat", "Ja."))
    every = messages_of(database, user_id, chat)

    def page(**options: Any) -> list[str]:
        with database.begin() as connection:
            found = load_messages(connection, user_id=user_id, conversation_id=chat, **options)
        return [message.content for message in found]

    assert page() == [message.content for message in every]
    assert page(limit=3) == ["Antwort 8", "Frage 9", "Antwort 9"]
    assert page(limit=3, before_id=every[-3].id) == ["Frage 7", "Antwort 7", "Frage 8"]
    assert page(limit=3, before_id=every[0].id) == []
    assert page(after_id=every[17].id) == ["Frage 9", "Antwort 9"]
    assert page(limit=2, oldest_first=True) == ["Frage 0", "Antwort 0"]
    assert page(limit=2, oldest_first=True, after_id=every[1].id) == ["Frage 1", "Antwort 1"]


def test_a_message_is_cleaned_of_what_cannot_be_stored(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("a\x00b\ud800c 🐶", "x\x00"))
    assert [message.content for message in messages_of(database, user_id, chat)] == ["abc 🐶", "x"]


def test_a_message_into_a_chat_that_is_gone_is_refused_and_an_answer_to_it_brings_nothing_back(
    database: Database, user_id: int
) -> None:
    chat = said(database, user_id, ("Frage", "Antwort"))
    answer = messages_of(database, user_id, chat)[1].id
    delete(database, user_id, chat)
    with database.begin() as connection:
        assert not update_message(connection, user_id=user_id, message_id=answer, content="Zu spät")
        with pytest.raises(ConversationNotFound):
            insert_message(connection, user_id=user_id, conversation_id=chat, role="user", content="Neu")
    assert one(database, "SELECT count(*) AS n FROM messages").n == 0


def test_only_an_unfinished_last_answer_can_be_taken_away(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Eins", "Ja."), ("Zwei", "Halb"))
    _, _, question, answer = messages_of(database, user_id, chat)

    def remove(by: int = user_id) -> int:
        with database.begin() as connection:
            return remove_unfinished_answer(connection, user_id=by, conversation_id=chat)

    with pytest.raises(ConversationNotFound):
        remove()
    change_message(database, user_id, answer.id, status="interrupted")
    with pytest.raises(ConversationNotFound):
        remove(by=somebody_else(database))
    assert remove() == question.id
    assert remove() == question.id, "a question without an answer can be answered too"
    assert [message.content for message in messages_of(database, user_id, chat)] == ["Eins", "Ja.", "Zwei"]


# --- deleting ---------------------------------------------------------------------------------------------


@pytest.fixture
def with_facts(database: Database, user_id: int) -> int:
    """A chat in which two facts were remembered, beside one of another chat and one of the Memory page."""
    chat = said(database, user_id, ("Bruno", "Ja."), ("Rom", "Ja."), title="Beides", summary="Bruno und Rom.")
    other = said(database, user_id, ("Tee", "Ja."), summary="Tee.")
    for fact, source in [
        ("Mein Hund heißt Bruno", messages_of(database, user_id, chat)[0].id),
        ("Ich mag Rom", messages_of(database, user_id, chat)[2].id),
        ("Ich mag Tee", messages_of(database, user_id, other)[0].id),
        ("Ich mag Brot", None),
    ]:
        remember_fact(database, user_id=user_id, fact=fact, source_message_id=source)
    return chat


def facts(database: Database, user_id: int) -> list[tuple[str, int | None]]:
    with database.begin() as connection:
        return [(fact.content, fact.conversation_id) for fact in get_all_memory_facts(connection, user_id=user_id)]


def test_a_deletion_ends_with_a_receipt_and_facts_stay_unless_asked_for(
    database: Database, user_id: int, with_facts: int
) -> None:
    with database.begin() as connection:
        assert count_facts_from(connection, user_id=user_id, conversation_id=with_facts) == 2
    receipt = delete(database, user_id, with_facts)
    assert receipt == Deletion(conversations=1, messages=4, facts=0, summaries=1)
    kept = facts(database, user_id)
    assert [content for content, _ in kept] == ["Mein Hund heißt Bruno", "Ich mag Rom", "Ich mag Tee", "Ich mag Brot"]
    assert kept[0][1] is kept[1][1] is None, "their chat is gone"
    assert one(database, "SELECT count(*) AS n FROM messages").n == 2
    assert one(database, "SELECT count(*) AS n FROM conversation_summaries").n == 1


def test_the_facts_of_a_chat_go_with_it_on_request(database: Database, user_id: int, with_facts: int) -> None:
    receipt = delete(database, user_id, with_facts, with_facts=True)
    assert receipt == Deletion(conversations=1, messages=4, facts=2, summaries=1)
    assert [content for content, _ in facts(database, user_id)] == ["Ich mag Tee", "Ich mag Brot"]


def test_a_chat_without_a_summary_counts_none(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Hallo", "Hallo!"))
    run(database, "INSERT INTO conversation_summaries (conversation_id, user_id) VALUES (:c, :u)", c=chat, u=user_id)
    assert delete(database, user_id, chat) == Deletion(conversations=1, messages=2)


def test_two_tabs_that_delete_one_chat_get_one_receipt(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Eins", "Ja."))
    results = at_once(lambda: delete(database, user_id, chat), lambda: delete(database, user_id, chat))
    assert sorted(type(result).__name__ for result in results) == ["ConversationNotFound", "Deletion"]


def test_what_other_chats_recalled_of_it_is_withdrawn(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Rom", "Ja."), summary="Reise nach Rom.")
    kept = said(database, user_id, ("Tee", "Ja."), summary="Tee.")
    asking = said(database, user_id, ("Wohin?", "Nach Rom."), ("Was trinken?", "Tee."), ("Und?", "Nichts."))
    first, first_answer, second, second_answer, *_ = messages_of(database, user_id, asking)

    def block(*conversations: int) -> dict[str, Any]:
        return {
            "type": "recalled",
            "text": f"<recalled {conversations}>",
            "conversations": [{"id": number, "title": "…"} for number in conversations],
        }

    now = {"type": "now", "text": "<context>…</context>"}
    change_message(database, user_id, first.id, blocks=[block(kept, chat), now])
    change_message(database, user_id, first_answer.id, sent={"system": ["s"], "recalled": "Reise nach Rom."})
    change_message(database, user_id, second.id, blocks=[block(kept), now])
    change_message(database, user_id, second_answer.id, sent={"system": ["s"], "recalled": "Tee."})
    delete(database, user_id, chat)
    messages = messages_of(database, user_id, asking)
    assert messages[0].blocks == [now]
    assert messages[2].blocks == [block(kept), now]
    with database.begin() as connection:
        sent = [load_sent(connection, user_id=user_id, message_id=one.id) for one in (first_answer, second_answer)]
    assert sent == [
        {"system": ["s"], "recalled": None, "withdrawn": True},
        {"system": ["s"], "recalled": "Tee."},
    ]


# --- each person's for themselves -------------------------------------------------------------------------


def test_nobody_sees_or_changes_the_conversations_of_somebody_else(
    database: Database, user_id: int, with_facts: int
) -> None:
    other = somebody_else(database)
    before = messages_of(database, user_id, with_facts)
    change_message(database, user_id, before[1].id, sent={"system": ["geheim"]})
    assert titles(database, other) == []
    assert messages_of(database, other, with_facts) == []
    for action in (
        lambda connection: get_conversation(connection, user_id=other, conversation_id=with_facts),
        lambda connection: insert_message(
            connection, user_id=other, conversation_id=with_facts, role="user", content="Fremd"
        ),
        lambda connection: delete_conversation(connection, user_id=other, conversation_id=with_facts, with_facts=True),
    ):
        with pytest.raises(ConversationNotFound), database.begin() as connection:
            action(connection)
    with database.begin() as connection:
        assert load_sent(connection, user_id=other, message_id=before[1].id) is None
        assert count_facts_from(connection, user_id=other, conversation_id=with_facts) == 0
        assert not update_message(connection, user_id=other, message_id=before[0].id, content="Gekapert")
    assert messages_of(database, user_id, with_facts) == before
    assert len(facts(database, user_id)) == 4


def test_a_deletion_withdraws_nothing_from_other_people(database: Database, user_id: int) -> None:
    other = somebody_else(database)
    chat = said(database, user_id, ("Rom", "Ja."))
    theirs = said(database, other, ("Wohin?", "Nach Rom."))
    blocks = [{"type": "recalled", "text": "…", "conversations": [{"id": chat, "title": "…"}]}]
    change_message(database, other, messages_of(database, other, theirs)[0].id, blocks=blocks)
    delete(database, user_id, chat)
    assert messages_of(database, other, theirs)[0].blocks == blocks


@pytest.mark.parametrize("number", [0, -1, 10**12, 2**63 - 1])
def test_a_number_of_no_conversation_is_not_found(database: Database, user_id: int, number: int) -> None:
    with database.begin() as connection:
        create_conversation(connection, user_id=user_id)
        with pytest.raises(ConversationNotFound):
            get_conversation(connection, user_id=user_id, conversation_id=number)

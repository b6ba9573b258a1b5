"""Conversations and messages: listed, renamed, pinned, archived, paged, each person's for themselves."""

from typing import Any

import pytest

from jarvis_memory.conversations import (
    count_archived,
    create_conversation,
    get_conversation,
    insert_message,
    list_conversations,
    load_messages,
    rename_conversation,
    update_conversation,
    update_message,
)
from jarvis_memory.database import Database
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.errors import ConversationNotFound, TitleUnusable
from tests.integration.chats import indexed, messages_of, one, run, said, somebody_else, summary_of


def titles(database: Database, user_id: int, **options: int) -> list[str]:
    with database.begin() as connection:
        return [conversation.title for conversation in list_conversations(connection, user_id=user_id, **options)]


def change(database: Database, user_id: int, conversation_id: int, **values: bool) -> None:
    with database.begin() as connection:
        update_conversation(connection, user_id=user_id, conversation_id=conversation_id, **values)


def archived(database: Database, user_id: int) -> int:
    with database.begin() as connection:
        return count_archived(connection, user_id=user_id)


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


def test_a_temporary_chat_is_in_no_list(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Unter uns", "Ja."), remember=False)
    said(database, user_id, ("Offen", "Ja."))
    change(database, user_id, chat, temporary=True)
    assert titles(database, user_id) == ["Offen"]
    change(database, user_id, chat, archived=True)
    assert titles(database, user_id, archived=True) == []
    assert archived(database, user_id) == 0


def test_pinned_chats_come_first_also_when_only_few_are_asked_for(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, (f"Frage {number}", "Ja.")) for number in range(5)]
    for place in (0, 2):
        change(database, user_id, chats[place], pinned=True)
    assert titles(database, user_id) == [f"Frage {number}" for number in (2, 0, 4, 3, 1)]
    assert titles(database, user_id, limit=3) == [f"Frage {number}" for number in (2, 0, 4)]


def test_an_archived_chat_is_in_the_list_of_the_archive_alone(database: Database, user_id: int) -> None:
    away = said(database, user_id, ("Alt", "Ja."))
    said(database, user_id, ("Neu", "Ja."))
    change(database, user_id, away, archived=True)
    assert (titles(database, user_id), titles(database, user_id, archived=True)) == (["Neu"], ["Alt"])
    assert archived(database, user_id) == 1
    assert archived(database, somebody_else(database)) == 0


def test_who_writes_in_an_archived_chat_takes_it_back(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Alt", "Ja."))
    change(database, user_id, chat, archived=True)
    said(database, user_id, ("Doch noch etwas", "Ja."), conversation_id=chat)
    assert titles(database, user_id) == ["Alt"]


def test_to_pin_or_to_archive_does_not_count_as_used(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, (f"Frage {number}", "Ja.")) for number in range(2)]
    for values in ({"pinned": True}, {"archived": True}, {"pinned": False, "archived": False}):
        change(database, user_id, chats[0], **values)
    assert titles(database, user_id) == ["Frage 1", "Frage 0"]


# --- renaming ---------------------------------------------------------------------------------------------


def rename(database: Database, user_id: int, conversation_id: int, title: str) -> None:
    with database.begin() as connection:
        rename_conversation(connection, user_id=user_id, conversation_id=conversation_id, title=title)


@pytest.mark.parametrize(
    ("title", "stored"),
    [("  Mein\nChat\x00 ", "Mein Chat"), ("ä" * 80, "ä" * 80), ("%_<b>$1</b>", "%_<b>$1</b>")],
)
def test_a_title_is_kept_on_one_line_as_it_was_written(
    database: Database, user_id: int, title: str, stored: str
) -> None:
    chat = said(database, user_id, ("Frage", "Ja."), title="Vorher")
    rename(database, user_id, chat, title)
    assert titles(database, user_id) == [stored]


@pytest.mark.parametrize("title", ["", " \n\x00 ", "ä" * 81])
def test_an_empty_title_or_one_of_more_than_80_characters_is_refused(
    database: Database, user_id: int, title: str
) -> None:
    chat = said(database, user_id, ("Frage", "Ja."), title="Vorher")
    with pytest.raises(TitleUnusable) as refused:
        rename(database, user_id, chat, title)
    assert refused.value.details["limit"] == 80
    assert titles(database, user_id) == ["Vorher"]


def test_nobody_renames_the_chat_of_somebody_else(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Frage", "Ja."), title="Meins")
    with pytest.raises(ConversationNotFound):
        rename(database, somebody_else(database), chat, "Deins")
    assert titles(database, user_id) == ["Meins"]


def test_a_renamed_chat_is_recalled_by_its_new_title_and_not_by_the_old_one(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Frage", "Ja."), title="Kanarienvogel", summary="Es ging um Futter.")
    indexed(database)
    assert words_of(database, chat) >= {"kanarienvogel", "futt"}
    rename(database, user_id, chat, "Wellensittich")
    assert "kanarienvogel" not in words_of(database, chat)
    assert words_of(database, chat) >= {"wellensittich", "futt"}
    assert summary_of(database, chat).title_by_user, "no summary may change it"
    counted = one(database, "SELECT sum(count) AS n FROM conversation_words WHERE conversation_id = :c", c=chat).n
    assert one(database, "SELECT words FROM conversations WHERE id = :c", c=chat).words == counted


def words_of(database: Database, conversation_id: int) -> set[str]:
    """The words that the index has of the conversation."""
    query = "SELECT coalesce(array_agg(word), '{}') AS words FROM conversation_words WHERE conversation_id = :c"
    return set(one(database, query, c=conversation_id).words)


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
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=chat)
    with database.begin() as connection:
        assert not update_message(connection, user_id=user_id, message_id=answer, content="Zu spät")
        with pytest.raises(ConversationNotFound):
            insert_message(connection, user_id=user_id, conversation_id=chat, role="user", content="Neu")
    assert one(database, "SELECT count(*) AS n FROM messages").n == 0


# --- whose they are ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, 10**12, 2**63 - 1])
def test_a_number_of_no_conversation_is_not_found(database: Database, user_id: int, number: int) -> None:
    with database.begin() as connection:
        create_conversation(connection, user_id=user_id)
        with pytest.raises(ConversationNotFound):
            get_conversation(connection, user_id=user_id, conversation_id=number)

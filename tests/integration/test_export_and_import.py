"""Export and import: everything goes along, nothing twice, all or nothing, and nothing secret."""

import io
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from jarvis_memory import imports
from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import insert_message
from jarvis_memory.database import Database, Lock
from jarvis_memory.deletions import delete_conversation, drop_deletions
from jarvis_memory.erasure import delete_everything
from jarvis_memory.errors import ImportInvalid, JarvisError
from jarvis_memory.export import Exported, write_export
from jarvis_memory.facts import get_all_memory_facts, remember_fact
from jarvis_memory.forgetting import forget_fact
from jarvis_memory.imports import Imported, count_known, import_file
from jarvis_memory.preferences import load_choices, save_choices
from jarvis_memory.summaries import count_pending, pending_conversations
from tests.archives import CONVERSATION, FACT, MESSAGE, chatgpt, claude, export_of, file_of, node, said_to_claude
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import (
    InBackground,
    at_once,
    change_message,
    excluded_of,
    indexed,
    messages_of,
    one,
    ready_to_be_recalled,
    run,
    said,
    somebody_else,
    summary_of,
    wait_until,
)
from tests.integration.test_documents import LEASE, Library
from tests.integration.turns import ask, chat_requests

TABLES = (
    "conversations",
    "messages",
    "conversation_summaries",
    "memory_facts",
    "message_versions",
    "attachments",
    "documents",
    "document_chunks",
    "conversation_words",
    "exchanges",
)


def exported(database: Database, user_id: int) -> dict[str, Any]:
    """The export, read back."""
    file = io.BytesIO()
    write_export(database, user_id=user_id, file=file)
    document: dict[str, Any] = json.loads(file.getvalue())
    return document


def brought(database: Database, user_id: int, document: Any) -> Imported:
    """The receipt of importing this document."""
    return import_file(database, user_id=user_id, file=file_of(document))


def counted(database: Database) -> dict[str, int]:
    return {table: one(database, f"SELECT count(*) FROM {table}")[0] for table in TABLES}


def the_chat(database: Database, user_id: int, external_id: str = "one") -> int:
    row = one(
        database, "SELECT id FROM conversations WHERE external_id = :e AND user_id = :u", e=external_id, u=user_id
    )
    return int(row[0])


def contents_of(database: Database, user_id: int, external_id: str = "one") -> list[str]:
    return [message.content for message in messages_of(database, user_id, the_chat(database, user_id, external_id))]


def a_life(database: Database, user_id: int) -> int:
    """One of everything. Returns the chat with the most in it."""
    chat = said(
        database,
        user_id,
        ("Mein Hund heißt Bruno", "Schöner Name!"),
        ("Und ich wohne in Freiburg 😀", "Gemerkt."),
        title="Über mich",
        title_by_user=True,
        summary="Der Nutzer hat einen Hund namens Bruno.",
    )
    said(database, user_id, ("Temporäres", "Ja."), remember=False)
    waiting = said(database, user_id, ("Was kostet ein Flug nach Rom?", "Etwa 200 Euro."))
    first, answer, *_, last = messages_of(database, user_id, chat)
    fact = {"fact": "Der Hund heißt Bruno", "already_known": False, "fact_id": 4711, "remembered": True}
    tool = {"type": "tool", "id": "t1", "name": "remember_fact", "input": {"fact": "x"}, "at": 3}
    forgotten = {"deleted": True, "content": "x", "fact_id": 1, "forgetting_id": 9, "exchanges": 1}
    blocks = [
        {"type": "memory", "fact_ids": [815], "more_facts": 0, "conversations": []},
        tool | {"result": fact, "is_error": False},
        tool
        | {"id": "t2", "name": "forget_fact"}
        | {"result": forgotten | {"conversations": [{"id": 9, "title": "y"}]}},
        tool | {"id": "t3", "result": {"message": "No."}, "is_error": True},
        tool | {"id": "t4"},
        {"type": "notice", "kind": "max_tokens"},
        {"type": "error", "error": "ClaudeBusy", "details": {"limit": 3}},
    ]
    usage = {"model": "claude-sonnet-5-5", "input": 9, "output": 8, "cache_read": 7, "cache_write": 6, "cost": 0.5}
    change_message(
        database, user_id, answer.id, blocks=blocks, usage=usage, tokens_used=17, sent={"system": ["geheim"]}
    )
    change_message(database, user_id, last.id, status="interrupted")
    change_message(database, user_id, first.id, blocks=[{"type": "recalled", "text": "sonst", "conversations": []}])
    remember_fact(database, user_id=user_id, fact="Der Hund heißt Bruno", origin="mail", source_message_id=first.id)
    remember_fact(database, user_id=user_id, fact="Ich esse kein Fleisch", origin="page")
    values = {"user": user_id, "chat": chat, "first": first.id}
    run(
        database,
        """WITH file AS (
               INSERT INTO attachments (user_id, message_id, name, media_type, content, size)
               SELECT :user, :first, 'impfpass.pdf', 'application/pdf', convert_to('%PDF-1.7 Tollwut', 'UTF8'), 16
               RETURNING id)
           UPDATE messages SET blocks = blocks || jsonb_build_array(jsonb_build_object('type', 'attachment', 'id',
               (SELECT id FROM file), 'name', 'impfpass.pdf', 'media_type', 'application/pdf', 'size', 16, 'pages', 2))
           WHERE id = :first""",
        **values,
    )
    run(
        database,
        """INSERT INTO message_versions (user_id, conversation_id, message_id, messages)
           SELECT :user, :chat, :first, '[{"role": "user", "content": "Mein Hund heißt Brno", "files": []}]'""",
        **values,
    )
    run(database, "UPDATE conversations SET pinned = true, model = 'claude-x' WHERE id = :chat", **values)
    run(database, "UPDATE conversations SET archived = true, reads_memory = false WHERE id = :id", id=waiting)
    Library(database, user_id).read("Mietvertrag.md", LEASE)
    with database.begin() as connection:
        save_choices(connection, user_id=user_id, language="en", time_zone="Europe/Rome", instructions="Sei kurz.")
    return chat


# --- there and back


def test_what_was_exported_is_exported_again_after_an_import(database: Database, user_id: int) -> None:
    a_life(database, user_id)
    before = exported(database, user_id)
    other = somebody_else(database)
    receipt = brought(database, other, before)
    after = exported(database, other)
    assert before.pop("exported_at") <= after.pop("exported_at")
    assert before == after
    assert receipt == Imported(
        conversations_new=3,
        conversations_grown=0,
        conversations_known=0,
        conversations_empty=0,
        messages=8,
        summaries=1,
        facts_new=2,
        facts_known=0,
        attachments=1,
        documents_new=1,
        documents_known=0,
        preferences=True,
    )


def test_an_export_has_all_of_it(database: Database, user_id: int) -> None:
    chat = a_life(database, user_id)
    document = exported(database, user_id)
    assert (document["format"], document["version"]) == ("jarvis-export", 1)
    conversation = document["conversations"][0]
    assert [message["content"] for message in conversation["messages"]] == [
        message.content for message in messages_of(database, user_id, chat)
    ]
    answer = conversation["messages"][1]
    assert [block["type"] for block in answer["blocks"]] == ["tool", "tool", "tool", "tool", "notice", "error"]
    # What is a number of this database would be something else's in another one.
    assert answer["blocks"][0]["result"]["fact_id"] is None
    forgotten = answer["blocks"][1]["result"]
    assert (forgotten["forgetting_id"], forgotten["conversations"]) == (None, [])
    assert answer["usage"]["cost"] == 0.5
    assert conversation["summary"] | {"updated_at": ""} == {
        "text": "Der Nutzer hat einen Hund namens Bruno.",
        "messages": 4,
        "updated_at": "",
    }
    assert [fact["source"] for fact in document["facts"]] == [
        {"conversation": conversation["external_id"], "message": 0},
        None,
    ]
    assert document["preferences"] == {
        "language": "en",
        "time_zone": "Europe/Rome",
        "model": None,
        "memory": None,
        "instructions": "Sei kurz.",
    }


def test_the_receipt_of_an_export_counts(database: Database, user_id: int) -> None:
    a_life(database, user_id)
    receipt = write_export(database, user_id=user_id, file=io.BytesIO())
    assert receipt == Exported(conversations=3, messages=8, facts=2, documents=1)


def test_temporary_chats_and_other_people_are_not_in_an_export(database: Database, user_id: int) -> None:
    temporary = said(database, user_id, ("Vergiss mich", "Ja."), remember=False)
    run(database, "UPDATE conversations SET temporary = true WHERE id = :id", id=temporary)
    source = messages_of(database, user_id, temporary)[0].id
    remember_fact(database, user_id=user_id, fact="Aus dem Nichts", source_message_id=source)
    other = somebody_else(database)
    said(database, other, ("Fremdes", "Ja."))
    remember_fact(database, user_id=other, fact="Fremder Fakt")
    document = exported(database, user_id)
    assert document["conversations"] == []
    assert [(fact["content"], fact["source"]) for fact in document["facts"]] == [("Aus dem Nichts", None)]


def test_neither_keys_nor_what_was_sent_nor_what_waits_for_undo_is_in_an_export(
    build: Callable[..., Parts], claude: FakeClaude
) -> None:
    secrets = {"anthropic_api_key": "sk-ant-geheim", "ollama_url": None}
    parts = build(**secrets)
    claude.say(ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"}), "Gemerkt.")
    ask(parts, "Merk dir, dass der Hund Bruno heißt")
    with parts.database.begin() as connection:
        fact = get_all_memory_facts(connection, user_id=parts.user_id)[0]
    forget_fact(parts.database, user_id=parts.user_id, query="", fact_id=fact.id)
    file = io.BytesIO()
    write_export(parts.database, user_id=parts.user_id, file=file)
    content = file.getvalue().decode()
    for secret in ("sk-ant-geheim", claude.base_url, "system", "embedding", "recalled", "You are JARVIS", "Du bist"):
        assert secret not in content
    assert json.loads(content)["facts"] == []
    # What a real turn leaves passes the check of an import.
    assert brought(parts.database, somebody_else(parts.database), json.loads(content)).messages == 2


def test_an_export_is_of_one_moment(database: Database, user_id: int) -> None:
    said(database, user_id, ("Vorher", "Ja."))

    class Meddler(io.BytesIO):
        def write(self, content: Any) -> int:
            if b'"conversations": [' in content:
                said(database, user_id, ("Nachher", "Ja."))
                remember_fact(database, user_id=user_id, fact="Nachher")
                Library(database, user_id).add("Nachher.txt", "Nachher")
            return super().write(content)

    file = Meddler()
    assert write_export(database, user_id=user_id, file=file) == Exported(
        conversations=1, messages=2, facts=0, documents=0
    )
    assert b"Nachher" not in file.getvalue()


def test_many_chats_come_in_order_also_over_several_batches(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jarvis_memory.export.CONVERSATIONS_AT_ONCE", 3)
    monkeypatch.setattr("jarvis_memory.export.ROWS_AT_ONCE", 2)
    monkeypatch.setattr("jarvis_memory.imports.ITEMS_AT_ONCE", 2)
    for number in range(8):
        said(database, user_id, *[(f"Frage {number}.{turn}", f"Antwort {number}.{turn}") for turn in range(number + 1)])
    document = exported(database, user_id)
    assert [len(one["messages"]) for one in document["conversations"]] == [2, 4, 6, 8, 10, 12, 14, 16]
    other = somebody_else(database)
    brought(database, other, document)
    for one_chat in document["conversations"]:
        expected = [message["content"] for message in one_chat["messages"]]
        assert contents_of(database, other, one_chat["external_id"]) == expected


# --- once and only once


def test_a_second_import_changes_nothing(database: Database, user_id: int) -> None:
    a_life(database, user_id)
    document = exported(database, user_id)
    before = counted(database)
    again = brought(database, user_id, document)
    assert (again.conversations_known, again.facts_known) == (3, 2)
    assert (again.conversations_new, again.messages, again.facts_new, again.attachments) == (0, 0, 0, 0)
    assert not again.preferences
    assert counted(database) == before
    assert exported(database, user_id) | {"exported_at": ""} == document | {"exported_at": ""}


@pytest.mark.parametrize(
    "document",
    [
        export_of(),
        [chatgpt(node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer."))],
        [claude(said_to_claude("a", "human", "Wohin?", attachments=[{"extracted_content": "x"}]))],
    ],
)
def test_two_imports_at_once_bring_everything_once(database: Database, user_id: int, document: Any) -> None:
    receipts = at_once(*[lambda: brought(database, user_id, document)] * 4)
    assert sorted(receipt.conversations_new for receipt in receipts) == [0, 0, 0, 1]
    alone = somebody_else(database)
    brought(database, alone, document)
    for table in ("conversations", "messages", "memory_facts", "attachments", "message_versions"):
        query = f"SELECT count(*) FILTER (WHERE user_id = :one), count(*) FILTER (WHERE user_id = :other) FROM {table}"
        mine, other = one(database, query, one=user_id, other=alone)
        assert mine == other


def test_a_conversation_that_stands_in_a_split_export_twice_is_stored_once(database: Database, user_id: int) -> None:
    short = chatgpt(node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer."))
    long = chatgpt(*short["mapping"].values(), node("c", "b", "user", "Wann?"))
    receipt = brought(database, user_id, [short, long, short])
    assert (receipt.conversations_new, receipt.conversations_grown, receipt.conversations_known) == (1, 1, 1)
    assert contents_of(database, user_id, "chatgpt:c1") == ["Wohin?", "Ans Meer.", "Wann?"]


def test_each_person_has_their_own_copy(database: Database, user_id: int) -> None:
    other = somebody_else(database)
    assert brought(database, user_id, export_of()).conversations_new == 1
    assert brought(database, other, export_of()).conversations_new == 1
    assert contents_of(database, user_id) == contents_of(database, other)


def test_what_the_person_changed_here_stays(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    chat = the_chat(database, user_id)
    run(database, "UPDATE conversations SET title = 'Umbenannt', pinned = true WHERE id = :id", id=chat)
    with database.begin() as connection:
        save_choices(connection, user_id=user_id, language="de", instructions="Meine")
    preferences = {
        "language": "en",
        "time_zone": "Europe/Rome",
        "model": None,
        "memory": "off",
        "instructions": "Deren",
    }
    assert brought(database, user_id, export_of(preferences=preferences)).preferences
    row = one(database, "SELECT title, pinned FROM conversations WHERE id = :id", id=chat)
    assert tuple(row) == ("Umbenannt", True)
    with database.begin() as connection:
        choices = load_choices(connection, user_id=user_id)
    assert choices == {
        "language": "de",
        "time_zone": "Europe/Rome",
        "model": None,
        "memory": "off",
        "instructions": "Meine",
    }


def test_it_can_be_said_before_how_much_is_known(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    with database.begin() as connection:
        assert count_known(connection, user_id=user_id, external_ids=["one", "two"]) == 1
        assert count_known(connection, user_id=somebody_else(database), external_ids=["one"]) == 0


# --- conversations that went on


def grown(*contents: str, **changes: Any) -> dict[str, Any]:
    """The export with more messages in its conversation."""
    added = [MESSAGE | {"role": ("user", "assistant")[n % 2], "content": said} for n, said in enumerate(contents)]
    conversation = CONVERSATION | {"messages": [*CONVERSATION["messages"], *added]} | changes  # type: ignore[misc]
    return export_of(conversations=[conversation])


def test_what_was_said_since_is_appended(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    later = "2026-12-01T10:00:00+00:00"
    source = {"conversation": "one", "message": 2}
    document = grown("Er ist krank", "Gute Besserung!", updated_at=later) | {
        "facts": [FACT, FACT | {"content": "Bruno ist krank", "source": source}],
        "versions": [{"at": source, "messages": [], "created_at": later}],
    }
    receipt = brought(database, user_id, document)
    assert (receipt.conversations_grown, receipt.conversations_known, receipt.messages) == (1, 0, 2)
    assert (receipt.facts_new, receipt.attachments) == (1, 0)
    expected = ["Mein Hund heißt Bruno", "Schöner Name!", "Er ist krank", "Gute Besserung!"]
    assert contents_of(database, user_id) == expected
    row = one(database, "SELECT updated_at FROM conversations WHERE external_id = 'one'")
    assert row.updated_at.isoformat() == later
    with database.begin() as connection:
        facts = get_all_memory_facts(connection, user_id=user_id)
    third = messages_of(database, user_id, the_chat(database, user_id))[2].id
    assert facts[1].source_message_id == third
    assert brought(database, user_id, document).messages == 0
    assert one(database, "SELECT count(*) FROM message_versions")[0] == 2


def test_two_imports_at_once_append_once(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    receipts = at_once(*[lambda: brought(database, user_id, grown("Er ist krank", "Oh."))] * 4)
    assert sorted(receipt.messages for receipt in receipts) == [0, 0, 0, 2]
    assert len(contents_of(database, user_id)) == 4


def test_two_imports_of_the_same_chats_in_another_order_do_not_wait_for_each_other(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "ITEMS_AT_ONCE", 1)
    chats = [claude(said_to_claude("a", "human", "Hallo"), number=str(number)) for number in range(40)]
    receipts = at_once(*[lambda files=files: brought(database, user_id, files) for files in (chats, chats[::-1])])
    assert sorted(receipt.conversations_new for receipt in receipts) == [0, 40]


def test_what_is_said_while_an_import_is_at_work_comes_after_what_it_appends(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    chat = the_chat(database, user_id)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    speakers: list[InBackground] = []

    def speak() -> int:
        with database.begin() as connection:
            return insert_message(connection, user_id=user_id, conversation_id=chat, role="user", content="Jetzt?")

    def meddle(*args: Any) -> None:
        # The import has compared, and is about to reserve its numbers.
        if "nextval" in args[2] and not speakers:
            speakers.append(InBackground(speak))
            heard = "SELECT count(*) FROM messages WHERE content = 'Jetzt?'"
            wait_until(lambda: one(database, waiting)[0] or one(database, heard)[0])

    event.listen(database.engine, "before_cursor_execute", meddle)
    assert brought(database, user_id, grown("Er ist krank")).messages == 1
    speakers[0].result()
    assert contents_of(database, user_id)[2:] == ["Er ist krank", "Jetzt?"]


@pytest.mark.parametrize("here", ["An der Ostsee", "Mein Hund heißt Bruno!"])
def test_a_conversation_that_went_another_way_here_stays_as_it_is(database: Database, user_id: int, here: str) -> None:
    brought(database, user_id, export_of())
    chat = the_chat(database, user_id)
    if here.endswith("!"):
        change_message(database, user_id, messages_of(database, user_id, chat)[0].id, content=here)
    else:
        said(database, user_id, (here, "Schön."), conversation_id=chat)
    before = contents_of(database, user_id)
    # What refers to messages that are not the same ones here must not end up at others.
    source = {"conversation": "one", "message": 2}
    document = grown("Er ist krank") | {"facts": [FACT | {"content": "Bruno ist krank", "source": source}]}
    receipt = brought(database, user_id, document)
    assert (receipt.conversations_known, receipt.messages, receipt.facts_new) == (1, 0, 1)
    assert contents_of(database, user_id) == before
    with database.begin() as connection:
        assert get_all_memory_facts(connection, user_id=user_id)[-1].source_message_id is None


def test_the_summary_of_a_conversation_that_went_on_is_written_from_what_is_here(
    database: Database, user_id: int
) -> None:
    known = {"text": "Ein Hund.", "messages": 2, "updated_at": MESSAGE["created_at"]}
    brought(database, user_id, export_of(conversations=[CONVERSATION | {"summary": known}]))
    # In the file it tells of something that was forgotten here since.
    document = grown("Er ist krank", "Oh.", summary=known | {"text": "Ein Hund, Bruno.", "messages": 4})
    brought(database, user_id, document)
    chat = the_chat(database, user_id)
    assert summary_of(database, chat).summary == "Ein Hund."
    with database.begin() as connection:
        assert pending_conversations(connection) == [chat]


# --- all or nothing


def test_an_import_that_fails_in_the_middle_leaves_nothing(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counted(database)

    def fail(*_: Any) -> None:
        raise JarvisError("pulled the plug")

    monkeypatch.setattr(imports._Rest, "_store_attachments", fail)
    with pytest.raises(JarvisError, match="plug"):
        brought(database, user_id, export_of())
    assert counted(database) == before
    with database.begin() as connection:
        assert load_choices(connection, user_id=user_id)["language"] is None


def test_nothing_is_written_before_the_whole_file_is_checked(database: Database, user_id: int) -> None:
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with pytest.raises(ImportInvalid):
        brought(database, user_id, export_of(attachments=[{"at": 5}]))
    assert statements == []


def test_a_lost_connection_in_the_middle_leaves_nothing(database: Database, user_id: int) -> None:
    lost = []

    def cut(_: Any, cursor: Any, statement: str, *__: Any) -> None:
        if "INSERT INTO memory_facts" in statement and not lost:
            lost.append(True)
            killer = database.engine.raw_connection()
            with killer.cursor() as other:
                other.execute("SELECT pg_terminate_backend(%s)", (cursor.connection.info.backend_pid,))
            killer.close()

    event.listen(database.engine, "before_cursor_execute", cut)
    with pytest.raises(JarvisError):
        brought(database, user_id, export_of())
    assert lost
    assert counted(database)["conversations"] == 0
    assert brought(database, user_id, export_of()).conversations_new == 1


# --- the memory afterwards


def test_messages_keep_their_times_and_their_order(database: Database, user_id: int) -> None:
    times = ["2020-01-01T00:00:00+00:00", "2019-01-01T00:00:00+02:00", "2021-01-01T00:00:00Z"]
    said_then = [MESSAGE | {"content": str(n), "created_at": moment} for n, moment in enumerate(times)]
    brought(database, user_id, export_of(conversations=[CONVERSATION | {"messages": said_then}]))
    found = messages_of(database, user_id, the_chat(database, user_id))
    assert [message.content for message in found] == ["0", "1", "2"]
    assert [message.created_at.year for message in found] == [2020, 2018, 2021]
    assert [message.id for message in found] == sorted(message.id for message in found)


def test_an_imported_conversation_is_recalled_by_its_words_and_by_its_meaning(
    build: Callable[..., Parts], claude: FakeClaude
) -> None:
    parts = build()
    tree = [
        node("a", None, "user", "Wie backe ich Zwetschgendatschi mit Hefeteig?"),
        node("b", "a", "assistant", "Mit viel Butter und 500 g Zwetschgen vom Markt."),
    ]
    brought(parts.database, parts.user_id, [chatgpt(*tree)])
    ready_to_be_recalled(parts)
    chat = the_chat(parts.database, parts.user_id, "chatgpt:c1")
    # No summary was asked for, and none is due.
    with parts.database.begin() as connection:
        assert count_pending(connection, user_id=parts.user_id) == (0, 0)
    assert claude.requests == []
    claude.say("Mit Butter.")
    answer = ask(parts, "Was haben wir über Zwetschgendatschi gesagt?")
    assert [one["id"] for one in answer.blocks_of("memory")[0]["conversations"]] == [chat]


def test_words_are_found_without_any_model_once_they_are_counted(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    indexed(database)
    found = one(database, "SELECT count(*) FROM conversation_words WHERE word = 'bruno' AND user_id = :u", u=user_id)
    assert found[0] == 1
    assert one(database, "SELECT words FROM conversations WHERE external_id = 'one'")[0] > 0


def test_a_foreign_conversation_is_summarised_once_it_goes_on(database: Database, user_id: int) -> None:
    tree = [node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer.")]
    brought(database, user_id, [chatgpt(*tree)])
    with database.begin() as connection:
        assert pending_conversations(connection) == []
    # Not when it went on elsewhere …
    brought(database, user_id, [chatgpt(*tree, node("c", "b", "user", "Wann?"), node("d", "c", "assistant", "Bald."))])
    with database.begin() as connection:
        assert pending_conversations(connection) == []
    # … but when it does here.
    chat = the_chat(database, user_id, "chatgpt:c1")
    said(database, user_id, ("Und wie?", "Zu Fuß."), conversation_id=chat)
    with database.begin() as connection:
        assert pending_conversations(connection) == [chat]


def test_what_was_forgotten_stays_forgotten(database: Database, user_id: int) -> None:
    chat = said(
        database, user_id, ("Mein Hund heißt Bruno", "Gut."), ("Ich wohne in Bonn", "Gut."), summary="Hund Bruno, Bonn."
    )
    source = messages_of(database, user_id, chat)[0].id
    fact, _ = remember_fact(database, user_id=user_id, fact="Mein Hund heißt Bruno", source_message_id=source)
    forget_fact(database, user_id=user_id, query="", fact_id=fact.id)
    forgotten = excluded_of(database, user_id, chat)
    assert "Mein Hund heißt Bruno" in forgotten
    other = somebody_else(database)
    document = exported(database, user_id)
    brought(database, other, document)
    copy = the_chat(database, other, document["conversations"][0]["external_id"])
    assert excluded_of(database, other, copy) == forgotten
    assert summary_of(database, copy).summary is None
    with database.begin() as connection:
        assert get_all_memory_facts(connection, user_id=other) == []
        assert copy in pending_conversations(connection)
    indexed(database)
    assert (
        one(database, "SELECT count(*) FROM conversation_words WHERE word = 'bruno' AND user_id = :u", u=other)[0] == 0
    )


def test_an_attachment_is_known_to_its_message(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    first = messages_of(database, user_id, the_chat(database, user_id))[0]
    file = one(database, "SELECT id, content FROM attachments WHERE message_id = :id", id=first.id)
    assert bytes(file.content) == b"Tollwut"
    assert first.blocks_of("attachment") == [
        {
            "type": "attachment",
            "id": file.id,
            "name": "impfpass.txt",
            "media_type": "text/plain",
            "size": 7,
            "pages": 0,
        }
    ]


def test_an_imported_document_is_read_and_found_like_any_other(database: Database, user_id: int) -> None:
    a_life(database, user_id)
    before = Library(database, user_id)
    after = Library(database, somebody_else(database))
    receipt = brought(database, after.user_id, exported(database, user_id))
    assert (receipt.documents_new, receipt.documents_known) == (1, 0)
    after.read_all()
    [found], [known] = after.search("drei Monate Frist")[:1], before.search("drei Monate Frist")[:1]
    assert (found.document, found.heading, found.content) == (known.document, known.heading, known.content)
    again = brought(database, after.user_id, exported(database, user_id))
    assert (again.documents_new, again.documents_known) == (0, 1)


def test_sources_of_an_imported_answer_lead_to_no_document_of_somebody_else(parts: Parts, claude: FakeClaude) -> None:
    Library(parts.database, parts.user_id).read("Mietvertrag.md", LEASE)
    claude.say(ToolUse("search_documents", {"query": "Kündigung"}), "Drei Monate (Mietvertrag.md).")
    ask(parts, "Wie lange ist die Frist?")
    document = exported(parts.database, parts.user_id)
    result = document["conversations"][0]["messages"][1]["blocks"][0]["result"]
    assert {(one["document_id"], one["passage_id"]) for one in result["passages"]} == {(None, None)}
    brought(parts.database, somebody_else(parts.database), document)
    result["passages"][0]["document_id"] = 1
    with pytest.raises(ImportInvalid, match="belongs to another database"):
        brought(parts.database, somebody_else(parts.database), document)


def test_an_imported_attachment_goes_to_claude_when_the_chat_goes_on(parts: Parts, claude: FakeClaude) -> None:
    brought(parts.database, parts.user_id, export_of())
    claude.say("Gegen Tollwut.")
    ask(parts, "Wogegen ist er geimpft?", conversation_id=the_chat(parts.database, parts.user_id))
    documents = [block for block in chat_requests(claude)[-1]["messages"][0]["content"] if block["type"] != "text"]
    sent = json.dumps(documents or chat_requests(claude)[-1]["messages"][0])
    assert "Tollwut" in sent
    assert "impfpass.txt" in sent


def test_deleting_a_chat_or_everything_takes_what_was_imported_too(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=the_chat(database, user_id), with_facts=True)
        # Until then its files wait for an Undo.
        drop_deletions(connection, user_id=user_id)
    assert {table for table, rows in counted(database).items() if rows} == {"documents"}
    brought(database, user_id, export_of())
    Library(database, user_id).read_all()
    indexed(database)
    delete_everything(database, user_id=user_id)
    assert set(counted(database).values()) == {0}


def test_an_import_while_a_chat_is_answering_leaves_the_answer_alone(database: Database, user_id: int) -> None:
    brought(database, user_id, export_of())
    chat = the_chat(database, user_id)
    with database.try_lock(Lock.TURN, chat):
        said(database, user_id, ("Läuft gerade", "…"), conversation_id=chat)
        receipt = brought(database, user_id, grown("Er ist krank"))
    assert (receipt.conversations_known, receipt.messages) == (1, 0)


# --- size


def test_a_long_life_takes_little_memory(database: Database, user_id: int) -> None:
    """40 MB of texts in 2,000 chats: neither writing nor reading holds more than a part of it."""
    run(
        database,
        """WITH chats AS (INSERT INTO conversations (user_id) SELECT :user FROM generate_series(1, 2000) RETURNING id)
           INSERT INTO messages (conversation_id, user_id, role, content)
           SELECT id, :user, CASE turn % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, repeat(md5(id || '/' || turn), 63)
           FROM chats, generate_series(0, 9) AS turn ORDER BY id, turn""",
        user=user_id,
    )

    class Counting(io.RawIOBase):
        size = 0

        def write(self, content: Any) -> int:
            self.size += len(content)
            return len(content)

    file = Counting()
    tracemalloc.start()
    assert write_export(database, user_id=user_id, file=file).messages == 20_000  # type: ignore[arg-type]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.size > 40_000_000
    assert most < 12_000_000


def test_a_large_file_is_imported_in_little_memory(database: Database, user_id: int, tmp_path: Any) -> None:
    path = tmp_path / "conversations.json"
    with path.open("w") as file:
        file.write("[")
        for number in range(600):
            tree = [
                node(str(n), str(n - 1), ("user", "assistant")[n % 2], f"{number}/{n} " + "x" * 3_000)
                for n in range(20)
            ]
            file.write(("," if number else "") + json.dumps(chatgpt(*tree, number=f"c{number}")))
        file.write("]")
    assert path.stat().st_size > 36_000_000
    tracemalloc.start()
    with path.open("rb") as opened:
        receipt = import_file(database, user_id=user_id, file=opened)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (receipt.conversations_new, receipt.messages) == (600, 12_000)
    assert most < 36_000_000


def test_the_queries_of_an_import_do_not_grow_with_its_messages(database: Database, user_id: int) -> None:
    counts = []
    for person, messages in ((user_id, 2), (somebody_else(database), 60)):
        statements: list[str] = []

        def note(*args: Any, into: list[str] = statements) -> None:
            into.append(args[2])

        said_then = [MESSAGE | {"role": ("user", "assistant")[n % 2]} for n in range(messages)]
        chats = [CONVERSATION | {"external_id": str(n), "messages": said_then} for n in range(messages)]
        event.listen(database.engine, "before_cursor_execute", note)
        brought(database, person, export_of(conversations=chats, facts=[], versions=[], attachments=[]))
        event.remove(database.engine, "before_cursor_execute", note)
        counts.append(len(statements))
    # 3,600 messages go in four statements of 1,000.
    assert counts[1] <= counts[0] + 4

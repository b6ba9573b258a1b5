"""A conversation is deleted with a receipt, comes back by Undo as it was, and is gone for good after an hour."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from jarvis_memory import deletions
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import start_turn
from jarvis_memory.claude import Claude
from jarvis_memory.conversations import (
    get_conversation,
    insert_message,
    list_conversations,
    load_sent,
    update_conversation,
    update_message,
)
from jarvis_memory.database import Database
from jarvis_memory.deletions import (
    Deletion,
    count_facts_from,
    delete_conversation,
    purge_old_deletions,
    undo_deletion,
)
from jarvis_memory.erasure import delete_all_memory, delete_everything
from jarvis_memory.errors import ConversationNotFound, DeletionExpired
from jarvis_memory.facts import get_all_memory_facts, remember_fact, update_fact
from jarvis_memory.forgetting import forget_fact
from jarvis_memory.memory_switch import switch_memory
from jarvis_memory.recall_index import remove_from_index
from jarvis_memory.running_turns import TURNS
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import pending_conversations, update_conversation_summary
from tests.fake_claude import FakeClaude
from tests.integration.chats import (
    InBackground,
    at_once,
    change_message,
    excluded_of,
    indexed,
    messages_of,
    one,
    run,
    said,
    somebody_else,
    summary_of,
    wait_until,
)
from tests.integration.turns import held


def delete(database: Database, user_id: int, conversation_id: int, **options: bool) -> Deletion:
    with database.begin() as connection:
        return delete_conversation(connection, user_id=user_id, conversation_id=conversation_id, **options)


def undo(database: Database, user_id: int, deletion: Deletion) -> int:
    assert deletion.id is not None
    with database.begin() as connection:
        return undo_deletion(connection, user_id=user_id, deletion_id=deletion.id)


def everything(database: Database, *, but: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """All rows that belong to conversations, without what the background makes anew and `but` these columns."""
    derived = ["words", "words_indexed", "exchange_model", "embedding", "embedding_model", "indexed_text", "revision"]
    with database.begin() as connection:
        return {
            table: connection.scalars(
                text(f"SELECT to_jsonb(t) - CAST(:left_out AS text[]) FROM {table} t ORDER BY 1"),
                {"left_out": [*derived, *but]},
            ).all()
            for table in (
                "conversations",
                "messages",
                "conversation_summaries",
                "message_versions",
                "memory_facts",
                "attachments",
            )
        }


def stored(database: Database) -> int:
    """How many deletions can still be undone."""
    return int(one(database, "SELECT count(*) AS n FROM deletions").n)


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


# --- undo -------------------------------------------------------------------------------------------------


@pytest.fixture
def full(database: Database, user_id: int, with_facts: int) -> int:
    """That chat with everything that a chat can have."""
    last = messages_of(database, user_id, with_facts)[-1].id
    change_message(database, user_id, last, blocks=[{"type": "notice", "kind": "refusal"}], sent={"system": ["s"]})
    change_message(database, user_id, last, tokens_used=7, usage={"input": 3}, excluded_from_memory=True)
    values = {"u": user_id, "c": with_facts, "m": last}
    run(
        database,
        """INSERT INTO message_versions (user_id, conversation_id, message_id, messages)
           VALUES (:u, :c, :m, '[{"role": "assistant", "content": "Früher"}]')""",
        **values,
    )
    run(
        database,
        """INSERT INTO attachments (user_id, message_id, name, media_type, content, size)
           VALUES (:u, :m, 'bild.png', 'image/png', decode('00ff10', 'hex'), :c)""",
        **values,
    )
    with database.begin() as connection:
        remove_from_index(connection, user_id=user_id, message_ids=[last])
        update_conversation(
            connection, user_id=user_id, conversation_id=with_facts, pinned=True, model="claude", title_by_user=True
        )
    indexed(database)
    return with_facts


@pytest.mark.parametrize("with_its_facts", [False, True])
def test_undo_brings_everything_back_as_it_was(
    database: Database, user_id: int, full: int, with_its_facts: bool
) -> None:
    before = everything(database)
    gone = delete(database, user_id, full, with_facts=with_its_facts)
    assert one(database, "SELECT count(*) AS n FROM attachments WHERE message_id IS NOT NULL").n == 0
    assert undo(database, user_id, gone) == full
    assert everything(database) == before
    assert stored(database) == 0


def test_what_came_back_is_searchable_and_counted_again(database: Database, user_id: int, full: int) -> None:
    def index() -> tuple[Any, ...]:
        with database.begin() as connection:
            words = connection.execute(
                text("SELECT conversation_id, word, count FROM conversation_words ORDER BY 1, 2")
            )
            counted = connection.execute(text("SELECT id, words FROM conversations ORDER BY 1"))
            exchanges = connection.execute(text("SELECT message_id, piece FROM exchanges ORDER BY 1, 2"))
            return words.all(), counted.all(), exchanges.all()

    before = index()
    undo(database, user_id, delete(database, user_id, full))
    indexed(database)
    assert index() == before
    assert one(database, "SELECT count(*) AS n FROM memory_facts WHERE embedding IS NULL").n == 0


def test_a_chat_of_5000_messages_comes_back(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Anfang", "Ja."), summary="Lang.")
    run(
        database,
        """INSERT INTO messages (conversation_id, user_id, role, content, blocks, sent)
           SELECT :c, :u, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, repeat('Äpfel ' || n || ' ', 50),
                  jsonb_build_array(jsonb_build_object('type', 'now', 'text', n)), '{"system": ["s"]}'
           FROM generate_series(1, 4998) AS n""",
        c=chat,
        u=user_id,
    )
    before = everything(database)
    gone = delete(database, user_id, chat)
    assert gone.messages == 5_000
    undo(database, user_id, gone)
    assert everything(database) == before


def test_undo_works_once(database: Database, user_id: int, with_facts: int) -> None:
    gone = delete(database, user_id, with_facts)
    undo(database, user_id, gone)
    with pytest.raises(DeletionExpired):
        undo(database, user_id, gone)
    assert len(messages_of(database, user_id, with_facts)) == 4


def test_two_tabs_that_undo_one_deletion_bring_one_chat_back(database: Database, user_id: int, full: int) -> None:
    before = everything(database)
    gone = delete(database, user_id, full, with_facts=True)
    results = at_once(lambda: undo(database, user_id, gone), lambda: undo(database, user_id, gone))
    assert sorted(map(str, results)) == sorted([str(full), str(DeletionExpired())])
    assert everything(database) == before


def test_deletions_and_undos_of_several_chats_do_not_stand_in_each_others_way(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, (f"Chat {number}", "Ja."), summary="Kurz.") for number in range(6)]
    for number, chat in enumerate(chats):
        source = messages_of(database, user_id, chat)[0].id
        block = {"type": "recalled", "text": "…", "conversations": [{"id": other, "title": ""} for other in chats]}
        change_message(database, user_id, source, blocks=[block])
        remember_fact(database, user_id=user_id, fact=f"Fakt {number}", source_message_id=source)

    def there_and_back(chat: int) -> None:
        for _ in range(3):
            undo(database, user_id, delete(database, user_id, chat, with_facts=True))

    assert at_once(*(lambda chat=chat: there_and_back(chat) for chat in chats)) == [None] * 6
    assert len(facts(database, user_id)) == 6
    assert [len(messages_of(database, user_id, chat)) for chat in chats] == [2] * 6


def test_after_an_hour_a_deletion_cannot_be_undone_and_is_purged(database: Database, user_id: int, full: int) -> None:
    other = said(database, user_id, ("Eben noch", "Ja."))
    old, new = delete(database, user_id, full), delete(database, user_id, other)
    run(database, "UPDATE deletions SET created_at = now() - interval '61 minutes' WHERE id = :id", id=old.id)
    with pytest.raises(DeletionExpired):
        undo(database, user_id, old)
    with database.begin() as connection:
        purge_old_deletions(connection)
    assert one(database, "SELECT count(*) AS n FROM attachments").n == 0
    assert undo(database, user_id, new) == other


def test_the_background_purges_what_is_too_old(database: Database, user_id: int, build: Callable[..., Parts]) -> None:
    delete(database, user_id, said(database, user_id, ("Weg", "Ja.")))
    run(database, "UPDATE deletions SET created_at = now() - interval '61 minutes'")
    build()
    wait_until(lambda: stored(database) == 0)


def test_a_temporary_chat_is_gone_for_good(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Unter uns", "Ja."), remember=False)
    run(database, "UPDATE conversations SET temporary = true")
    run(
        database,
        """INSERT INTO attachments (user_id, message_id, name, media_type, content, size)
           SELECT user_id, id, 'x', 'text/plain', 'x', 1 FROM messages""",
    )
    assert delete(database, user_id, chat).id is None
    assert stored(database) == 0
    assert one(database, "SELECT count(*) AS n FROM attachments").n == 0


def test_a_chat_too_large_for_undo_can_still_be_deleted(
    database: Database, user_id: int, full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "LARGEST_UNDO_BYTES", 100)
    assert delete(database, user_id, full).id is None
    assert stored(database) == 0
    assert messages_of(database, user_id, full) == []


# --- what happened between a deletion and its Undo ----------------------------------------------------------


def test_a_fact_that_was_remembered_anew_stays_as_it_is(database: Database, user_id: int, with_facts: int) -> None:
    gone = delete(database, user_id, with_facts, with_facts=True)
    anew, _ = remember_fact(database, user_id=user_id, fact="ich mag ROM.")
    undo(database, user_id, gone)
    known = {fact.id: fact.content for fact in loaded(database, user_id)}
    assert known[anew.id] == "ich mag ROM."
    assert sorted(known.values()) == ["Ich mag Brot", "Ich mag Tee", "Mein Hund heißt Bruno", "ich mag ROM."]


def test_a_fact_that_another_chat_changed_keeps_its_new_source(
    database: Database, user_id: int, with_facts: int
) -> None:
    rome = next(fact for fact in loaded(database, user_id) if "Rom" in fact.content)
    gone = delete(database, user_id, with_facts)
    source = messages_of(database, user_id, said(database, user_id, ("Mailand", "Ja.")))[0].id
    update_fact(database, user_id=user_id, fact_id=rome.id, fact="Ich mag Mailand", source_message_id=source)
    undo(database, user_id, gone)
    sources = {fact.content: fact.source_message_id for fact in loaded(database, user_id)}
    assert sources["Ich mag Mailand"] == source
    assert sources["Mein Hund heißt Bruno"] == messages_of(database, user_id, with_facts)[0].id


@pytest.mark.parametrize("with_its_facts", [False, True])
def test_a_fact_that_was_forgotten_meanwhile_does_not_come_back_by_undo(
    database: Database, user_id: int, with_facts: int, with_its_facts: bool
) -> None:
    said(database, user_id, ("Mein Hund heißt Bruno", "Schön."))
    gone = delete(database, user_id, with_facts, with_facts=with_its_facts)
    if with_its_facts:
        remember_fact(database, user_id=user_id, fact="Mein Hund heißt Bruno")
    assert forget_fact(database, user_id=user_id, query="Bruno").id
    with pytest.raises(DeletionExpired):
        undo(database, user_id, gone)
    assert stored(database) == 0
    assert not any("Bruno" in content for content, _ in facts(database, user_id))


def test_a_forgetting_that_found_nothing_leaves_undo_alone(database: Database, user_id: int, with_facts: int) -> None:
    other = somebody_else(database)
    remember_fact(database, user_id=other, fact="Ich mag Brot")
    gone = delete(database, user_id, with_facts)
    assert forget_fact(database, user_id=user_id, query="Quark").id is None
    assert forget_fact(database, user_id=user_id, query="Ich mag").id is None
    assert forget_fact(database, user_id=other, query="Brot").id, "somebody else's forgetting"
    assert undo(database, user_id, gone) == with_facts


def test_what_was_forgotten_before_stays_out_of_the_memory(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Mein Hund heißt Bruno", "Ja."), ("Und Rom?", "Schön."))
    remember_fact(database, user_id=user_id, fact="Mein Hund heißt Bruno")
    assert forget_fact(database, user_id=user_id, query="Bruno").id
    undo(database, user_id, delete(database, user_id, chat))
    assert excluded_of(database, user_id, chat) == ["Mein Hund heißt Bruno", "Ja."]
    indexed(database)
    words = "SELECT count(*) AS n FROM conversation_words WHERE word = 'bruno'"
    assert one(database, words).n == 0


@pytest.mark.parametrize("erase", [delete_all_memory, delete_everything])
def test_nothing_comes_back_after_the_memory_was_deleted(
    database: Database, user_id: int, full: int, erase: Callable[..., Deletion]
) -> None:
    gone = delete(database, user_id, full, with_facts=True)
    erase(database, user_id=user_id)
    with pytest.raises(DeletionExpired):
        undo(database, user_id, gone)
    assert facts(database, user_id) == []
    assert one(database, "SELECT count(*) AS n FROM attachments").n == 0


def test_a_chat_that_an_import_brought_back_meanwhile_is_not_there_twice(
    database: Database, user_id: int, with_facts: int
) -> None:
    external_id = one(database, "SELECT external_id FROM conversations WHERE id = :c", c=with_facts).external_id
    gone = delete(database, user_id, with_facts)
    run(database, "INSERT INTO conversations (user_id, external_id) VALUES (:u, :e)", u=user_id, e=external_id)
    with pytest.raises(DeletionExpired):
        undo(database, user_id, gone)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_what_it_had_recalled_of_a_chat_that_left_the_memory_meanwhile_does_not_come_back(
    database: Database, user_id: int, is_deleted: bool
) -> None:
    rome, tea = (said(database, user_id, (word, "Ja."), summary=f"{word}.") for word in ("Rom", "Tee"))
    asking = said(database, user_id, ("Wohin?", "Nach Rom."), ("Was trinken?", "Tee."))
    first, _, second, _ = messages_of(database, user_id, asking)
    blocks = {
        number: [{"type": "recalled", "text": "…", "conversations": [{"id": number, "title": "…"}]}]
        for number in (rome, tea)
    }
    change_message(database, user_id, first.id, blocks=blocks[rome])
    change_message(database, user_id, second.id, blocks=blocks[tea])
    gone = delete(database, user_id, asking)
    if is_deleted:
        delete(database, user_id, rome)
    else:
        with database.begin() as connection:
            switch_memory(connection, user_id=user_id, conversation_id=rome, on=False)
    undo(database, user_id, gone)
    messages = messages_of(database, user_id, asking)
    assert (messages[0].blocks, messages[2].blocks) == ([], blocks[tea])


def test_a_summary_that_was_being_written_does_not_come_in_after_undo(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    settings = Settings(_env_file=None, anthropic_api_key="test-key", anthropic_base_url=claude.base_url)
    chat = said(database, user_id, ("Ich fahre nach Rom", "Gute Reise!"))
    reply, started, release = held("Titel: Rom\nZusammenfassung: Von gestern.")
    claude.say_to_summary(reply)
    job = InBackground(
        lambda: update_conversation_summary(
            database=database, claude=Claude(settings), settings=settings, conversation_id=chat
        )
    )
    assert started.wait(60)
    undo(database, user_id, delete(database, user_id, chat))
    release.set()
    assert job.result() is False
    assert summary_of(database, chat).summary is None
    with database.begin() as connection:
        assert pending_conversations(connection) == [chat], "it is written anew"


def test_a_stopped_turn_does_not_bring_a_deleted_chat_back(parts: Parts, claude: FakeClaude) -> None:
    reply, started, release = held("Das ist eine lange Antwort.")
    claude.say(reply)
    turn = start_turn(parts, user_id=parts.user_id, message="Erzähl mir etwas")
    other, other_started, other_release = held("Auch das ist eine lange Antwort.")
    claude.say(other)
    assert started.wait(60)
    beside = start_turn(parts, user_id=parts.user_id, message="Und hier auch")
    assert other_started.wait(60)
    TURNS.stop(user_id=parts.user_id, conversation_id=turn.conversation_id)
    assert turn.done.is_set()
    assert not beside.done.is_set(), "the turns of other chats go on"
    gone = delete(parts.database, parts.user_id, turn.conversation_id)
    release.set()
    other_release.set()
    assert messages_of(parts.database, parts.user_id, turn.conversation_id) == []
    undo(parts.database, parts.user_id, gone)
    question, answer = messages_of(parts.database, parts.user_id, turn.conversation_id)
    assert question.content == "Erzähl mir etwas"
    assert (answer.status, answer.content) == ("interrupted", "Das ist eine")


def loaded(database: Database, user_id: int) -> list[Any]:
    with database.begin() as connection:
        return list(get_all_memory_facts(connection, user_id=user_id))


# --- each person's for themselves -------------------------------------------------------------------------


def test_nobody_undoes_the_deletion_of_somebody_else(database: Database, user_id: int, full: int) -> None:
    other = somebody_else(database)
    gone = delete(database, user_id, full)
    with pytest.raises(DeletionExpired):
        undo(database, other, gone)
    delete_all_memory(database, user_id=other)
    assert undo(database, user_id, gone) == full


def test_nobody_sees_or_changes_the_conversations_of_somebody_else(
    database: Database, user_id: int, with_facts: int
) -> None:
    other = somebody_else(database)
    before = messages_of(database, user_id, with_facts)
    change_message(database, user_id, before[1].id, sent={"system": ["geheim"]})
    with database.begin() as connection:
        assert list_conversations(connection, user_id=other) == []
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

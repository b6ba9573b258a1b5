"""The recall index holds exactly what the memory may recall: words at once, vectors when the background was there."""

import random
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text

from jarvis_memory.conversations import insert_message, load_messages
from jarvis_memory.database import Database, Lock
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.embeddings import OllamaEmbeddings
from jarvis_memory.erasure import delete_all_memory
from jarvis_memory.facts import remember_fact
from jarvis_memory.forgetting import forget_fact, undo_forgetting
from jarvis_memory.recall_index import (
    PIECES_AN_EXCHANGE,
    index_pending_words,
    index_progress,
    index_words,
    pending_exchanges,
    pieces_of,
    remove_from_index,
    store_exchange,
)
from jarvis_memory.versions import replace_messages
from tests.fake_ollama import FakeOllama
from tests.integration.chats import at_once, change_message, messages_of, run, said

MODEL = "ollama/embeddinggemma"


@pytest.fixture
def embeddings() -> Iterator[OllamaEmbeddings]:
    with FakeOllama() as ollama:
        yield OllamaEmbeddings(ollama.base_url, "embeddinggemma")


def words_of(database: Database, chat: int) -> dict[str, int]:
    with database.begin() as connection:
        rows = connection.execute(
            text("SELECT word, count FROM conversation_words WHERE conversation_id = :id"), {"id": chat}
        )
        return {row.word: row.count for row in rows}


def total_of(database: Database, chat: int) -> int:
    with database.begin() as connection:
        return int(connection.scalar(text("SELECT words FROM conversations WHERE id = :id"), {"id": chat}))


def pieces_in_index(database: Database, chat: int) -> list[tuple[int, int]]:
    with database.begin() as connection:
        rows = connection.execute(
            text("SELECT message_id, piece FROM exchanges WHERE conversation_id = :id ORDER BY 1, 2"), {"id": chat}
        )
        return [(row.message_id, row.piece) for row in rows]


def embed_all(database: Database, embeddings: OllamaEmbeddings) -> list[int]:
    """What the background does. Returns the messages whose exchanges it found pending."""
    with database.begin() as connection:
        pending = pending_exchanges(connection, embedding_model=embeddings.model, limit=100)
    for exchange in pending:
        vectors = embeddings.embed_passages(pieces_of(exchange.question, exchange.answer))
        with database.begin() as connection:
            store_exchange(connection, exchange, vectors=vectors, embedding_model=embeddings.model)
    return [exchange.message_id for exchange in pending]


# --- words ------------------------------------------------------------------------------------------------


def test_a_conversation_is_searchable_by_its_words_as_soon_as_a_message_is_saved(
    database: Database, user_id: int
) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Bruno ist ein Hund."))
    words = words_of(database, chat)
    assert words["bruno"] == 2
    assert words["hund"] == 2
    assert total_of(database, chat) == sum(words.values())


def test_an_answer_that_is_still_running_is_not_counted(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Frage", "Antwort"))
    before = words_of(database, chat)
    with database.begin() as connection:
        insert_message(
            connection,
            user_id=user_id,
            conversation_id=chat,
            role="assistant",
            content="Bruchstück",
            status="interrupted",
        )
    assert words_of(database, chat) == before


def test_a_message_is_counted_once_however_often_it_is_indexed(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Ja."))
    before = words_of(database, chat)
    ids = [message.id for message in messages_of(database, user_id, chat)]
    with database.begin() as connection:
        index_words(connection, user_id=user_id, message_ids=ids)
    assert words_of(database, chat) == before


def replaced_last(connection: Connection, user_id: int, chat: int, *, by: str) -> None:
    """Another answer takes the place of the last one."""
    last = load_messages(connection, user_id=user_id, conversation_id=chat)[-1]
    new = insert_message(connection, user_id=user_id, conversation_id=chat, role="assistant", content=by)
    replace_messages(connection, user_id=user_id, conversation_id=chat, first_id=last.id, by_id=new)


def test_what_a_retry_replaces_leaves_the_index(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Guter Hund, aber"))
    answer = messages_of(database, user_id, chat)[-1]
    change_message(database, user_id, answer.id, status="interrupted")
    with database.begin() as connection:
        replaced_last(connection, user_id, chat, by="")
    assert words_of(database, chat)["hund"] == 1
    assert total_of(database, chat) == sum(words_of(database, chat).values())


def test_a_temporary_chat_leaves_nothing_in_the_index(
    database: Database, user_id: int, embeddings: OllamaEmbeddings
) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Ja."), remember=False)
    assert embed_all(database, embeddings) == []
    assert (words_of(database, chat), pieces_in_index(database, chat)) == ({}, [])


def test_another_users_messages_are_out_of_reach(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Ja."))
    before = words_of(database, chat)
    ids = [message.id for message in messages_of(database, user_id, chat)]
    with database.begin() as connection:
        remove_from_index(connection, user_id=user_id + 1, message_ids=ids)
    assert words_of(database, chat) == before


def test_words_that_nobody_counted_are_caught_up_with(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Ja."), ("Und die Katze Mia", "Gut."))
    before = words_of(database, chat)
    run(database, "UPDATE messages SET words_indexed = false")
    run(database, "DELETE FROM conversation_words")
    run(database, "UPDATE conversations SET words = 0")
    with database.begin() as connection:
        assert index_pending_words(connection, limit=3)
    with database.begin() as connection:
        assert index_pending_words(connection, limit=3)
        assert not index_pending_words(connection, limit=3)
    assert words_of(database, chat) == before
    assert total_of(database, chat) == sum(before.values())


def test_a_running_turns_answer_is_left_to_the_turn(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Frage", "Halbe Antw"))
    run(database, "UPDATE messages SET words_indexed = false")
    with database.try_lock(Lock.TURN, chat), database.begin() as connection:
        assert not index_pending_words(connection)
        assert pending_exchanges(connection, embedding_model=MODEL) == []


# --- exchanges --------------------------------------------------------------------------------------------


def test_every_exchange_gets_its_vectors_once(database: Database, user_id: int, embeddings: OllamaEmbeddings) -> None:
    chat = said(database, user_id, ("Eins", "1"), ("Zwei", "2"))
    first, _, second, _ = messages_of(database, user_id, chat)
    assert embed_all(database, embeddings) == [second.id, first.id]
    assert pieces_in_index(database, chat) == [(first.id, 0), (second.id, 0)]
    assert embed_all(database, embeddings) == []


def test_a_new_exchange_in_a_long_chat_is_the_only_work(
    database: Database, user_id: int, embeddings: OllamaEmbeddings
) -> None:
    chat = said(database, user_id, *[(f"Frage {number}", "Ja.") for number in range(50)])
    embed_all(database, embeddings)
    said(database, user_id, ("Noch eine", "Gut."), conversation_id=chat)
    assert len(embed_all(database, embeddings)) == 1


def test_a_long_exchange_is_cut_into_overlapping_pieces() -> None:
    question = " ".join(f"wort{number}" for number in range(300))
    pieces = pieces_of(question, "Die Antwort.")
    assert len(pieces) > 1
    for before, after in zip(pieces, pieces[1:], strict=False):
        assert after[:100] in before
    assert pieces[0].startswith("wort0 ")
    assert pieces[-1].endswith("Die Antwort.")


def test_an_endless_exchange_has_a_bounded_number_of_pieces() -> None:
    assert len(pieces_of("x " * 100_000, "")) == PIECES_AN_EXCHANGE


def test_an_exchange_with_little_text_is_one_piece() -> None:
    assert pieces_of("Wie heißt mein Hund?", "Bruno.") == ["Wie heißt mein Hund?\nBruno."]


def test_vectors_of_an_answer_that_was_replaced_meanwhile_are_not_stored(
    database: Database, user_id: int, embeddings: OllamaEmbeddings
) -> None:
    chat = said(database, user_id, ("Frage", "Alte Antw"))
    answer = messages_of(database, user_id, chat)[-1]
    change_message(database, user_id, answer.id, status="interrupted")
    with database.begin() as connection:
        [read] = pending_exchanges(connection, embedding_model=embeddings.model)
    with database.begin() as connection:
        replaced_last(connection, user_id, chat, by="Neue Antwort")
    with database.begin() as connection:
        store_exchange(connection, read, vectors=embeddings.embed_passages(["x"]), embedding_model=embeddings.model)
    assert pieces_in_index(database, chat) == []
    with database.begin() as connection:
        [again] = pending_exchanges(connection, embedding_model=embeddings.model)
    assert again.answer == "Neue Antwort"


@pytest.mark.parametrize("change", ["excluded", "deleted"])
def test_a_job_that_was_running_brings_nothing_back(
    database: Database, user_id: int, embeddings: OllamaEmbeddings, change: str
) -> None:
    chat = said(database, user_id, ("Der Hund heißt Bruno", "Ja."))
    with database.begin() as connection:
        [read] = pending_exchanges(connection, embedding_model=embeddings.model)
    if change == "excluded":
        delete_all_memory(database, user_id=user_id)
    else:
        with database.begin() as connection:
            delete_conversation(connection, user_id=user_id, conversation_id=chat)
    with database.begin() as connection:
        store_exchange(connection, read, vectors=embeddings.embed_passages(["x"]), embedding_model=embeddings.model)
    assert (pieces_in_index(database, chat), words_of(database, chat)) == ([], {})


def test_another_model_takes_the_place_of_the_former_ones_vectors(
    database: Database, user_id: int, embeddings: OllamaEmbeddings
) -> None:
    chat = said(database, user_id, ("Eins", "1"), ("Zwei", "2"))
    embed_all(database, embeddings)
    with FakeOllama() as ollama:
        other = OllamaEmbeddings(ollama.base_url, "nomic-embed-text")
        with database.begin() as connection:
            progress = index_progress(connection, user_id=user_id, embedding_model=other.model)
        assert (progress.waiting, progress.total) == (2, 2)
        assert len(embed_all(database, other)) == 2
        with database.begin() as connection:
            models = connection.scalars(text("SELECT DISTINCT embedding_model FROM exchanges")).all()
            progress = index_progress(connection, user_id=user_id, embedding_model=other.model)
    assert models == [other.model]
    assert progress.waiting == 0
    assert len(pieces_in_index(database, chat)) == 2


# --- forgetting -------------------------------------------------------------------------------------------


def test_forgetting_takes_the_exchanges_out_and_undo_brings_them_back(
    database: Database, user_id: int, embeddings: OllamaEmbeddings
) -> None:
    fact, _ = remember_fact(database, user_id=user_id, fact="Mein Hund heißt Bruno")
    chat = said(database, user_id, ("Mein Hund heißt Bruno", "Schön."), ("Das Auto ist rot", "Gut."))
    embed_all(database, embeddings)
    before, pieces = words_of(database, chat), pieces_in_index(database, chat)
    forgetting = forget_fact(database, user_id=user_id, fact_id=fact.id)
    assert "bruno" not in words_of(database, chat)
    assert words_of(database, chat)["auto"] == 1
    assert pieces_in_index(database, chat) == pieces[1:]
    assert embed_all(database, embeddings) == []
    undo_forgetting(database, user_id=user_id, forgetting_id=forgetting.id)
    assert words_of(database, chat) == before
    assert len(embed_all(database, embeddings)) == 1
    assert pieces_in_index(database, chat) == pieces


def test_counts_stay_exact_when_messages_come_and_go_at_the_same_time(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, ("Anfang gemacht", "Ja.")) for _ in range(3)]
    words = [f"Wort{number}" for number in range(12)]

    def add_and_remove(seed: int) -> None:
        chance = random.Random(seed)
        mine: list[int] = []
        for _ in range(20):
            with database.begin() as connection:
                if mine and chance.random() < 0.4:
                    remove_from_index(connection, user_id=user_id, message_ids=mine[-2:])
                elif mine and chance.random() < 0.3:
                    index_words(connection, user_id=user_id, message_ids=mine)
                else:
                    content = " ".join(chance.choices(words, k=6))
                    chat = chance.choice(chats)
                    mine.append(
                        insert_message(connection, user_id=user_id, conversation_id=chat, role="user", content=content)
                    )

    at_once(*[lambda seed=seed: add_and_remove(seed) for seed in range(6)])
    for chat in chats:
        counted, total = words_of(database, chat), total_of(database, chat)
        assert total == sum(counted.values())
        run(
            database,
            "UPDATE messages SET excluded_from_memory = NOT words_indexed WHERE conversation_id = :id",
            id=chat,
        )
        run(database, "UPDATE messages SET words_indexed = false WHERE conversation_id = :id", id=chat)
        run(database, "DELETE FROM conversation_words WHERE conversation_id = :id", id=chat)
        run(database, "UPDATE conversations SET words = 0 WHERE id = :id", id=chat)
        with database.begin() as connection:
            index_pending_words(connection, limit=1_000)
        assert words_of(database, chat) == counted


def test_deleting_indexing_and_forgetting_at_the_same_time_wait_for_each_other_in_turn(
    database: Database, user_id: int
) -> None:
    """No deadlock: each of them locks conversations, then messages, then words."""
    chats = [said(database, user_id, (f"Mein Hund Bruno und Wort{number}", "Schön.")) for number in range(30)]
    facts = [remember_fact(database, user_id=user_id, fact=f"Mein Hund mag Wort{number}")[0] for number in range(10)]
    run(database, "UPDATE messages SET words_indexed = false")
    run(database, "DELETE FROM conversation_words")
    run(database, "UPDATE conversations SET words = 0")

    def delete() -> None:
        for chat in chats[10:]:
            with database.begin() as connection:
                delete_conversation(connection, user_id=user_id, conversation_id=chat)

    def index() -> None:
        for _ in range(20):
            with database.begin() as connection:
                index_pending_words(connection, limit=15)

    def forget() -> None:
        for fact in facts:
            forgetting = forget_fact(database, user_id=user_id, fact_id=fact.id)
            undo_forgetting(database, user_id=user_id, forgetting_id=forgetting.id)

    at_once(delete, index, index, forget)
    with database.begin() as connection:
        while index_pending_words(connection):
            pass
    for chat in chats[:10]:
        assert words_of(database, chat)["bruno"] == 1
        assert total_of(database, chat) == sum(words_of(database, chat).values())
    for chat in chats[10:]:
        assert words_of(database, chat) == {}

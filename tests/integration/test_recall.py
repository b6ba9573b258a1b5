"""Recall with the built-in model: which earlier conversation comes back, why, and when none does."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, text

from jarvis_memory.database import Database
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.embeddings import BuiltInEmbeddings
from jarvis_memory.indexing import index_some
from jarvis_memory.recall import EXCERPT_CHARACTERS, RecalledConversation, recall_conversations, search_conversations
from tests.integration.chats import run, said, somebody_else

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
Recall = Callable[..., list[RecalledConversation]]

CHATS = {
    "dog": (
        ("Unser Hund Bruno hat Durchfall, was kann ich ihm geben?", "Einen Tag Schonkost: Reis mit Huhn."),
        ("Die Tierärztin Dr. Hespeler hat Giardien gefunden", "Dann helfen Tabletten über fünf Tage."),
    ),
    "trip": (
        ("Wir wollen im Juni mit dem Zug an den Gardasee", "Über Verona nach Desenzano, das dauert acht Stunden."),
        ("Welcher Ort passt für Familien?", "Malcesine ist ruhig und hat einen flachen Strand."),
    ),
    "tax": (("Welche Belege brauche ich für die Steuererklärung?", "Lohnbescheinigung, Spenden und Handwerker."),),
    "bike": (("Mein Fahrrad quietscht beim Bremsen", "Reinige die Felge und schleife die Beläge an."),),
    "cake": (("Der Hefeteig geht nicht auf", "Die Milch war wohl zu heiß; höchstens 40 Grad."),),
}


@pytest.fixture(scope="module")
def embeddings() -> BuiltInEmbeddings:
    return BuiltInEmbeddings()


@pytest.fixture
def chats(database: Database, user_id: int, embeddings: BuiltInEmbeddings) -> dict[str, int]:
    found = {name: said(database, user_id, *exchanges, title=name) for name, exchanges in CHATS.items()}
    while index_some(database, embeddings):
        pass
    return found


@pytest.fixture
def recall(database: Database, user_id: int, embeddings: BuiltInEmbeddings) -> Recall:
    def ask(message: str, *, by_meaning: bool = True, **options: object) -> list[RecalledConversation]:
        values = {"user_id": user_id, "now": NOW} | options
        with database.begin() as connection:
            return recall_conversations(
                connection,
                message=message,
                embedding=embeddings.embed_query(message) if by_meaning else None,
                embedding_model=embeddings.model,
                **values,
            )

    return ask


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Was hatte Dr. Hespeler bei unserem Tier gefunden?", "dog"),
        ("Wohin wollten wir im Sommer in den Urlaub fahren?", "trip"),
        ("Welche Unterlagen sollte ich dem Finanzamt schicken?", "tax"),
        ("What was wrong with my bicycle again?", "bike"),
        ("Warum ist mein Kuchen neulich nichts geworden?", "cake"),
    ],
)
def test_the_conversation_that_answers_comes_first(
    recall: Recall, chats: dict[str, int], message: str, name: str
) -> None:
    assert recall(message)[0].id == chats[name]


@pytest.mark.parametrize(
    "message",
    ["Guten Morgen, wie geht es dir?", "Erzähl mir einen Witz", "Was ist die Hauptstadt von Portugal?", "17 mal 23?"],
)
def test_small_talk_and_general_questions_recall_nothing(recall: Recall, chats: dict[str, int], message: str) -> None:
    assert recall(message) == []


def test_the_exchange_that_fits_best_comes_along(recall: Recall, chats: dict[str, int]) -> None:
    best = recall("Was hatte Dr. Hespeler bei unserem Hund gefunden?")[0]
    assert best.excerpt == "\n".join(CHATS["dog"][1])
    assert best.found_by == "both"


def test_what_is_said_in_other_words_is_found_by_meaning(recall: Recall, chats: dict[str, int]) -> None:
    best = recall("Wohin wollten wir in den Ferien verreisen?")[0]
    assert (best.id, best.found_by) == (chats["trip"], "meaning")


def test_an_excerpt_is_cut(database: Database, user_id: int, embeddings: BuiltInEmbeddings, recall: Recall) -> None:
    said(database, user_id, ("Erzähl von unserem Gartenhaus. " + "Es ist aus Holz und steht am Zaun. " * 40, "Gut."))
    while index_some(database, embeddings):
        pass
    [found] = recall("Was hatten wir über unser Gartenhaus gesagt?")
    assert 0 < len(found.excerpt) <= EXCERPT_CHARACTERS


def test_a_conversation_is_found_by_its_words_before_the_background_was_there(
    database: Database, user_id: int, chats: dict[str, int], recall: Recall
) -> None:
    new = said(database, user_id, ("Wir haben den Schlüssel bei Frau Zipfel gelassen", "Gut zu wissen."))
    assert new in [one.id for one in recall("Was war nochmal mit Frau Zipfel und unserem Schlüssel?")]


def test_without_an_embedding_words_alone_recall(recall: Recall, chats: dict[str, int]) -> None:
    found = recall("Dr. Hespeler Giardien?", by_meaning=False)
    assert [(one.id, one.found_by) for one in found] == [(chats["dog"], "words")]
    assert recall("Guten Morgen", by_meaning=False) == []


def test_a_time_in_the_question_prefers_conversations_of_that_time(
    database: Database, chats: dict[str, int], recall: Recall
) -> None:
    for name, day in (("bike", "2026-11-25"), ("tax", "2026-05-12"), ("dog", "2026-02-01"), ("trip", "2026-03-01")):
        run(
            database,
            "UPDATE conversations SET created_at = CAST(:day AS date), updated_at = CAST(:day AS date) WHERE id = :id",
            day=day,
            id=chats[name],
        )
    run(
        database,
        "UPDATE conversations SET created_at = '2026-01-05', updated_at = '2026-01-05' WHERE id = :id",
        id=chats["cake"],
    )
    assert recall("Worüber haben wir letzte Woche gesprochen?")[0].id == chats["bike"]
    assert recall("Worüber haben wir im Mai gesprochen?")[0].id == chats["tax"]


def test_conversations_that_are_left_out_never_come(recall: Recall, chats: dict[str, int]) -> None:
    found = recall("Was hatte Dr. Hespeler bei unserem Hund gefunden?", without=[chats["dog"]])
    assert chats["dog"] not in [one.id for one in found]


def test_deleted_temporary_and_foreign_conversations_never_come(
    database: Database, user_id: int, chats: dict[str, int], recall: Recall
) -> None:
    question = "Was hatte Dr. Hespeler bei unserem Hund gefunden?"
    assert recall(question, user_id=somebody_else(database)) == []
    run(database, "UPDATE conversations SET remember = false WHERE id = :id", id=chats["trip"])
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=chats["dog"])
    assert not {chats["dog"], chats["trip"]} & {one.id for one in recall(question)}


def test_a_person_with_few_chats_is_found_among_the_many_of_another(database: Database, user_id: int) -> None:
    """The index of vectors knows no persons: its nearest neighbours are all the other's."""
    stranger = somebody_else(database)
    for person, chats, spread in ((stranger, 400, 0.02), (user_id, 1, 0.2)):
        for _ in range(chats):
            said(database, person, ("x", "y"))
        run(
            database,
            """INSERT INTO exchanges (message_id, piece, conversation_id, user_id, embedding, embedding_model)
               SELECT m.id, 0, m.conversation_id, m.user_id, l2_normalize(CAST((
                   SELECT array_agg(CASE place WHEN 1 THEN 1 ELSE :spread * (random() - 0.5) END)
                   FROM generate_series(1, 768) AS place WHERE m.id > 0) AS halfvec(768))), 'test'
               FROM messages m WHERE m.role = 'user' AND m.user_id = :person""",
            spread=spread,
            person=person,
        )
    with database.begin() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        found = search_conversations(
            connection,
            user_id=user_id,
            query="",
            embedding=[1.0] + [0.0] * 767,
            embedding_model="test",
            limit=3,
        )
    assert [one.excerpt for one in found] == ["x\ny"]


def test_a_search_lists_as_many_as_asked_for_even_when_little_fits(
    database: Database, user_id: int, embeddings: BuiltInEmbeddings, chats: dict[str, int]
) -> None:
    with database.begin() as connection:
        found = search_conversations(
            connection,
            user_id=user_id,
            query="Erzähl mir einen Witz",
            embedding=embeddings.embed_query("Erzähl mir einen Witz"),
            embedding_model=embeddings.model,
            limit=4,
        )
    assert len(found) == 4


def test_a_recall_takes_a_fixed_number_of_queries(database: Database, chats: dict[str, int], recall: Recall) -> None:
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    recall("Was hatte Dr. Hespeler bei unserem Hund gefunden?")
    assert len(statements) == 4, "a setting, the candidates, and two for what is told of the three"


@pytest.mark.parametrize("message", ["", "& | ! ( ' \\ :* <->", "%", "😀", "wort " * 3_000])
def test_any_message_can_be_asked(recall: Recall, chats: dict[str, int], message: str) -> None:
    assert isinstance(recall(message), list)

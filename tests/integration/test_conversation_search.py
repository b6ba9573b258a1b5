"""The search of the sidebar: all words, literally; one row a conversation; each person's for themselves."""

from datetime import UTC, datetime

import pytest

from jarvis_memory.conversation_search import RESULTS, Found, search_conversations, snippet_around, split_at_hits
from jarvis_memory.database import Database
from tests.integration.chats import change_message, messages_of, run, said, somebody_else


def search(database: Database, user_id: int, query: str) -> list[Found]:
    with database.begin() as connection:
        return search_conversations(connection, user_id=user_id, query=query)


def found(database: Database, user_id: int, query: str) -> list[int]:
    return [one.conversation_id for one in search(database, user_id, query)]


def test_all_words_have_to_stand_in_one_message_in_any_order_and_case(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Der Zug nach Rom fährt um acht", "Gute Fahrt!"))
    said(database, user_id, ("Der Zug ist voll", "Nach Rom?"))
    assert found(database, user_id, "rom zug") == [chat]
    assert found(database, user_id, "ZUG  RoM") == [chat]
    assert found(database, user_id, "zug rom bahn") == []
    assert found(database, user_id, "ug nach ro") == [chat], "words are found inside of words"


@pytest.mark.parametrize("query", ["äpfel", "ÄPFEL", "großGLOCKNER", "A\N{COMBINING DIAERESIS}pfel"])
def test_umlauts_are_found_whatever_their_case(database: Database, user_id: int, query: str) -> None:
    chat = said(database, user_id, ("Äpfel vom Großglockner", "Ja."))
    assert found(database, user_id, query) == [chat]


@pytest.mark.parametrize("query", ["", "   ", "%", "_", "* ?", "%%%", "\\", "\x00", "\ud800"])
def test_a_blank_query_or_one_of_wildcards_finds_nothing(database: Database, user_id: int, query: str) -> None:
    said(database, user_id, ("100 % sicher_lich * \\ ?", "Ja."), title="50 %")
    assert search(database, user_id, query) == []


@pytest.mark.parametrize("query", ["100%", "a_b", "c\\d", "50 %", "it's", '"so"', "(1)[2]{3}", ":x", "{}"])
def test_wildcards_and_signs_stand_for_themselves(database: Database, user_id: int, query: str) -> None:
    said(database, user_id, ("100 Prozent axb cd 50 its so 1 2 3 x", "Nein."))
    chat = said(database, user_id, ('Es sind 100% a_b c\\d 50 % it\'s "so" (1)[2]{3} :x {}', "Ja."))
    assert found(database, user_id, query) == [chat]


def test_a_chat_is_found_once_with_its_newest_hit(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Bruno bellt", "Wirklich?"), ("Bruno schläft", "Endlich."), ("Und?", "Nichts."))
    (one,) = search(database, user_id, "bruno")
    third = messages_of(database, user_id, chat)[2]
    assert (one.message_id, one.moment, one.snippet) == (third.id, third.created_at, "Bruno schläft")
    assert (one.conversation_id, one.title, one.archived) == (chat, "Bruno bellt", False)


def test_a_title_is_found_without_a_message_and_comes_first(database: Database, user_id: int) -> None:
    titled = said(database, user_id, ("Frage", "Ja."), title="Reise nach Rom")
    message = said(database, user_id, ("Rom ist weit", "Ja."), title="Anderes")
    both = said(database, user_id, ("Rom ist schön", "Ja."), title="Rom")
    results = search(database, user_id, "rom")
    assert [one.conversation_id for one in results] == [both, titled, message]
    assert [(one.message_id is None, one.snippet) for one in results] == [
        (False, "Rom ist schön"),
        (True, ""),
        (False, "Rom ist weit"),
    ]


def test_a_chat_without_a_title_is_named_as_the_list_names_it(database: Database, user_id: int) -> None:
    said(database, user_id, ("Was ist das?", "Ein Bild von Bruno."))
    files = said(database, user_id, ("", "Noch ein Bild von Bruno."))
    block = {"type": "attachment", "name": "hund.png"}
    change_message(database, user_id, messages_of(database, user_id, files)[0].id, blocks=[block])
    assert [one.title for one in search(database, user_id, "bruno")] == ["hund.png", "Was ist das?"]


def test_archived_chats_are_found_and_marked_temporary_ones_are_not(database: Database, user_id: int) -> None:
    archived = said(database, user_id, ("Bruno im Archiv", "Ja."))
    temporary = said(database, user_id, ("Bruno unter uns", "Ja."), title="Bruno", remember=False)
    run(database, "UPDATE conversations SET archived = id = :a, temporary = id = :t", a=archived, t=temporary)
    assert [(one.conversation_id, one.archived) for one in search(database, user_id, "bruno")] == [(archived, True)]


def test_nobody_finds_what_somebody_else_said(database: Database, user_id: int) -> None:
    other = somebody_else(database)
    theirs = said(database, other, ("Streng geheim", "Ja."), title="Geheimes")
    assert found(database, user_id, "geheim") == []
    assert found(database, other, "geheim") == [theirs]


def test_the_newest_chats_are_found_up_to_the_limit(database: Database, user_id: int) -> None:
    run(
        database,
        """WITH chats AS (INSERT INTO conversations (user_id, title)
               SELECT :u, 'Chat ' || n FROM generate_series(1, 50) AS n RETURNING id, title)
           INSERT INTO messages (conversation_id, user_id, role, content, created_at)
           SELECT id, :u, 'user', 'Das Wort', now() - interval '1 day' * CAST(substr(title, 6) AS int) FROM chats""",
        u=user_id,
    )
    results = search(database, user_id, "wort")
    assert [one.title for one in results] == [f"Chat {number}" for number in range(1, RESULTS + 1)]


def test_a_hit_deep_in_a_long_message_is_shown_with_what_stands_around_it(database: Database, user_id: int) -> None:
    said(database, user_id, ("vorher " * 5_000 + "da ist die NADEL im Heu " + "nachher " * 5_000, "Ja."))
    (one,) = search(database, user_id, "nadel")
    assert one.snippet.startswith("… vorher ")
    assert "da ist die NADEL im Heu" in one.snippet
    assert one.snippet.endswith("nachher…")
    assert len(one.snippet) <= 130


@pytest.mark.parametrize(
    ("content", "word", "snippet"),
    [
        ("Kurz und gut", "gut", "Kurz und gut"),
        ("Zeile\n\n eins\tund zwei", "eins", "Zeile eins und zwei"),
        ("x" * 200 + "treffer", "treffer", "… " + "x" * 40 + "treffer"),
        ("nichts davon", "anders", "nichts davon"),
    ],
)
def test_a_snippet_is_one_line_with_the_hit_near_its_beginning(content: str, word: str, snippet: str) -> None:
    assert snippet_around(content, word) == snippet


def test_hits_are_told_from_the_rest_of_a_line_whatever_their_case() -> None:
    assert split_at_hits("Die Äpfel, die STRAßE", "äpfel straße") == [
        ("Die ", False),
        ("Äpfel", True),
        (", die ", False),
        ("STRAßE", True),
    ]
    assert split_at_hits("100% (a_b)", "% (") == [
        ("100", False),
        ("%", True),
        (" ", False),
        ("(", True),
        ("a_b)", False),
    ]
    assert split_at_hits("Nichts", " ") == [("Nichts", False)]


def test_a_moment_is_one_of_a_time_zone(database: Database, user_id: int) -> None:
    said(database, user_id, ("Bruno", "Ja."))
    (one,) = search(database, user_id, "bruno")
    assert one.moment.tzinfo is not None
    assert one.moment <= datetime.now(UTC)

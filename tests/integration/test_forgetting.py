"""Forgetting a fact completely, with everything that states it; and taking it back."""

from threading import Event
from typing import Any

import pytest

from jarvis_memory.claude import Claude
from jarvis_memory.conversations import load_sent
from jarvis_memory.database import Database
from jarvis_memory.deletions import delete_conversation
from jarvis_memory.errors import FactNotFound
from jarvis_memory.facts import (
    Fact,
    find_facts_to_forget,
    get_all_memory_facts,
    get_memory_fact,
    remember_fact,
    update_fact,
)
from jarvis_memory.forgetting import forget_fact, purge_old_forgettings, undo_forgetting
from jarvis_memory.recall import search_conversations
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import update_conversation_summary
from tests.fake_claude import FakeClaude, Text
from tests.integration.chats import (
    InBackground,
    at_once,
    change_message,
    excluded_of,
    messages_of,
    one,
    run,
    said,
    somebody_else,
    summarised,
    summary_of,
)

BRUNO = "Mein Hund heißt Bruno."


def known(database: Database, user_id: int, fact: str = BRUNO, source: int | None = None) -> Fact:
    return remember_fact(database, user_id=user_id, fact=fact, source_message_id=source)[0]


def facts_left(database: Database, user_id: int) -> list[str]:
    with database.begin() as connection:
        return [fact.content for fact in get_all_memory_facts(connection, user_id=user_id)]


def is_forgotten(database: Database, user_id: int, chat: int) -> bool:
    """Whether the whole chat left the memory; fails when only a part of it did."""
    messages, excluded = messages_of(database, user_id, chat), excluded_of(database, user_id, chat)
    assert len(excluded) in (0, len(messages))
    return bool(excluded)


def recalled(database: Database, user_id: int, query: str) -> list[int]:
    with database.begin() as connection:
        found = search_conversations(
            connection, user_id=user_id, query=query, embedding=None, embedding_model="", limit=20
        )
    return [conversation.id for conversation in found]


def summarise(database: Database, claude: FakeClaude, conversation_id: int) -> bool:
    settings = Settings(_env_file=None, anthropic_api_key="test-key", anthropic_base_url=claude.base_url)
    return update_conversation_summary(
        database=database,
        claude=Claude(settings),
        settings=settings,
        conversation_id=conversation_id,
    )


# --- which fact is meant ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["", "   ", "\n", "%", "_", "%%", " % _ ", "*", "?", "\\", ".", "...", "\x00", "\u200a"]
)
def test_a_blank_query_or_one_of_wildcards_forgets_nothing_even_the_only_fact(
    database: Database, user_id: int, query: str
) -> None:
    known(database, user_id)
    done = forget_fact(database, user_id=user_id, query=query)
    assert (done.id, done.fact, done.matches) == (None, None, [])
    assert facts_left(database, user_id) == [BRUNO]


def test_wildcards_inside_a_query_stand_for_themselves(database: Database, user_id: int) -> None:
    known(database, user_id, "Der Akku hält 100 Stunden")
    for query in ("Akku%Stunden", "Akku_hält", "1__"):
        assert forget_fact(database, user_id=user_id, query=query).id is None
    percent = known(database, user_id, "Ich bin zu 100% sicher")
    assert forget_fact(database, user_id=user_id, query="100%").fact == percent


def test_a_part_of_the_one_fact_that_contains_it_is_enough(database: Database, user_id: int) -> None:
    known(database, user_id)
    known(database, user_id, "Ich mag Tee")
    done = forget_fact(database, user_id=user_id, query="bruno")
    assert done.fact is not None
    assert done.fact.content == BRUNO
    assert facts_left(database, user_id) == ["Ich mag Tee"]


def test_when_several_facts_fit_all_are_listed_and_none_is_deleted(database: Database, user_id: int) -> None:
    facts = [known(database, user_id, f"Bruno mag {thing}") for thing in ("Käse", "Wurst", "Brot")]
    done = forget_fact(database, user_id=user_id, query="Bruno")
    assert (done.id, done.fact) == (None, None)
    assert sorted(fact.id for fact in done.matches) == [fact.id for fact in facts]
    assert len(facts_left(database, user_id)) == 3


def test_the_exact_text_wins_over_facts_that_contain_it(database: Database, user_id: int) -> None:
    known(database, user_id, "Bruno")
    known(database, user_id, "Bruno ist mein Hund")
    assert forget_fact(database, user_id=user_id, query=" bruno. ").fact.content == "Bruno"  # type: ignore[union-attr]
    assert facts_left(database, user_id) == ["Bruno ist mein Hund"]


def test_the_number_singles_out_one_of_several(database: Database, user_id: int) -> None:
    known(database, user_id, "Bruno mag Käse")
    second = known(database, user_id, "Bruno mag Wurst")
    assert forget_fact(database, user_id=user_id, query="Bruno", fact_id=second.id).fact == second
    assert facts_left(database, user_id) == ["Bruno mag Käse"]


def test_a_number_that_is_not_there_forgets_nothing_whatever_the_query_fits(database: Database, user_id: int) -> None:
    known(database, user_id)
    assert forget_fact(database, user_id=user_id, query="Bruno", fact_id=4711).id is None
    assert facts_left(database, user_id) == [BRUNO]


def test_of_very_many_matches_a_readable_number_is_listed(database: Database, user_id: int) -> None:
    for number in range(30):
        known(database, user_id, f"Bruno {number}")
    with database.begin() as connection:
        assert len(find_facts_to_forget(connection, user_id=user_id, query="Bruno")) == 20


def test_tabs_that_forget_at_once_delete_once(database: Database, user_id: int) -> None:
    chats = [said(database, user_id, (f"Bruno ist mein Hund, Teil {number}", "Ja")) for number in range(4)]
    for _ in range(4):
        fact = known(database, user_id)
        results = at_once(*(lambda: forget_fact(database, user_id=user_id, query="Bruno"),) * 3)
        assert sorted(done.id is not None for done in results) == [False, False, True]
        assert facts_left(database, user_id) == []
        (done,) = [done for done in results if done.id]
        assert done.exchanges == len(chats)
        assert undo_forgetting(database, user_id=user_id, forgetting_id=done.id).id == fact.id
        assert forget_fact(database, user_id=user_id, fact_id=fact.id).id is not None
        assert len(done.conversations) == len(chats)
        run(database, "UPDATE messages SET excluded_from_memory = false")
        run(database, "DELETE FROM forgettings")


def test_forgetting_different_facts_and_deleting_chats_at_once_does_not_deadlock(
    database: Database, user_id: int
) -> None:
    chats = [
        said(database, user_id, ("Bruno ist mein Hund", "Ja"), ("Mimi ist meine Katze", "Ja"), summary="Bruno, Mimi")
        for _ in range(6)
    ]
    for chat in chats:
        question = messages_of(database, user_id, chat)[0].id
        block = {"type": "recalled", "text": "…", "conversations": [{"id": other, "title": ""} for other in chats]}
        change_message(database, user_id, question, blocks=[block])
    facts = [known(database, user_id, fact) for fact in ("Mein Hund heißt Bruno", "Meine Katze heißt Mimi")]

    def delete() -> None:
        for chat in chats[:3]:
            with database.begin() as connection:
                delete_conversation(connection, user_id=user_id, conversation_id=chat)

    def forget_and_undo(fact: Fact) -> None:
        for _ in range(4):
            done = forget_fact(database, user_id=user_id, fact_id=fact.id)
            assert done.id is not None
            undo_forgetting(database, user_id=user_id, forgetting_id=done.id)

    assert at_once(delete, lambda: forget_and_undo(facts[0]), lambda: forget_and_undo(facts[1])) == [None] * 3
    assert len(facts_left(database, user_id)) == 2
    assert [excluded_of(database, user_id, chat) for chat in chats[3:]] == [[], [], []]


# --- which exchanges state it -----------------------------------------------------------------------------


def test_the_exchange_that_the_fact_came_from_leaves_the_memory_whatever_its_words(
    database: Database, user_id: int
) -> None:
    chat = said(database, user_id, ("So nenne ich ihn seit gestern.", "Ich merke es mir."), ("Wie geht es?", "Gut."))
    fact = known(database, user_id, source=messages_of(database, user_id, chat)[0].id)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    assert excluded_of(database, user_id, chat) == ["So nenne ich ihn seit gestern.", "Ich merke es mir."]
    assert (done.exchanges, done.conversations) == (1, [(chat, "So nenne ich ihn seit gestern.")])


@pytest.mark.parametrize("fact", ["Mein Hund heißt Bruno.", "Der Hund des Nutzers heißt Bruno", "Bruno ist sein Hund"])
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Übrigens: mein Hund heißt Bruno!", "Ein schöner Name."),
        ("Bruno ist mein Hund", "Schön."),
        ("Wie heißt mein Hund?", "Bruno."),
        ("Was weißt du über mich?", "Du hast einen Hund, er heißt Bruno."),
        ("Welche Leine passt?", "Brunos Leine sollte so breit sein wie bei jedem Hund seiner Größe."),
        ("Die Hundeleine von Bruno ist gerissen", "Oh."),
    ],
)
def test_literal_and_close_matches_leave_the_memory(
    database: Database, user_id: int, fact: str, question: str, answer: str
) -> None:
    chat = said(database, user_id, (question, answer))
    done = forget_fact(database, user_id=user_id, fact_id=known(database, user_id, fact).id)
    assert is_forgotten(database, user_id, chat)
    assert [number for number, _ in done.conversations] == [chat]


@pytest.mark.parametrize("fact", ["Mein Hund heißt Bruno.", "Der Hund des Nutzers heißt Bruno", "Bruno ist sein Hund"])
def test_what_is_only_about_the_same_subject_stays(database: Database, user_id: int, fact: str) -> None:
    stated = [
        said(database, user_id, ("Merk dir, dass mein Hund Bruno heißt", "Gemerkt.")),
        said(database, user_id, ("Bruno ist mein Hund", "Ja.")),
        said(database, user_id, ("Mein Hund Bruno hustet", "Zum Tierarzt!")),
    ]
    others = [
        said(database, user_id, ("Wie groß wird ein Hund?", "Bis 80 cm.")),
        said(database, user_id, ("Wie heißt du?", "Ich heiße JARVIS.")),
        said(database, user_id, ("Wie heißt mein Hund?", "Das weiß ich nicht.")),
        said(database, user_id, ("Wie wird das Wetter?", "Sonnig.")),
    ]
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id, fact).id)
    assert [is_forgotten(database, user_id, chat) for chat in stated] == [True] * 3
    assert [is_forgotten(database, user_id, chat) for chat in others] == [False] * 4


@pytest.mark.parametrize(
    ("fact", "states_it", "does_not"),
    [
        ("Ich wohne in Ulm", "Ulm ist schön, da wohne ich", "Wie alt wird eine Ulme?"),
        ("Tee", "Ich mag Tee", "Womit dichtet man Teer ab?"),
        ("Mein Geburtstag ist am 3. Mai", "Am 3. Mai habe ich Geburtstag", "Hat der Mai 30 Tage?"),
        ("My dog is called Bruno", "Bruno is the dog's name", "How big does a dog get?"),
        ("Ich bin allergisch gegen Nüsse", "Gegen Nüsse bin ich leider allergisch", "Ein Rezept für Nusskuchen?"),
        ("mein hund heißt bruno", "Bruno ist mein Hund", "Wie groß wird ein Hund?"),
        ("Mein Lieblingsbuch heißt „Momo“", "„Momo“ ist mein Lieblingsbuch", "Welches Lieblingsbuch hast du?"),
        ("Meine Telefonnummer ist 0731 998877", "Ruf an: 0731 998877, das ist meine Telefonnummer", "0731 ist Ulm"),
    ],
)
def test_facts_of_other_kinds(database: Database, user_id: int, fact: str, states_it: str, does_not: str) -> None:
    first = said(database, user_id, (states_it, "Aha."))
    second = said(database, user_id, (does_not, "Hm."))
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id, fact).id)
    assert (is_forgotten(database, user_id, first), is_forgotten(database, user_id, second)) == (True, False)


def test_a_name_that_only_this_fact_knows_is_enough(database: Database, user_id: int) -> None:
    for number in range(4):
        said(database, user_id, (f"Frage {number} zum Hund", "Antwort"))
    chat = said(database, user_id, ("Brunos Pfote blutet", "Verbinden und zum Tierarzt."))
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    assert is_forgotten(database, user_id, chat)


def test_two_exchanges_that_state_it_only_together_leave_both(database: Database, user_id: int) -> None:
    chat = said(
        database,
        user_id,
        ("Wie wird das Wetter?", "Gut."),
        ("Ich habe seit heute einen Hund!", "Glückwunsch!"),
        ("Er heißt Bruno.", "Schön."),
        ("Was koche ich heute?", "Suppe."),
    )
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    assert excluded_of(database, user_id, chat) == [
        "Ich habe seit heute einen Hund!",
        "Glückwunsch!",
        "Er heißt Bruno.",
        "Schön.",
    ]


def test_a_summary_that_puts_it_together_from_several_exchanges_is_forgotten_with_them(
    database: Database, user_id: int
) -> None:
    chat = said(
        database,
        user_id,
        ("Mein Hund war heute krank", "Oh."),
        ("Was kostet eine Fahrkarte nach Ulm?", "30 Euro."),
        ("Und eine nach Köln?", "50 Euro."),
        ("Bruno geht es übrigens besser", "Das freut mich."),
        summary="Der Hund Bruno des Nutzers war krank. Fahrkarten nach Ulm kosten 30 Euro.",
    )
    done = forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    assert excluded_of(database, user_id, chat) == [
        "Mein Hund war heute krank",
        "Oh.",
        "Bruno geht es übrigens besser",
        "Das freut mich.",
    ]
    assert done.exchanges == 2
    assert summary_of(database, chat).summary is None


def test_a_fact_without_any_telling_word_forgets_literal_matches_alone(database: Database, user_id: int) -> None:
    literal = said(database, user_id, ("Das bin ich so.", "Gut."))
    other = said(database, user_id, ("Das ist so", "Ja."))
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id, "Das bin ich so").id)
    assert (is_forgotten(database, user_id, literal), is_forgotten(database, user_id, other)) == (True, False)


@pytest.mark.parametrize(
    "fact",
    ["it's (a|b)* [c] \\ ^$ {2} 'x' & | ! :*", "https://example.org/a?b=1&c='d'", "a\\b\\", "<b>&amp;</b>", "?!x"],
)
def test_signs_in_a_fact_do_no_harm(database: Database, user_id: int, fact: str) -> None:
    chat = said(database, user_id, (f"Es gilt: {fact}", "Ja."))
    other = said(database, user_id, ("Wie wird das Wetter?", "Gut."))
    assert forget_fact(database, user_id=user_id, fact_id=known(database, user_id, fact).id).id is not None
    assert (is_forgotten(database, user_id, chat), is_forgotten(database, user_id, other)) == (True, False)


def test_the_turn_that_asks_is_forgotten_too(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Vergiss das bitte.", ""))
    question, answer = messages_of(database, user_id, chat)
    fact = known(database, user_id)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id, also_exclude=(question.id, answer.id))
    assert is_forgotten(database, user_id, chat)
    assert done.exchanges == 1


def test_the_receipt_counts_exchanges_also_where_one_has_no_answer(database: Database, user_id: int) -> None:
    chat = said(database, user_id, ("Bruno ist mein Hund", "Ja."), ("Mein Hund Bruno bellt", "Oh."))
    run(database, "DELETE FROM messages WHERE content = 'Ja.'")
    assert forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id).exchanges == 2
    assert is_forgotten(database, user_id, chat)


# --- summaries, titles, recalled copies, records ----------------------------------------------------------


def test_summaries_and_titles_of_the_chats_concerned_go_and_others_stay(database: Database, user_id: int) -> None:
    automatic = said(
        database, user_id, ("Bruno ist mein Hund", "Ja."), title="Hund Bruno", summary="Der Hund heißt Bruno."
    )
    own = said(
        database,
        user_id,
        ("Mein Hund heißt Bruno", "Ja."),
        title="Mein Titel",
        title_by_user=True,
        summary="Der Hund heißt Bruno.",
    )
    other = said(database, user_id, ("Mein Auto ist rot", "Ja."), title="Auto", summary="Das Auto ist rot.")
    before = summary_of(database, other)
    done = forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    assert done.conversations == [(automatic, "Hund Bruno"), (own, "Mein Titel")]
    assert [summary_of(database, chat).title for chat in (automatic, own)] == ["", "Mein Titel"]
    for chat in (automatic, own):
        row = summary_of(database, chat)
        assert (row.summary, row.embedding, row.through_message_id) == (None, None, 0)
    assert summary_of(database, other) == before
    assert recalled(database, user_id, "Hund Bruno Auto") == [other]


def test_the_new_summary_is_made_of_what_remains(database: Database, user_id: int, claude: FakeClaude) -> None:
    chat = said(
        database,
        user_id,
        ("Bruno ist mein Hund", "Schön."),
        ("Ich fahre nach Rom", "Gute Reise!"),
        summary="Der Nutzer hat einen Hund Bruno und fährt nach Rom.",
    )
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    claude.say_to_summary("Titel: Rom\nZusammenfassung: Der Nutzer fährt nach Rom.")
    assert summarise(database, claude, chat)
    (request,) = claude.requests
    assert "Rom" in request["messages"][0]["content"]
    assert "Bruno" not in str(request)
    assert "Schön." not in str(request)
    assert (summary_of(database, chat).summary, summary_of(database, chat).title) == (
        "Der Nutzer fährt nach Rom.",
        "Rom",
    )


def test_a_chat_of_which_nothing_remains_is_not_summarised(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    chat = said(database, user_id, ("Bruno ist mein Hund", "Schön."), summary="Der Hund heißt Bruno.")
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    assert summarise(database, claude, chat)
    assert claude.requests == []
    assert summary_of(database, chat).summary is None


def test_recalled_copies_in_other_chats_are_withdrawn(database: Database, user_id: int) -> None:
    about = said(database, user_id, ("Bruno ist mein Hund", "Ja."), summary="Der Hund heißt Bruno.")
    unconcerned = said(database, user_id, ("Mein Auto ist rot", "Ja."), summary="Das Auto ist rot.")
    asking = said(database, user_id, ("Guten Tag allerseits", "Hallo!"), ("Und sonst?", "Nichts."))
    first, first_answer, second, second_answer = [m.id for m in messages_of(database, user_id, asking)]

    def recall(message: int, answer: int, conversation: int, text: str) -> None:
        block = {"type": "recalled", "text": text, "conversations": [{"id": conversation, "title": "…"}]}
        now = {"type": "now", "text": "<context>…</context>"}
        change_message(database, user_id, message, blocks=[block, now])
        change_message(database, user_id, answer, sent={"system": ["…"], "recalled": text, "messages": 1})

    recall(first, first_answer, about, "Der Hund heißt Bruno.")
    recall(second, second_answer, unconcerned, "Das Auto ist rot.")
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    messages = messages_of(database, user_id, asking)
    assert [block["type"] for block in messages[0].blocks] == ["now"]
    assert [block["type"] for block in messages[2].blocks] == ["recalled", "now"]
    with database.begin() as connection:
        gone = load_sent(connection, user_id=user_id, message_id=first_answer)
        kept = load_sent(connection, user_id=user_id, message_id=second_answer)
    assert gone == {"system": ["…"], "recalled": None, "messages": 1, "withdrawn": True}
    assert kept == {"system": ["…"], "recalled": "Das Auto ist rot.", "messages": 1}


@pytest.mark.parametrize(
    "content",
    ["Mein Hund heißt Bruno.", 'Mein Lieblingsbuch heißt "Momo"', "Der Ordner ist C:\\Daten\\", '"', "ä\u2028€🐶"],
)
def test_the_record_of_what_was_sent_loses_the_fact_and_nothing_else(
    database: Database, user_id: int, content: str
) -> None:
    fact, other = known(database, user_id, content + " x"), known(database, user_id, "Ich mag Tee")
    fact = update_fact(database, user_id=user_id, fact_id=fact.id, fact=content)[0]
    chat = said(database, user_id, ("Wie wird das Wetter?", "Gut."))
    answer = messages_of(database, user_id, chat)[1].id
    lines = [f"- [{fact.id}] {fact.content}", f"- [{other.id}] {other.content}"]
    sent: dict[str, Any] = {"system": ["Anweisungen", "Fakten:\n" + "\n".join(lines)], "recalled": None, "messages": 3}
    change_message(database, user_id, answer, sent=sent)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    lines[0] = f"- [{fact.id}] …"
    redacted = sent | {"system": ["Anweisungen", "Fakten:\n" + "\n".join(lines)]}
    with database.begin() as connection:
        assert load_sent(connection, user_id=user_id, message_id=answer) == redacted
    assert done.id is not None
    undo_forgetting(database, user_id=user_id, forgetting_id=done.id)
    with database.begin() as connection:
        assert load_sent(connection, user_id=user_id, message_id=answer) == sent


def test_a_summary_job_that_ran_meanwhile_does_not_write_it_back(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    chat = said(database, user_id, ("Bruno ist mein Hund", "Schön."), ("Ich fahre nach Rom", "Gute Reise!"))
    held = Text("Titel: Bruno\nZusammenfassung: Der Hund heißt Bruno.", started=Event(), release=Event())
    claude.say_to_summary(held)
    job = InBackground(lambda: summarise(database, claude, chat))
    assert held.started and held.release
    assert held.started.wait(60)
    forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    held.release.set()
    assert job.result() is False
    assert (summary_of(database, chat).summary, summary_of(database, chat).title) == (None, "")
    claude.say_to_summary("Titel: Rom\nZusammenfassung: Es geht nach Rom.")
    assert summarise(database, claude, chat)
    assert summary_of(database, chat).summary == "Es geht nach Rom."


# --- Undo -------------------------------------------------------------------------------------------------


def test_undo_takes_all_of_it_back(database: Database, user_id: int) -> None:
    chat = said(
        database, user_id, ("Mein Hund heißt Bruno", "Ja."), title="Hund Bruno", summary="Der Hund heißt Bruno."
    )
    source = messages_of(database, user_id, chat)[0].id
    fact = known(database, user_id, source=source)
    before = summary_of(database, chat)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    assert done.id is not None
    with database.begin() as connection, pytest.raises(FactNotFound):
        get_memory_fact(connection, user_id=user_id, fact_id=fact.id)
    assert undo_forgetting(database, user_id=user_id, forgetting_id=done.id) == fact
    assert excluded_of(database, user_id, chat) == []
    after = summary_of(database, chat)
    assert (after.summary, after.title, after.through_message_id) == (
        before.summary,
        before.title,
        before.through_message_id,
    )
    assert recalled(database, user_id, "Bruno") == [chat]
    assert not remember_fact(database, user_id=user_id, fact="mein hund heißt bruno")[1]


def test_the_undone_fact_gets_a_vector_again(database: Database, user_id: int) -> None:
    fact = known(database, user_id)
    run(database, "UPDATE memory_facts SET embedding = array_fill(1, ARRAY[768])::vector, embedding_model = 'm'")
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0)
    assert one(database, "SELECT embedding_model FROM memory_facts").embedding_model is None


def test_undo_twice_is_harmless_also_from_two_tabs(database: Database, user_id: int) -> None:
    fact = known(database, user_id)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    results = at_once(*(lambda: undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0),) * 3)
    assert results == [fact] * 3
    changed, _ = update_fact(database, user_id=user_id, fact_id=fact.id, fact="Mein Hund heißt Rex")
    assert undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0) == changed
    assert facts_left(database, user_id) == ["Mein Hund heißt Rex"]


def test_an_old_undo_does_not_bring_back_what_was_forgotten_again(database: Database, user_id: int) -> None:
    fact = known(database, user_id)
    first = forget_fact(database, user_id=user_id, fact_id=fact.id)
    undo_forgetting(database, user_id=user_id, forgetting_id=first.id or 0)
    forget_fact(database, user_id=user_id, fact_id=fact.id)
    with pytest.raises(FactNotFound):
        undo_forgetting(database, user_id=user_id, forgetting_id=first.id or 0)
    assert facts_left(database, user_id) == []


def test_undo_after_the_fact_was_remembered_anew_leaves_one_with_the_old_number(
    database: Database, user_id: int
) -> None:
    fact = known(database, user_id)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    assert known(database, user_id, "mein hund heißt bruno").id != fact.id
    assert undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0).id == fact.id
    assert facts_left(database, user_id) == [BRUNO]


def test_undo_after_the_chat_was_deleted_brings_back_the_fact_alone(database: Database, user_id: int) -> None:
    gone = said(database, user_id, ("Mein Hund heißt Bruno", "Ja."), summary="Der Hund heißt Bruno.")
    stays = said(database, user_id, ("Bruno ist mein Hund", "Ja."), summary="Bruno ist der Hund.")
    fact = known(database, user_id, source=messages_of(database, user_id, gone)[0].id)
    done = forget_fact(database, user_id=user_id, fact_id=fact.id)
    with database.begin() as connection:
        delete_conversation(connection, user_id=user_id, conversation_id=gone)
    kept = one(database, "SELECT CAST(summaries AS text) AS summaries FROM forgettings").summaries
    assert "Der Hund heißt Bruno." not in kept
    restored = undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0)
    assert (restored.id, restored.source_message_id, restored.conversation_id) == (fact.id, None, None)
    assert summary_of(database, gone) is None
    assert summary_of(database, stays).summary == "Bruno ist der Hund."
    assert messages_of(database, user_id, gone) == []


def test_undo_while_the_chat_went_on_leaves_what_is_new_to_be_summarised(
    database: Database, user_id: int, claude: FakeClaude
) -> None:
    chat = said(database, user_id, ("Bruno ist mein Hund", "Ja."), summary="Der Hund heißt Bruno.")
    done = forget_fact(database, user_id=user_id, fact_id=known(database, user_id).id)
    said(database, user_id, ("Ich fahre nach Rom", "Gute Reise!"), conversation_id=chat)
    assert summarise(database, claude, chat)
    undo_forgetting(database, user_id=user_id, forgetting_id=done.id or 0)
    assert summary_of(database, chat).summary == "Der Hund heißt Bruno."
    assert summarise(database, claude, chat)
    sent = claude.requests[-1]["messages"][0]["content"]
    assert "Der Hund heißt Bruno." in sent
    assert "Rom" in sent
    assert "Bruno ist mein Hund" not in sent


@pytest.mark.parametrize("rebuilt", [False, True])
def test_undo_of_one_fact_does_not_bring_back_another_that_was_forgotten_too(
    database: Database, user_id: int, claude: FakeClaude, rebuilt: bool
) -> None:
    chat = said(
        database,
        user_id,
        ("Mein Hund heißt Bruno und meine Katze heißt Mimi", "Ja."),
        ("Mein Hund Bruno bellt", "Oh."),
        ("Mimi, meine Katze, maunzt", "Oh."),
        ("Ich fahre nach Rom", "Gute Reise!"),
        title="Bruno und Mimi",
        summary="Der Hund heißt Bruno, die Katze Mimi.",
    )
    dog, cat = known(database, user_id), known(database, user_id, "Meine Katze heißt Mimi.")
    dog_gone = forget_fact(database, user_id=user_id, fact_id=dog.id)
    if rebuilt:
        claude.say_to_summary("Titel: Katze Mimi\nZusammenfassung: Die Katze Mimi maunzt, es geht nach Rom.")
        summarise(database, claude, chat)
    cat_gone = forget_fact(database, user_id=user_id, fact_id=cat.id)
    undo_forgetting(database, user_id=user_id, forgetting_id=dog_gone.id or 0)
    assert excluded_of(database, user_id, chat) == [
        "Mein Hund heißt Bruno und meine Katze heißt Mimi",
        "Ja.",
        "Mimi, meine Katze, maunzt",
        "Oh.",
    ]
    assert "Mimi" not in str((summary_of(database, chat).summary, summary_of(database, chat).title))
    assert summarise(database, claude, chat)
    assert "Bruno" in str(claude.requests[-1])
    assert "Mimi" not in str(claude.requests[-1])
    undo_forgetting(database, user_id=user_id, forgetting_id=cat_gone.id or 0)
    assert excluded_of(database, user_id, chat) == []
    assert sorted(facts_left(database, user_id)) == sorted([BRUNO, "Meine Katze heißt Mimi."])


def test_forgettings_can_be_undone_for_thirty_days_and_are_then_removed(database: Database, user_id: int) -> None:
    old, young = (
        forget_fact(database, user_id=user_id, fact_id=known(database, user_id, fact).id)
        for fact in ("Bruno bellt", "Mimi maunzt")
    )
    age = "UPDATE forgettings SET created_at = now() - make_interval(days => :days) WHERE id = :id"
    run(database, age, days=31, id=old.id)
    run(database, age, days=29, id=young.id)
    with database.begin() as connection:
        purge_old_forgettings(connection)
    with pytest.raises(FactNotFound):
        undo_forgetting(database, user_id=user_id, forgetting_id=old.id or 0)
    undo_forgetting(database, user_id=user_id, forgetting_id=young.id or 0)
    assert facts_left(database, user_id) == ["Mimi maunzt"]


# --- each person's for themselves -------------------------------------------------------------------------


def test_other_people_keep_what_they_said_and_cannot_undo(database: Database, user_id: int) -> None:
    other = somebody_else(database)
    theirs = said(database, other, ("Bruno ist mein Hund", "Ja."), title="Bruno", summary="Der Hund heißt Bruno.")
    asking = said(database, other, ("Hallo zusammen", "Hallo!"))
    question, answer = messages_of(database, other, asking)
    mine = said(database, user_id, ("Bruno ist mein Hund", "Ja."), summary="Der Hund heißt Bruno.")
    block = {"type": "recalled", "text": "…", "conversations": [{"id": mine, "title": ""}, {"id": theirs, "title": ""}]}
    change_message(database, other, question.id, blocks=[block])
    their_fact, fact = known(database, other), known(database, user_id)
    sent = {"system": [f"- [{fact.id}] {fact.content}\n- [{their_fact.id}] {their_fact.content}"], "recalled": "…"}
    change_message(database, other, answer.id, sent=sent)
    before = summary_of(database, theirs)

    assert forget_fact(database, user_id=other, query="", fact_id=fact.id).id is None
    done = forget_fact(database, user_id=user_id, query="Bruno", also_exclude=(question.id, answer.id))
    assert done.fact == fact
    assert facts_left(database, other) == [BRUNO]
    assert excluded_of(database, other, theirs) == excluded_of(database, other, asking) == []
    assert summary_of(database, theirs) == before
    assert messages_of(database, other, asking)[0].blocks == [block]
    with database.begin() as connection:
        assert load_sent(connection, user_id=other, message_id=answer.id) == sent
    with pytest.raises(FactNotFound):
        undo_forgetting(database, user_id=other, forgetting_id=done.id or 0)
    assert facts_left(database, user_id) == []
    summarised(database, other, said(database, other, ("Neu hier", "Ja.")), "Etwas anderes")

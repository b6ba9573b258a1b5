"""A turn from the message to the saved answer, on a real PostgreSQL and against the scripted Claude."""

from collections.abc import Iterator

import pytest

from jarvis_memory import turn_saver
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import MESSAGE_CHARACTERS, start_turn
from jarvis_memory.conversations import list_conversations
from jarvis_memory.errors import ConversationNotFound, MessageUnusable
from jarvis_memory.prompts import TOO_MANY_ROUNDS
from jarvis_memory.tool_loop import MAX_TOOL_ROUNDS
from tests.fake_claude import CutToolJson, FakeClaude, Reply, Thinking, ToolUse
from tests.integration.chats import messages_of, one, somebody_else, summary_of, wait_until
from tests.integration.turns import ask, chat_requests, ended, errors_of, held, notices_of, saved, texts_of

WEATHER = "Wie wird das Wetter in Bonn?"


@pytest.fixture(autouse=True)
def nothing_is_refused(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def test_the_message_and_the_answer_are_saved_in_a_new_conversation(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Reply("Sonnig.", usage={"input_tokens": 100, "output_tokens": 5}))
    turn = start_turn(parts, user_id=parts.user_id, message=WEATHER)
    assert texts_of(parts, turn.conversation_id)[0] == ("user", WEATHER), "it is saved before the answer begins"
    answer = ended(parts, turn)
    assert texts_of(parts, turn.conversation_id) == [("user", WEATHER), ("assistant", "Sonnig.")]
    assert (answer.status, answer.tokens_used, errors_of(answer)) == ("complete", 105, [])
    assert [block["type"] for block in answer.blocks] == ["memory"]


def test_the_first_message_is_the_title_until_the_summary_gives_a_better_one(parts: Parts, claude: FakeClaude) -> None:
    summary, _, release = held("Titel: Wetter in Bonn\nZusammenfassung: Es ging um das Wetter.")
    claude.say_to_summary(summary)
    chat = ask(parts, WEATHER).conversation_id

    def titles() -> list[str]:
        with parts.database.begin() as connection:
            return [one.title for one in list_conversations(connection, user_id=parts.user_id)]

    assert titles() == [WEATHER]
    release.set()
    wait_until(lambda: titles() == ["Wetter in Bonn"])
    assert summary_of(parts.database, chat).summary == "Es ging um das Wetter."


def test_an_answer_that_grows_is_saved_as_it_grows(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_saver, "SAVE_SECONDS", 0.05)
    text, _, release = held("Es war einmal ein Hund.")
    claude.say(text)
    turn = start_turn(parts, user_id=parts.user_id, message="Erzähl mir etwas")
    wait_until(lambda: saved(parts, turn).content == "Es war einma")
    assert saved(parts, turn).status == "interrupted"
    release.set()
    answer = ended(parts, turn)
    assert (answer.content, answer.status) == ("Es war einmal ein Hund.", "complete")


def test_a_summary_that_hangs_delays_no_answer(parts: Parts, claude: FakeClaude) -> None:
    summary, started, release = held("Titel: Wetter\nZusammenfassung: Es ging um das Wetter.")
    claude.say_to_summary(summary)
    chat = ask(parts, WEATHER).conversation_id
    assert started.wait(60)
    assert ask(parts, "Und morgen?", conversation_id=chat).status == "complete"
    assert not release.is_set()
    release.set()


def test_thinking_is_neither_shown_nor_saved(parts: Parts, claude: FakeClaude) -> None:
    claude.say([Thinking("Bonn liegt am Rhein."), "Sonnig."])
    answer = ask(parts, WEATHER)
    assert answer.content == "Sonnig."
    assert "Rhein" not in str(answer.blocks)


# --- tools ------------------------------------------------------------------------------------------------


def test_a_fact_is_remembered_corrected_and_forgotten_by_tools(parts: Parts, claude: FakeClaude) -> None:
    claude.say(["Das merke ich mir.", ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"})], "Gemerkt.")
    first = ask(parts, "Merk dir, dass mein Hund Bruno heißt")
    assert first.content == "Das merke ich mir.\n\nGemerkt."
    card = first.blocks_of("tool")[0]
    assert (card["name"], card["input"], card["at"]) == ("remember_fact", {"fact": "Der Hund heißt Bruno"}, 18)
    assert (card["result"]["remembered"], card["is_error"]) == (True, False)
    fact = one(parts.database, "SELECT * FROM memory_facts")
    question = messages_of(parts.database, parts.user_id, first.conversation_id)[0]
    assert (fact.content, fact.source_message_id, fact.origin) == ("Der Hund heißt Bruno", question.id, "said")

    claude.say(ToolUse("update_fact", {"fact_id": fact.id, "fact": "Der Hund heißt Rex"}), "Rex also.")
    second = ask(parts, "Er heißt jetzt Rex")
    assert second.blocks_of("tool")[0]["result"]["former"] == "Der Hund heißt Bruno"
    assert one(parts.database, "SELECT content FROM memory_facts").content == "Der Hund heißt Rex"

    claude.say(ToolUse("forget_fact", {"query": "Rex", "fact_id": fact.id}), "Vergessen.")
    third = ask(parts, "Ja, vergiss das", conversation_id=second.conversation_id)
    result = third.blocks_of("tool")[0]["result"]
    assert (result["deleted"], result["content"]) == (True, "Der Hund heißt Rex")
    assert one(parts.database, "SELECT * FROM memory_facts") is None
    assert third.status == "complete"


def test_a_tool_that_fails_is_shown_and_the_answer_goes_on(parts: Parts, claude: FakeClaude) -> None:
    claude.say(ToolUse("update_fact", {"fact_id": 4711, "fact": "Rex"}), "Den Fakt gibt es nicht.")
    answer = ask(parts, "Ändere das")
    card = answer.blocks_of("tool")[0]
    assert card["is_error"]
    assert "4711" in card["result"]["message"]
    assert (answer.content, answer.status) == ("Den Fakt gibt es nicht.", "complete")


def test_after_too_many_rounds_a_sentence_says_so(parts: Parts, claude: FakeClaude) -> None:
    claude.say(*[ToolUse("search_memory", {"query": "Hund"})] * MAX_TOOL_ROUNDS)
    answer = ask(parts, "Suche")
    assert answer.content == TOO_MANY_ROUNDS["de"]
    assert (answer.status, notices_of(answer)) == ("complete", ["too_many_rounds"])
    assert len(chat_requests(claude)) == MAX_TOOL_ROUNDS
    assert ask(parts, "Dann eben nicht", conversation_id=answer.conversation_id).status == "complete"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("Dazu kann ich", stop_reason="refusal"), "refusal"),
        (Reply("Dazu kann ich", stop_reason="pause_turn"), "pause_turn"),
        (Reply("Dazu kann ich", stop_reason="max_tokens"), "max_tokens"),
        (Reply("Dazu kann ich", stop_reason="model_context_window_exceeded"), "model_context_window_exceeded"),
        (Reply("Dazu kann ich", stop_reason="something_new"), "unknown"),
    ],
)
def test_an_unusual_end_is_shown_with_what_came(parts: Parts, claude: FakeClaude, reply: Reply, kind: str) -> None:
    claude.say(reply)
    answer = ask(parts, WEATHER)
    assert (answer.content, answer.status, notices_of(answer)) == ("Dazu kann ich", "complete", [kind])
    assert ask(parts, "Weiter", conversation_id=answer.conversation_id).status == "complete"


def test_a_tool_call_that_was_cut_is_not_run(parts: Parts, claude: FakeClaude) -> None:
    claude.say(["Ich merke mir", CutToolJson("remember_fact", '{"fact": "Der Hund heißt Br')])
    answer = ask(parts, "Merk dir das")
    assert (answer.content, notices_of(answer)) == ("Ich merke mir", ["max_tokens"])
    assert answer.blocks_of("tool") == []
    assert one(parts.database, "SELECT * FROM memory_facts") is None


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["", " \n\t", "\x00", "x" * (MESSAGE_CHARACTERS + 1)])
def test_a_blank_or_too_long_message_is_refused_and_nothing_is_saved(parts: Parts, message: str) -> None:
    chat = ask(parts, WEATHER).conversation_id
    for conversation_id in (None, chat):
        with pytest.raises(MessageUnusable) as refused:
            start_turn(parts, user_id=parts.user_id, message=message, conversation_id=conversation_id)
        assert refused.value.details["limit"] == MESSAGE_CHARACTERS
    assert one(parts.database, "SELECT count(*) AS n FROM conversations").n == 1
    assert len(texts_of(parts, chat)) == 2


def test_the_longest_message_is_taken_whole(parts: Parts, claude: FakeClaude) -> None:
    message = "Wort " * (MESSAGE_CHARACTERS // 5)
    answer = ask(parts, message)
    assert answer.status == "complete"
    assert chat_requests(claude)[0]["messages"][0]["content"][-1]["text"] == message


def test_a_conversation_that_is_gone_or_somebody_elses_is_refused(parts: Parts) -> None:
    stranger = somebody_else(parts.database)
    chat = ask(parts, WEATHER).conversation_id
    for user_id, conversation_id in ((stranger, chat), (parts.user_id, chat + 1)):
        with pytest.raises(ConversationNotFound):
            start_turn(parts, user_id=user_id, message="Hallo", conversation_id=conversation_id)
    assert len(texts_of(parts, chat)) == 2
    assert ask(parts, "Noch da?", conversation_id=chat).status == "complete"


def test_what_cannot_be_stored_is_cleaned_away_everywhere(parts: Parts, claude: FakeClaude) -> None:
    claude.say(
        ["Ich\x00 merke\ud800.", ToolUse("remember_fact", {"fact": "Der Hund\x00 heißt\udfff Bruno"})],
        "Fer\x00tig\ud83d.",
    )
    answer = ask(parts, "Mein\x00 Hund\ud800 heißt Bruno")
    assert texts_of(parts, answer.conversation_id) == [
        ("user", "Mein Hund heißt Bruno"),
        ("assistant", "Ich merke.\n\nFertig."),
    ]
    assert answer.blocks_of("tool")[0]["input"] == {"fact": "Der Hund heißt Bruno"}
    assert one(parts.database, "SELECT content FROM memory_facts").content == "Der Hund heißt Bruno"
    assert answer.status == "complete"

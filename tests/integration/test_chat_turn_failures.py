"""Turns that fail: the message is never lost, what came stays visible with the reason, Retry completes it."""

import threading
from collections.abc import Iterator

import pytest

from jarvis_memory import claude as claude_module
from jarvis_memory import turn_request
from jarvis_memory.answers import Block
from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.errors import ClaudeError, ConversationNotFound
from jarvis_memory.running_turns import TURNS
from tests.fake_claude import (
    Answer,
    CorruptChunk,
    Drop,
    EndsEarly,
    ErrorInStream,
    FakeClaude,
    NotSse,
    PingsForever,
    Stall,
    Text,
    Thinking,
    ToolUse,
    billing_problem,
    invalid_request,
    overloaded,
    own_spend_limit_reached,
    rate_limited,
    server_error,
    spend_limit_reached,
    unknown_model,
    wrong_key,
)
from tests.integration.chats import messages_of, one
from tests.integration.turns import ask, ask_again, chat_requests, ended, errors_of, held, plain, texts_of

QUESTION = "Was frisst mein Hund Bruno gern?"
SILENCE = 2.0  # seconds; real ones are minutes
TRIES = 1 + len(claude_module.RETRY_WAITS)
REMEMBER = ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"}, id="toolu_bruno")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before retries, which last no time here."""
    real, waits = claude_module._bounded_wait, []

    def record(error: ClaudeError, wait: float) -> float:
        waits.append(real(error, wait))
        return 0.0

    monkeypatch.setattr(claude_module, "_bounded_wait", record)
    return waits


@pytest.fixture
def impatient(parts: Parts) -> Iterator[None]:
    """Silence counts as a break soon."""
    parts.claude._patience = SILENCE
    yield


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def kinds(answer_blocks: list[Block]) -> list[str]:
    return [block["type"] for block in answer_blocks]


# --- before the first word --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "tries", "error"),
    [
        (wrong_key(), 1, "ClaudeKeyRejected"),
        (unknown_model("claude-sonnet-5-5"), 1, "ClaudeModelUnknown"),
        (spend_limit_reached(), 1, "ClaudeSpendLimit"),
        (own_spend_limit_reached(), 1, "ClaudeSpendLimit"),
        (billing_problem(), 1, "ClaudeSpendLimit"),
        (invalid_request("messages.0: something is wrong"), 1, "ClaudeRequestRejected"),
        (rate_limited(900), TRIES, "ClaudeBusy"),
        (overloaded(), TRIES, "ClaudeBusy"),
        (server_error(), TRIES, "ClaudeBusy"),
        (ErrorInStream(), TRIES, "ClaudeBusy"),
        (NotSse(), 1, "ClaudeAnswerUnreadable"),
    ],
)
def test_a_refused_turn_keeps_the_message_names_the_reason_and_can_be_retried(
    parts: Parts, claude: FakeClaude, reply: Answer, tries: int, error: str
) -> None:
    claude.say(*[reply] * tries)
    failed = ask(parts, QUESTION)
    chat = failed.conversation_id
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "")]
    assert (failed.status, errors_of(failed)) == ("failed", [error])
    assert len(chat_requests(claude)) == tries
    claude.say("Käse.")
    answer = ask_again(parts, chat)
    assert (answer.content, answer.status, errors_of(answer)) == ("Käse.", "complete", [])
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Käse.")]


def test_what_passes_by_itself_within_a_bounded_wait_is_not_seen(
    parts: Parts, claude: FakeClaude, waits: list[float]
) -> None:
    claude.say(rate_limited(900), overloaded(), "Käse.")
    answer = ask(parts, QUESTION)
    assert (answer.content, answer.status, errors_of(answer)) == ("Käse.", "complete", [])
    assert waits == [claude_module.LONGEST_WAIT, 2.0]


def test_without_a_key_the_message_is_kept_all_the_same(parts: Parts, claude: FakeClaude) -> None:
    settings = parts.settings.model_copy(
        update={"anthropic_api_key": None, "anthropic_base_url": "https://api.anthropic.com"}
    )
    parts.claude._settings = settings
    failed = ask(parts, QUESTION)
    assert texts_of(parts, failed.conversation_id) == [("user", QUESTION), ("assistant", "")]
    assert (failed.status, errors_of(failed)) == ("failed", ["ClaudeNotConfigured"])
    assert claude.requests == []


def test_the_details_of_an_error_are_kept_for_the_page(parts: Parts, claude: FakeClaude) -> None:
    claude.say(unknown_model("claude-sonnet-5-5"))
    block = ask(parts, QUESTION).blocks_of("error")[0]
    assert (block["details"]["model"], block["details"]["status"]) == ("claude-sonnet-5-5", 404)


def test_an_error_with_characters_that_cannot_be_stored_is_shown_all_the_same(parts: Parts, claude: FakeClaude) -> None:
    claude.say(["Moment.", REMEMBER], invalid_request("messages.0:\x00 broken \ud800 text"))
    failed = ask(parts, QUESTION)
    assert (failed.content, failed.status, errors_of(failed)) == ("Moment.", "interrupted", ["ClaudeRequestRejected"])
    assert failed.blocks_of("error")[0]["details"]["cause"] == "messages.0: broken  text"


def test_a_failed_answer_stays_where_it_is_when_the_chat_goes_on(parts: Parts, claude: FakeClaude) -> None:
    claude.say(invalid_request("messages.0: something is wrong"))
    chat = ask(parts, QUESTION).conversation_id
    claude.say("Käse.")
    assert ask(parts, "Bist du da?", conversation_id=chat).content == "Käse."
    assert texts_of(parts, chat) == [
        ("user", QUESTION),
        ("assistant", ""),
        ("user", "Bist du da?"),
        ("assistant", "Käse."),
    ]
    role, texts = plain(chat_requests(claude)[-1]["messages"])[0]
    assert (role, texts[1], texts[-1]) == ("user", QUESTION, "Bist du da?")


# --- in the middle of the answer --------------------------------------------------------------------------


BREAKS = [
    (Stall("Er frisst gern"), "AnswerInterrupted"),
    (PingsForever("Er frisst gern"), "AnswerInterrupted"),
    (Drop("Er frisst gern"), "AnswerInterrupted"),
    (EndsEarly("Er frisst gern"), "AnswerInterrupted"),
    (CorruptChunk("Er frisst gern"), "AnswerInterrupted"),
    (ErrorInStream("Er frisst gern", type="invalid_request_error", message="no"), "ClaudeRequestRejected"),
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("reply", "error"), BREAKS)
def test_an_answer_that_breaks_off_keeps_what_came_and_can_be_retried(
    parts: Parts, claude: FakeClaude, reply: Answer, error: str
) -> None:
    claude.say(reply)
    broken = ask(parts, QUESTION)
    chat = broken.conversation_id
    assert (broken.content, broken.status, errors_of(broken)) == ("Er frisst gern", "interrupted", [error])
    assert len(chat_requests(claude)) == 1
    claude.say("Käse.")
    answer = ask_again(parts, chat)
    assert (answer.content, answer.status, errors_of(answer)) == ("Käse.", "complete", [])
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Käse.")]
    assert [role for role, _ in plain(chat_requests(claude)[-1]["messages"])] == ["user"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("reply", [Stall(), PingsForever(), Drop(), EndsEarly()])
def test_an_answer_that_breaks_off_before_its_first_word_is_interrupted_too(
    parts: Parts, claude: FakeClaude, reply: Answer
) -> None:
    claude.say(reply)
    broken = ask(parts, QUESTION)
    assert (broken.content, broken.status, errors_of(broken)) == ("", "interrupted", ["AnswerInterrupted"])
    claude.say("Käse.")
    assert ask_again(parts, broken.conversation_id).content == "Käse."


def test_an_overload_inside_the_stream_starts_over_and_doubles_nothing(parts: Parts, claude: FakeClaude) -> None:
    claude.say(REMEMBER, ErrorInStream("Der Hund"), "Der Hund heißt Bruno.")
    answer = ask(parts, "Merk dir das")
    assert (answer.content, answer.status) == ("Der Hund heißt Bruno.", "complete")
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1


def test_the_chat_goes_on_after_an_answer_that_broke_off(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Drop("Er frisst gern"))
    chat = ask(parts, QUESTION).conversation_id
    ask(parts, "Ja?", conversation_id=chat)
    messages = plain(chat_requests(claude)[-1]["messages"])
    assert messages[1] == ("assistant", ["Er frisst gern"])
    assert messages[2][1][-1] == "Ja?"


def test_an_error_of_our_own_is_shown_and_the_chat_goes_on(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(turn_request, "build_memory_context", lambda **_: 1 / 0)
        failed = ask(parts, QUESTION)
    assert (failed.status, errors_of(failed)) == ("failed", ["JarvisError"])
    assert ask_again(parts, failed.conversation_id).status == "complete"


# --- tools of an unfinished answer ------------------------------------------------------------------------


def test_retry_tells_claude_what_its_tools_did_and_runs_none_of_them_again(parts: Parts, claude: FakeClaude) -> None:
    claude.say(["Moment.", REMEMBER], Drop("Ich habe mir"))
    broken = ask(parts, "Merk dir, dass mein Hund Bruno heißt")
    assert broken.content == "Moment.\n\nIch habe mir"
    assert kinds(broken.blocks) == ["memory", "tool", "error"]
    chat = broken.conversation_id
    claude.say(Drop("Es"), "Es ist gemerkt.")
    assert ask_again(parts, chat).status == "interrupted"
    assert ask_again(parts, chat).status == "complete"
    # Both tries were told, in front of the user's text, and so is every later turn.
    ask(parts, "Danke", conversation_id=chat)
    for request in chat_requests(claude)[2:]:
        role, texts = plain(request["messages"])[0]
        assert role == "user"
        assert "„remember_fact“ ist aber schon ausgeführt" in texts[1]
        assert "Der Hund heißt Bruno" in texts[1]
        assert texts[2] == "Merk dir, dass mein Hund Bruno heißt"
        assert len(texts) == 3
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1


def test_a_tool_whose_outcome_is_unknown_is_called_unknown(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, QUESTION).conversation_id
    # As a killed process leaves it: the call is saved, its result is not.
    call = '[{"type": "tool", "id": "toolu_1", "name": "remember_fact", "input": {"fact": "Bruno"}, "at": 0}]'
    with parts.database.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE messages SET status = 'interrupted', content = '', blocks = %s WHERE role = 'assistant'", (call,)
        )
    assert ask_again(parts, chat).status == "complete"
    texts = plain(chat_requests(claude)[-1]["messages"])[0][1]
    assert "[Unterbrochen; ob „remember_fact“ ausgeführt wurde, ist unbekannt.]" in texts
    assert one(parts.database, "SELECT * FROM memory_facts") is None


def test_only_an_unfinished_answer_is_retried(parts: Parts) -> None:
    chat = ask(parts, QUESTION).conversation_id
    for number in (chat, chat + 1):
        with pytest.raises(ConversationNotFound):
            retry_turn(parts, user_id=parts.user_id, conversation_id=number)
    assert len(texts_of(parts, chat)) == 2
    assert ask(parts, "Noch da?", conversation_id=chat).status == "complete"


# --- Stop -------------------------------------------------------------------------------------------------


def test_stop_keeps_what_came(parts: Parts, claude: FakeClaude) -> None:
    text, started, release = held("Er frisst gern Käse und Wurst.")
    claude.say(text)
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    turn.stop.set()
    answer = ended(parts, turn)
    assert (answer.content, answer.status) == ("Er frisst ge", "interrupted")
    assert errors_of(answer) == ["AnswerStopped"]
    release.set()
    assert ask(parts, "Weiter", conversation_id=turn.conversation_id).status == "complete"
    assert plain(chat_requests(claude)[-1]["messages"])[1] == ("assistant", ["Er frisst ge"])


def test_an_orderly_end_of_the_process_keeps_what_came(parts: Parts, claude: FakeClaude) -> None:
    text, started, release = held("Er frisst gern Käse und Wurst.")
    claude.say(text)
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert started.wait(60)
    TURNS.shutdown(20)
    answer = ended(parts, turn)
    assert (answer.content, answer.status, errors_of(answer)) == ("Er frisst ge", "interrupted", ["AnswerStopped"])
    release.set()
    assert ask_again(parts, turn.conversation_id).status == "complete"


def test_stop_while_the_model_thinks_ends_the_turn(parts: Parts, claude: FakeClaude) -> None:
    release = threading.Event()
    claude.say(Stall([Thinking("Käse?"), Text("K", chunk_size=1)], release=release))
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    while not turn.snapshot()[0]:
        assert not turn.done.wait(0.02)
    turn.stop.set()
    assert ended(parts, turn).status == "interrupted"
    release.set()


def test_stop_during_the_wait_before_a_retry_ends_the_turn(
    parts: Parts, claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()

    def wait_long(*_: object) -> float:
        waiting.set()
        return 3600.0

    monkeypatch.setattr(claude_module, "_bounded_wait", wait_long)
    claude.say(overloaded())
    turn = start_turn(parts, user_id=parts.user_id, message=QUESTION)
    assert waiting.wait(60)
    turn.stop.set()
    answer = ended(parts, turn)
    assert (answer.status, errors_of(answer)) == ("interrupted", ["AnswerStopped"])
    assert [message.content for message in messages_of(parts.database, parts.user_id, turn.conversation_id)] == [
        QUESTION,
        "",
    ]

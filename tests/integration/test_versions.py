"""Regenerate and edit: what was replaced can be looked at, and is no part of the chat or the memory any more."""

import json
from collections.abc import Iterator

import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.chat_turn import edit_turn, regenerate_turn
from jarvis_memory.database import Database
from jarvis_memory.deletions import count_facts_from, delete_conversation
from jarvis_memory.errors import ConversationNotFound, MessageUnusable, TurnRunning
from jarvis_memory.forgetting import forget_fact, undo_forgetting
from jarvis_memory.recall import search_conversations
from jarvis_memory.running_turns import RunningTurn
from jarvis_memory.versions import VERSIONS_SHOWN, load_versions
from tests.claude_replies import Drop
from tests.fake_claude import FakeClaude, ToolUse
from tests.integration.chats import at_once, messages_of, one, somebody_else, summary_of, wait_until
from tests.integration.turns import ask, ask_again, chat_requests, ended, held, plain, texts_of

QUESTION = "Was frisst mein Hund Bruno gern?"


@pytest.fixture(autouse=True)
def histories_are_accepted(claude: FakeClaude) -> Iterator[None]:
    yield
    assert claude.refused == []


def regenerate(parts: Parts, chat: int) -> None:
    answer = messages_of(parts.database, parts.user_id, chat)[-1]
    ended(parts, regenerate_turn(parts, user_id=parts.user_id, conversation_id=chat, answer_id=answer.id))


def edit(parts: Parts, chat: int, place: int, message: str) -> None:
    """Change the message at this place of the chat and wait for its answer."""
    message_id = messages_of(parts.database, parts.user_id, chat)[place].id
    turn = edit_turn(parts, user_id=parts.user_id, conversation_id=chat, message_id=message_id, message=message)
    ended(parts, turn)


def versions_of(parts: Parts, chat: int, place: int, user_id: int | None = None) -> list[list[str]]:
    """The texts of each version of the message at this place, the newest version first."""
    message_id = messages_of(parts.database, parts.user_id, chat)[place].id
    with parts.database.begin() as connection:
        found = load_versions(connection, user_id=user_id or parts.user_id, message_ids=[message_id])
    return [[message["content"] for message in version.messages] for version in found.get(message_id, [])]


def found_by(database: Database, user_id: int, query: str) -> list[int]:
    with database.begin() as connection:
        found = search_conversations(
            connection, user_id=user_id, query=query, embedding=None, embedding_model="", limit=9
        )
    return [conversation.id for conversation in found]


def test_a_regenerated_answer_takes_the_place_of_the_old_one_which_stays_as_a_version(
    parts: Parts, claude: FakeClaude
) -> None:
    claude.say("Käse.", "Wurst.", "Möhren.")
    chat = ask(parts, QUESTION).conversation_id
    for _ in range(2):
        regenerate(parts, chat)
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Möhren.")]
    assert versions_of(parts, chat, 1) == [["Wurst."], ["Käse."]]
    # Claude is asked again as if for the first time.
    assert [len(request["messages"]) for request in chat_requests(claude)] == [1, 1, 1]


def test_only_the_last_answer_is_regenerated_and_only_once(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, QUESTION).conversation_id
    ask(parts, "Und Möhren?", conversation_id=chat)
    _, first, question, last = messages_of(parts.database, parts.user_id, chat)
    for message in (first, question):
        with pytest.raises(ConversationNotFound):
            regenerate_turn(parts, user_id=parts.user_id, conversation_id=chat, answer_id=message.id)
    with pytest.raises(ConversationNotFound):
        regenerate_turn(parts, user_id=somebody_else(parts.database), conversation_id=chat, answer_id=last.id)
    regenerate(parts, chat)
    # A second click that comes late is for an answer that is gone.
    with pytest.raises(ConversationNotFound):
        regenerate_turn(parts, user_id=parts.user_id, conversation_id=chat, answer_id=last.id)
    assert len(texts_of(parts, chat)) == 4


def test_tabs_that_regenerate_and_edit_at_once_get_one_answer(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, QUESTION).conversation_id
    question, answer = messages_of(parts.database, parts.user_id, chat)
    text, _, release = held("Die eine Antwort.")
    claude.say(text)
    who = {"user_id": parts.user_id, "conversation_id": chat}
    results = at_once(
        *[lambda: regenerate_turn(parts, **who, answer_id=answer.id)] * 4,
        *[lambda: edit_turn(parts, **who, message_id=question.id, message="Neu")] * 4,
    )
    winners = [result for result in results if isinstance(result, RunningTurn)]
    assert [type(result) for result in results if result not in winners] == [TurnRunning] * 7
    release.set()
    ended(parts, winners[0])
    assert [text for _, text in texts_of(parts, chat)][1:] == ["Die eine Antwort."]


def test_an_answer_that_broke_off_is_kept_as_a_version_when_it_is_retried(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Drop("Er frisst"), "Käse.")
    chat = ask(parts, QUESTION).conversation_id
    ask_again(parts, chat)
    assert versions_of(parts, chat, 1) == [["Er frisst"]]


def test_an_empty_answer_is_no_version(parts: Parts, claude: FakeClaude) -> None:
    claude.say(Drop(""), "Käse.")
    chat = ask(parts, QUESTION).conversation_id
    ask_again(parts, chat)
    assert versions_of(parts, chat, 1) == []


def test_an_edited_message_goes_on_from_there_and_the_old_way_stays_as_a_version(
    parts: Parts, claude: FakeClaude
) -> None:
    claude.say("Käse.", "Gern.", "Mäuse.")
    chat = ask(parts, QUESTION).conversation_id
    ask(parts, "Danke", conversation_id=chat)
    edit(parts, chat, 0, "Was frisst meine Katze gern?")
    assert texts_of(parts, chat) == [("user", "Was frisst meine Katze gern?"), ("assistant", "Mäuse.")]
    assert versions_of(parts, chat, 0) == [[QUESTION, "Käse.", "Danke", "Gern."]]
    sent = plain(chat_requests(claude)[-1]["messages"])
    assert len(sent) == 1
    assert "Käse" not in json.dumps(sent, ensure_ascii=False)


def test_what_came_before_the_edited_message_stays(parts: Parts, claude: FakeClaude) -> None:
    claude.say("Käse.", "Gern.", "Bitte.")
    chat = ask(parts, QUESTION).conversation_id
    ask(parts, "Danke", conversation_id=chat)
    edit(parts, chat, 2, "Vielen Dank")
    assert [text for _, text in texts_of(parts, chat)] == [QUESTION, "Käse.", "Vielen Dank", "Bitte."]
    assert len(chat_requests(claude)[-1]["messages"]) == 3


def test_versions_of_what_is_replaced_belong_to_what_takes_its_place(parts: Parts, claude: FakeClaude) -> None:
    claude.say("Käse.", "Wurst.", "Mäuse.")
    chat = ask(parts, QUESTION).conversation_id
    regenerate(parts, chat)
    edit(parts, chat, 0, "Was frisst meine Katze gern?")
    assert versions_of(parts, chat, 0) == [[QUESTION, "Wurst."], ["Käse."]]


def test_only_an_own_message_of_this_chat_can_be_edited(parts: Parts, claude: FakeClaude) -> None:
    chat, other = (ask(parts, QUESTION).conversation_id for _ in range(2))
    question, answer = messages_of(parts.database, parts.user_id, chat)
    stranger = somebody_else(parts.database)
    for user_id, conversation_id, message_id in (
        (parts.user_id, chat, answer.id),
        (parts.user_id, other, question.id),
        (parts.user_id, chat, answer.id + 1_000),
        (stranger, chat, question.id),
    ):
        with pytest.raises(ConversationNotFound):
            edit_turn(
                parts, user_id=user_id, conversation_id=conversation_id, message_id=message_id, message="Was sonst?"
            )
    with pytest.raises(MessageUnusable):
        edit_turn(parts, user_id=parts.user_id, conversation_id=chat, message_id=question.id, message="  ")
    assert [text for _, text in texts_of(parts, chat)][0] == QUESTION
    assert one(parts.database, "SELECT count(*) AS n FROM message_versions").n == 0


def test_claude_is_told_what_the_tools_of_the_replaced_answer_did(parts: Parts, claude: FakeClaude) -> None:
    claude.say(ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"}), "Gemerkt.", "Ist gemerkt.")
    chat = ask(parts, "Merk dir, dass mein Hund Bruno heißt").conversation_id
    regenerate(parts, chat)
    texts = plain(chat_requests(claude)[-1]["messages"])[0][1]
    assert "„remember_fact“ schon ausgeführt" in "".join(texts)
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1


def test_a_fact_of_an_edited_message_still_comes_from_its_chat(parts: Parts, claude: FakeClaude) -> None:
    claude.say(ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"}), "Gemerkt.", "Gern.")
    chat = ask(parts, "Merk dir, dass mein Hund Bruno heißt").conversation_id
    edit(parts, chat, 0, "Danke")
    with parts.database.begin() as connection:
        assert count_facts_from(connection, user_id=parts.user_id, conversation_id=chat) == 1


def test_what_was_replaced_leaves_the_index_and_the_summary(parts: Parts, claude: FakeClaude) -> None:
    claude.say("Der Zeppelin fliegt.", "Der Dampfer fährt.")
    claude.say_to_summary("Es ging um einen Zeppelin.", "Es ging um einen Dampfer.")
    chat = ask(parts, "Erzähl vom Zeppelin").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.summary)
    assert found_by(parts.database, parts.user_id, "Zeppelin") == [chat]
    edit(parts, chat, 0, "Erzähl vom Dampfer")
    wait_until(lambda: "Dampfer" in (summary_of(parts.database, chat).summary or ""))
    assert found_by(parts.database, parts.user_id, "Zeppelin") == []
    assert found_by(parts.database, parts.user_id, "Dampfer") == [chat]
    # The summary was written from what stands there now.
    [_, last] = [request for request in claude.requests if not request.get("tools")]
    assert "Zeppelin" not in json.dumps(last, ensure_ascii=False)


def test_undo_of_a_forgotten_fact_brings_no_summary_back_that_tells_what_was_replaced(
    parts: Parts, claude: FakeClaude
) -> None:
    claude.say(ToolUse("remember_fact", {"fact": "Der Zeppelin heißt Bruno"}), "Gemerkt.", "Ja.", "Nein.")
    claude.say_to_summary("Es ging um den Zeppelin Bruno und um Brot.")
    chat = ask(parts, "Merk dir, dass mein Zeppelin Bruno heißt").conversation_id
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.summary)
    ask(parts, "Magst du Brot?", conversation_id=chat)
    forgotten = forget_fact(parts.database, user_id=parts.user_id, query="Zeppelin")
    edit(parts, chat, 2, "Magst du Käse?")
    claude.say_to_summary("Es ging um Käse.")
    assert forgotten.id
    undo_forgetting(parts.database, user_id=parts.user_id, forgetting_id=forgotten.id)
    assert "Brot" not in (summary_of(parts.database, chat).summary or "")


def test_versions_go_with_their_chat_and_are_seen_by_nobody_else(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, QUESTION).conversation_id
    regenerate(parts, chat)
    assert versions_of(parts, chat, 1, user_id=somebody_else(parts.database)) == []
    with parts.database.begin() as connection:
        delete_conversation(connection, user_id=parts.user_id, conversation_id=chat)
    assert one(parts.database, "SELECT count(*) AS n FROM message_versions").n == 0


def test_of_many_versions_the_newest_are_shown(parts: Parts, claude: FakeClaude) -> None:
    chat = ask(parts, QUESTION).conversation_id
    answer = messages_of(parts.database, parts.user_id, chat)[-1]
    with parts.database.begin() as connection:
        connection.exec_driver_sql(
            """INSERT INTO message_versions (user_id, conversation_id, message_id, messages)
               SELECT %s, %s, %s, jsonb_build_array(jsonb_build_object('content', 'Fassung ' || n))
               FROM generate_series(1, 30) AS n""",
            (parts.user_id, chat, answer.id),
        )
    assert versions_of(parts, chat, 1) == [[f"Fassung {number}"] for number in range(30, 30 - VERSIONS_SHOWN, -1)]

"""kill -9 of JARVIS, of its PostgreSQL and of both, in the middle of things: nothing that was said is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.chat_turn import resume_turn, start_turn
from jarvis_memory.conversations import Message
from jarvis_memory.database import Lock
from jarvis_memory.document_search import search_passages
from jarvis_memory.errors import TurnRunning
from jarvis_memory.running_turns import TURNS
from jarvis_memory.settings import Settings
from tests.fake_claude import FakeClaude, Stall, ToolUse
from tests.fake_ollama import FakeOllama
from tests.integration.chats import locks_held, messages_of, one, summary_of, wait_until
from tests.integration.processes import kill_postgres, postgres_below
from tests.integration.turns import ask, ask_again, chat_requests, ended, held, plain, texts_of
from tests.letters import letter_tools, sent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tests use signals of Unix")

REPOSITORY = Path(__file__).parents[2]
QUESTION = "Was frisst mein Hund Bruno gern?"
ANSWER = "Er frisst gern Käse und Wurst."
REMEMBER = ToolUse("remember_fact", {"fact": "Der Hund heißt Bruno"})


class Process:
    """A process of JARVIS on the data folder (tests/crash_process.py)."""

    def __init__(self, environment: dict[str, str], save_seconds: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash_process", str(save_seconds)],
            cwd=REPOSITORY,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._read()

    def ask(self, message: str, **more: Any) -> int:
        """The id of the conversation."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"ask": message} | more) + "\n")
        self._process.stdin.flush()
        return int(self._read()["conversation_id"])

    def add_document(self, words: str) -> int:
        """The id of a long document with these words on each page, which the background begins to read."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"document": words}) + "\n")
        self._process.stdin.flush()
        return int(self._read()["document_id"])

    def readers(self) -> list[psutil.Process]:
        """Its processes that read a document."""
        children = psutil.Process(self._process.pid).children()
        return [child for child in children if "jarvis_memory.document_process" in child.cmdline()]

    def approve(self, action_id: int) -> None:
        """Press Approve on this action."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"approve": action_id}) + "\n")
        self._process.stdin.flush()
        self._read()

    def freeze(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGSTOP)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _read(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)


class Machine:
    """A data folder, the processes on it, and the ways to kill them."""

    def __init__(self, folder: Path, claude: FakeClaude, ollama: FakeOllama) -> None:
        self.folder = folder
        self._settings = {
            "JARVIS_DATA_DIR": str(folder),
            "ANTHROPIC_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": claude.base_url,
            # The built-in model would be loaded by every process.
            "OLLAMA_URL": ollama.base_url,
        }
        self._processes: list[Process] = []
        self._parts: list[Parts] = []

    def start(self, save_seconds: float = 0.05) -> Process:
        self._processes.append(Process(self._settings, save_seconds))
        return self._processes[-1]

    def parts(self) -> Parts:
        """The parts of one more process, which is the test's own."""
        values = {name.lower(): value for name, value in self._settings.items()}
        self._parts.append(build_parts(Settings(_env_file=None, **values)))
        return self._parts[-1]

    def kill_python(self) -> None:
        for process in self._processes:
            process.kill()

    def kill_both(self) -> None:
        for process in self._processes:
            process.freeze()  # or it would start the server again at once
        kill_postgres(self.folder)
        self.kill_python()

    def kill_postgres_then_python(self) -> None:
        """JARVIS is left without its server for a moment, and begins to start it again."""
        kill_postgres(self.folder)
        wait_until(lambda: postgres_below(self.folder))
        self.kill_python()

    def close(self) -> None:
        TURNS.shutdown(20)
        self.kill_python()
        for parts in self._parts:
            parts.close()
        for process in postgres_below(self.folder):
            process.kill()


KILLS: list[Callable[[Machine], None]] = [Machine.kill_python, Machine.kill_both]
kills = pytest.mark.parametrize("kill", KILLS, ids=["python", "python and postgres"])


@pytest.fixture
def machine(tmp_path: Path, claude: FakeClaude) -> Iterator[Machine]:
    with FakeOllama() as ollama:
        machine = Machine(tmp_path / "data", claude, ollama)
        yield machine
        machine.close()
    assert claude.refused == []


def last_answer(parts: Parts, conversation_id: int) -> Message:
    return messages_of(parts.database, parts.user_id, conversation_id)[-1]


def has_come(machine: Machine, condition: str) -> None:
    """Wait until an answer with this in its row is in the database, as another process sees it."""
    parts = machine.parts()
    wait_until(lambda: one(parts.database, f"SELECT * FROM messages WHERE role = 'assistant' AND {condition}"))
    parts.close()


def is_healthy(parts: Parts, claude: FakeClaude, conversation_id: int) -> None:
    """What must hold after every crash: no lock is left, the chat goes on, the summary gets written."""

    def is_free() -> bool:
        with parts.database.try_lock(Lock.TURN, conversation_id) as ours:
            return ours

    wait_until(is_free)
    claude.say("Gern geschehen.")
    answer = ask(parts, "Danke dir sehr", conversation_id=conversation_id)
    assert (answer.content, answer.status) == ("Gern geschehen.", "complete")
    roles = [role for role, _ in texts_of(parts, conversation_id)]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    wait_until(
        lambda: (
            (row := summary_of(parts.database, conversation_id)) and row.summary and row.through_message_id == answer.id
        )
    )
    wait_until(lambda: locks_held(parts.database) == 0)


# --- in the middle of a turn ------------------------------------------------------------------------------


@kills
def test_what_came_of_an_answer_is_there_as_interrupted_and_retry_completes_it(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    text, _, release = held(ANSWER)
    claude.say(text)
    chat = machine.start().ask(QUESTION)
    has_come(machine, "content = 'Er frisst ge'")
    kill(machine)
    release.set()
    parts = machine.parts()
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Er frisst ge")]
    assert last_answer(parts, chat).status == "interrupted"
    claude.say(ANSWER)
    assert ask_again(parts, chat).status == "complete"
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", ANSWER)]
    is_healthy(parts, claude, chat)


@kills
def test_a_message_that_got_no_word_of_an_answer_is_there_and_the_chat_goes_on(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    release = threading.Event()
    claude.say(Stall(release=release))
    # It is killed before anything was saved but what the start of a turn saves.
    chat = machine.start(save_seconds=3600).ask(QUESTION)
    wait_until(lambda: chat_requests(claude))
    kill(machine)
    release.set()
    parts = machine.parts()
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "")]
    assert last_answer(parts, chat).status == "interrupted"
    is_healthy(parts, claude, chat)


def test_a_killed_server_alone_is_started_again_and_the_answer_completed(machine: Machine, claude: FakeClaude) -> None:
    text, _, release = held(ANSWER)
    claude.say(text)
    chat = machine.start().ask(QUESTION)
    has_come(machine, "content = 'Er frisst ge'")
    kill_postgres(machine.folder)
    release.set()
    parts = machine.parts()
    wait_until(lambda: last_answer(parts, chat).status == "complete", 60)
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", ANSWER)]
    is_healthy(parts, claude, chat)


def test_a_kill_while_the_server_is_being_started_again_loses_nothing_either(
    machine: Machine, claude: FakeClaude
) -> None:
    text, _, release = held(ANSWER)
    claude.say(text)
    chat = machine.start().ask(QUESTION)
    has_come(machine, "content = 'Er frisst ge'")
    machine.kill_postgres_then_python()
    release.set()
    parts = machine.parts()
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", "Er frisst ge")]
    is_healthy(parts, claude, chat)


def test_a_chat_that_another_live_process_answers_is_not_taken_over(machine: Machine, claude: FakeClaude) -> None:
    text, started, release = held(ANSWER)
    claude.say(text)
    chat = machine.start().ask(QUESTION)
    assert started.wait(60)
    parts = machine.parts()
    with pytest.raises(TurnRunning):
        start_turn(parts, user_id=parts.user_id, message="Hallo?", conversation_id=chat)
    release.set()
    wait_until(lambda: last_answer(parts, chat).status == "complete")
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", ANSWER)]
    is_healthy(parts, claude, chat)


# --- in the middle of a tool ------------------------------------------------------------------------------


@kills
def test_a_tool_that_was_running_is_called_unknown_and_not_run_again(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    claude.say(["Ich schreibe.", ToolUse("write_letter", {})])
    chat = machine.start().ask("Schreib einen Brief")
    has_come(machine, """blocks @> '[{"type": "tool", "name": "write_letter"}]'""")
    kill(machine)
    parts = machine.parts()
    broken = last_answer(parts, chat)
    assert (broken.content, broken.status) == ("Ich schreibe.", "interrupted")
    claude.say("Ob der Brief ankam, weiß ich nicht.")
    assert ask_again(parts, chat).blocks_of("tool") == []
    texts = plain(chat_requests(claude)[-1]["messages"])[0][1]
    assert "[Unterbrochen; ob „write_letter“ ausgeführt wurde, ist unbekannt.]" in texts
    is_healthy(parts, claude, chat)


@kills
def test_a_fact_that_was_stored_before_the_kill_is_not_stored_twice(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    text, started, release = held("Ich habe mir das gemerkt.")
    claude.say(REMEMBER, text)
    chat = machine.start().ask("Merk dir, dass mein Hund Bruno heißt")
    assert started.wait(60)
    kill(machine)
    release.set()
    parts = machine.parts()
    assert one(parts.database, "SELECT content FROM memory_facts").content == "Der Hund heißt Bruno"
    claude.say(REMEMBER, "Das weiß ich schon.")
    answer = ask_again(parts, chat)
    assert answer.blocks_of("tool")[0]["result"]["already_known"]
    assert one(parts.database, "SELECT count(*) AS n FROM memory_facts").n == 1
    is_healthy(parts, claude, chat)


# --- in the middle of an approval ------------------------------------------------------------------------


@kills
def test_what_was_approved_and_under_way_is_called_unknown_and_not_done_again(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    outbox = machine.folder / "outbox"
    claude.say(["Ich schreibe.", ToolUse("send_letter", {"to": "Oma", "text": "Liebe Oma"})])
    chat = machine.start().ask("Schreib Oma", wait=True)
    kill(machine)
    parts = machine.parts()
    assert last_answer(parts, chat).status == "waiting", "what waits outlives the process"
    action = one(parts.database, "SELECT id FROM pending_actions WHERE status = 'pending'").id
    parts.close()
    machine.start().approve(action)
    wait_until(lambda: sent(outbox))
    kill(machine)
    parts = machine.parts()
    parts = replace(parts, tools=[*parts.tools, *letter_tools(outbox)])
    claude.say("Ob der Brief ankam, weiß ich nicht.")
    answer = ended(parts, resume_turn(parts, user_id=parts.user_id, conversation_id=chat))
    assert answer.content == "Ich schreibe.\n\nOb der Brief ankam, weiß ich nicht."
    [result] = chat_requests(claude)[-1]["messages"][-1]["content"]
    assert "whether it was is unknown" in result["content"]
    assert sent(outbox) == ["Anna → Oma: Liebe Oma"]
    is_healthy(parts, claude, chat)


# --- in the middle of a summary ---------------------------------------------------------------------------


@kills
def test_a_summary_that_was_being_written_is_written_at_the_next_start(
    machine: Machine, claude: FakeClaude, kill: Callable[[Machine], None]
) -> None:
    summary, started, release = held("Titel: Bruno\nZusammenfassung: Bruno frisst Käse.")
    claude.say(ANSWER)
    claude.say_to_summary(summary)
    chat = machine.start().ask(QUESTION)
    assert started.wait(60)
    kill(machine)
    release.set()
    claude.say_to_summary("Titel: Bruno\nZusammenfassung: Bruno frisst Wurst.")
    parts = machine.parts()
    wait_until(lambda: (row := summary_of(parts.database, chat)) and row.summary == "Bruno frisst Wurst.")
    assert texts_of(parts, chat) == [("user", QUESTION), ("assistant", ANSWER)]
    is_healthy(parts, claude, chat)


def test_the_chats_of_a_killed_process_are_all_there(machine: Machine, claude: FakeClaude) -> None:
    process = machine.start()
    chats = [process.ask(f"Frage Nummer {number}", wait=True) for number in range(5)]
    machine.kill_both()
    parts = machine.parts()
    for number, chat in enumerate(chats):
        assert texts_of(parts, chat) == [("user", f"Frage Nummer {number}"), ("assistant", "OK.")]
    wait_until(lambda: all((row := summary_of(parts.database, chat)) and row.summary for chat in chats))


@kills
def test_a_document_that_was_being_read_is_read_by_the_next_process(
    machine: Machine, kill: Callable[[Machine], None]
) -> None:
    process = machine.start()
    number = process.add_document("Der Fahrplan von Herrn Zipfel")
    readers = wait_until(process.readers)
    kill(machine)
    parts = machine.parts()
    state = "SELECT status, pages FROM documents WHERE id = :id"
    wait_until(lambda: one(parts.database, state, id=number).status == "ready")
    assert one(parts.database, state, id=number).pages == 900
    with parts.database.begin() as connection:
        found = search_passages(
            connection, user_id=parts.user_id, query="Zipfel 17", embedding=None, embedding_model="x", limit=1
        )
    assert "Herrn Zipfel 17" in found[0].content
    # The former reader has its limits also without a parent.
    assert psutil.wait_procs(readers, timeout=60)[1] == []

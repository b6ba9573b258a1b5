"""The doctor: a line for each thing, whatever the others come to; nothing is changed and nothing given away."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from jarvis_memory import doctor
from jarvis_memory.database import PROJECT_FOLDER, Database, open_database
from jarvis_memory.doctor import examine
from jarvis_memory.embedded_postgres import EmbeddedPostgres
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.findings import Finding, look
from jarvis_memory.settings import EXAMPLES, Settings
from tests.external_server import external_server
from tests.fake_claude import FakeClaude, NotSse, billing_problem, overloaded, wrong_key
from tests.fake_ollama import FakeOllama
from tests.integration.chats import said
from tests.integration.processes import postgres_below

SECRET = "geheim-4711"
LIMIT_SECONDS = 120


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a database that no JARVIS has migrated, and a server that runs."""
    folder = tmp_path_factory.mktemp("made")
    embedded = EmbeddedPostgres(folder / "postgres")
    embedded.start()
    yield folder
    embedded.stop()


@pytest.fixture
def found(encoder: Embeddings) -> Callable[..., dict[str, Finding]]:
    """What the doctor finds with these settings, by what was looked at."""

    def find(*, embeddings: Embeddings | None = encoder, **values: Any) -> dict[str, Finding]:
        findings = list(examine(Settings(_env_file=None, **values), embeddings=embeddings))
        for finding in findings:
            assert SECRET not in f"{finding.detail} {finding.remedy}"
            assert f"{finding.detail}{finding.remedy}".isprintable()
        return {finding.what: finding for finding in findings}

    return find


@pytest.fixture
def migrated(found: Callable[..., dict[str, Finding]], database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Like `found`, on the migrated database of this test."""

    def find(**values: Any) -> dict[str, Finding]:
        monkeypatch.setattr(doctor, "open_database", lambda _: Database(database.engine))
        return found(database_url=f"postgresql://anna:{SECRET}@db.example/family", **values)

    return find


# --- the folder and the database --------------------------------------------------------------------------


def test_where_nothing_is_yet_nothing_is_made_and_nothing_has_failed(
    found: Callable[..., dict[str, Finding]], tmp_path: Path
) -> None:
    findings = found(jarvis_data_dir=tmp_path / "not" / "there")
    states = {what: finding.state for what, finding in findings.items()}
    off = ("database", "pgvector", "migrations", "memory", "claude")
    assert {what for what, state in states.items() if state == "off"} >= set(off)
    assert "failed" not in states.values()
    assert "the first start makes it" in findings["database"].detail
    assert list(tmp_path.iterdir()) == []


def test_the_embedded_database_is_looked_into_beside_a_running_jarvis_and_not_migrated(
    found: Callable[..., dict[str, Finding]], made: Path
) -> None:
    settings = Settings(_env_file=None, jarvis_data_dir=made)
    findings = found(jarvis_data_dir=made)
    assert findings["database"].state == "ok"
    assert str(made) in findings["database"].detail
    assert findings["pgvector"].state == "ok"
    assert findings["migrations"].state == "ok"
    assert "the next start runs" in findings["migrations"].detail
    assert findings["memory"].state == "off"
    # Its server runs on, and there still is no table in it.
    assert postgres_below(made)
    database = open_database(settings)
    with database.begin() as connection:
        assert connection.scalar(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")) == 0
    database.close()


def test_a_data_folder_that_others_can_look_into_is_told(
    found: Callable[..., dict[str, Finding]], tmp_path: Path
) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres").chmod(0o755)
    finding = found(jarvis_data_dir=tmp_path)["data folder"]
    assert (finding.state, "chmod 700" in finding.detail) == ("failed", True)


def test_a_folder_with_foreign_files_is_told_and_left_alone(
    found: Callable[..., dict[str, Finding]], tmp_path: Path
) -> None:
    diary = tmp_path / "postgres" / "data" / "diary.txt"
    diary.parent.mkdir(parents=True)
    diary.write_text("my diary")
    findings = found(jarvis_data_dir=tmp_path)
    assert findings["database"].state == "failed"
    assert "no PostgreSQL database" in findings["database"].detail
    assert findings["search by meaning"].state == "ok"
    assert diary.read_text() == "my diary"


def test_a_full_disk_is_told(
    found: Callable[..., dict[str, Finding]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "NEEDED_MB", 10**12)
    finding = found(jarvis_data_dir=tmp_path)["disk space"]
    assert (finding.state, "Make room" in finding.remedy) == ("failed", True)


def test_a_migrated_database_is_up_to_date_and_tells_what_is_pending(migrated: Any, database: Database) -> None:
    assert migrated()["memory"].detail == "empty"
    with database.begin() as connection:
        user_id = connection.scalar(text("INSERT INTO users (login) VALUES ('default') RETURNING id"))
    said(database, user_id, ("Mein Hund heißt Bruno.", "Ein schöner Name."))
    findings = migrated()
    assert findings["migrations"].detail == "up to date"
    assert findings["memory"].detail.startswith("1 of 1 exchanges wait for their vectors, 1 chats")
    assert findings["data folder"].state == findings["disk space"].state == "off"


def test_a_database_of_a_newer_jarvis_is_told(migrated: Any, database: Database) -> None:
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    findings = migrated()
    assert findings["migrations"].state == "failed"
    assert "newer version of JARVIS" in findings["migrations"].detail
    assert findings["memory"].state == "off"


def test_a_server_of_ones_own_is_reached_by_its_address_and_one_that_is_not_there_is_told(
    found: Callable[..., dict[str, Finding]],
) -> None:
    with external_server() as url:
        findings = found(database_url=url)
        assert (findings["database"].state, findings["pgvector"].state) == ("ok", "ok")
        assert "the next start sets it up" in findings["pgvector"].detail
        assert "127.0.0.1" in findings["database"].detail
        wrong = found(database_url=url.replace("somebody:", f"somebody:{SECRET}"))["database"]
        assert (wrong.state, "password" in wrong.detail) == ("failed", True)
    findings = found(database_url=url)
    assert findings["database"].state == "failed"
    assert "DATABASE_URL" in findings["database"].remedy
    assert [findings[what].state for what in ("pgvector", "migrations", "memory")] == ["off"] * 3


# --- the models -------------------------------------------------------------------------------------------


def test_claude_answers_for_each_model_and_the_answer_costs_little(
    found: Callable[..., dict[str, Finding]], claude: FakeClaude, tmp_path: Path
) -> None:
    finding = found(jarvis_data_dir=tmp_path, anthropic_api_key=SECRET, anthropic_base_url=claude.base_url)["claude"]
    assert finding.state == "ok"
    assert [(one["model"], one["max_tokens"]) for one in claude.requests] == [
        ("claude-sonnet-5-5", 16),
        ("claude-haiku-5-5", 16),
    ]
    assert claude.refused == []


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (wrong_key(), "ANTHROPIC_API_KEY"),
        (billing_problem(), "platform.claude.com"),
        (overloaded(), "Try again"),
        (NotSse("<html>Login</html>"), "ANTHROPIC_BASE_URL"),
    ],
)
def test_what_keeps_claude_from_answering_is_told(
    found: Callable[..., dict[str, Finding]], claude: FakeClaude, tmp_path: Path, reply: Any, told: str
) -> None:
    claude.say_to_summary(reply)
    finding = found(jarvis_data_dir=tmp_path, anthropic_api_key=SECRET, anthropic_base_url=claude.base_url)["claude"]
    assert finding.state == "failed"
    assert told in f"{finding.detail} {finding.remedy}"


def test_an_unknown_model_is_told_by_its_setting(
    found: Callable[..., dict[str, Finding]], claude: FakeClaude, tmp_path: Path
) -> None:
    claude_is = {"anthropic_api_key": SECRET, "anthropic_base_url": claude.base_url, "jarvis_data_dir": tmp_path}
    finding = found(**claude_is, jarvis_summary_model="claude-retired")["claude"]
    assert finding.remedy == "Set JARVIS_SUMMARY_MODEL to a model that the service has."


def test_ollama_that_is_away_is_told_and_its_password_is_not(
    found: Callable[..., dict[str, Finding]], tmp_path: Path
) -> None:
    with FakeOllama() as ollama:
        url = ollama.base_url
        assert found(jarvis_data_dir=tmp_path, ollama_url=url, embeddings=None)["search by meaning"].state == "ok"
        missing = found(jarvis_data_dir=tmp_path, ollama_url=url, embedding_model="other", embeddings=None)
        assert "ollama pull other" in missing["search by meaning"].detail
    away = found(
        jarvis_data_dir=tmp_path, ollama_url=url.replace("http://", f"http://anna:{SECRET}@"), embeddings=None
    )["search by meaning"]
    assert (away.state, "OLLAMA_URL" in away.remedy) == ("failed", True)


def test_servers_that_are_not_there_are_told_one_by_one_with_what_helps(
    found: Callable[..., dict[str, Finding]], tmp_path: Path
) -> None:
    mailbox = {"imap_host": "127.0.0.1", "imap_port": 1, "imap_username": "anna", "imap_password": SECRET}
    sending = {"smtp_host": "127.0.0.1", "smtp_port": 1, "smtp_username": "anna", "smtp_password": SECRET}
    calendar = {"caldav_url": "http://127.0.0.1:1/dav", "caldav_username": "anna", "caldav_password": SECRET}
    findings = found(jarvis_data_dir=tmp_path, **mailbox, **sending, **calendar, mail_from="anna@example.org")
    for what, variable in (("calendar", "CALDAV_URL"), ("mail", "IMAP_HOST"), ("sending", "SMTP_HOST")):
        assert (findings[what].state, variable in findings[what].remedy) == ("failed", True), what
        assert "does not answer" in findings[what].detail


# --- how a check ends -------------------------------------------------------------------------------------


def test_a_check_that_breaks_is_a_finding_that_gives_nothing_away() -> None:
    def broken() -> str:
        raise ValueError(SECRET)

    finding = look("something", broken)
    assert (finding.state, finding.detail) == ("failed", "The check itself failed: ValueError.")


def test_a_check_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jarvis_memory.findings.PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_connection(silent.getsockname()) as client:
        finding = look("something", lambda: client.recv(1).decode(), lambda _: "Wake it up.")
        assert (finding.state, finding.remedy) == ("failed", "Wake it up.")
        assert "No answer" in finding.detail
        client.shutdown(socket.SHUT_RDWR)


def test_a_servers_words_cannot_command_the_terminal(
    found: Callable[..., dict[str, Finding]], claude: FakeClaude, tmp_path: Path
) -> None:
    reply = wrong_key()
    claude.say_to_summary(type(reply)(reply.status, reply.type, f"\x1b[2Jall\r\nwell {SECRET}"))
    finding = found(jarvis_data_dir=tmp_path, anthropic_api_key=SECRET, anthropic_base_url=claude.base_url)["claude"]
    assert "[2Jall well ***" in finding.detail  # and without the sign that would make it a command


# --- the command ------------------------------------------------------------------------------------------


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    """The ended process."""
    own = {name: value for name, value in os.environ.items() if name not in EXAMPLES}
    return subprocess.run(
        [sys.executable, "-m", "jarvis_memory", "doctor"],
        env=own | {"PYTHONPATH": str(PROJECT_FOLDER)} | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def test_the_command_says_0_when_nothing_failed_and_stops_the_server_that_it_started(tmp_path: Path) -> None:
    embedded = EmbeddedPostgres(tmp_path / "postgres")
    embedded.start()
    embedded.stop()
    with FakeOllama() as ollama:
        done = run(JARVIS_DATA_DIR=str(tmp_path), OLLAMA_URL=ollama.base_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nok      database: PostgreSQL" in done.stdout
    assert "\noff     claude: not configured (ANTHROPIC_API_KEY)" in done.stdout
    assert postgres_below(tmp_path) == []


def test_the_command_says_1_when_something_failed_and_goes_on_to_the_end(tmp_path: Path) -> None:
    done = run(
        JARVIS_DATA_DIR=str(tmp_path / "new"),
        OLLAMA_URL="http://127.0.0.1:1",
        ANTHROPIC_API_KEY=SECRET,
        ANTHROPIC_BASE_URL="http://127.0.0.1:1",
    )
    assert done.returncode == 1
    assert "\nfailed  search by meaning: " in done.stdout
    assert "\nfailed  claude: " in done.stdout
    assert "        -> Is Ollama up?" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_read_are_told_by_name() -> None:
    done = run(IMAP_HOST=f"imaps://{SECRET}", IMAP_PASSWORD=SECRET)
    assert done.returncode == 1
    assert done.stdout.startswith("failed  settings: IMAP_HOST: is not the bare name of a server")
    assert SECRET not in done.stdout + done.stderr

"""`python -m jarvis_memory`: export and import as real processes, beside a running JARVIS and without one."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jarvis_memory.__main__ import main
from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.conversations import list_conversations
from jarvis_memory.database import PROJECT_FOLDER
from jarvis_memory.imports import import_file
from jarvis_memory.settings import EXAMPLES, Settings
from tests.archives import chatgpt, export_of, file_of, node, zip_of
from tests.integration.chats import OneVector
from tests.integration.processes import postgres_below

LIMIT_SECONDS = 120
CHAT = chatgpt(node("a", None, "user", "Wohin?"), node("b", "a", "assistant", "Ans Meer."))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def running(data_dir: Path) -> Iterator[Parts]:
    """JARVIS at work on the data folder, with a chat and a fact."""
    parts = build_parts(Settings(_env_file=None, jarvis_data_dir=data_dir), embeddings=OneVector())
    import_file(parts.database, user_id=parts.user_id, file=file_of(export_of()))
    yield parts
    parts.close()


def command(data_dir: Path, *arguments: str | Path, **environment: str) -> list[object]:
    own = {name: value for name, value in os.environ.items() if name not in EXAMPLES}
    return [
        [sys.executable, "-m", "jarvis_memory", *map(str, arguments)],
        own | {"JARVIS_DATA_DIR": str(data_dir), "PYTHONPATH": str(PROJECT_FOLDER)} | environment,
    ]


def run(
    data_dir: Path, *arguments: str | Path, given: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The ended process."""
    line, own = command(data_dir, *arguments, **environment)
    return subprocess.run(line, env=own, input=given, capture_output=True, timeout=LIMIT_SECONDS)  # type: ignore[call-overload, no-any-return]


def test_an_export_beside_a_running_jarvis_comes_back_into_an_empty_folder(running: Parts, data_dir: Path) -> None:
    file = data_dir.parent / "export.json"
    done = run(data_dir, "export", file, ANTHROPIC_API_KEY="sk-ant-geheim")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Exported: 1 conversations, 2 messages, 1 facts, 1 documents." in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"sk-ant-geheim" not in file.read_bytes()
    # JARVIS goes on as if nothing had been.
    with running.database.begin() as connection:
        assert len(list_conversations(connection, user_id=running.user_id)) == 1

    elsewhere = data_dir.parent / "elsewhere"
    done = run(elsewhere, "import", file)
    assert done.returncode == 0, done.stderr
    assert b"conversations new: 1" in done.stderr
    assert b"attachments: 1" in done.stderr
    assert b"documents new: 1" in done.stderr
    # Nobody else uses that folder: its server has ended with the command.
    assert postgres_below(elsewhere) == []
    again = run(elsewhere, "export", "-")
    documents = [json.loads(content) | {"exported_at": ""} for content in (file.read_bytes(), again.stdout)]
    assert documents[0] == documents[1]
    assert b"conversations known: 1" in run(elsewhere, "import", "-", given=again.stdout).stderr


def test_an_import_beside_a_running_jarvis_is_seen_by_it(running: Parts, data_dir: Path) -> None:
    file = data_dir.parent / "chatgpt.zip"
    file.write_bytes(zip_of({"conversations.json": [CHAT]}).getvalue())
    assert run(data_dir, "import", file).returncode == 0
    with running.database.begin() as connection:
        titles = {one.title for one in list_conversations(connection, user_id=running.user_id)}
    assert titles == {"Bruno", "Urlaub"}


def test_a_file_is_replaced_only_when_told_to_and_only_by_a_whole_one(running: Parts, data_dir: Path) -> None:
    file = data_dir.parent / "export.json"
    file.write_text("my diary")
    refused = run(data_dir, "export", file)
    assert (refused.returncode, file.read_text()) == (1, "my diary")
    assert f"{file}: File exists".encode() in refused.stderr

    failed = run(data_dir, "export", "--force", file, DATABASE_URL="postgresql://x:y@127.0.0.1:1/x")
    assert (failed.returncode, file.read_text()) == (1, "my diary")
    assert [path.name for path in file.parent.iterdir() if path.is_file()] == ["export.json"]

    assert run(data_dir, "export", "--force", file).returncode == 0
    assert json.loads(file.read_bytes())["format"] == "jarvis-export"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.fixture
def say(data_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that fails, in this process. Returns what it says."""
    monkeypatch.setenv("JARVIS_DATA_DIR", str(data_dir))
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def call(*arguments: str | Path) -> str:
        assert main([str(argument) for argument in arguments]) == 1
        out, err = capfd.readouterr()
        assert (out, "Traceback" in err) == ("", False)
        return err

    return call


def test_what_cannot_be_imported_is_said_in_a_sentence(say: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    for content, said in (
        (b"Liebes Tagebuch", "The file does not begin like JSON"),
        (json.dumps(export_of(version=9)).encode(), "Update JARVIS first"),
        (json.dumps(export_of(facts=[{"content": 1}])).encode(), "facts[0].content is no text."),
        (b"[]", "conversations.json of ChatGPT or Claude"),
    ):
        file.write_bytes(content)
        assert said in say("import", file)


def test_an_export_that_fails_leaves_no_file(
    say: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://x:geheim@127.0.0.1:1/x")
    said = say("export", tmp_path / "export.json")
    assert said.startswith("The database cannot be reached.")
    assert "geheim" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_or_cannot_be_written_is_named(
    say: Callable[..., str], data_dir: Path, tmp_path: Path
) -> None:
    for arguments in (("import", tmp_path / "no.json"), ("export", tmp_path / "no" / "x.json"), ("import", tmp_path)):
        assert say(*arguments).startswith(str(tmp_path))
    # Nothing was started for it.
    assert not data_dir.exists()


def test_a_bad_setting_is_named_without_its_value(
    say: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JARVIS_LANGUAGE", "geheim")
    said = say("export", tmp_path / "x.json")
    assert said.startswith("JARVIS_LANGUAGE: ")
    assert "geheim" not in said


@pytest.mark.parametrize("arguments", [[], ["export"], ["import"], ["nonsense"], ["import", "a", "b"]])
def test_a_wrong_call_shows_how_it_is_meant(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err.startswith("usage: python -m jarvis_memory")


def test_an_export_and_an_import_do_not_wait_for_the_sdk_to_load(data_dir: Path) -> None:
    line, own = command(data_dir)
    loaded = "import sys, jarvis_memory.__main__; print('anthropic' in sys.modules)"
    done = subprocess.run([line[0], "-c", loaded], env=own, capture_output=True, timeout=LIMIT_SECONDS)  # type: ignore[call-overload]
    assert done.stdout.strip() == b"False", done.stderr


def test_an_import_that_is_stopped_leaves_nothing_and_no_server(data_dir: Path) -> None:
    chats = [
        chatgpt(*[node(str(n), str(n - 1), "user", "x" * 2_000) for n in range(40)], number=str(number))
        for number in range(300)
    ]
    line, own = command(data_dir, "import", "-")
    content = file_of(chats).getvalue()
    with subprocess.Popen(line, env=own, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # type: ignore[call-overload]
        process.stdin.write(content)
        process.stdin.close()
        # The database is open: it is at the import.
        while not postgres_below(data_dir):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_SECONDS) == 128 + signal.SIGTERM
    assert postgres_below(data_dir) == []
    document = json.loads(run(data_dir, "export", "-").stdout)
    assert document["conversations"] == []

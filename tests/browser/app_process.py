"""The app as a process of its own, started as `make demo` starts it, on a free port with a data folder of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.request import urlopen

from jarvis_memory.embedded_postgres import EmbeddedPostgres
from tests.demo import APP, app_command, app_environment
from tests.fake_claude import FakeClaude

START_SECONDS = 90
END_SECONDS = 30


class AppProcess:
    """Starts on entering, ends on leaving. `environment` changes single variables; an empty value unsets one."""

    def __init__(self, claude: FakeClaude, folder: Path, **environment: str) -> None:
        self.claude = claude
        self.data_dir = folder / "data"
        self.log_file = folder / "app.log"
        self._environment = app_environment(claude, self.data_dir, **environment)
        self._port = _free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        """Start it and wait until it answers; again after an end."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                app_command(self._port),
                cwd=APP.parent,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_healthy(self._process)
        except BaseException:
            self.end()
            raise

    def end(self, by: signal.Signals = signal.SIGTERM) -> int | None:
        """Send the signal and wait. The exit code; None when the process had to be killed."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if by is signal.SIGINT:
            # Ctrl-C in a terminal reaches every process that was started from it.
            os.killpg(process.pid, by)
        else:
            process.send_signal(by)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(END_SECONDS)
        process.kill()
        process.wait()
        # The database server outlives a killed app.
        server = EmbeddedPostgres(self.data_dir / "postgres")
        server.start()
        server.stop()
        return None

    @property
    def log(self) -> str:
        """Everything it has written to the terminal."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    @property
    def database_is_running(self) -> bool:
        """Whether a database server works in its data folder: such a server keeps this file."""
        return any(self.data_dir.rglob("postmaster.pid"))

    def _wait_until_healthy(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            # The body, because unknown paths are answered with 200 too.
            with contextlib.suppress(OSError), urlopen(f"{self.address}/_stcore/health", timeout=5) as answer:
                if answer.read() == b"ok":
                    return
            time.sleep(0.05)
        raise AssertionError(f"The app did not start (exit code {process.poll()}):\n{self.log}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextlib.contextmanager
def running_app(responder: object, folder: Path, **environment: str) -> Iterator[AppProcess]:
    """An app with its scripted Claude."""
    with FakeClaude(responder) as claude, AppProcess(claude, folder, **environment) as app:  # type: ignore[arg-type]
        yield app

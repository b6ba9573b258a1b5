"""Looking for the processes of a server, to kill them or to make sure that none is left."""

from contextlib import suppress
from pathlib import Path

import psutil


def postgres_below(folder: Path) -> list[psutil.Process]:
    """The processes of PostgreSQL that work somewhere in this folder."""
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error, OSError):
            if process.info["name"] == "postgres" and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


def kill_postgres(folder: Path) -> None:
    """kill -9 of the whole server: the postmaster first, so that it starts no other."""
    processes = sorted(postgres_below(folder), key=lambda process: process.pid)
    assert processes
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=20)

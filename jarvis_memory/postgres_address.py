"""Where the embedded server listens, and how it is reached there.

On Linux and macOS that is a socket in a private folder with a short, unpredictable name: no other user of the
machine can connect or put another server in its place, however long the data folder's path is. On Windows it is
TCP on the loopback address. Both ask for a password.
"""

import os
import re
import shutil
import socket
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2.extensions import connection as Connection

from jarvis_memory.postgres_process import ServerAccount

_FOLDER_PREFIX = "jarvis-pg-"
# A socket's path has at most 103 bytes on macOS and 107 on Linux; the names of folder and socket take 33.
_LONGEST_BASE = 70


@dataclass(frozen=True, kw_only=True)
class PostmasterNote:
    """What a server wrote about itself into postmaster.pid. It may be stale: a claim, no proof."""

    pid: int
    port: int
    socket_folder: Path | None  # None: TCP on the loopback address
    status: str  # starting, stopping, ready or, in the first moment, empty

    @classmethod
    def read(cls, data: Path) -> "PostmasterNote | None":
        """The note in this data folder; None where there is none or it is not (yet) complete."""
        try:
            lines = (data / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
            folder = Path(lines[4]) if lines[4] else None
            status = lines[7].strip() if len(lines) > 7 else ""
            return cls(pid=int(lines[0]), port=int(lines[3]), socket_folder=folder, status=status)
        except (FileNotFoundError, ValueError, IndexError):
            return None

    def connect(self, role: str, password: str, database: str, account: ServerAccount) -> Connection:
        """A new connection to the server of the note; raises psycopg2.OperationalError."""
        if self.socket_folder and not _is_private(self.socket_folder, account):
            raise psycopg2.OperationalError(f"{self.socket_folder} is not a private folder of {account.name}")
        return psycopg2.connect(
            host=str(self.socket_folder or "127.0.0.1"),
            port=self.port,
            user=role,
            password=password,
            dbname=database,
            connect_timeout=10,
            require_auth="scram-sha-256",
            # Said here so that PGHOSTADDR, PGOPTIONS and the like in the environment change nothing.
            hostaddr="",
            options="",
            sslmode="disable",
            gssencmode="disable",
            channel_binding="disable",
            target_session_attrs="any",
            client_encoding="UTF8",
        )

    def is_lost(self, account: ServerAccount) -> bool:
        """Whether the socket is gone, because somebody cleaned the temporary folder."""
        return self.socket_folder is not None and not (
            _is_private(self.socket_folder, account) and (self.socket_folder / f".s.PGSQL.{self.port}").exists()
        )

    def remove_socket_folder(self, account: ServerAccount) -> None:
        """Remove the folder that a dead server left behind, if it is one of ours."""
        if self.socket_folder:
            remove_socket_folder(self.socket_folder, account)


def new_address(account: ServerAccount) -> dict[str, str]:
    """The settings that make a server listen at a new address; makes the folder for its socket."""
    if sys.platform == "win32":
        with socket.create_server(("127.0.0.1", 0)) as free:
            return {"listen_addresses": "127.0.0.1", "port": str(free.getsockname()[1])}
    folder = _make_socket_folder(account)
    # All processes of the server carry its cluster_name in their command line, which everybody may read.
    mark = {"cluster_name": folder.name}
    return {"listen_addresses": "", "port": "5432", "unix_socket_directories": str(folder)} | mark


def remove_socket_folder(folder: Path, account: ServerAccount) -> None:
    """Remove this folder for a socket; another kind of folder, or somebody else's, stays."""
    if folder.name.startswith(_FOLDER_PREFIX) and _is_private(folder, account):
        shutil.rmtree(folder, ignore_errors=True)


def _make_socket_folder(account: ServerAccount) -> Path:
    # TMPDIR of root may be closed to the server's user.
    for base in ("/tmp",) if account.switch else (tempfile.gettempdir(), "/tmp"):
        # pg_ctl's shell and the server's list of folders both see the name: only harmless characters.
        if len(base) <= _LONGEST_BASE and re.fullmatch(r"[A-Za-z0-9/._+-]+", base):
            break
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=base))
    if account.switch:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    return folder


def _is_private(folder: Path, account: ServerAccount) -> bool:
    try:
        status = folder.lstat()  # of a link itself, so that a link is no folder
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == account.uid and not status.st_mode & 0o077

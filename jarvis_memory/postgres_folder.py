"""The folder of the embedded PostgreSQL server: what lies in it, and which processes share it.

It holds `data` (PostgreSQL's own), one password a role, the server's log, a lock that a process holds while
it starts or stops the server, and in `users` one file per process that uses the server, locked for as long as
that process lives. A lock ends with its process, also after kill -9: so the last one out is known.

How the server is started and stopped stands in embedded_postgres.py.
"""

import os
import secrets
import shutil
import subprocess
from pathlib import Path

import psutil
from filelock import BaseFileLock, FileLock, Timeout

from jarvis_memory.errors import DatabaseFolderTooOld, DatabaseFolderUnusable, DatabaseUnavailable
from jarvis_memory.postgres_address import PostmasterNote
from jarvis_memory.postgres_process import (
    ServerAccount,
    account_for,
    binaries,
    make_folder,
    run,
    server_processes,
    write_secret,
)

MAJOR_VERSION = 18
ADMIN, APP = "postgres", "jarvis"

_INITDB = (
    "--encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8 --auth=scram-sha-256 "
    f"--username={ADMIN} --pwfile={ADMIN}.password"
)
_LOG_LIMIT = 1_000_000  # bytes; above that a start begins a new log and keeps the last one
_LOCK_PATIENCE = 660  # seconds; another process may be in a crash recovery


class PostgresFolder:
    """The folder at `path`; nothing is written before make()."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.data = self.path / "data"
        self.log = self.path / "server.log"
        self._users = self.path / "users"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def account(self) -> ServerAccount:
        """Who the server of this folder runs as; raises DatabaseFolderUnusable."""
        return account_for(self.path)

    @property
    def note(self) -> PostmasterNote | None:
        """What the last server wrote about itself: a claim, no proof."""
        return PostmasterNote.read(self.data)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs here, with relative paths; returns what it printed."""
        return run(program, *arguments, folder=self.path, account=self.account)

    def processes(self) -> list[psutil.Process]:
        """The live processes of a server that works in this folder, also those that lost their postmaster."""
        note = self.note
        return server_processes(self.data, note.socket_folder.name if note and note.socket_folder else None)

    def password(self, role: str) -> str:
        """The role's password; raises OSError where there is none yet."""
        return self._password_file(role).read_text(encoding="ascii")

    def log_tail(self) -> str:
        """The last lines of the server's log, or nothing."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        except OSError:
            return ""

    # --- the processes that share it ------------------------------------------------------------------------

    def lock(self) -> BaseFileLock:
        """The lock for starting and stopping; entering it raises filelock.Timeout when it stays taken."""
        return self._file_lock(self.path / "lock", timeout=_LOCK_PATIENCE)

    def register(self) -> BaseFileLock:
        """Make this process a user of the server, under the lock; returns what unregister() takes."""
        make_folder(self._users, self.account)
        registration = self._file_lock(self._users / f"{os.getpid()}-{secrets.token_hex(4)}", timeout=0)
        registration.acquire()
        return registration

    @staticmethod
    def unregister(registration: BaseFileLock) -> None:
        """Take back a registration, under the lock."""
        registration.release()
        Path(registration.lock_file).unlink(missing_ok=True)

    def is_in_use(self) -> bool:
        """Whether a live process is registered, this one included; forgets the dead ones. Under the lock."""
        in_use = False
        for file in self._users.glob("*"):
            registration = self._file_lock(file, timeout=0)
            try:
                registration.acquire()
            except (Timeout, PermissionError):
                in_use = True
            else:
                self.unregister(registration)
        return in_use

    def _file_lock(self, file: Path, *, timeout: float) -> BaseFileLock:
        # Started once as root must not lock the owner out: what root makes here goes to the account.
        return FileLock(
            file,
            timeout=timeout,
            mode=0o600,
            thread_local=False,
            fallback_to_soft=False,
            on_acquired=self.account.take,
        )

    # --- what lies in it ------------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the folder itself if there is none; raises DatabaseFolderTooOld and then touches nothing."""
        try:
            version = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            make_folder(self.path, self.account)
            return
        if version != str(MAJOR_VERSION):
            raise DatabaseFolderTooOld(
                f"{self.data} was written by PostgreSQL {version}, this JARVIS runs {MAJOR_VERSION}. "
                "Nothing was changed. Copy the folder, then convert it with pg_upgrade (programs of several "
                f"versions are in {binaries().parent.parent}), or write everything out with pg_dumpall of "
                f"version {version} and read it into a new folder.",
                folder=str(self),
                version=version,
            )

    def initialise(self) -> None:
        """Have passwords and a data folder, under the lock; raises DatabaseFolderUnusable."""
        account = self.account
        for left_over in (*self.path.glob("data.new-*"), *self.path.glob("*.password.*.new")):
            if left_over.is_dir():
                shutil.rmtree(left_over, ignore_errors=True)
            else:
                left_over.unlink(missing_ok=True)
        exists = self.data.exists() and any(self.data.iterdir())
        if exists:
            self._check_data(account)
        for role in (ADMIN, APP):
            if not self._password_file(role).exists():
                write_secret(self._password_file(role), secrets.token_urlsafe(32), account)
        if not exists:
            self._make_data()

    def clear_remains(self) -> None:
        """Remove what a dead server left behind. Only when no postgres works in the data folder."""
        if note := self.note:
            note.remove_socket_folder(self.account)
        # The number in it may belong to anybody by now; pg_ctl and postgres would believe it.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_name("server.log.1"))

    def _password_file(self, role: str) -> Path:
        return self.path / f"{role}.password"

    def _check_data(self, account: ServerAccount) -> None:
        if not (self.data / "PG_VERSION").exists():
            raise DatabaseFolderUnusable(
                f"{self.data} holds files but no PostgreSQL database. Move them away or choose another data "
                "folder, then start JARVIS again.",
                folder=str(self),
            )
        owner = self.data.stat().st_uid
        if owner != account.uid:
            raise DatabaseFolderUnusable(
                f"{self.data} belongs to user {owner}, the server runs as {account.name} ({account.uid}). "
                "Give the whole folder to one of them with `chown -R`, then start JARVIS again.",
                folder=str(self),
            )
        if not self._password_file(ADMIN).exists():
            raise DatabaseFolderUnusable(
                f"{self._password_file(ADMIN)} is missing, and without it nobody can open the database. "
                "Bring it back from a backup of the folder, then start JARVIS again.",
                folder=str(self),
            )

    def _make_data(self) -> None:
        # Under another name first: an initdb that is killed half-way leaves a folder that no server can use.
        fresh = f"data.new-{secrets.token_hex(4)}"
        try:
            self.run("initdb", f"--pgdata={fresh}", *_INITDB.split())
        except subprocess.CalledProcessError as error:
            reason = error.output.splitlines()[-1:] or ["it was ended"]
            raise DatabaseUnavailable(
                f"No database could be made in {self}: {reason[0]}. Most often the disk is full or the "
                "folder cannot be written; correct that, then start JARVIS again.",
                folder=str(self),
            ) from error
        if self.data.exists():  # empty: initialise() has looked
            self.data.rmdir()
        (self.path / fresh).rename(self.data)

"""The embedded PostgreSQL server: one folder, one server, shared by all threads and processes of JARVIS.

What lies in the folder stands in postgres_folder.py, where the server listens in postgres_address.py, how its
programs are run in postgres_process.py. Tables and sessions belong to database.py.
"""

import logging
import os
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

import psutil
import psycopg2
from filelock import BaseFileLock, Timeout
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import encrypt_password

from jarvis_memory.errors import DatabaseFolderUnusable, DatabaseUnavailable, JarvisError
from jarvis_memory.postgres_address import new_address, remove_socket_folder
from jarvis_memory.postgres_folder import ADMIN, APP, PostgresFolder
from jarvis_memory.postgres_process import binaries

__all__ = ["EmbeddedPostgres", "binaries"]

logger = logging.getLogger(__name__)

_SETTINGS = {
    # A home machine, a handful of connections.
    "shared_buffers": "64MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
    # A recycled segment would keep what people wrote and deleted long ago.
    "wal_recycle": "off",
    # What people write must not reach the log: no statements, no parameters, no details, and no errors of
    # statements at all ("log" stands between "error" and "fatal" here).
    "log_min_messages": "log",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
}
_RECOVERY_PATIENCE = 300  # seconds
_READY_PATIENCE = 15
_ORPHAN_PATIENCE = 3


class EmbeddedPostgres:
    """One embedded server in `folder`; nothing happens before start()."""

    def __init__(self, folder: Path) -> None:
        self._folder = PostgresFolder(folder)
        self._mutex = threading.RLock()
        self._state: Literal["new", "in use", "stopped"] = "new"
        self._registration: BaseFileLock | None = None
        self._process = os.getpid()

    def start(self) -> None:
        """Have the server running with the database in it, and be one of its users until stop().

        Raises DatabaseUnavailable (also its DatabaseFolderTooOld, DatabaseFolderUnusable) saying what to do.
        """
        with self._mutex:
            self._start()

    def connect(self, database: str = APP) -> Connection:
        """A new connection as the app's role; a server that is gone is started again first.

        Raises DatabaseUnavailable, also after stop().
        """
        if self._registration is not None:
            try:
                return self._connect_as(APP, database)
            except (psycopg2.OperationalError, OSError) as error:
                logger.info("No connection to the embedded database (%s); looking after its server", error)
        with self._mutex:
            if self._state == "stopped":  # a late thread must not start the server again while the process ends
                raise DatabaseUnavailable("The embedded database was stopped. Start JARVIS again to use it.")
            self._start()
            return self._connect_or_say(APP, database)

    def admin_connect(self, database: str = ADMIN) -> Connection:
        """A new connection as the superuser, for maintenance; raises DatabaseUnavailable."""
        return self._connect_or_say(ADMIN, database)

    def discard_wal(self) -> None:
        """Drop what the write-ahead log tells of the past, deleted texts among it; raises DatabaseUnavailable."""
        with closing(self.admin_connect()) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            try:
                # All before the second checkpoint's segment goes, and the switch has made that a new one.
                for statement in ("CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT"):
                    cursor.execute(statement)
            except psycopg2.Error as error:
                raise DatabaseUnavailable(cause=str(error).strip()) from error

    def stop(self) -> None:
        """Be no user any more; the last one out stops the server. Raises nothing: this is a shutdown."""
        with self._mutex:
            # A forked child has a copy of this object, but the server's user is its parent.
            if self._state != "in use" or self._process != os.getpid():
                return
            self._state = "stopped"
            try:
                with self._folder.lock():
                    self._unregister()
                    if not self._folder.is_in_use():
                        self._shut_down()
            except (OSError, subprocess.SubprocessError, JarvisError) as error:
                logger.warning("The embedded database was not stopped in order: %s", error)

    @property
    def pid(self) -> int | None:
        """The process id of our server, proved by asking it which folder it serves; None without one."""
        note = self._folder.note
        if note is None:
            return None
        try:
            with closing(self._connect_as(ADMIN, ADMIN)) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT current_setting('data_directory')")
                row = cursor.fetchone()
                return note.pid if row and self._folder.data.samefile(row[0]) else None
        except (psycopg2.Error, OSError):
            return None

    # --- connections ----------------------------------------------------------------------------------------

    def _connect_as(self, role: str, database: str) -> Connection:
        note = self._folder.note
        if note is None:
            raise psycopg2.OperationalError("no server has left a note in the folder")
        return note.connect(role, self._folder.password(role), database, self._folder.account)

    def _connect_or_say(self, role: str, database: str) -> Connection:
        try:
            return self._connect_as(role, database)
        except (psycopg2.OperationalError, OSError) as error:
            raise DatabaseUnavailable(
                f"The database in {self._folder} does not take a connection: {str(error).strip()}. "
                f"See {self._folder.log}, then start JARVIS again."
            ) from error

    # --- start ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        folder = self._folder
        try:
            folder.make()
            with folder.lock():
                self._state, self._process = "in use", os.getpid()
                if self._registration is None:
                    self._registration = folder.register()
                try:
                    folder.initialise()
                    self._ensure_running()
                    self._prepare_database()
                except BaseException:
                    self._unregister()
                    raise
        except Timeout as error:
            raise DatabaseUnavailable(
                f"Another JARVIS process has been busy with the database in {folder} for minutes. "
                "Wait until it is done or end it, then start JARVIS again.",
            ) from error
        except (psycopg2.Error, subprocess.SubprocessError) as error:
            raise DatabaseUnavailable(
                f"The database in {folder} could not be prepared: {str(error).strip()}. See {folder.log}; "
                "when the disk is full make room, then start JARVIS again."
            ) from error
        except OSError as error:
            raise DatabaseFolderUnusable(
                f"The database folder {folder} cannot be used: {error}. Make sure that it is on a local disk "
                "with free space and belongs to the user who runs JARVIS, then start JARVIS again.",
                folder=str(folder),
            ) from error

    def _unregister(self) -> None:
        if self._registration is not None:
            self._folder.unregister(self._registration)
            self._registration = None

    def _ensure_running(self) -> None:
        failure: subprocess.CalledProcessError | None = None
        # Twice: a start whose Python was killed may come in between and make ours fail.
        for _ in range(2):
            if self._is_running():
                return
            self._folder.clear_remains()
            try:
                self._launch()
            except subprocess.CalledProcessError as error:
                failure = error
        if not self._is_running():
            tail = self._folder.log_tail()
            logger.error("The embedded database did not start: %s\n%s", failure and failure.output, tail)
            grave = [line for line in tail.splitlines() if "FATAL" in line or "PANIC" in line]
            reason = grave[-1] if grave else "Its log says no more"
            raise DatabaseUnavailable(
                f"The database server in {self._folder} did not start. {reason}. Most often "
                f"the disk is full or a file may not be read; all of it is at the end of {self._folder.log}. "
                "Correct that, then start JARVIS again.",
                folder=str(self._folder),
                reason=reason,
            ) from failure

    def _is_running(self) -> bool:
        """Wait until our server answers (True) or no postgres works in the data folder any more (False)."""
        begin = time.monotonic()
        while self.pid is None:
            processes = self._folder.processes()
            if not processes:
                return False
            waited = time.monotonic() - begin
            note = self._folder.note
            if note is None or all(process.pid != note.pid for process in processes):
                # Their postmaster was killed. Idle ones end at once, busy ones only when they are told to.
                if waited > _ORPHAN_PATIENCE:
                    for process in processes:
                        with suppress(psutil.Error):
                            process.terminate()
            elif note.status == "ready" and note.is_lost(self._folder.account):
                self._pg_ctl_stop()
            elif note.status == "ready" and waited > _READY_PATIENCE:
                raise DatabaseUnavailable(
                    f"The database server in {self._folder} (process {note.pid}) runs but does not let "
                    f"JARVIS in. See {self._folder.log}, stop that process with SIGINT, then start JARVIS again."
                )
            if waited > _RECOVERY_PATIENCE:
                raise DatabaseUnavailable(
                    f"The database in {self._folder} is still busy after {_RECOVERY_PATIENCE} seconds. "
                    f"See {self._folder.log}, and start JARVIS again a little later."
                )
            time.sleep(0.05)
        return True

    def _launch(self) -> None:
        address = new_address(self._folder.account)
        options = " ".join(f"-c {name}={value}" for name, value in (_SETTINGS | address).items())
        start = f"start -D data -l server.log -w -t {_RECOVERY_PATIENCE}".split()
        try:
            self._folder.run("pg_ctl", *start, "-o", options)
        except BaseException:
            if not self._folder.processes():
                remove_socket_folder(Path(address.get("unix_socket_directories", "")), self._folder.account)
            raise
        logger.info("The embedded database server was started in %s", self._folder)

    def _prepare_database(self) -> None:
        with closing(self._connect_as(ADMIN, ADMIN)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", (APP,))
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE ROLE {APP}")
            # Hashed here so that it is in no statement; each time, because a lost password file is made anew.
            secret = encrypt_password(self._folder.password(APP), APP, connection, "scram-sha-256")
            cursor.execute(f"ALTER ROLE {APP} LOGIN NOSUPERUSER PASSWORD %s", (secret,))
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", (APP,))
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {APP} OWNER {APP}")
        with closing(self._connect_as(ADMIN, APP)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")

    # --- stop -----------------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        note, processes = self._folder.note, self._folder.processes()
        # pg_ctl signals whatever process has the number in postmaster.pid: first prove whose it is.
        if note and (self.pid == note.pid or any(process.pid == note.pid for process in processes)):
            self._pg_ctl_stop()
            note.remove_socket_folder(self._folder.account)
            logger.info("The embedded database server in %s was stopped", self._folder)
        elif not processes:
            self._folder.clear_remains()

    def _pg_ctl_stop(self) -> None:
        self._folder.run("pg_ctl", "stop", "-D", "data", "-m", "fast", "-w", "-t", "60")

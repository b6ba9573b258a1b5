"""What `python -m jarvis_memory doctor` finds: a line for each thing that JARVIS needs, and what helps where it fails.

Nothing is changed: no data folder and no database is made, no migration is run. A check that fails, or that does not
end, keeps no other from being made.
"""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, select, text

from jarvis_memory.database import Database, missing_migrations, open_database
from jarvis_memory.embedded_postgres import binaries
from jarvis_memory.embeddings import Embeddings, build_embeddings
from jarvis_memory.errors import (
    ClaudeModelUnknown,
    ClaudeSpendLimit,
    ClaudeUnreachable,
    JarvisError,
    ServiceError,
    ServiceFolderMissing,
    ServiceLoginRejected,
    ServiceNotSecure,
    SettingsError,
    VectorExtensionMissing,
)
from jarvis_memory.findings import Finding, look, secrets_of, shown
from jarvis_memory.recall_index import index_progress
from jarvis_memory.services import Service, list_services
from jarvis_memory.settings import Settings, load_settings
from jarvis_memory.summaries import count_pending
from jarvis_memory.tables import users
from jarvis_memory.users import DEFAULT_LOGIN

NEEDED_MB = 500
OLDEST_VECTOR = (0, 8)

IN_THE_DATABASE = ("pgvector", "migrations", "memory")
MODEL_VARIABLES = ("JARVIS_MODEL", "JARVIS_SUMMARY_MODEL")


def diagnose() -> Iterator[Finding]:
    """The findings about this process's settings; when they cannot be read, what is wrong with them and no more."""
    try:
        settings = load_settings()
    except SettingsError as error:
        for name, reason, example in error.details["problems"]:
            helps = f"For example {name}={example}" if example else ""
            yield Finding(what="settings", state="failed", detail=f"{name}: {reason}.", remedy=helps)
        yield Finding(what="everything else", state="off", detail="cannot be looked at yet")
        return
    yield Finding(what="settings", state="ok", detail=f"{len(settings.model_fields_set)} set, the others by default")
    yield from examine(settings)


def examine(settings: Settings, *, embeddings: Embeddings | None = None) -> Iterator[Finding]:
    """A finding for each thing, as soon as it is known. Raises nothing."""
    hidden = secrets_of(settings)
    for finding in _examined(settings, embeddings or build_embeddings(settings)):
        yield Finding(
            what=finding.what,
            state=finding.state,
            detail=shown(finding.detail, hidden),
            remedy=shown(finding.remedy, hidden),
        )


def _examined(settings: Settings, embeddings: Embeddings) -> Iterator[Finding]:
    yield from _folder_and_disk(settings)
    yield from _database(settings, embeddings.model)
    yield look("search by meaning", lambda: _embedded(embeddings), lambda _: _embedding_remedy(settings))
    for service in list_services(settings):
        yield _service(service, settings)


# --- the folder -------------------------------------------------------------------------------------------


def _folder_and_disk(settings: Settings) -> Iterator[Finding]:
    if settings.database_url is not None:
        yield Finding(what="data folder", state="off", detail="not used, because DATABASE_URL is set")
        yield Finding(what="disk space", state="off", detail="that of the database's server cannot be seen from here")
        return
    folder = settings.jarvis_data_dir
    elsewhere = "or choose another JARVIS_DATA_DIR."
    yield look("data folder", lambda: _rights(folder), lambda _: f"Correct the rights, {elsewhere}")
    yield look("disk space", lambda: _disk_space(folder), lambda _: f"Make room, {elsewhere}")


def _rights(folder: Path) -> str:
    there = _nearest(folder)
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise JarvisError(f"You may not read and write in {there}.")
    postgres = folder / "postgres"
    if not postgres.exists():
        return f"{folder}: nothing in it yet, the first start makes what is needed"
    if sys.platform != "win32" and (mode := stat.S_IMODE(postgres.stat().st_mode)) & 0o077:
        raise JarvisError(f"Other users of this machine can look into {postgres} ({mode:o}): chmod 700 closes it.")
    return f"{folder}: yours, and closed to other users"


def _disk_space(folder: Path) -> str:
    free = shutil.disk_usage(_nearest(folder)).free // 1_000_000
    if free < NEEDED_MB:
        raise JarvisError(f"Only {free:,} MB are free where {folder} is; less than {NEEDED_MB} MB is a risk.")
    return f"{free:,} MB free"


def _nearest(folder: Path) -> Path:
    """The folder, or what there is of the way to it."""
    return next(place for place in (folder, *folder.parents) if place.exists())


# --- the database -----------------------------------------------------------------------------------------


def _database(settings: Settings, embedding_model: str) -> Iterator[Finding]:
    what = "database"
    if settings.database_url is None and not _has_been_made(settings.jarvis_data_dir):
        finding = look(what, lambda: str(binaries()))
        if finding.state == "ok":
            finding = Finding(what=what, state="off", detail="embedded: there is none yet, the first start makes it")
        yield finding
        yield from _not_looked_at(*IN_THE_DATABASE)
        return
    opened: list[Database] = []
    try:
        finding = look(what, lambda: _opened(settings, opened), lambda _: _database_remedy(settings))
        yield finding
        if finding.state == "ok":
            yield from _inside(opened[0], embedding_model)
        else:
            yield from _not_looked_at(*IN_THE_DATABASE)
    finally:
        for database in opened:
            database.close()


def _has_been_made(folder: Path) -> bool:
    try:
        return any((folder / "postgres" / "data").iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # opening it will tell
        return True


def _database_remedy(settings: Settings) -> str:
    # Of the embedded one the error itself says what to do.
    return "Is the server up, and is DATABASE_URL right?" if settings.database_url is not None else ""


def _opened(settings: Settings, opened: list[Database]) -> str:
    # Started where no JARVIS runs, shared with the one that does; the last user stops it.
    opened.append(open_database(settings))
    with opened[0].begin() as connection:
        version = connection.scalar(text("SELECT split_part(current_setting('server_version'), ' ', 1)"))
    place = settings.database_place
    where = f"at {place}" if place else f"embedded, in {settings.jarvis_data_dir / 'postgres'}"
    return f"PostgreSQL {version}, {where}"


def _inside(database: Database, embedding_model: str) -> Iterator[Finding]:
    def asked(question: Callable[[Connection], str]) -> Callable[[], str]:
        def check() -> str:
            with database.begin() as connection:
                return question(connection)

        return check

    yield look("pgvector", asked(_vector_extension), lambda _: "JARVIS needs 0.8 or newer.")
    finding = look("migrations", asked(_migrations))
    yield finding
    if finding.state == "ok" and finding.detail == UP_TO_DATE:
        yield look("memory", asked(lambda connection: _pending(connection, embedding_model)))
    else:
        yield from _not_looked_at("memory")


def _vector_extension(connection: Connection) -> str:
    query = "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"
    row = connection.execute(text(query)).one_or_none()
    if row is None:
        raise VectorExtensionMissing
    version = str(row.installed_version or row.default_version)
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VECTOR:
        raise VectorExtensionMissing(f"This pgvector is too old: {version}.")
    return version if row.installed_version else f"{version}; the next start sets it up in the database"


UP_TO_DATE = "up to date"


def _migrations(connection: Connection) -> str:
    missing = missing_migrations(connection)
    return f"the next start runs {missing}; make a backup first" if missing else UP_TO_DATE


def _pending(connection: Connection, embedding_model: str) -> str:
    user_id = connection.scalar(select(users.c.id).where(users.c.login == DEFAULT_LOGIN))
    if user_id is None:
        return "empty"
    index = index_progress(connection, user_id=user_id, embedding_model=embedding_model)
    summaries, failing = count_pending(connection, user_id=user_id)
    if failing:
        raise JarvisError(f"{failing} of {summaries} pending summaries failed; the Memory page says why (Upkeep).")
    return f"{index.waiting} of {index.total} exchanges wait for their vectors, {summaries} chats for their summary"


def _not_looked_at(*names: str) -> Iterator[Finding]:
    for what in names:
        yield Finding(what=what, state="off", detail="cannot be looked at yet")


# --- the search -------------------------------------------------------------------------------------------


def _embedded(embeddings: Embeddings) -> str:
    embeddings.embed_query("Wo habe ich das gelesen?")
    return embeddings.model


def _embedding_remedy(settings: Settings) -> str:
    return "Is Ollama up? See OLLAMA_URL and EMBEDDING_MODEL." if settings.ollama_url else ""


# --- the services -----------------------------------------------------------------------------------------


def _service(service: Service, settings: Settings) -> Finding:
    if not service.configured:
        return Finding(what=service.name, state="off", detail=f"not configured ({', '.join(service.variables)})")
    return look(
        service.name,
        lambda: f"{service.address}: {service.check()}",
        lambda error: _service_remedy(error, service, settings),
    )


def _service_remedy(error: JarvisError | None, service: Service, settings: Settings) -> str:
    """What helps, where the error does not say it itself."""
    place, login = service.variables[0], " and ".join(service.variables[1:])
    match error:
        case ClaudeModelUnknown():
            asked = error.details.get("model")
            wrong = [name for name in MODEL_VARIABLES if getattr(settings, name.lower()) == asked]
            return f"Set {' and '.join(wrong)} to a model that the service has."
        case ClaudeSpendLimit():
            return "See the billing on platform.claude.com."
        case ClaudeUnreachable():
            return "Is the network up, and is ANTHROPIC_BASE_URL right?"
        case ServiceNotSecure():
            return f"Is {place} the name in the certificate? One of your own has to be trusted by this system."
        case ServiceLoginRejected():
            return f"Check {login}; many providers want an app password."
        case ServiceFolderMissing():
            return "Make it on the server, or give its address." if place == "CALDAV_URL" else "Make it on the server."
        case ServiceError():
            return f"Is the server up, and is {place} right (for mail its port and security, too)?"
    return ""

"""The engine, transactions, advisory locks and the migration at start. No query about a noun lives here."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from jarvis_memory.embedded_postgres import EmbeddedPostgres
from jarvis_memory.errors import DatabaseTooNew, DatabaseUnavailable, VectorExtensionMissing
from jarvis_memory.settings import Settings

log = logging.getLogger(__name__)

PROJECT_FOLDER = Path(__file__).resolve().parent.parent


class Lock(IntEnum):
    """The kinds of advisory locks; the number is part of the lock's key in PostgreSQL."""

    MIGRATION = 7101
    TURN = 7102
    SUMMARY = 7103
    EMBEDDING = 7104
    DOCUMENT = 7105


def nobody_holds(lock: Lock, number: str) -> str:
    """SQL that is true when no process holds this lock for the number in this SQL expression."""
    return f"""NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = {int(lock)}
        AND objid = {number} AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""


class Database:
    """The one way to the database: `begin()` for a transaction, `try_lock()` for work that only one may do."""

    def __init__(self, engine: Engine, embedded: EmbeddedPostgres | None = None) -> None:
        self.engine = engine
        self.embedded = embedded
        self._locks = _Locks(engine)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction: committed at the end of the block, rolled back when it raises.

        Raises DatabaseUnavailable when the server cannot be reached or goes away.
        """
        with _unavailable_when_lost(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection without a transaction around its statements, for maintenance. Raises DatabaseUnavailable."""
        with _unavailable_when_lost(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def try_lock(self, lock: Lock, number: int) -> Iterator[bool]:
        """Hold an advisory lock over all processes for the block. Yields False when somebody else has it.

        Never inside of `begin()`: who holds one connection and waits for another can wait for ever.
        """
        key = (int(lock), number)
        taken = self._locks.take(key)
        try:
            yield taken
        finally:
            if taken:
                self._locks.give_back(key)

    def close(self) -> None:
        """Close every connection, and the embedded server when nobody else uses it."""
        self.engine.dispose()
        if self.embedded is not None:
            self.embedded.stop()


class _Locks:
    """The advisory locks of this process, all in one session: however many turns wait, they need one connection.

    A process that is killed gives them back at once, because its session ends.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mutex = threading.Lock()
        self._held: set[tuple[int, int]] = set()
        self._session: Connection | None = None

    def take(self, key: tuple[int, int]) -> bool:
        """Whether the lock is ours now. Raises DatabaseUnavailable."""
        with self._mutex, _unavailable_when_lost():
            # Also while the server is away, which has then forgotten it.
            if key in self._held:
                return False
            taken = _try_advisory_lock(self._opened(), key)
            if taken:
                self._held.add(key)
            self._close_unused()
            return taken

    def give_back(self, key: tuple[int, int]) -> None:
        """Others may have the lock now. Raises nothing: with the server a lock is gone too."""
        with self._mutex:
            self._held.discard(key)
            try:
                if self._session is not None:
                    query = text("SELECT pg_advisory_unlock(:kind, CAST(:number AS int))")
                    self._session.execute(query, {"kind": key[0], "number": key[1]})
                self._close_unused()
            except SQLAlchemyError as error:
                log.info("The session of the locks is gone: %s", type(error).__name__)
                self._drop()

    def _opened(self) -> Connection:
        """The session, with every lock that is held also after a restart of the server."""
        if self._session is not None:
            try:
                self._session.execute(text("SELECT 1"))
            except SQLAlchemyError:
                self._drop()
        if self._session is None:
            self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            for key in self._held:
                _try_advisory_lock(self._session, key)
        return self._session

    def _close_unused(self) -> None:
        if self._session is not None and not self._held:
            self._session.close()
            self._session = None

    def _drop(self) -> None:
        if self._session is not None:
            # Not back into the pool: the next user of this connection would inherit the locks.
            self._session.invalidate()
            self._session.close()
            self._session = None


def _try_advisory_lock(connection: Connection, key: tuple[int, int]) -> bool:
    query = text("SELECT pg_try_advisory_lock(:kind, CAST(:number AS int))")
    return bool(connection.scalar(query, {"kind": key[0], "number": key[1]}))


@contextmanager
def _unavailable_when_lost() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise DatabaseUnavailable(cause=str(getattr(error, "orig", error)).splitlines()[0]) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise DatabaseUnavailable from error
        raise


def open_database(settings: Settings) -> Database:
    """The database of the settings, reachable and not yet migrated. Starts the embedded server when none is given.

    Raises DatabaseUnavailable.
    """
    if settings.database_url is None:
        embedded = EmbeddedPostgres(settings.jarvis_data_dir / "postgres")
        embedded.start()
        engine = _create_engine("postgresql+psycopg2://", creator=embedded.connect)
        return Database(engine, embedded)
    # SQLAlchemy 2.1 takes plain postgresql:// for psycopg 3.
    rest = settings.database_url.get_secret_value().split("://", 1)[1]
    database = Database(_create_engine(f"postgresql+psycopg2://{rest}", connect_args={"connect_timeout": 10}))
    with database.begin() as connection:
        connection.execute(text("SELECT 1"))
    return database


def server_versions(connection: Connection) -> tuple[str, str]:
    """The versions of PostgreSQL and of pgvector."""
    query = """SELECT split_part(current_setting('server_version'), ' ', 1),
                      (SELECT extversion FROM pg_extension WHERE extname = 'vector')"""
    row = connection.execute(text(query)).one()
    return str(row[0]), str(row[1])


def _create_engine(url: str, **options: object) -> Engine:
    # hide_parameters: SQLAlchemy's messages would carry message texts into the log.
    return create_engine(
        make_url(url),
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
        pool_timeout=30,
        hide_parameters=True,
        **options,
    )


def migration_config() -> Config:
    """Alembic's configuration, the same as its command line reads."""
    config = Config(PROJECT_FOLDER / "alembic.ini")
    config.set_main_option("script_location", str(PROJECT_FOLDER / "migrations").replace("%", "%%"))
    return config


def migrate(database: Database) -> None:
    """Bring the schema up to date; two processes that start at once do it one after the other.

    Raises DatabaseTooNew when the database is ahead of this code, VectorExtensionMissing without pgvector.
    """
    config = migration_config()
    with database.begin() as connection:
        # A lock of the transaction: it ends with it, whatever happens.
        connection.execute(text("SELECT pg_advisory_xact_lock(:kind, 0)"), {"kind": int(Lock.MIGRATION)})
        _refuse_newer(connection, config)
        _require_vector(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def missing_migrations(connection: Connection) -> int:
    """How many migrations the next start runs; 0 when the schema is up to date. Raises DatabaseTooNew."""
    config = migration_config()
    _refuse_newer(connection, config)
    current = MigrationContext.configure(connection).get_current_heads()
    return len(list(ScriptDirectory.from_config(config).iterate_revisions("head", current or "base")))


def _refuse_newer(connection: Connection, config: Config) -> None:
    known = ScriptDirectory.from_config(config)
    for revision in MigrationContext.configure(connection).get_current_heads():
        try:
            known.get_revision(revision)
        except CommandError as error:
            raise DatabaseTooNew(revision=revision) from error


def _require_vector(connection: Connection) -> None:
    if connection.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")):
        return
    try:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    except DBAPIError as error:
        raise VectorExtensionMissing(cause=str(error.orig).splitlines()[0]) from error

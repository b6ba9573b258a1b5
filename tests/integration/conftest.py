"""A real PostgreSQL for the tests of queries: the embedded one, or the server that TEST_DATABASE_URL names.

Each test gets a database of its own, cloned from a migrated template.
"""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from sqlalchemy.engine import make_url

from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.database import Database, _create_engine, migrate
from jarvis_memory.embedded_postgres import EmbeddedPostgres
from jarvis_memory.embeddings import BuiltInEmbeddings, Embeddings
from jarvis_memory.running_turns import TURNS
from jarvis_memory.settings import Settings
from jarvis_memory.ui import wiring
from jarvis_memory.users import ensure_user
from tests.conftest import TEST_DATABASE_URL
from tests.fake_claude import FakeClaude


class Server:
    """The PostgreSQL server of this test run."""

    def __init__(self, embedded: EmbeddedPostgres | None) -> None:
        self.embedded = embedded

    def admin(self, statement: str) -> None:
        """Run one statement outside a transaction, as a role that may create databases."""
        connection = self.embedded.admin_connect() if self.embedded else psycopg2.connect(TEST_DATABASE_URL)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()

    def create(self, template: str | None = None) -> str:
        """The name of a new database."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        owner = "OWNER jarvis" if self.embedded else ""
        self.admin(f"CREATE DATABASE {name} {owner} {'TEMPLATE ' + template if template else ''}")
        if template is None and self.embedded:
            connection = self.embedded.admin_connect(name)
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("CREATE EXTENSION vector")
            connection.close()
        return name

    def drop(self, name: str) -> None:
        self.admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def connect(self, name: str) -> Any:
        """A plain connection as the app's role."""
        if self.embedded:
            return self.embedded.connect(name)
        return psycopg2.connect(make_url(TEST_DATABASE_URL).set(database=name).render_as_string(hide_password=False))

    def database(self, name: str) -> Database:
        """The app's way to this database."""
        return Database(_create_engine("postgresql+psycopg2://", creator=lambda: self.connect(name)))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if TEST_DATABASE_URL:
        yield Server(None)
        return
    folder = Path(tempfile.mkdtemp(prefix="jarvis-test-"))
    embedded = EmbeddedPostgres(folder / "postgres")
    embedded.start()
    server = Server(embedded)
    # Nothing of it outlives the run.
    server.admin("ALTER SYSTEM SET fsync = off")
    server.admin("SELECT pg_reload_conf()")
    yield server
    embedded.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server: Server) -> Iterator[str]:
    name = server.create()
    database = server.database(name)
    migrate(database)
    database.engine.dispose()
    yield name
    server.drop(name)


@pytest.fixture
def empty_database(server: Server) -> Iterator[Database]:
    """A database without any table."""
    name = server.create()
    database = server.database(name)
    yield database
    database.engine.dispose()
    server.drop(name)


@pytest.fixture
def database(server: Server, template: str) -> Iterator[Database]:
    """A migrated, empty database."""
    name = server.create(template)
    database = server.database(name)
    yield database
    database.engine.dispose()
    server.drop(name)


@pytest.fixture
def user_id(database: Database) -> int:
    with database.begin() as connection:
        return ensure_user(connection)


@pytest.fixture
def claude() -> Iterator[FakeClaude]:
    with FakeClaude() as fake:
        yield fake


@pytest.fixture(scope="session")
def encoder() -> Embeddings:
    """The built-in model, loaded once: that takes seconds."""
    return BuiltInEmbeddings()


@pytest.fixture
def build(database: Database, claude: FakeClaude, encoder: Embeddings) -> Iterator[Callable[..., Parts]]:
    """Builds the parts of an app process on the test's database and the scripted Claude; closed at the end."""
    built = []

    def make(*, database: Database = database, embeddings: Embeddings = encoder, **settings: Any) -> Parts:
        values = {"anthropic_api_key": "test-key", "anthropic_base_url": claude.base_url} | settings
        parts = build_parts(Settings(_env_file=None, **values), database=database, embeddings=embeddings)
        built.append(parts)
        return parts

    yield make
    TURNS.shutdown(20)
    for parts in built:
        parts.background.stop()


@pytest.fixture
def parts(build: Callable[..., Parts]) -> Parts:
    return build()


@pytest.fixture(autouse=True)
def own_wiring() -> Iterator[None]:
    """No parts that a test hands to the pages stay for the next one."""
    yield
    wiring.hand_in(None)


@pytest.fixture
def pages(parts: Parts) -> Parts:
    """The parts that the pages of this test work with."""
    wiring.hand_in(parts)
    return parts

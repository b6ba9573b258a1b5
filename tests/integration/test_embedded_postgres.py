"""The embedded server with real processes: started, killed, adopted, shared; as root and as an ordinary user."""

import logging
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg2
import pytest

from jarvis_memory import embedded_postgres
from jarvis_memory.embedded_postgres import EmbeddedPostgres, binaries
from jarvis_memory.errors import DatabaseFolderTooOld, DatabaseFolderUnusable, DatabaseUnavailable
from tests.integration.processes import postgres_below

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tests use signals and users of Unix")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as several users")
REPOSITORY = Path(__file__).parents[2]
A_USER = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())

# A process of JARVIS that does what it is told, a line at a time.
CHILD = """
import resource, sys
from pathlib import Path
from jarvis_memory.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))

def query():
    connection = server.connect()
    connection.cursor().execute("SELECT 1")
    connection.close()

def churn():
    for _ in range(5):
        server.start()
        query()
        server.stop()

def fill_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

does = {"start": server.start, "stop": server.stop, "query": query, "churn": churn, "fill disk": fill_disk}
for line in sys.stdin:
    try:
        does[line.strip()]()
        print("done", flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "), flush=True)
"""


class Child:
    """Another process of JARVIS on the same folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
            process_group=0,
        )

    def begin(self, task: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def do(self, task: str) -> str:
        self.begin(task)
        return self.answer()

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        os.killpg(self.process.pid, signal_number)
        self.process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the test's server lives; no server may be left there."""
    yield tmp_path / "postgres"
    left = postgres_below(tmp_path)
    for process in left:
        process.kill()
    assert not left


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder in which every user of the machine may have a database (pytest's are closed to others)."""
    place = Path(tempfile.mkdtemp(prefix="jarvis-test-"))
    place.chmod(0o755)
    yield place
    left = postgres_below(place)
    for process in left:
        process.kill()
    shutil.rmtree(place, ignore_errors=True)
    assert not left


@pytest.fixture
def make() -> Iterator[Callable[[Path], EmbeddedPostgres]]:
    """Makes servers that are stopped after the test."""
    made: list[EmbeddedPostgres] = []

    def make(path: Path) -> EmbeddedPostgres:
        made.append(EmbeddedPostgres(path))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in it, to be copied: initdb takes seconds on a busy machine."""
    path = tmp_path_factory.mktemp("initialised") / "postgres"
    server = EmbeddedPostgres(path)
    server.start()
    server.stop()
    return path


def copy_folder(path: Path, to: Path) -> None:
    shutil.copytree(path, to, dirs_exist_ok=True)
    for file in (to, *to.rglob("*")):
        os.chown(file, A_USER.pw_uid, A_USER.pw_gid)


@pytest.fixture
def server(folder: Path, initialised: Path, make: Callable[[Path], EmbeddedPostgres]) -> EmbeddedPostgres:
    """A started server."""
    copy_folder(initialised, folder)
    server = make(folder)
    server.start()
    return server


@pytest.fixture
def child(folder: Path) -> Iterator[Callable[[], Child]]:
    """Makes other processes of JARVIS; those that still run are ended after the test."""
    made: list[Child] = []

    def make() -> Child:
        made.append(Child(folder))
        return made[-1]

    yield make
    for process in made:
        if process.process.poll() is None:
            process.do("stop")
            process.kill()


def ask(server: EmbeddedPostgres, question: str, *, admin: bool = False) -> object:
    """The first value of the answer."""
    with closing(server.admin_connect() if admin else server.connect()) as connection:
        with connection.cursor() as cursor:
            cursor.execute(question)
            row = cursor.fetchone()
        connection.commit()
    assert row is not None
    return row[0]


def pid_of(server: EmbeddedPostgres) -> int:
    pid = server.pid
    assert pid is not None
    return pid


def kill_9(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    with suppress(psutil.TimeoutExpired):  # nobody may fetch it where there is no init
        psutil.wait_procs([process], timeout=5)


def socket_folder(folder: Path) -> Path:
    return Path((folder / "data" / "postmaster.pid").read_text().splitlines()[4])


def as_user(uid: int, gid: int, action: Callable[[], None]) -> None:
    """Run the action in a forked process of this user, who may not be able to start this Python anew."""
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir("/")
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            action()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the parent sees the exit code, whatever it was
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def binaries_are_open() -> bool:
    """Whether an unprivileged user can run PostgreSQL's programs where they are."""
    command = ["/usr/bin/test", "-x", str(binaries() / "postgres")]
    return subprocess.run(command, user=A_USER.pw_uid, check=False).returncode == 0


# --- the first start --------------------------------------------------------------------------------------------


def test_nothing_happens_before_the_start(folder: Path) -> None:
    server = EmbeddedPostgres(folder)

    server.stop()

    assert server.pid is None
    assert not folder.exists()


def test_the_first_start_makes_a_database_for_a_role_that_is_no_superuser(server: EmbeddedPostgres) -> None:
    assert ask(server, "SELECT current_user || ' ' || current_database()") == "jarvis jarvis"
    assert ask(server, "SELECT rolsuper FROM pg_roles WHERE rolname = 'jarvis'") is False
    assert ask(server, "SELECT rolname FROM pg_roles JOIN pg_database ON datdba = pg_roles.oid "
                       "WHERE datname = 'jarvis'") == "jarvis"  # fmt: skip
    assert ask(server, "SELECT usename FROM pg_user JOIN pg_extension ON extowner = usesysid "
                       "WHERE extname = 'vector'") == "postgres"  # fmt: skip
    assert ask(server, "SELECT '[1,2]'::vector <-> '[1,2]'") == 0
    assert str(ask(server, "SHOW server_version")).startswith("18.")
    assert ask(server, "SHOW fsync") == "on"


def test_what_was_committed_is_there_after_a_stop_and_a_start(server: EmbeddedPostgres) -> None:
    ask(server, "CREATE TABLE kept AS SELECT 7 AS number; SELECT 1")
    first = pid_of(server)

    server.stop()
    assert server.pid is None
    server.start()

    assert server.pid != first
    assert ask(server, "SELECT number FROM kept") == 7


def test_a_second_start_changes_nothing(server: EmbeddedPostgres) -> None:
    first = pid_of(server)

    server.start()

    assert server.pid == first


@pytest.mark.parametrize(
    "name",
    [
        "Application Support & 'Söhne' +%20",
        '$HOME `id` "quoted" \\ ; #',
        "very long " * 12 + "/" + "and deep " * 20,
    ],
    ids=["spaces and signs", "what a shell would read", "long"],
)
def test_a_folder_may_have_any_name(tmp_path: Path, make: Callable[[Path], EmbeddedPostgres], name: str) -> None:
    server = make(tmp_path / name / "postgres")

    server.start()

    assert ask(server, "SELECT 1") == 1
    assert server.pid is not None
    server.stop()
    assert not postgres_below(tmp_path)


def test_the_environment_changes_nothing(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.setenv(name, "tr_TR.ISO-8859-9")
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATA", "PGUSER", "PGOPTIONS", "PGSSLMODE", "PGREQUIREAUTH"):
        monkeypatch.setenv(name, "1.2.3.4")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    server = make(folder)

    server.start()

    assert ask(server, "SELECT lower('ÄI')") == "äi"
    assert ask(server, "SHOW server_encoding") == "UTF8"
    assert ask(server, "SHOW lc_messages") == "C"


def test_the_server_does_not_get_the_keys_of_jarvis(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    server = make(folder)

    server.start()

    assert "ANTHROPIC_API_KEY" not in psutil.Process(pid_of(server)).environ()


# --- who may connect --------------------------------------------------------------------------------------------


def test_only_a_private_socket_listens(server: EmbeddedPostgres, folder: Path) -> None:
    place = socket_folder(folder)
    status = place.lstat()

    assert psutil.Process(pid_of(server)).net_connections("inet") == []
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert status.st_uid == psutil.Process(pid_of(server)).uids().effective == A_USER.pw_uid
    assert len(str(place / ".s.PGSQL.5432")) < 104


@pytest.mark.parametrize("role", ["postgres", "jarvis"])
def test_nobody_connects_without_the_password(server: EmbeddedPostgres, folder: Path, role: str) -> None:
    for password in ("", "guessed"):
        with pytest.raises(psycopg2.OperationalError, match="password"):
            psycopg2.connect(host=str(socket_folder(folder)), user=role, dbname="jarvis", password=password)
    rules = [line.split() for line in (folder / "data" / "pg_hba.conf").read_text().splitlines()]
    assert {rule[-1] for rule in rules if rule and not rule[0].startswith("#")} == {"scram-sha-256"}


def test_passwords_are_in_private_files_and_in_no_log(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = make(folder)
    server.start()
    kill_9(pid_of(server))
    server.connect().close()

    files = list(folder.glob("*.password"))
    logs = caplog.text + (folder / "server.log").read_text()
    assert len({file.read_text() for file in files}) == 2
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert not any(file.read_text() in logs for file in files)


@pytest.mark.parametrize("change", ["open", "link", pytest.param("foreign", marks=only_root)])
def test_a_socket_folder_that_others_may_control_is_not_used(
    server: EmbeddedPostgres, folder: Path, tmp_path: Path, change: str
) -> None:
    place = socket_folder(folder)
    if change == "open":
        place.chmod(0o755)
    elif change == "link":
        place.rename(f"{place}-moved")
        place.symlink_to(f"{place}-moved")
    else:
        os.chown(place, 12345, 12345)

    assert server.pid is None
    assert ask(server, "SELECT 1") == 1

    assert socket_folder(folder) != place
    for left in (place, Path(f"{place}-moved")):
        left.unlink() if left.is_symlink() else shutil.rmtree(left, ignore_errors=True)


def test_a_cleaned_temporary_folder_does_not_lock_out(server: EmbeddedPostgres, folder: Path) -> None:
    shutil.rmtree(socket_folder(folder))

    assert ask(server, "SELECT 1") == 1


def test_a_server_that_does_not_let_us_in_is_left_alone(
    server: EmbeddedPostgres, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_postgres, "_READY_PATIENCE", 0)
    pid = pid_of(server)
    passwords = {file: file.read_text() for file in folder.glob("*.password")}
    for file in passwords:
        file.write_text("another")

    with pytest.raises(DatabaseUnavailable, match="does not let JARVIS in"):
        server.connect()

    for file, password in passwords.items():
        file.write_text(password)
    assert ask(server, "SELECT 1") == 1
    assert server.pid == pid


def test_a_lost_password_of_the_app_is_made_anew(server: EmbeddedPostgres, folder: Path) -> None:
    (folder / "jarvis.password").unlink()

    assert ask(server, "SELECT 1") == 1


def test_a_lost_password_of_the_admin_is_named(server: EmbeddedPostgres, folder: Path) -> None:
    server.stop()
    file = folder / "postgres.password"
    file.rename(folder / "kept")

    with pytest.raises(DatabaseFolderUnusable, match=r"postgres\.password is missing.*backup"):
        server.start()

    (folder / "kept").rename(file)
    server.start()
    assert ask(server, "SELECT 1") == 1


def test_what_people_write_is_not_in_the_log(server: EmbeddedPostgres, folder: Path) -> None:
    ask(server, "CREATE TABLE facts (content text UNIQUE); INSERT INTO facts VALUES ('private'); SELECT 1")
    for statement in ("INSERT INTO facts VALUES ('private')", "SELECT 'private'::int", "SELECT private"):
        with pytest.raises(psycopg2.Error):
            ask(server, statement)
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        pid = connection.get_backend_pid()
        killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
        killer.start()
        with pytest.raises(psycopg2.OperationalError):
            cursor.execute("SELECT pg_sleep(30), 'private'")
        killer.join()

    assert ask(server, "SELECT 1") == 1
    log = (folder / "server.log").read_text()
    assert "was terminated by signal 9" in log
    assert "private" not in log


def test_the_log_does_not_grow_for_ever(server: EmbeddedPostgres, folder: Path) -> None:
    server.stop()
    for _ in range(2):
        with (folder / "server.log").open("a") as file:
            file.write("x" * 1_100_000)
        server.start()
        server.stop()

    assert sorted(file.name for file in folder.glob("server.log*")) == ["server.log", "server.log.1"]
    assert (folder / "server.log").stat().st_size < 100_000


# --- a number in postmaster.pid that belongs to somebody else ---------------------------------------------------


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that the server's user could signal."""
    switch = {"user": A_USER.pw_uid, "group": A_USER.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(["/bin/sleep", "600"], cwd="/", **switch) as process:  # type: ignore[call-overload]
        yield process
        process.kill()


def leave_note(folder: Path, note: str, pid: int) -> None:
    file = folder / "data" / "postmaster.pid"
    file.write_text("\n".join([str(pid), *note.splitlines()[1:]]) + "\n")
    os.chown(file, A_USER.pw_uid, A_USER.pw_gid)


def test_a_stale_number_is_not_believed(
    server: EmbeddedPostgres, folder: Path, stranger: subprocess.Popen[bytes]
) -> None:
    note = (folder / "data" / "postmaster.pid").read_text()
    server.stop()
    leave_note(folder, note, stranger.pid)

    assert server.pid is None
    server.start()

    assert ask(server, "SELECT 1") == 1
    assert server.pid != stranger.pid
    assert stranger.poll() is None


def test_a_stale_number_is_not_signalled(
    server: EmbeddedPostgres, folder: Path, stranger: subprocess.Popen[bytes]
) -> None:
    note = (folder / "data" / "postmaster.pid").read_text()
    kill_9(pid_of(server))
    leave_note(folder, note, stranger.pid)

    server.stop()

    with pytest.raises(subprocess.TimeoutExpired):
        stranger.wait(timeout=0.5)


def test_the_server_of_another_folder_is_not_believed(
    server: EmbeddedPostgres, folder: Path, tmp_path: Path, make: Callable[[Path], EmbeddedPostgres]
) -> None:
    server.stop()
    copy_folder(folder, tmp_path / "other")
    other = make(tmp_path / "other")
    other.start()
    other_pid = pid_of(other)
    copy_folder(tmp_path / "other", folder)  # like a backup brought back elsewhere: same passwords, same note

    assert server.pid is None
    server.stop()

    assert other.pid == other_pid
    other.stop()


# --- kill -9 ----------------------------------------------------------------------------------------------------


def test_a_killed_server_is_started_again_and_no_committed_row_is_lost(server: EmbeddedPostgres) -> None:
    ask(server, "CREATE TABLE kept AS SELECT 7 AS number; SELECT 1")
    with closing(server.connect()) as session:
        kill_9(pid_of(server))

        assert ask(server, "SELECT number FROM kept") == 7

        with pytest.raises(psycopg2.OperationalError):
            session.cursor().execute("SELECT 1")


def test_a_busy_backend_of_a_killed_server_does_not_stand_in_the_way(server: EmbeddedPostgres) -> None:
    with closing(server.connect()) as session, ThreadPoolExecutor() as pool:
        busy = pool.submit(session.cursor().execute, "DO $$ BEGIN LOOP END LOOP; END $$")
        while ask(server, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %'") != 1:
            pass
        kill_9(pid_of(server))

        assert ask(server, "SELECT 1") == 1

        assert isinstance(busy.exception(), psycopg2.OperationalError)


def test_many_threads_find_a_killed_server_and_start_one(server: EmbeddedPostgres) -> None:
    kill_9(pid_of(server))

    with ThreadPoolExecutor(8) as pool:
        pids = set(pool.map(lambda _: ask(server, "SELECT 1") and server.pid, range(8)))

    assert pids == {server.pid}


def test_the_server_of_a_killed_process_is_adopted_and_stopped(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], child: Callable[[], Child]
) -> None:
    first = child()
    assert first.do("start") == "done"
    server = make(folder)
    pid = pid_of(server)
    first.kill()

    server.start()
    assert server.pid == pid
    assert ask(server, "SELECT 1") == 1

    server.stop()
    assert server.pid is None
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_both_killed_at_once_leaves_a_database_that_starts(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], child: Callable[[], Child]
) -> None:
    first = child()
    assert first.do("start") == "done"
    server = make(folder)
    pid = pid_of(server)
    first.kill()
    kill_9(pid)

    assert ask(server, "SELECT 1") == 1


def test_an_initdb_that_was_killed_half_way_leaves_nothing(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], child: Callable[[], Child]
) -> None:
    first = child()
    first.begin("start")
    while not list(folder.glob("data.new-*/PG_VERSION")):
        pass
    # Not started again by a parent that is still alive: the parents are stopped before their children are looked for.
    started = [psutil.Process(first.process.pid)]
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
            started += process.children()
    for process in started[1:]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    first.kill()
    psutil.wait_procs(started, timeout=20)
    assert list(folder.glob("data.new-*")) and not (folder / "data").exists()
    server = make(folder)

    server.start()

    assert ask(server, "SELECT 1") == 1
    assert not list(folder.glob("data.new-*"))


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], child: Callable[[], Child]
) -> None:
    first = child()
    assert first.do("start") == "done"
    server = make(folder)
    pid = pid_of(server)

    first.kill(signal.SIGINT)

    assert os.getpgid(pid) != first.process.pid
    assert server.pid == pid
    server.start()


# --- several users ----------------------------------------------------------------------------------------------


def test_the_last_process_out_stops_the_server(server: EmbeddedPostgres, child: Callable[[], Child]) -> None:
    pid = pid_of(server)
    second = child()
    assert second.do("start") == "done"

    server.stop()
    assert server.pid == pid
    assert second.do("query") == "done"

    assert second.do("stop") == "done"
    assert server.pid is None


def test_two_objects_in_one_process_are_two_users(
    server: EmbeddedPostgres, folder: Path, make: Callable[[Path], EmbeddedPostgres]
) -> None:
    second = make(folder)
    second.start()

    server.stop()

    assert ask(second, "SELECT 1") == 1


def test_threads_that_start_at_once_get_one_server(folder: Path, make: Callable[[Path], EmbeddedPostgres]) -> None:
    shared = make(folder)
    servers = [shared] * 4 + [make(folder) for _ in range(4)]
    together = threading.Barrier(len(servers))

    def use(server: EmbeddedPostgres) -> int | None:
        together.wait()
        server.start()
        assert ask(server, "SELECT 1") == 1
        return server.pid

    with ThreadPoolExecutor(len(servers)) as pool:
        assert set(pool.map(use, servers)) == {shared.pid}


def test_processes_that_start_and_stop_at_once_never_lack_a_server(folder: Path, child: Callable[[], Child]) -> None:
    children = [child(), child(), child()]

    for process in children:
        process.begin("churn")

    assert [process.answer() for process in children] == ["done"] * 3
    assert EmbeddedPostgres(folder).pid is None


def test_a_forked_child_does_not_stop_the_server_of_its_parent(server: EmbeddedPostgres) -> None:
    pid = os.fork()
    if pid == 0:
        server.stop()
        os._exit(0)
    os.waitpid(pid, 0)

    assert ask(server, "SELECT 1") == 1
    assert server.pid is not None


# --- the end ----------------------------------------------------------------------------------------------------


def test_a_stop_raises_nothing_when_the_server_is_gone(
    server: EmbeddedPostgres, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = socket_folder(folder)
    kill_9(pid_of(server))

    server.stop()
    server.stop()

    assert "not stopped in order" not in caplog.text
    assert not place.exists()


def test_a_late_thread_does_not_start_the_server_again(server: EmbeddedPostgres) -> None:
    server.stop()

    with pytest.raises(DatabaseUnavailable, match="was stopped"):
        server.connect()

    assert server.pid is None


def test_a_stop_leaves_no_socket_folder(server: EmbeddedPostgres, folder: Path) -> None:
    place = socket_folder(folder)

    server.stop()

    assert not place.exists()
    assert not list((folder / "users").iterdir())


# --- folders that cannot be used --------------------------------------------------------------------------------


def tree(folder: Path) -> dict[Path, tuple[int, int, int]]:
    entries = [folder, *folder.rglob("*")]
    return {entry: (entry.stat().st_mode, entry.stat().st_uid, entry.stat().st_mtime_ns) for entry in entries}


@pytest.mark.parametrize("version", ["16", "19"])
def test_a_folder_of_another_version_is_named_and_not_touched(folder: Path, version: str) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "PG_VERSION").write_text(f"{version}\n")
    before = tree(folder.parent)
    server = EmbeddedPostgres(folder)

    for call in (server.start, server.connect):
        with pytest.raises(DatabaseFolderTooOld, match=f"PostgreSQL {version}.*pg_upgrade.*pg_dumpall"):
            call()
    server.stop()

    assert tree(folder.parent) == before


def test_a_folder_with_other_things_in_it_is_not_touched(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "photo.jpg").write_text("mine")

    with pytest.raises(DatabaseFolderUnusable, match="no PostgreSQL database"):
        EmbeddedPostgres(folder).start()

    assert [file.name for file in (folder / "data").iterdir()] == ["photo.jpg"]


def test_a_failed_start_names_the_reason_and_the_next_one_works(
    server: EmbeddedPostgres, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.stop()
    (folder / "data").chmod(0o777)
    sockets = set(Path(tempfile.gettempdir()).glob("jarvis-pg-*"))

    with pytest.raises(DatabaseUnavailable, match="did not start.*invalid permissions.*server.log") as raised:
        server.start()

    assert raised.value.__cause__ is not None
    assert "invalid permissions" in caplog.text
    assert set(Path(tempfile.gettempdir()).glob("jarvis-pg-*")) <= sockets
    (folder / "data").chmod(0o700)
    server.start()
    assert ask(server, "SELECT 1") == 1


def test_a_full_disk_at_the_first_start_is_named_and_the_next_one_works(
    folder: Path, make: Callable[[Path], EmbeddedPostgres], child: Callable[[], Child]
) -> None:
    first = child()
    first.do("fill disk")

    assert "disk is full" in first.do("start")

    server = make(folder)
    server.start()
    assert ask(server, "SELECT 1") == 1


def test_a_folder_that_may_not_be_written_is_named(open_folder: Path) -> None:
    place = open_folder / "closed"
    place.mkdir(mode=0o555)

    def start() -> None:
        with pytest.raises(DatabaseFolderUnusable, match="cannot be used.*Permission denied.*belongs to the user"):
            EmbeddedPostgres(place / "postgres").start()

    as_user(A_USER.pw_uid, A_USER.pw_gid, start) if os.geteuid() == 0 else start()


# --- root -------------------------------------------------------------------------------------------------------


@only_root
@pytest.mark.parametrize("closed", [True, False])
def test_as_root_the_server_runs_as_an_unprivileged_user_and_ancestors_stay_as_they_are(
    open_folder: Path, make: Callable[[Path], EmbeddedPostgres], closed: bool
) -> None:
    ancestor = open_folder / "root's"
    ancestor.mkdir(mode=0o700 if closed else 0o755)
    before = [(place.stat().st_mode, place.stat().st_uid) for place in (ancestor, *ancestor.parents)]
    server = make(ancestor / "data of JARVIS" / "postgres")

    server.start()

    assert ask(server, "SELECT 1") == 1
    status = Path(f"/proc/{pid_of(server)}/status").read_text().splitlines()
    fields = {name: value.split() for name, value in (line.split(":", 1) for line in status)}
    assert fields["Uid"] == [str(A_USER.pw_uid)] * 4
    assert fields["Gid"] == [str(A_USER.pw_gid)] * 4
    assert fields["Groups"] == []
    # At most the right to read and search where it could not (bit 2), and that only where it is needed.
    rights = 4 if closed or not binaries_are_open() else 0
    assert int(fields["CapEff"][0], 16) == int(fields["CapPrm"][0], 16) == rights
    assert [(place.stat().st_mode, place.stat().st_uid) for place in (ancestor, *ancestor.parents)] == before
    server.stop()


@only_root
def test_as_root_a_folder_below_the_closed_home_of_root_works(make: Callable[[Path], EmbeddedPostgres]) -> None:
    with tempfile.TemporaryDirectory(dir=Path("~root").expanduser()) as place:
        server = make(Path(place) / "postgres")
        server.start()

        assert ask(server, "SELECT 1") == 1

        kill_9(pid_of(server))
        assert ask(server, "SELECT 1") == 1
        server.stop()
        assert not postgres_below(Path(place))


@only_root
def test_as_root_without_setpriv_a_closed_place_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    server = EmbeddedPostgres(folder)

    with pytest.raises(DatabaseFolderUnusable, match="nobody cannot work in .*ordinary user"):
        server.start()
    server.stop()


@only_root
def test_as_root_the_folder_of_a_user_without_a_name_is_named(open_folder: Path) -> None:
    os.chown(open_folder, 12345, 12345)

    with pytest.raises(DatabaseFolderUnusable, match="no user 12345"):
        EmbeddedPostgres(open_folder / "postgres").start()


@only_root
@pytest.mark.parametrize("depth", ["", "data of JARVIS/postgres"])
def test_a_start_as_root_does_not_lock_the_owner_out(
    open_folder: Path, make: Callable[[Path], EmbeddedPostgres], depth: str
) -> None:
    if not binaries_are_open():
        pytest.skip(f"{A_USER.pw_name} cannot reach {binaries()}")
    os.chown(open_folder, A_USER.pw_uid, A_USER.pw_gid)
    place = open_folder / depth
    server = make(place)
    server.start()
    ask(server, "CREATE TABLE kept AS SELECT 7 AS number; SELECT 1")

    def use() -> None:
        mine = EmbeddedPostgres(place)
        mine.start()
        assert ask(mine, "SELECT number FROM kept") == 7
        mine.stop()

    as_user(A_USER.pw_uid, A_USER.pw_gid, use)  # next to root
    assert server.pid is not None
    server.stop()
    as_user(A_USER.pw_uid, A_USER.pw_gid, use)  # after root
    assert server.pid is None
    assert {file.stat().st_uid for file in (open_folder, *open_folder.rglob("*"))} == {A_USER.pw_uid}


@only_root
def test_data_of_another_user_is_named(open_folder: Path, make: Callable[[Path], EmbeddedPostgres]) -> None:
    server = make(open_folder / "postgres")
    server.start()
    server.stop()
    os.chown(open_folder / "postgres" / "data", 0, 0)

    with pytest.raises(DatabaseFolderUnusable, match="belongs to user 0.*chown"):
        server.start()

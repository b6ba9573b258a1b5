"""`python -m tests.external_server COMMAND …`: run a command with TEST_DATABASE_URL set.

The server stands for one that somebody else runs: the same binaries as the embedded one, but over TCP on a loopback
port, with a locale and a superuser of its own, reached by a plain address and a password.
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jarvis_memory.postgres_process import account_for, make_folder, run, write_secret

# Hard on a careless address: it has to be escaped in a URL.
PASSWORD = f"p@ss:w/{secrets.token_hex(8)}%"
QUOTED_PASSWORD = PASSWORD.replace("%", "%25").replace("@", "%40").replace(":", "%3A").replace("/", "%2F")
USER = "somebody"


@contextmanager
def external_server() -> Iterator[str]:
    """The address of a PostgreSQL server that ends with the block."""
    with tempfile.TemporaryDirectory(prefix="jarvis-external-") as parent:
        folder = Path(parent) / "server"
        Path(parent).chmod(0o711)
        account = account_for(folder)
        make_folder(folder, account)
        write_secret(folder / "password", PASSWORD, account)
        initdb = (
            f"--pgdata=data --auth=scram-sha-256 --username={USER} --pwfile=password --encoding=UTF8 --locale=C.UTF-8"
        )
        run("initdb", *initdb.split(), folder=folder, account=account)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        start = ["start", "-D", "data", "-l", "server.log", "-w", "-t", "60", "-o", options]
        run("pg_ctl", *start, folder=folder, account=account)
        try:
            yield f"postgresql://{USER}:{QUOTED_PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "-D", "data", "-m", "immediate", "-w", folder=folder, account=account)


def main(command: list[str]) -> int:
    """The exit code of the command."""
    with external_server() as url:
        return subprocess.run(command, env={**os.environ, "TEST_DATABASE_URL": url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

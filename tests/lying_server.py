"""A server on loopback that says what a test wants: nothing, too little, or another protocol."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Behaviour = Callable[[socket.socket], None]


@contextmanager
def lying_server(behaviour: Behaviour) -> Iterator[int]:
    """The port; `behaviour` gets each connection, which ends when it returns."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            behaviour(connection)

    def accept(server: socket.socket) -> None:
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.settimeout(10)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        over.set()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def silent(connection: socket.socket) -> None:
    """Takes the connection and says nothing, as long as the client listens."""
    while connection.recv(1000):
        pass


def http(connection: socket.socket) -> None:
    """Answers as a web server does, to whatever is said, or to nothing."""
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<h1>Bad Request</h1>\r\n")
    silent(connection)


def saying(*lines: bytes) -> Behaviour:
    """Says the first line, each other one to a line of the client with its tag for `%`, then hangs up."""

    def behave(connection: socket.socket) -> None:
        file = connection.makefile("rb")
        connection.sendall(lines[0] + b"\r\n")
        for line in lines[1:]:
            said = file.readline()
            connection.sendall(line.replace(b"%", said.split(b" ")[0]) + b"\r\n")

    return behave


def dripping(said: bytes) -> Behaviour:
    """Says this again and again, and never comes to an end."""

    def behave(connection: socket.socket) -> None:
        connection.settimeout(0.05)
        while True:
            connection.sendall(said)
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1000):
                    return

    return behave

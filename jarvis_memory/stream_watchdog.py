"""What ends a stream that would wait on: Stop, and silence. From a second thread, because pings keep a read alive for
ever and nothing else can wake a thread that reads. What the stream says is claude.py's matter.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from jarvis_memory.errors import AnswerStopped

# How soon Stop is noticed.
STOP_SECONDS = 0.2


def open_unless_stopped(open_stream: Callable[[], Any], stop: threading.Event) -> Any:
    """What `open_stream` returns, or AnswerStopped as soon as `stop` is set.

    A local model reads the prompt for minutes before the first byte of its response. Until then there is no socket
    to shut, so it is waited for in a thread of its own, which Stop leaves behind.
    """
    if stop.is_set():
        raise AnswerStopped
    opened: Future[Any] = Future()

    def wait_for_response() -> None:
        try:
            opened.set_result(open_stream())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            opened.set_exception(error)

    threading.Thread(target=wait_for_response, name="stream-opening", daemon=True).start()
    while not wait([opened], timeout=STOP_SECONDS).done:
        if stop.is_set():
            opened.add_done_callback(_close_unread)
            raise AnswerStopped
    return opened.result()


def _close_unread(opened: "Future[Any]") -> None:
    if opened.exception() is None:
        opened.result().close()


class Watchdog:
    """Shuts the socket of a stream that stays silent but for pings, or whose turn was stopped."""

    def __init__(self, response: Any, stop: threading.Event, patience: float) -> None:
        self._response = response
        self._stop = stop
        self._patience = patience
        self._last = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stream-watchdog", daemon=True)

    def alive(self) -> None:
        """Something other than a ping came."""
        self._last = time.monotonic()

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(STOP_SECONDS):
            if self._stop.is_set() or time.monotonic() - self._last > self._patience:
                connection = self._response.extensions["network_stream"].get_extra_info("socket")
                # Closing would not wake a thread that reads from it; shutting down does.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                return

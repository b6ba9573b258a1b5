"""A Radicale server on loopback, in threads of the test process: with a login, calendars, and TLS where wanted."""

import shutil
import ssl
import tempfile
import threading
from pathlib import Path
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import niquests
from radicale import Application, config

from jarvis_memory.settings import Settings

USERNAME = "anna@example.org"
PASSWORD = "päss wörd:1"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing in the output of the tests."""


class RadicaleServer:
    """The server, with the calendars "Privat" and "Arbeit & Büro" of one person."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="jarvis-radicale-"))
        users = self._folder / "users"
        users.write_text(f"{USERNAME}:{PASSWORD}\n", encoding="utf-8")
        configuration = config.load()
        configuration.update(
            {
                "auth": {"type": "htpasswd", "htpasswd_filename": str(users), "htpasswd_encryption": "plain"}
                | {"delay": "0"},
                "storage": {"filesystem_folder": str(self._folder / "storage"), "_filesystem_fsync": "False"},
                "server": {"delay_on_error": "0"},
                "logging": {"level": "critical"},
            },
            "tests",
            privileged=True,
        )
        self._server = _Server(("127.0.0.1", 0), _Quiet)
        self._server.set_app(Application(configuration))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{'localhost' if tls else '127.0.0.1'}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._folder)

    @property
    def settings(self) -> Settings:
        """The settings of somebody who uses this server."""
        return self.settings_with()

    def settings_with(self, **values: Any) -> Settings:
        """The same, with other values for some."""
        own = {"caldav_url": self.url, "caldav_username": USERNAME, "caldav_password": PASSWORD}
        return Settings(_env_file=None, **own | values)

    def empty(self) -> None:
        """Take all calendars away and make the two anew."""
        shutil.rmtree(self._folder / "storage" / "collection-root" / USERNAME, ignore_errors=True)
        self.make_calendar("privat", "Privat")
        self.make_calendar("arbeit", "Arbeit & Büro")

    def make_calendar(self, path: str, name: str) -> None:
        """A calendar of this name."""
        shown = name.replace("&", "&amp;")
        self.request(
            "MKCALENDAR",
            f"{path}/",
            '<?xml version="1.0"?><C:mkcalendar xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><set><prop>'
            f"<displayname>{shown}</displayname></prop></set></C:mkcalendar>",
        )

    def put(self, path: str, *lines: str) -> None:
        """Store an object as another program would; the lines stand between BEGIN and END:VCALENDAR."""
        text = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test", *lines, "END:VCALENDAR", ""])
        self.request("PUT", path, text)

    def get(self, path: str) -> str:
        """The text of an object."""
        return self.request("GET", path).text.replace("\r\n ", "")

    def request(self, method: str, path: str, body: str = "") -> niquests.Response:
        """Something that the person's phone does."""
        response = niquests.request(
            method,
            f"{self.url}/{USERNAME}/{path}",
            data=body.encode(),
            auth=(USERNAME, PASSWORD.encode()),
            timeout=10,
        )
        assert response.ok, (response.status_code, response.text)
        return response

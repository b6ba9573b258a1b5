"""An SMTP server on loopback that keeps what it is given, and can be told to misbehave."""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.certificates import write_certificates

USER = "anna@example.org"
PASSWORD = "Geheim & schön"


class SmtpServer:
    """What it got, and how it behaves; the same behind a port with TLS and one with STARTTLS."""

    host = "localhost"

    def __init__(self, authority: Path, port: int = 0, tls_port: int = 0) -> None:
        self.authority = authority
        self.port = port
        self.tls_port = tls_port
        self.mails: list[Envelope] = []
        # Recipients that it does not take.
        self.unknown: set[str] = set()
        # What it answers to a whole mail.
        self.answer = "250 OK"
        # It goes away after a whole mail, with or without having kept it.
        self.goes_away = False

    def settings(self) -> dict[str, Any]:
        """For this server, encrypted."""
        return {
            "smtp_host": self.host,
            "smtp_port": self.tls_port,
            "smtp_username": USER,
            "smtp_password": PASSWORD,
        }

    def forget(self) -> None:
        """Be as at the start, for the next test."""
        self.__init__(self.authority, self.port, self.tls_port)  # type: ignore[misc]

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's names
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return f"550 no such user: {address}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.goes_away:
            self.mails.append(envelope)
            assert server.transport is not None
            server.transport.abort()
        elif self.answer.startswith("250"):
            self.mails.append(envelope)
        return self.answer

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=known, handled=False)


@contextmanager
def running_smtp_server() -> Iterator[SmtpServer]:
    """A server that ends with the block."""
    with tempfile.TemporaryDirectory(prefix="jarvis-smtp-") as parent:
        folder = Path(parent)
        write_certificates(folder)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        server = SmtpServer(folder / "ca.pem")
        shared = {"hostname": "127.0.0.1", "port": 0, "authenticator": server.authenticate, "auth_required": True}
        encrypted = _Controller(server, ssl_context=context, auth_require_tls=False, **shared)
        upgraded = _Controller(server, tls_context=context, require_starttls=True, **shared)
        encrypted.start()
        upgraded.start()
        try:
            server.tls_port = encrypted.bound_port
            server.port = upgraded.bound_port
            yield server
        finally:
            encrypted.stop()
            upgraded.stop()


class _Controller(Controller):
    """One that takes any free port."""

    @property
    def bound_port(self) -> int:
        return int(self.server.sockets[0].getsockname()[1])  # type: ignore[union-attr]

    def _trigger_server(self) -> None:
        # The original calls the port it was given, which is 0, to see whether the server answers.
        self.port = self.bound_port
        super()._trigger_server()

"""The SMTP server: whether it can be used, and handing a mail to it once. What it says is outgoing_mail.py's matter."""

import base64
import contextlib
import smtplib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from jarvis_memory.errors import ServiceAnswerUnusable, ServiceLoginRejected, ServiceNotSecure
from jarvis_memory.mail_connection import (
    SILENCE_SECONDS,
    TOTAL_SECONDS,
    TimeLimit,
    check_on_this_machine,
    service_errors,
    tls_context,
)
from jarvis_memory.settings import Settings
from jarvis_memory.text import clean, one_line, shorten

# What the client calls itself: the machine's own name is nobody's business and may take seconds to find.
LOCAL_NAME = "[127.0.0.1]"

# Of silence after the whole mail: many servers look for spam before they answer.
ANSWER_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Sending:
    """What came of it: the server has the mail, has refused it, or was gone before it said which."""

    outcome: Literal["sent", "refused", "unknown"]
    # The recipients it did not take, each with what it said.
    refused: dict[str, str] = field(default_factory=dict)
    # Why it refused the whole mail.
    reason: str = ""


class _Limited(smtplib.SMTP):
    """An SMTP client whose connection ends after TOTAL_SECONDS."""

    _limit: TimeLimit | None = None
    sock: socket.socket | None = None

    def _get_socket(self, *arguments: Any) -> socket.socket:
        connection: socket.socket = super()._get_socket(*arguments)  # type: ignore[misc]
        self._limit = TimeLimit(TOTAL_SECONDS, lambda: self.sock)
        return connection

    def close(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        super().close()


class _LimitedTls(_Limited, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""


@contextlib.contextmanager
def open_smtp(settings: Settings, *, timeout: float = SILENCE_SECONDS) -> Iterator[smtplib.SMTP]:
    """The server, logged in where there is a user name.

    Raises ServiceUnreachable, ServiceNotSecure, ServiceLoginRejected, ServiceAnswerUnusable, also for what happens
    inside the block.
    """
    host, port = settings.smtp_host or "", settings.smtp_port
    with service_errors("smtp"):
        server: smtplib.SMTP
        if settings.smtp_security == "tls":
            server = _LimitedTls(host, port, LOCAL_NAME, timeout=timeout, context=tls_context())
        else:
            server = _Limited(host, port, LOCAL_NAME, timeout=timeout)
        try:
            if settings.smtp_security == "starttls":
                _start_tls(server)
            elif settings.smtp_security == "none":
                assert server.sock is not None
                check_on_this_machine(server.sock, "smtp")
            server.ehlo_or_helo_if_needed()
            if settings.smtp_username:
                _log_in(server, settings)
            yield server
        finally:
            with contextlib.suppress(OSError):  # what was done before stays done
                server.close()


def _start_tls(server: smtplib.SMTP) -> None:
    server.ehlo()
    if not server.has_extn("starttls"):
        raise ServiceNotSecure(service="smtp")
    try:
        code, _ = server.starttls(context=tls_context())
    except smtplib.SMTPResponseException as error:
        raise ServiceNotSecure(service="smtp") from error
    if code != 220:
        raise ServiceNotSecure(service="smtp")


def _log_in(server: smtplib.SMTP, settings: Settings) -> None:
    username = settings.smtp_username or ""
    password = settings.smtp_password.get_secret_value() if settings.smtp_password else ""
    try:
        if "PLAIN" in server.esmtp_features.get("auth", "").upper().split():
            # Not by the library, which knows ASCII only and tries a wrong password once for each method.
            secret = base64.b64encode(f"\0{username}\0{password}".encode()).decode()
            code, said = server.docmd("AUTH", f"PLAIN {secret}")
            if code not in (235, 503):
                raise smtplib.SMTPAuthenticationError(code, said)
        else:
            server.login(username, password)
    # `from None` in all of these: an answer may repeat the command, and the command has the password.
    except smtplib.SMTPAuthenticationError as error:
        if error.smtp_code == 538:
            raise ServiceNotSecure(service="smtp") from None
        if 400 <= error.smtp_code < 500:
            raise ServiceAnswerUnusable(service="smtp") from None
        raise ServiceLoginRejected(service="smtp") from None
    except smtplib.SMTPServerDisconnected:
        raise
    except (smtplib.SMTPException, UnicodeError):  # it knows no login, or none for such a password
        raise ServiceLoginRejected(service="smtp") from None


def check_sending(settings: Settings, *, timeout: float = SILENCE_SECONDS) -> None:
    """Whether the server would take mails. Nothing is sent.

    Raises ServiceUnreachable, ServiceNotSecure, ServiceLoginRejected, ServiceAnswerUnusable.
    """
    with open_smtp(settings, timeout=timeout) as server:
        code, _ = server.noop()
        if code != 250:
            raise ServiceAnswerUnusable(service="smtp")


def send(
    settings: Settings, *, sender: str, recipients: list[str], raw: bytes, timeout: float = SILENCE_SECONDS
) -> Sending:
    """Hand the mail to the server, once.

    Raises a ServiceError as long as nothing can have been sent.
    """
    with open_smtp(settings, timeout=timeout) as server:
        code, said = server.mail(sender)
        if code != 250:
            return Sending(outcome="refused", reason=_reason(code, said))
        refused = {}
        for recipient in recipients:
            code, said = server.rcpt(recipient)
            if code not in (250, 251):
                refused[recipient] = _reason(code, said)
        if len(refused) == len(recipients):
            return Sending(outcome="refused", refused=refused)
        if server.sock is not None:
            server.sock.settimeout(max(timeout, ANSWER_SECONDS))
        try:
            code, said = server.data(raw)
        except smtplib.SMTPDataError as error:
            return Sending(outcome="refused", refused=refused, reason=_reason(error.smtp_code, error.smtp_error))
        except OSError:  # all that smtplib raises, too
            return Sending(outcome="unknown", refused=refused)
        if 400 <= code < 600:
            return Sending(outcome="refused", refused=refused, reason=_reason(code, said))
        # Anything else, as what is no answer at all, says neither the one nor the other.
        return Sending(outcome="sent" if 200 <= code < 300 else "unknown", refused=refused)


def _reason(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return shorten(one_line(clean(f"{code} {text}")), 200)

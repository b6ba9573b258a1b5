"""The mailbox on the IMAP server: a safe way in. What is done with its mails is stored_mails.py's matter."""

import contextlib
import imaplib
from collections.abc import Iterator
from typing import Any

from imap_tools import BaseMailBox
from imap_tools.errors import MailboxLoginError

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


class _Limited(imaplib.IMAP4):
    """An IMAP client whose connection ends after TOTAL_SECONDS."""

    _limit: TimeLimit | None = None

    def open(self, host: str = "", port: int = 143, timeout: float | None = None) -> None:
        super().open(host, port, timeout)
        self._limit = TimeLimit(TOTAL_SECONDS, lambda: self.sock)

    def shutdown(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        with contextlib.suppress(OSError):  # its socket is gone already when the encryption failed
            super().shutdown()


class _LimitedTls(_Limited, imaplib.IMAP4_SSL):  # type: ignore[misc]  # the port has another default
    """The same, encrypted from the first byte."""


class _Mailbox(BaseMailBox):
    """The library's mailbox on such a client."""

    def __init__(self, settings: Settings, timeout: float) -> None:
        self._settings = settings
        self._timeout = timeout
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        host, port = self._settings.imap_host or "", self._settings.imap_port
        security = self._settings.imap_security
        if security == "tls":
            return _LimitedTls(host, port, ssl_context=tls_context(), timeout=self._timeout)
        client = _Limited(host, port, timeout=self._timeout)
        try:
            if security == "starttls":
                _start_tls(client)
            else:
                check_on_this_machine(client.sock, "imap")
        except BaseException:
            client.shutdown()
            raise
        return client


def _start_tls(client: imaplib.IMAP4) -> None:
    # Also one that lets everybody in at once, which would skip the encryption.
    if client.state != "NONAUTH" or "STARTTLS" not in client.capabilities:
        raise ServiceNotSecure(service="imap")
    try:
        client.starttls(tls_context())
    except imaplib.IMAP4.error as error:
        raise ServiceNotSecure(service="imap") from error


@contextlib.contextmanager
def open_mailbox(settings: Settings, *, timeout: float = SILENCE_SECONDS) -> Iterator[Any]:
    """The library's mailbox, logged in, no folder selected yet.

    Raises ServiceUnreachable, ServiceNotSecure, ServiceLoginRejected, ServiceAnswerUnusable, also for what happens
    inside the block, and ServiceFolderMissing.
    """
    with service_errors("imap"):
        mailbox = _Mailbox(settings, timeout)
        try:
            _log_in(mailbox, settings)
            yield mailbox
        finally:
            # No word of goodbye: it could take its time, and the server needs none.
            mailbox.client.shutdown()


def _log_in(mailbox: Any, settings: Settings) -> None:
    username = settings.imap_username or ""
    password = settings.imap_password.get_secret_value() if settings.imap_password else ""
    try:
        if f"{username}{password}".isascii():
            mailbox.login(username, password, initial_folder=None)
        else:
            mailbox.login_utf8(username, password, initial_folder=None)
    except imaplib.IMAP4.abort:
        raise
    # `from None` in all of these: an answer may repeat the command, and the command has the password.
    except (MailboxLoginError, imaplib.IMAP4.error) as error:
        said = str(error)
        if "UNAVAILABLE" in said:
            raise ServiceAnswerUnusable(service="imap") from None
        if "PRIVACYREQUIRED" in said:
            raise ServiceNotSecure(service="imap") from None
        raise ServiceLoginRejected(service="imap") from None


def check_mailbox(settings: Settings, *, timeout: float = SILENCE_SECONDS) -> None:
    """Whether the inbox can be read.

    Raises ServiceUnreachable, ServiceNotSecure, ServiceLoginRejected, ServiceFolderMissing, ServiceAnswerUnusable.
    """
    with open_mailbox(settings, timeout=timeout) as mailbox:
        mailbox.folder.set("INBOX", readonly=True)

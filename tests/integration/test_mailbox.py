"""The way into the mailbox: a real IMAP server, and servers that are down, slow, insecure or lying."""

import logging
import uuid
from typing import Any

import pytest

from jarvis_memory import mail_connection, mailbox
from jarvis_memory.errors import (
    ServiceAnswerUnusable,
    ServiceError,
    ServiceFolderMissing,
    ServiceLoginRejected,
    ServiceNotSecure,
    ServiceUnreachable,
)
from jarvis_memory.mailbox import check_mailbox, open_mailbox
from jarvis_memory.settings import Settings
from tests.dovecot_server import PASSWORD, Dovecot
from tests.lying_server import dripping, http, lying_server, saying, silent

GREETING = b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready"


def settings_for(dovecot: Dovecot, **others: Any) -> Settings:
    return Settings(_env_file=None, **dovecot.settings(uuid.uuid4().hex) | others)


def local(port: int, security: str = "none", **others: Any) -> Settings:
    """The settings for a server on this machine that lies."""
    values = {"imap_host": "localhost", "imap_port": port, "imap_security": security}
    return Settings(_env_file=None, **values | {"imap_username": "anna", "imap_password": PASSWORD} | others)


@pytest.fixture
def trusted(dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system trusts the authority of the test servers."""
    monkeypatch.setenv("SSL_CERT_FILE", str(dovecot.authority))


def refused(settings: Settings, error: type[ServiceError], timeout: float = 10) -> ServiceError:
    """The error, which must be exactly of this kind and tell nothing of the password."""
    with pytest.raises(ServiceError) as raised:
        check_mailbox(settings, timeout=timeout)
    assert type(raised.value) is error, repr(raised.value.__cause__)
    assert raised.value.details["service"] == "imap"
    chain: BaseException | None = raised.value
    while chain is not None:
        assert PASSWORD not in f"{chain!r}"
        chain = chain.__cause__
    return raised.value


@pytest.mark.usefixtures("trusted")
def test_a_mailbox_is_reached_in_each_of_the_three_ways(dovecot: Dovecot) -> None:
    check_mailbox(settings_for(dovecot))
    for security in ("starttls", "none"):
        check_mailbox(settings_for(dovecot, imap_port=dovecot.port, imap_security=security))


@pytest.mark.usefixtures("trusted")
def test_a_wrong_password_is_the_login_and_nothing_of_it_is_logged(
    dovecot: Dovecot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for password in ("wrong-secret", "wröng-secret"):
        error = refused(settings_for(dovecot, imap_password=password), ServiceLoginRejected)
        assert error.__cause__ is None
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("trusted")
def test_a_name_that_the_certificate_does_not_have_is_not_secure(dovecot: Dovecot) -> None:
    refused(settings_for(dovecot, imap_host="127.0.0.1"), ServiceNotSecure)
    starttls = {"imap_port": dovecot.port, "imap_security": "starttls"}
    refused(settings_for(dovecot, imap_host="127.0.0.1", **starttls), ServiceNotSecure)


def test_a_certificate_of_an_unknown_authority_is_not_secure(dovecot: Dovecot) -> None:
    refused(settings_for(dovecot), ServiceNotSecure)
    refused(settings_for(dovecot, imap_port=dovecot.port, imap_security="starttls"), ServiceNotSecure)


@pytest.mark.parametrize(
    "greeting",
    [GREETING, b"* PREAUTH [CAPABILITY IMAP4rev1 STARTTLS] come in"],
    ids=["nothing of it", "everybody is let in"],
)
def test_without_an_offer_to_encrypt_no_password_is_sent(greeting: bytes) -> None:
    heard: list[bytes] = []

    def strip(connection: Any) -> None:
        connection.sendall(greeting + b"\r\n")
        while said := connection.recv(1000):
            heard.append(said)
            connection.sendall(b"* CAPABILITY IMAP4rev1\r\n" + said.split(b" ")[0] + b" OK yes\r\n")

    with lying_server(strip) as port:
        refused(local(port, "starttls"), ServiceNotSecure)
    assert not any(b"LOGIN" in said or b"AUTHENTICATE" in said for said in heard)


def test_a_server_elsewhere_gets_no_password_unencrypted() -> None:
    class Elsewhere:
        def getpeername(self) -> tuple[str, int]:
            return ("192.0.2.1", 143)

    with pytest.raises(ServiceNotSecure):
        mail_connection.check_on_this_machine(Elsewhere(), "imap")  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["localhost", "no-such-host.invalid", "a..b"])
def test_a_wrong_address_is_unreachable(host: str) -> None:
    with lying_server(silent) as port:
        pass
    refused(local(port, imap_host=host), ServiceUnreachable)


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
def test_a_server_that_says_nothing_is_given_up(security: str) -> None:
    with lying_server(silent) as port:
        refused(local(port, security), ServiceUnreachable, timeout=0.3)


def test_a_server_that_never_comes_to_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "TOTAL_SECONDS", 0.5)
    with lying_server(dripping(b"* ")) as port:
        refused(local(port), ServiceUnreachable)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([GREETING], ServiceUnreachable),
        ([GREETING, b"* CAPABILITY IMAP4rev1\r\n% OK yes", b"% OK [CAPABILITY"], ServiceUnreachable),
        ([GREETING, b"% BAD what?"], ServiceAnswerUnusable),
        ([b"220 mail.example.org ESMTP"], ServiceAnswerUnusable),
        ([GREETING, b"% OK yes", b"% NO [UNAVAILABLE] try later"], ServiceAnswerUnusable),
        ([GREETING, b"% OK yes", b"% NO [PRIVACYREQUIRED] encrypt first"], ServiceNotSecure),
        ([GREETING, b"* CAPABILITY IMAP4rev1\r\n% OK yes", b"% OK yes", b"% NO no inbox"], ServiceFolderMissing),
    ],
)
def test_what_a_server_says_wrong_is_told_apart(lines: list[bytes], error: type[ServiceError]) -> None:
    with lying_server(saying(*lines)) as port:
        refused(local(port, imap_password="plain"), error, timeout=2)


def test_a_web_server_is_no_mail_server() -> None:
    with lying_server(http) as port:
        refused(local(port), ServiceAnswerUnusable)
        refused(local(port, "tls"), ServiceNotSecure)


@pytest.mark.usefixtures("trusted")
def test_looking_at_the_mailbox_changes_nothing_in_it(dovecot: Dovecot) -> None:
    settings = settings_for(dovecot)
    assert settings.imap_username is not None
    dovecot.deliver(settings.imap_username, b"Subject: Neu\r\n\r\nText\r\n")
    check_mailbox(settings)
    with open_mailbox(settings) as opened:
        assert opened.folder.list() != []
    flags, _ = dovecot.mails(settings.imap_username)[0]
    assert "\\Seen" not in flags

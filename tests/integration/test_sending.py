"""Handing a mail to an SMTP server, and what it may say or fail to say."""

import socket
from typing import Any

import pytest

from jarvis_memory import sending
from jarvis_memory.errors import (
    ServiceAnswerUnusable,
    ServiceError,
    ServiceLoginRejected,
    ServiceNotSecure,
    ServiceUnreachable,
)
from jarvis_memory.sending import Sending, check_sending, send
from jarvis_memory.settings import Settings
from tests.lying_server import dripping, http, lying_server, saying, silent
from tests.smtp_server import PASSWORD, USER, SmtpServer

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

RAW = b"Subject: Hallo\r\n\r\nErste Zeile\r\n.\r\n..Ende\r\n"


def settings_for(smtp_server: SmtpServer, **others: Any) -> Settings:
    return Settings(_env_file=None, **smtp_server.settings() | others)


def local(port: int, security: str = "none", **others: Any) -> Settings:
    """The settings for a server on this machine that lies."""
    values = {"smtp_host": "localhost", "smtp_port": port, "smtp_security": security}
    return Settings(_env_file=None, **values | {"smtp_username": USER, "smtp_password": PASSWORD} | others)


@pytest.fixture
def trusted(smtp_server: SmtpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system trusts the authority of the test servers."""
    monkeypatch.setenv("SSL_CERT_FILE", str(smtp_server.authority))


def refused(settings: Settings, error: type[ServiceError], timeout: float = 10) -> None:
    """The error must be exactly of this kind and tell nothing of the password."""
    with pytest.raises(ServiceError) as raised:
        check_sending(settings, timeout=timeout)
    assert type(raised.value) is error, repr(raised.value.__cause__)
    assert raised.value.details == {"service": "smtp"}
    assert PASSWORD not in f"{raised.value!r} {raised.value.__cause__!r}"


def sent_by(settings: Settings, *recipients: str) -> Sending:
    return send(settings, sender=USER, recipients=list(recipients), raw=RAW)


@pytest.mark.usefixtures("trusted")
def test_the_server_is_reached_encrypted_and_gets_no_mail_by_it(smtp_server: SmtpServer) -> None:
    check_sending(settings_for(smtp_server))
    check_sending(settings_for(smtp_server, smtp_port=smtp_server.port, smtp_security="starttls"))
    assert smtp_server.mails == []


@pytest.mark.usefixtures("trusted")
def test_a_wrong_password_is_the_login(smtp_server: SmtpServer) -> None:
    refused(settings_for(smtp_server, smtp_password="falsch & schön"), ServiceLoginRejected)


def test_a_certificate_that_is_not_valid_is_not_secure(
    smtp_server: SmtpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = {"smtp_port": smtp_server.port, "smtp_security": "starttls"}
    refused(settings_for(smtp_server), ServiceNotSecure)
    refused(settings_for(smtp_server, **upgrade), ServiceNotSecure)
    monkeypatch.setenv("SSL_CERT_FILE", str(smtp_server.authority))
    refused(settings_for(smtp_server, smtp_host="127.0.0.1"), ServiceNotSecure)
    refused(settings_for(smtp_server, smtp_host="127.0.0.1", **upgrade), ServiceNotSecure)


def test_without_an_offer_to_encrypt_no_password_is_sent() -> None:
    heard: list[bytes] = []

    def strip(connection: Any) -> None:
        connection.sendall(b"220 ready\r\n")
        while said := connection.recv(1000):
            heard.append(said)
            connection.sendall(b"250-localhost\r\n250 AUTH PLAIN\r\n")

    with lying_server(strip) as port:
        refused(local(port, "starttls"), ServiceNotSecure)
    assert not any(b"AUTH" in said for said in heard)


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
def test_a_server_that_says_nothing_is_given_up(security: str) -> None:
    with lying_server(silent) as port:
        refused(local(port, security), ServiceUnreachable, timeout=0.3)


def test_a_server_that_never_comes_to_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TOTAL_SECONDS", 0.5)
    with lying_server(dripping(b"220-x\r\n")) as port:
        refused(local(port), ServiceUnreachable)


def test_nobody_at_the_address_is_unreachable() -> None:
    with lying_server(silent) as port:
        pass
    refused(local(port), ServiceUnreachable)
    refused(local(port, smtp_host="no-such-host.invalid"), ServiceUnreachable)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([b"220 ready"], ServiceUnreachable),
        ([b"554 go away"], ServiceAnswerUnusable),
        ([b"* OK IMAP4rev1 ready"], ServiceAnswerUnusable),
        ([b"220 ready", b"250 no login here"], ServiceLoginRejected),
        ([b"220 ready", b"250-x\r\n250 AUTH PLAIN", b"454 later"], ServiceAnswerUnusable),
        ([b"220 ready", b"250-x\r\n250 AUTH PLAIN", b"538 encrypt first"], ServiceNotSecure),
        ([b"220 ready", b"250-x\r\n250 AUTH PLAIN", b"235 in", b"500 no"], ServiceAnswerUnusable),
    ],
)
def test_what_a_server_says_wrong_is_told_apart(lines: list[bytes], error: type[ServiceError]) -> None:
    with lying_server(saying(*lines)) as port:
        refused(local(port), error, timeout=2)


def test_a_web_server_is_no_mail_server() -> None:
    with lying_server(http) as port:
        refused(local(port), ServiceAnswerUnusable)


@pytest.mark.usefixtures("trusted")
def test_a_mail_arrives_once_and_as_it_is(smtp_server: SmtpServer) -> None:
    done = sent_by(settings_for(smtp_server), "bert@example.org", "carla@example.org")
    assert done == Sending(outcome="sent")
    (mail,) = smtp_server.mails
    assert (mail.mail_from, mail.rcpt_tos) == (USER, ["bert@example.org", "carla@example.org"])
    assert mail.content == RAW


@pytest.mark.usefixtures("trusted")
def test_who_was_refused_is_named_and_the_others_get_it(smtp_server: SmtpServer) -> None:
    smtp_server.unknown = {"nobody@example.org"}
    done = sent_by(settings_for(smtp_server), "bert@example.org", "nobody@example.org")
    assert done == Sending(outcome="sent", refused={"nobody@example.org": "550 no such user: nobody@example.org"})
    assert [mail.rcpt_tos for mail in smtp_server.mails] == [["bert@example.org"]]


@pytest.mark.usefixtures("trusted")
def test_a_mail_that_nobody_may_get_or_that_the_server_refuses_is_not_sent(smtp_server: SmtpServer) -> None:
    smtp_server.unknown = {"nobody@example.org"}
    assert sent_by(settings_for(smtp_server), "nobody@example.org").outcome == "refused"
    smtp_server.answer = "554 looks like spam"
    done = sent_by(settings_for(smtp_server), "bert@example.org")
    assert done == Sending(outcome="refused", reason="554 looks like spam")
    assert smtp_server.mails == []


@pytest.mark.usefixtures("trusted")
def test_a_server_that_goes_away_after_the_mail_leaves_it_unknown(smtp_server: SmtpServer) -> None:
    smtp_server.goes_away = True
    assert sent_by(settings_for(smtp_server), "bert@example.org") == Sending(outcome="unknown")
    assert len(smtp_server.mails) == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"250", "sent"),
        (b"451 later", "refused"),
        (b"HTTP/1.1 200 OK", "unknown"),
        (b"354 go on", "unknown"),
        (b"", "unknown"),
    ],
)
def test_only_an_answer_that_says_so_is_a_refusal_or_a_success(answer: bytes, outcome: str) -> None:
    def behave(connection: socket.socket) -> None:
        client = connection.makefile("rb")
        for line in (b"220 ready", b"250 x", b"250 sender", b"250 recipient", b"354 go on"):
            connection.sendall(line + b"\r\n")
            client.readline()
        while client.readline() != b".\r\n":
            pass
        connection.sendall(answer + b"\r\n" if answer else b"")

    with lying_server(behave) as port:
        assert sent_by(local(port, smtp_username=None), "bert@example.org").outcome == outcome


def test_a_server_that_goes_away_before_the_mail_has_not_sent_it() -> None:
    with lying_server(saying(b"220 ready", b"250 x", b"250 sender")) as port, pytest.raises(ServiceUnreachable):
        sent_by(local(port, smtp_username=None), "bert@example.org")

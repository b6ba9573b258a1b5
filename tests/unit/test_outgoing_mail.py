"""Mails that are to be sent: addresses, and how they are written out."""

import email
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest

from jarvis_memory.errors import MailAddressUnusable, MailRecipientsUnusable, MailUnusable
from jarvis_memory.mails import parse_mail
from jarvis_memory.outgoing_mail import (
    as_answer,
    check_mail,
    new_mail,
    own_address,
    recipients_of,
    split_addresses,
    written_out,
)
from jarvis_memory.settings import Settings
from jarvis_memory.tools.mail import TEXT_CHARACTERS


def letter(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"sender": "Änne <a@example.org>", "to": ["b@example.org"], "cc": [], "bcc": []}
    return new_mail(**values | {"subject": "Hallo", "text": "Text"} | changes)


def read(mail: dict[str, Any], *, with_bcc: bool = False) -> EmailMessage:
    raw = written_out(mail, moment=datetime(2026, 11, 12, tzinfo=UTC), with_bcc=with_bcc)
    assert raw.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"")
    parsed = email.message_from_bytes(raw, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


@pytest.mark.parametrize(
    ("said", "kept", "bare"),
    [
        ("b@example.org", "b@example.org", "b@example.org"),
        ("  Bert Groß <b@example.org> ", "Bert Groß <b@example.org>", "b@example.org"),
        ("Groß, Bert <b@example.org>", '"Groß, Bert" <b@example.org>', "b@example.org"),
        ('"Der \\"Große\\"" <b@example.org>', '"Der \\"Große\\"" <b@example.org>', "b@example.org"),
        ("b@bücher.example", "b@xn--bcher-kva.example", "b@xn--bcher-kva.example"),
        # A name that looks like another address is shown with the true one.
        ("chef@firma.example <eve@example.org>", '"chef@firma.example" <eve@example.org>', "eve@example.org"),
    ],
)
def test_an_address_is_kept_as_it_is_meant_also_a_second_time(said: str, kept: str, bare: str) -> None:
    mail = letter(to=[said])
    assert mail["to"] == [kept]
    assert letter(to=mail["to"])["to"] == [kept]
    assert split_addresses(f"{kept}, c@example.org") == [kept, "c@example.org"]
    assert recipients_of(mail) == [bare]


def test_every_header_survives_the_way_however_long() -> None:
    names = [f'"Größe, die {number}." <a{number}@example.org>' for number in range(40)]
    subject = "Ein sehr langer Betreff über Österreich " * 7
    ids = " ".join(f"<{'x' * 100}{number}@example.org>" for number in range(5))
    mail = letter(to=names, subject=subject, bcc=["eve@example.org"]) | {"references": ids, "in_reply_to": ids[:113]}
    check_mail(mail)
    message = read(mail)
    assert [address.addr_spec for address in message["To"].addresses] == recipients_of(mail)[:-1]
    assert message["To"].addresses[3].display_name == "Größe, die 3."
    assert message["Subject"] == subject.strip()
    assert message["References"].split() == ids.split()
    assert message["Bcc"] is None
    assert read(mail, with_bcc=True)["Bcc"] == "eve@example.org"


@pytest.mark.parametrize(
    "text", ["Zeile\n.\n..\nFrom hier", "x" * 5_000, "Größe = 5 €\n\tEnde", "😀 \N{NO-BREAK SPACE}x"]
)
def test_a_text_survives_the_way(text: str) -> None:
    assert str(read(letter(text=text)).get_content()).replace("\r\n", "\n") == text + "\n"


def test_nothing_travels_in_signs_that_nobody_sees() -> None:
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "secret")
    mail = letter(subject=f"Hallo{hidden}", text=f"Text{hidden}\u202e 👩‍🚀")
    assert (mail["subject"], mail["text"]) == ("Hallo", "Text 👩‍🚀")
    with pytest.raises(MailAddressUnusable):
        letter(to=[f"Bert{hidden} <b@example.org>"])


def test_an_answer_to_the_longest_mail_can_be_sent() -> None:
    original = parse_mail(b"From: b@example.org\r\nSubject: x\r\n\r\n" + b"x\r\n" * 200_000)
    answer = as_answer(letter(text="x" * TEXT_CHARACTERS), original, "1-1-INBOX", Settings(_env_file=None))
    check_mail(answer)
    assert answer["text"].endswith("…")


@pytest.mark.parametrize("count", [0, 51])
def test_nobody_and_too_many_are_told_apart_from_a_wrong_address(count: int) -> None:
    with pytest.raises(MailRecipientsUnusable) as raised:
        check_mail(letter(to=[f"b{number}@example.org" for number in range(count)]))
    assert raised.value.details["name"] == str(count)


def test_who_gets_it_twice_gets_it_once() -> None:
    assert recipients_of(letter(to=["b@example.org", "B <b@example.org>"], cc=["b@example.org"])) == ["b@example.org"]


def test_each_mail_has_an_id_of_its_own() -> None:
    first, second = letter(), letter()
    assert first["message_id"] != second["message_id"]
    assert first["message_id"].endswith("@example.org>")


def test_the_sender_is_the_setting_or_else_the_user_name() -> None:
    values = {"imap_host": "x", "smtp_host": "x", "smtp_username": "s@example.org", "imap_username": "i@example.org"}
    assert own_address(Settings(_env_file=None, mail_from="A <a@example.org>", **values)) == "A <a@example.org>"
    assert own_address(Settings(_env_file=None, **values)) == "s@example.org"
    with pytest.raises(MailUnusable) as raised:
        own_address(Settings(_env_file=None, **values | {"smtp_username": "s", "imap_username": "i"}))
    assert raised.value.details["name"] == "MAIL_FROM"

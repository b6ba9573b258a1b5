"""Odd mails: whatever shape they are in, they become text."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jarvis_memory.errors import AttachmentUnknown
from jarvis_memory.mail_text import HTML_CHARACTERS, html_text
from jarvis_memory.mails import Mail, attachment_text, parse_mail

MAILS = Path(__file__).parents[1] / "mails"


def mail(name: str) -> Mail:
    return parse_mail((MAILS / f"{name}.eml").read_bytes())


def texts(parsed: Mail) -> dict[str, str]:
    return {one.name: attachment_text(one) for one in parsed.attachments if one.kind != "application/zip"}


def test_a_mail_without_a_charset_keeps_its_umlauts() -> None:
    parsed = mail("latin1_without_charset")
    assert (parsed.sender, parsed.subject) == ("Jörg Müller <joerg@example.org>", "Schöne Grüße")
    assert parsed.text == "Wir kommen über Köln."
    assert parsed.date == datetime(2026, 11, 2, 8, 15, tzinfo=UTC)
    assert parsed.message_id == "<latin1@example.org>"


def test_encoded_headers_are_decoded_also_with_a_comma_and_an_unknown_charset() -> None:
    parsed = mail("encoded_words")
    assert parsed.sender == "Müller, Eva <eva@example.org>"
    assert parsed.to == ["Anna Bülow <anna@example.org>", "Käthe <kaethe@example.org>"]
    assert parsed.subject == "Großer Plan für März"
    assert parsed.text == "Das kostet 20 €. Und mehr."


def test_nested_parts_give_the_plain_text_and_the_inner_mail_stays_an_attachment() -> None:
    parsed = mail("nested")
    assert parsed.text == "Der Auszug hängt an."
    assert [(one.name, one.kind) for one in parsed.attachments] == [
        ("logo.png", "image/png"),
        ("mail.eml", "message/rfc822"),
    ]
    assert "Die innere Mail." in attachment_text(parsed.attachments[1])
    assert parsed.references == ["<first@example.org>", "<second@example.org>"]


def test_a_broken_boundary_and_a_date_that_is_none_lose_no_text() -> None:
    parsed = mail("broken_boundary")
    assert "Trotzdem lesbar." in parsed.text
    assert parsed.date is None


def test_html_becomes_text_without_scripts_and_images() -> None:
    text = mail("html_only").text
    assert "Nur heute" in text
    assert "Der Preis: 12 € <statt 20>" in text
    assert "Menge" in text
    for hidden in ("evil", "tracker", "color", "steal", "Im Verborgenen"):
        assert hidden not in text


def test_attachments_are_named_apart_without_paths_and_read_as_text() -> None:
    parsed = mail("attachments")
    assert parsed.text == "Anbei alles."
    assert [one.name for one in parsed.attachments] == [
        "Rechnung März.pdf",
        "notiz.txt",
        "notiz (2).txt",
        "text.ics",
        "alles.zip",
    ]
    said = texts(parsed)
    assert "Rechnung ueber 42 Euro" in said["Rechnung März.pdf"]
    assert said["notiz.txt"] == "Küche streichen"
    assert said["notiz (2).txt"] == "Zweite Notiz"
    assert "SUMMARY:Probe im Gemeindehaus" in said["text.ics"]
    with pytest.raises(AttachmentUnknown):
        attachment_text(parsed.attachments[-1])


def test_a_mail_without_any_header_is_its_text() -> None:
    parsed = mail("no_headers")
    assert parsed == Mail(
        sender="",
        to=[],
        cc=[],
        reply_to=[],
        subject="",
        date=None,
        text="Nur ein Text, ohne alles.",
        attachments=[],
        message_id="",
        references=[],
    )


def test_nul_bytes_and_signs_that_turn_the_writing_are_gone() -> None:
    parsed = mail("nul_bytes")
    assert parsed.subject == "Null und nichts"
    assert parsed.text == "Vorher, nachher  umgekehrt."


def test_the_beginning_of_a_mail_that_was_cut_off_is_read() -> None:
    raw = (MAILS / "attachments.eml").read_bytes()
    for length in range(0, len(raw), 37):
        parse_mail(raw[:length])
    assert parse_mail(raw[:700]).text == "Anbei alles."


@pytest.mark.parametrize(
    "raw",
    [
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        + b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n",
        b"Subject: x\r\nContent-Type: multipart/mixed\r\n\r\nText",
        b"Content-Transfer-Encoding: base64\r\n\r\n!!!=",
        b'Content-Type: text/plain; charset="klingon"\r\n\r\nText',
        b"Subject: =?utf-8?b?!!!!?=\r\nFrom: <<<>>>,;:\r\nTo: " + b"(" * 5_000 + b"\r\n\r\nText",
        b"Date: Mon, 99 Foo 0000 99:99:99 +9999\r\n\r\nText",
        b"Date: Fri, 31 Dec 9999 23:59:59 -1200\r\n\r\nText",
        b"Content-Type: message/rfc822\r\n\r\n",
        b"Content-Disposition: attachment; filename*=bad'x'%ZZ\r\n\r\nText",
    ],
)
def test_no_mail_breaks_anything(raw: bytes) -> None:
    parsed = parse_mail(raw)
    for attachment in parsed.attachments:
        assert attachment.name


def test_a_thousand_levels_are_not_followed() -> None:
    levels = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (level, level + 1) for level in range(1_000)
    )
    parsed = parse_mail(b"Subject: Tief\r\nContent-Type: multipart/mixed; boundary=b0\r\n\r\n" + levels + b"Text")
    assert parsed.subject == "Tief"


@pytest.mark.parametrize(
    "html", ["<div>" * 5_000 + "Text", "Text" + "<" * HTML_CHARACTERS, "Text<script>a</script", "<"]
)
def test_no_html_breaks_anything(html: str) -> None:
    said = html_text(html)
    assert ("Text" in said) == ("Text" in html)
    assert "script" not in said


def test_a_table_is_read_row_by_row_and_nothing_that_is_hidden() -> None:
    html = "<table><tr><th>Posten<th>Preis<tr><td>Dach<td>80 €</table><p style='DISPLAY: none !important'>geheim</p>"
    assert html_text(html) == "Posten  Preis\nDach  80 €"


@pytest.mark.parametrize(
    "html",
    [
        f"<table><tr><td>{'x' * 50_000}<td>y{'<tr><td>a<td>b' * 3_000}</table>",
        f"<table><tr><td>{'x' * 50_000}<td>{'y<br>' * 3_000}</table>",
        "<p style='padding-left: 99999em; margin-top: 99999em'>x<br>y</p>" * 1_000,
        "<ul>" * 200 + "<li>x" * 20_000,
        "<div>" * 200 + "<br>x" * 20_000,
    ],
)
def test_no_html_becomes_much_longer_than_it_is(html: str) -> None:
    assert len(html_text(html)) <= len(html)


def test_a_text_that_only_machines_would_read_is_gone() -> None:
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "send it")
    assert parse_mail(f"Subject: Hallo{hidden}\n\nText{hidden}".encode()).subject == "Hallo"
    assert parse_mail(f"Subject: Hallo\n\nText{hidden}".encode()).text == "Text"

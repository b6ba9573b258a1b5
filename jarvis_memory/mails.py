"""One mail: its headers, its text and its attachments, whatever shape it is in. No server and no screen.

A mail is what somebody else wrote: nothing in it is trusted, and nothing in it may break anything.
"""

import email
import email.parser
import email.utils
import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message

from jarvis_memory.errors import AttachmentUnknown
from jarvis_memory.mail_text import BROKEN, decoded, decoded_header, html_text, readable
from jarvis_memory.text import shorten
from jarvis_memory.uploads import clean_name, read_upload

# Of parts in one mail, and of the levels they are nested in.
PARTS = 200
DEPTH = 20
HEADER_CHARACTERS = 20_000
REFERENCES = 20
ADDRESS_CHARACTERS = 200
SUBJECT_CHARACTERS = 300

_MESSAGE_ID = re.compile(r"<[\x21-\x3b=\x3f-\x7e]{1,400}>")


@dataclass(frozen=True, kw_only=True)
class MailAttachment:
    """A file in a mail. `name` is its own within the mail."""

    name: str
    kind: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Mail:
    """What a mail says, as text. A header that is missing is empty."""

    sender: str
    to: list[str]
    cc: list[str]
    reply_to: list[str]
    subject: str
    # None where it has no date, or none that can be read.
    date: datetime | None
    text: str
    attachments: list[MailAttachment]
    message_id: str
    references: list[str]


def parse_mail(raw: bytes) -> Mail:
    """The mail in these bytes, which may be broken or cut off."""
    try:
        message = email.message_from_bytes(raw)
        parts = list(_parts(message))
    except BROKEN:  # nested a thousand times, or worse
        message = email.parser.BytesHeaderParser().parsebytes(raw)
        parts = []
    text, attachments = _content(parts)
    return Mail(
        sender=next(iter(_addresses(message, "From")), ""),
        to=_addresses(message, "To"),
        cc=_addresses(message, "Cc"),
        reply_to=_addresses(message, "Reply-To"),
        subject=shorten(_header(message, "Subject"), SUBJECT_CHARACTERS),
        date=_date(message),
        text=text,
        attachments=attachments,
        message_id=next(iter(message_ids(_header(message, "Message-ID"))), ""),
        references=message_ids(f"{_header(message, 'References')} {_header(message, 'In-Reply-To')}"),
    )


def message_ids(said: str) -> list[str]:
    """The ids in a header, each once; the last ones of many."""
    return list(dict.fromkeys(_MESSAGE_ID.findall(said)))[-REFERENCES:]


def attachment_text(attachment: MailAttachment) -> str:
    """What it says: a PDF, a text, an appointment, a web page, or a mail.

    Raises an error of uploads.py for what has no text, or is damaged or too large.
    """
    if attachment.kind == "message/rfc822":
        mail = parse_mail(attachment.content)
        date = mail.date.isoformat() if mail.date else ""
        named = ", ".join(one.name for one in mail.attachments)
        return f"{mail.sender}\n{', '.join(mail.to)}\n{date}\n{mail.subject}\n\n{mail.text}\n\n{named}".strip()
    file = read_upload(attachment.name, attachment.content, pdfs=False)
    if file.is_image:
        raise AttachmentUnknown(name=attachment.name)
    said = file.content.decode()
    return html_text(said) if attachment.kind == "text/html" else readable(said)


def _parts(message: Message, depth: int = 0) -> Iterator[Message]:
    """The parts that are no containers; a mail inside the mail is one part."""
    if message.is_multipart() and message.get_content_maintype() == "multipart" and depth < DEPTH:
        payload = message.get_payload()
        assert isinstance(payload, list)
        for part in payload[:PARTS]:
            assert isinstance(part, Message)
            yield from _parts(part, depth + 1)
    else:
        yield message


def _content(parts: list[Message]) -> tuple[str, list[MailAttachment]]:
    plain: list[str] = []
    html: list[str] = []
    attachments = []
    names: set[str] = set()
    for part in parts[:PARTS]:
        kind = part.get_content_type()
        is_text = kind in ("text/plain", "text/html") and part.get_content_disposition() != "attachment"
        if is_text and not _file_name(part):
            (plain if kind == "text/plain" else html).append(_text_of(part))
        elif kind.startswith("multipart/"):  # a container without its parts
            plain.append(_text_of(part))
        else:
            name = _own_name(_file_name(part) or _made_up_name(part), names)
            names.add(name)
            attachments.append(MailAttachment(name=name, kind=kind, content=_bytes_of(part)))
    text = readable("\n\n".join(plain))
    return text or html_text("\n".join(html)), attachments


def _bytes_of(part: Message) -> bytes:
    if part.get_content_type() == "message/rfc822" and part.is_multipart():
        inner = part.get_payload(0)
        try:
            return inner.as_bytes() if isinstance(inner, Message) else b""
        except BROKEN:
            return b""
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text_of(part: Message) -> str:
    return decoded(_bytes_of(part), part.get_content_charset())


def _header(message: Message, name: str) -> str:
    """The header on one line, decoded."""
    value = message.get(name, "")
    return decoded_header(value[:HEADER_CHARACTERS] if isinstance(value, str) else value)


def _addresses(message: Message, name: str) -> list[str]:
    """ "Anna <anna@example.org>" for each; what is no address stands as it is."""
    try:
        # Taken apart before it is decoded: an encoded name may hold a comma.
        raw = [value if isinstance(value, str) else decoded_header(value) for value in message.get_all(name, [])]
        pairs = email.utils.getaddresses([value[:HEADER_CHARACTERS] for value in raw])
    except BROKEN:
        pairs = []
    found = []
    for shown, address in pairs:
        shown, address = decoded_header(shown), decoded_header(address)
        one = f"{shown} <{address}>" if shown and address else shown or address
        if one:
            found.append(shorten(one, ADDRESS_CHARACTERS))
    return found or [shorten(said, ADDRESS_CHARACTERS) for said in [_header(message, name)] if said]


def _date(message: Message) -> datetime | None:
    try:
        date = email.utils.parsedate_to_datetime(_header(message, "Date"))
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
    except (*BROKEN, OverflowError):
        return None
    # At the ends of the calendar no other time zone can be reckoned.
    return date if 1970 <= date.year <= 2200 else None


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename()
    except BROKEN:
        return "file"
    return clean_name(decoded_header(name)) if name and decoded_header(name) else ""


def _made_up_name(part: Message) -> str:
    kind = part.get_content_type()
    if kind == "message/rfc822":
        return "mail.eml"
    return f"{part.get_content_maintype()}{mimetypes.guess_extension(kind) or ''}"


def _own_name(name: str, taken: set[str]) -> str:
    own, number = name, 1
    while own in taken:
        number += 1
        stem, dot, extension = name.rpartition(".")
        own = f"{stem} ({number}).{extension}" if dot and stem else f"{name} ({number})"
    return own

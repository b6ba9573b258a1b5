"""A mail that is to be sent or kept as a draft: checked, put together with what it answers, and written out.

It is a JSON object, because it waits in the database for the person's click: `from`, `to`, `cc`, `bcc`, `subject`,
`text`, `message_id`, and for an answer `in_reply_to`, `references` and `reply_to_email_id`.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr, make_msgid
from typing import Any

from jarvis_memory.errors import MailAddressUnusable, MailRecipientsUnusable, MailUnusable
from jarvis_memory.mail_text import INVISIBLE
from jarvis_memory.mails import SUBJECT_CHARACTERS, Mail, message_ids
from jarvis_memory.prompts import Language, written_date
from jarvis_memory.settings import Settings
from jarvis_memory.text import one_line, shorten

RECIPIENTS = 50
# With the text that is quoted below.
TEXT_CHARACTERS = 60_000
QUOTED_CHARACTERS = 20_000
ADDRESS_CHARACTERS = 254

_QUOTED: dict[Language, str] = {"de": "Am {date} schrieb {sender}:", "en": "On {date}, {sender} wrote:"}
_ANSWERS = re.compile(r"^(?:\s*(?:re|aw|antw)(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)

_CONTROLS = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]")
_NAMED = re.compile(r"\s*([^<>]*?)\s*<\s*([^<>\s]+)\s*>\s*")
_BARE = re.compile(r"\s*([^<>\s,;:\"]+)\s*")
_ADDRESS = re.compile(r"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)@([^@\s]+)")
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)
_ONE_OF_SEVERAL = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",;])+')


def own_address(settings: Settings) -> str:
    """Whom mails come from. Raises MailAddressUnusable when no setting says it."""
    candidates = (settings.mail_from, settings.smtp_username, settings.imap_username)
    for said in candidates:
        if said and "@" in said:
            return _shown(*_parsed("from", said))
    raise MailAddressUnusable(field="from", name="MAIL_FROM")


def split_addresses(said: str) -> list[str]:
    """The addresses in a text with commas or semicolons between them; what is no address stays in the list."""
    return [one.strip() for one in _ONE_OF_SEVERAL.findall(said) if one.strip()]


def new_mail(
    *, sender: str, to: Sequence[str], cc: Sequence[str], bcc: Sequence[str], subject: str, text: str
) -> dict[str, Any]:
    """A mail with an id of its own. Raises MailAddressUnusable for an address that is none."""
    _, address = _parsed("from", sender)
    return {
        "from": sender,
        "to": [_shown(*_parsed("to", one)) for one in to],
        "cc": [_shown(*_parsed("cc", one)) for one in cc],
        "bcc": [_shown(*_parsed("bcc", one)) for one in bcc],
        # The card shows all that is sent: nothing travels in signs that nobody sees.
        "subject": one_line(INVISIBLE.sub("", subject)),
        "text": INVISIBLE.sub("", text).replace("\r\n", "\n").strip(),
        "message_id": make_msgid(domain=address.rpartition("@")[2]),
    }


def as_answer(mail: dict[str, Any], original: Mail, email_id: str, settings: Settings) -> dict[str, Any]:
    """The mail as an answer to another: with its subject and its text quoted below, in the same thread."""
    language = settings.jarvis_language
    date = written_date(original.date, language, settings.time_zone) if original.date else "?"
    quoted = shorten(original.text.replace("\n", "\n> "), QUOTED_CHARACTERS)
    above = _QUOTED[language].format(date=date, sender=original.sender)
    answer = mail | {
        "subject": shorten(f"Re: {_ANSWERS.sub('', original.subject)}".strip(), SUBJECT_CHARACTERS),
        "text": f"{mail['text']}\n\n{above}\n> {quoted}".rstrip(),
        "reply_to_email_id": email_id,
    }
    if original.message_id:
        thread = [*(one for one in original.references if one != original.message_id), original.message_id]
        answer |= {"in_reply_to": original.message_id, "references": " ".join(thread)}
    return answer


def check_mail(mail: dict[str, Any], *, is_draft: bool = False) -> None:
    """Whether it can be sent as it is, also after the person changed it.

    Raises MailAddressUnusable, MailRecipientsUnusable, MailUnusable: `details["field"]` says where, `details["name"]`
    what of it cannot be used.
    """
    _parsed("from", mail["from"])
    count = 0
    for field in ("to", "cc", "bcc"):
        if not isinstance(mail[field], list):
            raise MailAddressUnusable(field=field, name=field)
        for one in mail[field]:
            _parsed(field, one)
            count += 1
    if count > RECIPIENTS or (count == 0 and not is_draft):
        raise MailRecipientsUnusable(field="to", name=str(count), limit=RECIPIENTS)
    subject, text = mail["subject"], mail["text"]
    if not isinstance(subject, str) or len(subject) > SUBJECT_CHARACTERS or _CONTROLS.search(subject):
        raise MailUnusable(field="subject", name=shorten(one_line(str(subject)), 50))
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_CHARACTERS:
        raise MailUnusable(field="text", name="…")


def recipients_of(mail: dict[str, Any]) -> list[str]:
    """The bare addresses of all who get it, each once."""
    return list(dict.fromkeys(_parsed(field, one)[1] for field in ("to", "cc", "bcc") for one in mail[field]))


def sender_of(mail: dict[str, Any]) -> str:
    """The bare address of who sends it."""
    return _parsed("from", mail["from"])[1]


def written_out(mail: dict[str, Any], *, moment: datetime, with_bcc: bool) -> bytes:
    """The mail as it travels, in ASCII; `with_bcc` for the sender's own copy. It has to be checked before."""
    lines = [_address_line("From", [mail["from"]])]
    for name in ("To", "Cc", *(["Bcc"] if with_bcc else [])):
        if mail[name.lower()]:
            lines.append(_address_line(name, mail[name.lower()]))
    charset = "us-ascii" if mail["subject"].isascii() else "utf-8"
    subject = Header(mail["subject"], charset, header_name="Subject").encode(linesep="\r\n")
    lines += [f"Subject: {subject}", f"Date: {format_datetime(moment)}"]
    # Not by the library: it encodes ids that are longer than a line, and they name no mail any more.
    for name, ids in (("Message-ID", "message_id"), ("In-Reply-To", "in_reply_to"), ("References", "references")):
        if known := message_ids(mail.get(ids, "")):
            lines.append(f"{name}: " + "\r\n ".join(known))
    body = EmailMessage(policy=SMTP)
    body.set_content(mail["text"], cte="quoted-printable")
    return "\r\n".join(lines).encode("ascii") + b"\r\n" + body.as_bytes()


def _address_line(name: str, addresses: list[str]) -> str:
    pairs = [_parsed(name.lower(), one) for one in addresses]
    return f"{name}: " + ",\r\n ".join(formataddr(pair) for pair in pairs)


def _shown(name: str, address: str) -> str:
    if not name:
        return address
    plain = re.fullmatch(r"[\w .'-]+", name)
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f"{name} <{address}>" if plain else f'"{escaped}" <{address}>'


def _parsed(field: str, said: object) -> tuple[str, str]:
    """The name and the bare address of `Name <name@example.org>` or the address alone; no group, no list."""
    shown = shorten(one_line(_CONTROLS.sub(" ", str(said))), 100)
    if not isinstance(said, str) or _CONTROLS.search(said) or INVISIBLE.search(said):
        raise MailAddressUnusable(field=field, name=shown)
    name, address = "", ""
    if named := _NAMED.fullmatch(said):
        name, address = named.groups()
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
    elif bare := _BARE.fullmatch(said):
        address = bare.group(1)
    whole = _ADDRESS.fullmatch(address)
    if whole is None or len(name) > 100:
        raise MailAddressUnusable(field=field, name=shown)
    local, domain = whole.groups()
    try:
        domain = domain if domain.isascii() else domain.encode("idna").decode()
    except UnicodeError:
        domain = ""
    if not _DOMAIN.fullmatch(domain) or len(local) + len(domain) >= ADDRESS_CHARACTERS:
        raise MailAddressUnusable(field=field, name=shown)
    return name, f"{local}@{domain}"

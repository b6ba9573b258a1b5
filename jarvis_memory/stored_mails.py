"""The mails in the mailbox: finding, reading and filing them. What a single mail says is mails.py's matter.

Nothing here deletes or moves a mail, and only `mark_as_read` changes one.
"""

import imaplib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Literal

from imap_tools import AND, MailMessage
from imap_tools.errors import MailboxFolderCreateError, MailboxFolderSelectError
from imap_tools.query import Header

from jarvis_memory.errors import ServiceAnswerUnusable, ServiceFolderMissing
from jarvis_memory.mailbox import open_mailbox
from jarvis_memory.mails import Mail, parse_mail
from jarvis_memory.settings import Settings

# Of a mail that is read; the mails with the largest attachments are larger, and only their beginning is read.
MAIL_BYTES = 15_000_000
# Of each mail in a list, and of one that is too large: its text and, mostly, the names of its attachments.
BEGINNING_BYTES = 100_000
# A server without an index reads through all mails.
SEARCH_SECONDS = 25.0
# Folders that are listed for who asked for one that does not exist.
FOLDERS = 50

Purpose = Literal["sent", "drafts"]
_FLAGS: dict[Purpose, str] = {"sent": "\\Seen", "drafts": "\\Draft"}
_SPECIAL: dict[Purpose, str] = {"sent": "\\sent", "drafts": "\\drafts"}
# Where the server does not say which folder it is; the first is made where there is none of them.
_NAMES: dict[Purpose, tuple[str, ...]] = {
    "sent": ("Sent", "Sent Items", "Sent Messages", "Sent Mail", "Gesendet", "Gesendete Objekte", "Gesendete Elemente"),
    "drafts": ("Drafts", "Draft", "Entwürfe", "Entwurf"),
}
_MAIL_ID = re.compile(r"(\d{1,10})-(\d{1,10})-(.{1,300})", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class StoredMail:
    """A mail in its folder. `id` names it until the server numbers the folder anew."""

    id: str
    mail: Mail
    unread: bool
    size: int
    # False: only the beginning was read.
    is_whole: bool


def find_mails(
    settings: Settings,
    *,
    folder: str = "INBOX",
    words: Sequence[str] = (),
    sender: str | None = None,
    since: date | None = None,
    before: date | None = None,
    unread_only: bool = False,
    limit: int,
) -> tuple[list[StoredMail], int]:
    """The mails that fit all of this, the last to arrive first, and how many more there are. None becomes read.

    Raises a ServiceError; ServiceFolderMissing has `details["folders"]`, those that exist.
    """
    wanted: dict[str, Any] = {"text": list(words) or None, "from_": sender, "date_gte": since, "date_lt": before}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if unread_only:
        wanted["seen"] = False
    criteria = str(AND(**wanted)) if wanted else "ALL"
    with open_mailbox(settings) as mailbox:
        validity = _select(mailbox, folder)
        if words:
            mailbox.client.sock.settimeout(SEARCH_SECONDS)
        # Some servers refuse to be told the charset that they take anyway.
        found = sorted(mailbox.uids(criteria, None if criteria.isascii() else "UTF-8"), key=int, reverse=True)
        mails = _fetch(mailbox, validity, folder, found[:limit], BEGINNING_BYTES)
    return mails, max(0, len(found) - limit)


def read_mail(settings: Settings, mail_id: str, *, mark_as_read: bool = False) -> StoredMail | None:
    """The mail; None when it is not there any more, or the server has numbered its folder anew.

    Raises a ServiceError.
    """
    parts = _MAIL_ID.fullmatch(mail_id)
    if parts is None:
        return None
    validity, uid, folder = parts.groups()
    with open_mailbox(settings) as mailbox:
        try:
            if _select(mailbox, folder, readonly=not mark_as_read) != validity:
                return None
        except ServiceFolderMissing:
            return None
        stored = next(iter(_fetch(mailbox, validity, folder, [uid], BEGINNING_BYTES)), None)
        if stored is not None and not stored.is_whole and stored.size <= MAIL_BYTES:
            stored = next(iter(_fetch(mailbox, validity, folder, [uid], MAIL_BYTES)), None)
        if stored is not None and mark_as_read:
            # Not the library's `flag`: it expunges, and what another program marked as deleted would be gone.
            mailbox.client.uid("STORE", uid, "+FLAGS.SILENT", "(\\Seen)")
            stored = replace(stored, unread=False)
    return stored


def file_mail(settings: Settings, raw: bytes, *, purpose: Purpose, message_id: str) -> str:
    """Put a mail into the folder for this purpose, which is made where there is none. Returns the folder's name.

    Nothing happens when it lies there already: some servers file what they send by themselves. Raises a ServiceError.
    """
    with open_mailbox(settings) as mailbox:
        folder = _folder_for(mailbox, purpose)
        mailbox.folder.set(folder, readonly=True)
        if not mailbox.uids(AND(header=Header("Message-ID", message_id)), None):
            mailbox.append(raw, folder, datetime.now(UTC), [_FLAGS[purpose]])
    return folder


def _folder_for(mailbox: Any, purpose: Purpose) -> str:
    folders = [one for one in mailbox.folder.list() if "\\noselect" not in map(str.lower, one.flags)]
    for one in folders:
        if _SPECIAL[purpose] in map(str.lower, one.flags):
            return str(one.name)
    for name in _NAMES[purpose]:
        for one in folders:
            if one.name.split(one.delim)[-1].casefold() == name.casefold():
                return str(one.name)
    name = _NAMES[purpose][0]
    try:
        mailbox.folder.create(name)
    except MailboxFolderCreateError:  # on some servers every folder lies in the inbox
        name = f"INBOX{folders[0].delim if folders else '.'}{name}"
        mailbox.folder.create(name)
    return name


def _select(mailbox: Any, folder: str, *, readonly: bool = True) -> str:
    """The folder's UIDVALIDITY."""
    try:
        mailbox.folder.set(folder, readonly=readonly)
    except MailboxFolderSelectError as error:
        names = [one.name for one in mailbox.folder.list()][:FOLDERS]
        raise ServiceFolderMissing(service="imap", folders=names) from error
    _, numbers = mailbox.client.response("UIDVALIDITY")
    number = numbers[-1] if numbers else None
    return number.decode() if isinstance(number, bytes) else "0"


def _fetch(mailbox: Any, validity: str, folder: str, uids: list[str], size: int) -> list[StoredMail]:
    """These mails, in this order, at most `size` bytes of each, without marking any of them as read."""
    if not uids:
        return []
    # The library's `fetch` knows whole mails only, however large.
    what = f"(UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[]<0.{size}>)"
    status, data = mailbox.client.uid("FETCH", ",".join(uids), what)
    if status != "OK":
        raise ServiceAnswerUnusable(service="imap")
    answers: list[list[Any]] = []
    for item in data:
        if isinstance(item, tuple):
            answers.append([item])
        # What follows the mail's bytes; a change of another mail is told on a line of its own.
        elif isinstance(item, bytes) and answers and not re.match(rb"\d+ \(", item):
            answers[-1].append(item)
    stored = {}
    for answer in answers:
        message = MailMessage(answer)
        if message.uid in uids:
            mail = parse_mail(answer[0][1])
            if mail.date is None:
                mail = replace(mail, date=_arrival(answer[0][0]))
            stored[message.uid] = StoredMail(
                id=f"{validity}-{message.uid}-{folder}",
                mail=mail,
                unread="\\Seen" not in message.flags,
                size=message.size_rfc822,
                is_whole=message.size_rfc822 <= size,
            )
    return [stored[uid] for uid in uids if uid in stored]


def _arrival(said: bytes) -> datetime | None:
    """When the server got the mail, for one without a date."""
    arrived = imaplib.Internaldate2tuple(said)
    return datetime(*arrived[:6]).astimezone(UTC) if arrived else None

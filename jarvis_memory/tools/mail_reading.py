"""What the tools do that read the mailbox. How Claude sees them is tools/mail.py's matter."""

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from jarvis_memory.errors import (
    JarvisError,
    MailUnusable,
    ServiceError,
    ServiceFolderMissing,
    ServiceLoginRejected,
    ToolError,
)
from jarvis_memory.mails import Mail, attachment_text
from jarvis_memory.outgoing_mail import RECIPIENTS
from jarvis_memory.stored_mails import StoredMail, find_mails, read_mail
from jarvis_memory.text import one_line, shorten
from jarvis_memory.tools.tool import RESULT_CHARACTERS, ToolContext

BEGINNING_CHARACTERS = 200
NAMES = 10
RECIPIENTS_SHOWN = 20
FILES = 30
SEARCHED_WORDS = 8


@contextlib.contextmanager
def answers_for_claude() -> Iterator[None]:
    """What goes wrong with the servers is an answer for Claude, without anything that the server said."""
    try:
        yield
    except ServiceFolderMissing as error:
        raise ToolError(
            f"There is no such folder. The folders are: {json.dumps(error.details.get('folders', []))}"
        ) from error
    except ServiceLoginRejected as error:
        raise ToolError(f"{error} Tell the person to check the settings for mail; do not retry.") from error
    except ServiceError as error:
        smtp = error.details["service"] == "smtp"
        what = "Nothing was sent. The server that sends mail" if smtp else "The mailbox"
        raise ToolError(f"{what} could not be used: {error} Tell the person; do not retry now.") from error
    except MailUnusable as error:
        raise ToolError(
            f"The mail cannot be used, nothing was done. Field {error.details['field']}: {error.details['name']!r}. "
            f"Each entry is one address (name@example.org or Name <name@example.org>), at most {RECIPIENTS} in all."
        ) from error


def get_latest_emails(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """The mails that arrived last. Raises ToolError."""
    with answers_for_claude():
        found = find_mails(
            context.settings,
            folder=arguments.get("folder", "INBOX"),
            unread_only=arguments.get("unread_only", False),
            limit=int(arguments.get("limit", 10)),
        )
    return _listed(context, *found)


def search_emails(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """The mails that fit. Raises ToolError."""
    with answers_for_claude():
        found = find_mails(
            context.settings,
            folder=arguments.get("folder", "INBOX"),
            # Quotation marks, which in other searches hold a phrase together, stand in no mail like that.
            words=re.sub('["„“”]', " ", arguments.get("query", "")).split()[:SEARCHED_WORDS],
            sender=one_line(arguments.get("sender", "")) or None,
            since=_day(arguments, "since"),
            before=_day(arguments, "before"),
            limit=int(arguments.get("limit", 10)),
        )
    return _listed(context, *found)


def _day(arguments: dict[str, Any], name: str) -> date | None:
    if name not in arguments:
        return None
    try:
        return date.fromisoformat(arguments[name])
    except ValueError as error:
        raise ToolError(f"{name} is no date such as 2026-11-12.") from error


def _listed(context: ToolContext, mails: list[StoredMail], more: int) -> dict[str, Any]:
    emails = [
        {
            "email_id": stored.id,
            "from": stored.mail.sender,
            "to": stored.mail.to[:NAMES],
            "subject": stored.mail.subject,
            "date": _moment(context, stored.mail),
            "unread": stored.unread,
            "attachments": _names(stored),
            "beginning": shorten(one_line(stored.mail.text[: 2 * BEGINNING_CHARACTERS]), BEGINNING_CHARACTERS),
        }
        for stored in mails
    ]
    result: dict[str, Any] = {"emails": emails, "more": more}
    while emails and _size(result) > RESULT_CHARACTERS:
        emails.pop()
        result["more"] += 1
    return result


def _names(stored: StoredMail) -> list[str]:
    names = [one.name for one in stored.mail.attachments]
    # Of a large mail only the beginning is fetched for a list.
    return names if stored.is_whole and len(names) <= NAMES else [*names[:NAMES], "…"]


def read_email(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """One mail, or the text of one of its attachments. Raises ToolError."""
    stored = stored_mail(context, arguments["email_id"], mark_as_read=arguments.get("mark_as_read", False))
    mail = stored.mail
    if "attachment" in arguments:
        return _read_attachment(stored, arguments["attachment"])
    email: dict[str, Any] = {
        "email_id": stored.id,
        "from": mail.sender,
        "to": _some(mail.to),
        "cc": _some(mail.cc),
        "subject": mail.subject,
        "date": _moment(context, mail),
        "unread": stored.unread,
        "text": mail.text,
        "attachments": [
            {"name": one.name, "size": len(one.content), "kind": one.kind} for one in mail.attachments[:FILES]
        ],
    }
    if mail.reply_to:
        email["reply_to"] = _some(mail.reply_to)
    result: dict[str, Any] = {"email": email}
    if not stored.is_whole:
        result["note"] = f"The mail is very large ({stored.size // 1_000_000} MB); only its beginning was read."
    return _fitting(result, email)


def _some(addresses: list[str]) -> list[str]:
    more = len(addresses) - RECIPIENTS_SHOWN
    return addresses if more <= 0 else [*addresses[:RECIPIENTS_SHOWN], f"… ({more} more)"]


def _read_attachment(stored: StoredMail, name: str) -> dict[str, Any]:
    named = {one.name: one for one in stored.mail.attachments}
    if name not in named:
        raise ToolError(f"The mail has no attachment of that name. It has: {json.dumps(list(named)[:50])}")
    if not stored.is_whole:
        raise ToolError(f"The mail is too large ({stored.size // 1_000_000} MB) to read its attachments.")
    attachment = named[name]
    try:
        text = attachment_text(attachment)
    except JarvisError as error:
        raise ToolError(
            f"This attachment ({attachment.kind}, {len(attachment.content)} bytes) cannot be read as text: {error} "
            "The person can open it in their mail program."
        ) from error
    part = {"email_id": stored.id, "name": name, "kind": attachment.kind, "text": text}
    return _fitting({"attachment": part}, part)


def _fitting(result: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The result, with the end of its text cut where it is longer than a result may be."""
    text, kept = part["text"], len(part["text"])
    while _size(result) > RESULT_CHARACTERS and kept:
        # Each character takes one or, escaped, several.
        kept = max(0, min(kept - 100, kept - (_size(result) - RESULT_CHARACTERS) // 2))
        part["text"] = text[:kept]
        part["cut"] = f"The text has {len(text)} characters; the last {len(text) - kept} of them were cut off."
    return result


def _size(result: dict[str, Any]) -> int:
    return len(json.dumps(result, ensure_ascii=False))


def _moment(context: ToolContext, mail: Mail) -> str | None:
    return mail.date.astimezone(context.settings.time_zone).isoformat(timespec="minutes") if mail.date else None


def stored_mail(context: ToolContext, email_id: str, *, mark_as_read: bool = False) -> StoredMail:
    """The mail. Raises ToolError when it is not there, or the server cannot be used."""
    with answers_for_claude():
        stored = read_mail(context.settings, email_id, mark_as_read=mark_as_read)
    if stored is None:
        raise ToolError("There is no mail with this email_id (any more). Look for it again to get its new email_id.")
    return stored

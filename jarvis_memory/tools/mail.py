"""The tools of the mailbox as Claude sees them. What they do is in mail_reading.py and mail_writing.py."""

from typing import Any

from jarvis_memory.outgoing_mail import RECIPIENTS, check_mail
from jarvis_memory.tools.mail_reading import get_latest_emails, read_email, search_emails
from jarvis_memory.tools.mail_writing import draft_email, prepare_sending, send_email
from jarvis_memory.tools.tool import Tool

LISTED = 20
# What Claude writes; the quoted text comes on top of it.
TEXT_CHARACTERS = 20_000


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_EMAIL_ID = {"type": "string", "minLength": 1, "maxLength": 400, "description": "As a list or search returned it"}
_FOLDER = {"type": "string", "minLength": 1, "maxLength": 300, "description": "The inbox by default"}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": LISTED, "description": "10 by default"}
_DAY = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}
_ADDRESSES = {
    "type": "array",
    "items": {"type": "string", "minLength": 3, "maxLength": 400},
    "maxItems": RECIPIENTS,
    "description": "One address each: name@example.org or Name <name@example.org>",
}
_WRITTEN = {
    "to": _ADDRESSES,
    "subject": {"type": "string", "maxLength": 300, "description": "A reply gets that of the original instead"},
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": TEXT_CHARACTERS,
        "description": "Plain text; below a reply the original is quoted by itself",
    },
    "cc": _ADDRESSES,
}
_REPLY = {"reply_to_email_id": _EMAIL_ID | {"description": "The email_id of the mail that this answers"}}

MAIL_TOOLS = [
    Tool(
        name="draft_email",
        description="Put a mail into the person's folder for drafts, where they can finish and send it themselves.",
        input_schema=_object(["to", "subject", "text"], **_WRITTEN, **_REPLY),
        run=draft_email,
    ),
    Tool(
        name="get_latest_emails",
        description="The mails that arrived last, each with the beginning of its text. None is marked as read.",
        input_schema=_object([], limit=_LIMIT, folder=_FOLDER, unread_only={"type": "boolean"}),
        run=get_latest_emails,
        foreign="mail",
    ),
    Tool(
        name="read_email",
        description="Read one mail, or the text of one of its attachments (PDF, text, appointment).",
        input_schema=_object(
            ["email_id"],
            email_id=_EMAIL_ID,
            mark_as_read={"type": "boolean", "description": "Only when the person asks for it"},
            attachment={"type": "string", "minLength": 1, "maxLength": 300, "description": "Name of the attachment"},
        ),
        run=read_email,
        foreign="mail",
    ),
    Tool(
        name="search_emails",
        description="Search the mails of a folder: all words of the query in text or headers, the sender, the days.",
        input_schema=_object(
            [],
            query={"type": "string", "maxLength": 300},
            sender={"type": "string", "maxLength": 200, "description": "Part of the name or address"},
            since=_DAY | {"description": "First day, such as 2026-11-12"},
            before=_DAY | {"description": "The day after the last one"},
            folder=_FOLDER,
            limit=_LIMIT,
        ),
        run=search_emails,
        foreign="mail",
    ),
]

SENDING_TOOLS = [
    Tool(
        name="send_email",
        description="Show the person a mail, which is sent once they approve of it and may have changed it.",
        input_schema=_object(["to", "subject", "text"], **_WRITTEN, bcc=_ADDRESSES, **_REPLY),
        run=send_email,
        approval="always",
        prepare=prepare_sending,
        editable=("to", "cc", "bcc", "subject", "text"),
        check=check_mail,
    )
]

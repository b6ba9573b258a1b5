"""What the tools do that write mails: exactly what the person has approved of is sent, once. How Claude sees them is
tools/mail.py's matter.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from jarvis_memory.errors import ToolError
from jarvis_memory.outgoing_mail import (
    as_answer,
    check_mail,
    new_mail,
    own_address,
    recipients_of,
    sender_of,
    written_out,
)
from jarvis_memory.sending import send
from jarvis_memory.stored_mails import file_mail
from jarvis_memory.tools.mail_reading import answers_for_claude, stored_mail
from jarvis_memory.tools.tool import ToolContext

log = logging.getLogger(__name__)


def _written(context: ToolContext, arguments: dict[str, Any], *, is_draft: bool) -> dict[str, Any]:
    answered = arguments.get("reply_to_email_id")
    original = stored_mail(context, answered) if answered else None
    with answers_for_claude():
        mail = new_mail(
            sender=own_address(context.settings),
            to=arguments["to"],
            cc=arguments.get("cc", []),
            bcc=arguments.get("bcc", []),
            subject=arguments["subject"],
            text=arguments["text"],
        )
        if original is not None:
            mail = as_answer(mail, original.mail, original.id, context.settings)
        check_mail(mail, is_draft=is_draft)
    return mail


def prepare_sending(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """The whole mail, as it would be sent. Raises ToolError."""
    return _written(context, arguments, is_draft=False)


def send_email(context: ToolContext, mail: dict[str, Any]) -> dict[str, Any]:
    """What came of it. Raises ToolError only when it was not sent."""
    with answers_for_claude():
        check_mail(mail)
        moment = _now(context)
        raw = written_out(mail, moment=moment, with_bcc=False)
        copy = written_out(mail, moment=moment, with_bcc=True)
        sending = send(context.settings, sender=sender_of(mail), recipients=recipients_of(mail), raw=raw)
    if sending.outcome == "refused":
        said = sending.reason or json.dumps(sending.refused, ensure_ascii=False)
        raise ToolError(f"Not sent: the server refused it. It said: {said[:1000]}")
    # Not its subject and text: in a reply they are somebody else's, and Claude would read them here.
    result: dict[str, Any] = {"outcome": sending.outcome, "to": recipients_of(mail)}
    if sending.refused:
        result["refused"] = sending.refused
    if sending.outcome == "unknown":
        message = (
            "The connection broke off before the server confirmed the mail. It is unknown whether it was sent: say so, "
            "and never send it again unless the person has made sure that it did not arrive."
        )
        return result | {"filed": None, "message": message}
    try:
        result["filed"] = file_mail(context.settings, copy, purpose="sent", message_id=mail["message_id"])
        message = "Sent, with a copy in the folder for sent mails."
    except Exception as error:  # noqa: BLE001 - the mail has been sent: nothing may look as if it had not
        log.warning("A sent mail was not filed: %s", type(error).__name__)
        result["filed"] = None
        message = "Sent, but no copy could be put into the folder for sent mails. Do not send it again."
    if sending.refused:
        message += " The server refused some of the recipients, who do not get it: name them."
    return result | {"message": message}


def draft_email(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """In which folder the draft lies. Raises ToolError."""
    mail = _written(context, arguments, is_draft=True)
    raw = written_out(mail, moment=_now(context), with_bcc=True)
    with answers_for_claude():
        folder = file_mail(context.settings, raw, purpose="drafts", message_id=mail["message_id"])
    return {"drafted": True, "folder": folder}


def _now(context: ToolContext) -> datetime:
    return datetime.now(UTC).astimezone(context.settings.time_zone)

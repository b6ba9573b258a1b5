"""Mails in the cards of tool calls: what was read, what would be sent, and the same as fields to change.

Everything in a mail is somebody else's text and is shown as it is, never as Markdown or HTML.
"""

from datetime import datetime
from typing import Any

import streamlit as st

from jarvis_memory.outgoing_mail import split_addresses
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

TEXT_HEIGHT = 300


def mail_headline(texts: Texts, call: dict[str, Any]) -> str:
    """What came of a finished call of one of the mail tools, as Markdown."""
    result = call["result"]
    subject = _subject(texts, call.get("action", call["input"]).get("subject"))
    match call["name"]:
        case "get_latest_emails":
            return texts.counted("mail.listed", len(result["emails"]))
        case "search_emails":
            return texts.counted("mail.found", len(result["emails"]) + result["more"])
        case "read_email" if "attachment" in result:
            return texts("mail.read_attachment", name=plain(result["attachment"]["name"]))
        case "read_email":
            email = result["email"]
            return texts("mail.read", subject=_subject(texts, email["subject"]), sender=plain(email["from"] or "?"))
        case "draft_email" if "reply_to_email_id" in call["input"]:  # its subject is that of the original
            return texts("mail.drafted_reply", folder=plain(result["folder"]))
        case "draft_email":
            return texts("mail.drafted", subject=subject, folder=plain(result["folder"]))
        case _ if result["outcome"] == "unknown":
            return texts("mail.sent_unknown", subject=subject)
    to = plain(", ".join(result["to"]))
    return texts("mail.sent" if result["filed"] else "mail.sent_not_filed", subject=subject, to=to)


def draw_mail_result(page: Page, call: dict[str, Any]) -> None:
    """What the headline does not say: the mails of a list, the files in a mail, who was refused."""
    texts, result = page.texts, call["result"]
    if emails := result.get("emails"):
        st.markdown("\n".join(f"- {_line(page, email)}" for email in emails))
    if names := [one["name"] for one in result.get("email", {}).get("attachments", [])]:
        st.caption(f":material/attach_file: {plain(', '.join(names))}")
    if refused := result.get("refused"):
        st.caption(texts("mail.refused", to=plain(", ".join(refused))))


def _subject(texts: Texts, subject: str | None) -> str:
    return plain(subject or texts("mail.no_subject"))


def _line(page: Page, email: dict[str, Any]) -> str:
    subject = _subject(page.texts, email["subject"])
    parts = [f"**{subject}**" if email["unread"] else subject, plain(email["from"] or "?")]
    if email["date"]:
        moment = datetime.fromisoformat(email["date"])
        parts.append(written_moment(moment, page.texts.language, page.preferences.time_zone))
    return " · ".join(parts)


def draw_mail_action(page: Page, action: dict[str, Any]) -> None:
    """The whole mail as it would be sent, or was, without a way to change it."""
    texts = page.texts
    rows = [
        (texts("mail.from"), action["from"]),
        (texts("mail.to"), ", ".join(action["to"])),
        (texts("mail.cc"), ", ".join(action["cc"])),
        (texts("mail.bcc"), ", ".join(action["bcc"])),
        (texts("mail.subject"), action["subject"] or texts("mail.no_subject")),
    ]
    st.markdown("  \n".join(f"**{label}:** {plain(value)}" for label, value in rows if value))
    st.code(action["text"], language=None, wrap_lines=True)


def edit_mail(page: Page, action: dict[str, Any], key: str) -> dict[str, Any]:
    """The mail as fields, for the inside of a form. Returns what of it was changed, as the action holds it."""
    texts = page.texts
    st.markdown(f"**{texts('mail.from')}:** {plain(action['from'])}")
    labels = {"to": texts("mail.to"), "cc": texts("mail.cc"), "bcc": texts("mail.bcc")}
    edited: dict[str, Any] = {}
    for field, label in labels.items():
        said = st.text_input(label, ", ".join(action[field]), key=f"{field}-{key}", help=texts("mail.addresses"))
        edited[field] = split_addresses(said)
    edited["subject"] = st.text_input(texts("mail.subject"), action["subject"], key=f"subject-{key}").strip()
    edited["text"] = st.text_area(texts("mail.text"), action["text"], key=f"text-{key}", height=TEXT_HEIGHT).strip()
    return {field: value for field, value in edited.items() if value != action[field]}

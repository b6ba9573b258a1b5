"""Mails in cards: drawn without a browser, with what strangers may put into them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.ui import wiring
from jarvis_memory.ui.mail_cards import mail_headline
from jarvis_memory.ui.safe_markdown import plain
from tests.integration.pages import TEXTS, drawn, texts_in

ACTION = {
    "from": "Anna Bülow <anna@example.org>",
    "to": ['"Groß, Bert" <bert@example.org>', "carla@example.org"],
    "cc": [],
    "bcc": ["doris@example.org"],
    "subject": "**Treffen** um 5 $",
    "text": "Hallo,\n\n![x](https://evil.example/x.png) <b>bis</b> morgen",
    "message_id": "<1@example.org>",
}
EMAIL = {
    "email_id": "1-1-INBOX",
    "from": "Bert <bert@example.org>",
    "to": [],
    "subject": "![x](https://evil.example/x.png)",
    "date": "2026-11-12T10:00+01:00",
    "unread": True,
    "attachments": [],
    "beginning": "…",
}


def call(name: str, result: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool", "name": name, "input": {}, "result": result}


def page_with(draw: str, value: dict[str, Any]) -> AppTest:
    """A page with only this part of a card."""
    script = f"""
import json
import streamlit as st
from jarvis_memory.preferences import load_preferences
from jarvis_memory.ui import mail_cards, wiring
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.texts import Texts

parts = wiring.get_parts()
with parts.database.begin() as connection:
    preferences = load_preferences(connection, user_id=parts.user_id, settings=parts.settings)
page = Page(parts=parts, preferences=preferences, texts=Texts("de"))
value = json.loads({json.dumps(value)!r})
if {draw!r} == "edit_mail":
    st.json(mail_cards.edit_mail(page, value, "k"))
else:
    mail_cards.{draw}(page, value)
"""
    return drawn(AppTest.from_string(script, default_timeout=60))


@pytest.mark.parametrize(
    ("name", "result", "headline"),
    [
        ("get_latest_emails", {"emails": [], "more": 0}, "Keine Mails da"),
        ("get_latest_emails", {"emails": [EMAIL], "more": 7}, "Eine Mail angesehen"),
        ("search_emails", {"emails": [EMAIL], "more": 7}, "8 Mails gefunden"),
        (
            "read_email",
            {"email": EMAIL},
            f"Mail gelesen: **{plain(str(EMAIL['subject']))}** von {plain(str(EMAIL['from']))}",
        ),
        ("read_email", {"attachment": {"name": "a*b*.pdf"}}, f"Anhang gelesen: **{plain('a*b*.pdf')}**"),
        (
            "draft_email",
            {"drafted": True, "folder": "Entwürfe"},
            "Entwurf abgelegt in „Entwürfe“: **\\(ohne Betreff\\)**",
        ),
    ],
)
def test_a_headline_says_what_came_of_a_call(name: str, result: dict[str, Any], headline: str) -> None:
    assert mail_headline(TEXTS, call(name, result)) == headline


def test_the_headline_of_a_drafted_reply_names_no_subject_that_it_does_not_have() -> None:
    drafted = call("draft_email", {"drafted": True, "folder": "Entwürfe"})
    reply = drafted | {"input": {"subject": "x", "reply_to_email_id": "1-1-INBOX"}}
    assert mail_headline(TEXTS, reply) == "Entwurf einer Antwort abgelegt in „Entwürfe“"


def test_the_headline_of_a_mail_that_was_sent_tells_the_three_outcomes_apart() -> None:
    result = {"outcome": "sent", "to": ["a@example.org"], "filed": "Sent"}
    headlines = [
        mail_headline(TEXTS, call("send_email", result | change) | {"action": {"subject": "x"}})
        for change in ({}, {"filed": None}, {"outcome": "unknown", "filed": None})
    ]
    to = plain("a@example.org")
    assert headlines[0] == f"Gesendet: **x** an {to}"
    assert headlines[1].startswith(headlines[0])
    assert len(headlines[1]) > len(headlines[0])
    assert headlines[2].startswith("Unklar")


def test_a_list_shows_each_mail_in_one_line_and_nothing_of_it_is_formatted(build: Callable[..., Parts]) -> None:
    wiring.hand_in(build(jarvis_time_zone="Europe/Berlin"))
    result = {"emails": [EMAIL, EMAIL | {"unread": False, "subject": "", "date": None}], "more": 0}
    page = page_with("draw_mail_result", call("get_latest_emails", result))
    (shown,) = texts_in(page.markdown)
    first, second = shown.split("\n")
    sender = plain(str(EMAIL["from"]))
    assert first == f"- **{plain(str(EMAIL['subject']))}** · {sender} · 12. November 2026, 10:00"
    assert second == f"- {plain(TEXTS('mail.no_subject'))} · {sender}"


@pytest.mark.parametrize(
    "result",
    [
        {"email": EMAIL | {"attachments": []}},
        {"outcome": "sent", "to": ["a@example.org"], "filed": "Sent"},
        {"drafted": True, "folder": "Drafts"},
    ],
)
def test_nothing_is_drawn_where_the_headline_says_all(pages: Parts, result: dict[str, Any]) -> None:
    page = page_with("draw_mail_result", call("any", result))
    assert len(page.markdown) + len(page.caption) == 0


def test_files_in_a_mail_and_refused_addresses_are_named(pages: Parts) -> None:
    page = page_with("draw_mail_result", call("read_email", {"email": EMAIL | {"attachments": [{"name": "a.pdf"}]}}))
    assert plain("a.pdf") in texts_in(page.caption)[0]
    page = page_with("draw_mail_result", call("send_email", {"refused": {"a@example.org": "550 no"}}))
    assert plain("a@example.org") in texts_in(page.caption)[0]


def test_a_mail_that_waits_is_shown_whole_and_as_it_is(pages: Parts) -> None:
    page = page_with("draw_mail_action", ACTION)
    (rows,) = texts_in(page.markdown)
    for value in (ACTION["from"], ", ".join(ACTION["to"]), "doris@example.org", ACTION["subject"]):
        assert plain(str(value)) in rows
    assert TEXTS("mail.cc") not in rows
    assert [block.value for block in page.code] == [ACTION["text"]]


@pytest.fixture
def edited(pages: Parts) -> Callable[..., dict[str, Any]]:
    """What changes when somebody types these values into the fields."""

    def type_into(**values: str) -> dict[str, Any]:
        page = page_with("edit_mail", ACTION)
        for field, value in values.items():
            kind = page.text_area if field == "text" else page.text_input
            kind(key=f"{field}-k").set_value(value)
        result = json.loads(drawn(page).json[0].value)
        assert isinstance(result, dict)
        return result

    return type_into


def test_the_fields_change_nothing_by_themselves(edited: Callable[..., dict[str, Any]]) -> None:
    assert edited() == {}


def test_the_fields_return_what_was_changed(edited: Callable[..., dict[str, Any]]) -> None:
    assert edited(subject="Neu", text="Anders\n") == {"subject": "Neu", "text": "Anders"}
    assert edited(to='"Groß, Bert" <bert@example.org>; emil@example.org', bcc="") == {
        "to": ['"Groß, Bert" <bert@example.org>', "emil@example.org"],
        "bcc": [],
    }

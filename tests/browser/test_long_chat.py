"""A chat of 500 messages: a part of it is drawn, the whole can be reached, and what is sent fits the model."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect
from sqlalchemy import text

from jarvis_memory.database import open_database
from jarvis_memory.settings import Settings
from jarvis_memory.ui.message_window import SHOWN
from jarvis_memory.users import ensure_user
from tests.browser.app_process import AppProcess
from tests.browser.driver import Visitor, visiting

MESSAGES = 500


def long_chat(data_dir: Path) -> int:
    """The id of a chat with this many messages, of 1,500 characters each, put beside the running app."""
    database = open_database(Settings(_env_file=None, jarvis_data_dir=data_dir))
    with database.begin() as connection:
        user_id = ensure_user(connection)
        chat = connection.scalars(
            text("INSERT INTO conversations (user_id, title) VALUES (:user_id, 'Ein langer Chat') RETURNING id"),
            {"user_id": user_id},
        ).one()
        connection.execute(
            text(
                """INSERT INTO messages (conversation_id, user_id, role, content)
                   SELECT :chat, :user_id, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
                          'Nachricht ' || n || ' ' || repeat('bla ', 375)
                   FROM generate_series(1, :count) AS n"""
            ),
            {"chat": chat, "user_id": user_id, "count": MESSAGES},
        )
    database.close()
    return int(chat)


def message(visitor: Visitor, number: int) -> Locator:
    return visitor.main.get_by_role("paragraph").filter(has_text=f"Nachricht {number} bla")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_chat_shows_its_end_leads_to_its_beginning_and_goes_on(
    browser: Browser, app: AppProcess, width: int
) -> None:
    chat = long_chat(app.data_dir)
    with visiting(browser, app.address, viewport={"width": width, "height": 860}) as visitor:
        visitor.open_chat(f"/?c={chat}")
        expect(message(visitor, MESSAGES)).to_be_in_viewport()
        expect(visitor.questions.or_(visitor.answers)).to_have_count(SHOWN)
        visitor.button("chat.load_earlier").click()
        expect(message(visitor, MESSAGES - SHOWN)).to_be_visible()
        assert visitor.questions.or_(visitor.answers).count() <= SHOWN
        visitor.say("Und wie geht es weiter?")
        expect(visitor.said.last).to_have_text("Und wie geht es weiter?")
        expect(visitor.button("chat.stop")).to_have_count(0)
        answer = visitor.answers.last
        visitor.used(answer).locator("summary").click()
        answer.get_by_text(visitor.texts("sent.show")).click()
        expect(answer.get_by_text(visitor.texts("sent.earlier"))).to_be_visible()

"""`python -m benchmarks.page`: how long a person waits for the chat page, in a real browser.

Chats of 50, 500 and 2,000 messages, without and with 2,000 other chats in the list; a search over all of them.
"""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import which
from time import perf_counter

from playwright.sync_api import Page, sync_playwright
from sqlalchemy import text

from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.settings import Settings
from jarvis_memory.ui.texts import Texts
from jarvis_memory.users import ensure_user
from tests.browser.app_process import running_app
from tests.demo_assistant import respond

LENGTHS = (50, 500, 2_000)
OTHER_CHATS = 2_000
MESSAGES_A_CHAT = 20
ROUNDS = 7
WORDS = ["Wetter", "Garten", "Steuer", "Urlaub", "Fahrrad", "Schule", "Arzt", "Rezept", "Auto", "Rechnung", "Hund"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Settings(_env_file=None, jarvis_data_dir=Path(folder) / "data"))
        migrate(database)
        chats = {length: _write(database, 1, length) for length in LENGTHS}
        with running_app(respond, Path(folder)) as app, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 860}, locale="de-DE")
            print("| | median ms | longest ms |\n|---|---|---|")
            _measure("an empty page (the floor)", lambda: _open(page, app.address))
            for length, (chat,) in chats.items():
                _measure(f"chat of {length:,} messages", lambda chat=chat: _open(page, f"{app.address}/?c={chat}"))
            _write(database, OTHER_CHATS, MESSAGES_A_CHAT)
            for length, (chat,) in chats.items():
                name = f"chat of {length:,} messages beside {OTHER_CHATS:,} chats"
                _measure(name, lambda chat=chat: _open(page, f"{app.address}/?c={chat}"))
            for query in ("Fahrrad Garten", "gibtesnicht"):
                _measure(f"search for “{query}” in {OTHER_CHATS:,} chats", lambda query=query: _search(page, query))
            browser.close()
        database.close()


def _write(database: Database, conversations: int, messages: int) -> list[int]:
    """The ids of new conversations of this many messages each, as if the background had been there."""
    with database.begin() as connection:
        user_id = ensure_user(connection)
        ids = connection.scalars(
            text(
                """INSERT INTO conversations (user_id, title, updated_at)
                   SELECT :user_id, 'Gespräch ' || n, now() - make_interval(hours => n * 3)
                   FROM generate_series(1, :count) AS n RETURNING id"""
            ),
            {"user_id": user_id, "count": conversations},
        ).all()
        connection.execute(
            text(
                """INSERT INTO messages (conversation_id, user_id, role, content, words_indexed, exchange_model)
                   SELECT id, :user_id, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
                          '**Nachricht ' || n || '**: ' || (
                              SELECT string_agg((CAST(:words AS text[]))[1 + (id * 7 + n * 3 + w * w) % :known], ' ')
                              FROM generate_series(1, 60) AS w), true, 'done'
                   FROM unnest(CAST(:ids AS bigint[])) AS id, generate_series(1, :messages) AS n ORDER BY id, n"""
            ),
            {"user_id": user_id, "ids": list(ids), "messages": messages, "words": WORDS, "known": len(WORDS)},
        )
        connection.execute(
            text(
                """INSERT INTO conversation_summaries (conversation_id, user_id, through_message_id)
                   SELECT conversation_id, user_id, max(id) FROM messages
                   WHERE conversation_id = ANY(:ids) GROUP BY 1, 2"""
            ),
            {"ids": list(ids)},
        )
    return list(ids)


def _measure(name: str, run: Callable[[], float]) -> None:
    run()
    times = [run() * 1_000 for _ in range(ROUNDS)]
    print(f"| {name} | {statistics.median(times):.0f} | {max(times):.0f} |", flush=True)


def _open(page: Page, address: str) -> float:
    """Seconds until the page is drawn and one can write."""
    started = perf_counter()
    page.goto(address)
    page.locator("[data-testid=stChatInputTextArea]:enabled").wait_for()
    _wait_until_drawn(page)
    return perf_counter() - started


def _search(page: Page, query: str) -> float:
    """Seconds from Enter to the results."""
    field = page.get_by_placeholder(Texts("de")("list.search"))
    field.fill("")
    field.press("Enter")
    _wait_until_drawn(page)
    field.fill(query)
    started = perf_counter()
    field.press("Enter")
    page.wait_for_timeout(50)
    _wait_until_drawn(page)
    return perf_counter() - started


def _wait_until_drawn(page: Page) -> None:
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


if __name__ == "__main__":
    main()

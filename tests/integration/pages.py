"""What the tests of the pages share: a page drawn without a browser, and what stands on it."""

from pathlib import Path
from typing import Any

from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.ui.texts import Texts

CHAT = Path(__file__).parents[2] / "chat.py"
TEXTS = Texts("de")


def chat_page(conversation_id: int | str | None = None) -> AppTest:
    """The chat page, drawn; with an id as it stands in the address."""
    page = AppTest.from_file(str(CHAT), default_timeout=60)
    if conversation_id is not None:
        page.query_params["c"] = str(conversation_id)
    return drawn(page)


def memory_page(view: str | None = None) -> AppTest:
    """The Memory page, drawn, with this view."""
    page = AppTest.from_file(str(CHAT), default_timeout=60).switch_page("pages/memory.py")
    page = drawn(page)
    if view is not None:
        page.button_group(key="memory_view").set_value(view)
        page = drawn(page)
    return page


def drawn(page: AppTest) -> AppTest:
    """The page after one more run, which must not have raised."""
    page.run()
    assert not page.exception
    return page


def click(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click()
    return drawn(page)


def texts_in(elements: Any) -> list[str]:
    return [element.value for element in elements]


def rows(page: AppTest, kind: str) -> int:
    """How many rows of a list are shown: each has its button to delete."""
    return sum((button.key or "").startswith(kind) for button in page.button)


def bulk(parts: Parts, statement: str) -> None:
    """Insert many rows at once, as if the background had embedded them already."""
    with parts.database.begin() as connection:
        connection.execute(text(statement), {"user_id": parts.user_id, "model": parts.embeddings.model})

"""What every page begins with: the wiring, the sidebar, the links, the state of the memory; or a clear error."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from jarvis_memory.assembly import Parts
from jarvis_memory.errors import JarvisError, SettingsError
from jarvis_memory.preferences import Preferences, load_preferences, note_browser_time_zone
from jarvis_memory.summaries import count_pending, list_pending
from jarvis_memory.ui import wiring
from jarvis_memory.ui.navigation import leave_place
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.sidebar import close_sidebar_on_phones, draw_conversations, draw_navigation
from jarvis_memory.ui.texts import Texts

log = logging.getLogger(__name__)

# A file, because the browser would fetch a symbol's or an emoji's picture from elsewhere.
_ICON = Path(__file__).with_name("icon.png")

# What Streamlit has no setting for: less space on top, a ring around what the keyboard is at, texts that may be pale,
# but not too pale to be read (WCAG 2.2, 1.4.3); on a phone a fact's buttons in one line and the sources of an answer in
# several.
_STYLE = """<style>
.stMainBlockContainer { padding-top: 3.75rem; padding-bottom: 3rem; }
:is(a, summary, button):focus-visible { outline: 2px solid currentColor !important; outline-offset: 2px; }
[data-testid="stCaptionContainer"] { color: inherit !important; opacity: 0.78; }
[data-testid="stExpander"] summary:not(:hover) { opacity: 0.78 !important; }
button[role="radio"][aria-checked="true"] { color: inherit !important; }
[class*="st-key-fact-"] [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; }
[class*="st-key-sources-"] a :is(span, p) { white-space: normal !important; overflow-wrap: anywhere; }
</style>"""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page works with."""

    parts: Parts
    preferences: Preferences
    texts: Texts

    @property
    def user_id(self) -> int:
        """Whose data this page shows."""
        return self.parts.user_id


def draw_page(draw: Callable[..., None], *args: object, otherwise: Callable[[Texts], None] | None = None) -> None:
    """Run a page, or a part of it that is also run alone. What goes wrong is one sentence, then `otherwise` draws."""
    try:
        draw(*args)
        return
    except JarvisError as raised:
        log.warning("A page could not be drawn: %s (%s)", raised, raised.details)
        error = raised
    except Exception:  # noqa: BLE001 - a person must not meet Streamlit's own message; the log has the cause
        log.exception("A page could not be drawn")
        error = JarvisError()
    texts = Texts(st.session_state.get("language") or wiring.get_parts().settings.jarvis_language)
    show_error(texts, error)
    if otherwise is not None:
        otherwise(texts)


def open_page(
    title: str, *, on_chat: bool = False, conversation_id: int | None = None, message_id: int | None = None
) -> Page:
    """Draw the frame and return what the page works with. Where JARVIS cannot start, say why and end the page.

    `title` is a key of the catalogue; the ids are what the chat page shows. Raises DatabaseUnavailable, which
    `draw_page` shows.
    """
    st.set_page_config(page_title="JARVIS", page_icon=_ICON, layout="centered")
    try:
        parts = wiring.get_parts()
    except SettingsError as error:
        st.error(_both("error.SettingsError"), icon=":material/settings_alert:")
        for name, reason, example in error.details["problems"]:
            st.markdown(f"- **{plain(name)}** {plain(reason)}. `{name}={example}`")
        st.stop()
    except JarvisError as error:
        st.error(_both(f"error.{type(error).__name__}"), icon=":material/database_off:")
        st.stop()
    with parts.database.begin() as connection:
        note_browser_time_zone(connection, user_id=parts.user_id, zone=st.context.timezone)
        preferences = load_preferences(connection, user_id=parts.user_id, settings=parts.settings)
    # For the page that cannot read it because the database is away.
    st.session_state["language"] = preferences.language
    page = Page(parts=parts, preferences=preferences, texts=Texts(preferences.language))
    st.set_page_config(page_title=f"{page.texts(title)} · JARVIS")
    st.html(_STYLE)
    if parts.settings.jarvis_demo:
        st.info(page.texts("demo.label"), icon=":material/theater_comedy:")
    if not on_chat:
        leave_place()
    with st.sidebar:
        draw_navigation(page, on_chat=on_chat)
        _health(page)
        st.fragment(draw_page)(draw_conversations, page, on_chat, conversation_id)
    close_sidebar_on_phones(title, conversation_id, message_id)
    return page


def show_error(texts: Texts, error: JarvisError) -> None:
    """The sentence for an error, in the person's language."""
    # A file's name can be among them.
    details = {key: plain(value) if isinstance(value, str) else value for key, value in error.details.items()}
    st.error(texts.error(type(error).__name__, details), icon=":material/error:")


def _both(key: str) -> str:
    # The language is one of the settings that could not be read.
    return f"{Texts('de')(key)}\n\n{Texts('en')(key)}"


def _health(page: Page) -> None:
    """One line when the memory is not healthy; nothing when it is."""
    for line in health_lines(page):
        st.warning(line, icon=":material/sync_problem:")


def health_lines(page: Page) -> list[str]:
    """What is wrong with the memory, in sentences; empty when it is healthy."""
    texts, lines = page.texts, []
    with page.parts.database.begin() as connection:
        _, failed = count_pending(connection, user_id=page.user_id)
        worst = list_pending(connection, user_id=page.user_id, limit=1) if failed else []
    if worst:
        lines.append(texts.counted("health.failed", failed, reason=texts.error(worst[0].last_error or "")))
    embedding_error = page.parts.background.embedding_error
    if embedding_error:
        lines.append(texts("health.embedding", reason=texts.error(embedding_error)))
    return lines

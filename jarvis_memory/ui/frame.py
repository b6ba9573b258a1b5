"""What every page begins with: the wiring, the sidebar, the links, the state of the memory; or a clear error."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import list_conversations
from jarvis_memory.errors import JarvisError, SettingsError
from jarvis_memory.running_turns import TURNS
from jarvis_memory.summaries import count_pending, list_pending
from jarvis_memory.ui import wiring
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

log = logging.getLogger(__name__)

CONVERSATIONS_SHOWN = 40
# A file, because the browser would fetch a symbol's or an emoji's picture from elsewhere.
_ICON = Path(__file__).with_name("icon.png")

# What Streamlit has no setting for: a list of conversations that reads as a list, and less empty space on top.
_STYLE = """<style>
.stMainBlockContainer { padding-top: 3.75rem; padding-bottom: 3rem; }
.st-key-conversations { gap: 0.1rem; }
.st-key-conversations .stButton button { padding: 0.15rem 0.5rem; min-height: 2rem; }
.st-key-conversations .stButton button div { justify-content: flex-start; min-width: 0; overflow: hidden; }
.st-key-conversations .stButton button > div, .st-key-conversations .stButton button > div > span { width: 100%;
  min-width: 0; justify-content: flex-start; text-align: left; }
.st-key-conversations .stButton button p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
</style>"""

# On a phone the sidebar covers the page, and Streamlit leaves it open over what was chosen in it, even after a reload.
_CLOSE_SIDEBAR = """<script>
// {place}
if (window.innerWidth < 768)
  document.querySelector("[data-testid=stSidebarCollapseButton] button[aria-expanded=true]")?.click();
</script>"""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page works with."""

    parts: Parts
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
    texts = Texts(wiring.get_parts().settings.jarvis_language)
    show_error(texts, error)
    if otherwise is not None:
        otherwise(texts)


def open_page(title: str, *, on_chat: bool = False, conversation_id: int | None = None) -> Page:
    """Draw the frame and return what the page works with. Where JARVIS cannot start, say why and end the page.

    `title` is a key of the catalogue. Raises DatabaseUnavailable, which `draw_page` shows.
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
    page = Page(parts=parts, texts=Texts(parts.settings.jarvis_language))
    st.set_page_config(page_title=f"{page.texts(title)} · JARVIS")
    st.html(_STYLE)
    if parts.settings.jarvis_demo:
        st.info(page.texts("demo.label"), icon=":material/theater_comedy:")
    _sidebar(page, on_chat, conversation_id)
    _close_sidebar_on_phones(title, conversation_id)
    return page


def show_error(texts: Texts, error: JarvisError) -> None:
    """The sentence for an error, in the person's language."""
    st.error(texts.error(type(error).__name__, error.details), icon=":material/error:")


def open_conversation(conversation_id: int | None) -> None:
    """Show this conversation, or a new chat, on the chat page."""
    if conversation_id is None:
        st.query_params.clear()
    else:
        st.query_params["c"] = str(conversation_id)
    st.session_state.pop("messages_shown", None)


def go_to_conversation(conversation_id: int | None, *, on_chat: bool) -> None:
    """Leave for this conversation, or a new chat, from the chat page or another one. Does not return."""
    if not on_chat:
        st.switch_page("chat.py", query_params={} if conversation_id is None else {"c": str(conversation_id)})
    open_conversation(conversation_id)
    st.rerun()


def _both(key: str) -> str:
    # The language is one of the settings that could not be read.
    return f"{Texts('de')(key)}\n\n{Texts('en')(key)}"


def _sidebar(page: Page, on_chat: bool, conversation_id: int | None) -> None:
    texts = page.texts
    with st.sidebar:
        st.markdown("### :material/neurology: JARVIS")
        if st.button(texts("nav.new_chat"), icon=":material/edit_square:", type="primary", width="stretch"):
            go_to_conversation(None, on_chat=on_chat)
        st.page_link("pages/memory.py", label=texts("nav.memory"), icon=":material/bookmark_manager:")
        _health(page)
        st.caption(texts("nav.conversations"))
        shown = st.session_state.setdefault("conversations_shown", CONVERSATIONS_SHOWN)
        with page.parts.database.begin() as connection:
            found = list_conversations(connection, user_id=page.user_id, limit=shown + 1)
        running = TURNS.running()
        with st.container(key="conversations"):
            for conversation in found[:shown]:
                if st.button(
                    plain(conversation.title or texts("nav.untitled")),
                    key=f"conversation-{conversation.id}",
                    type="secondary" if conversation.id == conversation_id else "tertiary",
                    icon=":material/pending:" if conversation.id in running else None,
                    width="stretch",
                ):
                    go_to_conversation(conversation.id, on_chat=on_chat)
        if not found:
            st.caption(texts("nav.no_conversations"))
        if len(found) > shown and st.button(texts("nav.more"), type="tertiary"):
            st.session_state["conversations_shown"] = shown + CONVERSATIONS_SHOWN
            st.rerun()


def _close_sidebar_on_phones(*place: object) -> None:
    """Once for every new place: its page and conversation."""
    if st.session_state.get("place") != place:
        st.session_state["place"] = place
        # With the place in it, it is another script than the last one, and runs.
        with st.sidebar:
            st.html(_CLOSE_SIDEBAR.replace("{place}", repr(place)), unsafe_allow_javascript=True)


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

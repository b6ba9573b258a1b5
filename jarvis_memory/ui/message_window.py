"""Which messages of a long chat are shown: its end, or those around one of them. Never more than SHOWN."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st
from sqlalchemy import Connection

from jarvis_memory.conversations import Message, load_messages
from jarvis_memory.ui.frame import Page

SHOWN = 60
_AROUND = SHOWN // 2

_STYLE = "<style>[class*=st-key-message-] { scroll-margin-top: 4rem; }</style>"
_MARK = """<style>
.st-key-message-{id} .stChatMessage { background: rgba(63, 135, 187, 0.18); border-radius: 0.5rem; }
</style>"""
# Until it stays there, because Streamlit scrolls a chat that it draws to its end; not against the person's own hand.
_SCROLL = """<script>
{
  let place = null, times = 0;
  const timer = setInterval(() => {
    const message = document.querySelector(".st-key-message-{id}");
    const top = () => Math.round(message.getBoundingClientRect().top);
    const isDone = message && top() === place && times > 16;
    if (++times === 60 || isDone || document.querySelector("[role=menu], [role=dialog]")) return clearInterval(timer);
    if (message && top() !== place) {
      message.scrollIntoView({block: "start"});
      place = top();
    }
  }, 250);
  for (const hand of ["wheel", "pointerdown", "keydown"])
    addEventListener(hand, () => clearInterval(timer), {once: true, capture: true});
}
</script>"""
# After that Streamlit keeps it there.
_SCROLL_TO_END = """<script>
for (const wait of [0, 300, 1000])
  setTimeout(() => document.querySelector("[data-testid=stAppScrollToBottomContainer]")?.scrollTo(0, 1e9), wait);
</script>"""


@dataclass(frozen=True, kw_only=True)
class Window:
    """A part of a conversation, and whether there is more before and after it."""

    messages: list[Message]
    earlier: bool
    later: bool
    # The message it was opened at; None at the end of the chat.
    at: int | None


def load_window(connection: Connection, *, user_id: int, conversation_id: int, at: int | None) -> Window:
    """The messages around the one `at`; the newest ones without it, or when it is not one of this conversation."""

    def load(**options: Any) -> list[Message]:
        return load_messages(connection, user_id=user_id, conversation_id=conversation_id, **options)

    after = load(after_id=at - 1, limit=_AROUND + 1, oldest_first=True) if at is not None else []
    if at is None or not after or after[0].id != at:
        messages = load(limit=SHOWN + 1)
        return Window(messages=messages[-SHOWN:], earlier=len(messages) > SHOWN, later=False, at=None)
    before = load(before_id=at, limit=_AROUND + 1)
    return Window(
        messages=before[-_AROUND:] + after[:_AROUND],
        earlier=len(before) > _AROUND,
        later=len(after) > _AROUND,
        at=at,
    )


def open_window(page: Page, conversation_id: int, message_id: int | None) -> Window:
    """The part of the conversation that the person went to last; first the one around the address's message."""
    chosen_in, chosen = st.session_state.get("window_at", (conversation_id, message_id))
    with page.parts.database.begin() as connection:
        return load_window(
            connection,
            user_id=page.user_id,
            conversation_id=conversation_id,
            at=chosen if chosen_in == conversation_id else message_id,
        )


def draw_window(
    page: Page, conversation_id: int, message_id: int | None, window: Window, draw: Callable[[], None]
) -> None:
    """What `draw` draws of the window, between the ways to what is before and after it."""
    st.html(_STYLE + (_MARK.replace("{id}", str(message_id)) if window.at == message_id is not None else ""))
    texts = page.texts
    first, last = (window.messages[0].id, window.messages[-1].id) if window.messages else (None, None)
    if window.earlier:
        _draw_way(texts("chat.load_earlier"), "earlier", ":material/history:", conversation_id, first)
    draw()
    if window.later:
        with st.container(horizontal=True, key="later"):
            _draw_way(texts("chat.load_later"), "load-later", ":material/expand_more:", conversation_id, last)
            end = ":material/vertical_align_bottom:"
            _draw_way(texts("chat.to_the_end"), "to-the-end", end, conversation_id, None)
    _scroll(conversation_id, window)


def _draw_way(label: str, key: str, icon: str, conversation_id: int, message_id: int | None) -> None:
    st.button(label, key=key, icon=icon, width="stretch", on_click=_move_to, args=(conversation_id, message_id))


def _move_to(conversation_id: int, message_id: int | None) -> None:
    st.session_state["window_at"] = (conversation_id, message_id)


def _scroll(conversation_id: int, window: Window) -> None:
    """Once for every place that is opened; to the end for who comes there from farther up."""
    place = (conversation_id, window.at)
    former = st.session_state.get("scrolled_to", (None, None))
    st.session_state["scrolled_to"] = place
    if place == former:
        return
    if window.at is not None:
        st.html(_SCROLL.replace("{id}", str(window.at)), unsafe_allow_javascript=True)
    elif former[0] == conversation_id:
        st.html(_SCROLL_TO_END, unsafe_allow_javascript=True)

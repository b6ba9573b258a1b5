"""The sidebar: a new chat, the other pages, and the conversations: by time, archived, or found by a search."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from jarvis_memory.conversation_search import RESULTS, Found, search_conversations, split_at_hits
from jarvis_memory.conversations import Conversation, count_archived, list_conversations
from jarvis_memory.prompts import written_date
from jarvis_memory.running_turns import TURNS
from jarvis_memory.ui.dates import written_month
from jarvis_memory.ui.navigation import go_to_conversation
from jarvis_memory.ui.safe_markdown import plain

if TYPE_CHECKING:  # frame.py draws the sidebar
    from jarvis_memory.ui.frame import Page

CONVERSATIONS_SHOWN = 40

# What Streamlit has no setting for: a list of conversations that reads as a list.
_STYLE = """<style>
.st-key-conversations { gap: 0.1rem; }
.st-key-conversations [data-testid=stCaptionContainer] { padding: 0.5rem 0.5rem 0; }
.st-key-conversations .stButton button { padding: 0.15rem 0.5rem; min-height: 2rem; }
:is(.st-key-conversations, .st-key-found) .stButton button div { justify-content: flex-start; min-width: 0;
  overflow: hidden; }
:is(.st-key-conversations, .st-key-found) .stButton button > div,
:is(.st-key-conversations, .st-key-found) .stButton button > div > span { width: 100%; min-width: 0;
  justify-content: flex-start; text-align: left; }
.st-key-conversations .stButton button p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.st-key-found { gap: 0.25rem; }
.st-key-found .stButton button { padding: 0.35rem 0.5rem; }
.st-key-found .stButton button p { overflow-wrap: anywhere; line-height: 1.35; }
.st-key-found .stMarkdownColoredBackground { padding: 0 !important; margin: 0 !important; }
</style>"""

# On a phone the sidebar covers the page, and Streamlit leaves it open over what was chosen in it, even after a reload.
_CLOSE_SIDEBAR = """<script>
// {place}
if (window.innerWidth < 768)
  document.querySelector("[data-testid=stSidebarCollapseButton] button[aria-expanded=true]")?.click();
</script>"""


def draw_navigation(page: "Page", *, on_chat: bool) -> None:
    """The name, a new chat and the links to the other pages."""
    texts = page.texts
    st.html(_STYLE)
    st.markdown("### :material/neurology: JARVIS")
    if st.button(texts("nav.new_chat"), icon=":material/edit_square:", type="primary", width="stretch"):
        go_to_conversation(None, on_chat=on_chat)
    st.page_link("pages/memory.py", label=texts("nav.memory"), icon=":material/bookmark_manager:")
    st.page_link("pages/documents.py", label=texts("nav.documents"), icon=":material/library_books:")
    st.page_link("pages/settings.py", label=texts("nav.settings"), icon=":material/settings:")


def draw_conversations(page: "Page", on_chat: bool, conversation_id: int | None) -> None:
    """The search, and below it what it found or all conversations. Drawn alone while one types."""
    query = st.text_input(
        page.texts("list.search"),
        key="search-conversations",
        type="search",
        placeholder=page.texts("list.search"),
        label_visibility="collapsed",
        live=True,
        persist_state="session",
    )
    if query.strip():
        _draw_found(page, query, on_chat)
    else:
        _draw_list(page, on_chat, conversation_id)


def _draw_list(page: "Page", on_chat: bool, conversation_id: int | None) -> None:
    texts, state = page.texts, st.session_state
    shown = state.setdefault("conversations_shown", CONVERSATIONS_SHOWN)
    with page.parts.database.begin() as connection:
        archived = count_archived(connection, user_id=page.user_id)
        in_archive = state.get("archive_open", False) and archived > 0
        found = list_conversations(connection, user_id=page.user_id, limit=shown + 1, archived=in_archive)
    if in_archive:
        label = texts("list.leave_archive")
        st.button(label, key="leave-archive", icon=":material/arrow_back:", type="tertiary", on_click=_set_archive_open)
        st.markdown(f"**{texts('list.archive')}**")
    running, today, group = TURNS.running(), datetime.now(UTC).astimezone(page.preferences.time_zone), ""
    with st.container(key="conversations"):
        for conversation in found[:shown]:
            former, group = group, _group(page, conversation, today)
            if group != former:
                st.caption(group)
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
    if len(found) > shown:
        st.button(texts("nav.more"), key="more-conversations", type="tertiary", on_click=_show_more)
    if archived and not in_archive:
        label = f"{texts('list.archive')} ({archived})"
        st.button(
            label, key="archive", icon=":material/archive:", type="tertiary", on_click=_set_archive_open, args=(True,)
        )


def _group(page: "Page", conversation: Conversation, today: datetime) -> str:
    """The heading that the conversation stands below."""
    texts = page.texts
    if conversation.pinned:
        return texts("list.pinned")
    day = conversation.updated_at.astimezone(page.preferences.time_zone).date()
    days = (today.date() - day).days
    if days <= 0:
        return texts("list.today")
    if days == 1:
        return texts("list.yesterday")
    return texts("list.last_week") if days <= 7 else written_month(day, texts.language)


def _show_more() -> None:
    st.session_state["conversations_shown"] += CONVERSATIONS_SHOWN


def _set_archive_open(is_open: bool = False) -> None:
    st.session_state["archive_open"] = is_open
    st.session_state["conversations_shown"] = CONVERSATIONS_SHOWN


def _draw_found(page: "Page", query: str, on_chat: bool) -> None:
    with page.parts.database.begin() as connection:
        found = search_conversations(connection, user_id=page.user_id, query=query)
    with st.container(key="found"):
        for one in found:
            if st.button(
                _found_label(page, one, query), key=f"found-{one.conversation_id}", type="tertiary", width="stretch"
            ):
                go_to_conversation(one.conversation_id, on_chat=on_chat, message_id=one.message_id)
    if not found:
        st.caption(page.texts("list.nothing_found"))
    elif len(found) == RESULTS:
        st.caption(page.texts("list.found_more", count=RESULTS))


def _found_label(page: "Page", one: Found, query: str) -> str:
    """Title, date, and the words around the hit, which is marked."""
    texts = page.texts
    when = written_date(one.moment, texts.language, page.preferences.time_zone)
    beside = f"{when} · {texts('list.archive')}" if one.archived else when
    lines = [f"**{_marked(one.title or texts('nav.untitled'), query)}**", f":small[:gray[{plain(beside)}]]"]
    if one.snippet:
        lines.append(f":small[{_marked(one.snippet, query)}]")
    return "  \n".join(lines)


def _marked(line: str, query: str) -> str:
    return "".join(
        f":primary-background[{plain(piece)}]" if is_hit else plain(piece)
        for piece, is_hit in split_at_hits(line, query)
    )


def close_sidebar_on_phones(*place: object) -> None:
    """Once for every new place: its page, conversation and message."""
    if st.session_state.get("place") != place:
        st.session_state["place"] = place
        # With the place in it, it is another script than the last one, and runs.
        with st.sidebar:
            st.html(_CLOSE_SIDEBAR.replace("{place}", repr(place)), unsafe_allow_javascript=True)

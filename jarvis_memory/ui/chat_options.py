"""What a chat may know and what becomes of it: temporary, and the switch "memory in this chat"."""

import streamlit as st

from jarvis_memory.conversations import Conversation, ConversationOptions, update_conversation
from jarvis_memory.memory_switch import switch_memory
from jarvis_memory.running_turns import TURNS
from jarvis_memory.temporary_chats import SEEN_EVERY_SECONDS, close_temporary_chat, see_temporary_chat
from jarvis_memory.ui.frame import Page, draw_page
from jarvis_memory.ui.model_picker import draw_model_picker


def draw_new_chat_options(page: Page) -> ConversationOptions:
    """The switches above a new chat, and what they say."""
    texts = page.texts
    with st.container(horizontal=True, vertical_alignment="center", key="new-options"):
        temporary = st.toggle(texts("options.temporary"), key="new_temporary", help=texts("options.temporary_help"))
        memory = _draw_toggle(page, temporary, page.preferences.memory, "new_memory")
        with st.popover(texts("model.short"), icon=":material/tune:", type="tertiary", key="options"):
            model = draw_model_picker(page, None)
    return ConversationOptions(remember=memory and not temporary, reads_memory=memory, temporary=temporary, model=model)


def draw_memory_switch(page: Page, conversation: Conversation) -> None:
    """The switch of a chat that there is; a temporary one is never written to the memory."""
    temporary = conversation.temporary
    wanted = _draw_toggle(page, temporary, conversation.reads_memory, f"memory-{conversation.id}")
    if wanted == conversation.reads_memory:
        return
    with page.parts.database.begin() as connection:
        if temporary:
            update_conversation(connection, user_id=page.user_id, conversation_id=conversation.id, reads_memory=wanted)
        else:
            switch_memory(connection, user_id=page.user_id, conversation_id=conversation.id, on=wanted)
    page.parts.background.wake()
    st.rerun()


def _draw_toggle(page: Page, temporary: bool, is_on: bool, key: str) -> bool:
    """Memory in this chat; of a temporary one it is only read."""
    texts = page.texts
    return st.toggle(
        texts("options.memory_read" if temporary else "options.memory"),
        value=is_on,
        key=key,
        help=texts("options.memory_read_help" if temporary else "options.memory_help"),
    )


def draw_options_of(page: Page, conversation: Conversation) -> None:
    """What is unusual about this chat, in one line each."""
    texts = page.texts
    if conversation.temporary:
        st.info(texts("options.is_temporary"), icon=":material/visibility_off:")
    if not conversation.reads_memory:
        st.caption(f":material/bookmark_remove: {texts('options.is_without_memory')}")


def keep_temporary_chat(page: Page, conversation: Conversation | None) -> None:
    """While a page shows a temporary chat it lives; when the page shows another one it is closed for good."""
    shown = conversation.id if conversation is not None and conversation.temporary else None
    left = st.session_state.get("temporary_chat")
    if left not in (None, shown):
        TURNS.stop(user_id=page.user_id, conversation_id=left)
        with page.parts.database.begin() as connection:
            close_temporary_chat(connection, user_id=page.user_id, conversation_id=left)
    st.session_state["temporary_chat"] = shown
    if shown is not None:
        st.fragment(run_every=SEEN_EVERY_SECONDS)(draw_page)(_see, page, shown)


def _see(page: Page, conversation_id: int) -> None:
    with page.parts.database.begin() as connection:
        see_temporary_chat(connection, user_id=page.user_id, conversation_id=conversation_id)

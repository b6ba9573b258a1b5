"""Which model answers in a chat: the list of the settings, the person's default marked."""

import streamlit as st

from jarvis_memory.conversations import Conversation, update_conversation
from jarvis_memory.preferences import Preferences
from jarvis_memory.settings import Settings
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.texts import Texts


def models_to_choose(settings: Settings, *chosen: str | None) -> list[str]:
    """The list of the settings, and what is chosen already though the list does not have it (any more)."""
    return list(dict.fromkeys([*settings.models, *(model for model in chosen if model)]))


def draw_model_picker(page: Page, conversation: Conversation | None) -> str | None:
    """The choice for this chat, None for the default; for a new one it is remembered as `new_chat_model`."""
    default, key = page.preferences.model, f"model-{conversation.id if conversation else 'new'}"
    chosen = conversation.model if conversation else st.session_state.get("new_chat_model")
    if st.session_state.pop(f"{key}-made", False):
        # The default is no choice: the chat follows it when it changes.
        chosen = None if st.session_state[key] == default else st.session_state[key]
        if conversation is None:
            st.session_state["new_chat_model"] = chosen
        else:
            with page.parts.database.begin() as connection:
                update_conversation(connection, user_id=page.user_id, conversation_id=conversation.id, model=chosen)
    # What is in effect, also when another tab changed it.
    st.session_state[key] = chosen or default
    st.selectbox(
        page.texts("model.label"),
        models_to_choose(page.parts.settings, default, chosen),
        key=key,
        format_func=lambda model: _label(page.texts, page.preferences, model),
        # Saved in the run of the page and not in the callback, whose errors nobody would translate.
        on_change=_note,
        args=(f"{key}-made",),
    )
    return chosen


def _note(flag: str) -> None:
    st.session_state[flag] = True


def _label(texts: Texts, preferences: Preferences, model: str) -> str:
    return texts("model.default", model=model) if model == preferences.model else model

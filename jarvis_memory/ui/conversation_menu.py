"""The heading of the open chat with its menu: rename, pin, archive, delete; and the way back from a deletion."""

import streamlit as st

from jarvis_memory.conversations import Conversation, rename_conversation, update_conversation
from jarvis_memory.deletions import Deletion, count_facts_from, delete_conversation, undo_deletion
from jarvis_memory.errors import DeletionExpired, TitleUnusable
from jarvis_memory.running_turns import TURNS
from jarvis_memory.ui.chat_options import draw_memory_switch
from jarvis_memory.ui.frame import Page, draw_page, show_error
from jarvis_memory.ui.model_picker import draw_model_picker
from jarvis_memory.ui.navigation import go_to_conversation, open_conversation
from jarvis_memory.ui.safe_markdown import plain

# What can be done with a chat: the text and the icon of each.
_ACTIONS = {
    "rename": ("conversation.rename", ":material/edit:"),
    "pin": ("conversation.pin", ":material/keep:"),
    "unpin": ("conversation.unpin", ":material/keep_off:"),
    "archive": ("conversation.archive", ":material/archive:"),
    "unarchive": ("conversation.unarchive", ":material/unarchive:"),
    "delete": ("chat.delete", ":material/delete:"),
}
# An archived chat is out of the way: it is in no group.
_CHANGES = {
    "pin": {"pinned": True, "archived": False},
    "unpin": {"pinned": False},
    "archive": {"archived": True, "pinned": False},
    "unarchive": {"archived": False},
}


def draw_heading(page: Page, conversation: Conversation) -> None:
    """The title, and the menu of what can be done with the chat."""
    texts = page.texts
    with st.container(horizontal=True, vertical_alignment="center", wrap=False, key="heading"):
        st.markdown(f"#### {plain(conversation.title or texts('nav.untitled'))}", width="stretch", anchors=False)
        with st.popover("", icon=":material/tune:", help=texts("options.heading"), key="options", type="tertiary"):
            draw_memory_switch(page, conversation)
            draw_model_picker(page, conversation)
        chosen = st.menu_button(
            "",
            _actions_for(conversation),
            format_func=lambda action: _label(page, action),
            key="menu",
            icon=":material/more_vert:",
            help=texts("conversation.menu"),
            type="tertiary",
        )
    if chosen in _CHANGES:
        _change(page, conversation, chosen)
    elif chosen:
        st.session_state["dialog"] = (chosen, conversation.id)
    _draw_dialog(page, conversation)
    if conversation.archived:
        with st.container(border=True, horizontal=True, vertical_alignment="center", wrap=False, key="archived"):
            st.markdown(f":material/archive: {texts('conversation.archived')}", width="stretch")
            if st.button(texts("conversation.unarchive"), key="unarchive", icon=":material/unarchive:"):
                _change(page, conversation, "unarchive")


def _actions_for(conversation: Conversation) -> list[str]:
    # A temporary chat is in no list.
    if conversation.temporary:
        return ["delete"]
    return ["rename", _toggle(conversation.pinned, "pin"), _toggle(conversation.archived, "archive"), "delete"]


def _label(page: Page, action: str) -> str:
    key, icon = _ACTIONS[action]
    return f"{icon} {page.texts(key)}"


def _toggle(is_on: bool, action: str) -> str:
    return f"un{action}" if is_on else action


def _change(page: Page, conversation: Conversation, action: str) -> None:
    with page.parts.database.begin() as connection:
        update_conversation(connection, user_id=page.user_id, conversation_id=conversation.id, **_CHANGES[action])
    st.rerun()


def _draw_dialog(page: Page, conversation: Conversation) -> None:
    # Kept until it is closed: a turn that ends meanwhile draws the whole page anew.
    action, of = st.session_state.get("dialog", (None, None))
    if of == conversation.id:
        draw = {"rename": _rename, "delete": _confirm_deletion}[action]
        st.dialog(_label(page, action), on_dismiss=_close_dialog)(draw_page)(draw, page, conversation)


def _close_dialog() -> None:
    st.session_state.pop("dialog", None)


def _rename(page: Page, conversation: Conversation) -> None:
    """A field with the title. Runs inside a dialog."""
    texts = page.texts
    with st.form("rename", border=False):
        title = st.text_input(texts("conversation.title"), value=conversation.title, key="title")
        # Alone in the form: Enter presses the first button.
        sure = st.form_submit_button(texts("memory.save"), type="primary", width="stretch")
    if not sure:
        return
    try:
        with page.parts.database.begin() as connection:
            rename_conversation(connection, user_id=page.user_id, conversation_id=conversation.id, title=title)
    except TitleUnusable as error:
        show_error(texts, error)
        return
    page.parts.background.wake()
    _close_dialog()
    st.rerun()


def _confirm_deletion(page: Page, conversation: Conversation) -> None:
    """Ask, then delete. Runs inside a dialog."""
    texts = page.texts
    with page.parts.database.begin() as connection:
        facts = count_facts_from(connection, user_id=page.user_id, conversation_id=conversation.id)
    question = "chat.delete_question_temporary" if conversation.temporary else "chat.delete_question"
    st.markdown(texts(question, title=plain(conversation.title)))
    with_facts = facts > 0 and st.checkbox(texts("chat.delete_facts", count=facts))
    left, right = st.columns(2)
    if left.button(texts("cancel"), width="stretch"):
        _close_dialog()
        st.rerun()
    if right.button(texts("chat.delete"), type="primary", width="stretch", key="really-delete"):
        # A turn that still runs would write into what is stored for Undo.
        TURNS.stop(user_id=page.user_id, conversation_id=conversation.id)
        with page.parts.database.begin() as connection:
            gone = delete_conversation(
                connection, user_id=page.user_id, conversation_id=conversation.id, with_facts=with_facts
            )
        _close_dialog()
        open_conversation(None)
        st.session_state["deletion"] = (conversation.title, gone)
        st.rerun()


def draw_deletion(page: Page) -> None:
    """What was deleted last, with Undo; until the person goes on to something else."""
    if "deletion" not in st.session_state:
        return
    texts = page.texts
    title, gone = st.session_state["deletion"]
    with st.container(border=True, horizontal=True, vertical_alignment="center", wrap=False, key="deleted"):
        st.markdown(f":material/delete: {_receipt(page, title, gone)}", width="stretch")
        if gone.id is not None and st.button(texts("undo"), key="undo-deletion", icon=":material/undo:"):
            _undo(page, title, gone.id)


def _receipt(page: Page, title: str, gone: Deletion) -> str:
    texts = page.texts
    return texts(
        "chat.deleted",
        title=plain(title or texts("nav.untitled")),
        messages=texts.counted("count.messages", gone.messages),
        summaries=texts.counted("count.summaries", gone.summaries),
        facts=texts.counted("count.facts", gone.facts),
    )


def _undo(page: Page, title: str, deletion_id: int) -> None:
    try:
        with page.parts.database.begin() as connection:
            conversation_id = undo_deletion(connection, user_id=page.user_id, deletion_id=deletion_id)
    except DeletionExpired as error:
        del st.session_state["deletion"]
        show_error(page.texts, error)
        return
    page.parts.background.wake()
    st.toast(page.texts("chat.restored", title=plain(title or page.texts("nav.untitled"))), icon=":material/undo:")
    go_to_conversation(conversation_id, on_chat=True)

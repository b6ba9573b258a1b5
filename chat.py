"""The chat page: draw, pass the message down, draw what comes back. The answer itself lives in a worker thread."""

import streamlit as st

from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.conversations import (
    Conversation,
    count_facts_from,
    delete_conversation,
    get_conversation,
    load_messages,
)
from jarvis_memory.errors import ConversationNotFound, JarvisError
from jarvis_memory.running_turns import TURNS, RunningTurn
from jarvis_memory.ui.bubbles import draw_answer, draw_messages
from jarvis_memory.ui.frame import Page, draw_page, open_conversation, open_page, show_error
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.set_up import draw_set_up_card
from jarvis_memory.ui.texts import Texts

MESSAGES_SHOWN = 50
LONGEST_ID = 2**31 - 1


def chosen_conversation_id() -> int | None:
    """The id in the address, None for a new chat or nonsense."""
    wanted = st.query_params.get("c", "")
    return int(wanted) if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= LONGEST_ID else None


def load_conversation(page: Page, conversation_id: int | None) -> Conversation | None:
    """The conversation of the address; a new chat with a hint when it is gone or somebody else's."""
    if conversation_id is None:
        return None
    try:
        with page.parts.database.begin() as connection:
            return get_conversation(connection, user_id=page.user_id, conversation_id=conversation_id)
    except ConversationNotFound:
        st.info(page.texts("chat.not_found"), icon=":material/info:")
        open_conversation(None)
        return None


def send(page: Page, message: str, conversation: Conversation | None) -> None:
    """Start the turn. When that is impossible the text goes back into the input, with the reason above it."""
    try:
        turn = start_turn(
            page.parts,
            user_id=page.user_id,
            message=message,
            conversation_id=conversation.id if conversation else None,
        )
    except JarvisError as error:
        st.session_state["refused"] = (message, error)
    else:
        open_conversation(turn.conversation_id)
    st.rerun()


def confirm_deletion(page: Page, conversation: Conversation) -> None:
    """Ask, delete, say what went. Runs inside a dialog."""
    texts = page.texts
    st.markdown(texts("chat.delete_question", title=plain(conversation.title)))
    with page.parts.database.begin() as connection:
        facts = count_facts_from(connection, user_id=page.user_id, conversation_id=conversation.id)
    with_facts = facts > 0 and st.checkbox(texts("chat.delete_facts", count=facts))
    left, right = st.columns(2)
    if left.button(texts("cancel"), width="stretch"):
        st.rerun()
    if right.button(texts("chat.delete"), type="primary", width="stretch", key="really-delete"):
        with page.parts.database.begin() as connection:
            gone = delete_conversation(
                connection, user_id=page.user_id, conversation_id=conversation.id, with_facts=with_facts
            )
        st.session_state["receipt"] = texts(
            "chat.deleted",
            messages=texts.counted("count.messages", gone.messages),
            summaries=texts.counted("count.summaries", gone.summaries),
            facts=texts.counted("count.facts", gone.facts),
        )
        open_conversation(None)
        st.rerun()


def draw_heading(page: Page, conversation: Conversation) -> None:
    """The title, and the way to delete the chat."""
    with st.container(horizontal=True, vertical_alignment="center", wrap=False, key="heading"):
        st.markdown(f"#### {plain(conversation.title or page.texts('nav.untitled'))}", width="stretch", anchors=False)
        if st.button("", key="delete", icon=":material/delete:", help=page.texts("chat.delete"), type="tertiary"):
            st.dialog(page.texts("chat.delete"))(draw_page)(confirm_deletion, page, conversation)


def draw_empty(page: Page) -> None:
    """A new chat: what to say."""
    st.markdown(f"## {page.texts('chat.empty_heading')}")
    st.caption(page.texts("chat.empty_hint"))
    for number in (1, 2, 3):
        example = page.texts(f"chat.example_{number}")
        if st.button(example, key=f"example-{number}", icon=":material/chat:", width="stretch"):
            send(page, example, None)


@st.fragment(run_every=0.5)
def draw_running(page: Page, turn: RunningTurn) -> None:
    """The answer as it grows, with Stop. It only looks; when the turn is done the whole page is drawn anew."""
    if turn.done.is_set():
        st.rerun()
    content, blocks, thinking = turn.snapshot()
    with st.chat_message("assistant", avatar=":material/neurology:"):
        draw_answer(page, content, blocks, undone={}, key="running", running=True)
        state, stop = st.columns([0.75, 0.25], vertical_alignment="center")
        state.caption(f":material/more_horiz: {page.texts('chat.thinking' if thinking else 'chat.working')}")
        if stop.button(page.texts("chat.stop"), icon=":material/stop_circle:", key="stop", width="stretch"):
            turn.stop.set()


def draw_conversation(page: Page, conversation: Conversation) -> RunningTurn | None:
    """The messages, and the running turn if there is one."""
    # The register before the rows: a turn that ends in between is then drawn once more, and never missed.
    turn = TURNS.get(conversation.id)
    shown = st.session_state.setdefault("messages_shown", MESSAGES_SHOWN)
    with page.parts.database.begin() as connection:
        messages = load_messages(connection, user_id=page.user_id, conversation_id=conversation.id, limit=shown + 1)
    if len(messages) > shown:
        messages = messages[1:]
        if st.button(page.texts("chat.load_earlier"), icon=":material/history:", width="stretch"):
            st.session_state["messages_shown"] = shown + MESSAGES_SHOWN
            st.rerun()
    draw_messages(page, [message for message in messages if turn is None or message.id != turn.answer_message_id])
    if turn is not None:
        draw_running(page, turn)
    elif messages and (messages[-1].role == "user" or messages[-1].status != "complete"):
        draw_retry(page, conversation)
    return turn


def draw_retry(page: Page, conversation: Conversation) -> None:
    """The way on from an answer that is not whole."""
    if st.button(page.texts("chat.retry"), icon=":material/refresh:", key="retry"):
        try:
            retry_turn(page.parts, user_id=page.user_id, conversation_id=conversation.id)
        except JarvisError as error:
            show_error(page.texts, error)
        else:
            st.rerun()


def draw_chat() -> None:
    """The page from top to bottom."""
    conversation_id = chosen_conversation_id()
    page = open_page("nav.chat", on_chat=True, conversation_id=conversation_id)
    configured = page.parts.settings.claude_is_configured
    if "receipt" in st.session_state:
        st.toast(st.session_state.pop("receipt"), icon=":material/delete:")
    conversation = load_conversation(page, conversation_id)
    turn = None
    if conversation is not None:
        draw_heading(page, conversation)
        turn = draw_conversation(page, conversation)
    elif configured:
        draw_empty(page)
    if not configured:
        draw_set_up_card(page.texts)
    if "refused" in st.session_state:
        message, error = st.session_state.pop("refused")
        show_error(page.texts, error)
        st.caption(page.texts("chat.kept"))
        st.session_state["message"] = message
    placeholder = "placeholder" if turn is None else "placeholder_running"
    message = st.chat_input(
        page.texts(f"chat.{placeholder if configured else 'placeholder_set_up'}"),
        key="message",
        disabled=not configured,
    )
    if message:
        send(page, message, conversation)


def keep_message(texts: Texts) -> None:
    """What was sent to a page that could not be drawn goes back into the input."""
    if message := st.session_state.get("message"):
        st.caption(texts("chat.kept"))
        st.session_state["message"] = message
        st.chat_input(texts("chat.placeholder"), key="message")


draw_page(draw_chat, otherwise=keep_message)

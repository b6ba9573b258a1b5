"""The chat page: draw, pass the message down, draw what comes back. The answer itself lives in a worker thread."""

from collections.abc import Sequence

import streamlit as st
from streamlit.typing import ChatInputValue

from jarvis_memory.attachments import Attachment
from jarvis_memory.chat_turn import retry_turn, start_turn
from jarvis_memory.conversations import Conversation, ConversationOptions, get_conversation
from jarvis_memory.errors import ConversationNotFound, JarvisError
from jarvis_memory.running_turns import TURNS, RunningTurn
from jarvis_memory.ui import wiring
from jarvis_memory.ui.approvals import draw_way_on
from jarvis_memory.ui.bubbles import draw_answer, draw_messages
from jarvis_memory.ui.chat_options import draw_new_chat_options, draw_options_of, keep_temporary_chat
from jarvis_memory.ui.conversation_menu import draw_deletion, draw_heading
from jarvis_memory.ui.files import TAKES_FILES, draw_kept_files, keep_files, kept_files, take_files
from jarvis_memory.ui.frame import Page, draw_page, open_page, show_error
from jarvis_memory.ui.message_window import draw_window, open_window
from jarvis_memory.ui.navigation import number_in_address, open_conversation
from jarvis_memory.ui.set_up import draw_set_up_card
from jarvis_memory.ui.texts import Texts


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


def send(
    page: Page,
    message: str,
    conversation: Conversation | None,
    options: ConversationOptions,
    files: Sequence[Attachment] = (),
) -> None:
    """Start the turn. When that is impossible text and files go back, with the reason above them."""
    try:
        turn = start_turn(
            page.parts,
            user_id=page.user_id,
            message=message,
            conversation_id=conversation.id if conversation else None,
            options=options,
            files=files,
        )
    except JarvisError as error:
        refuse(message, files, [error])
    else:
        st.session_state.pop("new_chat_model", None)
        keep_files(None, [])
        open_conversation(turn.conversation_id)
    st.rerun()


def send_input(
    page: Page, sent: ChatInputValue, conversation: Conversation | None, options: ConversationOptions
) -> None:
    """Send what came from the input, with the files of a message that could not be sent."""
    files, wrong = take_files(sent, page.parts.settings)
    files = [*kept_files(number_in_address("c")), *files]
    if wrong:
        refuse(sent.text, files, wrong)
        st.rerun()
    send(page, sent.text, conversation, options, files)


def refuse(message: str, files: Sequence[Attachment], errors: list[JarvisError]) -> None:
    """Give back what could not be sent, on the next run."""
    st.session_state["refused"] = (message, errors)
    keep_files(number_in_address("c"), files)


def draw_empty(page: Page) -> ConversationOptions:
    """A new chat: what to say, and what the chat is to be."""
    st.markdown(f"## {page.texts('chat.empty_heading')}")
    st.caption(page.texts("chat.empty_hint"))
    examples = [page.texts(f"chat.example_{number}") for number in (1, 2, 3)]
    pressed = [
        st.button(example, key=f"example-{number}", icon=":material/chat:", width="stretch")
        for number, example in enumerate(examples, start=1)
    ]
    options = draw_new_chat_options(page)
    if any(pressed):
        send(page, examples[pressed.index(True)], None, options, kept_files(None))
    return options


@st.fragment(run_every=0.5)
def draw_running(page: Page, turn: RunningTurn) -> None:
    """The answer as it grows, with Stop. It only looks; when the turn is done the whole page is drawn anew."""
    if turn.done.is_set():
        st.rerun()
    content, blocks, thinking = turn.snapshot()
    with st.chat_message("assistant", avatar=":material/neurology:"):
        draw_answer(page, content, blocks, waiting={}, undone={}, key="running", running=True)
        state, stop = st.columns([0.75, 0.25], vertical_alignment="center")
        state.caption(f":material/more_horiz: {page.texts('chat.thinking' if thinking else 'chat.working')}")
        if stop.button(page.texts("chat.stop"), icon=":material/stop_circle:", key="stop", width="stretch"):
            turn.stop.set()


def draw_conversation(page: Page, conversation: Conversation, message_id: int | None) -> RunningTurn | None:
    """The messages, and the running turn if there is one."""
    # The register before the rows: a turn that ends in between is then drawn once more, and never missed.
    turn = TURNS.get(conversation.id)
    window = open_window(page, conversation.id, message_id)
    messages = [message for message in window.messages if turn is None or message.id != turn.answer_message_id]
    draw_window(
        page,
        conversation.id,
        message_id,
        window,
        lambda: draw_messages(page, messages, may_change=turn is None, at_end=not window.later),
    )
    if window.later:
        return turn
    if turn is not None:
        draw_running(page, turn)
    elif messages and messages[-1].status == "waiting":
        draw_way_on(page, messages[-1])
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
    conversation_id, message_id = number_in_address("c"), number_in_address("m")
    page = open_page("nav.chat", on_chat=True, conversation_id=conversation_id, message_id=message_id)
    configured = page.parts.settings.claude_is_configured
    conversation = load_conversation(page, conversation_id)
    keep_temporary_chat(page, conversation)
    turn, options = None, ConversationOptions()
    if conversation is not None:
        st.session_state.pop("deletion", None)
        draw_heading(page, conversation)
        draw_options_of(page, conversation)
        turn = draw_conversation(page, conversation, message_id)
    else:
        draw_deletion(page)
    if conversation is None and configured:
        options = draw_empty(page)
    if not configured:
        draw_set_up_card(page.texts)
    if "refused" in st.session_state:
        message, errors = st.session_state.pop("refused")
        for error in errors:
            show_error(page.texts, error)
        if message:
            st.caption(page.texts("chat.kept"))
            st.session_state["message"] = message
    draw_kept_files(page.texts, number_in_address("c"))
    placeholder = "placeholder" if turn is None else "placeholder_running"
    sent = st.chat_input(
        page.texts(f"chat.{placeholder if configured else 'placeholder_set_up'}"),
        key="message",
        disabled=not configured,
        **TAKES_FILES,
    )
    if sent:
        send_input(page, sent, conversation, options)


def keep_message(texts: Texts) -> None:
    """What was sent to a page that could not be drawn goes back into the input."""
    if sent := st.session_state.get("message"):
        files, wrong = take_files(sent, wiring.get_parts().settings)
        keep_files(number_in_address("c"), files)
        for error in wrong:
            show_error(texts, error)
        st.caption(texts("chat.kept"))
        draw_kept_files(texts, number_in_address("c"))
        st.session_state["message"] = sent.text
        st.chat_input(texts("chat.placeholder"), key="message", **TAKES_FILES)


draw_page(draw_chat, otherwise=keep_message)

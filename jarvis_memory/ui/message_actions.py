"""What can be done with a message: copy and regenerate an answer, edit an own message, look at what was replaced."""

import streamlit as st

from jarvis_memory.chat_turn import edit_turn, regenerate_turn
from jarvis_memory.conversations import Message
from jarvis_memory.errors import JarvisError
from jarvis_memory.ui.frame import Page, draw_page, show_error
from jarvis_memory.ui.safe_markdown import plain, safe_markdown
from jarvis_memory.versions import Version

# Streamlit copies to the clipboard from a code block only: of this one nothing but its button is seen.
STYLE = """<style>
[class*="st-key-actions-"] { gap: 0.25rem; opacity: 0.75; margin-top: -0.75rem; }
[class*="st-key-actions-"] button { min-height: 2rem; padding: 0 0.25rem; }
[class*="st-key-copy-"] { width: 2rem; flex: none; }
[class*="st-key-copy-"] [data-testid="stElementContainer"], [class*="st-key-copy-"] [data-testid="stCode"] {
  background: none; width: 2rem !important; min-width: 0; height: 2rem; }
[class*="st-key-copy-"] pre { display: none; }
[class*="st-key-copy-"] [data-testid="stCode"] > div, [class*="st-key-copy-"] [data-testid="stCode"] > div > div {
  position: static; opacity: 1; visibility: visible; background: none; box-shadow: none; pointer-events: auto;
  width: 2rem; height: 2rem; padding: 0; justify-content: center; align-items: center; }
</style>"""


def draw_actions(page: Page, message: Message, versions: list[Version], *, may_change: bool, is_last: bool) -> None:
    """The row of buttons under a message. `may_change`: no answer is running in this chat."""
    texts = page.texts
    with st.container(horizontal=True, vertical_alignment="center", key=f"actions-{message.id}"):
        if message.role == "assistant" and message.content:
            with st.container(key=f"copy-{message.id}", width="content"):
                st.code(message.content, language=None)
        can_regenerate = may_change and is_last and message.role == "assistant" and message.status == "complete"
        if can_regenerate and st.button(
            "",
            key=f"regenerate-{message.id}",
            icon=":material/refresh:",
            help=texts("actions.regenerate"),
            type="tertiary",
        ):
            _regenerate(page, message)
        # Disabled and not left out, so that the page keeps its height while an answer comes.
        if message.role == "user" and st.button(
            "",
            key=f"edit-{message.id}",
            icon=":material/edit:",
            help=texts("actions.edit"),
            type="tertiary",
            disabled=not may_change,
        ):
            st.session_state["editing"] = message.id
            st.rerun()
        if versions and st.button(
            texts.counted("actions.versions", len(versions)),
            key=f"versions-{message.id}",
            icon=":material/history:",
            type="tertiary",
        ):
            st.dialog(texts("actions.versions_heading"), width="large")(draw_page)(_draw_versions, page, versions)


def is_editing(message: Message) -> bool:
    """Whether this message is drawn as a form."""
    return bool(st.session_state.get("editing") == message.id)


def draw_editor(page: Page, message: Message) -> None:
    """The message as a form; sending it answers it anew and puts what followed aside."""
    texts = page.texts
    with st.form(f"editor-{message.id}", border=False):
        text = st.text_area(
            texts("actions.edit"), value=message.content, key=f"edited-{message.id}", label_visibility="collapsed"
        )
        st.caption(texts("actions.edit_hint"))
        with st.container(horizontal=True):
            sent = st.form_submit_button(texts("actions.send"), type="primary", icon=":material/send:")
            cancelled = st.form_submit_button(texts("cancel"))
    if cancelled:
        del st.session_state["editing"]
        st.rerun()
    if sent:
        try:
            edit_turn(
                page.parts,
                user_id=page.user_id,
                conversation_id=message.conversation_id,
                message_id=message.id,
                message=text,
            )
        except JarvisError as error:
            show_error(texts, error)
        else:
            del st.session_state["editing"]
            st.rerun()


def _regenerate(page: Page, message: Message) -> None:
    try:
        regenerate_turn(page.parts, user_id=page.user_id, conversation_id=message.conversation_id, answer_id=message.id)
    except JarvisError as error:
        show_error(page.texts, error)
    else:
        st.rerun()


def _draw_versions(page: Page, versions: list[Version]) -> None:
    """The replaced messages, one version at a time."""
    texts = page.texts
    st.caption(texts("actions.versions_hint"))
    place = 0
    if len(versions) > 1:
        place = st.segmented_control(
            texts("actions.versions_heading"),
            options=range(len(versions)),
            format_func=lambda number: str(len(versions) - number),
            default=0,
            required=True,
            label_visibility="collapsed",
            key="version",
        )
    for message in versions[place].messages:
        st.caption(texts("actions.you") if message["role"] == "user" else "JARVIS")
        if message["files"]:
            st.caption(f":material/attach_file: {plain(', '.join(message['files']))}")
        with st.container(border=True):
            st.markdown(safe_markdown(message["content"]))

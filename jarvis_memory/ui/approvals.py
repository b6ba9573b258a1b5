"""Calls that wait for the person: exactly what would happen, with Approve and Decline; and what was decided."""

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from jarvis_memory.chat_turn import decide, resume_turn
from jarvis_memory.conversations import Message
from jarvis_memory.errors import ActionDecided, ActionExpired, JarvisError
from jarvis_memory.pending_actions import COMMENT_CHARACTERS, PendingAction, load_pending_actions
from jarvis_memory.tools.tool import find_tool
from jarvis_memory.ui.calendar_cards import draw_calendar_action
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.mail_cards import draw_mail_action, edit_mail
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

# The calls whose card names them in the person's language.
NAMED = (
    "remember_fact",
    "update_fact",
    "forget_fact",
    "send_email",
    "create_calendar_event",
    "update_calendar_event",
    "delete_calendar_event",
)

Actions = Mapping[tuple[int, str], PendingAction]


def actions_of(page: Page, messages: list[Message]) -> Actions:
    """What waits in these messages, or is decided and waits to be carried out, by message and call."""
    ids = [message.id for message in messages if message.status == "waiting"]
    if not ids:
        return {}
    with page.parts.database.begin() as connection:
        actions = load_pending_actions(connection, user_id=page.user_id, message_ids=ids)
    return {(action.message_id, action.call_id): action for action in actions}


def named_call(texts: Texts, tool: str) -> str:
    """What the tool would do, in two words, as Markdown."""
    return texts(f"approval.what_{tool}") if tool in NAMED else plain(tool)


def draw_waiting_call(page: Page, call: dict[str, Any], action: PendingAction | None, key: str) -> None:
    """A call without a result: the question, or what was decided about it. Without `action` nobody can decide yet."""
    texts = page.texts
    if action is None or action.status != "pending":
        draw_action(page, call["name"], action.action if action else call["action"])
        st.caption(texts(f"approval.is_{action.status if action else 'pending'}"))
        return
    tool = find_tool(page.parts.tools, action.tool)
    if tool is not None and tool.approval == "after_foreign":
        st.caption(texts("approval.because_foreign"))
    # Enter in a field must not approve.
    with st.form(f"action-{key}", border=False, enter_to_submit=False):
        edits = {}
        if action.tool == "send_email":
            edits = edit_mail(page, action.action, key)
        else:
            draw_action(page, action.tool, action.action)
        comment = st.text_input(texts("approval.comment"), key=f"comment-{key}", max_chars=COMMENT_CHARACTERS)
        with st.container(horizontal=True):
            approved = st.form_submit_button(texts("approval.approve"), type="primary", icon=":material/check:")
            declined = st.form_submit_button(texts("approval.decline"), icon=":material/close:")
    until = written_moment(action.expires_at, texts.language, page.preferences.time_zone)
    st.caption(texts("approval.until", moment=until))
    if approved or declined:
        _decide(page, action, approve=approved, comment=comment, edits=edits)


def draw_action(page: Page, tool: str, action: dict[str, Any]) -> None:
    """Exactly what would happen, or happened, without a way to change it."""
    texts = page.texts
    match tool:
        case "remember_fact" | "forget_fact":
            st.markdown(plain(action["fact"]))
        case "update_fact":
            st.markdown(texts("approval.change", former=plain(action["former"]), new=plain(action["fact"])))
        case "send_email":
            draw_mail_action(page, action)
        case "create_calendar_event" | "update_calendar_event" | "delete_calendar_event":
            draw_calendar_action(page, tool, action)
        case _:
            st.code(json.dumps(action, ensure_ascii=False, indent=2), language="json", wrap_lines=True)


def draw_way_on(page: Page, answer: Message) -> None:
    """Under an answer that waits: a hint, or the button that goes on once everything is decided."""
    texts = page.texts
    if any(action.status == "pending" for action in actions_of(page, [answer]).values()):
        st.caption(f":material/front_hand: {texts('approval.waits')}")
    elif st.button(texts("approval.go_on"), icon=":material/play_arrow:", key="go-on"):
        try:
            resume_turn(page.parts, user_id=page.user_id, conversation_id=answer.conversation_id)
        except ActionDecided:  # gone on in another tab
            pass
        except JarvisError as error:
            show_error(texts, error)
            return
        st.rerun()


def _decide(page: Page, action: PendingAction, *, approve: bool, comment: str, edits: dict[str, Any]) -> None:
    try:
        decide(page.parts, user_id=page.user_id, action_id=action.id, approve=approve, comment=comment, edits=edits)
    except (ActionDecided, ActionExpired) as error:  # in another tab, or by a second click
        st.toast(page.texts.error(type(error).__name__, {}))
    except JarvisError as error:
        show_error(page.texts, error)
        return
    st.rerun()

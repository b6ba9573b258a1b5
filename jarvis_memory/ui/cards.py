"""Tool calls as small cards: what was done, with which arguments, what came of it, and Undo for a forgetting."""

import json
from typing import Any

import streamlit as st

from jarvis_memory.errors import FactNotFound
from jarvis_memory.forgetting import undo_forgetting
from jarvis_memory.pending_actions import PendingAction
from jarvis_memory.tools.calendar import CALENDAR_TOOLS
from jarvis_memory.tools.documents import DOCUMENT_TOOLS
from jarvis_memory.tools.mail import MAIL_TOOLS, SENDING_TOOLS
from jarvis_memory.ui.approvals import draw_action, draw_waiting_call, named_call
from jarvis_memory.ui.calendar_cards import calendar_headline, draw_calendar_result
from jarvis_memory.ui.document_cards import document_headline
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.mail_cards import draw_mail_result, mail_headline
from jarvis_memory.ui.navigation import go_to_conversation
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

_ICONS = {
    "remember_fact": ":material/bookmark_add:",
    "update_fact": ":material/bookmark_manager:",
    "forget_fact": ":material/bookmark_remove:",
    "search_memory": ":material/manage_search:",
    "search_documents": ":material/manage_search:",
    "read_document": ":material/menu_book:",
    "list_calendar_events": ":material/calendar_month:",
    "find_free_time": ":material/event_available:",
    "create_calendar_event": ":material/calendar_add_on:",
    "update_calendar_event": ":material/edit_calendar:",
    "delete_calendar_event": ":material/event_busy:",
    "get_latest_emails": ":material/inbox:",
    "search_emails": ":material/manage_search:",
    "read_email": ":material/mail:",
    "draft_email": ":material/drafts:",
    "send_email": ":material/send:",
}
_CALENDAR = {tool.name for tool in CALENDAR_TOOLS}
_DOCUMENTS = {tool.name for tool in DOCUMENT_TOOLS}
_MAIL = {tool.name for tool in (*MAIL_TOOLS, *SENDING_TOOLS)}


def draw_tool_card(
    page: Page,
    call: dict[str, Any],
    *,
    action: PendingAction | None,
    undone: dict[int, bool],
    key: str,
    running: bool,
) -> None:
    """One call. `undone` says of the forgettings that can still be undone whether they were; `key` is unique.

    `action`: what of it waits for the person.
    """
    texts = page.texts
    with st.container(border=True, key=f"tool-{key}", gap="small"):
        icon = _ICONS.get(call["name"], ":material/build:")
        st.markdown(f"{icon} {_headline(texts, call, running)}")
        result = call.get("result") or {}
        if "action" in call and "result" not in call:
            draw_waiting_call(page, call, action, key)
        elif call.get("decision") in ("declined", "expired"):
            draw_action(page, call["name"], call["action"])
            if call.get("comment"):
                st.caption(texts("approval.said", comment=plain(call["comment"])))
        if result and not call.get("is_error") and call["name"] in _CALENDAR:
            draw_calendar_result(page, call)
        elif result and not call.get("is_error") and call["name"] in _MAIL:
            draw_mail_result(page, call)
        if call["name"] == "forget_fact" and result.get("deleted"):
            _draw_forgetting(page, result, undone, key)
        for match in [*result.get("matches", []), *result.get("suggestions", [])][:20]:
            st.markdown(f"- {plain(match['content'])}")
        with st.expander(texts("tool.details"), type="compact"):
            st.caption(texts("tool.arguments"))
            st.code(f"{call['name']}({_json(call['input'])})", language="json", wrap_lines=True)
            if call.get("action", call["input"]) != call["input"]:
                st.caption(texts("approval.action"))
                st.code(_json(call["action"]), language="json", wrap_lines=True)
            if "result" in call:
                st.caption(texts("tool.result"))
                st.code(_json(result), language="json", wrap_lines=True)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _headline(texts: Texts, call: dict[str, Any], running: bool) -> str:
    name, result = plain(call["name"]), call.get("result")
    if call.get("decision") in ("declined", "expired"):
        return texts(f"approval.headline_{call['decision']}", what=named_call(texts, call["name"]))
    if result is None and "action" in call:
        return texts("approval.ask", what=named_call(texts, call["name"]))
    if result is None:
        return texts("tool.running" if running else "tool.unknown_outcome", name=name)
    if call.get("is_error"):
        return f"{texts('tool.failed', name=name)}: {plain(str(result.get('message', '')))}"
    if call["name"] in _CALENDAR:
        return calendar_headline(texts, call)
    if call["name"] in _MAIL:
        return mail_headline(texts, call)
    if call["name"] in _DOCUMENTS:
        return document_headline(texts, call)
    match call["name"]:
        case "remember_fact":
            return texts(
                "tool.already_known" if result["already_known"] else "tool.remembered", fact=plain(result["fact"])
            )
        case "update_fact":
            return texts("tool.updated", fact=plain(result["fact"]), former=plain(result["former"]))
        case "forget_fact" if result["deleted"]:
            return texts("tool.forgotten", fact=plain(result["content"]))
        case "forget_fact" if result["matches"]:
            return texts("tool.several", count=len(result["matches"]))
        case "forget_fact":
            return texts("tool.not_forgotten")
        case "search_memory":
            return texts(
                "tool.searched",
                query=plain(str(call["input"].get("query", ""))),
                facts=len(result["facts"]),
                conversations=len(result["conversations"]),
            )
    return texts("tool.done", name=name)


def _draw_forgetting(page: Page, result: dict[str, Any], undone: dict[int, bool], key: str) -> None:
    texts = page.texts
    if result["conversations"]:
        st.caption(texts("forgetting.exchanges", count=result["exchanges"]))
        draw_conversation_links(result["conversations"], texts, key=f"forgotten-{key}")
    forgetting_id = result["forgetting_id"]
    if undone.get(forgetting_id):
        st.caption(texts("undo.done", fact=plain(result["content"])))
    elif forgetting_id in undone and st.button(texts("undo"), key=f"undo-{key}", icon=":material/undo:"):
        undo(page, forgetting_id)
        st.rerun()


def undo(page: Page, forgetting_id: int) -> None:
    """Take a forgetting back and say so."""
    try:
        fact = undo_forgetting(page.parts.database, user_id=page.user_id, forgetting_id=forgetting_id)
    except FactNotFound:
        st.toast(page.texts("undo.expired"))
        return
    page.parts.background.wake()
    st.toast(page.texts("undo.done", fact=plain(fact.content)))


def draw_conversation_links(
    conversations: list[dict[str, Any]], texts: Texts, *, key: str, on_chat: bool = True
) -> None:
    """Buttons that open these conversations."""
    with st.container(key=f"links-{key}", gap=None):
        for conversation in conversations:
            if st.button(
                plain(conversation["title"] or texts("nav.untitled")),
                key=f"{key}-{conversation['id']}",
                icon=":material/forum:",
                type="tertiary",
            ):
                go_to_conversation(conversation["id"], on_chat=on_chat)

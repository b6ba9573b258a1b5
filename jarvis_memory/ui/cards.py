"""Tool calls as small cards: what was done, with which arguments, what came of it, and Undo for a forgetting."""

import json
from typing import Any

import streamlit as st

from jarvis_memory.errors import FactNotFound
from jarvis_memory.forgetting import undo_forgetting
from jarvis_memory.ui.frame import Page, go_to_conversation
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

_ICONS = {
    "remember_fact": ":material/bookmark_add:",
    "update_fact": ":material/bookmark_manager:",
    "forget_fact": ":material/bookmark_remove:",
    "search_memory": ":material/manage_search:",
}


def draw_tool_card(page: Page, call: dict[str, Any], *, undone: dict[int, bool], key: str, running: bool) -> None:
    """One call. `undone` says of the forgettings that can still be undone whether they were; `key` is unique."""
    texts = page.texts
    with st.container(border=True, key=f"tool-{key}", gap="small"):
        icon = _ICONS.get(call["name"], ":material/build:")
        st.markdown(f"{icon} {_headline(texts, call, running)}")
        result = call.get("result") or {}
        if call["name"] == "forget_fact" and result.get("deleted"):
            _draw_forgetting(page, result, undone, key)
        for match in [*result.get("matches", []), *result.get("suggestions", [])][:20]:
            st.markdown(f"- {plain(match['content'])}")
        with st.expander(texts("tool.details"), type="compact"):
            st.caption(texts("tool.arguments"))
            st.code(f"{call['name']}({_json(call['input'])})", language="json", wrap_lines=True)
            if "result" in call:
                st.caption(texts("tool.result"))
                st.code(_json(result), language="json", wrap_lines=True)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _headline(texts: Texts, call: dict[str, Any], running: bool) -> str:
    name, result = plain(call["name"]), call.get("result")
    if result is None:
        return texts("tool.running" if running else "tool.unknown_outcome", name=name)
    if call.get("is_error"):
        return f"{texts('tool.failed', name=name)}: {plain(str(result.get('message', '')))}"
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

"""Messages as bubbles: the text, its tool cards, how it ended, and what of the memory went into it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import streamlit as st

from jarvis_memory.answers import Usage
from jarvis_memory.conversations import Message, load_sent
from jarvis_memory.facts import Fact, facts_by_id
from jarvis_memory.forgetting import undone_forgettings
from jarvis_memory.pending_actions import PendingAction
from jarvis_memory.ui.approvals import actions_of
from jarvis_memory.ui.cards import draw_conversation_links, draw_tool_card
from jarvis_memory.ui.document_cards import draw_sources
from jarvis_memory.ui.figures import written_cost, written_tokens
from jarvis_memory.ui.files import draw_files, load_images
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.message_actions import STYLE, draw_actions, draw_editor, is_editing
from jarvis_memory.ui.safe_markdown import plain, safe_markdown
from jarvis_memory.versions import load_versions

FACTS_LISTED = 50


def draw_messages(page: Page, messages: list[Message], *, may_change: bool, at_end: bool) -> None:
    """All of them, with a few queries for what they refer to.

    `may_change`: no answer is running in this chat. `at_end`: these are its last messages.
    """
    blocks = [block for message in messages for block in message.blocks]
    fact_ids = {number for block in blocks if block["type"] == "memory" for number in block["fact_ids"][:FACTS_LISTED]}
    forgetting_ids = {
        block["result"]["forgetting_id"]
        for block in blocks
        if block["type"] == "tool" and (block.get("result") or {}).get("forgetting_id")
    }
    with page.parts.database.begin() as connection:
        facts = facts_by_id(connection, user_id=page.user_id, fact_ids=list(fact_ids))
        undone = undone_forgettings(connection, user_id=page.user_id, forgetting_ids=list(forgetting_ids))
        versions = load_versions(connection, user_id=page.user_id, message_ids=[message.id for message in messages])
    images = load_images(page, messages)
    actions = actions_of(page, messages)
    st.html(STYLE)
    recalled: dict[int, dict[str, Any]] = {}
    for message in messages:
        if message.role == "user":
            recalled = {one["id"]: one for block in message.blocks_of("recalled") for one in block["conversations"]}
        # The key is what a link to the message scrolls to.
        with (
            st.container(key=f"message-{message.id}"),
            st.chat_message(message.role, avatar=_AVATARS[message.role]),
        ):
            if message.role == "user" and may_change and is_editing(message):
                draw_editor(page, message)
                continue
            if message.role == "user":
                draw_files(page, message, images)
                st.markdown(safe_markdown(message.content))
            else:
                waiting = {call: action for (of, call), action in actions.items() if of == message.id}
                draw_answer(page, message.content, message.blocks, waiting=waiting, undone=undone, key=str(message.id))
                draw_sources(page, message)
                _draw_ending(page, message)
                _draw_used(page, message, facts, recalled)
            draw_actions(
                page,
                message,
                versions.get(message.id, []),
                may_change=may_change,
                is_last=at_end and message is messages[-1],
            )


_AVATARS = {"user": ":material/person:", "assistant": ":material/neurology:"}


def draw_answer(
    page: Page,
    content: str,
    blocks: list[dict[str, Any]],
    *,
    waiting: Mapping[str, PendingAction],
    undone: dict[int, bool],
    key: str,
    running: bool = False,
) -> None:
    """The text with its tool cards where they happened. `waiting`: what the person can decide about, by call."""
    written = 0
    for block in blocks:
        if block["type"] != "tool":
            continue
        at = min(block.get("at", 0), len(content))
        if content[written:at].strip():
            st.markdown(safe_markdown(content[written:at]))
        written = max(written, at)
        draw_tool_card(
            page,
            block,
            action=waiting.get(block["id"]),
            undone=undone,
            key=f"{key}-{block['id']}",
            running=running,
        )
    if content[written:].strip():
        st.markdown(safe_markdown(content[written:]))


def _draw_ending(page: Page, message: Message) -> None:
    """Why an answer is not whole, in one sentence."""
    texts = page.texts
    for notice in message.blocks_of("notice"):
        st.info(texts(f"notice.{notice['kind']}"), icon=":material/info:")
    if message.status in ("complete", "waiting"):
        return
    errors = message.blocks_of("error")
    opening = texts("chat.interrupted" if message.content else "chat.failed")
    reason = texts.error(errors[-1]["error"], errors[-1]["details"]) if errors else ""
    st.warning(f"{opening} {reason}", icon=":material/warning:")


def _draw_used(page: Page, message: Message, facts: dict[int, Fact], recalled: dict[int, dict[str, Any]]) -> None:
    """The expander: which facts and conversations went into the answer, and on demand exactly what was sent.

    `recalled` is what the message had with it, by conversation; what was withdrawn since is not in it.
    """
    memory = message.blocks_of("memory")
    if not memory:
        return
    texts, used = page.texts, memory[0]
    counts = {"facts": len(used["fact_ids"]), "earlier": len(used["conversations"])}
    named = [texts.counted(f"count.{what}", count) for what, count in counts.items() if count]
    label = texts("used.label", what=", ".join(named)) if named else texts("used.none")
    with st.expander(label, icon=":material/neurology:", type="compact"):
        if used["fact_ids"]:
            st.markdown(f"**{texts('used.facts')}**")
            lines = [
                f"- {plain(facts[number].content) if number in facts else texts('used.forgotten')}"
                for number in used["fact_ids"][:FACTS_LISTED]
            ]
            st.markdown("\n".join(lines))
            more = used["more_facts"] + max(0, len(used["fact_ids"]) - FACTS_LISTED)
            if more:
                st.caption(texts("used.more_facts", count=more))
            st.page_link("pages/memory.py", label=texts("used.to_memory"), icon=":material/bookmark_manager:")
        if used["conversations"]:
            st.markdown(f"**{texts('used.conversations')}**")
            for conversation in used["conversations"]:
                draw_conversation_links([conversation], texts, key=f"used-{message.id}-{conversation['id']}")
                _draw_recalled(page, recalled.get(conversation["id"]))
        if st.toggle(texts("sent.show"), key=f"sent-{message.id}"):
            _draw_sent(page, message)
        _draw_usage(page, message)


def _draw_usage(page: Page, message: Message) -> None:
    """Which model answered, its tokens, and what it cost where that is known."""
    if message.usage is None:
        return
    tokens = {name: message.usage[name] for name in ("input", "output", "cache_read", "cache_write")}
    line = [message.usage["model"], written_tokens(Usage(**tokens), page.texts)]
    if message.usage["cost"] is not None:
        line.append(written_cost(Decimal(str(message.usage["cost"])), page.texts))
    st.caption(plain(" · ".join(line)))


def _draw_recalled(page: Page, recalled: dict[str, Any] | None) -> None:
    """What went along of one conversation, and why it was found."""
    if recalled is None:
        st.caption(page.texts("sent.withdrawn"))
        return
    st.caption(page.texts(f"used.found_by_{recalled['found_by']}"))
    if recalled["summary"]:
        st.markdown(safe_markdown(recalled["summary"]))
    if recalled["excerpt"]:
        st.code(recalled["excerpt"], language=None, wrap_lines=True)


def _draw_sent(page: Page, message: Message) -> None:
    texts = page.texts
    with page.parts.database.begin() as connection:
        sent = load_sent(connection, user_id=page.user_id, message_id=message.id)
    if sent is None:
        st.caption(texts("sent.none"))
        return
    st.caption(texts("sent.messages", count=sent["messages"], model=plain(sent["model"])))
    st.caption(texts("sent.system"))
    for block in sent["system"]:
        st.code(block, language=None, wrap_lines=True, height=240 if len(block) > 600 else "content")
    if sent.get("earlier"):
        st.caption(texts("sent.earlier"))
        st.code(sent["earlier"], language=None, wrap_lines=True)
    st.caption(texts("sent.recalled"))
    if sent.get("withdrawn"):
        st.caption(texts("sent.withdrawn"))
    elif sent["recalled"]:
        st.code(sent["recalled"], language=None, wrap_lines=True)
    else:
        st.caption(texts("sent.no_recalled"))

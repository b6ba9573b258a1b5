"""The upkeep of the memory: what is pending, what failed and why, and deleting all of it."""

from collections.abc import Callable

import streamlit as st

from jarvis_memory.database import Database
from jarvis_memory.deletions import Deletion
from jarvis_memory.erasure import delete_all_memory, delete_everything
from jarvis_memory.recall_index import index_progress
from jarvis_memory.running_turns import TURNS
from jarvis_memory.summaries import PendingSummary, count_pending, last_summary_at, list_pending, retry_now
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.frame import Page, draw_page
from jarvis_memory.ui.safe_markdown import plain

PENDING_SHOWN = 50


def draw_upkeep(page: Page) -> None:
    """State of the memory, then the two ways to delete it."""
    st.fragment(run_every=5)(draw_page)(_draw_state, page)
    st.markdown(f"#### {page.texts('memory.danger')}", anchors=False)
    _draw_deletion(page, "delete_all", delete_all_memory)
    _draw_deletion(page, "delete_everything", delete_everything)


def _draw_state(page: Page) -> None:
    texts, settings = page.texts, page.parts.settings
    with page.parts.database.begin() as connection:
        latest = last_summary_at(connection, user_id=page.user_id)
        pending, _ = count_pending(connection, user_id=page.user_id)
        listed = list_pending(connection, user_id=page.user_id, limit=PENDING_SHOWN)
        index = index_progress(connection, user_id=page.user_id, embedding_model=page.parts.embeddings.model)
    st.markdown(f"#### {texts('memory.pending')}", anchors=False)
    when = written_moment(latest, texts.language, page.preferences.time_zone) if latest else texts("memory.never")
    st.caption(texts("memory.last_summary", date=when))
    if index.waiting:
        done = index.total - index.waiting
        st.progress(done / index.total, text=texts("memory.indexing", done=done, total=index.total))
    if not pending:
        st.success(texts("memory.nothing_pending"), icon=":material/check_circle:")
        return
    st.markdown(texts.counted("memory.pending_count", pending))
    if not settings.claude_is_configured:
        st.info(texts("memory.waiting_for_key"), icon=":material/key:")
    for one in listed:
        with st.container(border=True, key=f"pending-{one.conversation_id}", gap="small"):
            _draw_pending(page, one)
    if pending > len(listed):
        st.caption(texts("memory.more_pending", count=pending - len(listed)))


def _draw_pending(page: Page, one: PendingSummary) -> None:
    texts = page.texts
    st.markdown(f"**{plain(one.title or texts('nav.untitled'))}**")
    if one.failures:
        zone = page.preferences.time_zone
        retry_at = written_moment(one.retry_at, texts.language, zone) if one.retry_at else texts("memory.at_once")
        reason = texts.error(one.last_error or "")
        st.caption(texts.counted("memory.failures", one.failures, reason=reason, when=retry_at))
    else:
        st.caption(texts("memory.waiting"))
    with st.container(horizontal=True):
        st.page_link(
            "chat.py",
            label=texts("memory.to_chat"),
            icon=":material/forum:",
            query_params={"c": str(one.conversation_id)},
        )
        if one.failures and st.button(
            texts("memory.retry"), key=f"retry-{one.conversation_id}", icon=":material/refresh:", type="tertiary"
        ):
            with page.parts.database.begin() as connection:
                retry_now(connection, user_id=page.user_id, conversation_id=one.conversation_id)
            page.parts.background.wake()
            st.toast(texts("memory.retrying"))


def _draw_deletion(page: Page, key: str, delete: Callable[..., Deletion]) -> None:
    texts = page.texts
    with st.container(border=True, key=f"box-{key}", gap="small"):
        st.markdown(f"**{texts(f'memory.{key}')}**")
        st.caption(texts(f"memory.{key}_text"))
        if st.button(texts("memory.open_dialog"), key=key, icon=":material/delete_forever:"):
            st.dialog(texts(f"memory.{key}"))(draw_page)(_confirm, page, key, delete)


def _confirm(page: Page, key: str, delete: Callable[..., Deletion]) -> None:
    """Delete once the word is typed; the receipt is shown by the page."""
    texts = page.texts
    st.markdown(texts(f"memory.{key}_text"))
    word = texts("memory.word")
    with st.form(f"confirm-{key}", border=False):
        typed = st.text_input(texts("memory.type_word", word=word), key=f"word-{key}")
        sure = st.form_submit_button(texts("memory.really"), type="primary", icon=":material/delete_forever:")
    if not sure:
        return
    if typed.strip().casefold() != word.casefold():
        st.error(texts("memory.wrong_word", word=word))
        return
    with st.spinner(texts("memory.deleting")):
        receipt = _delete(page.parts.database, page.user_id, delete)
    for kept in ("forgotten", "taken", "namesakes"):
        st.session_state.pop(kept, None)
    st.session_state["receipt"] = texts(
        "memory.receipt",
        facts=texts.counted("count.facts", receipt.facts),
        summaries=texts.counted("count.summaries", receipt.summaries),
        conversations=texts.counted("count.conversations", receipt.conversations),
        messages=texts.counted("count.messages", receipt.messages),
        documents=texts.counted("count.documents", receipt.documents),
    )
    st.rerun()


def _delete(database: Database, user_id: int, delete: Callable[..., Deletion]) -> Deletion:
    # A turn that still runs would bring its words back.
    TURNS.stop(user_id=user_id)
    return delete(database, user_id=user_id)

"""The facts on the Memory page: search, add, edit in place, delete with Undo."""

import streamlit as st

from jarvis_memory.errors import FactNotFound, JarvisError
from jarvis_memory.facts import (
    FACT_CHARACTERS,
    Fact,
    count_memory_facts,
    remember_fact,
    search_memory_facts,
    update_fact,
)
from jarvis_memory.forgetting import Forgetting, forget_fact
from jarvis_memory.prompts import written_date
from jarvis_memory.ui.cards import draw_conversation_links, undo
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.pager import ROWS, draw_pager, draw_search, first_row
from jarvis_memory.ui.safe_markdown import plain


def draw_facts(page: Page) -> None:
    """All facts that match the search, one page of them."""
    texts = page.texts
    _draw_forgotten(page)
    _draw_new_fact(page)
    query = draw_search(texts, "facts")
    with page.parts.database.begin() as connection:
        total = count_memory_facts(connection, user_id=page.user_id, query=query)
        facts = search_memory_facts(
            connection, user_id=page.user_id, query=query, limit=ROWS, offset=first_row("facts", total)
        )
    if not facts:
        st.info(texts("memory.nothing_found" if query.strip() else "memory.no_facts"), icon=":material/info:")
        return
    st.caption(texts.counted("count.facts", total))
    for fact in facts:
        with st.container(border=True, key=f"fact-{fact.id}", gap="small"):
            if st.session_state.get("edited_fact") == fact.id:
                _draw_form(page, fact)
            else:
                _draw_fact(page, fact)
    draw_pager(texts, "facts", total)


def _draw_new_fact(page: Page) -> None:
    texts = page.texts
    # What was stored leaves the input; what was refused stays in it.
    if st.session_state.pop("fact_stored", False):
        st.session_state["new_fact"] = ""
    with (
        st.form("new-fact", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        text = st.text_input(
            texts("memory.new_fact"),
            key="new_fact",
            placeholder=texts("memory.new_fact_hint"),
            icon=":material/bookmark_add:",
        )
        added = st.form_submit_button(texts("memory.add"), type="primary")
    if not added:
        return
    try:
        fact, is_new = remember_fact(page.parts.database, user_id=page.user_id, fact=text, origin="page")
    except JarvisError as error:
        show_error(texts, error)
        return
    page.parts.background.wake()
    key = "memory.added" if is_new else "memory.known"
    st.toast(texts(key, fact=plain(fact.content)), icon=":material/bookmark_added:")
    st.session_state["fact_stored"] = True
    st.rerun()


def _draw_fact(page: Page, fact: Fact) -> None:
    texts = page.texts
    st.markdown(plain(fact.content))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_origin(page, fact), width="stretch")
        if fact.conversation_id is not None:
            st.page_link(
                "chat.py",
                label=texts("memory.to_chat"),
                icon=":material/forum:",
                query_params={"c": str(fact.conversation_id)},
            )
        if st.button("", key=f"edit-{fact.id}", icon=":material/edit:", help=texts("memory.edit"), type="tertiary"):
            st.session_state["edited_fact"] = fact.id
            st.rerun()
        if st.button(
            "", key=f"delete-{fact.id}", icon=":material/delete:", help=texts("memory.delete"), type="tertiary"
        ):
            _forget(page, fact)


def _origin(page: Page, fact: Fact) -> str:
    language, zone = page.texts.language, page.preferences.time_zone
    created, changed = (written_date(moment, language, zone) for moment in (fact.created_at, fact.updated_at))
    origin = page.texts(f"memory.origin_{fact.origin}", date=created)
    if changed != created:
        origin += ", " + page.texts("memory.changed", date=changed)
    return origin


def _draw_form(page: Page, fact: Fact) -> None:
    texts = page.texts
    with st.form(f"fact-form-{fact.id}", border=False):
        text = st.text_area(
            texts("memory.edit"), value=fact.content, key=f"fact-text-{fact.id}", max_chars=FACT_CHARACTERS
        )
        with st.container(horizontal=True):
            saved = st.form_submit_button(texts("memory.save"), type="primary")
            cancelled = st.form_submit_button(texts("cancel"))
    if cancelled:
        del st.session_state["edited_fact"]
        st.rerun()
    if not saved:
        return
    try:
        update_fact(page.parts.database, user_id=page.user_id, fact_id=fact.id, fact=text)
    except JarvisError as error:
        show_error(texts, error)
        return
    page.parts.background.wake()
    del st.session_state["edited_fact"]
    st.toast(texts("memory.saved"), icon=":material/check:")
    st.rerun()


def _forget(page: Page, fact: Fact) -> None:
    forgetting = forget_fact(page.parts.database, user_id=page.user_id, fact_id=fact.id)
    page.parts.background.wake()
    if forgetting.fact is not None:
        st.session_state["forgotten"] = forgetting
    else:
        st.toast(page.texts.error(FactNotFound.__name__))
    st.rerun()


def _draw_forgotten(page: Page) -> None:
    """What the last deletion did, with Undo, until the next one or until it is closed."""
    forgotten: Forgetting | None = st.session_state.get("forgotten")
    if forgotten is None or forgotten.fact is None or forgotten.id is None:
        return
    texts = page.texts
    with st.container(border=True, key="forgotten", gap="small"):
        st.markdown(f":material/bookmark_remove: {texts('tool.forgotten', fact=plain(forgotten.fact.content))}")
        if forgotten.conversations:
            st.caption(texts("forgetting.exchanges", count=forgotten.exchanges))
            links = [{"id": number, "title": title} for number, title in forgotten.conversations]
            draw_conversation_links(links, texts, key="forgotten", on_chat=False)
        with st.container(horizontal=True):
            undone = st.button(texts("undo"), key="undo-forgotten", icon=":material/undo:")
            closed = st.button(texts("close"), key="close-forgotten", type="tertiary")
    if undone:
        undo(page, forgotten.id)
    if undone or closed:
        del st.session_state["forgotten"]
        st.rerun()

"""The documents as a list: their state, and what can be done with each."""

import streamlit as st

from jarvis_memory.documents import (
    Document,
    count_documents,
    delete_document,
    get_document,
    list_documents,
    read_again,
    rename_document,
)
from jarvis_memory.errors import DocumentNotFound, JarvisError
from jarvis_memory.prompts import written_date
from jarvis_memory.ui.document_upload import Taken, store, upload_hint
from jarvis_memory.ui.files import size_of
from jarvis_memory.ui.frame import Page, draw_page, show_error
from jarvis_memory.ui.navigation import open_document
from jarvis_memory.ui.pager import ROWS, draw_pager, draw_search, first_row
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts
from jarvis_memory.ui.uploader import draw_uploader

LOOK_SECONDS = 1.5

# What can be done with a document: the text and the icon of each.
_ACTIONS = {
    "rename": ("documents.rename", ":material/edit:"),
    "version": ("documents.version", ":material/upload_file:"),
    "again": ("documents.again", ":material/refresh:"),
    "delete": ("documents.delete", ":material/delete:"),
}


def draw_document_list(page: Page) -> None:
    """One page of the documents that match the search; it looks again by itself while one of them is worked at."""
    texts = page.texts
    if "document_receipt" in st.session_state:
        st.success(st.session_state.pop("document_receipt"), icon=":material/check_circle:")
    query = draw_search(texts, "documents")
    total, documents = _load(page, query)
    if not documents:
        st.info(texts("memory.nothing_found" if query.strip() else "documents.none"), icon=":material/info:")
    else:
        st.caption(texts.counted("count.documents", total))
        pending = any(one.is_pending for one in documents)
        # A fragment in either case: what is pressed at the moment when the last one is done would belong to none else,
        # and be lost.
        st.fragment(run_every=LOOK_SECONDS if pending else None)(draw_page)(_draw_rows, page, query, pending)
        draw_pager(texts, "documents", total)
    _draw_dialog(page)


def _load(page: Page, query: str) -> tuple[int, list[Document]]:
    with page.parts.database.begin() as connection:
        total = count_documents(connection, user_id=page.user_id, query=query)
        return total, list_documents(
            connection,
            user_id=page.user_id,
            embedding_model=page.parts.embeddings.model,
            query=query,
            limit=ROWS,
            offset=first_row("documents", total),
        )


def _draw_rows(page: Page, query: str, watching: bool) -> None:
    _, documents = _load(page, query)
    for one in documents:
        with st.container(border=True, key=f"document-{one.id}", gap="small"):
            _draw_row(page, one)
    if watching and not any(one.is_pending for one in documents):
        st.rerun()


def _draw_row(page: Page, one: Document) -> None:
    texts = page.texts
    with st.container(horizontal=True, vertical_alignment="center", wrap=False, key=f"document-head-{one.id}"):
        with st.container(width="stretch"):
            if st.button(plain(one.name), key=f"open-{one.id}", type="tertiary", icon=":material/description:"):
                open_document(one.id)
                st.rerun()
        chosen = st.menu_button(
            "",
            list(_ACTIONS),
            format_func=lambda action: _label(texts, action),
            key=f"menu-{one.id}",
            icon=":material/more_vert:",
            help=texts("documents.menu"),
            type="tertiary",
        )
    st.caption(facts_of(page, one))
    draw_state(page, one)
    if chosen == "again":
        with page.parts.database.begin() as connection:
            read_again(connection, user_id=page.user_id, document_id=one.id)
        page.parts.background.wake()
        st.rerun()
    elif chosen:
        st.session_state["document_dialog"] = (chosen, one.id)
        st.rerun()


def facts_of(page: Page, one: Document) -> str:
    """Kind, size, pages and date on one line, and that it is ready when it is."""
    texts = page.texts
    parts = [one.kind.upper()] if one.kind in ("pdf", "docx", "odt", "html", "csv") else []
    parts.append(size_of(one.size, texts))
    if one.pages:
        parts.append(texts.counted("count.pages", one.pages))
    parts.append(written_date(one.created_at, texts.language, page.preferences.time_zone))
    if one.status == "ready" and not one.is_pending:
        parts.append(f":material/check: {texts('documents.ready')}")
    return " · ".join(parts)


def draw_state(page: Page, one: Document) -> None:
    """How far it is while it is not ready: waiting to be read, searchable by words, or why it cannot be read."""
    texts = page.texts
    if one.status == "failed":
        show_error_of(page, one)
    elif one.status == "waiting":
        st.progress(0.02, text=texts("documents.new_version" if one.replaces_id else "documents.waiting"))
    elif one.is_pending:
        st.progress(one.embedded / one.chunks, text=texts("documents.indexing", done=one.embedded, total=one.chunks))


def show_error_of(page: Page, one: Document) -> None:
    """Why it could not be read."""
    details = {name: value for name, value in one.error_details.items() if isinstance(value, int)}
    st.error(page.texts.error(one.error or "", details | {"name": plain(one.name)}), icon=":material/error:")


def _label(texts: Texts, action: str) -> str:
    key, icon = _ACTIONS[action]
    return f"{icon} {texts(key)}"


def _draw_dialog(page: Page) -> None:
    # Kept until it is closed, because the list is drawn anew by itself.
    action, document_id = st.session_state.get("document_dialog", (None, None))
    if action is None:
        return
    try:
        with page.parts.database.begin() as connection:
            model = page.parts.embeddings.model
            one = get_document(connection, user_id=page.user_id, document_id=document_id, embedding_model=model)
    except DocumentNotFound as error:
        _close_dialog()
        show_error(page.texts, error)
        return
    draw = {"rename": _rename, "version": _upload_version, "delete": _confirm_deletion}[action]
    st.dialog(_label(page.texts, action), on_dismiss=_close_dialog)(draw_page)(draw, page, one)


def _close_dialog() -> None:
    st.session_state.pop("document_dialog", None)


def _rename(page: Page, one: Document) -> None:
    """A field with the name. Runs inside a dialog."""
    texts = page.texts
    with st.form("rename-document", border=False):
        name = st.text_input(texts("documents.name"), value=one.name, key="document-name")
        sure = st.form_submit_button(texts("memory.save"), type="primary", width="stretch")
    if not sure:
        return
    try:
        with page.parts.database.begin() as connection:
            rename_document(connection, user_id=page.user_id, document_id=one.id, name=name)
        page.parts.background.wake()
    except JarvisError as error:
        show_error(texts, error)
        return
    _close_dialog()
    st.rerun()


def _upload_version(page: Page, one: Document) -> None:
    """A field for the file that takes its place. Runs inside a dialog."""
    texts = page.texts
    st.markdown(texts("documents.version_text", name=plain(one.name)))
    file = draw_uploader(texts, texts("documents.version"), key=f"version-{one.id}", hint=upload_hint(page))
    if file is None:
        return
    taken = Taken()
    store(page, taken, file.name, file.getvalue(), replaces_id=one.id)
    st.session_state["taken"] = taken
    _close_dialog()
    st.rerun()


def _confirm_deletion(page: Page, one: Document) -> None:
    """Ask, then delete. Runs inside a dialog."""
    texts = page.texts
    st.markdown(texts("documents.delete_text", name=plain(one.name)))
    if not st.button(texts("documents.delete"), key="sure-document", type="primary", icon=":material/delete:"):
        return
    with page.parts.database.begin() as connection:
        gone = delete_document(connection, user_id=page.user_id, document_id=one.id)
    st.session_state["document_receipt"] = texts(
        "documents.deleted", name=plain(gone.name), passages=texts.counted("count.passages", gone.chunks)
    )
    _close_dialog()
    st.rerun()

"""The person's data on the Settings page: take all of it along as a file, and bring chats from elsewhere."""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

import streamlit as st
from babel.numbers import format_decimal

from jarvis_memory.errors import JarvisError
from jarvis_memory.export import Exported, write_export
from jarvis_memory.import_file import Contents, check_file
from jarvis_memory.imports import Imported, count_known, import_file
from jarvis_memory.recall_index import index_progress
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.frame import Page, draw_page, show_error
from jarvis_memory.ui.uploader import UPLOAD_MEGABYTES, draw_uploader

# What a download holds in memory for as long as the page is open.
EXPORT_MEGABYTES = 500


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """An export that waits for its download. The file has no name on the disk and is gone with the session."""

    file: BinaryIO
    receipt: Exported
    megabytes: float
    at: datetime

    def read(self) -> bytes:
        """All of it; only once the person wants it."""
        self.file.seek(0)
        return self.file.read()


def draw_data(page: Page) -> None:
    """Export, import, and how far what was imported is searchable."""
    st.markdown(f"#### {page.texts('data.export')}", anchors=False)
    _draw_export(page)
    st.markdown(f"#### {page.texts('data.import')}", anchors=False)
    _draw_import(page)
    st.caption(page.texts("data.command_line"))


def _draw_export(page: Page) -> None:
    texts = page.texts
    st.caption(texts("data.export_text"))
    if st.button(texts("data.prepare"), key="prepare-export", icon=":material/inventory_2:"):
        with st.spinner(texts("data.preparing")):
            st.session_state["export"] = _prepare(page)
    prepared: _Prepared | None = st.session_state.get("export")
    if prepared is None:
        return
    zone = page.preferences.time_zone
    st.success(
        texts(
            "data.prepared",
            conversations=texts.counted("count.conversations", prepared.receipt.conversations),
            messages=texts.counted("count.messages", prepared.receipt.messages),
            facts=texts.counted("count.facts", prepared.receipt.facts),
            documents=texts.counted("count.documents", prepared.receipt.documents),
            moment=written_moment(prepared.at, texts.language, zone),
        ),
        icon=":material/check_circle:",
    )
    if prepared.megabytes > EXPORT_MEGABYTES:
        st.info(texts("data.too_large", megabytes=round(prepared.megabytes)), icon=":material/terminal:")
        return
    st.download_button(
        texts("data.download", megabytes=format_decimal(prepared.megabytes, "0.0", locale=texts.language)),
        data=prepared.read,
        file_name=f"jarvis-{prepared.at.astimezone(zone):%Y-%m-%d}.json",
        mime="application/json",
        key="download-export",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
    )


def _prepare(page: Page) -> _Prepared:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the session may download it
    receipt = write_export(page.parts.database, user_id=page.user_id, file=file)
    return _Prepared(file=file, receipt=receipt, megabytes=max(0.1, file.tell() / 1e6), at=datetime.now(UTC))


def _draw_import(page: Page) -> None:
    texts = page.texts
    st.caption(texts("data.import_text"))
    with st.expander(texts("data.where_from"), icon=":material/help:", type="compact"):
        st.markdown(texts("data.where_from_text"))
    limit = texts("data.limit", megabytes=UPLOAD_MEGABYTES)
    # Another key is another, empty uploader.
    number = st.session_state.setdefault("imports", 0)
    file = draw_uploader(texts, texts("data.file"), key=f"import-{number}", hint=limit, type=["json", "zip"])
    if file is not None:
        st.session_state.pop("imported", None)
        contents = _checked(page, file, file.file_id)
        if isinstance(contents, JarvisError):
            show_error(texts, contents)
            return
        _draw_contents(page, contents)
        if st.button(texts("data.start"), key="start-import", type="primary", icon=":material/upload:"):
            with st.spinner(texts("data.importing")):
                st.session_state["imported"] = import_file(page.parts.database, user_id=page.user_id, file=file)
            page.parts.background.wake()
            st.session_state["imports"] = number + 1
            st.session_state.pop("checked", None)
            st.rerun()
    elif "imported" in st.session_state:
        _draw_receipt(page, st.session_state["imported"])
        st.fragment(run_every=2)(draw_page)(_draw_progress, page)


def _checked(page: Page, file: BinaryIO, file_id: str) -> Contents | JarvisError:
    """What the file holds, or why it cannot be imported; read once, and not again on every rerun."""
    checked: tuple[str, Contents | JarvisError] | None = st.session_state.get("checked")
    if checked is None or checked[0] != file_id:
        with st.spinner(page.texts("data.checking")):
            try:
                checked = (file_id, check_file(file))
            except JarvisError as error:
                checked = (file_id, error)
        st.session_state["checked"] = checked
    return checked[1]


def _draw_contents(page: Page, contents: Contents) -> None:
    texts = page.texts
    with page.parts.database.begin() as connection:
        known = count_known(connection, user_id=page.user_id, external_ids=contents.external_ids)
    what = [texts.counted("count.conversations", contents.conversations)]
    what += [texts.counted("count.messages", contents.messages)] if contents.messages else []
    what += [texts.counted("count.facts", contents.facts)] if contents.facts else []
    what += [texts.counted("count.documents", contents.documents)] if contents.documents else []
    program = texts(f"data.program_{contents.program}")
    st.info(texts("data.found", program=program, what=", ".join(what)), icon=":material/fact_check:")
    if known:
        st.caption(texts.counted("data.known", known))


def _draw_receipt(page: Page, done: Imported) -> None:
    texts = page.texts
    named = {
        "count.conversations": done.conversations_new,
        "data.grown": done.conversations_grown,
        "count.messages": done.messages,
        "count.facts": done.facts_new,
        "count.summaries": done.summaries,
        "data.attachments": done.attachments,
        "count.documents": done.documents_new,
    }
    what = [texts.counted(key, count) for key, count in named.items() if count]
    what += [texts("data.preferences")] if done.preferences else []
    receipt = texts("data.imported", what=", ".join(what)) if what else texts("data.nothing_new")
    st.success(receipt, icon=":material/check_circle:")
    unchanged = {
        "data.known": done.conversations_known,
        "data.facts_known": done.facts_known,
        "data.documents_known": done.documents_known,
        "data.empty": done.conversations_empty,
    }
    for key, count in unchanged.items():
        if count:
            st.caption(texts.counted(key, count))


def _draw_progress(page: Page) -> None:
    """How much of everything is searchable by its meaning."""
    texts = page.texts
    with page.parts.database.begin() as connection:
        index = index_progress(connection, user_id=page.user_id, embedding_model=page.parts.embeddings.model)
    if index.waiting:
        done = index.total - index.waiting
        st.progress(done / index.total, text=texts("memory.indexing", done=done, total=index.total))
    else:
        st.caption(f":material/check: {texts('data.searchable')}")

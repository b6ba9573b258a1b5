"""Files on their way into the knowledge base: taken, recognised, and the question what to do with a namesake."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from jarvis_memory.attachments import MEGABYTE
from jarvis_memory.documents import add_document, find_namesake
from jarvis_memory.errors import DocumentTooLarge, JarvisError
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.uploader import draw_uploader

NAMES_SHOWN = 10


@dataclass(kw_only=True)
class Taken:
    """What came of the last files: names, and errors of those that were refused."""

    added: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    wrong: list[JarvisError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Namesake:
    """A file that has the name of a document, with other content: it waits for what the person wants."""

    # Of its own, so that a second click does not answer the next question.
    number: int
    name: str
    content: bytes
    document_id: int


def draw_upload(page: Page) -> None:
    """The field for new files, what came of the last ones, and the questions about namesakes."""
    texts = page.texts
    number = st.session_state.setdefault("document_uploads", 0)
    files = draw_uploader(
        texts,
        texts("documents.upload"),
        key=f"documents-{number}",
        hint=upload_hint(page),
        accept_multiple_files=True,
    )
    if files:
        _take(page, files)
        # Another key is another, empty field.
        st.session_state["document_uploads"] = number + 1
        st.rerun()
    _draw_taken(page)
    for one in st.session_state.get("namesakes", []):
        _draw_namesake(page, one)


def upload_hint(page: Page) -> str:
    """What can be read, and the limits."""
    settings = page.parts.settings
    return page.texts(
        "documents.limit", megabytes=settings.jarvis_document_megabytes, pages=settings.jarvis_document_pages
    )


def store(page: Page, taken: Taken, name: str, content: bytes, *, replaces_id: int | None = None) -> None:
    """Add the file and have it read; what came of it is noted in `taken`."""
    try:
        is_new = _add(page, name, content, replaces_id)
    except JarvisError as error:
        taken.wrong.append(error)
    else:
        (taken.added if is_new else taken.known).append(name)


def _add(page: Page, name: str, content: bytes, replaces_id: int | None) -> bool:
    with page.parts.database.begin() as connection:
        _, is_new = add_document(
            connection,
            user_id=page.user_id,
            name=name,
            content=content,
            megabytes=page.parts.settings.jarvis_document_megabytes,
            replaces_id=replaces_id,
        )
    page.parts.background.wake()
    return is_new


def _take(page: Page, files: Sequence[UploadedFile]) -> None:
    """Add the files, one after the other, but for namesakes, which have to be asked about."""
    taken, namesakes = Taken(), list(st.session_state.get("namesakes", []))
    megabytes = page.parts.settings.jarvis_document_megabytes
    for file in files:
        if file.size > megabytes * MEGABYTE:
            taken.wrong.append(DocumentTooLarge(name=file.name, limit=megabytes))
            continue
        content = file.getvalue()
        with page.parts.database.begin() as connection:
            namesake_id = find_namesake(connection, user_id=page.user_id, name=file.name, content=content)
        if namesake_id is not None:
            number = st.session_state["namesake"] = st.session_state.get("namesake", 0) + 1
            namesakes.append(_Namesake(number=number, name=file.name, content=content, document_id=namesake_id))
        else:
            store(page, taken, file.name, content)
    st.session_state["taken"] = taken
    st.session_state["namesakes"] = namesakes


def _draw_taken(page: Page) -> None:
    """What came of the files. What was not added stays until it is closed: the page is drawn anew by itself."""
    texts = page.texts
    taken: Taken | None = st.session_state.get("taken")
    if taken is None:
        return
    if taken.added:
        st.success(texts("documents.added", names=_listed(taken.added)), icon=":material/check_circle:")
    for error in taken.wrong:
        show_error(texts, error)
    if taken.known:
        st.info(texts("documents.known", names=_listed(taken.known)), icon=":material/info:")
    left = Taken(known=taken.known, wrong=taken.wrong)
    if left == Taken() or st.button(texts("close"), key="close-taken", type="tertiary", icon=":material/close:"):
        del st.session_state["taken"]
        if left != Taken():
            st.rerun()
    else:
        st.session_state["taken"] = left


def _listed(names: list[str]) -> str:
    more = f" (+{len(names) - NAMES_SHOWN})" if len(names) > NAMES_SHOWN else ""
    return ", ".join(plain(name) for name in names[:NAMES_SHOWN]) + more


def _draw_namesake(page: Page, one: _Namesake) -> None:
    texts = page.texts
    with st.container(border=True, key=f"namesake-{one.number}", gap="small"):
        st.markdown(f":material/file_copy: {texts('documents.namesake', name=plain(one.name))}")
        with st.container(horizontal=True):
            replaces = st.button(texts("documents.replace"), key=f"replace-{one.number}", icon=":material/sync:")
            beside = st.button(texts("documents.beside"), key=f"beside-{one.number}", icon=":material/add:")
            dropped = st.button(texts("documents.drop"), key=f"drop-{one.number}", type="tertiary")
    if not (replaces or beside or dropped):
        return
    taken = Taken()
    if not dropped:
        store(page, taken, one.name, one.content, replaces_id=one.document_id if replaces else None)
    st.session_state["taken"] = taken
    st.session_state["namesakes"] = [other for other in st.session_state["namesakes"] if other is not one]
    st.rerun()

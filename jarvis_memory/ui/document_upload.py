"""Files on their way into the knowledge base: taken, recognised, and the question what to do with a namesake."""

from dataclasses import dataclass

import streamlit as st

from jarvis_memory.documents import add_document, find_namesake
from jarvis_memory.errors import JarvisError
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.uploader import draw_uploader

NAMES_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class _Namesake:
    """A file that has the name of a document, with other content: it waits for what the person wants."""

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
        st.session_state["taken"] = _take(page, [(file.name, file.getvalue()) for file in files])
        # Another key is another, empty field.
        st.session_state["document_uploads"] = number + 1
        st.rerun()
    _draw_taken(page)
    for place, one in enumerate(st.session_state.get("namesakes", [])):
        _draw_namesake(page, place, one)


def upload_hint(page: Page) -> str:
    """What can be read, and the limits."""
    settings = page.parts.settings
    return page.texts(
        "documents.limit", megabytes=settings.jarvis_document_megabytes, pages=settings.jarvis_document_pages
    )


def store(page: Page, name: str, content: bytes, *, replaces_id: int | None = None) -> bool:
    """Add the file and have it read. False when the same bytes are there already. Raises what `add_document` does."""
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


def _take(page: Page, files: list[tuple[str, bytes]]) -> dict[str, list[object]]:
    """Add the files, but for namesakes, which have to be asked about. Returns names and errors of what came of them."""
    taken: dict[str, list[object]] = {"added": [], "known": [], "wrong": []}
    namesakes = st.session_state.setdefault("namesakes", [])
    for name, content in files:
        with page.parts.database.begin() as connection:
            namesake_id = find_namesake(connection, user_id=page.user_id, name=name, content=content)
        if namesake_id is not None:
            namesakes.append(_Namesake(name=name, content=content, document_id=namesake_id))
            continue
        try:
            is_new = store(page, name, content)
        except JarvisError as error:
            taken["wrong"].append(error)
        else:
            taken["added" if is_new else "known"].append(name)
    return taken


def _draw_taken(page: Page) -> None:
    taken = st.session_state.pop("taken", None)
    if taken is None:
        return
    texts = page.texts
    for error in taken["wrong"]:
        show_error(texts, error)
    for key, icon in (("added", ":material/check_circle:"), ("known", ":material/info:")):
        names = taken[key]
        if names:
            shown = ", ".join(plain(str(name)) for name in names[:NAMES_SHOWN])
            more = f" (+{len(names) - NAMES_SHOWN})" if len(names) > NAMES_SHOWN else ""
            line = texts(f"documents.{key}", names=shown + more)
            (st.success if key == "added" else st.info)(line, icon=icon)


def _draw_namesake(page: Page, place: int, one: _Namesake) -> None:
    texts = page.texts
    with st.container(border=True, key=f"namesake-{place}", gap="small"):
        st.markdown(f":material/file_copy: {texts('documents.namesake', name=plain(one.name))}")
        with st.container(horizontal=True):
            replaces = st.button(texts("documents.replace"), key=f"replace-{place}", icon=":material/sync:")
            beside = st.button(texts("documents.beside"), key=f"beside-{place}", icon=":material/add:")
            dropped = st.button(texts("documents.drop"), key=f"drop-{place}", type="tertiary")
    if not (replaces or beside or dropped):
        return
    taken: dict[str, list[object]] = {"added": [], "known": [], "wrong": []}
    if not dropped:
        try:
            is_new = store(page, one.name, one.content, replaces_id=one.document_id if replaces else None)
            taken["added" if is_new else "known"].append(one.name)
        except JarvisError as error:
            taken["wrong"].append(error)
    st.session_state["taken"] = taken
    st.session_state["namesakes"].pop(place)
    st.rerun()

"""A document as text, a page at a time, with a passage marked: where the links under an answer lead."""

from collections.abc import Callable

import streamlit as st

from jarvis_memory.document_search import Passage, get_passage, passages_of
from jarvis_memory.documents import Document, get_document, load_original
from jarvis_memory.errors import DocumentNotFound
from jarvis_memory.ui.document_list import draw_state, facts_of
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.navigation import number_in_address, open_document
from jarvis_memory.ui.safe_markdown import plain

# A part of a document without pages.
PASSAGES_A_PART = 12
# A page of a PDF has a few; a bound all the same.
PASSAGES_SHOWN = 200

_SCROLL = """<script>
// {passage}
setTimeout(() => document.querySelector(".st-key-passage-marked")?.scrollIntoView({block: "center"}), 300);
</script>"""
_STYLE = """<style>
.st-key-passage-marked { background: rgba(63, 135, 187, 0.18); border-radius: 0.5rem; padding: 0.75rem; }
</style>"""


def draw_document(page: Page, document_id: int) -> None:
    """Heading, the way back, the original to download, and the page of the address."""
    texts = page.texts
    if st.button(texts("documents.all"), key="all-documents", icon=":material/arrow_back:", type="tertiary"):
        open_document(None)
        st.rerun()
    try:
        with page.parts.database.begin() as connection:
            model = page.parts.embeddings.model
            one = get_document(connection, user_id=page.user_id, document_id=document_id, embedding_model=model)
    except DocumentNotFound:
        st.info(texts.error(DocumentNotFound.__name__), icon=":material/info:")
        return
    st.markdown(f"### :material/description: {plain(one.name)}", anchors=False)
    st.caption(facts_of(page, one))
    st.download_button(
        texts("documents.download"),
        data=_original(page, one),
        file_name=one.name,
        # As a file and never as a page: what is in it was written by anybody.
        mime="application/octet-stream",
        key="download-document",
        icon=":material/download:",
        on_click="ignore",
    )
    draw_state(page, one)
    if one.chunks:
        _draw_text(page, one)


def _original(page: Page, one: Document) -> Callable[[], bytes]:
    def load() -> bytes:
        with page.parts.database.begin() as connection:
            return load_original(connection, user_id=page.user_id, document_id=one.id)

    return load


def _draw_text(page: Page, one: Document) -> None:
    texts, marked = page.texts, None
    passage_id = number_in_address("s")
    if passage_id is not None:
        with page.parts.database.begin() as connection:
            marked = get_passage(connection, user_id=page.user_id, passage_id=passage_id)
        if marked is None or marked.document_id != one.id:
            marked = None
            st.info(texts("documents.passage_gone"), icon=":material/info:")
    last = one.pages or (one.chunks + PASSAGES_A_PART - 1) // PASSAGES_A_PART
    shown = min(number_in_address("p") or _place_of(marked), last)
    _draw_turner(page, one, shown, last, "top")
    passages = _load(page, one, shown)
    heading = ""
    if marked is not None:
        st.html(_STYLE)
    with st.container(key="document-text"):
        for passage in passages:
            if passage.heading and passage.heading != heading:
                st.markdown(f"**{plain(passage.heading)}**")
            heading = passage.heading
            is_marked = marked is not None and passage.id == marked.id
            with st.container(key="passage-marked" if is_marked else f"passage-{passage.id}"):
                for line in passage.content.split("\n"):
                    st.markdown(plain(line))
    if not passages:
        st.caption(texts("documents.empty_page"))
    if marked is not None:
        st.html(_SCROLL.replace("{passage}", str(marked.id)), unsafe_allow_javascript=True)
    if len(passages) > 2:
        _draw_turner(page, one, shown, last, "bottom")


def _place_of(marked: Passage | None) -> int:
    """The page or part that the passage stands in."""
    if marked is None:
        return 1
    return marked.page if marked.page is not None else marked.number // PASSAGES_A_PART + 1


def _load(page: Page, one: Document, shown: int) -> list[Passage]:
    by_page = one.pages > 0
    first = shown if by_page else (shown - 1) * PASSAGES_A_PART
    with page.parts.database.begin() as connection:
        return passages_of(
            connection,
            user_id=page.user_id,
            document_id=one.id,
            first=first,
            last=first if by_page else first + PASSAGES_A_PART - 1,
            by_page=by_page,
            limit=PASSAGES_SHOWN,
        )


def _draw_turner(page: Page, one: Document, shown: int, last: int, where: str) -> None:
    """Back, which page it is, and on; where there is more than one."""
    if last <= 1:
        return
    texts = page.texts
    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center", wrap=False):
        back = st.button(
            texts("memory.previous"), key=f"page-back-{where}", icon=":material/chevron_left:", disabled=shown <= 1
        )
        key = "documents.page" if one.pages else "documents.part"
        st.markdown(texts(key, page=shown, pages=last), width="content")
        on = st.button(
            texts("memory.next"), key=f"page-on-{where}", icon=":material/chevron_right:", disabled=shown >= last
        )
    if back or on:
        open_document(one.id, shown + (1 if on else -1))
        st.rerun()

"""The Documents page: the knowledge base, to fill, look through and correct; and each document, to read."""

import streamlit as st

from jarvis_memory.ui.document_list import draw_document_list
from jarvis_memory.ui.document_reader import draw_document
from jarvis_memory.ui.document_upload import draw_upload
from jarvis_memory.ui.frame import draw_page, open_page
from jarvis_memory.ui.navigation import number_in_address


def draw_documents() -> None:
    """The document of the address, or all of them."""
    page = open_page("nav.documents")
    document_id = number_in_address("d")
    if document_id is not None:
        draw_document(page, document_id)
        return
    st.markdown(f"### :material/library_books: {page.texts('nav.documents')}", anchors=False)
    st.caption(page.texts("documents.intro"))
    draw_upload(page)
    draw_document_list(page)


draw_page(draw_documents)

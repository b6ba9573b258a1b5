"""A long list: its search, which rows to load, and the buttons to turn its pages."""

import streamlit as st

from jarvis_memory.ui.texts import Texts

ROWS = 20


def first_row(key: str, total: int) -> int:
    """The number of rows before the chosen page of the list `key`, which has `total` rows."""
    last_page = max(0, (total - 1) // ROWS)
    page: int = min(st.session_state.get(f"page-{key}", 0), last_page)
    st.session_state[f"page-{key}"] = page
    return page * ROWS


def draw_search(texts: Texts, key: str) -> str:
    """The field for a search in the list `key`, and what is searched for; a new search begins on the first page."""
    return st.text_input(
        texts(f"memory.search_{key}"),
        key=f"search-{key}",
        icon=":material/search:",
        placeholder=texts(f"memory.search_{key}"),
        label_visibility="collapsed",
        on_change=_turn_to,
        args=(key, 0),
    )


def draw_pager(texts: Texts, key: str, total: int) -> None:
    """Back and on, where there is more than one page."""
    pages = (total + ROWS - 1) // ROWS
    if pages <= 1:
        return
    page = st.session_state[f"page-{key}"]
    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center"):
        st.button(
            texts("memory.previous"),
            key=f"previous-{key}",
            icon=":material/chevron_left:",
            disabled=page == 0,
            on_click=_turn_to,
            args=(key, page - 1),
        )
        st.markdown(texts("memory.page", page=page + 1, pages=pages), width="content")
        st.button(
            texts("memory.next"),
            key=f"next-{key}",
            icon=":material/chevron_right:",
            disabled=page + 1 >= pages,
            on_click=_turn_to,
            args=(key, page + 1),
        )


def _turn_to(key: str, page: int) -> None:
    st.session_state[f"page-{key}"] = page

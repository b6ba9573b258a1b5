"""A page of several views: the choice between them, and the chosen one."""

from collections.abc import Callable, Mapping

import streamlit as st

from jarvis_memory.ui.frame import Page


def draw_chosen_view(
    page: Page, views: Mapping[str, Callable[[Page], None]], *, key: str, label: str, named: Callable[[str], str]
) -> None:
    """The choice, with the first view as the default, and below it what that view draws."""
    view = st.segmented_control(
        label,
        options=list(views),
        format_func=named,
        default=next(iter(views)),
        required=True,
        key=key,
        label_visibility="collapsed",
        width="stretch",
    )
    views[view](page)

"""The Memory page: everything JARVIS knows about the person, to read, correct and delete."""

import streamlit as st

from jarvis_memory.ui.fact_list import draw_facts
from jarvis_memory.ui.frame import draw_page, health_lines, open_page
from jarvis_memory.ui.summary_list import draw_summaries
from jarvis_memory.ui.upkeep import draw_upkeep
from jarvis_memory.ui.views import draw_chosen_view

VIEWS = {"facts": draw_facts, "summaries": draw_summaries, "upkeep": draw_upkeep}


def draw_memory() -> None:
    """Heading, the receipt of the last deletion, and the chosen view."""
    page = open_page("nav.memory")
    texts = page.texts
    st.markdown(f"### :material/bookmark_manager: {texts('memory.heading')}", anchors=False)
    st.caption(texts("memory.intro"))
    if "receipt" in st.session_state:
        st.success(st.session_state.pop("receipt"), icon=":material/check_circle:")
    for line in health_lines(page):
        st.warning(line, icon=":material/sync_problem:")
    draw_chosen_view(
        page, VIEWS, key="memory_view", label=texts("memory.view"), named=lambda name: texts(f"memory.{name}")
    )


draw_page(draw_memory)

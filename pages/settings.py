"""The Settings page: what the person chose, what it costs, and what this JARVIS runs on."""

import streamlit as st

from jarvis_memory.ui.connections_view import draw_connections
from jarvis_memory.ui.data_view import draw_data
from jarvis_memory.ui.frame import draw_page, open_page
from jarvis_memory.ui.general_view import draw_general
from jarvis_memory.ui.system_view import draw_system
from jarvis_memory.ui.usage_view import draw_usage
from jarvis_memory.ui.views import draw_chosen_view

VIEWS = {
    "general": draw_general,
    "connections": draw_connections,
    "usage": draw_usage,
    "data": draw_data,
    "system": draw_system,
}


def draw_settings() -> None:
    """Heading and the chosen view."""
    page = open_page("nav.settings")
    texts = page.texts
    st.markdown(f"### :material/settings: {texts('nav.settings')}", anchors=False)
    if st.session_state.pop("choice_saved", False):
        st.toast(texts("settings.saved"), icon=":material/check_circle:")
    draw_chosen_view(
        page, VIEWS, key="settings_view", label=texts("settings.view"), named=lambda name: texts(f"settings.{name}")
    )


draw_page(draw_settings)

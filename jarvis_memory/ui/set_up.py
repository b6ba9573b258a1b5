"""The card for a start without a key: where to get one, where to put it, how to do without."""

import streamlit as st

from jarvis_memory.ui.texts import Texts


def draw_set_up_card(texts: Texts) -> None:
    """What to do before the first chat."""
    with st.container(border=True):
        st.markdown(f"#### :material/key: {texts('setup.heading')}")
        st.markdown(texts("setup.text"))
        st.code("ANTHROPIC_API_KEY=sk-ant-…", language="ini")
        st.markdown(texts("setup.local"))
        st.code(
            "ANTHROPIC_BASE_URL=http://localhost:11434\nJARVIS_MODEL=qwen3\nJARVIS_SUMMARY_MODEL=qwen3", language="ini"
        )
        st.markdown(texts("setup.restart"))
        st.caption(texts("setup.demo"))

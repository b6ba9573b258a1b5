"""The summaries on the Memory page: search, read, open the chat, write anew, delete."""

import streamlit as st

from jarvis_memory.summaries import Summary, count_summaries, delete_summary, list_summaries, regenerate_summary
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.pager import ROWS, draw_pager, draw_search, first_row
from jarvis_memory.ui.safe_markdown import plain, safe_markdown


def draw_summaries(page: Page) -> None:
    """All summaries that match the search, one page of them."""
    texts = page.texts
    query = draw_search(texts, "summaries")
    with page.parts.database.begin() as connection:
        total = count_summaries(connection, user_id=page.user_id, query=query)
        summaries = list_summaries(
            connection, user_id=page.user_id, query=query, limit=ROWS, offset=first_row("summaries", total)
        )
    if not summaries:
        st.info(texts("memory.nothing_found" if query.strip() else "memory.no_summaries"), icon=":material/info:")
        return
    st.caption(texts.counted("count.summaries", total))
    for summary in summaries:
        with st.container(border=True, key=f"summary-{summary.conversation_id}", gap="small"):
            _draw_summary(page, summary)
    draw_pager(texts, "summaries", total)


def _draw_summary(page: Page, summary: Summary) -> None:
    texts, number = page.texts, summary.conversation_id
    st.markdown(f"**{plain(summary.title or texts('nav.untitled'))}**")
    st.markdown(safe_markdown(summary.summary))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Plain, because "1. Dezember" alone would be the beginning of a numbered list.
        when = plain(written_moment(summary.updated_at, texts.language, page.preferences.time_zone))
        st.caption(when, width="stretch")
        st.page_link("chat.py", label=texts("memory.to_chat"), icon=":material/forum:", query_params={"c": str(number)})
        if st.button(
            "", key=f"anew-{number}", icon=":material/refresh:", help=texts("memory.regenerate"), type="tertiary"
        ):
            with page.parts.database.begin() as connection:
                regenerate_summary(connection, user_id=page.user_id, conversation_id=number)
            page.parts.background.wake()
            configured = page.parts.settings.claude_is_configured
            st.toast(texts("memory.regenerating" if configured else "memory.waiting_for_key"))
        if st.button("", key=f"drop-{number}", icon=":material/delete:", help=texts("memory.delete"), type="tertiary"):
            with page.parts.database.begin() as connection:
                delete_summary(connection, user_id=page.user_id, conversation_id=number)
            st.toast(texts("memory.summary_deleted"))
            st.rerun()

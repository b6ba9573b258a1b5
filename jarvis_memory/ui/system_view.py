"""What this JARVIS runs on, and which variable changes it. Nothing here is a secret: no key, no password."""

import platform
from importlib.metadata import version

import streamlit as st

from jarvis_memory import __version__
from jarvis_memory.database import server_versions
from jarvis_memory.models import context_window
from jarvis_memory.services import without_password
from jarvis_memory.settings import Settings
from jarvis_memory.ui.figures import written_number
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain


def draw_system(page: Page) -> None:
    """Models, data, versions."""
    texts, settings = page.texts, page.parts.settings
    with page.parts.database.begin() as connection:
        postgresql, pgvector = server_versions(connection)
    window = written_number(context_window(settings.jarvis_model, settings), texts.language)
    folder = settings.database_place or texts("system.embedded", folder=str(settings.jarvis_data_dir))
    _draw_rows(
        page,
        "claude",
        {
            "server": (without_password(settings.anthropic_base_url), "ANTHROPIC_BASE_URL"),
            "key": (_key(page, settings), "ANTHROPIC_API_KEY"),
            "model": (settings.jarvis_model, "JARVIS_MODEL"),
            "models": (", ".join(settings.models), "JARVIS_MODELS"),
            "summary_model": (settings.jarvis_summary_model, "JARVIS_SUMMARY_MODEL"),
            "window": (window, "JARVIS_CONTEXT_TOKENS"),
        },
    )
    _draw_rows(
        page,
        "data",
        {
            "database": (folder, "DATABASE_URL"),
            "data_dir": (str(settings.jarvis_data_dir), "JARVIS_DATA_DIR"),
            "embeddings": (page.parts.embeddings.model, "EMBEDDING_MODEL" if settings.ollama_url else "OLLAMA_URL"),
            "facts_budget": (written_number(settings.jarvis_facts_budget, texts.language), "JARVIS_FACTS_BUDGET"),
        },
    )
    st.markdown(f"#### {texts('system.versions')}", anchors=False)
    versions = {
        "JARVIS": __version__,
        "Python": platform.python_version(),
        "Streamlit": version("streamlit"),
        "PostgreSQL": postgresql,
        "pgvector": pgvector,
        "anthropic": version("anthropic"),
    }
    with st.container(border=True, key="system-versions"):
        st.markdown(" · ".join(f"{name}\u00a0**{plain(number)}**" for name, number in versions.items()))


def _draw_rows(page: Page, group: str, rows: dict[str, tuple[str, str]]) -> None:
    """Name, value, and where it comes from: by key of the catalogue the value and its variable."""
    texts = page.texts
    st.markdown(f"#### {texts(f'system.{group}')}", anchors=False)
    with st.container(border=True, key=f"system-{group}"):
        for key, (value, variable) in rows.items():
            name, what = st.columns([0.32, 0.68], gap="small")
            name.markdown(f"**{texts(f'system.{key}')}**")
            is_set = variable.lower() in page.parts.settings.model_fields_set
            source = texts("system.set" if is_set else "system.not_set", variable=variable)
            with what.container(gap=None):
                st.text(value)
                st.caption(plain(source))


def _key(page: Page, settings: Settings) -> str:
    if settings.anthropic_api_key is not None:
        return page.texts("system.key_set")
    return page.texts("system.key_missing" if settings.claude_is_official else "system.key_not_needed")

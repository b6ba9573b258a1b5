"""What a person chooses for themselves: language, time zone, model, and how they are talked to."""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import available_timezones

import streamlit as st

from jarvis_memory.errors import PreferenceUnusable
from jarvis_memory.preferences import INSTRUCTIONS_CHARACTERS, LANGUAGES, load_choices, save_choices
from jarvis_memory.ui.dates import written_moment
from jarvis_memory.ui.figures import written_number
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.model_picker import models_to_choose
from jarvis_memory.ui.safe_markdown import plain

# In a list of choices: none of one's own.
DEFAULT = ""


def draw_general(page: Page) -> None:
    """Each choice is saved as soon as it is made; the instructions by their button."""
    texts, settings = page.texts, page.parts.settings
    with page.parts.database.begin() as connection:
        chosen = load_choices(connection, user_id=page.user_id)
    _draw_choice(page, "language", chosen["language"], list(LANGUAGES), lambda name: texts(f"settings.language_{name}"))
    zones = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))
    _draw_choice(page, "time_zone", chosen["time_zone"], ["UTC", *zones], str)
    now = written_moment(datetime.now(UTC), texts.language, page.preferences.time_zone)
    st.caption(texts("settings.now", moment=plain(now)))
    _draw_choice(page, "model", chosen["model"], models_to_choose(settings), str)
    memory = st.toggle(
        texts("settings.memory"), value=page.preferences.memory, help=texts("settings.memory_help"), key="choice-memory"
    )
    if memory != page.preferences.memory:
        _save(page, "memory", "on" if memory else "off")
    _draw_instructions(page, chosen["instructions"])


def _draw_choice(page: Page, field: str, chosen: str | None, options: list[str], named: Callable[[str], str]) -> None:
    """A list with the default first; what is chosen is in it, even where it is not an option any more."""
    key = f"choice-{field}"
    if st.session_state.pop(f"{key}-made", False):
        _save(page, field, st.session_state[key] or None)
    st.session_state[key] = chosen or DEFAULT
    st.selectbox(
        page.texts(f"settings.{field}"),
        list(dict.fromkeys([DEFAULT, *options, st.session_state[key]])),
        key=key,
        format_func=lambda option: _default(page, field, named) if option == DEFAULT else named(option),
        # Saved in the run of the page and not in the callback, whose errors nobody would translate.
        on_change=_note,
        args=(f"{key}-made",),
    )


def _note(flag: str) -> None:
    st.session_state[flag] = True


def _default(page: Page, field: str, named: Callable[[str], str]) -> str:
    """What holds without a choice, and where it comes from."""
    texts, settings, variable = page.texts, page.parts.settings, f"JARVIS_{field.upper()}"
    value = getattr(settings, variable.lower())
    if variable.lower() in settings.model_fields_set:
        return texts("settings.default_environment", variable=variable, value=named(value))
    if value is not None:
        return texts("settings.default", value=named(value))
    browser = st.context.timezone
    if browser in available_timezones():
        return texts("settings.default_browser", value=browser)
    return texts("settings.default", value=texts("settings.this_machine"))


def _draw_instructions(page: Page, instructions: str) -> None:
    texts = page.texts
    with st.form("instructions", border=False):
        # Without max_chars, which cuts what is too long without a word.
        written = st.text_area(
            texts("settings.instructions"),
            value=instructions,
            height=160,
            placeholder=texts("settings.instructions_example"),
            help=texts("settings.instructions_help", limit=written_number(INSTRUCTIONS_CHARACTERS, texts.language)),
            key="own-instructions",
        )
        if st.form_submit_button(texts("settings.save"), icon=":material/check:", type="primary"):
            _save(page, "instructions", written)


def _save(page: Page, field: str, value: str | None) -> None:
    """Keep the choice and draw the page anew with it; or say which field cannot be used, and keep what was typed."""
    try:
        with page.parts.database.begin() as connection:
            save_choices(connection, user_id=page.user_id, **{field: value})
    except PreferenceUnusable as error:
        details = error.details | {"field": page.texts(f"settings.{field}")}
        show_error(page.texts, PreferenceUnusable(**details))
    else:
        st.session_state["choice_saved"] = True
        st.rerun()

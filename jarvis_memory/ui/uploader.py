"""The field that takes files from the person's disk, in their language: Streamlit's own speaks English only."""

from typing import Any

import streamlit as st

from jarvis_memory.ui.texts import Texts

# As much as server.maxUploadSize lets through. What is too large for its purpose is refused by us, with a reason.
UPLOAD_MEGABYTES = 200

_STYLE = """<style>
.stFileUploader button [data-testid=stMarkdownContainer] p, .stFileUploader [data-testid$=Instructions] span
  { display: none; }
.stFileUploader button [data-testid=stMarkdownContainer]::after { content: "{choose}"; }
.stFileUploader [data-testid$=Instructions]::after { content: "{hint}"; font-size: 0.875rem; }
</style>"""


def draw_uploader(texts: Texts, label: str, *, key: str, hint: str, **options: Any) -> Any:
    """The field, with `hint` about what it takes. Returns the file, a list of files, or what stands for none."""
    style = _STYLE.replace("{choose}", texts("upload.choose")).replace("{hint}", hint.replace('"', "'"))
    st.html(style)
    return st.file_uploader(label, max_upload_size=UPLOAD_MEGABYTES, key=key, **options)

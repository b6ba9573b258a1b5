"""Files in the chat: taken from the input, kept when a message could not be sent, and shown with their message."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from babel.numbers import format_decimal
from streamlit.typing import ChatInputValue

from jarvis_memory.attachments import MEGABYTE, Attachment, load_attachments
from jarvis_memory.conversations import Message
from jarvis_memory.errors import JarvisError
from jarvis_memory.settings import Settings
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts
from jarvis_memory.uploads import read_upload

# How the input takes files; the same on every page that has it, or it would be another input and lose its text.
# Every kind and size: what Streamlit refuses by itself it names in English, on hovering, and leaves out silently.
TAKES_FILES: dict[str, Any] = {"accept_file": "multiple", "max_upload_size": 100}
# So many images are loaded and drawn with the shown messages, the newest; the others can be downloaded.
IMAGES_SHOWN = 12
IMAGE_WIDTH = 240


def take_files(sent: ChatInputValue, settings: Settings) -> tuple[list[Attachment], list[JarvisError]]:
    """The files of the input that can be attached, and what is wrong with the others."""
    taken: list[Attachment] = []
    wrong: list[JarvisError] = []
    for file in sent.files:
        try:
            taken.append(read_upload(file.name, file.getvalue(), pdfs=settings.claude_reads_documents))
        except JarvisError as error:
            wrong.append(error)
    return taken, wrong


def keep_files(conversation_id: int | None, files: Sequence[Attachment]) -> None:
    """Have these files go with the next message in this chat (None: the new one): nobody can put files back into the
    input, so those of a message that could not be sent wait beside it.
    """
    st.session_state["kept_files"] = (conversation_id, list(files))


def kept_files(conversation_id: int | None) -> list[Attachment]:
    """The files that go with the next message in this chat."""
    chat, files = st.session_state.get("kept_files", (None, []))
    return list(files) if chat == conversation_id else []


def draw_kept_files(texts: Texts, conversation_id: int | None) -> None:
    """The same as buttons that take one away."""
    files = kept_files(conversation_id)
    if not files:
        return
    st.caption(texts("files.kept"))
    with st.container(horizontal=True, key="kept-files"):
        for place, file in enumerate(files):
            label = f"{plain(file.name)} · {size_of(len(file.content), texts)}"
            help_ = texts("files.drop")
            if st.button(label, icon=":material/close:", icon_position="right", help=help_, key=f"drop-file-{place}"):
                keep_files(conversation_id, files[:place] + files[place + 1 :])
                st.rerun()


def load_images(page: Page, messages: list[Message]) -> dict[int, Attachment]:
    """The newest images of these messages, by id."""
    blocks = [block for message in messages for block in message.blocks_of("attachment")]
    ids = [block["id"] for block in blocks if block["media_type"].startswith("image/")][-IMAGES_SHOWN:]
    with page.parts.database.begin() as connection:
        return load_attachments(connection, user_id=page.user_id, ids=ids)


def draw_files(page: Page, message: Message, images: dict[int, Attachment]) -> None:
    """The files of a message: images as they are, the others as buttons that fetch them."""
    blocks = message.blocks_of("attachment")
    if not blocks:
        return
    with st.container(horizontal=True, key=f"files-{message.id}"):
        for block in blocks:
            if block["id"] in images:
                # The width of the container: with one of its own the image would be enlarged from so few pixels.
                with st.container(width=IMAGE_WIDTH):
                    st.image(images[block["id"]].content, alt=block["name"])
                continue
            icon = _ICONS.get(block["media_type"], ":material/image:")
            st.download_button(
                f"{plain(block['name'])} · {size_of(block['size'], page.texts)}",
                data=_content(page, block["id"]),
                file_name=block["name"],
                mime=block["media_type"],
                icon=icon,
                key=f"file-{block['id']}",
                on_click="ignore",
            )


_ICONS = {"application/pdf": ":material/picture_as_pdf:", "text/plain": ":material/description:"}


def _content(page: Page, attachment_id: int) -> Callable[[], bytes]:
    def load() -> bytes:
        with page.parts.database.begin() as connection:
            return load_attachments(connection, user_id=page.user_id, ids=[attachment_id])[attachment_id].content

    return load


def size_of(size: int, texts: Texts) -> str:
    """A number of bytes for a person: "12 KB", "1,5 MB"."""
    if size < MEGABYTE:
        return f"{max(1, round(size / 1_000))} KB"
    return f"{format_decimal(size / MEGABYTE, '0.0', locale=texts.language)} MB"

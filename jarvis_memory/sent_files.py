"""Attachments as the Messages API wants them, and which of a conversation's files still go along."""

import base64
from collections.abc import Mapping

from jarvis_memory.answers import Block
from jarvis_memory.attachments import BYTES_A_MESSAGE, PAGES_A_MESSAGE, PDF, TEXT, Attachment
from jarvis_memory.conversations import Message
from jarvis_memory.errors import ClaudeRequestRejected
from jarvis_memory.prompts import NO_LONGER_SENT, Language

# Of one request. The API takes 32 MB, of which a third is base64, 100 pages, and many images only when they are small.
SENT_BYTES = BYTES_A_MESSAGE
SENT_IMAGES = 20
SENT_PAGES = PAGES_A_MESSAGE
# What an image takes of the history, in characters, and a page of a PDF. For a page that is less than it takes: even
# the longest PDF is to stay in sight in the turns that follow.
IMAGE_CHARACTERS = 5_000
PAGE_CHARACTERS = 2_500


def files_to_send(messages: list[Message], *, pdfs: bool) -> list[int]:
    """The ids of the files that go along: those of the newest messages, as many as one request may have.

    Once one is too much, all older ones stay behind as well, so that the beginning of the prompt changes rarely. What
    the service did not accept stays behind from the next message on, or the chat could never go on.
    """
    left_bytes, left_images, left_pages = SENT_BYTES, SENT_IMAGES, SENT_PAGES
    sent: list[int] = []
    rejected = False
    for message in reversed(messages):
        if message.role == "assistant":
            rejected = any(block["error"] == ClaudeRequestRejected.__name__ for block in message.blocks_of("error"))
        for block in reversed(message.blocks_of("attachment")):
            if rejected or (block["media_type"] == PDF and not pdfs):
                continue
            left_bytes -= block["size"]
            left_images -= block["media_type"].startswith("image/")
            left_pages -= block.get("pages", 0)
            if min(left_bytes, left_images, left_pages) < 0:
                return sent
            sent.append(block["id"])
    return sent


def file_blocks(
    message: Message, files: Mapping[int, Attachment], language: Language, *, documents: bool
) -> list[Block]:
    """The message's files for Claude; a note for those that are not in `files`.

    With `documents` PDFs and texts are documents with a title; other servers get texts as text in a tag.
    """
    return [
        _file_block(files[block["id"]], documents)
        if block["id"] in files
        else {"type": "text", "text": NO_LONGER_SENT[language].format(name=block["name"])}
        for block in message.blocks_of("attachment")
    ]


def _file_block(file: Attachment, documents: bool) -> Block:
    if file.media_type == TEXT and not documents:
        # The name cannot hold the signs that end an attribute or a tag, the text cannot end the tag.
        name = file.name.translate(str.maketrans('"<>', "'()"))
        inside = file.content.decode().replace("</attached_file", "<\\/attached_file")
        return {"type": "text", "text": f'<attached_file name="{name}">\n{inside}\n</attached_file>'}
    if file.media_type == TEXT:
        source = {"type": "text", "media_type": TEXT, "data": file.content.decode()}
        return {"type": "document", "source": source, "title": file.name}
    encoded = base64.b64encode(file.content).decode()
    source = {"type": "base64", "media_type": file.media_type, "data": encoded}
    if file.is_image:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": file.name}


def file_characters(message: Message) -> int:
    """How much of the history the message's files take, in characters."""
    size = 0
    for block in message.blocks_of("attachment"):
        if block["media_type"] == TEXT:
            size += block["size"]
        elif block["media_type"] == PDF:
            size += block.get("pages", 0) * PAGE_CHARACTERS
        else:
            size += IMAGE_CHARACTERS
    return size

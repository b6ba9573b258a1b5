"""What the Messages API refuses of images and documents, as pure functions, in the words of the real API.

A part of history_rules.py, which calls it.
"""

import base64
import io
from collections.abc import Iterator
from typing import Any

from PIL import Image
from pypdf import PdfReader

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
IMAGE_BASE64 = 5 * 1024 * 1024
LONGEST_SIDE = 8_000
MANY_IMAGES = 20
LONGEST_SIDE_OF_MANY = 2_000
MOST_PAGES = 100
REQUEST_BYTES = 32 * 1024 * 1024
Block = dict[str, Any]


def file_violations(where: str, role: str, block: Block) -> Iterator[str]:
    """What is wrong with one image or document block."""
    kind, source = block["type"], block.get("source")
    if role != "user":
        yield f"{where}: `{kind}` blocks can only be in `user` messages"
    if not isinstance(source, dict) or "type" not in source:
        yield f"{where}.{kind}.source: Field required"
    if not isinstance(block.get("title") or "", str):
        yield f"{where}.document.title: Input should be a valid string"
    known = ("base64",) if kind == "image" else ("base64", "text")
    if source["type"] not in known:
        yield f"{where}.{kind}.source.type: Input should be {' or '.join(known)}"
    inside = f"{where}.{kind}.source.{source['type']}"
    for key in ("media_type", "data"):
        if not isinstance(source.get(key), str):
            yield f"{inside}.{key}: Field required"
    for key in source.keys() - {"type", "media_type", "data"}:
        yield f"{inside}.{key}: Extra inputs are not permitted"
    if source["type"] == "text":
        yield from _text(inside, source)
        return
    try:
        data = base64.b64decode(source["data"], validate=True)
    except ValueError:
        yield f"{inside}.data: Input should be a valid base64 string"
        return
    if not data:
        yield f"{inside}: {kind} cannot be empty"
    yield from _image(inside, source, data) if kind == "image" else _pdf(inside, source, data)


def _text(inside: str, source: Block) -> Iterator[str]:
    if source["media_type"] != "text/plain":
        yield f"{inside}.media_type: Input should be 'text/plain'"
    if not source["data"].strip():
        yield f"{inside}.data: document text must contain non-whitespace text"


def _image(inside: str, source: Block, data: bytes) -> Iterator[str]:
    if source["media_type"] not in IMAGE_TYPES:
        yield f"{inside}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    if len(source["data"]) > IMAGE_BASE64:
        yield f"{inside}: image exceeds 5 MB maximum: {len(source['data'])} bytes > {IMAGE_BASE64} bytes"
    size, media_type = _looked_at(data)
    if media_type is None:
        yield f"{inside}.data: Could not process image"
    elif media_type != source["media_type"]:
        yield (
            f"{inside}: The image was specified using the {source['media_type']} media type, "
            f"but the image appears to be a {media_type} image"
        )
    if max(size) > LONGEST_SIDE:
        yield f"{inside}: At least one of the image dimensions exceed max allowed size: {LONGEST_SIDE} pixels"


def _looked_at(data: bytes) -> tuple[tuple[int, int], str | None]:
    """Width and height, and the media type; None for what is no image."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return image.size, Image.MIME.get(image.format or "")
    except OSError:
        return (0, 0), None


def _pdf(inside: str, source: Block, data: bytes) -> Iterator[str]:
    if source["media_type"] != "application/pdf":
        yield f"{inside}.media_type: Input should be 'application/pdf'"
    if not data.startswith(b"%PDF-"):
        yield f"{inside}.data: The PDF specified was not valid."
    elif PdfReader(io.BytesIO(data)).is_encrypted:
        yield f"{inside}.data: The PDF specified is password protected."


def files_together(blocks: list[Block]) -> Iterator[str]:
    """What is wrong with all images and documents of a request together, each of which is right by itself."""
    files = [block for block in blocks if block["type"] in ("image", "document")]
    data = [(one, base64.b64decode(one["source"]["data"])) for one in files if one["source"]["type"] == "base64"]
    images = [content for one, content in data if one["type"] == "image"]
    if len(images) > MANY_IMAGES and any(max(_looked_at(one)[0]) > LONGEST_SIDE_OF_MANY for one in images):
        yield (
            "At least one of the image dimensions exceed max allowed size for many-image requests: "
            f"{LONGEST_SIDE_OF_MANY} pixels"
        )
    pages = sum(len(PdfReader(io.BytesIO(content)).pages) for one, content in data if one["type"] == "document")
    if pages > MOST_PAGES:
        yield f"A maximum of {MOST_PAGES} PDF pages may be provided."

"""`read_upload`: what may be attached, judged by its content, and how it is kept.

Images are made smaller and lose their metadata (the place where a photo was taken), texts become UTF-8.
"""

import io
import re
import unicodedata
from pathlib import PurePosixPath

from PIL import Image, ImageOps
from pypdf import PdfReader

from jarvis_memory.attachments import CHARACTERS_A_MESSAGE, MEGABYTE, PAGES_A_MESSAGE, PDF, TEXT, Attachment
from jarvis_memory.errors import (
    AttachmentEmpty,
    AttachmentTooLarge,
    AttachmentUnknown,
    ImageHasTooManyPixels,
    ImageUnreadable,
    PdfLocked,
    PdfsNotUnderstood,
    PdfsTooLong,
    PdfUnreadable,
    TextFilesTooLong,
)
from jarvis_memory.text import clean, decoded_text, one_line, shorten

IMAGE_BYTES = 20 * MEGABYTE
PDF_BYTES = 10 * MEGABYTE
# Above 1,568 the API makes images smaller itself, above 8,000 (2,000 among many) it refuses them. A bit less, because
# what is wider than 1,460 the page would encode anew each time it is drawn.
IMAGE_SIDE = 1_456
# A tiny file can unpack to gigabytes.
IMAGE_PIXELS = 80 * 1_000_000
# What is larger as a PNG becomes a JPEG. The API takes 5 MB of base64.
PNG_BYTES = MEGABYTE
JPEG_QUALITY = 85
NAME_CHARACTERS = 120

_IMAGE = re.compile(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL)
_EXTENSIONS = {"JPEG": (".jpg", ".jpeg", ".jpe"), "PNG": (".png",)}


def read_upload(name: str, data: bytes, *, pdfs: bool) -> Attachment:
    """The file as it is kept; without `pdfs`, for a server that does not understand them, a PDF becomes its text.

    Raises an error that names the file and the limit: AttachmentEmpty, AttachmentUnknown, AttachmentTooLarge,
    ImageUnreadable, ImageHasTooManyPixels, PdfUnreadable, PdfLocked, PdfsTooLong, PdfsNotUnderstood, TextFilesTooLong.
    """
    name = clean_name(name)
    if not data.strip():
        raise AttachmentEmpty(name=name)
    if _IMAGE.match(data):
        return _image(name, data)
    if data.startswith(b"%PDF-"):
        return _pdf(name, data, pdfs)
    said = decoded_text(data)
    if said is None:
        raise AttachmentUnknown(name=name)
    return _text(name, said)


def clean_name(name: str) -> str:
    """A file's name without a path, control characters and marks that turn the direction of writing."""
    last = re.split(r"[/\\]", clean(name))[-1]
    visible = "".join(sign for sign in unicodedata.normalize("NFC", last) if unicodedata.category(sign)[0] != "C")
    path = PurePosixPath(one_line(visible).lstrip(". ") or "file")
    extension = path.suffix[:20]
    return shorten(path.name.removesuffix(path.suffix), NAME_CHARACTERS - len(extension)) + extension


def _image(name: str, data: bytes) -> Attachment:
    if len(data) > IMAGE_BYTES:
        raise AttachmentTooLarge(name=name, limit=IMAGE_BYTES // MEGABYTE)
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP", "GIF"))
        if image.width * image.height > IMAGE_PIXELS:
            raise Image.DecompressionBombError
        sharp = image.format in ("PNG", "GIF")
        format_, content = _encoded(_made_small(image), sharp)
    except Image.DecompressionBombError as error:
        raise ImageHasTooManyPixels(name=name, limit=IMAGE_PIXELS // 1_000_000) from error
    except Exception as error:  # noqa: BLE001 - Pillow raises nearly everything at a broken file
        raise ImageUnreadable(name=name, cause=type(error).__name__) from error
    if not name.lower().endswith(_EXTENSIONS[format_]):
        name = clean_name(str(PurePosixPath(name).with_suffix(_EXTENSIONS[format_][0])))
    return Attachment(name=name, media_type=f"image/{format_.lower()}", content=content)


def _made_small(image: Image.Image) -> Image.Image:
    """The first frame, upright, at most IMAGE_SIDE on its long side, as RGB or RGBA."""
    if image.mode.startswith("I"):  # 16 bits of grey: Pillow would cut them to white
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    # A JPEG in RGB stays as it is until it is small: its decoder can leave out what is not needed.
    elif image.mode not in ("RGB", "L"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.thumbnail((IMAGE_SIDE, IMAGE_SIDE))
    upright = ImageOps.exif_transpose(image)
    return upright if upright.mode == "RGBA" else upright.convert("RGB")


def _encoded(image: Image.Image, sharp: bool) -> tuple[str, bytes]:
    """PNG for what has sharp edges (screenshots) or is transparent, JPEG for photos; without any metadata."""
    if sharp or image.mode == "RGBA":
        png = _saved(image, "PNG", optimize=True)
        if len(png) <= PNG_BYTES:
            return "PNG", png
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    return "JPEG", _saved(image, "JPEG", quality=JPEG_QUALITY)


def _saved(image: Image.Image, format_: str, **options: object) -> bytes:
    # Of its own: what is in `info` (comments, EXIF, a colour profile) some encoders write by themselves.
    bare = image.copy()
    bare.info = {}
    file = io.BytesIO()
    bare.save(file, format_, **options)
    return file.getvalue()


def _pdf(name: str, data: bytes, pdfs: bool) -> Attachment:
    if len(data) > PDF_BYTES:
        raise AttachmentTooLarge(name=name, limit=PDF_BYTES // MEGABYTE)
    try:
        reader = PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted
        pages = 0 if locked else len(reader.pages)
        said = "" if pdfs or not 0 < pages <= PAGES_A_MESSAGE else _text_of(reader)
    except Exception as error:  # noqa: BLE001 - pypdf raises nearly everything at a broken file
        raise PdfUnreadable(name=name, cause=type(error).__name__) from error
    if locked:  # the API takes none, also not one that opens without a password
        raise PdfLocked(name=name)
    if pages == 0:
        raise PdfUnreadable(name=name)
    if pages > PAGES_A_MESSAGE:
        raise PdfsTooLong(name=name, limit=PAGES_A_MESSAGE)
    if pdfs:
        return Attachment(name=name, media_type=PDF, content=data, pages=pages)
    if not said.strip():
        raise PdfsNotUnderstood(name=name)
    return _text(clean_name(f"{name}.txt"), said)


def _text_of(reader: PdfReader) -> str:
    """What pypdf finds of text; nothing in a scan."""
    said = ""
    for page in reader.pages:
        said += f"{page.extract_text()}\n\n"
        if len(said) > CHARACTERS_A_MESSAGE:  # refused anyway
            break
    return said


def _text(name: str, said: str) -> Attachment:
    said = clean(said)
    if not said.strip():
        raise AttachmentEmpty(name=name)
    if len(said) > CHARACTERS_A_MESSAGE:
        raise TextFilesTooLong(name=name, limit=CHARACTERS_A_MESSAGE)
    return Attachment(name=name, media_type=TEXT, content=said.encode())

"""Files as people attach them, made on the spot, and damaged ones."""

import io
import random
import struct
import zlib

from PIL import Image
from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

UPSIDE_DOWN, TURNED_RIGHT = 3, 6  # values of EXIF's orientation


def image(size: tuple[int, int] = (60, 40), format_: str = "PNG", *, noise: bool = False, **options: object) -> bytes:
    """A picture whose left half is red and whose right half is blue, or (of a size that hardly shrinks) noise."""
    if noise:
        picture = Image.frombytes("RGB", size, random.Random(1).randbytes(size[0] * size[1] * 3))
    else:
        picture = Image.new("RGB", size, "red")
        picture.paste("blue", (size[0] // 2, 0, *size))
    return saved(picture, format_, **options)


def saved(picture: Image.Image, format_: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, format_, **options)
    return file.getvalue()


def photo(size: tuple[int, int] = (60, 40), *, orientation: int = 1) -> bytes:
    """A JPEG as a phone takes it: with the camera's name, the place and a comment."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "Kamera-Geheim"
    exif.get_ifd(0x8825)[2] = (48.0, 8.0, 15.0)
    return image(size, "JPEG", exif=exif, comment=b"Kommentar-Geheim", quality=95)


def animation() -> bytes:
    """A GIF of a red and a green picture."""
    first, second = Image.new("RGB", (30, 20), "red"), Image.new("RGB", (30, 20), "lime")
    return saved(first, "GIF", save_all=True, append_images=[second], duration=100)


def bomb(side: int = 30_000) -> bytes:
    """A PNG of a few kilobytes that says it has `side` times `side` pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1_000)), (b"IEND", b"")]
    packed = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def pdf(pages: int = 1, *, said: str = "", password: str | None = None) -> bytes:
    """A PDF of so many pages, with this text on the first."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if said:
        _write(writer, said)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def _write(writer: PdfWriter, said: str) -> None:
    font = DictionaryObject()
    font.update({NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")})
    font[NameObject("/BaseFont")] = NameObject("/Helvetica")
    stream = StreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 100 Td ({said}) Tj ET".encode("latin-1"))
    page = writer.pages[0]
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    page[NameObject("/Contents")] = writer._add_object(stream)

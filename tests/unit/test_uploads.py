"""What may be attached, and how it is kept: images small and without metadata, texts in UTF-8."""

import io
from typing import Any

import pytest
from PIL import Image

from jarvis_memory import uploads
from jarvis_memory.attachments import Attachment, check_attachments
from jarvis_memory.errors import (
    AttachmentEmpty,
    AttachmentsTooLarge,
    AttachmentTooLarge,
    AttachmentUnknown,
    ImageHasTooManyPixels,
    ImageUnreadable,
    JarvisError,
    PdfLocked,
    PdfsNotUnderstood,
    PdfsTooLong,
    PdfUnreadable,
    TextFilesTooLong,
    TooManyAttachments,
)
from jarvis_memory.uploads import clean_name, read_upload
from tests.files import TURNED_RIGHT, UPSIDE_DOWN, animation, bomb, image, pdf, photo, saved


def upload(name: str, data: bytes, *, pdfs: bool = True) -> Attachment:
    return read_upload(name, data, pdfs=pdfs)


def picture(file: Attachment) -> Image.Image:
    opened = Image.open(io.BytesIO(file.content))
    opened.load()
    return opened


def colour(file: Attachment, x: float, y: float) -> str:
    """The name of the strongest colour at a place, from 0 to 1."""
    opened = picture(file).convert("RGB")
    values = opened.getpixel((int(x * (opened.width - 1)), int(y * (opened.height - 1))))
    assert isinstance(values, tuple)
    return ("red", "green", "blue")[values.index(max(values))]


@pytest.mark.parametrize(
    ("data", "media_type", "name"),
    [
        (photo(), "image/jpeg", "bild.jpg"),
        (image(), "image/png", "bild.png"),
        (image(format_="WEBP"), "image/jpeg", "bild.jpg"),
        (animation(), "image/png", "bild.png"),
    ],
    ids=["jpeg", "png", "webp", "gif"],
)
def test_an_image_is_known_by_its_content_and_gets_the_name_that_fits(data: bytes, media_type: str, name: str) -> None:
    file = upload("bild.txt", data)
    assert (file.media_type, file.name) == (media_type, name)
    assert picture(file).size == Image.open(io.BytesIO(data)).size


def test_a_name_that_fits_stays() -> None:
    assert upload("Bild.JPEG", photo()).name == "Bild.JPEG"


@pytest.mark.parametrize(("size", "kept"), [((4_000, 3_000), (1_456, 1_092)), ((900, 4_000), (328, 1_456))])
def test_a_large_image_is_made_smaller(size: tuple[int, int], kept: tuple[int, int]) -> None:
    assert picture(upload("foto.jpg", photo(size))).size == kept
    assert picture(upload("foto.png", image(size))).size == kept


def test_a_narrow_image_keeps_a_pixel() -> None:
    assert picture(upload("strich.png", image((4_000, 1)))).size == (1_456, 1)


def test_nothing_of_a_photos_metadata_is_kept() -> None:
    file = upload("foto.jpg", photo((3_000, 2_000)))
    assert b"Geheim" not in file.content
    assert b"Exif" not in file.content
    assert not picture(file).getexif()
    small = saved(Image.new("RGB", (9, 9)), "PNG", exif=Image.open(io.BytesIO(photo())).getexif())
    assert b"Geheim" in small
    assert b"Geheim" not in upload("klein.png", small).content


@pytest.mark.parametrize("size", [(60, 40), (3_000, 2_000)])
def test_an_image_is_upright(size: tuple[int, int]) -> None:
    assert [colour(upload("a.jpg", photo(size)), x, 0.5) for x in (0, 1)] == ["red", "blue"]
    turned = upload("a.jpg", photo(size, orientation=UPSIDE_DOWN))
    assert [colour(turned, x, 0.5) for x in (0, 1)] == ["blue", "red"]
    turned = upload("a.jpg", photo(size, orientation=TURNED_RIGHT))
    assert picture(turned).width < picture(turned).height
    assert [colour(turned, 0.5, y) for y in (0, 1)] == ["red", "blue"]


def test_of_an_animation_the_first_picture_is_kept() -> None:
    file = upload("tanz.gif", animation())
    assert getattr(picture(file), "n_frames", 1) == 1
    assert colour(file, 0.5, 0.5) == "red"


def test_a_transparent_image_stays_transparent_and_a_photo_as_png_becomes_a_jpeg(monkeypatch: Any) -> None:
    clear = Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    assert picture(upload("logo.png", saved(clear, "PNG"))).getpixel((0, 0)) == (255, 0, 0, 0)
    assert upload("foto.png", image((1_200, 1_200), noise=True)).media_type == "image/jpeg"
    monkeypatch.setattr(uploads, "PNG_BYTES", 1)
    assert picture(upload("logo.png", saved(clear, "PNG"))).getpixel((0, 0)) == (255, 255, 255)


def test_even_an_image_that_hardly_shrinks_is_one_that_the_api_takes() -> None:
    file = upload("rauschen.png", image((1_456, 1_456), noise=True))
    assert len(file.content) * 4 / 3 < 5_000_000


def test_unusual_colours_are_understood() -> None:
    grey = Image.new("I;16", (10, 10), 40_000)
    assert picture(upload("scan.png", saved(grey, "PNG"))).getpixel((0, 0)) == (156, 156, 156)
    ink = Image.new("CMYK", (10, 10), (0, 255, 255, 0))
    assert colour(upload("druck.jpg", saved(ink, "JPEG")), 0.5, 0.5) == "red"
    assert upload("fax.png", saved(Image.new("1", (10, 10)), "PNG")).media_type == "image/png"


def test_a_pdf_is_kept_as_it_is_with_its_number_of_pages() -> None:
    data = pdf(3)
    file = upload("Rechnung.pdf", data)
    assert (file.media_type, file.pages, file.content) == ("application/pdf", 3, data)


def test_where_pdfs_are_not_understood_their_text_is_kept() -> None:
    file = upload("Rechnung.pdf", pdf(2, said="Betrag 42 Euro"), pdfs=False)
    assert (file.name, file.media_type) == ("Rechnung.pdf.txt", "text/plain")
    assert "Betrag 42 Euro" in file.content.decode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_text_is_kept_in_utf_8_whatever_its_encoding(encoding: str) -> None:
    file = upload("liste.csv", "Käse;3 €\r\nBrot;2 €\tx".encode(encoding))
    assert (file.media_type, file.content.decode()) == ("text/plain", "Käse;3 €\r\nBrot;2 €\tx")


REFUSED = [
    ("leer.txt", b"", AttachmentEmpty, None),
    ("blank.txt", b" \n\t", AttachmentEmpty, None),
    ("marke.txt", b"\xef\xbb\xbf \n", AttachmentEmpty, None),
    ("brief.docx", b"PK\x03\x04\x14\x00\x06\x00", AttachmentUnknown, None),
    ("programm.txt", b"MZ\x90\x00\x03", AttachmentUnknown, None),
    ("ton.txt", b"\x81\x8d ID3", AttachmentUnknown, None),
    ("signale.txt", b"abc\x07\x01", AttachmentUnknown, None),
    ("foto.heic", b"\x00\x00\x00\x18ftypheic", AttachmentUnknown, None),
    ("kaputt.png", image()[:60], ImageUnreadable, None),
    ("kaputt.jpg", photo()[: len(photo()) // 2], ImageUnreadable, None),
    ("kaputt.webp", b"RIFF0000WEBPVP8 ", ImageUnreadable, None),
    ("bombe.png", bomb(), ImageHasTooManyPixels, 80),
    ("bombe.png", bomb(9_000), ImageHasTooManyPixels, 80),
    ("gross.png", image() + b"\0" * 20_000_000, AttachmentTooLarge, 20),
    ("gross.pdf", pdf() + b"\0" * 10_000_000, AttachmentTooLarge, 10),
    ("lang.pdf", pdf(101), PdfsTooLong, 100),
    ("geheim.pdf", pdf(password="x"), PdfLocked, None),
    ("frei.pdf", pdf(password=""), PdfLocked, None),
    ("kaputt.pdf", b"%PDF-1.7\nnichts", PdfUnreadable, None),
    ("nichts.pdf", pdf(0), PdfUnreadable, None),
    ("roman.txt", b"a" * 250_001, TextFilesTooLong, 250_000),
]


@pytest.mark.parametrize(
    ("name", "data", "error", "limit"), REFUSED, ids=[f"{one[0]}-{one[2].__name__}" for one in REFUSED]
)
def test_what_cannot_be_attached_is_refused_by_name_and_limit(
    name: str, data: bytes, error: type[JarvisError], limit: int | None
) -> None:
    with pytest.raises(error) as raised:
        upload(name, data)
    assert type(raised.value) is error
    assert raised.value.details["name"] == name
    assert raised.value.details.get("limit") == limit


def test_a_scan_is_refused_where_only_the_text_of_pdfs_is_read() -> None:
    with pytest.raises(PdfsNotUnderstood):
        upload("scan.pdf", pdf(2), pdfs=False)
    with pytest.raises(PdfsTooLong):
        upload("lang.pdf", pdf(101, said="Text"), pdfs=False)


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("Rechnung Mai.pdf", "Rechnung Mai.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\Eva\\foto.png", "foto.png"),
        ("a\x00b\nc\u202etxt.exe", "abctxt.exe"),
        ("halb\ud83d.txt", "halb.txt"),
        ("a\u0308.txt", "ä.txt"),
        (".htaccess", "htaccess"),
        ("", "file"),
        ("..", "file"),
        ("x" * 300 + ".pdf", "x" * 115 + "….pdf"),
        ("y." + "z" * 300, "y." + "z" * 19),
    ],
)
def test_a_name_is_cleaned(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned
    assert len(clean_name(name)) <= 120


def of(media_type: str, size: int = 10, pages: int = 0) -> Attachment:
    return Attachment(name=f"{size}.x", media_type=media_type, content=b"a" * size, pages=pages)


@pytest.mark.parametrize(
    ("files", "error", "limit"),
    [
        ([of("image/png")] * 11, TooManyAttachments, 10),
        ([of("image/png", 8_000_000)] * 2, AttachmentsTooLarge, 15),
        ([of("application/pdf", pages=60)] * 2, PdfsTooLong, 100),
        ([of("text/plain", 150_000)] * 2, TextFilesTooLong, 250_000),
    ],
)
def test_too_much_together_is_refused(files: list[Attachment], error: type[JarvisError], limit: int) -> None:
    check_attachments(files[:1], pdfs=True)
    with pytest.raises(error) as raised:
        check_attachments(files, pdfs=True)
    assert raised.value.details["limit"] == limit


def test_a_pdf_is_refused_for_a_server_that_does_not_understand_it() -> None:
    with pytest.raises(PdfsNotUnderstood):
        check_attachments([of("application/pdf", pages=1)], pdfs=False)

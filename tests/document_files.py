"""Documents as people upload them, made on the spot, and those that were made to break their reader."""

import io
import zipfile
import zlib
from collections.abc import Sequence

import docx
from pypdf import PdfReader, PdfWriter

LOREM = "Der Mieter zahlt die Miete am Ersten des Monats, und der Vermieter bestätigt den Eingang."

_CONTENT_TYPES = b"""<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_RELATIONSHIPS = b"""<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="a" Target="word/document.xml"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>"""
_WORD = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_WORD += b' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><w:body>'
_WORD_END = b"</w:body></w:document>"
_ODT = "application/vnd.oasis.opendocument.text"
_LAUGHS = "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
_LAUGHS = f"<!DOCTYPE x [<!ENTITY a 'ha ha ha ha ha ha ha ha ha ha '>{_LAUGHS}]>"


def pdf_of(pages: Sequence[str], *, password: str | None = None, algorithm: str = "RC4-128") -> bytes:
    """A PDF with these lines on its pages; a blank line leaves a gap."""
    data = _pdf([zlib.compress(_drawn(page)) for page in pages])
    if password is None:
        return data
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, "owner", algorithm=algorithm)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def exploding_pdf(block: bytes, times: int) -> bytes:
    """A PDF of one page, whose content is this block so many times."""
    return _pdf([b"\x78\xda" + _repeated(b"", block, times, b"")])  # what zlib begins with; its checksum may be missing


def _drawn(page: str) -> bytes:
    said = b""
    for line in page.split("\n"):
        escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        said += f"({escaped}) Tj T*\n".encode("cp1252") if line else b"T*\n"
    return b"BT /F1 10 Tf 12 TL 50 800 Td\n" + said + b"ET"


def _pdf(contents: Sequence[bytes]) -> bytes:
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        font,
    ]
    for number, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * number)
        )
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content))
    said, places = bytearray(b"%PDF-1.7\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(said))
        said += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    said += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    start = bytes(said).rindex(b"xref\n")
    said += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(said)


def docx_of(*parts: tuple[str, str] | list[list[str]]) -> bytes:
    """A Word document: texts with their styles ("Normal", "Heading 1", "Title"), and tables."""
    document = docx.Document()
    for part in parts:
        if isinstance(part, tuple):
            document.add_paragraph(part[0], style=part[1])
        else:
            table = document.add_table(rows=len(part), cols=len(part[0]))
            for row, cells in enumerate(part):
                for column, said in enumerate(cells):
                    table.cell(row, column).text = said
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def docx_with(body: bytes, *, before: bytes = b"") -> bytes:
    """A Word document with this XML in its body."""
    return zipped(_docx_parts() | {"word/document.xml": before + _WORD + body + _WORD_END})


def exploding_docx(block: bytes, times: int, *, said_size: int | None = None) -> bytes:
    """A Word document with this XML so many times in its body; `said_size` is what the archive says of its size."""
    file = io.BytesIO(zipped(_docx_parts()))
    with zipfile.ZipFile(file, "a") as archive:
        entry = zipfile.ZipInfo("word/document.xml")
        archive.writestr(entry, _repeated(_WORD, block, times, _WORD_END))
        # Stored as it is, but the archive's directory, which is written at the end, says that it is packed.
        entry.compress_type = zipfile.ZIP_DEFLATED
        if said_size is None:
            entry.file_size = len(_WORD) + len(block) * times + len(_WORD_END)
            entry.CRC = zlib.crc32(_WORD)
            for _ in range(times):
                entry.CRC = zlib.crc32(block, entry.CRC)
            entry.CRC = zlib.crc32(_WORD_END, entry.CRC)
        else:
            entry.file_size, entry.CRC = said_size, 0
    return file.getvalue()


def laughing_docx() -> bytes:
    """A Word document of "billion laughs"."""
    return docx_with(b"<w:p><w:r><w:t>Anfang &i; Ende</w:t></w:r></w:p>", before=_LAUGHS.encode())


def odt_of(body: str, *, before: str = "", manifest: str = "", mimetype: str = _ODT) -> bytes:
    """An OpenDocument text with this XML in its body."""
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "drawing", "manifest")
    )
    root = f"<office:document-content{spaces}><office:body><office:text>"
    end = "</office:text></office:body></office:document-content>"
    content = f"{before}{root}{body}{end}"
    return zipped(
        {
            "mimetype": mimetype.encode(),
            "content.xml": content.encode(),
            "META-INF/manifest.xml": f"<m>{manifest}</m>".encode(),
        }
    )


def laughing_odt() -> bytes:
    """An OpenDocument text of "billion laughs"."""
    return odt_of("<text:p>Anfang &i; Ende</text:p>", before=_LAUGHS)


def zipped(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def _docx_parts() -> dict[str, bytes]:
    return {"[Content_Types].xml": _CONTENT_TYPES, "_rels/.rels": _RELATIONSHIPS}


def _repeated(head: bytes, block: bytes, times: int, tail: bytes) -> bytes:
    """Deflated without holding what it unpacks to: after a full flush packed blocks can stand in any order."""
    packed = []
    for part, flush in ((head, zlib.Z_FULL_FLUSH), (block, zlib.Z_FULL_FLUSH), (tail, zlib.Z_FINISH)):
        packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed.append(packer.compress(part) + packer.flush(flush))
    return packed[0] + packed[1] * times + packed[2]

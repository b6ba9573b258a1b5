"""What a document says, of each kind and in both languages, and what is refused."""

from pathlib import Path

import pytest
from pypdf.errors import DependencyError

from jarvis_memory import document_formats, pdf_documents
from jarvis_memory.document_blocks import Block
from jarvis_memory.document_formats import DocumentText, read_document_text
from jarvis_memory.errors import (
    DocumentBroken,
    DocumentEmpty,
    DocumentLocked,
    DocumentTooLong,
    DocumentTooManyPages,
    DocumentUnknown,
    DocumentUnreadable,
    DocumentWithoutText,
)
from tests.document_files import (
    docx_of,
    docx_with,
    exploding_docx,
    exploding_pdf,
    laughing_docx,
    laughing_odt,
    odt_of,
    pdf_of,
    zipped,
)
from tests.files import image

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
MAIL = """From: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>
To: eva@example.org
Date: Thu, 12 Nov 2026 10:30:00 +0100
Subject: =?utf-8?q?K=C3=BCndigung?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/plain; charset=utf-8

Liebe Eva,

anbei die K\u00fcndigung.
--x
Content-Type: application/pdf
Content-Disposition: attachment; filename=Brief.pdf

x
--x--
"""


def read(name: str, data: bytes | str, *, pages_limit: int = 100) -> DocumentText:
    return read_document_text(name, data.encode() if isinstance(data, str) else data, pages_limit=pages_limit)


def said(document: DocumentText) -> list[tuple[int, str]]:
    return [(block.heading_level, block.text) for block in document.blocks]


def lines(text: str) -> list[tuple[int, str]]:
    return said(read("a.txt", text))


def page(text: str) -> list[tuple[int, str]]:
    return said(read("a.pdf", pdf_of([text])))


# --- PDF --------------------------------------------------------------------------------------------------


def test_a_pdf_is_read_page_by_page() -> None:
    document = read("Vertrag.pdf", pdf_of(["§ 5 Kündigung\nDie Frist beträgt drei Monate.", "", "Größe (in m²): 80"]))
    assert (document.kind, document.pages) == ("pdf", 3)
    assert document.blocks == [
        Block(text="§ 5 Kündigung", page=1, heading_level=4),
        Block(text="Die Frist beträgt drei Monate.", page=1),
        Block(text="Größe (in m²): 80", page=3),
    ]


def test_the_lines_of_a_pdf_become_paragraphs_again() -> None:
    assert page(
        "Dieser Mietvertrag wird geschlossen zwischen den Parteien, die unten unter-\n"
        "schrieben haben. Haupt- und Neben-\n"
        "und Heizkosten trägt der Mieter, auch die für das Ost-\n"
        "West-Zimmer und den Zeitraum 2025-\n"
        "2026, wie es der Vermieter wünscht, der Mieter aber nicht.\n"
        "So ist es.\n"
        "Der zweite Absatz beginnt nach einer kurzen Zeile und ist selbst wieder lang genug\n"
        "• erster Punkt\n"
        "mit einer zweiten Zeile\n"
        "• zweiter Punkt"
    ) == [
        (
            0,
            "Dieser Mietvertrag wird geschlossen zwischen den Parteien, die unten unterschrieben haben. Haupt- und "
            "Neben- und Heizkosten trägt der Mieter, auch die für das Ost-West-Zimmer und den Zeitraum 2025-2026, "
            "wie es der Vermieter wünscht, der Mieter aber nicht. So ist es.",
        ),
        (0, "Der zweite Absatz beginnt nach einer kurzen Zeile und ist selbst wieder lang genug"),
        (0, "• erster Punkt mit einer zweiten Zeile"),
        (0, "• zweiter Punkt"),
    ]


def test_ligatures_and_soft_hyphens_of_a_pdf_are_letters_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypdf.PageObject.extract_text", lambda _: "Die Pﬂicht des Ver\u00ad\nmieters a\u0308ndert")
    assert page("x") == [(0, "Die Pflicht des Vermieters ändert")]


def test_a_pdf_that_opens_with_the_empty_password_is_read() -> None:
    for algorithm in ("RC4-128", "AES-256"):
        data = pdf_of(["Frei lesbar"], password="", algorithm=algorithm)
        assert said(read("a.pdf", data)) == [(0, "Frei lesbar")]


def test_a_pdf_that_needs_a_missing_library_to_decrypt_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(_: object) -> None:
        raise DependencyError("cryptography is missing")

    monkeypatch.setattr(pdf_documents, "PdfReader", without)
    with pytest.raises(DocumentLocked):
        read("a.pdf", pdf_of(["x"]))


# --- headings in lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("Teil II: Besondere Bestimmungen", 1),
        ("Part A", 1),
        ("Kapitel 3: Über das Wohnen", 2),
        ("Chapter 3 – Living", 2),
        ("Anhang", 2),
        ("Anhang B", 2),
        ("Appendix 1. Tables", 2),
        ("1. Einleitung", 2),
        ("Abschnitt 4", 3),
        ("Section 2.1 Payment", 3),
        ("§ 5 Kündigung", 4),
        ("§5a Fristen", 4),
        ("§ 5.", 4),
        ("Artikel 7", 4),
        ("Article 7: Notice", 4),
        ("1.2 Titel", 5),
        ("1.2.3 Überblick", 6),
        ("1.2.3.4.5 Tief unten", 6),
    ],
)
def test_a_line_that_reads_like_a_heading_is_one(line: str, level: int) -> None:
    assert lines(f"Davor steht etwas.\n{line}\nDanach steht ein Satz.") == [
        (0, "Davor steht etwas."),
        (level, line),
        (0, "Danach steht ein Satz."),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "1. Januar 2026",
        "12. May 2026",
        "24.12. Heiligabend",
        "3 Eier",
        "3.50 Euro",
        "1.200 Euro",
        "10.30 Uhr",
        "§ 5 Abs. 2 gilt entsprechend",
        "§ 5 Kündigung ist möglich.",
        "Teilnehmer 5",
        "Section 5 applies to all of them",
        "1.2 klein",
        "Kapitel 3: " + "Sehr lang " * 9,
        "01.2 Null",
        "Anhangweise 1",
    ],
)
def test_a_line_that_only_begins_like_a_heading_is_none(line: str) -> None:
    assert lines(f"Davor steht etwas.\n\n{line}") == [(0, "Davor steht etwas."), (0, line.strip())]


def test_a_line_in_the_midst_of_a_sentence_is_no_heading() -> None:
    text = "Die Frist richtet sich nach dem, was der Vertrag in\n§ 5 Kündigung\nbestimmt hat, und zwar immer für beide."
    assert lines(text) == [(0, text)]
    text = "So ist es.\n§ 5 Kündigung\nbestimmt, was gilt."
    assert lines(text) == [(0, text)]
    text = "Die Frist richtet sich nach dem, was der Vertrag in\n§ 5 Kündigung\nBestimmtes sagt, und zwar für beide."
    assert lines(text) == [(0, text)]


def test_the_items_of_a_list_are_no_headings() -> None:
    assert lines("1. Milch\n2. Brot\n3. Käse") == [(0, "1. Milch\n2. Brot\n3. Käse")]


# --- texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_text_is_read_in_any_usual_encoding(encoding: str) -> None:
    document = read("notiz", "Käse: 3 €\r\nBrot\r\n\r\n\r\nZwei\u00adter Absatz".encode(encoding))
    assert (document.kind, document.pages) == ("text", 0)
    assert said(document) == [(0, "Käse: 3 €\nBrot"), (0, "Zweiter Absatz")]


def test_markdown_has_headings_of_both_kinds_and_none_in_code() -> None:
    text = (
        "# Über uns #\n"
        "Text\nzwei\n## Wohnen\n\n"
        "```sh\n# kein Titel\n\nls\n```\n\n"
        "Haupt\n=====\n"
        "Neben\n---\n"
        "Ende\n\n---\n#hashtag"
    )
    document = read("LIESMICH.md", text)
    assert document.kind == "markdown"
    assert said(document) == [
        (1, "Über uns"),
        (0, "Text\nzwei"),
        (2, "Wohnen"),
        (0, "```sh\n# kein Titel\n\nls\n```"),
        (1, "Haupt"),
        (2, "Neben"),
        (0, "Ende"),
        (0, "---\n#hashtag"),
    ]


def test_a_web_page_has_its_headings_and_nothing_that_is_hidden() -> None:
    html = (
        "<!DOCTYPE html><html><head><title>x</title><script>böse()</script></head><body>Vorab"
        "<h1>Über <b>uns</b></h1><p>Erster<br>zwei</p><p style='display:none'>versteckt</p>"
        "<ul><li>Punkt<li><h2>Drin</h2></ul><h3>Lang<br>und länger</h3>"
        "<table><tr><td>a<td>b</tr></table></body></html>"
    )
    document = read("seite.txt", html)
    assert document.kind == "html"
    assert said(document) == [
        (0, "Vorab"),
        (1, "Über uns"),
        (0, "Erster"),
        (0, "zwei"),
        (0, "* Punkt"),
        (2, "Drin"),
        (3, "Lang und länger"),
        (0, "a  b"),
    ]


def test_a_web_page_is_read_to_its_end_and_however_deep_it_is() -> None:
    assert said(read("a.html", "<p>" + "Wort " * 200_000 + "<h2>Ende gut</h2>"))[-1] == (2, "Ende gut")
    assert said(read("a.html", "<div>" * 50_000 + "Tief unten")) == [(0, "Tief unten")]


def test_a_mail_is_its_subject_its_headers_its_text_and_the_names_of_its_files() -> None:
    document = read("brief.eml", MAIL)
    assert document.kind == "mail"
    assert said(document) == [
        (1, "Kündigung"),
        (0, "From: Jörg <joerg@example.org>\nTo: eva@example.org\nDate: 2026-11-12 10:30+01:00"),
        (0, "Liebe Eva,"),
        (0, "anbei die Kündigung."),
        (0, "Attachments: Brief.pdf"),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_row_of_a_table_stands_with_the_names_of_its_columns(delimiter: str) -> None:
    table = 'Name|Größe|Ort\nEva|"1|70"|Köln\n\nJörg||"Bad\nTölz"|mehr\n'.replace("|", delimiter)
    document = read("liste.csv", table)
    assert document.kind == "csv"
    assert [text for _, text in said(document)] == [
        f"Name: Eva; Größe: 1{delimiter}70; Ort: Köln".replace("\t", " "),
        "Name: Jörg; Ort: Bad Tölz; mehr",
    ]


def test_a_table_of_one_row_or_one_column_is_read() -> None:
    assert lines("x") == [(0, "x")]
    assert said(read("a.csv", "nur eine;Zeile")) == [(0, "nur eine; Zeile")]
    assert said(read("a.tsv", "Wort\neins\nzwei")) == [(0, "Wort: eins"), (0, "Wort: zwei")]


def test_a_table_with_one_huge_cell_is_read_as_a_text() -> None:
    assert said(read("a.csv", "a;b\n" + "x" * 500_000)) == [(0, "a;b\n" + "x" * 500_000)]


# --- DOCX and ODT -----------------------------------------------------------------------------------------


def test_a_word_document_has_its_headings_and_its_tables_in_their_place() -> None:
    document = read(
        "egal",
        docx_of(
            ("Mietvertrag", "Title"),
            ("Größe", "Heading 2"),
            ("Die Wohnung hat 80 m².", "Normal"),
            [["Zimmer", "Fläche"], ["Küche", "12"]],
            ("Tief", "Heading 9"),
            ("Ende", "Normal"),
        ),
    )
    assert (document.kind, document.pages) == ("docx", 0)
    assert said(document) == [
        (1, "Mietvertrag"),
        (2, "Größe"),
        (0, "Die Wohnung hat 80 m²."),
        (0, "Zimmer | Fläche"),
        (0, "Küche | 12"),
        (6, "Tief"),
        (0, "Ende"),
    ]


def test_a_word_document_is_read_with_its_forms_and_its_changes_but_nothing_twice() -> None:
    body = (
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>Im Formular</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>eins</w:t><w:tab/><w:t>zwei</w:t><w:br/></w:r>"
        "<w:ins><w:r><w:t>eingefügt</w:t></w:r></w:ins><w:del><w:r><w:delText>weg</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>verschoben</w:t></w:r></w:moveFrom></w:p>"
        "<w:p><w:r><w:t>Vor</w:t><mc:AlternateContent><mc:Choice><w:txbxContent>"
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>Kasten</w:t></w:r></w:p>"
        "</w:txbxContent></mc:Choice><mc:Fallback><w:p><w:r><w:t>Kasten</w:t></w:r></w:p></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    assert [text for _, text in said(read("a.docx", docx_with(body.encode())))] == [
        "Im Formular",
        "eins zwei\neingefügt",
        "Vor\nKasten",
    ]


def test_an_odt_has_its_headings_and_its_tables_in_their_place() -> None:
    document = read(
        "egal",
        odt_of(
            "<text:tracked-changes><text:p>Gelöscht</text:p></text:tracked-changes>"
            '<text:h text:outline-level="2">Größe</text:h><text:h>Ohne</text:h>'
            "<text:p>Die<text:s text:c='1000000000'/>Wohnung<text:line-break/>hat<text:tab/>"
            "<text:span>80 <text:span>m²</text:span></text:span>.<office:annotation><text:p>Notiz</text:p>"
            "</office:annotation> Ja</text:p>"
            "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Zimmer</text:p>"
            "</table:table-cell><table:table-cell><text:p>Fläche</text:p></table:table-cell></table:table-row>"
            "</table:table-header-rows></table:table>"
            "<text:list><text:list-item><text:p>Punkt</text:p></text:list-item></text:list>"
        ),
    )
    assert (document.kind, document.pages) == ("odt", 0)
    assert said(document) == [
        (2, "Größe"),
        (1, "Ohne"),
        (0, "Die Wohnung\nhat 80 m². Ja"),
        (0, "Zimmer | Fläche"),
        (0, "Punkt"),
    ]


def test_nothing_is_read_from_elsewhere_by_an_entity(tmp_path: Path) -> None:
    (tmp_path / "geheim").write_text("geheim")
    outside = f"<!DOCTYPE x [<!ENTITY a 'innen'><!ENTITY b SYSTEM '{(tmp_path / 'geheim').as_uri()}'>]>"
    paragraph = "<{0}>Anfang &a;&b; Ende</{0}>"
    for data in (
        odt_of(paragraph.format("text:p"), before=outside),
        docx_with(f"<w:p><w:r>{paragraph.format('w:t')}</w:r></w:p>".encode(), before=outside.encode()),
    ):
        ((_, text),) = said(read("a", data))
        assert text.startswith("Anfang")
        assert "innen" not in text
        assert "geheim" not in text


# --- what is refused --------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, bytes, type[DocumentUnreadable]]] = {
    "no bytes": ("a.pdf", b"", DocumentEmpty),
    "blanks": ("a.txt", b"\xef\xbb\xbf \n", DocumentEmpty),
    "an invisible sign": ("a.txt", "\u200b".encode(), DocumentEmpty),
    "a web page without text": ("a.html", b"<html><img></html>", DocumentEmpty),
    "an empty Word document": ("a.docx", docx_of(), DocumentEmpty),
    "an empty ODT": ("a.odt", odt_of("<text:p/>"), DocumentEmpty),
    "an image": ("a.txt", image(), DocumentUnknown),
    "a program": ("a.txt", b"MZ\x90\x00\x03", DocumentUnknown),
    "an old Word document": ("a.docx", OLE, DocumentUnknown),
    "RTF": ("a.txt", b"{\\rtf1 Hallo}", DocumentUnknown),
    "another archive": ("a.docx", zipped({"xl/workbook.xml": b"<x/>"}), DocumentUnknown),
    "a spreadsheet": ("a.odt", odt_of("", mimetype="application/vnd.oasis.opendocument.spreadsheet"), DocumentUnknown),
    "a locked Office file": ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), DocumentLocked),
    "a locked PDF": ("a.pdf", pdf_of(["x"], password="x"), DocumentLocked),
    "a locked PDF of today": ("a.pdf", pdf_of(["x"], password="x", algorithm="AES-256"), DocumentLocked),
    "a locked ODT": ("a.odt", odt_of("\1", manifest="<encryption-data/>"), DocumentLocked),
    "a broken PDF": ("a.pdf", b"%PDF-1.7\nnichts", DocumentBroken),
    "a PDF without pages": ("a.pdf", pdf_of([]), DocumentBroken),
    "a PDF that explodes": ("a.pdf", exploding_pdf(b" (x) Tj " * 10_000, 2_000), DocumentBroken),
    "half a Word document": ("a.docx", docx_of(("x", "Normal"))[:9_000], DocumentBroken),
    "a Word document of broken XML": ("a.docx", docx_with(b"<w:p>"), DocumentBroken),
    "half an ODT": ("a.odt", odt_of("<text:p>x</text:p>")[:-30], DocumentBroken),
    "an ODT of broken XML": ("a.odt", odt_of("<text:p>"), DocumentBroken),
    "an ODT without content": (
        "a.odt",
        zipped({"mimetype": b"application/vnd.oasis.opendocument.text"}),
        DocumentBroken,
    ),
    "a Word document that laughs": ("a.docx", laughing_docx(), DocumentBroken),
    "an ODT that laughs": ("a.odt", laughing_odt(), DocumentBroken),
    "a scan": ("a.pdf", pdf_of(["", ""]), DocumentWithoutText),
    "a Word document that unpacks to 2 GB": ("a.docx", exploding_docx(b" " * 1_000_000, 2_000), DocumentTooLong),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_refused(what: str) -> None:
    name, data, error = REFUSED[what]
    with pytest.raises(DocumentUnreadable) as raised:
        read(name, data)
    assert type(raised.value) is error


def test_a_pdf_may_have_as_many_pages_as_the_limit() -> None:
    assert read("a.pdf", pdf_of(["x"] * 3), pages_limit=3).pages == 3
    with pytest.raises(DocumentTooManyPages) as raised:
        read("a.pdf", pdf_of(["x"] * 4), pages_limit=3)
    assert raised.value.details == {"limit": 3}


def test_a_text_may_have_ten_million_characters() -> None:
    assert len(read("a.txt", b"x" * 10_000_000).blocks[0].text) == 10_000_000
    with pytest.raises(DocumentTooLong) as raised:
        read("a.csv", "x;" * 10_000 + "\n" + (";" * 9_999 + "y\n") * 3 + "\n" + ("x;" * 5_000 + "\n") * 1_000)
    assert raised.value.details == {"limit": 10_000_000}


def test_a_broken_document_keeps_the_cause_and_missing_memory_is_no_breakage(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DocumentBroken) as raised:
        read("a.odt", odt_of("<text:p>"))
    assert raised.value.details == {"cause": "XMLSyntaxError"}

    def without_memory(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(document_formats, "parse_mail", without_memory)
    with pytest.raises(MemoryError):
        read("a.eml", MAIL)

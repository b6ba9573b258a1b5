"""PDFs as text, page by page."""

import io
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import DependencyError

from jarvis_memory.document_blocks import Block
from jarvis_memory.errors import DocumentBroken, DocumentLocked, DocumentTooManyPages
from jarvis_memory.mail_text import readable
from jarvis_memory.text_lines import paragraphs_of

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl"})


def open_pdf(data: bytes, pages_limit: int) -> PdfReader:
    """The document with its pages. Raises DocumentLocked, DocumentBroken, DocumentTooManyPages."""
    try:
        reader = PdfReader(io.BytesIO(data))
        # Many PDFs that may be read but not changed open with the empty password.
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentLocked
        pages = len(reader.pages)
    except DependencyError as error:  # encrypted in a way that pypdf does not know
        raise DocumentLocked from error
    if pages > pages_limit:
        raise DocumentTooManyPages(limit=pages_limit)
    if not pages:
        raise DocumentBroken
    return reader


def pdf_blocks(reader: PdfReader) -> Iterator[Block]:
    """What stands on each page."""
    for number, page in enumerate(reader.pages, 1):
        # A soft hyphen is invisible, but here it says that a word goes on.
        said = page.extract_text().translate(_LIGATURES).replace("\u00ad\n", "-\n")
        yield from paragraphs_of(readable(said), number, unwrap=True)

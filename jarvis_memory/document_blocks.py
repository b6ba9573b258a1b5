"""What a document is made of once it is read: headings, paragraphs and rows of tables, in order."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["pdf", "docx", "odt", "text", "markdown", "html", "mail", "csv"]

# Of all blocks of a document together; a long novel has 2 million.
TEXT_CHARACTERS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Block:
    """A heading, a paragraph, or a row of a table."""

    text: str
    # From 1; None in a kind that has no pages.
    page: int | None
    # 1 to 6 for a heading, 0 for anything else.
    heading_level: int = 0

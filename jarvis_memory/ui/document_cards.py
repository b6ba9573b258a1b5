"""Documents in the cards of tool calls, and the sources under an answer: links to the passages that it rests on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import streamlit as st

from jarvis_memory.conversations import Message
from jarvis_memory.text import one_line, shorten
from jarvis_memory.ui.frame import Page
from jarvis_memory.ui.safe_markdown import plain
from jarvis_memory.ui.texts import Texts

SOURCES_SHOWN = 6
BEGINNING_CHARACTERS = 70


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A passage that Claude got. The ids are None in a chat that was imported."""

    document_id: int | None
    passage_id: int | None
    document: str
    page: int | None
    heading: str
    text: str


def document_headline(texts: Texts, call: dict[str, Any]) -> str:
    """What came of a finished call of one of the document tools, as Markdown."""
    result = call["result"]
    if call["name"] == "search_documents":
        query = plain(str(call["input"].get("query", "")))
        return texts.counted("documents.searched", len(result["passages"]), query=query)
    pages = call["input"].get("pages")
    name = plain(str(result["document"]))
    return texts("documents.read_pages", name=name, pages=plain(pages)) if pages else texts("documents.read", name=name)


def draw_sources(page: Page, message: Message) -> None:
    """The passages of documents that the answer names; where it names none, those that were found best."""
    texts = page.texts
    found = {(one.passage_id, one.text): one for block in message.blocks_of("tool") for one in _sources_in(block)}
    if not found or not message.content.strip():
        return
    named = [one for one in found.values() if _is_named(one, message.content)]
    with st.container(key=f"sources-{message.id}", gap=None):
        st.caption(f":material/library_books: {texts('documents.sources' if named else 'documents.found')}")
        for one in (named or list(found.values()))[:SOURCES_SHOWN]:
            beginning = plain(shorten(one_line(one.text), BEGINNING_CHARACTERS))
            label = texts("documents.source", place=_place(texts, one), beginning=beginning)
            if one.document_id is None:
                st.caption(label)
                continue
            address = {"d": one.document_id, "p": one.page, "s": one.passage_id}
            st.page_link(
                "pages/documents.py",
                label=label,
                icon=":material/description:",
                query_params={name: str(number) for name, number in address.items() if number is not None},
            )


def _place(texts: Texts, one: _Source) -> str:
    name = plain(one.document)
    if one.page is not None:
        return texts("documents.at_page", name=name, page=one.page)
    return f"{name}, {plain(shorten(one.heading.rsplit(' › ', 1)[-1], 60))}" if one.heading else name


def _sources_in(call: dict[str, Any]) -> Iterator[_Source]:
    if call["name"] not in ("search_documents", "read_document") or call.get("is_error"):
        return
    result = call.get("result") or {}
    for passage in result.get("passages", []):
        yield _Source(
            document_id=passage.get("document_id") or result.get("document_id"),
            passage_id=passage.get("passage_id"),
            document=passage.get("document") or result.get("document") or "?",
            page=passage.get("page"),
            heading=passage.get("heading", ""),
            text=passage["text"],
        )


def _is_named(one: _Source, answer: str) -> bool:
    """Whether the answer names the document, and the page where it has pages (alone or in "S. 3-5")."""
    said = answer.casefold()
    name = one.document.casefold()
    if name not in said and PurePosixPath(name).stem not in said:
        return False
    if one.page is None:
        return True
    ranges = re.findall(r"(?<![\d.,])(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?(?![\d.,]*\d)", answer)
    return any(int(first) <= one.page <= int(last or first) for first, last in ranges)

"""The search of the sidebar: the conversations in which all words of a query stand, literally. Recall is recall.py."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from jarvis_memory.conversations import TITLE_CHARACTERS
from jarvis_memory.recall_index import FILE_NAMES
from jarvis_memory.text import clean, escape_like, one_line, shorten

RESULTS = 30
QUERY_CHARACTERS = 200
SNIPPET_CHARACTERS = 120
# How much of a message is read around its hit.
_AROUND = 300

_SEARCH = f"""
    WITH hits AS (
        SELECT conversation_id, max(id) AS id FROM messages
        WHERE user_id = :user_id AND content ILIKE ALL (CAST(:patterns AS text[])) GROUP BY 1
    ), found AS (
        SELECT c.*, hits.id AS message_id, c.title ILIKE ALL (CAST(:patterns AS text[])) AS by_title
        FROM conversations c LEFT JOIN hits ON hits.conversation_id = c.id
        WHERE c.user_id = :user_id AND NOT c.temporary
          AND (hits.id IS NOT NULL OR c.title ILIKE ALL (CAST(:patterns AS text[])))
    )
    SELECT f.id AS conversation_id, f.title, f.archived, f.message_id, coalesce(m.created_at, f.updated_at) AS moment,
        substr(m.content, at.start, {2 * _AROUND}) AS content, at.start > 1 AS is_cut,
        CASE WHEN f.title = '' THEN (
            SELECT coalesce(nullif(left(m.content, 200), ''), {FILE_NAMES}) FROM messages m
            WHERE m.conversation_id = f.id AND m.role = 'user' ORDER BY m.id LIMIT 1) END AS first_message
    FROM found f LEFT JOIN messages m ON m.id = f.message_id
    CROSS JOIN LATERAL (SELECT greatest(1, position(lower(:longest) IN lower(m.content)) - {_AROUND}) AS start) AS at
    ORDER BY f.by_title DESC, moment DESC, f.id DESC LIMIT {RESULTS}
"""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A conversation with the newest of its messages in which all words stand."""

    conversation_id: int
    title: str
    archived: bool
    # None: only the title has the words; there is no snippet then.
    message_id: int | None
    # When the message was said, or the chat was used last.
    moment: datetime
    snippet: str


def search_conversations(connection: Connection, *, user_id: int, query: str) -> list[Found]:
    """The conversations, at most RESULTS, with a message or a title that contains every word of `query`, case aside.

    Those with a fitting title come first, then the newest. `%` and `_` stand for themselves, but a query of nothing
    but wildcards, or a blank one, finds nothing.
    """
    wanted = words_of(query)
    if not wanted:
        return []
    longest = max(wanted, key=len)
    rows = connection.execute(
        text(_SEARCH),
        # The longest first: it is the rarest, and the others are looked for only where it stands.
        {
            "user_id": user_id,
            "patterns": [f"%{escape_like(word)}%" for word in sorted(wanted, key=len, reverse=True)],
            "longest": longest,
        },
    )
    return [
        Found(
            conversation_id=row.conversation_id,
            title=row.title or shorten(one_line(row.first_message or ""), TITLE_CHARACTERS),
            archived=row.archived,
            message_id=row.message_id,
            moment=row.moment,
            snippet=snippet_around(row.content or "", longest, is_cut=row.is_cut or False),
        )
        for row in rows
    ]


def words_of(query: str) -> list[str]:
    """The words that a query asks for; none when it is blank or nothing but wildcards."""
    asked = unicodedata.normalize("NFC", clean(query))[:QUERY_CHARACTERS]
    return asked.split() if re.search(r"[^%_*?\\\s]", asked) else []


def snippet_around(content: str, word: str, *, is_cut: bool = False) -> str:
    """About SNIPPET_CHARACTERS of `content` on one line, with `word` near its beginning.

    `is_cut`: there is more in front of `content`.
    """
    line = one_line(content)
    hit = re.search(re.escape(word), line, re.IGNORECASE)
    start = max(0, hit.start() - SNIPPET_CHARACTERS // 3) if hit else 0
    if hit and start:
        # From the beginning of a word.
        start = line.find(" ", start, hit.start()) + 1 or start
    return ("… " if start or is_cut else "") + shorten(line[start:], SNIPPET_CHARACTERS)


def split_at_hits(line: str, query: str) -> list[tuple[str, bool]]:
    """`line` in pieces, each with whether it is one of the words of `query`."""
    wanted = sorted(words_of(query), key=len, reverse=True)
    if not wanted:
        return [(line, False)]
    pieces = re.split(f"({'|'.join(map(re.escape, wanted))})", line, flags=re.IGNORECASE)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]

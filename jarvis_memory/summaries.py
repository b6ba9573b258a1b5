"""`update_conversation_summary`: bring the summary of one conversation up to date. And the queries about summaries.

What is pending is not stored but derived: a conversation whose last message is newer than its summary knows.
"""

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from jarvis_memory.claude import Claude
from jarvis_memory.conversations import Message, load_messages
from jarvis_memory.database import Database, Lock, nobody_holds
from jarvis_memory.errors import ClaudeAnswerUnreadable, ConversationNotFound, JarvisError
from jarvis_memory.preferences import Preferences, load_preferences
from jarvis_memory.prompts import ATTACHED, SPEAKERS, SUMMARY_SYSTEM_PROMPT, written_date
from jarvis_memory.recall_index import FILE_NAMES, index_summaries
from jarvis_memory.settings import Settings
from jarvis_memory.text import clean, escape_like, escape_markup, is_small_talk, one_line, shorten, words
from jarvis_memory.usage import record_usage

log = logging.getLogger(__name__)

# One call reads at most this much of a conversation, so that its cost is bounded; a longer one takes several calls.
TRANSCRIPT_CHARACTERS = 24_000
MESSAGE_CHARACTERS = 4_000
MESSAGES_A_CALL = 200
SUMMARY_CHARACTERS = 2_000
FIRST_RETRY_SECONDS = 10
LONGEST_RETRY_SECONDS = 3_600

# The labels of the answer, also in bold or as headings.
_TITLE = re.compile(r"^\W*(?:titel|title)\W*?:(?P<title>.*)$", re.IGNORECASE | re.MULTILINE)
_SUMMARY_LABEL = re.compile(r"\A\W*(?:zusammenfassung|summary)\W*?:[*_]*", re.IGNORECASE)

# A turn that some process is running holds this lock; its messages are not all there yet.
_NO_TURN_IS_RUNNING = nobody_holds(Lock.TURN, "c.id")

_PENDING = """
    FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
    CROSS JOIN LATERAL (SELECT max(m.id) AS last_id FROM messages m WHERE m.conversation_id = c.id) said
    WHERE c.remember AND said.last_id > coalesce(s.through_message_id, 0)
"""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A summary as the Memory page shows it."""

    conversation_id: int
    title: str
    summary: str
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class PendingSummary:
    """A conversation whose summary is behind. `last_error` is the name of an error class, None before a failure."""

    conversation_id: int
    title: str
    failures: int
    last_error: str | None
    retry_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What one summary call works on, as it was read in one transaction."""

    user_id: int
    preferences: Preferences
    revision: int
    previous: str | None
    messages: list[Message]
    through_message_id: int


def update_conversation_summary(
    *,
    database: Database,
    claude: Claude,
    settings: Settings,
    conversation_id: int,
) -> bool:
    """Summarise what is new in the conversation, in its person's language. True when its summary is now up to date.

    False when another process is at it, when its turn is running or when its material changed meanwhile: it stays
    pending and is taken up again. A failure is recorded with the time of the next try and raised (JarvisError).
    """
    with database.try_lock(Lock.SUMMARY, conversation_id) as ours:
        if not ours:
            return False
        try:
            while (job := _next_job(database, settings, conversation_id)) is not None:
                if _too_little(job):
                    title, summary = None, job.previous
                else:
                    title, summary = _parsed(
                        _ask(database, claude, settings.jarvis_summary_model, conversation_id, job)
                    )
                if not _store(database, conversation_id, job, title, summary):
                    return False
        except ConversationNotFound:
            return True
        except JarvisError as error:
            _record_failure(database, conversation_id, error)
            raise
        with database.begin() as connection:
            return not list(_pending_ids(connection, only=conversation_id))


def _next_job(database: Database, settings: Settings, conversation_id: int) -> _Job | None:
    with database.begin() as connection:
        row = connection.execute(
            text(
                f"""
                SELECT c.user_id, s.summary, coalesce(s.through_message_id, 0) AS through,
                       coalesce(s.revision, 0) AS revision
                FROM conversations c LEFT JOIN conversation_summaries s ON s.conversation_id = c.id
                WHERE c.id = :id AND c.remember AND {_NO_TURN_IS_RUNNING}
                """
            ),
            {"id": conversation_id},
        ).one_or_none()
        if row is None:
            return None
        after = row.through
        # Without a summary to build on (deleted, or nothing was worth one) the conversation is read from its start,
        # unless that is a piece of its own, which was done with before.
        if row.summary is None:
            start = _piece(connection, row.user_id, conversation_id, 0)
            after = 0 if start and start[-1].id > row.through else row.through
        piece = _piece(connection, row.user_id, conversation_id, after)
        preferences = load_preferences(connection, user_id=row.user_id, settings=settings)
    if not piece:
        return None
    return _Job(
        user_id=row.user_id,
        preferences=preferences,
        revision=row.revision,
        previous=row.summary if row.through else None,
        messages=[message for message in piece if not message.excluded_from_memory],
        through_message_id=piece[-1].id,
    )


def _piece(connection: Connection, user_id: int, conversation_id: int, after: int) -> list[Message]:
    """The oldest of what is new: a long conversation is worked through in pieces."""
    messages = load_messages(
        connection,
        user_id=user_id,
        conversation_id=conversation_id,
        after_id=after,
        limit=MESSAGES_A_CALL,
        oldest_first=True,
    )
    size = 0
    for place, message in enumerate(messages):
        size += min(len(message.content), MESSAGE_CHARACTERS)
        if size > TRANSCRIPT_CHARACTERS and place:
            return messages[:place]
    return messages


def _too_little(job: _Job) -> bool:
    """Nothing to tell: nothing that may be told, or in a new conversation a greeting or a single word."""
    if not any(_said(message, job) for message in job.messages):
        return True
    said = " ".join(_said(message, job) for message in job.messages if message.role == "user")
    return job.previous is None and (len(words(said)) < 2 or is_small_talk(said))


def _said(message: Message, job: _Job) -> str:
    """The text, and of the files that came with it the names; empty for an answer that never came."""
    name = ATTACHED[job.preferences.language]
    files = [name.format(name=block["name"]) for block in message.blocks_of("attachment")]
    return " ".join([shorten(message.content, MESSAGE_CHARACTERS), *files]).strip()


def _request(job: _Job) -> str:
    language, zone = job.preferences.language, job.preferences.time_zone
    parts = []
    if job.previous:
        parts.append(f"<previous_summary>\n{escape_markup(job.previous)}\n</previous_summary>")
    parts.append("<transcript>")
    for message in job.messages:
        if said := _said(message, job):
            when = f"{written_date(message.created_at, language, zone)}, {message.created_at.astimezone(zone):%H:%M}"
            parts.append(f"[{when}] {SPEAKERS[language][message.role]}: {escape_markup(said)}")
    parts.append("</transcript>")
    return "\n".join(parts)


def _ask(database: Database, claude: Claude, model: str, conversation_id: int, job: _Job) -> str:
    said, usage = claude.complete(
        model=model, system=SUMMARY_SYSTEM_PROMPT[job.preferences.language], text=_request(job)
    )
    # At once: an answer that cannot be used, or comes too late, has been paid for too.
    with database.begin() as connection:
        record_usage(
            connection,
            user_id=job.user_id,
            conversation_id=conversation_id,
            purpose="summary",
            model=model,
            usage=usage,
        )
    return said


def _parsed(said: str) -> tuple[str | None, str]:
    """Title and summary of the model's answer; without the labels the whole answer is the summary."""
    found = _TITLE.search(said)
    title = one_line(found["title"]).strip('*"„“ ') if found else None
    summary = _SUMMARY_LABEL.sub("", said[found.end() :] if found else said).strip()
    if not summary:
        raise ClaudeAnswerUnreadable("The model answered with an empty summary.")
    return shorten(title, 80) if title else None, shorten(summary, SUMMARY_CHARACTERS)


def _store(database: Database, conversation_id: int, job: _Job, title: str | None, summary: str | None) -> bool:
    with database.begin() as connection:
        stored = upsert_conversation_summary(
            connection,
            user_id=job.user_id,
            conversation_id=conversation_id,
            summary=summary,
            through_message_id=job.through_message_id,
            revision=job.revision,
        )
        if stored and title:
            connection.execute(
                text("UPDATE conversations SET title = :title WHERE id = :id AND NOT title_by_user"),
                {"title": title, "id": conversation_id},
            )
            index_summaries(connection, conversation_ids=[conversation_id])
    return stored


def upsert_conversation_summary(
    connection: Connection,
    *,
    user_id: int,
    conversation_id: int,
    summary: str | None,
    through_message_id: int,
    revision: int = 0,
) -> bool:
    """Write the summary, searchable by its words, unless a newer one stands there, `revision` is past, or the
    conversation is gone. True when it was written.
    """
    result = connection.execute(
        text(
            """
            INSERT INTO conversation_summaries AS s (conversation_id, user_id, summary, through_message_id)
            SELECT c.id, c.user_id, :summary, :through FROM conversations c
            WHERE c.id = :id AND c.user_id = :user_id AND c.remember FOR KEY SHARE
            ON CONFLICT (conversation_id) DO UPDATE SET summary = excluded.summary, embedding = NULL,
                embedding_model = NULL, through_message_id = excluded.through_message_id, failures = 0,
                last_error = NULL, retry_at = NULL, updated_at = now()
            WHERE s.revision = :revision AND s.through_message_id < excluded.through_message_id
            """
        ),
        {
            "id": conversation_id,
            "user_id": user_id,
            "summary": clean(summary) if summary is not None else None,
            "through": through_message_id,
            "revision": revision,
        },
    )
    stored = result.rowcount == 1
    if stored:
        index_summaries(connection, conversation_ids=[conversation_id])
    return stored


def _record_failure(database: Database, conversation_id: int, error: JarvisError) -> None:
    with database.begin() as connection:
        connection.execute(
            text(
                """
                INSERT INTO conversation_summaries AS s (conversation_id, user_id, failures, last_error, retry_at)
                SELECT c.id, c.user_id, 1, :error, now() + make_interval(secs => :first)
                FROM conversations c WHERE c.id = :id FOR KEY SHARE
                ON CONFLICT (conversation_id) DO UPDATE SET failures = s.failures + 1, last_error = :error,
                    retry_at = now() + make_interval(secs => least(:first * power(2, s.failures), :longest))
                """
            ),
            {
                "id": conversation_id,
                "error": type(error).__name__,
                "first": FIRST_RETRY_SECONDS,
                "longest": LONGEST_RETRY_SECONDS,
            },
        )


# --- what is pending --------------------------------------------------------------------------------------


def _pending_ids(connection: Connection, *, only: int | None = None, limit: int = 50) -> list[int]:
    query = f"""SELECT c.id {_PENDING} AND (s.retry_at IS NULL OR s.retry_at <= now()) AND {_NO_TURN_IS_RUNNING}
                AND (CAST(:only AS bigint) IS NULL OR c.id = :only) ORDER BY said.last_id LIMIT :limit"""
    return [int(row[0]) for row in connection.execute(text(query), {"only": only, "limit": limit})]


def pending_conversations(connection: Connection, *, limit: int = 50) -> list[int]:
    """The conversations of all users whose summary is due, oldest first."""
    return _pending_ids(connection, limit=limit)


def list_pending(connection: Connection, *, user_id: int, limit: int = 50) -> list[PendingSummary]:
    """What the person's Memory page shows as pending or failed; those that failed come first."""
    rows = connection.execute(
        text(
            f"""
            SELECT c.id AS conversation_id, coalesce(nullif(c.title, ''), (
                       SELECT coalesce(nullif(left(m.content, 80), ''), {FILE_NAMES}) FROM messages m
                       WHERE m.conversation_id = c.id AND m.role = 'user' ORDER BY m.id LIMIT 1), '') AS title,
                   coalesce(s.failures, 0) AS failures, s.last_error, s.retry_at
            {_PENDING} AND c.user_id = :user_id ORDER BY failures DESC, said.last_id DESC LIMIT :limit
            """
        ),
        {"user_id": user_id, "limit": limit},
    )
    return [PendingSummary(**row._mapping) for row in rows]


def count_pending(connection: Connection, *, user_id: int) -> tuple[int, int]:
    """How many of the person's conversations wait for a summary, and how many of these have failed before."""
    row = connection.execute(
        text(f"SELECT count(*), count(*) FILTER (WHERE s.failures > 0) {_PENDING} AND c.user_id = :user_id"),
        {"user_id": user_id},
    ).one()
    return int(row[0]), int(row[1])


def retry_now(connection: Connection, *, user_id: int, conversation_id: int) -> None:
    """Make a failed summary due at once."""
    connection.execute(
        text("UPDATE conversation_summaries SET retry_at = NULL WHERE conversation_id = :id AND user_id = :user_id"),
        {"id": conversation_id, "user_id": user_id},
    )


# --- the Memory page --------------------------------------------------------------------------------------

_LISTED = """
    FROM conversation_summaries s JOIN conversations c ON c.id = s.conversation_id
    WHERE s.user_id = :user_id AND s.summary IS NOT NULL
      AND (c.title ILIKE :pattern ESCAPE '\\' OR s.summary ILIKE :pattern ESCAPE '\\')
"""


def _search(user_id: int, query: str) -> dict[str, Any]:
    return {"user_id": user_id, "pattern": f"%{escape_like(clean(query).strip())}%"}


def list_summaries(
    connection: Connection, *, user_id: int, query: str = "", limit: int = 20, offset: int = 0
) -> list[Summary]:
    """Summaries whose title or text contains `query` literally, newest first; all for a blank query."""
    rows = connection.execute(
        text(
            f"""SELECT s.conversation_id, c.title, s.summary, s.updated_at {_LISTED}
                ORDER BY s.updated_at DESC, s.conversation_id DESC LIMIT :limit OFFSET :offset"""
        ),
        _search(user_id, query) | {"limit": limit, "offset": offset},
    )
    return [Summary(**row._mapping) for row in rows]


def count_summaries(connection: Connection, *, user_id: int, query: str = "") -> int:
    """How many summaries `list_summaries` would find without a limit."""
    return int(connection.scalars(text(f"SELECT count(*) {_LISTED}"), _search(user_id, query)).one())


def last_summary_at(connection: Connection, *, user_id: int) -> datetime | None:
    """When a summary was last written."""
    query = "SELECT max(updated_at) FROM conversation_summaries WHERE user_id = :user_id AND summary IS NOT NULL"
    found: datetime | None = connection.scalars(text(query), {"user_id": user_id}).one()
    return found


def get_summary(connection: Connection, *, user_id: int, conversation_id: int) -> str | None:
    """The summary of a conversation as it stands."""
    found: str | None = connection.scalar(
        text("SELECT summary FROM conversation_summaries WHERE conversation_id = :id AND user_id = :user_id"),
        {"id": conversation_id, "user_id": user_id},
    )
    return found


def delete_summary(connection: Connection, *, user_id: int, conversation_id: int) -> None:
    """Delete the summary alone. It is not written again until the conversation goes on."""
    gone = connection.scalars(
        text(
            """
            UPDATE conversation_summaries SET summary = NULL, embedding = NULL, embedding_model = NULL,
                revision = revision + 1, failures = 0, last_error = NULL, retry_at = NULL, updated_at = now(),
                through_message_id = coalesce((SELECT max(id) FROM messages WHERE conversation_id = :id), 0)
            WHERE conversation_id = :id AND user_id = :user_id RETURNING conversation_id
            """
        ),
        {"id": conversation_id, "user_id": user_id},
    ).all()
    index_summaries(connection, conversation_ids=gone)


def regenerate_summary(connection: Connection, *, user_id: int, conversation_id: int) -> None:
    """Have the summary written anew from the whole conversation; the present one stays until then."""
    connection.execute(
        text(
            """
            UPDATE conversation_summaries SET through_message_id = 0, revision = revision + 1, failures = 0,
                last_error = NULL, retry_at = NULL
            WHERE conversation_id = :id AND user_id = :user_id
            """
        ),
        {"id": conversation_id, "user_id": user_id},
    )


def regenerate_if_known(connection: Connection, *, user_id: int, conversation_id: int, message_id: int) -> None:
    """Have the summary written anew when it tells this message, which changes."""
    known = text("SELECT through_message_id >= :message FROM conversation_summaries WHERE conversation_id = :chat")
    if connection.scalar(known, {"chat": conversation_id, "message": message_id}):
        regenerate_summary(connection, user_id=user_id, conversation_id=conversation_id)

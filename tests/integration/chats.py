"""What the tests of the memory share: chats said in one line, threads that really collide, waiting without sleeps."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import text

from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import (
    ConversationOptions,
    Message,
    create_conversation,
    insert_message,
    load_messages,
    update_message,
)
from jarvis_memory.database import Database, Lock
from jarvis_memory.indexing import index_some
from jarvis_memory.summaries import upsert_conversation_summary
from jarvis_memory.users import ensure_user


def said(
    database: Database,
    user_id: int,
    *exchanges: tuple[str, str],
    conversation_id: int | None = None,
    remember: bool = True,
    title: str = "",
    title_by_user: bool = False,
    summary: str | None = None,
) -> int:
    """The id of a conversation with these questions and answers, and with a summary that knows all of them."""
    with database.begin() as connection:
        if conversation_id is None:
            conversation_id = create_conversation(
                connection, user_id=user_id, options=ConversationOptions(remember=remember)
            )
        for question, answer in exchanges:
            for role, content in (("user", question), ("assistant", answer)):
                insert_message(connection, user_id=user_id, conversation_id=conversation_id, role=role, content=content)
        if title:
            connection.execute(
                text("UPDATE conversations SET title = :title, title_by_user = :by_user WHERE id = :id"),
                {"title": title, "by_user": title_by_user, "id": conversation_id},
            )
    if summary is not None:
        summarised(database, user_id, conversation_id, summary)
    return conversation_id


def summarised(database: Database, user_id: int, conversation_id: int, summary: str) -> None:
    """The conversation now has this summary of all its messages."""
    last = messages_of(database, user_id, conversation_id)[-1].id
    with database.begin() as connection:
        assert upsert_conversation_summary(
            connection,
            user_id=user_id,
            conversation_id=conversation_id,
            summary=summary,
            through_message_id=last,
        )


def ready_to_be_recalled(parts: Parts) -> None:
    """All chats are indexed with the app's own model; the app's background may be at it, too."""
    while index_some(parts.database, parts.embeddings):
        pass


class OneVector:
    """An embedding model for which all texts are alike."""

    model = "test/one"

    def embed_query(self, text: str) -> list[float]:
        return [1.0] + [0.0] * 767

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def indexed(database: Database) -> None:
    """Everything has been indexed, as the background does it."""
    while index_some(database, OneVector()):
        pass


def messages_of(database: Database, user_id: int, conversation_id: int) -> list[Message]:
    with database.begin() as connection:
        return load_messages(connection, user_id=user_id, conversation_id=conversation_id, limit=1_000)


def excluded_of(database: Database, user_id: int, conversation_id: int) -> list[str]:
    """The texts of the conversation that left the memory."""
    return [m.content for m in messages_of(database, user_id, conversation_id) if m.excluded_from_memory]


def change_message(database: Database, user_id: int, message_id: int, **values: Any) -> None:
    with database.begin() as connection:
        assert update_message(connection, user_id=user_id, message_id=message_id, **values)


def summary_of(database: Database, conversation_id: int) -> Any:
    """The row of conversation_summaries, with the conversation's title; None when there is none."""
    return one(
        database,
        """SELECT s.*, c.title, c.title_by_user FROM conversation_summaries s
           JOIN conversations c ON c.id = s.conversation_id WHERE c.id = :id""",
        id=conversation_id,
    )


def one(database: Database, query: str, **values: Any) -> Any:
    """The row that the query finds, or None."""
    with database.begin() as connection:
        return connection.execute(text(query), values).one_or_none()


def locks_held(database: Database, *kinds: Lock) -> int:
    """How many advisory locks of these kinds (of all, when none is named) the server holds in this database.

    Only in this one: a server shows every database's locks, and the tests beside us hold theirs.
    """
    rows = """SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND classid = ANY(:kinds)
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    return int(one(database, rows, kinds=[int(kind) for kind in kinds or Lock]).n)


def run(database: Database, statement: str, **values: Any) -> None:
    with database.begin() as connection:
        connection.execute(text(statement), values)


def beside_the_memory(database: Database, user_id: int, conversation_id: int, word: str = "Bruno") -> None:
    """What a life with JARVIS leaves beside messages and memory, with `word` in it: one row of each kind."""
    last = messages_of(database, user_id, conversation_id)[-1].id
    values = {"user_id": user_id, "chat": conversation_id, "message": last, "word": word}
    for statement in (
        "UPDATE users SET instructions = :word WHERE id = :user_id AND CAST(:chat AS int) > 0 AND :message > 0",
        """INSERT INTO message_versions (user_id, conversation_id, message_id, messages)
           VALUES (:user_id, :chat, :message, jsonb_build_array(jsonb_build_object('content', CAST(:word AS text))))""",
        """INSERT INTO deletions (user_id, content)
           SELECT :user_id, jsonb_build_object('title', CAST(:word AS text), 'id', CAST(:chat AS int) + :message)""",
        """INSERT INTO attachments (user_id, message_id, name, media_type, content, size)
           SELECT :user_id, :message, :word, 'text/plain', convert_to(:word, 'UTF8'), :chat""",
        """INSERT INTO token_usage (user_id, purpose, model, input, output, cache_read, cache_write)
           SELECT :user_id, 'chat', :word, :chat, :message, 0, 0""",
        """INSERT INTO pending_actions (user_id, conversation_id, message_id, call_id, tool, action, expires_at)
           SELECT :user_id, :chat, :message, 'toolu_1', 'send_letter', jsonb_build_object('text', CAST(:word AS text)),
               now()""",
        """WITH document AS (
               INSERT INTO documents (user_id, name, content, size, sha256, status)
               SELECT :user_id, :word, convert_to(:word, 'UTF8'), :chat, CAST(:message AS text), 'ready' RETURNING id
           ), chunk AS (
               INSERT INTO document_chunks (user_id, document_id, number, content, words)
               SELECT :user_id, id, 0, :word, 1 FROM document RETURNING id
           ) INSERT INTO chunk_words (user_id, chunk_id, word, count) SELECT :user_id, id, :word, 1 FROM chunk""",
    ):
        run(database, statement, **values)


def somebody_else(database: Database) -> int:
    with database.begin() as connection:
        return ensure_user(connection, "somebody@example.org")


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return or raise, each in a thread of its own, all let go at the same moment."""
    gate = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def call(place: int) -> None:
        gate.wait()
        try:
            results[place] = calls[place]()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[place] = error

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()
    return results


class InBackground:
    """A call in a thread; `result()` waits for it and raises what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._results: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._results.extend(at_once(call)))
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(90)
        assert not self._thread.is_alive()
        if isinstance(self._results[0], Exception):
            raise self._results[0]
        return self._results[0]


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first true value of the condition; fails after a generous bound."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value

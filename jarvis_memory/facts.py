"""Facts: what the person asked to remember. Their queries, and the verbs behind the tools and the Memory page.

Forgetting a fact reaches into conversations and summaries too; that part is forgetting.py.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, delete, func, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from jarvis_memory.database import Database
from jarvis_memory.embeddings import Vector
from jarvis_memory.errors import FactAlreadyKnown, FactNotFound, FactUnusable
from jarvis_memory.tables import memory_facts, messages
from jarvis_memory.text import clean, comparison_key, escape_like, one_line, sql_words, without_marks

FACT_CHARACTERS = 1_000
LISTED_MATCHES = 20

Origin = Literal["said", "mail", "appointment", "document", "page"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact, with the chat it came from where that still exists."""

    id: int
    content: str
    origin: Origin
    source_message_id: int | None
    conversation_id: int | None
    created_at: datetime
    updated_at: datetime


def _facts(user_id: int) -> Select[Any]:
    columns = [memory_facts.c[name] for name in Fact.__dataclass_fields__ if name != "conversation_id"]
    return (
        select(*columns, messages.c.conversation_id)
        .select_from(memory_facts.outerjoin(messages, messages.c.id == memory_facts.c.source_message_id))
        .where(memory_facts.c.user_id == user_id)
    )


def _fact(row: Row[Any]) -> Fact:
    return Fact(**row._mapping)


def usable_fact(fact: str) -> str:
    """The text as it is stored: cleaned, on one line. Raises FactUnusable when blank or above 1,000 characters."""
    content = one_line(clean(fact))
    if not comparison_key(content) or len(content) > FACT_CHARACTERS:
        raise FactUnusable(length=len(content), limit=FACT_CHARACTERS)
    return content


# --- queries ----------------------------------------------------------------------------------------------


def insert_memory_fact(
    connection: Connection,
    *,
    user_id: int,
    fact: str,
    origin: Origin = "said",
    source_message_id: int | None = None,
) -> tuple[Fact, bool]:
    """The fact and whether it is new. The same text but for case, space and final punctuation is the same fact.

    Raises FactUnusable.
    """
    content = usable_fact(fact)
    key = comparison_key(content)
    fact_id, is_new = connection.execute(
        insert(memory_facts)
        .values(
            user_id=user_id,
            content=content,
            content_key=key,
            origin=origin,
            source_message_id=source_message_id,
        )
        # Changes nothing, but holds the row: nobody forgets it before it is read below.
        .on_conflict_do_update(index_elements=["user_id", "content_key"], set_={"content_key": key})
        # A row that was there has the lock of this transaction in xmax.
        .returning(memory_facts.c.id, literal_column("xmax = 0"))
    ).one()
    return get_memory_fact(connection, user_id=user_id, fact_id=fact_id), bool(is_new)


def get_memory_fact(connection: Connection, *, user_id: int, fact_id: int) -> Fact:
    """The fact. Raises FactNotFound."""
    row = connection.execute(_facts(user_id).where(memory_facts.c.id == fact_id)).one_or_none()
    if row is None:
        raise FactNotFound(fact_id=fact_id)
    return _fact(row)


def get_all_memory_facts(connection: Connection, *, user_id: int, limit: int = 10_000) -> list[Fact]:
    """The person's facts, oldest first, so that the prompt's beginning stays the same as facts are added."""
    return [_fact(row) for row in connection.execute(_facts(user_id).order_by(memory_facts.c.id).limit(limit))]


def search_memory_facts(
    connection: Connection, *, user_id: int, query: str, limit: int = LISTED_MATCHES, offset: int = 0
) -> list[Fact]:
    """Facts that contain `query` literally (case aside), newest first; all facts for a blank query."""
    rows = connection.execute(
        _matching(user_id, query)
        .order_by(memory_facts.c.updated_at.desc(), memory_facts.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return [_fact(row) for row in rows]


def count_memory_facts(connection: Connection, *, user_id: int, query: str = "") -> int:
    """How many facts `search_memory_facts` would find without a limit."""
    return int(connection.scalars(select(func.count()).select_from(_matching(user_id, query).subquery())).one())


def _matching(user_id: int, query: str) -> Select[Any]:
    # content_key was folded by Python, so that case means the same whatever the server's locale is.
    pattern = f"%{escape_like(comparison_key(clean(query)))}%"
    return _facts(user_id).where(memory_facts.c.content_key.like(pattern, escape="\\"))


def delete_memory_fact(connection: Connection, *, user_id: int, fact_id: int) -> bool:
    """Delete the row alone. False when somebody else was first. Forgetting completely is `forget_fact`."""
    result = connection.execute(
        delete(memory_facts).where(memory_facts.c.id == fact_id, memory_facts.c.user_id == user_id)
    )
    return result.rowcount == 1


def facts_by_id(connection: Connection, *, user_id: int, fact_ids: list[int]) -> dict[int, Fact]:
    """The facts that still exist, by their ids."""
    rows = connection.execute(_facts(user_id).where(memory_facts.c.id.in_(fact_ids)))
    return {row.id: _fact(row) for row in rows}


def rank_memory_facts(
    connection: Connection,
    *,
    user_id: int,
    query: str,
    embedding: Vector | None,
    embedding_model: str,
    limit: int = LISTED_MATCHES,
) -> list[Fact]:
    """The facts most similar to `query`: first by meaning, then by shared words; by words alone without a vector.

    The two rankings are fused by reciprocal ranks (Cormack et al., SIGIR 2009, k = 60).
    """
    rows = connection.execute(
        text(
            f"""
            WITH asked AS (
                SELECT CAST(replace(CAST(plainto_tsquery('german', :query) AS text), '&', '|') AS tsquery) AS words
            ), by_words AS (
                SELECT id, row_number() OVER (
                    ORDER BY ts_rank({sql_words("content")}, words) DESC, id DESC) AS place
                FROM memory_facts, asked
                WHERE user_id = :user_id AND {sql_words("content")} @@ words
                ORDER BY place LIMIT :pool
            ), by_meaning AS (
                SELECT id, row_number() OVER (ORDER BY embedding <=> CAST(:embedding AS vector), id DESC) AS place
                FROM memory_facts
                WHERE user_id = :user_id AND embedding_model = :model AND CAST(:embedding AS vector) IS NOT NULL
                ORDER BY place LIMIT :pool
            ), ranked AS (
                SELECT id, sum(1.0 / (60 + place)) AS score
                FROM (SELECT * FROM by_words UNION ALL SELECT * FROM by_meaning) AS both_ways GROUP BY id
            )
            SELECT f.id, f.content, f.origin, f.source_message_id, m.conversation_id, f.created_at, f.updated_at
            FROM ranked JOIN memory_facts f USING (id) LEFT JOIN messages m ON m.id = f.source_message_id
            ORDER BY score DESC, f.id DESC LIMIT :limit
            """
        ),
        {
            "user_id": user_id,
            "query": without_marks(clean(query)),
            "embedding": str(embedding) if embedding else None,
            "model": embedding_model,
            "pool": max(limit, 50),
            "limit": limit,
        },
    )
    return [_fact(row) for row in rows]


# --- verbs ------------------------------------------------------------------------------------------------


def remember_fact(
    database: Database,
    *,
    user_id: int,
    fact: str,
    origin: Origin = "said",
    source_message_id: int | None = None,
) -> tuple[Fact, bool]:
    """Store a fact. Returns it and whether it is new. Raises FactUnusable."""
    with database.begin() as connection:
        return insert_memory_fact(
            connection, user_id=user_id, fact=fact, origin=origin, source_message_id=source_message_id
        )


def update_fact(
    database: Database,
    *,
    user_id: int,
    fact_id: int,
    fact: str,
    origin: Origin = "said",
    source_message_id: int | None = None,
) -> tuple[Fact, str]:
    """Replace the text of a fact. Returns the fact and its former text.

    `source_message_id` is the message that said so; without one (the Memory page) source and origin stay.
    Raises FactUnusable, FactNotFound, and FactAlreadyKnown (`details["fact_id"]`) when another fact says it already.
    """
    content = usable_fact(fact)
    key = comparison_key(content)
    values: dict[str, Any] = {
        "content": content,
        "content_key": key,
        "embedding": None,
        "embedding_model": None,
        "updated_at": func.now(),
    }
    if source_message_id is not None:
        values |= {"source_message_id": source_message_id, "origin": origin}
    with database.begin() as connection:
        former = get_memory_fact(connection, user_id=user_id, fact_id=fact_id)
        try:
            with connection.begin_nested():
                connection.execute(
                    update(memory_facts)
                    .where(memory_facts.c.id == fact_id, memory_facts.c.user_id == user_id)
                    .values(values)
                )
        except IntegrityError as error:
            twin = connection.execute(_facts(user_id).where(memory_facts.c.content_key == key)).one_or_none()
            raise FactAlreadyKnown(fact_id=twin.id if twin else None) from error
        return get_memory_fact(connection, user_id=user_id, fact_id=fact_id), former.content


def find_facts_to_forget(connection: Connection, *, user_id: int, query: str, fact_id: int | None = None) -> list[Fact]:
    """The facts that `query` can mean, at most LISTED_MATCHES; an id or the exact text singles one out.

    A blank query or one of wildcards alone means none; `%`, `_` and `\\` stand for themselves.
    """
    if fact_id is not None:
        try:
            return [get_memory_fact(connection, user_id=user_id, fact_id=fact_id)]
        except FactNotFound:
            return []
    key = comparison_key(clean(query))
    if not re.search(r"[^%_*?\\\s]", key):
        return []
    exact = connection.execute(_facts(user_id).where(memory_facts.c.content_key == key)).one_or_none()
    if exact is not None:
        return [_fact(exact)]
    return search_memory_facts(connection, user_id=user_id, query=query)

"""The tables, as the migrations leave them. Queries live with the noun they are about, not here."""

from pgvector.sqlalchemy import HALFVEC, Vector
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

VECTOR_SIZE = 768

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> "Column[int]":
    return Column("id", BigInteger, Identity(), primary_key=True)


def _user_id() -> "Column[int]":
    return Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False)


def _now(name: str) -> "Column[object]":
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


users = Table(
    "users",
    metadata,
    _id(),
    Column("login", Text, nullable=False, unique=True),
    Column("language", Text),
    _now("created_at"),
)

conversations = Table(
    "conversations",
    metadata,
    _id(),
    _user_id(),
    # Empty until the summary gives one; lists then show the beginning of the first message.
    Column("title", Text, nullable=False, server_default=""),
    Column("title_by_user", Boolean, nullable=False, server_default=text("false")),
    # False: a temporary chat, of which nothing is summarised, recalled or indexed.
    Column("remember", Boolean, nullable=False, server_default=text("true")),
    # How many words conversation_words counts for it.
    Column("words", Integer, nullable=False, server_default=text("0")),
    _now("created_at"),
    _now("updated_at"),
    Index(None, "user_id", "updated_at"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    Column("conversation_id", BigInteger, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    _user_id(),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
    # What stands beside the text: recalled memory as it was sent, tool calls with their results, errors.
    Column("blocks", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # Of an answer: what went to Claude for it. Read only when somebody looks at it.
    Column("sent", JSONB(none_as_null=True)),
    # An answer is "interrupted" from its first moment and "complete" at its end, so a crash needs no repair.
    Column("status", Text, nullable=False, server_default="complete"),
    Column("excluded_from_memory", Boolean, nullable=False, server_default=text("false")),
    Column("tokens_used", Integer, nullable=False, server_default=text("0")),
    # Whether conversation_words counts it.
    Column("words_indexed", Boolean, nullable=False, server_default=text("false")),
    # Of a user's message: the model whose vectors of its exchange stand in `exchanges`.
    Column("exchange_model", Text),
    _now("created_at"),
    CheckConstraint("role IN ('user', 'assistant')", name="role"),
    CheckConstraint("status IN ('complete', 'interrupted', 'failed')", name="status"),
    Index(None, "conversation_id", "id"),
    # What the background has to look for; both are empty or short most of the time.
    Index("ix_messages_without_words", "id", postgresql_where=text("NOT words_indexed AND NOT excluded_from_memory")),
    Index(
        "ix_messages_exchange_model",
        "exchange_model",
        "id",
        postgresql_where=text("role = 'user' AND NOT excluded_from_memory"),
    ),
    Index("ix_messages_words", text("to_tsvector('german', left(content, 100000))"), postgresql_using="gin"),
)

memory_facts = Table(
    "memory_facts",
    metadata,
    _id(),
    _user_id(),
    Column("content", Text, nullable=False),
    Column("content_key", Text, nullable=False),
    Column("origin", Text, nullable=False, server_default="said"),
    Column("source_message_id", BigInteger, ForeignKey("messages.id", ondelete="SET NULL"), index=True),
    Column("embedding", Vector(VECTOR_SIZE)),
    Column("embedding_model", Text),
    _now("created_at"),
    _now("updated_at"),
    UniqueConstraint("user_id", "content_key"),
    CheckConstraint("origin IN ('said', 'mail', 'document', 'page')", name="origin"),
    CheckConstraint("length(content) BETWEEN 1 AND 1000", name="content_length"),
    Index(None, "user_id", "updated_at"),
)

conversation_summaries = Table(
    "conversation_summaries",
    metadata,
    Column(
        "conversation_id",
        BigInteger,
        ForeignKey("conversations.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    _user_id(),
    # NULL: there was nothing to summarise, the person deleted it, or it has not been written yet.
    Column("summary", Text),
    # Title and summary as conversation_words counts them and the embedding was made of them.
    Column("indexed_text", Text),
    Column("embedding", Vector(VECTOR_SIZE)),
    Column("embedding_model", Text),
    # The last message the summary knows. 0: it has to be written from the beginning.
    Column("through_message_id", BigInteger, nullable=False, server_default=text("0")),
    # Grows with every change that makes a running summary job's material stale (forget, delete, regenerate).
    Column("revision", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("last_error", Text),
    Column("retry_at", DateTime(timezone=True)),
    _now("updated_at"),
    Index(None, "user_id", "updated_at"),
)

# The recall index, see recall_index.py: what every exchange means, and which words every conversation holds.
exchanges = Table(
    "exchanges",
    metadata,
    # The user's message; the text is not kept twice.
    Column("message_id", BigInteger, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    # Long exchanges are cut into pieces, numbered from 0.
    Column("piece", SmallInteger, primary_key=True),
    Column("conversation_id", BigInteger, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    _user_id(),
    # Half the size of a vector at the same order of neighbours, and small enough to stay in its row.
    Column("embedding", HALFVEC(VECTOR_SIZE), nullable=False),
    Column("embedding_model", Text, nullable=False),
    Index(None, "conversation_id"),
    Index(
        "ix_exchanges_embedding",
        "embedding",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "halfvec_ip_ops"},
    ),
)

conversation_words = Table(
    "conversation_words",
    metadata,
    Column("conversation_id", BigInteger, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("word", Text, primary_key=True),
    _user_id(),
    Column("count", Integer, nullable=False),
    Index(None, "user_id", "word", postgresql_include=["conversation_id", "count"]),
)

forgettings = Table(
    "forgettings",
    metadata,
    _id(),
    _user_id(),
    # What Undo needs to put everything back. Removed after FORGETTING_KEPT_DAYS.
    Column("fact", JSONB, nullable=False),
    Column("excluded_message_ids", JSONB, nullable=False),
    Column("summaries", JSONB, nullable=False),
    Column("undone", Boolean, nullable=False, server_default=text("false")),
    _now("created_at"),
    Index(None, "user_id", "created_at"),
)

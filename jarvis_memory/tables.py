"""The tables, as the migrations leave them. Queries live with the noun they are about, not here."""

from pgvector.sqlalchemy import HALFVEC, Vector
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
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
    # What the person chose in the settings; NULL: the environment's value, see preferences.py.
    Column("language", Text),
    Column("time_zone", Text),
    Column("model", Text),
    # "off": new chats begin without the memory.
    Column("memory", Text),
    # The zone that the person's browser told last; used where neither they nor the environment say one.
    Column("browser_time_zone", Text),
    # How the assistant is to talk to them, in their words.
    Column("instructions", Text, nullable=False, server_default=""),
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
    # False: nothing of it is summarised, recalled or indexed, and its tools do not write to the memory.
    Column("remember", Boolean, nullable=False, server_default=text("true")),
    # False: it gets no facts and no earlier conversations.
    Column("reads_memory", Boolean, nullable=False, server_default=text("true")),
    # A temporary chat is in no list and is deleted once nobody has looked at it for a while.
    Column("temporary", Boolean, nullable=False, server_default=text("false")),
    Column("seen_at", DateTime(timezone=True)),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    # NULL: the person's default.
    Column("model", Text),
    # What it is called in exports, also in those of other programs: an import recognises by it what is there.
    Column("external_id", Text, nullable=False, server_default=text("(gen_random_uuid())::text")),
    # How many words conversation_words counts for it.
    Column("words", Integer, nullable=False, server_default=text("0")),
    _now("created_at"),
    _now("updated_at"),
    UniqueConstraint("user_id", "external_id"),
    CheckConstraint("NOT (temporary AND remember)", name="temporary"),
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
    # Of an answer that waits: what Claude and the tools said in its turn. json and not jsonb: Claude gets it back as it
    # was, in the order of its keys too.
    Column("rounds", JSON(none_as_null=True)),
    # An answer is "interrupted" from its first moment and "complete" at its end, so a crash needs no repair;
    # "waiting" while its tools wait for the person's decision.
    Column("status", Text, nullable=False, server_default="complete"),
    Column("excluded_from_memory", Boolean, nullable=False, server_default=text("false")),
    Column("tokens_used", Integer, nullable=False, server_default=text("0")),
    # Of an answer: model, tokens and cost, see usage.py.
    Column("usage", JSONB(none_as_null=True)),
    # Whether conversation_words counts it.
    Column("words_indexed", Boolean, nullable=False, server_default=text("false")),
    # Of a user's message: the model whose vectors of its exchange stand in `exchanges`.
    Column("exchange_model", Text),
    _now("created_at"),
    CheckConstraint("role IN ('user', 'assistant')", name="role"),
    CheckConstraint("status IN ('complete', 'interrupted', 'failed', 'waiting')", name="status"),
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
    CheckConstraint("origin IN ('said', 'mail', 'appointment', 'document', 'page')", name="origin"),
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

# What an edited message or a regenerated answer replaced, to look at; it is not part of the conversation any more.
message_versions = Table(
    "message_versions",
    metadata,
    _id(),
    _user_id(),
    Column("conversation_id", BigInteger, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    # The message that stands there now.
    Column("message_id", BigInteger, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False),
    # The replaced message and all that followed it: role, content, created_at of each.
    Column("messages", JSONB, nullable=False),
    _now("created_at"),
    Index(None, "message_id"),
    Index(None, "conversation_id"),
)

# What a deleted conversation consisted of, for as long as its deletion can be undone.
deletions = Table(
    "deletions",
    metadata,
    _id(),
    _user_id(),
    Column("content", JSONB, nullable=False),
    _now("created_at"),
    Index(None, "user_id"),
)

attachments = Table(
    "attachments",
    metadata,
    _id(),
    _user_id(),
    # The message it was sent with, or the deletion that may give it back to its message.
    Column("message_id", BigInteger, ForeignKey("messages.id", ondelete="CASCADE")),
    Column("deletion_id", BigInteger, ForeignKey("deletions.id", ondelete="CASCADE")),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    _now("created_at"),
    CheckConstraint("num_nonnulls(message_id, deletion_id) = 1", name="owner"),
    Index(None, "message_id"),
    Index(None, "deletion_id"),
)

# Calls of tools that wait for the person's click, or waited for it.
pending_actions = Table(
    "pending_actions",
    metadata,
    _id(),
    _user_id(),
    Column("conversation_id", BigInteger, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    # The answer whose turn goes on once all of its actions are decided.
    Column("message_id", BigInteger, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False),
    Column("call_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    # Exactly what would happen, with the person's changes once it is approved.
    Column("action", JSONB, nullable=False),
    # pending → declined or expired; pending → approved → running → done. Each step is taken once.
    Column("status", Text, nullable=False, server_default="pending"),
    # What the person said about it.
    Column("comment", Text, nullable=False, server_default=""),
    # What the tool returned: content, is_error, data.
    Column("result", JSONB(none_as_null=True)),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    _now("created_at"),
    UniqueConstraint("message_id", "call_id"),
    CheckConstraint(
        "status IN ('pending', 'approved', 'declined', 'expired', 'running', 'done')",
        name="status",
    ),
    Index(None, "conversation_id"),
)

# What answers and summaries took, kept when the chats are gone.
token_usage = Table(
    "token_usage",
    metadata,
    _id(),
    _user_id(),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input", Integer, nullable=False),
    Column("output", Integer, nullable=False),
    Column("cache_read", Integer, nullable=False),
    Column("cache_write", Integer, nullable=False),
    # In US dollars at the price of that day; NULL where the price is not known.
    Column("cost", Numeric(12, 6)),
    _now("created_at"),
    CheckConstraint("purpose IN ('chat', 'summary')", name="purpose"),
    Index(None, "user_id", "created_at"),
)

# The knowledge base, see documents.py: the originals are kept here, so that a backup and a deletion are complete.
documents = Table(
    "documents",
    metadata,
    _id(),
    _user_id(),
    Column("name", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    # What it was read as, and its pages where such a file has some.
    Column("kind", Text),
    Column("pages", Integer, nullable=False, server_default=text("0")),
    # "waiting" until it is read; the process may die meanwhile.
    Column("status", Text, nullable=False, server_default="waiting"),
    # Of one that could not be read: the class in errors.py, and its details.
    Column("error", Text),
    Column("error_details", JSONB(none_as_null=True)),
    # The name as chunk_words counts it for each passage.
    Column("counted_name", Text),
    # The document whose place it takes once it is read.
    Column("replaces_id", BigInteger, ForeignKey("documents.id", ondelete="SET NULL"), index=True),
    _now("created_at"),
    UniqueConstraint("user_id", "sha256"),
    CheckConstraint("status IN ('waiting', 'ready', 'failed')", name="status"),
    CheckConstraint("length(name) BETWEEN 1 AND 200", name="name_length"),
    Index(None, "user_id", "created_at"),
    Index("ix_documents_waiting", "id", postgresql_where=text("status = 'waiting'")),
)

document_chunks = Table(
    "document_chunks",
    metadata,
    _id(),
    _user_id(),
    Column("document_id", BigInteger, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    # One after the other they are the document's text.
    Column("number", Integer, nullable=False),
    # NULL in a document without pages.
    Column("page", Integer),
    # The headings above it, from the outermost on.
    Column("heading", Text, nullable=False, server_default=""),
    Column("content", Text, nullable=False),
    # How many words chunk_words counts for it.
    Column("words", Integer, nullable=False, server_default=text("0")),
    Column("embedding", Vector(VECTOR_SIZE)),
    Column("embedding_model", Text),
    UniqueConstraint("document_id", "number"),
    Index(None, "user_id"),
    Index(None, "embedding_model"),
    Index(
        "ix_document_chunks_embedding",
        "embedding",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    ),
)

chunk_words = Table(
    "chunk_words",
    metadata,
    Column("chunk_id", BigInteger, ForeignKey("document_chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("word", Text, primary_key=True),
    _user_id(),
    Column("count", Integer, nullable=False),
    Index(None, "user_id", "word", postgresql_include=["chunk_id", "count"]),
)

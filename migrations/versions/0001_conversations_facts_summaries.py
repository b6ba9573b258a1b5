"""Conversations with their messages, facts, summaries and what Undo needs."""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _id() -> sa.Column:
    return sa.Column("id", sa.BigInteger, sa.Identity(), nullable=False)


def _time(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())


def _user(table: str) -> tuple[sa.Column, sa.ForeignKeyConstraint]:
    return (
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], f"fk_{table}_user_id", ondelete="CASCADE"),
    )


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")

    op.create_table(
        "users",
        _id(),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("language", sa.Text),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("login", name="uq_users_login"),
    )

    op.create_table(
        "conversations",
        _id(),
        *_user("conversations"),
        sa.Column("title", sa.Text, nullable=False, server_default=""),
        sa.Column("title_by_user", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("remember", sa.Boolean, nullable=False, server_default=sa.text("true")),
        _time("created_at"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_user_id_updated_at", "conversations", ["user_id", "updated_at"])

    op.create_table(
        "messages",
        _id(),
        sa.Column("conversation_id", sa.BigInteger, nullable=False),
        *_user("messages"),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("blocks", JSONB, nullable=False, server_default=sa.text("'[]'::jsonb")),
        sa.Column("sent", JSONB),
        sa.Column("status", sa.Text, nullable=False, server_default="complete"),
        sa.Column("excluded_from_memory", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("tokens_used", sa.Integer, nullable=False, server_default=sa.text("0")),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], "fk_messages_conversation_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint("role IN ('user', 'assistant')", name=op.f("ck_messages_role")),
        sa.CheckConstraint("status IN ('complete', 'interrupted', 'failed')", name=op.f("ck_messages_status")),
    )
    op.create_index("ix_messages_conversation_id_id", "messages", ["conversation_id", "id"])
    op.create_index(
        "ix_messages_words",
        "messages",
        [sa.text("to_tsvector('german', left(content, 100000))")],
        postgresql_using="gin",
    )

    op.create_table(
        "memory_facts",
        _id(),
        *_user("memory_facts"),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("content_key", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False, server_default="said"),
        sa.Column("source_message_id", sa.BigInteger),
        sa.Column("embedding", Vector(768)),
        sa.Column("embedding_model", sa.Text),
        _time("created_at"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("id", name="pk_memory_facts"),
        sa.ForeignKeyConstraint(
            ["source_message_id"], ["messages.id"], "fk_memory_facts_source_message_id", ondelete="SET NULL"
        ),
        sa.UniqueConstraint("user_id", "content_key", name="uq_memory_facts_user_id_content_key"),
        sa.CheckConstraint("origin IN ('said', 'mail', 'document', 'page')", name=op.f("ck_memory_facts_origin")),
        sa.CheckConstraint("length(content) BETWEEN 1 AND 1000", name=op.f("ck_memory_facts_content_length")),
    )
    op.create_index("ix_memory_facts_user_id_updated_at", "memory_facts", ["user_id", "updated_at"])
    op.create_index("ix_memory_facts_source_message_id", "memory_facts", ["source_message_id"])

    op.create_table(
        "conversation_summaries",
        sa.Column("conversation_id", sa.BigInteger, autoincrement=False, nullable=False),
        *_user("conversation_summaries"),
        sa.Column("summary", sa.Text),
        sa.Column("embedding", Vector(768)),
        sa.Column("embedding_model", sa.Text),
        sa.Column("through_message_id", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("last_error", sa.Text),
        sa.Column("retry_at", sa.DateTime(timezone=True)),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("conversation_id", name="pk_conversation_summaries"),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            "fk_conversation_summaries_conversation_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_conversation_summaries_user_id_updated_at", "conversation_summaries", ["user_id", "updated_at"])

    op.create_table(
        "forgettings",
        _id(),
        *_user("forgettings"),
        sa.Column("fact", JSONB, nullable=False),
        sa.Column("excluded_message_ids", JSONB, nullable=False),
        sa.Column("summaries", JSONB, nullable=False),
        sa.Column("undone", sa.Boolean, nullable=False, server_default=sa.text("false")),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_forgettings"),
    )
    op.create_index("ix_forgettings_user_id_created_at", "forgettings", ["user_id", "created_at"])

    # PostgreSQL's statistics keep samples of the values, also after the rows are gone: none of what people wrote.
    for table, columns in {
        "conversations": ["title"],
        "messages": ["content", "blocks", "sent"],
        "memory_facts": ["content", "content_key"],
        "conversation_summaries": ["summary", "last_error"],
        "forgettings": ["fact", "summaries"],
    }.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    op.execute("ALTER INDEX ix_messages_words ALTER COLUMN 1 SET STATISTICS 0")

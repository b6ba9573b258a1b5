"""Documents: the originals, the passages they are cut into, and the words of each passage."""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _parent(table: str, column: str, parent: str, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], f"fk_{table}_{column}", ondelete=ondelete)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("id", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("kind", sa.Text),
        sa.Column("pages", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("status", sa.Text, nullable=False, server_default="waiting"),
        sa.Column("error", sa.Text),
        sa.Column("error_details", JSONB),
        sa.Column("counted_name", sa.Text),
        sa.Column("replaces_id", sa.BigInteger),
        _now("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        _parent("documents", "user_id", "users"),
        _parent("documents", "replaces_id", "documents", "SET NULL"),
        sa.UniqueConstraint("user_id", "sha256", name="uq_documents_user_id_sha256"),
        sa.CheckConstraint("status IN ('waiting', 'ready', 'failed')", name="ck_documents_status"),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 200", name="ck_documents_name_length"),
    )
    op.create_index("ix_documents_user_id_created_at", "documents", ["user_id", "created_at"])
    op.create_index("ix_documents_replaces_id", "documents", ["replaces_id"])
    op.create_index("ix_documents_waiting", "documents", ["id"], postgresql_where=sa.text("status = 'waiting'"))

    op.create_table(
        "document_chunks",
        sa.Column("id", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("document_id", sa.BigInteger, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("page", sa.Integer),
        sa.Column("heading", sa.Text, nullable=False, server_default=""),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("words", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("embedding", Vector(768)),
        sa.Column("embedding_model", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_document_chunks"),
        _parent("document_chunks", "user_id", "users"),
        _parent("document_chunks", "document_id", "documents"),
        sa.UniqueConstraint("document_id", "number", name="uq_document_chunks_document_id_number"),
    )
    op.create_index("ix_document_chunks_user_id", "document_chunks", ["user_id"])
    op.create_index("ix_document_chunks_embedding_model", "document_chunks", ["embedding_model"])
    op.create_index(
        "ix_document_chunks_embedding",
        "document_chunks",
        ["embedding"],
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )

    op.create_table(
        "chunk_words",
        sa.Column("chunk_id", sa.BigInteger, nullable=False),
        sa.Column("word", sa.Text, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("chunk_id", "word", name="pk_chunk_words"),
        _parent("chunk_words", "chunk_id", "document_chunks"),
        _parent("chunk_words", "user_id", "users"),
    )
    op.create_index(
        "ix_chunk_words_user_id_word",
        "chunk_words",
        ["user_id", "word"],
        postgresql_include=["chunk_id", "count"],
    )

    # Files are compressed already.
    op.execute("ALTER TABLE documents ALTER COLUMN content SET STORAGE EXTERNAL")
    # No samples of what people wrote in PostgreSQL's statistics, see 0001.
    for table, column in (
        ("documents", "name"),
        ("documents", "counted_name"),
        ("documents", "content"),
        ("documents", "sha256"),
        ("documents", "error_details"),
        ("document_chunks", "heading"),
        ("document_chunks", "content"),
        ("document_chunks", "embedding"),
        ("chunk_words", "word"),
    ):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")

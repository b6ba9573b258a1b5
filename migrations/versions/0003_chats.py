"""Chats as people expect them: preferences, pinned and temporary chats, versions, attachments, Undo, usage."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _table(name: str, *columns: sa.schema.SchemaItem) -> None:
    op.create_table(
        name,
        sa.Column("id", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        *columns,
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], f"fk_{name}_user_id", ondelete="CASCADE"),
    )


def _parent(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], f"fk_{table}_{column}", ondelete="CASCADE")


def _flag(name: str, default: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.text(default))


def upgrade() -> None:
    for name in ("time_zone", "model", "memory", "browser_time_zone"):
        op.add_column("users", sa.Column(name, sa.Text))
    op.add_column("users", sa.Column("instructions", sa.Text, nullable=False, server_default=""))

    for name, default in {"reads_memory": "true", "temporary": "false", "pinned": "false", "archived": "false"}.items():
        op.add_column("conversations", _flag(name, default))
    op.add_column("conversations", sa.Column("seen_at", sa.DateTime(timezone=True)))
    op.add_column("conversations", sa.Column("model", sa.Text))
    op.add_column(
        "conversations",
        sa.Column("external_id", sa.Text, nullable=False, server_default=sa.text("(gen_random_uuid())::text")),
    )
    op.create_unique_constraint("uq_conversations_user_id_external_id", "conversations", ["user_id", "external_id"])
    op.create_check_constraint("ck_conversations_temporary", "conversations", "NOT (temporary AND remember)")

    op.add_column("messages", sa.Column("usage", JSONB))

    _table(
        "message_versions",
        sa.Column("conversation_id", sa.BigInteger, nullable=False),
        sa.Column("message_id", sa.BigInteger, nullable=False),
        sa.Column("messages", JSONB, nullable=False),
        _parent("message_versions", "conversation_id", "conversations"),
        _parent("message_versions", "message_id", "messages"),
    )
    _table("deletions", sa.Column("content", JSONB, nullable=False))
    _table(
        "attachments",
        sa.Column("message_id", sa.BigInteger),
        sa.Column("deletion_id", sa.BigInteger),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        _parent("attachments", "message_id", "messages"),
        _parent("attachments", "deletion_id", "deletions"),
        sa.CheckConstraint("num_nonnulls(message_id, deletion_id) = 1", name="ck_attachments_owner"),
    )
    _table(
        "token_usage",
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("input", sa.Integer, nullable=False),
        sa.Column("output", sa.Integer, nullable=False),
        sa.Column("cache_read", sa.Integer, nullable=False),
        sa.Column("cache_write", sa.Integer, nullable=False),
        sa.Column("cost", sa.Numeric(12, 6)),
        sa.CheckConstraint("purpose IN ('chat', 'summary')", name="ck_token_usage_purpose"),
    )
    for table, columns in {
        "message_versions": ["message_id"],
        "deletions": ["user_id"],
        "attachments": ["message_id"],
        "token_usage": ["user_id", "created_at"],
    }.items():
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, columns)
    op.create_index("ix_message_versions_conversation_id", "message_versions", ["conversation_id"])
    op.create_index("ix_attachments_deletion_id", "attachments", ["deletion_id"])

    # No samples of what people wrote in PostgreSQL's statistics, see 0001.
    for table, column in {
        "users": "instructions",
        "message_versions": "messages",
        "deletions": "content",
        "attachments": "name",
    }.items():
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    op.execute("ALTER TABLE attachments ALTER COLUMN content SET STATISTICS 0")
    # Images and PDFs are compressed already.
    op.execute("ALTER TABLE attachments ALTER COLUMN content SET STORAGE EXTERNAL")

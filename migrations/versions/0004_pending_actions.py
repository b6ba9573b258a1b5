"""Tools that wait for the person's click: pending actions, and answers that wait for them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _parent(column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], f"fk_pending_actions_{column}", ondelete="CASCADE")


def _time(name: str, **options: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **options)  # type: ignore[arg-type]


def upgrade() -> None:
    op.drop_constraint("ck_messages_status", "messages")
    op.create_check_constraint(
        "ck_messages_status", "messages", "status IN ('complete', 'interrupted', 'failed', 'waiting')"
    )
    # json and not jsonb: the model wants it back as it was, in the order of its keys too.
    op.add_column("messages", sa.Column("rounds", sa.JSON))

    op.drop_constraint("ck_memory_facts_origin", "memory_facts")
    op.create_check_constraint(
        "ck_memory_facts_origin", "memory_facts", "origin IN ('said', 'mail', 'appointment', 'document', 'page')"
    )

    op.create_table(
        "pending_actions",
        sa.Column("id", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("conversation_id", sa.BigInteger, nullable=False),
        sa.Column("message_id", sa.BigInteger, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("action", JSONB, nullable=False),
        sa.Column("status", sa.Text, nullable=False, server_default="pending"),
        sa.Column("comment", sa.Text, nullable=False, server_default=""),
        sa.Column("result", JSONB),
        _time("expires_at", nullable=False),
        _time("created_at", nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("id", name="pk_pending_actions"),
        _parent("user_id", "users"),
        _parent("conversation_id", "conversations"),
        _parent("message_id", "messages"),
        sa.UniqueConstraint("message_id", "call_id", name="uq_pending_actions_message_id_call_id"),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'declined', 'expired', 'running', 'done')",
            name="ck_pending_actions_status",
        ),
    )
    op.create_index("ix_pending_actions_conversation_id", "pending_actions", ["conversation_id"])

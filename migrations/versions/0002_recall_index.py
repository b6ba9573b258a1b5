"""The recall index: vectors of exchanges and the words of conversations. The background fills it for what is there."""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations", sa.Column("words", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("conversation_summaries", sa.Column("indexed_text", sa.Text))
    op.add_column("messages", sa.Column("words_indexed", sa.Boolean, nullable=False, server_default=sa.text("false")))
    op.add_column("messages", sa.Column("exchange_model", sa.Text))
    op.create_index(
        "ix_messages_without_words",
        "messages",
        ["id"],
        postgresql_where=sa.text("NOT words_indexed AND NOT excluded_from_memory"),
    )
    op.create_index(
        "ix_messages_exchange_model",
        "messages",
        ["exchange_model", "id"],
        postgresql_where=sa.text("role = 'user' AND NOT excluded_from_memory"),
    )

    op.create_table(
        "exchanges",
        sa.Column("message_id", sa.BigInteger, nullable=False),
        sa.Column("piece", sa.SmallInteger, nullable=False),
        sa.Column("conversation_id", sa.BigInteger, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("embedding", HALFVEC(768), nullable=False),
        sa.Column("embedding_model", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("message_id", "piece", name="pk_exchanges"),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], "fk_exchanges_message_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], "fk_exchanges_conversation_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], "fk_exchanges_user_id", ondelete="CASCADE"),
    )
    op.create_index("ix_exchanges_conversation_id", "exchanges", ["conversation_id"])
    op.create_index(
        "ix_exchanges_embedding",
        "exchanges",
        ["embedding"],
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "halfvec_ip_ops"},
    )

    op.create_table(
        "conversation_words",
        sa.Column("conversation_id", sa.BigInteger, nullable=False),
        sa.Column("word", sa.Text, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "word", name="pk_conversation_words"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], "fk_conversation_words_conversation_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], "fk_conversation_words_user_id", ondelete="CASCADE"),
    )
    op.create_index(
        "ix_conversation_words_user_id_word",
        "conversation_words",
        ["user_id", "word"],
        postgresql_include=["conversation_id", "count"],
    )

    # In the row and not beside it: a search reads many of them.
    op.execute("ALTER TABLE exchanges ALTER COLUMN embedding SET STORAGE PLAIN")
    op.execute("ALTER TABLE conversation_summaries ALTER COLUMN embedding SET STORAGE PLAIN")
    # No samples of what people wrote in PostgreSQL's statistics, see 0001.
    op.execute("ALTER TABLE conversation_words ALTER COLUMN word SET STATISTICS 0")
    op.execute("ALTER TABLE conversation_summaries ALTER COLUMN indexed_text SET STATISTICS 0")

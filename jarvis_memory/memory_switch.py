"""The switch "memory in this chat": off means no facts, no earlier conversations, no summary, and nothing to recall."""

from sqlalchemy import Connection, text

from jarvis_memory.conversations import update_conversation, withdraw_recalled
from jarvis_memory.recall_index import index_summaries, remove_from_index
from jarvis_memory.users import lock_memory


def switch_memory(connection: Connection, *, user_id: int, conversation_id: int, on: bool) -> None:
    """Take the conversation out of the memory with all that was said in it, or let it become a part again.

    Facts that were remembered in it stay: they were asked for. What is switched on is indexed and summarised by the
    background. Raises ConversationNotFound.
    """
    lock_memory(connection, user_id=user_id)
    update_conversation(connection, user_id=user_id, conversation_id=conversation_id, remember=on, reads_memory=on)
    if on:
        return
    said = connection.scalars(
        text("SELECT id FROM messages WHERE conversation_id = :id"), {"id": conversation_id}
    ).all()
    remove_from_index(connection, user_id=user_id, message_ids=list(said))
    # With `remember` off these count as nothing.
    index_summaries(connection, conversation_ids=[conversation_id])
    connection.execute(text("DELETE FROM conversation_summaries WHERE conversation_id = :id"), {"id": conversation_id})
    withdraw_recalled(connection, user_id=user_id, conversation_ids=[conversation_id])

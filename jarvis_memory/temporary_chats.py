"""Temporary chats: in no list, no part of the memory, and deleted once they are closed.

A closed tab says nothing, so an open page tells every minute that it still shows the chat.
"""

from sqlalchemy import Connection, text

from jarvis_memory.database import Lock, nobody_holds

SEEN_EVERY_SECONDS = 60
# Long enough for a browser that comes back from a tunnel, or puts a tab to sleep.
UNSEEN_MINUTES = 30


def see_temporary_chat(connection: Connection, *, user_id: int, conversation_id: int) -> None:
    """A page shows it now."""
    connection.execute(
        text("UPDATE conversations SET seen_at = now() WHERE id = :id AND user_id = :user_id AND temporary"),
        {"id": conversation_id, "user_id": user_id},
    )


def close_temporary_chat(connection: Connection, *, user_id: int, conversation_id: int) -> None:
    """Delete it with all that was said in it. Nothing happens when it is not a temporary one, or gone."""
    connection.execute(
        text("DELETE FROM conversations WHERE id = :id AND user_id = :user_id AND temporary"),
        {"id": conversation_id, "user_id": user_id},
    )


def delete_unseen_temporary_chats(connection: Connection) -> int:
    """Delete those of all users that no page has shown for UNSEEN_MINUTES and that answer nothing. How many went."""
    return connection.execute(
        text(
            f"""DELETE FROM conversations c
                WHERE c.temporary AND coalesce(c.seen_at, c.updated_at) < now() - make_interval(mins => :minutes)
                  AND {nobody_holds(Lock.TURN, "c.id")}"""
        ),
        {"minutes": UNSEEN_MINUTES},
    ).rowcount

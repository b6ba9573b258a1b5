"""The people. Without a login there is one, and every query is scoped by its id all the same."""

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from jarvis_memory.tables import users

DEFAULT_LOGIN = "default"


def ensure_user(connection: Connection, login: str = DEFAULT_LOGIN) -> int:
    """The id of the user with this login, created when missing."""
    connection.execute(insert(users).values(login=login).on_conflict_do_nothing())
    return int(connection.scalars(select(users.c.id).where(users.c.login == login)).one())


def lock_memory(connection: Connection, *, user_id: int) -> None:
    """Until the transaction ends nobody else forgets, undoes or deletes in this person's memory.

    Each of these changes rows of many chats: one after the other they cannot wait for each other in a circle.
    """
    connection.execute(select(users.c.id).where(users.c.id == user_id).with_for_update(key_share=True))

"""What Alembic runs: on the connection that JARVIS hands in at start, or for its command line on the settings'."""

from alembic import context

from jarvis_memory.database import open_database
from jarvis_memory.settings import load_settings
from jarvis_memory.tables import metadata


def run(**options: object) -> None:
    context.configure(target_metadata=metadata, compare_type=True, compare_server_default=True, **options)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    run(dialect_name="postgresql", literal_binds=True)
elif "connection" in context.config.attributes:
    run(connection=context.config.attributes["connection"])
else:
    database = open_database(load_settings())
    try:
        with database.begin() as connection:
            run(connection=connection)
    finally:
        database.close()

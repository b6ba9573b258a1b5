"""Builds every part once, from the settings. Tests hand their own parts in here."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from jarvis_memory.background import Background
from jarvis_memory.claude import Claude
from jarvis_memory.database import Database, migrate, open_database
from jarvis_memory.embeddings import Embeddings, build_embeddings
from jarvis_memory.settings import Settings
from jarvis_memory.tools.calendar import CALENDAR_TOOLS
from jarvis_memory.tools.documents import DOCUMENT_TOOLS
from jarvis_memory.tools.mail import MAIL_TOOLS, SENDING_TOOLS
from jarvis_memory.tools.memory import MEMORY_TOOLS
from jarvis_memory.tools.tool import Tool
from jarvis_memory.users import ensure_user

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything a turn or a page needs, built and connected."""

    settings: Settings
    database: Database
    embeddings: Embeddings
    claude: Claude
    tools: Sequence[Tool]
    background: Background
    user_id: int

    def close(self) -> None:
        """Let background jobs end within seconds, then close the database."""
        self.background.stop()
        self.database.close()


def build_parts(settings: Settings, *, database: Database | None = None, embeddings: Embeddings | None = None) -> Parts:
    """The parts, with the database migrated and the background at work. Raises DatabaseUnavailable."""
    database = database or open_database(settings)
    migrate(database)
    with database.begin() as connection:
        user_id = ensure_user(connection)
    embeddings = embeddings or build_embeddings(settings)
    claude = Claude(settings)
    tools = [*MEMORY_TOOLS, *DOCUMENT_TOOLS]
    if settings.calendar_is_configured:
        tools += CALENDAR_TOOLS
    if settings.mail_is_configured:
        tools += MAIL_TOOLS
    if settings.sending_is_configured:
        tools += SENDING_TOOLS
    background = Background(settings=settings, database=database, claude=claude, embeddings=embeddings)
    background.start()
    return Parts(
        settings=settings,
        database=database,
        embeddings=embeddings,
        claude=claude,
        tools=tools,
        background=background,
        user_id=user_id,
    )

"""The servers that JARVIS uses for the person: what is set of each, and whether it works. No text for a person here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from jarvis_memory.calendars import check_calendar
from jarvis_memory.claude import Claude
from jarvis_memory.mailbox import check_mailbox
from jarvis_memory.sending import check_sending
from jarvis_memory.settings import Settings

ServiceName = Literal["claude", "calendar", "mail", "sending"]


@dataclass(frozen=True, kw_only=True)
class Service:
    """One server. `address` and `user` can be shown: a password is in neither."""

    name: ServiceName
    configured: bool
    address: str
    user: str
    # What to set: for a calendar and mail first where it is, then the login.
    variables: tuple[str, ...]
    # Uses it once, and returns what was found; raises a JarvisError, nothing of which is a secret.
    check: Callable[[], str]


def list_services(settings: Settings) -> Iterator[Service]:
    """All of them, also those that are not configured."""
    yield Service(
        name="claude",
        configured=settings.claude_is_configured,
        address=without_password(settings.anthropic_base_url),
        user="",
        variables=("ANTHROPIC_API_KEY",) if settings.claude_is_official else ("ANTHROPIC_BASE_URL",),
        check=lambda: _check_claude(settings),
    )
    yield Service(
        name="calendar",
        configured=settings.calendar_is_configured,
        address=settings.caldav_url or "",
        user=settings.caldav_username or "",
        variables=("CALDAV_URL", "CALDAV_USERNAME", "CALDAV_PASSWORD"),
        check=lambda: _log_in(check_calendar, settings, settings.caldav_username),
    )
    yield Service(
        name="mail",
        configured=settings.mail_is_configured,
        address=f"{settings.imap_host}:{settings.imap_port} ({settings.imap_security})",
        user=settings.imap_username or "",
        variables=("IMAP_HOST", "IMAP_USERNAME", "IMAP_PASSWORD"),
        check=lambda: _log_in(check_mailbox, settings, settings.imap_username),
    )
    yield Service(
        name="sending",
        configured=settings.sending_is_configured,
        address=f"{settings.smtp_host}:{settings.smtp_port} ({settings.smtp_security})",
        user=settings.smtp_username or "",
        variables=("SMTP_HOST", "SMTP_USERNAME", "SMTP_PASSWORD"),
        check=lambda: _log_in(check_sending, settings, settings.smtp_username),
    )


def without_password(address: str) -> str:
    """The address as it can be shown."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _log_in(check: Callable[[Settings], None], settings: Settings, user: str | None) -> str:
    """As whom it was used; a server without a login knows nobody."""
    check(settings)
    return user or "ok"


def _check_claude(settings: Settings) -> str:
    claude, models = Claude(settings), dict.fromkeys((settings.jarvis_model, settings.jarvis_summary_model))
    for model in models:
        claude.check(model=model)
    return ", ".join(models)

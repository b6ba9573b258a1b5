"""What a look at one thing comes to: in a line that can be shown, however the look ends."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from jarvis_memory.errors import JarvisError
from jarvis_memory.settings import Settings

log = logging.getLogger(__name__)

# Longer than each check takes by its own limits, but for a crash recovery of a large database.
PATIENCE = 90.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check came to; `off` is what is not configured, or cannot be looked at yet."""

    what: str
    state: Literal["ok", "off", "failed"]
    detail: str
    remedy: str = ""


def look(what: str, check: Callable[[], str], remedy: Callable[[JarvisError | None], str] = lambda _: "") -> Finding:
    """What the check says. It runs in a thread that may be left behind: a check can hang, and the others must not."""
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(check())
        except BaseException as error:  # noqa: BLE001 - handed on to the one who waits
            future.set_exception(error)

    Thread(target=run, name=f"look-{what}", daemon=True).start()
    try:
        return Finding(what=what, state="ok", detail=future.result(PATIENCE))
    except JarvisError as error:
        cause = error.details.get("cause")
        detail = f"{error} ({cause})" if cause else str(error)
        return Finding(what=what, state="failed", detail=detail, remedy=remedy(error))
    except TimeoutError:
        return Finding(what=what, state="failed", detail=f"No answer in {PATIENCE:.0f} seconds.", remedy=remedy(None))
    except OSError as error:
        detail = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Finding(what=what, state="failed", detail=detail, remedy=remedy(None))
    except Exception as error:  # noqa: BLE001 - a mistake of a check must not hide what the others find
        log.debug("A check failed", exc_info=True)
        return Finding(what=what, state="failed", detail=f"The check itself failed: {type(error).__name__}.")


def secrets_of(settings: Settings) -> list[str]:
    """Every key and password, also those in addresses: a library's message may hold one."""
    values = [getattr(settings, name) for name in Settings.model_fields]
    found = {value.get_secret_value() for value in values if isinstance(value, SecretStr)}
    found |= {urlsplit(address).password or "" for address in (settings.anthropic_base_url, settings.ollama_url or "")}
    if settings.database_url is not None:
        address = settings.database_url.get_secret_value()
        found |= {urlsplit(address).password or "", make_url(address).password or ""}
        found |= {str(make_url(address).query.get("password", ""))}
    found |= {unquote(secret) for secret in found}
    return sorted(found - {""}, key=len, reverse=True)


def shown(said: str, hidden: list[str]) -> str:
    """In one line, without a secret, and without what a terminal takes for a command."""
    for secret in hidden:
        said = said.replace(secret, "***")
    return " ".join("".join(character if character.isprintable() else " " for character in said).split())

"""The settings: read once from the environment and `.env`, validated, handed on. Nothing else reads the environment."""

import os
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from jarvis_memory.errors import SettingsError

# What a good value looks like, for the error that names a bad one.
EXAMPLES = {
    "ANTHROPIC_API_KEY": "sk-ant-…",
    "ANTHROPIC_BASE_URL": "http://localhost:11434",
    "JARVIS_MODEL": "claude-sonnet-5-5",
    "JARVIS_SUMMARY_MODEL": "claude-haiku-5-5",
    "DATABASE_URL": "postgresql://jarvis:secret@localhost:5432/jarvis",
    "OLLAMA_URL": "http://localhost:11434",
    "EMBEDDING_MODEL": "embeddinggemma",
    "JARVIS_LANGUAGE": "de",
    "JARVIS_DATA_DIR": "~/jarvis-data",
    "JARVIS_FACTS_BUDGET": "20000",
    "JARVIS_TIME_ZONE": "Europe/Berlin",
    "JARVIS_DEMO": "false",
}


def default_data_dir() -> Path:
    """The folder for the database when JARVIS_DATA_DIR is unset: the user's data directory on this system."""
    return platformdirs.user_data_path("jarvis", appauthor=False)


class Settings(BaseSettings):
    """All settings, one field a variable. `.env.example` documents each."""

    model_config = SettingsConfigDict(env_file_encoding="utf-8-sig", env_ignore_empty=True, extra="ignore", frozen=True)

    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str = "https://api.anthropic.com"
    jarvis_model: str = "claude-sonnet-5-5"
    jarvis_summary_model: str = "claude-haiku-5-5"
    database_url: SecretStr | None = None
    ollama_url: str | None = None
    embedding_model: str | None = None
    jarvis_language: Literal["de", "en"] = "de"
    jarvis_data_dir: Path = Field(default_factory=default_data_dir)
    jarvis_facts_budget: int = Field(default=20_000, ge=500, le=200_000)
    jarvis_time_zone: str | None = None
    jarvis_demo: bool = False

    @field_validator("anthropic_base_url", "ollama_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value.strip())
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # its message would show the address, which may hold a password
            usable = False
        if not usable:
            raise ValueError("is not an address that begins with http:// or https://")
        # People paste the address of the OpenAI-like endpoint; the SDK and Ollama want it without /v1.
        return value.strip().rstrip("/").removesuffix("/v1").rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _is_a_postgresql_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        url = value.get_secret_value().strip()
        try:
            usable = make_url(url).drivername in ("postgres", "postgresql", "postgresql+psycopg2")
        except (ArgumentError, ValueError):
            usable = False
        if not usable:
            raise ValueError("is not a PostgreSQL address (JARVIS works with PostgreSQL only)")
        return SecretStr(url)

    @field_validator("anthropic_api_key")
    @classmethod
    def _is_one_word(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        key = value.get_secret_value().strip()
        if not key.isascii() or any(character.isspace() for character in key):
            raise ValueError("holds spaces or characters that no key has; copy it again")
        return SecretStr(key) if key else None

    @field_validator("jarvis_model", "jarvis_summary_model", "embedding_model")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and (not value.strip() or any(c.isspace() for c in value.strip())):
            raise ValueError("is not the name of a model")
        return value.strip() if value is not None else None

    @field_validator("jarvis_data_dir")
    @classmethod
    def _is_a_folder(cls, value: Path) -> Path:
        try:
            folder = value.expanduser().absolute()
            is_a_file = folder.exists() and not folder.is_dir()
        except (OSError, RuntimeError):
            raise ValueError("is a folder that cannot be reached") from None
        if is_a_file:
            raise ValueError("is a file, not a folder")
        return folder

    @field_validator("jarvis_time_zone")
    @classmethod
    def _is_a_time_zone(cls, value: str | None) -> str | None:
        if value is not None and value not in available_timezones():
            raise ValueError("is not the name of a time zone")
        return value

    @property
    def claude_is_configured(self) -> bool:
        """True when there is a key, or a server of one's own that needs none."""
        return self.anthropic_api_key is not None or not self.claude_is_official

    @property
    def claude_is_official(self) -> bool:
        """True when requests go to Anthropic itself, which understands effort and thinking settings."""
        host = urlsplit(self.anthropic_base_url).hostname or ""
        return host == "anthropic.com" or host.endswith(".anthropic.com")

    @property
    def time_zone(self) -> ZoneInfo | None:
        """The person's time zone; None means the machine's."""
        return ZoneInfo(self.jarvis_time_zone) if self.jarvis_time_zone else None


def load_settings() -> Settings:
    """The settings of this process.

    Raises SettingsError with `details["problems"]`, a list of (variable, what is wrong, example), without the
    bad value itself, which may be a secret.
    """
    # The demonstration's settings are its environment: a .env must not lead it to a real key or database.
    env_file = None if "JARVIS_DEMO" in os.environ else ".env"
    try:
        return Settings(_env_file=env_file)
    except UnicodeDecodeError:
        reason = "is not a text in UTF-8; save it again in that encoding"
        raise SettingsError(f"Bad settings. .env: {reason}", problems=[(".env", reason, "")]) from None
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            variable = str(problem["loc"][0]).upper()
            reason = str(problem["msg"]).removeprefix("Value error, ")
            problems.append((variable, reason, EXAMPLES.get(variable, "")))
        lines = "; ".join(f"{name}: {reason} (example: {example})" for name, reason, example in problems)
        # `from None`: pydantic's error prints the bad value, which may be a password.
        raise SettingsError(f"Bad settings. {lines}", problems=problems) from None


def print_settings_error(error: SettingsError) -> None:
    """Tell the terminal what is wrong, one line a variable."""
    for name, reason, example in error.details["problems"]:
        print(f"{name}: {reason}." + (f" Example: {name}={example}" if example else ""), file=sys.stderr)

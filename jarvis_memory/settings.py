"""The settings: read once from the environment and `.env`, validated, handed on. Nothing else reads the environment."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from email.headerregistry import Address
from email.policy import default as mail_policy
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

import platformdirs
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from jarvis_memory.errors import SettingsError

# What a good value looks like, for the error that names a bad one.
EXAMPLES = {
    "ANTHROPIC_API_KEY": "sk-ant-…",
    "ANTHROPIC_BASE_URL": "http://localhost:11434",
    "JARVIS_MODEL": "claude-sonnet-5-5",
    "JARVIS_MODELS": "claude-sonnet-5-5,claude-opus-5-5",
    "JARVIS_SUMMARY_MODEL": "claude-haiku-5-5",
    "JARVIS_CONTEXT_TOKENS": "32000",
    "DATABASE_URL": "postgresql://jarvis:secret@localhost:5432/jarvis",
    "OLLAMA_URL": "http://localhost:11434",
    "EMBEDDING_MODEL": "embeddinggemma",
    "JARVIS_LANGUAGE": "de",
    "JARVIS_DATA_DIR": "~/jarvis-data",
    "JARVIS_FACTS_BUDGET": "20000",
    "JARVIS_TIME_ZONE": "Europe/Berlin",
    "JARVIS_DEMO": "false",
    "JARVIS_DOCUMENT_MEGABYTES": "50",
    "JARVIS_DOCUMENT_PAGES": "3000",
    "JARVIS_DOCUMENT_SECONDS": "120",
    "JARVIS_DOCUMENT_MEMORY": "400",
    "CALDAV_URL": "https://cloud.example.org/remote.php/dav",
    "CALDAV_USERNAME": "anna",
    "CALDAV_PASSWORD": "an app password",
    "IMAP_HOST": "imap.example.org",
    "IMAP_PORT": "993",
    "IMAP_SECURITY": "tls",
    "IMAP_USERNAME": "anna@example.org",
    "IMAP_PASSWORD": "an app password",
    "SMTP_HOST": "smtp.example.org",
    "SMTP_PORT": "465",
    "SMTP_SECURITY": "tls",
    "SMTP_USERNAME": "anna@example.org",
    "SMTP_PASSWORD": "an app password",
    "MAIL_FROM": "Anna Beispiel <anna@example.org>",
}

# Which variables a set one needs; without them it would do nothing, or fail where nobody sees why.
NEEDS = {
    "CALDAV_USERNAME": ("CALDAV_URL", "CALDAV_PASSWORD"),
    "CALDAV_PASSWORD": ("CALDAV_URL", "CALDAV_USERNAME"),
    "IMAP_HOST": ("IMAP_USERNAME", "IMAP_PASSWORD"),
    "IMAP_USERNAME": ("IMAP_HOST",),
    "IMAP_PASSWORD": ("IMAP_HOST",),
    # What was sent is filed in the mailbox.
    "SMTP_HOST": ("IMAP_HOST",),
    "SMTP_USERNAME": ("SMTP_HOST", "SMTP_PASSWORD"),
    "SMTP_PASSWORD": ("SMTP_HOST", "SMTP_USERNAME"),
}

# "none" is for a server on this machine or at home only: see `is_near`.
Security = Literal["tls", "starttls", "none"]

# What the picker offers at Anthropic, where JARVIS_MODELS says nothing.
OFFICIAL_MODELS = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")


def default_data_dir() -> Path:
    """The folder for the database when JARVIS_DATA_DIR is unset: the user's data directory on this system."""
    return platformdirs.user_data_path("jarvis", appauthor=False)


class Settings(BaseSettings):
    """All settings, one field a variable. `.env.example` documents each."""

    model_config = SettingsConfigDict(env_file_encoding="utf-8-sig", env_ignore_empty=True, extra="ignore", frozen=True)

    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str = "https://api.anthropic.com"
    jarvis_model: str = "claude-sonnet-5-5"
    jarvis_models: str | None = None
    jarvis_summary_model: str = "claude-haiku-5-5"
    jarvis_context_tokens: int | None = Field(default=None, ge=4_000, le=10_000_000)
    database_url: SecretStr | None = None
    ollama_url: str | None = None
    embedding_model: str | None = None
    jarvis_language: Literal["de", "en"] = "de"
    jarvis_data_dir: Path = Field(default_factory=default_data_dir)
    jarvis_facts_budget: int = Field(default=20_000, ge=500, le=200_000)
    jarvis_time_zone: str | None = None
    jarvis_demo: bool = False
    # The largest document, as much as an import takes back from an export; what reading one may need (memory in MB).
    jarvis_document_megabytes: int = Field(default=50, ge=1, le=60)
    jarvis_document_pages: int = Field(default=3_000, ge=1, le=20_000)
    jarvis_document_seconds: int = Field(default=120, ge=1, le=3_600)
    jarvis_document_memory: int = Field(default=400, ge=100, le=8_000)
    caldav_url: str | None = None
    caldav_username: str | None = None
    caldav_password: SecretStr | None = None
    imap_host: str | None = None
    imap_port: int = Field(default=993, ge=1, le=65_535)
    imap_security: Security = "tls"
    imap_username: str | None = None
    imap_password: SecretStr | None = None
    smtp_host: str | None = None
    smtp_port: int = Field(default=465, ge=1, le=65_535)
    smtp_security: Security = "tls"
    smtp_username: str | None = None
    smtp_password: SecretStr | None = None
    mail_from: str | None = None

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

    @field_validator("caldav_url")
    @classmethod
    def _is_a_calendar_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value.strip())
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable or any(character.isspace() for character in value.strip()):
            raise ValueError("is not an address that begins with https:// or http://")
        if "@" in parts.netloc:  # it would be shown with the address
            raise ValueError("holds a user name; that belongs in CALDAV_USERNAME and CALDAV_PASSWORD")
        return value.strip()

    @field_validator("imap_host", "smtp_host")
    @classmethod
    def _is_a_host(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        host = value.strip()
        if not _is_an_ip_address(host) and not re.fullmatch(r"\w([\w.-]{0,250}\w)?", host):
            port = str(info.field_name).upper().replace("HOST", "PORT")
            raise ValueError(f"is not the bare name of a server: without imaps:// and the like, the port in {port}")
        return host

    @field_validator("mail_from")
    @classmethod
    def _is_a_sender(cls, value: str | None) -> str | None:
        if value is None:
            return None
        header = mail_policy.header_factory("From", value.strip()) if value.strip().isprintable() else None
        addresses: Sequence[Address] = header.addresses if header is not None and not header.defects else ()
        if len(addresses) != 1 or not addresses[0].username or "." not in addresses[0].domain:
            raise ValueError("is not one mail address of ordinary letters, with or without a name in front of it")
        return value.strip()

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

    @field_validator("jarvis_models")
    @classmethod
    def _is_a_list_of_names(cls, value: str | None) -> str | None:
        if value is None:
            return None
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names or any(character.isspace() for name in names for character in name):
            raise ValueError("is not a list of names of models with commas between them")
        return ",".join(names)

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
    def calendar_is_configured(self) -> bool:
        """True when there is a calendar for the tools."""
        return self.caldav_url is not None

    @property
    def mail_is_configured(self) -> bool:
        """True when there is a mailbox to read; sending needs `sending_is_configured`, too."""
        return self.imap_host is not None

    @property
    def sending_is_configured(self) -> bool:
        """True when mail can be sent."""
        return self.mail_is_configured and self.smtp_host is not None

    @property
    def models(self) -> tuple[str, ...]:
        """The models to choose from, each once; JARVIS_MODEL first."""
        others: tuple[str, ...] = OFFICIAL_MODELS if self.claude_is_official else ()
        if self.jarvis_models is not None:
            others = tuple(self.jarvis_models.split(","))
        return tuple(dict.fromkeys((self.jarvis_model, *others)))

    @property
    def database_place(self) -> str | None:
        """Where the database of DATABASE_URL is, without the password: "host:port/name"; None for the embedded one."""
        if self.database_url is None:
            return None
        url = make_url(self.database_url.get_secret_value())
        host = url.host or url.query.get("host") or "localhost"
        return f"{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"

    @property
    def claude_reads_documents(self) -> bool:
        """True when PDFs can be sent as they are; the demonstration plays Anthropic's own service."""
        return self.claude_is_official or self.jarvis_demo

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
        settings = Settings(_env_file=env_file)
    except UnicodeDecodeError:
        reason = "is not a text in UTF-8; save it again in that encoding"
        raise SettingsError(f"Bad settings. .env: {reason}", problems=[(".env", reason, "")]) from None
    except ValidationError as error:
        # `from None`: pydantic's error prints the bad value, which may be a password.
        raise _settings_error(
            (str(problem["loc"][0]).upper(), str(problem["msg"]).removeprefix("Value error, "))
            for problem in error.errors()
        ) from None
    if problems := [*_missing(settings), *_in_the_clear(settings)]:
        raise _settings_error(problems)
    return settings


def _settings_error(problems: Iterable[tuple[str, str]]) -> SettingsError:
    told = [(variable, reason, EXAMPLES.get(variable, "")) for variable, reason in problems]
    lines = "; ".join(f"{name}: {reason} (example: {example})" for name, reason, example in told)
    return SettingsError(f"Bad settings. {lines}", problems=told)


def _missing(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each variable that is not set and that a set one needs, once."""
    named = set()
    for variable, needed in NEEDS.items():
        if getattr(settings, variable.lower()) is None:
            continue
        for other in needed:
            if getattr(settings, other.lower()) is None and other not in named:
                named.add(other)
                yield other, f"is missing, and {variable} needs it"


def _in_the_clear(settings: Settings) -> Iterator[tuple[str, str]]:
    """What would send a password through the internet without encryption."""
    why = "only for a server on this machine or at home (localhost, a private address, a name without a dot)"
    if settings.caldav_url is not None:
        parts = urlsplit(settings.caldav_url)
        if parts.scheme == "http" and not is_near(parts.hostname or ""):
            yield "CALDAV_URL", f"begins with http://, which is not encrypted: {why}"
    for kind in ("imap", "smtp"):
        host, security = getattr(settings, f"{kind}_host"), getattr(settings, f"{kind}_security")
        if host is not None and security == "none" and not is_near(host):
            yield f"{kind.upper()}_SECURITY", f"is none, which is not encrypted: {why}"


def is_near(host: str) -> bool:
    """Whether the server is on this machine or in a network of one's own; nobody is asked for its address."""
    return ip_address(host).is_private if _is_an_ip_address(host) else "." not in host.rstrip(".")


def _is_an_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def print_settings_error(error: SettingsError) -> None:
    """Tell the terminal what is wrong, one line a variable."""
    for name, reason, example in error.details["problems"]:
        print(f"{name}: {reason}." + (f" Example: {name}={example}" if example else ""), file=sys.stderr)

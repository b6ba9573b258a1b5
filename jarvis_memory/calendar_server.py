"""The way to a CalDAV server: TLS, login, discovery, and what it stores, as text. What that means: appointments.py.

Nothing of an answer, an address or a password gets into an error or the log.
"""

import hashlib
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit
from xml.sax.saxutils import escape

from caldav.davclient import DAVClient
from caldav.elements import dav
from caldav.lib.error import AuthorizationError, DAVError
from caldav.response import DAVResponse

from jarvis_memory.calendar_session import CalendarSession
from jarvis_memory.errors import (
    AppointmentChanged,
    CalendarReadOnly,
    ServiceAnswerUnusable,
    ServiceFolderMissing,
    ServiceLoginRejected,
    ServiceNotSecure,
    ServiceUnreachable,
)
from jarvis_memory.settings import Settings, is_near
from jarvis_memory.text import clean, one_line, shorten

# What the library says about odd answers holds their text.
logging.getLogger("caldav").setLevel(logging.CRITICAL)

# Seconds for one wait on the network.
TIMEOUT = 5.0

_HOME = "{urn:ietf:params:xml:ns:caldav}calendar-home-set"
_COMPONENTS = "{urn:ietf:params:xml:ns:caldav}supported-calendar-component-set"
_IS_CALENDAR = "{urn:ietf:params:xml:ns:caldav}calendar"
_PRINCIPAL = "{DAV:}current-user-principal"
_MAY_WRITE = {f"{{DAV:}}{right}" for right in ("all", "write", "write-content", "bind")}
# The library's own list lacks the rights.
_CALENDAR_PROPERTIES = """<?xml version="1.0" encoding="utf-8"?>
<propfind xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><prop><resourcetype/><displayname/>
<C:supported-calendar-component-set/><current-user-privilege-set/></prop></propfind>"""

# Without it the library asks for the text alone, not for its version.
_ONE_OBJECT = """<?xml version="1.0" encoding="utf-8"?>
<C:calendar-multiget xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><prop><getetag/><C:calendar-data/></prop>
<href>{path}</href></C:calendar-multiget>"""


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """A calendar of the person. `url` ends with a slash."""

    name: str
    url: str
    # False where the server says so: birthdays, subscribed and shared calendars.
    writable: bool

    def holds(self, path: str) -> bool:
        """Whether this is the path of an object right in it."""
        folder = urlsplit(self.url).path
        name = path.removeprefix(folder)
        return path.startswith(folder) and name not in ("", ".", "..") and "/" not in name and "?" not in name


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """One object of a calendar as the server keeps it: an event, with all of its repetitions."""

    calendar: Calendar
    path: str
    # Empty where the server gives none.
    etag: str
    data: str

    @property
    def version(self) -> str:
        """What differs once anybody has changed the object."""
        return self.etag or hashlib.sha256(self.data.encode()).hexdigest()


class CalendarServer:
    """A logged-in connection. Every method raises a ServiceError."""

    def __init__(self, client: DAVClient, home: str) -> None:
        self._client = client
        self._home = home
        self._calendars: list[Calendar] = []

    def calendars(self) -> list[Calendar]:
        """The calendars that hold events, in the server's order. Raises ServiceFolderMissing without any."""
        if self._calendars:
            return self._calendars
        found = []
        for href, properties in _properties(self._client, self._home, _CALENDAR_PROPERTIES, depth=1):
            kinds, components = properties.get("{DAV:}resourcetype"), properties.get(_COMPONENTS)
            if isinstance(kinds, list) and _IS_CALENDAR in kinds and (not components or "VEVENT" in components):
                url = urljoin(self._home, _quoted(href)).rstrip("/") + "/"
                name = properties.get("{DAV:}displayname")
                name = shorten(one_line(clean(name)), 100) if isinstance(name, str) else ""
                rights = properties.get("{DAV:}current-user-privilege-set")
                writable = not isinstance(rights, list) or bool(_MAY_WRITE & set(rights))
                found.append(Calendar(name=name or url.split("/")[-2], url=url, writable=writable))
        if not found:
            raise ServiceFolderMissing(service="caldav")
        self._calendars = found
        return found

    def search(self, calendar: Calendar, start: datetime, end: datetime) -> list[StoredObject]:
        """The objects with anything between these moments."""
        query, _ = DAVClient._build_calendar_query_body(start=start, end=end, event=True, props=[dav.GetEtag()])
        return self._report(calendar, query)

    def load(self, calendar: Calendar, path: str) -> StoredObject | None:
        """The object at this path, None where it is gone."""
        query = _ONE_OBJECT.format(path=escape(path)).encode()
        found = [one for one in self._report(calendar, query) if one.path == path]
        return found[0] if found else None

    def _report(self, calendar: Calendar, query: bytes) -> list[StoredObject]:
        with _errors():
            results = _checked(self._client.report(calendar.url, query.decode(), depth=1)).parse_calendar_query()
        return [
            StoredObject(calendar=calendar, path=_quoted(one.href), etag=one.etag or "", data=one.calendar_data)
            for one in results
            if one.calendar_data
        ]

    def create(self, calendar: Calendar, name: str, data: str) -> StoredObject:
        """Store a new object under this file name."""
        path = urlsplit(calendar.url).path + quote(name)
        self._write("PUT", calendar, path, data, {"If-None-Match": "*"})
        return StoredObject(calendar=calendar, path=path, etag="", data=data)

    def replace(self, stored: StoredObject, data: str) -> None:
        """Store another text for the object. Raises AppointmentChanged when it is no longer this version."""
        self._write("PUT", stored.calendar, stored.path, data, {"If-Match": stored.etag})

    def delete(self, stored: StoredObject) -> None:
        """Delete the object. Raises AppointmentChanged when it is no longer this version."""
        self._write("DELETE", stored.calendar, stored.path, "", {"If-Match": stored.etag})

    def _write(self, method: str, calendar: Calendar, path: str, data: str, condition: dict[str, str]) -> None:
        # A weak tag never matches, and some servers give none: then there is nothing to compare with.
        headers = {name: tag for name, tag in condition.items() if tag and not tag.startswith("W/")}
        if data:
            headers["Content-Type"] = 'text/calendar; charset="utf-8"'
        with _errors():
            try:
                status = self._client.request(urljoin(calendar.url, path), method, data, headers).status
            except AuthorizationError as error:
                if error.status == 403:
                    raise CalendarReadOnly from None
                raise
        if status in (404, 409, 410, 412):
            raise AppointmentChanged
        if status not in (200, 201, 204):
            raise ServiceAnswerUnusable(service="caldav", status=status)


@contextmanager
def connect(settings: Settings, *, timeout: float = TIMEOUT) -> Iterator[CalendarServer]:
    """The server that the settings name, for the length of the block. Raises a ServiceError."""
    url = (settings.caldav_url or "").strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ServiceUnreachable(service="caldav")
    if parts.scheme == "http" and not is_near(parts.hostname or ""):
        raise ServiceNotSecure(service="caldav")
    password = settings.caldav_password
    # The certificates of the system, or those that SSL_CERT_FILE names; the library brings a list of its own.
    store = ssl.get_default_verify_paths().cafile
    client = DAVClient(
        # With a slash: the library takes an address without a path for a domain and looks it up in the DNS.
        url=url if parts.path else f"{url}/",
        username=settings.caldav_username,
        password=password.get_secret_value() if password else None,
        timeout=timeout,  # type: ignore[arg-type]
        ssl_verify_cert=store if store and Path(store).exists() else True,
        enable_rfc6764=False,
        rate_limit_handle=False,
    )
    client.session.close()
    client.session = CalendarSession(url, timeout)
    try:
        yield CalendarServer(client, _find_home(client))
    finally:
        client.close()


def _find_home(client: DAVClient) -> str:
    """The address below which the person's calendars are."""
    start = str(client.url)
    try:
        principal = _property(client, start, _PRINCIPAL)
    except ServiceAnswerUnusable:
        if urlsplit(start).path.strip("/"):
            raise
        # The bare address of a server: it says where its calendars are.
        start = urljoin(start, "/.well-known/caldav")
        principal = _property(client, start, _PRINCIPAL)
    if principal is None:
        raise ServiceAnswerUnusable(service="caldav")
    home = _property(client, principal, _HOME)
    return home or principal


def _property(client: DAVClient, url: str, name: str) -> str | None:
    """An address that the server tells as a property of this place."""
    for _, properties in _properties(client, url, [name], depth=0):
        value = properties.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(value, str) and value:
            return urljoin(url, quote(value, safe="/:@%+~!$&'()*,;=-._"))
    return None


def _properties(client: DAVClient, url: str, names: list[str] | str, *, depth: int) -> list[tuple[str, dict[str, Any]]]:
    with _errors():
        results = _checked(client.propfind(url, props=names, depth=depth)).parse_propfind()
    return [(one.href, one.properties) for one in results]


def _checked(response: DAVResponse) -> DAVResponse:
    if response.status != 207 or response.tree is None:
        raise ServiceAnswerUnusable(service="caldav", status=response.status)
    return response


def _quoted(href: str) -> str:
    """The path of an address in an answer, which comes without its escapes."""
    return quote(href, safe="/@:+~!$&'()*,;=-._")


@contextmanager
def _errors() -> Iterator[None]:
    """What the libraries raise, as the error that says what to check; `from None`: theirs show addresses and texts."""
    try:
        yield
    except AuthorizationError as error:
        kind = ServiceLoginRejected if error.status == 401 else ServiceAnswerUnusable
        raise kind(service="caldav", status=error.status or 0) from None
    except (DAVError, NotImplementedError, SyntaxError, ValueError, TypeError, KeyError, AttributeError):
        # The library stumbles in many ways over an answer that is none of the protocol.
        raise ServiceAnswerUnusable(service="caldav") from None

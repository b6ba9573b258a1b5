"""HTTP to the calendar server: where the password may go, how long to wait, how much to read.

The library's errors show addresses, so ours come without them.
"""

import time
from typing import Any
from urllib.parse import urlsplit
from xml.parsers import expat

import niquests
from niquests.exceptions import RequestException, SSLError

from jarvis_memory.errors import ServiceAnswerUnusable, ServiceNotSecure, ServiceUnreachable

# For all requests of one tool call, in waits.
WAITS = 3
ANSWER_BYTES = 50_000_000


class CalendarSession(niquests.Session):
    """Sends the password to the server of the settings only, waits a limited time, reads no endless answer."""

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(disable_http3=True)
        self._home = urlsplit(url)
        self._timeout = timeout
        self._until = time.monotonic() + WAITS * timeout

    def send(self, request: niquests.PreparedRequest, **options: Any) -> niquests.Response:
        """The answer, read to its end. Raises ServiceUnreachable, ServiceNotSecure, ServiceAnswerUnusable."""
        if not self._may_know(request.url or ""):
            raise ServiceNotSecure(service="caldav")
        options["timeout"] = min(self._timeout, self._left())
        options["stream"] = True
        content = b""
        try:
            response = super().send(request, **options)
            for chunk in response.iter_content(65_536):
                content += chunk
                self._left()
                if len(content) > ANSWER_BYTES:
                    raise ServiceAnswerUnusable(service="caldav")
        except SSLError:
            raise ServiceNotSecure(service="caldav") from None
        except RequestException as error:
            # The library has no class of its own for a certificate that is found bad while connecting.
            is_insecure = "certificate" in str(error).lower() or "ssl" in str(error).lower()
            raise (ServiceNotSecure if is_insecure else ServiceUnreachable)(service="caldav") from None
        # Only a multi-status says anything that is used. What is no XML the library would write into the log.
        response._content = content if response.status_code == 207 else b""
        if response._content:
            _check_xml(content)
        return response

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise ServiceUnreachable(service="caldav")
        return left

    def _may_know(self, url: str) -> bool:
        """Whether this address may get the password: the server of the settings, or one of the same domain over TLS.

        Large services send every person to a server of their own, as caldav.icloud.com to p42-caldav.icloud.com.
        """
        asked, home = urlsplit(url), self._home
        if (asked.scheme, asked.hostname, asked.port) == (home.scheme, home.hostname, home.port):
            return True
        domain = (home.hostname or "").partition(".")[2]
        is_of_the_domain = "." in domain and not domain[-1].isdigit() and f".{asked.hostname}".endswith(f".{domain}")
        return asked.scheme == "https" and (asked.hostname == home.hostname or is_of_the_domain)


def _check_xml(content: bytes) -> None:
    try:
        expat.ParserCreate().Parse(content, True)
    except expat.ExpatError:
        raise ServiceAnswerUnusable(service="caldav") from None

"""What the ways to both mail servers share: encryption, time limits, and what went wrong as an error for the person.

What is said on a connection is the matter of mailbox.py (IMAP) and sending.py (SMTP).
"""

import contextlib
import imaplib
import ipaddress
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Literal

from imap_tools.errors import ImapToolsError, MailboxFolderSelectError, MailboxStarttlsError

from jarvis_memory.errors import (
    ServiceAnswerUnusable,
    ServiceFolderMissing,
    ServiceNotSecure,
    ServiceUnreachable,
)

# Of silence: a server that is down costs a turn no more.
SILENCE_SECONDS = 8.0
# Of everything that is done on one connection: a server that sends a byte now and then is never silent.
TOTAL_SECONDS = 40.0


@contextlib.contextmanager
def service_errors(service: Literal["imap", "smtp"]) -> Iterator[None]:
    """Turns what the libraries raise into a ServiceError, without what the server said: it may repeat anything."""
    try:
        yield
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, smtplib.SMTPServerDisconnected) as error:
        raise ServiceUnreachable(service=service) from error
    except (ssl.SSLError, MailboxStarttlsError) as error:
        raise ServiceNotSecure(service=service) from error
    except MailboxFolderSelectError as error:
        raise ServiceFolderMissing(service=service) from error
    except imaplib.IMAP4.abort as error:
        broke_off = "EOF" in str(error) or "socket error" in str(error)
        raise (ServiceUnreachable if broke_off else ServiceAnswerUnusable)(service=service) from error
    except UnicodeError as error:  # bytes of no encoding, or else a name that no machine can have
        is_content = isinstance(error, UnicodeDecodeError | UnicodeEncodeError)
        raise (ServiceAnswerUnusable if is_content else ServiceUnreachable)(service=service) from error
    except (imaplib.IMAP4.error, smtplib.SMTPException, ImapToolsError, ValueError) as error:
        raise ServiceAnswerUnusable(service=service) from error
    except OSError as error:  # also TimeoutError and a name that is unknown
        raise ServiceUnreachable(service=service) from error


def tls_context() -> ssl.SSLContext:
    """Verifies the certificate and its name with the system's authorities (or those of SSL_CERT_FILE)."""
    return ssl.create_default_context()


def check_on_this_machine(connection: socket.socket, service: str) -> None:
    """A password goes unencrypted to this very machine only. Raises ServiceNotSecure."""
    if not ipaddress.ip_address(connection.getpeername()[0].split("%")[0]).is_loopback:
        raise ServiceNotSecure(service=service)


class TimeLimit:
    """Shuts a connection down, from another thread, when all of it takes longer than `seconds`."""

    def __init__(self, seconds: float, current_socket: Callable[[], socket.socket | None]) -> None:
        self._socket = current_socket
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """The connection has ended by itself."""
        self._timer.cancel()

    def _cut(self) -> None:
        connection = self._socket()
        if connection is not None:
            with contextlib.suppress(OSError):
                # Of the base class: that of an encrypted socket would go on unencrypted.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

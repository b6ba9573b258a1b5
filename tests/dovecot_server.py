"""A real IMAP server on loopback: Debian's dovecot with a configuration of its own, as an account without rights.

Every user name exists and has an empty mailbox, so each test takes one of its own.
"""

import grp
import imaplib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.certificates import write_certificates

PROGRAM = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
PASSWORD = 'Schlüssel "4" \\ all'

_CONFIGURATION = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_verbose = no
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
mail_location = maildir:{folder}/mail/%u
mail_fsync = never
# One process for many connections: starting one takes longer than a test.
service imap-login {{
  chroot =
  service_count = 0
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service imap {{
  service_count = 100
}}
service anvil {{
  chroot =
  # No waiting because of the tests with wrong passwords.
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=any {folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/mail/%u allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    special_use = \\Sent
  }}
  mailbox Entwürfe {{
    special_use = \\Drafts
  }}
}}
"""


class Dovecot:
    """The running server, and a plain way into its mailboxes."""

    host = "localhost"

    def __init__(self, folder: Path, port: int, tls_port: int) -> None:
        self.folder = folder
        self.port = port
        self.tls_port = tls_port

    @property
    def authority(self) -> Path:
        """For SSL_CERT_FILE."""
        return self.folder / "ca.pem"

    def settings(self, user: str) -> dict[str, Any]:
        """For this mailbox, encrypted."""
        return {
            "imap_host": self.host,
            "imap_port": self.tls_port,
            "imap_username": user,
            "imap_password": PASSWORD,
        }

    @contextmanager
    def client(self, user: str) -> Iterator[imaplib.IMAP4]:
        """A client of the standard library, logged in, with nothing selected."""
        with imaplib.IMAP4("127.0.0.1", self.port, timeout=20) as client:
            secret = f"\0{user}\0{PASSWORD}".encode()
            client.authenticate("PLAIN", lambda _: secret)
            yield client

    def deliver(self, user: str, *mails: bytes, folder: str = "INBOX", flags: str = "") -> None:
        """Put these into a folder, which is made when it is not there."""
        with self.client(user) as client:
            client.create(folder)
            for mail in mails:
                status, said = client.append(folder, flags, "", mail)
                assert status == "OK", said

    def mails(self, user: str, folder: str = "INBOX") -> list[tuple[str, bytes]]:
        """What lies in a folder: the flags and the bytes of each; nothing for one that does not exist."""
        with self.client(user) as client:
            if client.select(folder, readonly=True)[0] != "OK":
                return []
            _, data = client.fetch("1:*", "(FLAGS BODY.PEEK[])")
            return [(item[0].decode(), item[1]) for item in data if isinstance(item, tuple)]


@contextmanager
def running_dovecot() -> Iterator[Dovecot]:
    """A server that ends with the block."""
    assert PROGRAM is not None
    root = os.geteuid() == 0
    user = "nobody" if root else pwd.getpwuid(os.geteuid()).pw_name
    group = "nogroup" if root else grp.getgrgid(os.getegid()).gr_name
    folder = Path(tempfile.mkdtemp(prefix="jarvis-imap-"))
    port, tls_port = _free_ports()
    write_certificates(folder)
    (folder / "users").write_text(f"any:{{PLAIN}}{PASSWORD}\n", encoding="utf-8")
    values = {"folder": folder, "user": user, "group": group, "port": port, "tls_port": tls_port}
    (folder / "dovecot.conf").write_text(_CONFIGURATION.format(**values), encoding="utf-8")
    if root:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, user, group)
    process = subprocess.Popen(
        [PROGRAM, "-F", "-c", str(folder / "dovecot.conf")],
        **({"user": user, "group": group, "extra_groups": []} if root else {}),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "errors").open("wb"),
    )
    try:
        _wait_for(port, process, folder)
        yield Dovecot(folder, port, tls_port)
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def _wait_for(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(300):
        try:
            with imaplib.IMAP4("127.0.0.1", port, timeout=20):
                return
        except (OSError, imaplib.IMAP4.error):
            assert process.poll() is None, [path.read_text() for path in folder.glob("[el][ro]*") if path.is_file()]
            time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())

"""What every test shares: a clean environment, and the servers of others."""

import os
from collections.abc import Iterator

import pytest

from jarvis_memory.settings import EXAMPLES
from tests import dovecot_server
from tests.dovecot_server import Dovecot, running_dovecot
from tests.smtp_server import SmtpServer, running_smtp_server

# Read before the environment is cleaned; see tests/integration/conftest.py.
TEST_DATABASE_URL = os.environ.get("TEST_DATABASE_URL")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No stray variable and no `.env` of the developer reaches a test."""
    for name in EXAMPLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Dovecot]:
    """A real IMAP server; each test takes a mailbox of its own in it."""
    if dovecot_server.PROGRAM is None:
        reason = "There is no dovecot (Debian: dovecot-imapd)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running_dovecot() as running:
        yield running


@pytest.fixture(scope="session")
def one_smtp_server() -> Iterator[SmtpServer]:
    with running_smtp_server() as running:
        yield running


@pytest.fixture
def smtp_server(one_smtp_server: SmtpServer) -> SmtpServer:
    """An SMTP server that has got no mail yet."""
    one_smtp_server.forget()
    return one_smtp_server

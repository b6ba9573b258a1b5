"""What every test shares: a clean environment."""

import os

import pytest

from jarvis_memory.settings import EXAMPLES

# Read before the environment is cleaned; see tests/integration/conftest.py.
TEST_DATABASE_URL = os.environ.get("TEST_DATABASE_URL")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No stray variable and no `.env` of the developer reaches a test."""
    for name in EXAMPLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))

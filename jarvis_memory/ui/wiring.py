"""The parts of this process for its pages: built at the start, closed at the end.

A module-level state and not st.cache_resource, because every websocket client may ask Streamlit to clear its caches,
which would build a second background and a second connection pool.
"""

import logging
import threading

from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.running_turns import TURNS
from jarvis_memory.settings import load_settings

log = logging.getLogger(__name__)

_lock = threading.Lock()
_parts: Parts | None = None


def get_parts() -> Parts:
    """The parts, built by the first caller. After a failure the next call tries again.

    Raises SettingsError, DatabaseUnavailable.
    """
    global _parts
    with _lock:
        if _parts is None:
            _parts = build_parts(load_settings())
        return _parts


def hand_in(parts: Parts | None) -> None:
    """Use these parts; for tests of pages."""
    global _parts
    with _lock:
        _parts = parts


def shut_down() -> None:
    """Stop turns (what came is saved), drain the background, close the database."""
    global _parts
    TURNS.shutdown()
    with _lock:
        if _parts is not None:
            _parts.close()
            _parts = None

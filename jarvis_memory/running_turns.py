"""The register of running turns, with their pool: the one state that belongs to the process and not to a page.

A page can be reloaded or closed at any moment, so it only looks here; the worker thread writes.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from jarvis_memory.answers import Usage
from jarvis_memory.errors import TurnRunning

log = logging.getLogger(__name__)

WORKERS = 16
STOP_SECONDS = 3.0


@dataclass(kw_only=True)
class RunningTurn:
    """A turn at work. One thread writes it, any number of pages read `snapshot()`."""

    user_id: int
    conversation_id: int
    user_message_id: int
    answer_message_id: int
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    thinking: bool = False
    content: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    # The model that answers, and what its requests took so far; a page does not look at these.
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    # Of a turn that goes on after the person's decisions: what it took before.
    usage_before: Usage = field(default_factory=Usage)
    # What Claude and the tools said in this turn before it was paused; `paused`: what is kept of one that is now.
    rounds: list[dict[str, Any]] = field(default_factory=list)
    paused: dict[str, Any] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def snapshot(self) -> tuple[str, list[dict[str, Any]], bool]:
        """What there is so far: text, blocks, and whether the model is thinking."""
        with self._lock:
            return self.content, [dict(block) for block in self.blocks], self.thinking

    def write(
        self,
        *,
        content: str | None = None,
        block: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
        thinking: bool = False,
    ) -> None:
        """Replace the text, append a block, or add `result` to the block with its id."""
        with self._lock:
            self.thinking = thinking
            if content is not None:
                self.content = content
            if block is not None:
                self.blocks.append(block)
            if result is not None:
                for shown in self.blocks:
                    if shown.get("id") == result["id"]:
                        shown.update(result)


class RunningTurns:
    """The register: at most one turn a conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[int, RunningTurn] = {}
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="turn")

    def get(self, conversation_id: int) -> RunningTurn | None:
        """The running turn of a conversation."""
        with self._lock:
            return self._turns.get(conversation_id)

    def running(self) -> set[int]:
        """The conversations with a running turn."""
        with self._lock:
            return set(self._turns)

    def start(self, turn: RunningTurn, work: Callable[[RunningTurn], None]) -> None:
        """Register the turn and run `work` for it in the pool; unregistered when that ends, however it ends.

        Raises TurnRunning when the conversation has a running turn.
        """
        with self._lock:
            if turn.conversation_id in self._turns:
                raise TurnRunning
            self._turns[turn.conversation_id] = turn

        def run() -> None:
            try:
                work(turn)
            except Exception:  # noqa: BLE001 - nobody reads the future; the log must have it
                log.exception("The turn in conversation %s ended with an error", turn.conversation_id)
            finally:
                with self._lock:
                    self._turns.pop(turn.conversation_id, None)
                turn.done.set()

        try:
            self._pool.submit(run)
        except RuntimeError:
            with self._lock:
                self._turns.pop(turn.conversation_id, None)
            raise

    def stop(self, *, user_id: int, conversation_id: int | None = None, seconds: float = STOP_SECONDS) -> None:
        """Stop this person's turns, or that of one conversation, and wait up to `seconds` until what came is saved."""
        with self._lock:
            turns = [turn for turn in self._turns.values() if turn.user_id == user_id]
        if conversation_id is not None:
            turns = [turn for turn in turns if turn.conversation_id == conversation_id]
        _stop(turns, seconds)

    def shutdown(self, seconds: float = STOP_SECONDS) -> None:
        """Stop every turn and wait for what came to be saved; then take the next generation of turns in a new pool."""
        with self._lock:
            turns = list(self._turns.values())
            pool, self._pool = self._pool, ThreadPoolExecutor(WORKERS, thread_name_prefix="turn")
        # Turns that still wait for a worker are not cancelled: they run, find that they are stopped, and say so.
        pool.shutdown(wait=False)
        _stop(turns, seconds)


def _stop(turns: list[RunningTurn], seconds: float) -> None:
    for turn in turns:
        turn.stop.set()
    deadline = time.monotonic() + seconds
    for turn in turns:
        turn.done.wait(max(0.0, deadline - time.monotonic()))


TURNS = RunningTurns()

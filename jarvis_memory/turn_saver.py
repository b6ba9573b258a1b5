"""Saves a growing answer while it comes, and as it ended."""

import logging
import threading
import time

from jarvis_memory.assembly import Parts
from jarvis_memory.conversations import Status, update_message
from jarvis_memory.errors import DatabaseUnavailable
from jarvis_memory.pending_actions import insert_pending_actions
from jarvis_memory.recall_index import index_words, lock_conversations_of
from jarvis_memory.running_turns import RunningTurn
from jarvis_memory.usage import record_usage, usage_of_answer

log = logging.getLogger(__name__)

SAVE_SECONDS = 2.0
# How long a finished answer waits for a database that went away.
SAVE_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class TurnSaver:
    """Writes the growing answer to the database every two seconds, from a thread of its own."""

    def __init__(self, parts: Parts, user_id: int, turn: RunningTurn) -> None:
        self._parts = parts
        self._user_id = user_id
        self._turn = turn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_saving, name="turn-saver", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _keep_saving(self) -> None:
        while not self._ended.wait(SAVE_SECONDS):
            self._save("interrupted", ())

    def finish(self, status: Status) -> None:
        """Save the answer as it ended, from then on searchable; again after a while when the database is away."""
        self._save(status, SAVE_WAITS)

    def _save(self, status: Status, waits: tuple[float, ...]) -> None:
        content, blocks, _ = self._turn.snapshot()
        for wait in (*waits, None):
            try:
                with self._parts.database.begin() as connection:
                    if waits:
                        lock_conversations_of(connection, [self._turn.answer_message_id])
                    is_there = update_message(
                        connection,
                        user_id=self._user_id,
                        message_id=self._turn.answer_message_id,
                        content=content.strip(),
                        blocks=blocks,
                        status=status,
                        rounds=self._turn.paused if status == "waiting" else None,
                        tokens_used=(self._turn.usage_before + self._turn.usage).total,
                        usage=usage_of_answer(self._turn.model, self._turn.usage_before + self._turn.usage),
                    )
                    if waits and is_there and status == "waiting":
                        insert_pending_actions(
                            connection,
                            user_id=self._user_id,
                            conversation_id=self._turn.conversation_id,
                            message_id=self._turn.answer_message_id,
                            calls=[block for block in blocks if "action" in block and "result" not in block],
                        )
                    if waits:
                        index_words(connection, user_id=self._user_id, message_ids=[self._turn.answer_message_id])
                        record_usage(
                            connection,
                            user_id=self._user_id,
                            conversation_id=self._turn.conversation_id,
                            purpose="chat",
                            model=self._turn.model,
                            usage=self._turn.usage,
                        )
                return
            except DatabaseUnavailable as error:
                log.warning("Saving the answer of conversation %s: %s", self._turn.conversation_id, error)
                if wait is not None:
                    time.sleep(wait)

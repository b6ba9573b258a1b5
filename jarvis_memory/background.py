"""The thread pool behind the chat: it summarises, embeds and reads documents, retries, catches up after a restart.

It never touches a chat: what fails here is logged, recorded and tried again.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from jarvis_memory.claude import Claude
from jarvis_memory.database import Database, Lock
from jarvis_memory.deletions import purge_old_deletions
from jarvis_memory.document_index import read_next_document
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.errors import DatabaseUnavailable, EmbeddingUnavailable, JarvisError
from jarvis_memory.forgetting import purge_old_forgettings
from jarvis_memory.indexing import index_some
from jarvis_memory.settings import Settings
from jarvis_memory.summaries import pending_conversations, update_conversation_summary
from jarvis_memory.temporary_chats import delete_unseen_temporary_chats

log = logging.getLogger(__name__)

# One can be embedding and one reading documents, for minutes; the third is there for the summaries.
WORKERS = 3
SCAN_SECONDS = 10.0
DRAIN_SECONDS = 5.0
AWAKE_AFTER_SECONDS = 300.0


class Background:
    """Workers and a thread that looks for what is pending. `start()` once, `stop()` once."""

    def __init__(self, *, settings: Settings, database: Database, claude: Claude, embeddings: Embeddings) -> None:
        self._settings = settings
        self._database = database
        self._claude = claude
        self._embeddings = embeddings
        # Daemon threads and no ThreadPoolExecutor: the interpreter's exit would wait for a job that hangs.
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._workers = [
            threading.Thread(target=self._work, name=f"background-{number}", daemon=True) for number in range(WORKERS)
        ]
        self._lock = threading.Lock()
        self._running = 0
        # Conversations a job is at, and those among them that changed meanwhile: the newest state wins.
        self._at_work: set[int] = set()
        self._again: set[int] = set()
        self._indexing = threading.Lock()
        self._reading = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._scanner = threading.Thread(target=self._scan, name="background-scan", daemon=True)
        # By the clock on the wall, which goes on while the machine sleeps: when the scanner looked last, since when it
        # has done so without a gap.
        self._looked_at = self._awake_since = 0.0
        # The name of the error class, while the embedding service is down.
        self.embedding_error: str | None = None

    def start(self) -> None:
        """Begin to look for pending work, of this process or of one that died."""
        for thread in (*self._workers, self._scanner):
            thread.start()

    def warm_up(self) -> None:
        """Load the embedding model now, so that the first message does not wait for it."""
        self._jobs.put(self._warm_up)

    def wake(self) -> None:
        """Something changed: look now, not at the next round."""
        self._wake.set()

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Give running jobs up to `seconds`. What does not end stays pending in the data."""
        self._stopping.set()
        self._wake.set()
        for _ in self._workers:
            self._jobs.put(lambda: None)
        deadline = time.monotonic() + seconds
        while self._running and time.monotonic() < deadline:
            time.sleep(0.05)

    def summarise(self, conversation_id: int) -> None:
        """Queue the conversation; a job already at it runs once more afterwards."""
        self._queue(conversation_id, again=True)

    def _queue(self, conversation_id: int, *, again: bool) -> None:
        with self._lock:
            if self._stopping.is_set():
                return
            if conversation_id in self._at_work:
                if again:
                    self._again.add(conversation_id)
                return
            self._at_work.add(conversation_id)
        self._jobs.put(lambda: self._summarise(conversation_id))

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            with self._lock:
                # What is not started any more stands in the data.
                if self._stopping.is_set():
                    return
                self._running += 1
            try:
                job()
            finally:
                with self._lock:
                    self._running -= 1

    def _summarise(self, conversation_id: int) -> None:
        try:
            # First, because the summary can take a minute; but a long document is not waited for.
            self._bring_index_up_to_date(once=True)
            update_conversation_summary(
                database=self._database,
                claude=self._claude,
                settings=self._settings,
                conversation_id=conversation_id,
            )
            self._bring_index_up_to_date(once=True)
        except JarvisError as error:
            log.warning("Summary of conversation %s failed: %s: %s", conversation_id, type(error).__name__, error)
        except Exception:  # noqa: BLE001 - nobody waits for this job; the log must have it
            log.exception("Summary of conversation %s failed", conversation_id)
        finally:
            with self._lock:
                self._at_work.discard(conversation_id)
                again = conversation_id in self._again
                self._again.discard(conversation_id)
            if again:
                self.summarise(conversation_id)

    def _scan(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._database.begin() as connection:
                    purge_old_forgettings(connection)
                    purge_old_deletions(connection)
                    if self._is_awake():
                        delete_unseen_temporary_chats(connection)
                if self._settings.claude_is_configured:
                    with self._database.begin() as connection:
                        due = pending_conversations(connection)
                    for conversation_id in due:
                        # Not again: what is pending because its job is still running, or fails, has to wait.
                        self._queue(conversation_id, again=False)
                self._jobs.put(self._read_documents)
                self._jobs.put(self._bring_index_up_to_date)
            except DatabaseUnavailable as error:
                log.warning("Looking for pending work: %s", error)
            except Exception:  # noqa: BLE001 - the scanner must outlive any surprise
                log.exception("Looking for pending work failed")
            self._wake.wait(SCAN_SECONDS)
            self._wake.clear()

    def _is_awake(self) -> bool:
        """False for a while after the start and after the machine slept: open pages have to come back first."""
        now = time.time()
        if now - self._looked_at > AWAKE_AFTER_SECONDS:
            self._awake_since = now
        self._looked_at = now
        return now - self._awake_since > AWAKE_AFTER_SECONDS

    def _warm_up(self) -> None:
        try:
            self._embeddings.embed_query("")
        except EmbeddingUnavailable as error:
            log.warning("Embedding: %s (%s)", error, error.details)

    def _read_documents(self) -> None:
        """Read the documents that wait, one at a time."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            while read_next_document(self._database, self._settings, stop=self._stopping.is_set):
                self._jobs.put(self._bring_index_up_to_date)
        except DatabaseUnavailable as error:
            log.warning("Reading documents: %s", error)
        except Exception:  # noqa: BLE001 - nobody waits for this job; the log must have it
            log.exception("Reading documents failed")
        finally:
            self._reading.release()

    def _bring_index_up_to_date(self, *, once: bool = False) -> None:
        """Count words that nobody counted, and give every fact, summary, exchange and passage of a document vectors of
        the current model; with `once` a step of each.
        """
        if not self._indexing.acquire(blocking=False):
            return
        try:
            # One process at a time: the others would make the same vectors.
            with self._database.try_lock(Lock.EMBEDDING, 0) as ours:
                if not ours:
                    return
                while not self._stopping.is_set() and index_some(
                    self._database, self._embeddings, stop=self._stopping.is_set
                ):
                    if once:
                        break
            self.embedding_error = None
        except EmbeddingUnavailable as error:
            self.embedding_error = type(error).__name__
            log.warning("Embedding: %s (%s)", error, error.details)
        except DatabaseUnavailable as error:
            log.warning("Indexing: %s", error)
        except Exception:  # noqa: BLE001 - nobody waits for this job; the log must have it
            log.exception("Indexing failed")
        finally:
            self._indexing.release()

"""Every error that JARVIS raises on purpose. A class's docstring is its default message.

The page shows the text that its catalogue has for the class name, filled with `details`; the message here is
for the log and for developers. An error's cause is kept with `raise … from`.
"""

import inspect
from typing import Any


class JarvisError(Exception):
    """JARVIS could not do this."""

    def __init__(self, message: str | None = None, **details: Any) -> None:
        super().__init__(message or inspect.cleandoc(self.__doc__ or ""))
        self.details = details


# --- settings ---------------------------------------------------------------------------------------------


class SettingsError(JarvisError):
    """A setting has a value that cannot be used."""


# --- database ---------------------------------------------------------------------------------------------


class DatabaseUnavailable(JarvisError):
    """The database cannot be reached."""


class DatabaseFolderTooOld(DatabaseUnavailable):
    """The database folder belongs to another major version of PostgreSQL."""


class DatabaseFolderUnusable(DatabaseUnavailable):
    """The database folder cannot be used."""


class DatabaseTooNew(DatabaseUnavailable):
    """The database was written by a newer version of JARVIS. Update JARVIS, or restore an older backup."""


class VectorExtensionMissing(DatabaseUnavailable):
    """The PostgreSQL server has no pgvector extension. Install it, or use the image pgvector/pgvector."""


# --- embeddings -------------------------------------------------------------------------------------------


class EmbeddingUnavailable(JarvisError):
    """The embedding service does not answer. Recall goes on by words alone until it is back."""


class EmbeddingTooLong(EmbeddingUnavailable):
    """The embedding model makes vectors of more than 768 numbers. Choose another EMBEDDING_MODEL."""


# --- Claude -----------------------------------------------------------------------------------------------


class ClaudeError(JarvisError):
    """Claude could not answer."""


class ClaudeNotConfigured(ClaudeError):
    """There is no key for Claude. Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a local model."""


class ClaudeKeyRejected(ClaudeError):
    """The key for Claude was rejected. Check ANTHROPIC_API_KEY."""


class ClaudeModelUnknown(ClaudeError):
    """The model is not known to the service. Check JARVIS_MODEL and JARVIS_SUMMARY_MODEL."""


class ClaudeSpendLimit(ClaudeError):
    """The account's spending limit is reached."""


class ClaudeBusy(ClaudeError):
    """Claude is overloaded or limits the number of requests. Try again in a minute."""


class ClaudeUnreachable(ClaudeError):
    """The service cannot be reached."""


class ClaudeRequestRejected(ClaudeError):
    """Claude's service did not accept the request."""


class ClaudeAnswerUnreadable(ClaudeError):
    """What came back is not an answer of the Messages API. Check ANTHROPIC_BASE_URL."""


class AnswerInterrupted(ClaudeError):
    """The answer broke off."""


class AnswerStopped(AnswerInterrupted):
    """The person stopped the answer."""


# --- the chat and the memory ------------------------------------------------------------------------------


class TurnRunning(JarvisError):
    """This chat is still answering. Wait until it is done, then send again."""


class MessageUnusable(JarvisError):
    """The message is empty or too long."""


class ConversationNotFound(JarvisError):
    """There is no such conversation."""


class FactUnusable(JarvisError):
    """A fact is 1 to 1,000 characters of text."""


class FactNotFound(JarvisError):
    """There is no such fact."""


class FactAlreadyKnown(JarvisError):
    """This fact is already known."""


class ToolError(JarvisError):
    """The tool could not do this. The message is an answer for Claude."""

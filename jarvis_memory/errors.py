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


class AttachmentUnknown(JarvisError):
    """The file is of no kind that can be attached."""


class AttachmentEmpty(JarvisError):
    """The file is empty."""


class AttachmentTooLarge(JarvisError):
    """The file is too large; `details["limit"]` is in MB."""


class AttachmentsTooLarge(JarvisError):
    """The files of the message are too large together; `details["limit"]` is in MB."""


class TooManyAttachments(JarvisError):
    """The message has too many files."""


class ImageUnreadable(JarvisError):
    """The image is damaged."""


class ImageHasTooManyPixels(JarvisError):
    """The image would take too much memory; `details["limit"]` is in megapixels."""


class PdfUnreadable(JarvisError):
    """The PDF is damaged."""


class PdfLocked(JarvisError):
    """The PDF is encrypted."""


class PdfsTooLong(JarvisError):
    """The PDFs of the message have too many pages."""


class PdfsNotUnderstood(JarvisError):
    """A server of one's own gets the text of a PDF, and this one has none."""


class TextFilesTooLong(JarvisError):
    """The text files of the message have too many characters."""


class ConversationNotFound(JarvisError):
    """There is no such conversation."""


class TitleUnusable(JarvisError):
    """A title is 1 to 80 characters of text."""


class DeletionExpired(JarvisError):
    """This deletion cannot be undone any more."""


class PreferenceUnusable(JarvisError):
    """A choice in the settings cannot be used; `details["field"]` names it."""


class FactUnusable(JarvisError):
    """A fact is 1 to 1,000 characters of text."""


class FactNotFound(JarvisError):
    """There is no such fact."""


class FactAlreadyKnown(JarvisError):
    """This fact is already known."""


# --- the documents on their page --------------------------------------------------------------------------


class DocumentNotFound(JarvisError):
    """There is no such document (any more)."""


class DocumentNameUnusable(JarvisError):
    """The name of a document is empty or too long; `details["limit"]` is in characters."""


# --- documents --------------------------------------------------------------------------------------------


class DocumentUnreadable(JarvisError):
    """The document cannot be read."""


class DocumentUnknown(DocumentUnreadable):
    """The file is of no kind that can be read as a document."""


class DocumentEmpty(DocumentUnreadable):
    """The document is empty."""


class DocumentBroken(DocumentUnreadable):
    """The document is damaged."""


class DocumentLocked(DocumentUnreadable):
    """The document is encrypted or needs a password."""


class DocumentWithoutText(DocumentUnreadable):
    """The document has pages but no text: it is a scan."""


class DocumentTooLarge(DocumentUnreadable):
    """The document's file is too large; `details["limit"]` is in MB."""


class DocumentTooManyPages(DocumentUnreadable):
    """The document has too many pages; `details["limit"]` is how many it may have."""


class DocumentTooLong(DocumentUnreadable):
    """The document has too much text; `details["limit"]` is in characters."""


class DocumentTooFine(DocumentUnreadable):
    """The document falls into too many passages; `details["limit"]` is their number."""


class DocumentTooSlow(DocumentUnreadable):
    """Reading the document takes too long; `details["limit"]` is in seconds."""


class DocumentTooHungry(DocumentUnreadable):
    """Reading the document takes too much memory; `details["limit"]` is in MB."""


class DocumentReadingStopped(JarvisError):
    """The reading was stopped from outside."""


# --- import -----------------------------------------------------------------------------------------------


class ImportUnreadable(JarvisError):
    """The file is damaged: it is no JSON, or a ZIP archive that cannot be opened."""


class ImportUnknown(JarvisError):
    """The file is no export that JARVIS knows: its own, conversations.json of ChatGPT or Claude, or a ZIP of these."""


class ImportTooNew(JarvisError):
    """The file was written by a newer version of JARVIS. Update JARVIS first."""


class ImportTooLarge(JarvisError):
    """The file, or a part of it, is larger than an import may be; `details["field"]` names the part."""


class ImportInvalid(JarvisError):
    """The file has something that cannot be used; `details["field"]` names the place."""


# --- calendar and mail ------------------------------------------------------------------------------------


class ServiceError(JarvisError):
    """A calendar or mail server could not be used; `details["service"]` is caldav, imap or smtp."""


class ServiceUnreachable(ServiceError):
    """The server does not answer at this address, or not in time."""


class ServiceNotSecure(ServiceError):
    """The server's certificate is not valid for this address, or it offers no encryption."""


class ServiceLoginRejected(ServiceError):
    """The server rejected the user name or the password."""


class ServiceFolderMissing(ServiceError):
    """The login works, but there is no such folder or calendar."""


class ServiceAnswerUnusable(ServiceError):
    """The server answered with something that is not of its protocol, or with an error of its own."""


class AppointmentChanged(JarvisError):
    """The appointment was changed or deleted meanwhile, so nothing was done. Look it up again."""


class AppointmentUnreadable(JarvisError):
    """The appointment is damaged, so it cannot be read or changed here."""


class CalendarUnknown(JarvisError):
    """There is no calendar of this name that can be written to."""


class CalendarReadOnly(JarvisError):
    """The server does not allow changes in this calendar."""


class SeriesCannotMove(JarvisError):
    """The series repeats by a rule that does not allow this change of its time. Single dates of it can be changed."""


class MailUnusable(JarvisError):
    """The mail cannot be sent as it is; `details["field"]` says where, `details["name"]` what of it."""


class MailAddressUnusable(MailUnusable):
    """This is not one address."""


class MailRecipientsUnusable(MailUnusable):
    """Nobody would get it, or too many."""


# --- tools that wait for a click --------------------------------------------------------------------------


class ActionDecided(JarvisError):
    """This action has been decided already."""


class ActionExpired(JarvisError):
    """This action waited too long for a decision."""


# --- tools ------------------------------------------------------------------------------------------------


class ToolError(JarvisError):
    """The tool could not do this. The message is an answer for Claude."""

"""The catalogue: every text of the pages, German and English side by side."""

from jarvis_memory.prompts import Language

# key → (German, English)
CATALOG: dict[str, tuple[str, str]] = {
    "app.name": ("JARVIS", "JARVIS"),
    "demo.label": (
        "Vorführung: Die Antworten sind vorgefertigt, kein Claude antwortet hier. Alles Eingegebene wird am Ende gelöscht.",
        "Demonstration: the answers are scripted, no Claude answers here. Everything you enter is deleted at the end.",
    ),
    # --- frame
    "nav.new_chat": ("Neuer Chat", "New chat"),
    "nav.chat": ("Chat", "Chat"),
    "nav.memory": ("Gedächtnis", "Memory"),
    "nav.conversations": ("Gespräche", "Conversations"),
    "nav.no_conversations": ("Noch keine Gespräche.", "No conversations yet."),
    "nav.more": ("Mehr anzeigen", "Show more"),
    "nav.untitled": ("Ohne Titel", "Untitled"),
    # --- chat
    "chat.placeholder": ("Schreib eine Nachricht …", "Write a message …"),
    "chat.placeholder_running": (
        "Die Antwort läuft noch – dann kannst du weiterschreiben.",
        "The answer is still running – then you can go on.",
    ),
    "chat.placeholder_set_up": ("Erst Claude einrichten, siehe oben.", "Set up Claude first, see above."),
    "chat.empty_heading": ("Womit kann ich helfen?", "How can I help?"),
    "chat.empty_hint": (
        "Ich erinnere mich an das, was du mir sagst – auch im nächsten Chat. Zum Beispiel:",
        "I remember what you tell me – in the next chat, too. For example:",
    ),
    "chat.example_1": ("Merk dir, dass mein Hund Bruno heißt", "Remember that my dog is called Bruno"),
    "chat.example_2": ("Worüber haben wir zuletzt gesprochen?", "What did we talk about last?"),
    "chat.example_3": ("Hilf mir, meine Woche zu planen", "Help me plan my week"),
    "chat.load_earlier": ("Frühere Nachrichten laden", "Load earlier messages"),
    "chat.thinking": ("Denkt nach …", "Thinking …"),
    "chat.working": ("Antwortet …", "Answering …"),
    "chat.stop": ("Stopp", "Stop"),
    "chat.retry": ("Noch einmal versuchen", "Try again"),
    "chat.interrupted": ("Die Antwort ist unvollständig.", "The answer is incomplete."),
    "chat.failed": ("Es kam keine Antwort zustande.", "No answer came about."),
    "chat.not_found": (
        "Dieses Gespräch gibt es nicht (mehr). Hier ist ein neuer Chat.",
        "This conversation does not exist (any more). Here is a new chat.",
    ),
    "chat.kept": (
        "Deine Nachricht ist nicht verloren; sie steht wieder im Eingabefeld.",
        "Your message is not lost; it is back in the input.",
    ),
    "chat.delete": ("Chat löschen", "Delete chat"),
    "chat.delete_question": (
        "Das Gespräch „{title}“ mit allen Nachrichten und seiner Zusammenfassung löschen? Das lässt sich nicht rückgängig "
        "machen.",
        "Delete the conversation “{title}” with all its messages and its summary? This cannot be undone.",
    ),
    "chat.delete_facts": (
        "Auch die Fakten löschen, die aus diesem Gespräch stammen ({count})",
        "Also delete the facts that came from this conversation ({count})",
    ),
    "chat.deleted": (
        "Gelöscht: {messages}, {summaries}, {facts}.",
        "Deleted: {messages}, {summaries}, {facts}.",
    ),
    "cancel": ("Abbrechen", "Cancel"),
    "close": ("Schließen", "Close"),
    # --- numbers
    "count.facts_0": ("keine Fakten", "no facts"),
    "count.facts_1": ("1 Fakt", "1 fact"),
    "count.facts_n": ("{count} Fakten", "{count} facts"),
    "count.summaries_0": ("keine Zusammenfassungen", "no summaries"),
    "count.summaries_1": ("1 Zusammenfassung", "1 summary"),
    "count.summaries_n": ("{count} Zusammenfassungen", "{count} summaries"),
    "count.conversations_0": ("keine Chats", "no chats"),
    "count.conversations_1": ("1 Chat", "1 chat"),
    "count.conversations_n": ("{count} Chats", "{count} chats"),
    "count.messages_0": ("keine Nachrichten", "no messages"),
    "count.messages_1": ("1 Nachricht", "1 message"),
    "count.messages_n": ("{count} Nachrichten", "{count} messages"),
    "count.earlier_1": ("1 früheres Gespräch", "1 earlier conversation"),
    "count.earlier_n": ("{count} frühere Gespräche", "{count} earlier conversations"),
    # --- what went into an answer
    "used.label": ("Aus dem Gedächtnis: {what}", "From the memory: {what}"),
    "used.facts": ("Fakten", "Facts"),
    "used.conversations": ("Frühere Gespräche", "Earlier conversations"),
    "used.found_by_words": ("gefunden an genau diesen Wörtern", "found by its exact words"),
    "used.found_by_meaning": ("gefunden am Sinn", "found by its meaning"),
    "used.found_by_both": ("gefunden an Wörtern und Sinn", "found by words and meaning"),
    "used.none": ("Nichts aus dem Gedächtnis.", "Nothing from the memory."),
    "used.more_facts": (
        "{count} weitere Fakten passten nicht in den Rahmen.",
        "{count} more facts did not fit into the budget.",
    ),
    "used.forgotten": ("(inzwischen vergessen)", "(forgotten since)"),
    "used.to_memory": ("Zum Gedächtnis", "Open the memory"),
    "sent.show": ("Zeigen, was gesendet wurde", "Show what is sent"),
    "sent.system": ("Anweisungen und Fakten (system)", "Instructions and facts (system)"),
    "sent.recalled": ("Frühere Gespräche, vor der Nachricht", "Earlier conversations, before the message"),
    "sent.no_recalled": ("Keine früheren Gespräche.", "No earlier conversations."),
    "sent.withdrawn": (
        "Die damals mitgesendeten Gespräche sind inzwischen gelöscht oder vergessen.",
        "The conversations sent then have been deleted or forgotten since.",
    ),
    "sent.messages": ("{count} Nachrichten an {model}", "{count} messages to {model}"),
    "sent.none": ("Für diese Antwort wurde noch nichts gesendet.", "Nothing was sent for this answer yet."),
    # --- tool cards
    "tool.details": ("Einzelheiten", "Details"),
    "tool.arguments": ("Aufruf", "Call"),
    "tool.result": ("Ergebnis", "Result"),
    "tool.running": ("{name} läuft …", "{name} is running …"),
    "tool.unknown_outcome": ("{name}: unterbrochen, Ausgang unbekannt", "{name}: interrupted, outcome unknown"),
    "tool.failed": ("{name} hat nicht geklappt", "{name} did not work"),
    "tool.done": ("{name} ausgeführt", "{name} done"),
    "tool.remembered": ("**Gemerkt:** {fact}", "**Remembered:** {fact}"),
    "tool.already_known": ("**Schon bekannt:** {fact}", "**Known already:** {fact}"),
    "tool.updated": ("**Geändert:** {fact} (vorher: {former})", "**Changed:** {fact} (before: {former})"),
    "tool.forgotten": ("**Vergessen:** {fact}", "**Forgotten:** {fact}"),
    "tool.not_forgotten": ("**Nichts vergessen:** kein Fakt passt", "**Nothing forgotten:** no fact matches"),
    "tool.several": (
        "**Noch nichts vergessen:** {count} Fakten passen",
        "**Nothing forgotten yet:** {count} facts match",
    ),
    "tool.searched": (
        "**Im Gedächtnis gesucht:** „{query}“ – {facts} Fakten, {conversations} Gespräche",
        "**Searched the memory:** “{query}” – {facts} facts, {conversations} conversations",
    ),
    "forgetting.exchanges": (
        "Nicht mehr im Gedächtnis: {count} Wortwechsel aus",
        "No longer in the memory: {count} exchanges from",
    ),
    "undo": ("Rückgängig", "Undo"),
    "undo.done": ("Rückgängig gemacht: {fact} ist wieder im Gedächtnis.", "Undone: {fact} is back in the memory."),
    "undo.expired": (
        "Das lässt sich nicht mehr rückgängig machen.",
        "This cannot be undone any more.",
    ),
    # --- notices
    "notice.max_tokens": (
        "Die Antwort wurde zu lang und endet hier. Schreib „weiter“, um mehr zu lesen.",
        "The answer became too long and ends here. Write “go on” to read more.",
    ),
    "notice.refusal": (
        "Das Modell hat die Antwort abgelehnt.",
        "The model declined to answer.",
    ),
    "notice.pause_turn": (
        "Das Modell hat eine Pause gemacht. Schreib „weiter“.",
        "The model paused. Write “go on”.",
    ),
    "notice.model_context_window_exceeded": (
        "Das Gespräch ist zu lang für das Modell. Beginne einen neuen Chat; das Wichtige ist im Gedächtnis.",
        "The conversation is too long for the model. Start a new chat; what matters is in the memory.",
    ),
    "notice.too_many_rounds": (
        "Nach mehreren Schritten angehalten.",
        "Stopped after several steps.",
    ),
    "notice.unknown": (
        "Die Antwort endete aus einem unbekannten Grund.",
        "The answer ended for an unknown reason.",
    ),
    # --- set-up card
    "setup.heading": ("Noch ein Schritt: Claude verbinden", "One more step: connect Claude"),
    "setup.text": (
        "JARVIS braucht einen Zugang zu einem Sprachmodell. Das Gedächtnis kannst du schon ansehen.\n\n"
        "**Mit Claude** (empfohlen):\n"
        "1. Schlüssel holen: [platform.claude.com/settings/keys](https://platform.claude.com/settings/keys)\n"
        "2. Die Datei `.env.example` als `.env` kopieren und darin eintragen:",
        "JARVIS needs access to a language model. You can look at the memory already.\n\n"
        "**With Claude** (recommended):\n"
        "1. Get a key: [platform.claude.com/settings/keys](https://platform.claude.com/settings/keys)\n"
        "2. Copy the file `.env.example` to `.env` and enter there:",
    ),
    "setup.local": (
        "**Mit einem eigenen Modell** (Ollama ab 0.14, ohne Schlüssel, nichts verlässt den Rechner):",
        "**With a model of your own** (Ollama 0.14 or newer, no key, nothing leaves the machine):",
    ),
    "setup.restart": (
        "Danach JARVIS neu starten (Strg+C, dann `make run`).",
        "Then start JARVIS again (Ctrl-C, then `make run`).",
    ),
    "setup.demo": (
        "Nur ausprobieren? `make demo` startet eine Vorführung ohne Schlüssel.",
        "Just trying? `make demo` starts a demonstration without a key.",
    ),
    # --- memory page
    "memory.heading": ("Gedächtnis", "Memory"),
    "memory.intro": (
        "Alles, was JARVIS über dich weiß. Du kannst es ändern und löschen.",
        "Everything that JARVIS knows about you. You can change and delete it.",
    ),
    "memory.view": ("Ansicht", "View"),
    "memory.facts": ("Fakten", "Facts"),
    "memory.summaries": ("Gespräche", "Conversations"),
    "memory.upkeep": ("Pflege", "Upkeep"),
    "memory.search_facts": ("Fakten durchsuchen", "Search facts"),
    "memory.search_summaries": ("Zusammenfassungen durchsuchen", "Search summaries"),
    "memory.new_fact": ("Neuer Fakt", "New fact"),
    "memory.new_fact_hint": ("Zum Beispiel: Ich esse kein Fleisch.", "For example: I do not eat meat."),
    "memory.add": ("Merken", "Remember"),
    "memory.added": ("Gemerkt: {fact}", "Remembered: {fact}"),
    "memory.known": ("Das war schon bekannt: {fact}", "This was known already: {fact}"),
    "memory.edit": ("Bearbeiten", "Edit"),
    "memory.save": ("Speichern", "Save"),
    "memory.saved": ("Gespeichert.", "Saved."),
    "memory.delete": ("Löschen", "Delete"),
    "memory.forgotten": ("Vergessen: {fact}", "Forgotten: {fact}"),
    "memory.no_facts": (
        "Noch keine Fakten. Sag im Chat „Merk dir, dass …“ oder trage hier einen ein.",
        "No facts yet. Say “Remember that …” in the chat, or enter one here.",
    ),
    "memory.nothing_found": ("Nichts gefunden.", "Nothing found."),
    "memory.no_summaries": (
        "Noch keine Zusammenfassungen. Nach jedem Gespräch entsteht hier eine.",
        "No summaries yet. One appears here after each conversation.",
    ),
    "memory.page": ("Seite {page} von {pages}", "Page {page} of {pages}"),
    "memory.previous": ("Zurück", "Back"),
    "memory.next": ("Weiter", "Next"),
    "memory.origin_said": ("gesagt am {date}", "said on {date}"),
    "memory.origin_mail": ("aus einer Mail, {date}", "from a mail, {date}"),
    "memory.origin_document": ("aus einem Dokument, {date}", "from a document, {date}"),
    "memory.origin_page": ("hier eingetragen am {date}", "entered here on {date}"),
    "memory.changed": ("geändert am {date}", "changed on {date}"),
    "memory.to_chat": ("Zum Chat", "Open chat"),
    "memory.regenerate": ("Neu schreiben", "Write anew"),
    "memory.regenerating": ("Die Zusammenfassung wird neu geschrieben.", "The summary is being written anew."),
    "memory.summary_deleted": (
        "Zusammenfassung gelöscht. Sie entsteht erst wieder, wenn das Gespräch weitergeht.",
        "Summary deleted. It is written again only when the conversation goes on.",
    ),
    "memory.pending": ("Noch offen", "Pending"),
    "memory.nothing_pending": ("Alles ist auf dem neuesten Stand.", "Everything is up to date."),
    "memory.waiting": ("wartet auf die Zusammenfassung", "waits for its summary"),
    "memory.waiting_for_key": (
        "Zusammenfassungen entstehen, sobald Claude eingerichtet ist.",
        "Summaries are written as soon as Claude is set up.",
    ),
    "memory.pending_1": ("1 Gespräch ist noch nicht zusammengefasst.", "1 conversation is not summarised yet."),
    "memory.pending_n": (
        "{count} Gespräche sind noch nicht zusammengefasst.",
        "{count} conversations are not summarised yet.",
    ),
    "memory.more_pending": ("… und {count} weitere.", "… and {count} more."),
    "memory.failures_1": (
        "Fehlgeschlagen: {reason} Nächster Versuch: {when}.",
        "Failed: {reason} Next try: {when}.",
    ),
    "memory.failures_n": (
        "{count}-mal fehlgeschlagen: {reason} Nächster Versuch: {when}.",
        "Failed {count} times: {reason} Next try: {when}.",
    ),
    "memory.at_once": ("gleich", "at once"),
    "memory.indexing": (
        "Frühere Gespräche werden für die Suche nach ihrem Sinn vorbereitet: {done} von {total}.",
        "Earlier conversations are being prepared for the search by meaning: {done} of {total}.",
    ),
    "memory.retry": ("Jetzt versuchen", "Try now"),
    "memory.retrying": ("Wird jetzt noch einmal versucht.", "Trying again now."),
    "memory.last_summary": ("Letzte Zusammenfassung: {date}", "Last summary: {date}"),
    "memory.never": ("noch keine", "none yet"),
    "memory.danger": ("Löschen", "Deleting"),
    "memory.delete_all": ("Das ganze Gedächtnis löschen", "Delete all memory"),
    "memory.delete_all_text": (
        "Löscht alle Fakten und Zusammenfassungen. Die Chats bleiben lesbar; was bisher gesagt wurde, kommt aber nie wieder "
        "ins Gedächtnis.",
        "Deletes all facts and summaries. The chats stay readable, but what was said so far never enters the memory again.",
    ),
    "memory.delete_everything": ("Alles löschen", "Delete everything"),
    "memory.delete_everything_text": (
        "Löscht alle Chats, Fakten und Zusammenfassungen endgültig, auch aus den Dateien der Datenbank.",
        "Deletes all chats, facts and summaries for good, from the files of the database, too.",
    ),
    "memory.open_dialog": ("Löschen …", "Delete …"),
    "memory.really": ("Endgültig löschen", "Delete for good"),
    "memory.type_word": ("Zum Bestätigen {word} eintippen", "Type {word} to confirm"),
    "memory.wrong_word": ("Bitte genau {word} eintippen.", "Please type exactly {word}."),
    "memory.word": ("LÖSCHEN", "DELETE"),
    "memory.deleting": ("Wird gelöscht …", "Deleting …"),
    "memory.receipt": (
        "Gelöscht: {facts}, {summaries}, {conversations}, {messages}.",
        "Deleted: {facts}, {summaries}, {conversations}, {messages}.",
    ),
    # --- health of the memory
    "health.failed_1": (
        "Gedächtnis hängt: 1 Gespräch nicht zusammengefasst. {reason}",
        "Memory is stuck: 1 conversation not summarised. {reason}",
    ),
    "health.failed_n": (
        "Gedächtnis hängt: {count} Gespräche nicht zusammengefasst. {reason}",
        "Memory is stuck: {count} conversations not summarised. {reason}",
    ),
    "health.embedding": (
        "Suche nach Bedeutung ruht: {reason}",
        "Search by meaning rests: {reason}",
    ),
    # --- errors, by class
    "error.JarvisError": (
        "Da ist etwas schiefgegangen. Versuch es noch einmal; die Ursache steht im Protokoll.",
        "Something went wrong. Try again; the cause is in the log.",
    ),
    "error.SettingsError": (
        "Eine Einstellung stimmt nicht. Bitte in der Datei .env (oder der Umgebung) ändern und JARVIS neu starten:",
        "A setting is wrong. Please change it in the file .env (or the environment) and start JARVIS again:",
    ),
    "error.DatabaseUnavailable": (
        "Die Datenbank ist nicht erreichbar. Prüfe, ob der Server läuft und DATABASE_URL stimmt; dann lade die Seite neu.",
        "The database cannot be reached. Check that the server runs and DATABASE_URL is right; then reload the page.",
    ),
    "error.DatabaseFolderTooOld": (
        "Der Datenordner gehört zu einer anderen PostgreSQL-Version. Das Protokoll nennt den Weg zur Übernahme.",
        "The data folder belongs to another version of PostgreSQL. The log names the way to carry it over.",
    ),
    "error.DatabaseFolderUnusable": (
        "Der Datenordner ist nicht benutzbar. Prüfe Rechte und freien Platz (JARVIS_DATA_DIR); Näheres steht im Protokoll.",
        "The data folder cannot be used. Check its rights and free space (JARVIS_DATA_DIR); the log says more.",
    ),
    "error.DatabaseTooNew": (
        "Die Datenbank stammt von einer neueren JARVIS-Version. Aktualisiere JARVIS oder spiele eine ältere Sicherung ein.",
        "The database was written by a newer JARVIS. Update JARVIS, or restore an older backup.",
    ),
    "error.VectorExtensionMissing": (
        "Dem PostgreSQL-Server fehlt pgvector. Installiere es oder nimm das Image pgvector/pgvector.",
        "The PostgreSQL server lacks pgvector. Install it, or use the image pgvector/pgvector.",
    ),
    "error.EmbeddingUnavailable": (
        "Das Modell für die Bedeutungssuche antwortet nicht; gesucht wird nur nach Wörtern. Prüfe OLLAMA_URL und EMBEDDING_MODEL.",
        "The model for search by meaning does not answer; only words are searched. Check OLLAMA_URL and EMBEDDING_MODEL.",
    ),
    "error.EmbeddingTooLong": (
        "Dieses EMBEDDING_MODEL liefert mehr als 768 Zahlen. Wähle ein anderes, zum Beispiel embeddinggemma.",
        "This EMBEDDING_MODEL makes more than 768 numbers. Choose another one, for example embeddinggemma.",
    ),
    "error.ClaudeError": (
        "Claude konnte nicht antworten. Versuch es noch einmal.",
        "Claude could not answer. Try again.",
    ),
    "error.ClaudeNotConfigured": (
        "Es ist noch kein Zugang zu Claude eingerichtet. Trage ANTHROPIC_API_KEY in die Datei .env ein.",
        "Access to Claude is not set up yet. Enter ANTHROPIC_API_KEY in the file .env.",
    ),
    "error.ClaudeKeyRejected": (
        "Der Schlüssel für Claude wurde abgelehnt. Prüfe ANTHROPIC_API_KEY in der Datei .env und starte JARVIS neu.",
        "The key for Claude was rejected. Check ANTHROPIC_API_KEY in the file .env and start JARVIS again.",
    ),
    "error.ClaudeModelUnknown": (
        "Das Modell ist dem Dienst nicht bekannt. Prüfe JARVIS_MODEL und JARVIS_SUMMARY_MODEL in der Datei .env.",
        "The service does not know the model. Check JARVIS_MODEL and JARVIS_SUMMARY_MODEL in the file .env.",
    ),
    "error.ClaudeSpendLimit": (
        "Das Guthaben oder Ausgabenlimit bei Anthropic ist erreicht. Prüfe die Abrechnung auf platform.claude.com.",
        "The credit or spending limit at Anthropic is reached. Check the billing on platform.claude.com.",
    ),
    "error.ClaudeBusy": (
        "Claude ist gerade überlastet. Versuch es in einer Minute noch einmal.",
        "Claude is overloaded right now. Try again in a minute.",
    ),
    "error.ClaudeUnreachable": (
        "Claude ist nicht erreichbar. Prüfe die Internetverbindung (oder ANTHROPIC_BASE_URL) und versuch es noch einmal.",
        "Claude cannot be reached. Check the network (or ANTHROPIC_BASE_URL) and try again.",
    ),
    "error.ClaudeRequestRejected": (
        "Der Dienst hat die Anfrage nicht angenommen. Beginne einen neuen Chat; die Ursache steht im Protokoll.",
        "The service did not accept the request. Start a new chat; the cause is in the log.",
    ),
    "error.ClaudeAnswerUnreadable": (
        "Unter dieser Adresse antwortet kein Claude. Prüfe ANTHROPIC_BASE_URL in der Datei .env.",
        "No Claude answers at this address. Check ANTHROPIC_BASE_URL in the file .env.",
    ),
    "error.AnswerInterrupted": (
        "Die Verbindung ist abgebrochen. Was bis dahin kam, ist gespeichert.",
        "The connection broke off. What came until then is saved.",
    ),
    "error.AnswerStopped": ("Du hast die Antwort angehalten.", "You stopped the answer."),
    "error.TurnRunning": (
        "Dieser Chat antwortet noch (vielleicht in einem anderen Fenster). Warte, bis er fertig ist, und sende dann noch einmal.",
        "This chat is still answering (perhaps in another window). Wait until it is done, then send again.",
    ),
    "error.MessageUnusable": (
        "Die Nachricht ist leer oder länger als {limit} Zeichen. Kürze sie und sende noch einmal.",
        "The message is empty or longer than {limit} characters. Shorten it and send again.",
    ),
    "error.ConversationNotFound": (
        "Dieses Gespräch gibt es nicht mehr.",
        "This conversation does not exist any more.",
    ),
    "error.FactUnusable": (
        "Ein Fakt hat 1 bis {limit} Zeichen; dieser hat {length}.",
        "A fact has 1 to {limit} characters; this one has {length}.",
    ),
    "error.FactNotFound": ("Diesen Fakt gibt es nicht mehr.", "This fact does not exist any more."),
    "error.FactAlreadyKnown": ("Ein anderer Fakt sagt das schon.", "Another fact says this already."),
}


class Texts:
    """The catalogue in one language: `texts("chat.stop")`. An unknown key is a KeyError."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._column = 0 if language == "de" else 1

    def __call__(self, key: str, **values: object) -> str:
        text = CATALOG[key][self._column]
        return text.format(**values) if values else text

    def counted(self, key: str, count: int, **values: object) -> str:
        """The form of `key` for this number: its entries end in `_1` and `_n`, and `_0` where nothing is said, too."""
        return self(f"{key}_{count if count < 2 else 'n'}", count=count, **values)

    def error(self, name: str, details: dict[str, object] | None = None) -> str:
        """The sentence for an error class; the general one for a class without an entry."""
        text = CATALOG.get(f"error.{name}", CATALOG["error.JarvisError"])[self._column]
        known = {"limit": "?", "length": "?"} | (details or {})
        return text.format(**known)

"""Small rules about text: what may enter, how it is compared and cut. No database, no screen."""

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# No text has these, whatever its encoding.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SPACE = re.compile(r"\s+")
# Signs that PostgreSQL's word parser takes for letters where the server's LC_CTYPE is C, as the embedded one's is.
_TYPOGRAPHIC_MARKS = "„“”‚‘’‹›«»–—…•·"

# Greetings, thanks and confirmations: messages that ask nothing of the memory and leave nothing in it.
_SMALL_TALK = frozenset(
    [
        "hallo",
        "hi",
        "hey",
        "moin",
        "servus",
        "guten",
        "morgen",
        "tag",
        "abend",
        "nacht",
        "gute",
        "danke",
        "dankeschön",
        "dankeschoen",
        "vielen",
        "dank",
        "bitte",
        "ok",
        "okay",
        "ja",
        "nein",
        "gut",
        "super",
        "prima",
        "toll",
        "alles",
        "klar",
        "tschüss",
        "tschuess",
        "ciao",
        "bis",
        "bald",
        "wie",
        "geht",
        "es",
        "dir",
        "gehts",
        "geht's",
        "jarvis",
        "na",
        "du",
        "hello",
        "good",
        "morning",
        "evening",
        "night",
        "day",
        "thanks",
        "thank",
        "you",
        "very",
        "much",
        "yes",
        "no",
        "fine",
        "great",
        "bye",
        "goodbye",
        "see",
        "later",
        "how",
        "are",
        "there",
        "how's",
        "it",
        "going",
        "test",
    ]
)


def clean(text: str) -> str:
    """`text` without NUL and lone surrogates, which neither PostgreSQL nor JSON over UTF-8 can carry."""
    return _UNSTORABLE.sub("", text)


def clean_deep(value: object) -> object:
    """The same for every text inside a JSON value (lists, dicts with their keys)."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_deep(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): clean_deep(item) for key, item in value.items()}
    return value


def decoded_text(data: bytes) -> str | None:
    """What a text file says, in UTF-8, UTF-16 or the encoding of Windows; None for what is no text."""
    # What Windows writes as "Unicode" says so at its beginning.
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            said = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _CONTROLS.search(said):
            return said
    return None


def one_line(text: str) -> str:
    """`text` with every run of white space as one blank, none at the ends."""
    return _SPACE.sub(" ", text).strip()


def comparison_key(text: str) -> str:
    """What two texts share when they differ only in case, white space and final punctuation."""
    return one_line(unicodedata.normalize("NFC", text)).casefold().rstrip(" .!?…;,:")


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, cut at a word where that costs little, with "…" when cut."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    at_word = cut.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > limit // 2 else cut).rstrip() + "…"


def escape_like(text: str) -> str:
    """`text` for a LIKE pattern with the escape character `\\`, where it stands for itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def without_marks(text: str) -> str:
    """`text` with blanks for typographic marks, for a search by words."""
    return text.translate(dict.fromkeys(map(ord, _TYPOGRAPHIC_MARKS), " "))


def sql_words(column: str) -> str:
    """SQL for the stemmed words of a column, typographic marks aside. German stemming leaves English words usable."""
    return f"to_tsvector('german', translate({column}, '{_TYPOGRAPHIC_MARKS}', '{' ' * len(_TYPOGRAPHIC_MARKS)}'))"


def escape_markup(text: str) -> str:
    """`text` for the inside of a tag in a prompt, so that it cannot close or open one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def words(text: str) -> list[str]:
    """The words of `text` in lower case, without punctuation."""
    return re.findall(r"[\w'’]+", text.lower())


def is_small_talk(text: str) -> bool:
    """True for a greeting, thanks or a bare yes or no: nothing to recall for it and nothing to summarise."""
    return all(word in _SMALL_TALK for word in words(text))

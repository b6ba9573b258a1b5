"""The texts of the pages, from the gettext catalogues in `locales/`. A msgid is a name: the languages are equals."""

import io
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.support import Translations

from jarvis_memory.prompts import Language

LOCALES = Path(__file__).with_name("locales")


def read_catalog(language: Language) -> Catalog:
    """The catalogue of a language, as it stands in its file."""
    with (LOCALES / language / "LC_MESSAGES" / "jarvis.po").open("rb") as file:
        return read_po(file, locale=language)


@cache
def _translations(language: Language) -> Translations:
    # Compiled in memory: a file that has to be compiled before each start would be forgotten.
    compiled = io.BytesIO()
    write_mo(compiled, read_catalog(language))
    compiled.seek(0)
    return Translations(compiled)


class Texts:
    """The catalogue in one language: `texts("chat.stop")`. An unknown key is a KeyError."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._translations = _translations(language)

    def __call__(self, key: str, **values: object) -> str:
        text = self._translations.gettext(key)
        if text == key:
            raise KeyError(key)
        return text.format(**values) if values else text

    def counted(self, key: str, count: int, **values: object) -> str:
        """The form of `key` for this number, which stands in it as `{count}`; `key_none` for 0 where that exists."""
        none = self._translations.gettext(f"{key}_none")
        if count == 0 and none != f"{key}_none":
            return none
        text = self._translations.ngettext(key, key, count)
        if text == key:
            raise KeyError(key)
        return text.format(count=count, **values)

    def error(self, name: str, details: dict[str, object] | None = None) -> str:
        """The sentence for an error class; the general one for a class without an entry."""
        try:
            text = self(f"error.{name}")
        except KeyError:
            text = self("error.JarvisError")
        known = {"limit": "?", "length": "?", "field": "?", "name": "?"} | (details or {})
        written = {
            key: format_decimal(value, locale=self.language) if isinstance(value, int) else value
            for key, value in known.items()
        }
        return text.format(**written)

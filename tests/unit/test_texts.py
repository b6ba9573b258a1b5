"""The catalogue of texts: complete in both languages, and exactly what the pages use."""

import ast
import inspect
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from jarvis_memory import errors
from jarvis_memory.answers import NOTICED_STOP_REASONS
from jarvis_memory.facts import Origin
from jarvis_memory.import_file import Program
from jarvis_memory.pending_actions import ActionStatus
from jarvis_memory.preferences import LANGUAGES
from jarvis_memory.prompts import Language
from jarvis_memory.recall import FoundBy
from jarvis_memory.services import ServiceName
from jarvis_memory.tools.calendar import CALENDAR_TOOLS
from jarvis_memory.tools.documents import DOCUMENT_TOOLS
from jarvis_memory.tools.memory import MEMORY_TOOLS
from jarvis_memory.ui.approvals import NAMED
from jarvis_memory.ui.calendar_cards import FIELDS, STATUSES
from jarvis_memory.ui.texts import Texts, read_catalog
from jarvis_memory.usage import Purpose

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "chat.py", *(PROJECT / "pages").glob("*.py"), *(PROJECT / "jarvis_memory" / "ui").glob("*.py")]
TREES = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in PAGES}
# Errors that are answers for Claude, never for a person.
FOR_CLAUDE = {"ToolError"}


def strings_of(tree: ast.AST) -> list[str]:
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def arguments_of(function: str) -> list[str]:
    """The strings that the pages hand to this function."""
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    found = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == function]
    return [text for node in found for argument in node.args for text in strings_of(argument)]


def views_of(page: str) -> list[str]:
    """The views of a page."""
    return [
        key.value
        for node in ast.walk(TREES[page])
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VIEWS" and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    ]


DELETIONS = arguments_of("_draw_deletion")
# The groups of the System view, and the names in each.
SYSTEM_ROWS = [
    key
    for node in ast.walk(TREES["system_view.py"])
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "_draw_rows"
    for key in [*strings_of(node.args[1]), *(strings_of(key)[0] for key in node.args[2].keys)]  # type: ignore[attr-defined]
]
# Where a key is put together: what can stand in the gap. Read from the code where it is a list there.
GAPS = {
    "approval.headline_{}": ["declined", "expired"],
    "approval.is_{}": get_args(ActionStatus),
    "approval.what_{}": NAMED,
    "calendar.{}": FIELDS,
    "calendar.every_{}": ["day", "week", "month", "year"],
    "calendar.status_{}": STATUSES,
    "chat.{}": ["placeholder", "placeholder_running", "placeholder_set_up"],
    "chat.example_{}": ["1", "2", "3"],
    "count.{}": ["facts", "earlier"],
    "connections.{}": get_args(ServiceName),
    "data.program_{}": get_args(Program),
    "error.{}": [],  # below
    "memory.{}": [*views_of("memory.py"), *DELETIONS],
    "memory.{}_text": DELETIONS,
    "memory.search_{}": ["facts", "summaries", "documents"],
    "memory.origin_{}": get_args(Origin),
    "settings.{}": [*views_of("settings.py"), "language", "time_zone", "model", "memory", "instructions"],
    "settings.language_{}": LANGUAGES,
    "system.{}": SYSTEM_ROWS,
    "usage.column_{}": ["read", "cached", "written"],
    "usage.{}": ["period", "days", "months", "measure", "cost", "count"],
    "usage.purpose_{}": get_args(Purpose),
    "used.found_by_{}": get_args(FoundBy),
    "notice.{}": [*NOTICED_STOP_REASONS, "too_many_rounds", "unknown"],
}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def forms(language: Language) -> dict[str, tuple[str, ...]]:
    """Every msgid of a catalogue with its text, or with those for one and for many."""
    found = {}
    for message in read_catalog(language):
        if message.id:
            key = message.id[0] if message.pluralizable else message.id
            found[key] = message.string if message.pluralizable else (message.string,)
    return found


GERMAN, ENGLISH = forms("de"), forms("en")
COUNTED = {key for key, texts in GERMAN.items() if len(texts) == 2}


def test_the_catalogues_have_the_same_texts_in_the_same_order() -> None:
    assert list(GERMAN) == list(ENGLISH)


@pytest.mark.parametrize("language", ["de", "en"])
def test_no_text_of_a_catalogue_is_uncertain_or_obsolete(language: Language) -> None:
    catalog = read_catalog(language)
    assert [message.id for message in catalog if message.id and message.fuzzy] == []
    assert list(catalog.obsolete) == []


@pytest.mark.parametrize("key", GERMAN)
def test_a_text_exists_in_both_languages_with_the_same_placeholders(key: str) -> None:
    german, english = GERMAN[key], ENGLISH[key]
    assert len(german) == len(english)
    assert all(text.strip() for text in (*german, *english))
    # "1 Fakt" needs no number put in.
    assert placeholders("".join(german)) == placeholders("".join(english))


def test_the_languages_are_not_mixed_up() -> None:
    german = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|dein|du)\b", re.IGNORECASE)
    english = re.compile(r"\b(?:the|and|is|not|your|you|this|of)\b", re.IGNORECASE)
    for key in GERMAN:
        assert not english.search(" ".join(GERMAN[key])), key
        assert not german.search(" ".join(ENGLISH[key])), key


def calls() -> Iterator[tuple[str, ast.expr]]:
    """Every call that takes a key: its function and the argument with the key."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called = ast.unparse(node.func)
            if re.fullmatch(r"(?:.*\.)?texts(?:\.counted)?|Texts\(.*\)|_both|open_page", called):
                yield called, node.args[0]


def keys_of(argument: ast.expr) -> Iterator[str]:
    """The keys that the argument can be; `{}` for a gap in one that is put together."""
    if isinstance(argument, ast.Constant):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from keys_of(argument.body)
        yield from keys_of(argument.orelse)
    elif isinstance(argument, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in argument.values)
    else:
        # A variable: what it can be is a literal somewhere else, which `literals` sees.
        assert isinstance(argument, ast.Name), ast.unparse(argument)


def literals() -> set[str]:
    """Every key that stands in the pages as a whole, also one that is only handed on."""
    return {text for tree in TREES.values() for text in strings_of(tree) if text in GERMAN}


def used_keys(*, counted: bool) -> set[str]:
    """The keys that the pages ask for, as texts that depend on a number or as others."""
    used = set()
    for called, argument in calls():
        if called.endswith("counted") is counted:
            for pattern in keys_of(argument):
                used |= {pattern.format(gap) for gap in GAPS[pattern]} if "{}" in pattern else {pattern}
    return used


def test_every_key_that_the_pages_ask_for_is_in_the_catalogue() -> None:
    assert used_keys(counted=False) - set(GERMAN) == set()
    assert used_keys(counted=True) - COUNTED == set()


def test_every_text_of_the_catalogue_is_used() -> None:
    counted = used_keys(counted=True)
    used = used_keys(counted=False) | counted | {f"{key}_none" for key in counted} | literals()
    assert {key for key in GERMAN if not key.startswith("error.")} - used == set()


# What is the same in every language, or no text at all: markup, icons, names of settings and files.
_NO_TEXT = re.compile(r"(?::material/\w+:|[A-Z_]{4,}(?:=\S*)?|JARVIS|chat\.py|pages/\w+\.py|\W|\d)*")
_SHOWN = {
    "title",
    "header",
    "subheader",
    "markdown",
    "caption",
    "write",
    "text",
    "button",
    "checkbox",
    "toggle",
    "info",
}
_SHOWN |= {
    "success",
    "warning",
    "error",
    "toast",
    "expander",
    "popover",
    "selectbox",
    "radio",
    "text_input",
    "text_area",
}
_SHOWN |= {"chat_input", "dialog", "page_link", "metric", "file_uploader", "download_button", "form_submit_button"}
_SHOWN |= {"tabs", "segmented_control", "spinner", "progress", "number_input", "link_button", "menu_button", "pills"}
_LABELS = {"label", "help", "placeholder", "text"}


def untranslated(tree: ast.AST) -> Iterator[str]:
    """The literal texts that a page hands to what shows them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHOWN:
            if ast.unparse(node.func.value) == "log":
                continue
            shown = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg in _LABELS)]
            for argument in shown:
                for text in literal_texts(argument):
                    if not _NO_TEXT.fullmatch(text):
                        yield text


def literal_texts(argument: ast.expr) -> Iterator[str]:
    """What of the argument is shown as it stands in the code."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.JoinedStr):
        yield from (part.value for part in argument.values if isinstance(part, ast.Constant))
    elif isinstance(argument, ast.IfExp):
        yield from literal_texts(argument.body)
        yield from literal_texts(argument.orelse)
    elif isinstance(argument, ast.BinOp):
        yield from literal_texts(argument.left)
        yield from literal_texts(argument.right)


@pytest.mark.parametrize("file", TREES)
def test_no_page_shows_a_text_that_is_not_in_the_catalogue(file: str) -> None:
    assert list(untranslated(TREES[file])) == []


def test_an_untranslated_text_is_found() -> None:
    page = 'st.button("Save", help=f"Save {name}"); st.markdown(":material/key:"); st.info(texts("chat.stop"))'
    assert list(untranslated(ast.parse(page))) == ["Save", "Save "]


def test_a_key_that_no_catalogue_has_is_an_error() -> None:
    with pytest.raises(KeyError):
        Texts("de")("chat.nonsense")
    with pytest.raises(KeyError):
        Texts("de").counted("chat.nonsense", 2)


def test_a_number_gets_the_form_of_its_language() -> None:
    texts = Texts("de")
    assert [texts.counted("count.facts", count) for count in (0, 1, 2)] == ["keine Fakten", "1 Fakt", "2 Fakten"]


def error_classes() -> list[str]:
    found = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    return sorted(set(found) - FOR_CLAUDE)


@pytest.mark.parametrize("name", error_classes())
def test_every_error_that_a_person_can_see_has_a_sentence_of_its_own(name: str) -> None:
    assert f"error.{name}" in GERMAN


@pytest.mark.parametrize("name", error_classes())
@pytest.mark.parametrize("language", ["de", "en"])
def test_the_sentence_of_an_error_can_be_shown_without_its_details(name: str, language: Language) -> None:
    sentence = Texts(language).error(name)
    assert "{" not in sentence


def test_no_sentence_is_left_of_an_error_that_is_gone() -> None:
    left = {key.removeprefix("error.") for key in GERMAN if key.startswith("error.")} - set(error_classes())
    assert left == set()


def test_an_unknown_error_gets_the_general_sentence() -> None:
    assert Texts("en").error("Whatever") == Texts("en")("error.JarvisError")


def test_every_tool_has_a_card_with_its_own_headline() -> None:
    cards = (PROJECT / "jarvis_memory" / "ui" / "cards.py").read_text(encoding="utf-8")
    assert [tool.name for tool in MEMORY_TOOLS if f'case "{tool.name}"' not in cards] == []


def test_every_document_tool_has_a_headline_that_says_what_it_did() -> None:
    cards = (PROJECT / "jarvis_memory" / "ui" / "document_cards.py").read_text(encoding="utf-8")
    assert [tool.name for tool in DOCUMENT_TOOLS if f'"{tool.name}"' not in cards] == []


def test_every_tool_that_can_wait_is_named_on_its_card() -> None:
    assert {tool.name for tool in [*MEMORY_TOOLS, *CALENDAR_TOOLS] if tool.approval != "never"} <= set(NAMED)

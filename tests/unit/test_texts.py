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
from jarvis_memory.facts import Origin
from jarvis_memory.recall import FoundBy
from jarvis_memory.tool_loop import NOTICED_STOP_REASONS
from jarvis_memory.tools.memory import MEMORY_TOOLS
from jarvis_memory.ui.texts import CATALOG, Texts

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


VIEWS = [
    key.value
    for node in ast.walk(TREES["memory.py"])
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VIEWS" and isinstance(node.value, ast.Dict)
    for key in node.value.keys
    if isinstance(key, ast.Constant)
]
DELETIONS = arguments_of("_draw_deletion")
# Where a key is put together: what can stand in the gap. Read from the code where it is a list there.
GAPS = {
    "chat.{}": ["placeholder", "placeholder_running", "placeholder_set_up"],
    "chat.example_{}": ["1", "2", "3"],
    "count.{}": ["facts", "earlier"],
    "error.{}": [],  # below
    "memory.{}": [*VIEWS, *DELETIONS],
    "memory.{}_text": DELETIONS,
    "memory.search_{}": ["facts", "summaries"],
    "memory.origin_{}": get_args(Origin),
    "used.found_by_{}": get_args(FoundBy),
    "notice.{}": [*NOTICED_STOP_REASONS, "too_many_rounds", "unknown"],
}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("key", CATALOG)
def test_a_text_exists_in_both_languages_with_the_same_placeholders(key: str) -> None:
    german, english = CATALOG[key]
    assert german.strip() and english.strip()
    assert placeholders(german) == placeholders(english)


def test_the_languages_are_not_mixed_up() -> None:
    german = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|dein|du)\b", re.IGNORECASE)
    english = re.compile(r"\b(?:the|and|is|not|your|you|this|of)\b", re.IGNORECASE)
    for key, (in_german, in_english) in CATALOG.items():
        assert not english.search(in_german), key
        assert not german.search(in_english), key


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
    return {text for tree in TREES.values() for text in strings_of(tree) if text in CATALOG}


def used_keys() -> set[str]:
    """The keys that the pages ask for, with those of counted texts."""
    used = set()
    for called, argument in calls():
        for pattern in keys_of(argument):
            names = [pattern.format(gap) for gap in GAPS[pattern]] if "{}" in pattern else [pattern]
            forms = [f"_{form}" for form in "01n"] if called.endswith("counted") else [""]
            used |= {name + form for name in names for form in forms}
    return used


def test_every_key_that_the_pages_ask_for_is_in_the_catalogue() -> None:
    # A text without a form for 0 is never asked with 0.
    missing = {key for key in used_keys() if key not in CATALOG and not key.endswith("_0")}
    assert missing == set()


def test_every_text_of_the_catalogue_is_used() -> None:
    unused = {key for key in CATALOG if not key.startswith("error.")} - used_keys() - literals()
    assert unused == set()


def test_every_counted_text_has_a_form_for_one_and_for_many() -> None:
    stems = {key[:-2] for key in CATALOG if re.search(r"_[01n]$", key)} - {"chat.example"}
    assert {f"{stem}_{form}" for stem in stems for form in "1n"} <= set(CATALOG)


def error_classes() -> list[str]:
    found = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    return sorted(set(found) - FOR_CLAUDE)


@pytest.mark.parametrize("name", error_classes())
def test_every_error_that_a_person_can_see_has_a_sentence_of_its_own(name: str) -> None:
    assert f"error.{name}" in CATALOG


@pytest.mark.parametrize("name", error_classes())
@pytest.mark.parametrize("language", ["de", "en"])
def test_the_sentence_of_an_error_can_be_shown_without_its_details(name: str, language: str) -> None:
    sentence = Texts("de" if language == "de" else "en").error(name)
    assert "{" not in sentence


def test_no_sentence_is_left_of_an_error_that_is_gone() -> None:
    left = {key.removeprefix("error.") for key in CATALOG if key.startswith("error.")} - set(error_classes())
    assert left == set()


def test_an_unknown_error_gets_the_general_sentence() -> None:
    assert Texts("en").error("Whatever") == CATALOG["error.JarvisError"][1]


def test_every_tool_has_a_card_with_its_own_headline() -> None:
    cards = (PROJECT / "jarvis_memory" / "ui" / "cards.py").read_text(encoding="utf-8")
    assert [tool.name for tool in MEMORY_TOOLS if f'case "{tool.name}"' not in cards] == []

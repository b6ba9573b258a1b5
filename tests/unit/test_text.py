"""Small rules about text."""

import pytest

from jarvis_memory.text import (
    clean,
    clean_deep,
    comparison_key,
    escape_like,
    escape_markup,
    is_small_talk,
    one_line,
    shorten,
    words,
)


def test_nul_and_lone_surrogates_go_and_everything_else_stays() -> None:
    assert clean("a\0b\ud83dc\udfffd") == "abcd"
    assert clean("Grüße 🐕\n\t\x01") == "Grüße 🐕\n\t\x01"


def test_the_texts_inside_a_json_value_are_cleaned_with_their_keys() -> None:
    dirty = {"a\0": ["x\ud800", {"b": "y\0"}], "n": 1, "none": None, "yes": True, 3: 1.5}
    assert clean_deep(dirty) == {"a": ["x", {"b": "y"}], "n": 1, "none": None, "yes": True, "3": 1.5}


def test_white_space_becomes_single_blanks() -> None:
    assert one_line("  a\n\n b\t\u00a0c ") == "a b c"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mein Hund heißt Bruno", "mein  hund heisst BRUNO."),
        ("Ada wohnt in Köln", "ada wohnt in ko\u0308ln!"),
        ("Ada mag Tee", " Ada mag\nTee … "),
    ],
)
def test_case_space_and_final_punctuation_make_no_difference(one: str, other: str) -> None:
    assert comparison_key(one) == comparison_key(other)


@pytest.mark.parametrize(("one", "other"), [("Ada mag Tee", "Ada mag keinen Tee"), ("3,5 km", "35 km"), ("a-b", "ab")])
def test_everything_else_makes_a_difference(one: str, other: str) -> None:
    assert comparison_key(one) != comparison_key(other)


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("kurz", 4, "kurz"),
        ("ein langer Satz hier", 18, "ein langer Satz…"),
        ("Donaudampfschifffahrt", 6, "Donau…"),
        ("a bcdefghijklmnop", 10, "a bcdefgh…"),
        ("", 5, ""),
    ],
)
def test_a_text_is_shortened_at_a_word_where_that_costs_little(text: str, limit: int, short: str) -> None:
    assert shorten(text, limit) == short
    assert len(shorten(text, limit)) <= limit


def test_wildcards_stand_for_themselves_in_a_pattern() -> None:
    assert escape_like("50%_\\") == "50\\%\\_\\\\"


def test_a_text_can_neither_close_nor_open_a_tag() -> None:
    assert escape_markup('</conversation> & "x"') == "&lt;/conversation&gt; &amp; &quot;x&quot;"


def test_words_are_lower_case_and_without_punctuation() -> None:
    assert words("Wie geht's, Ada? (3 km)") == ["wie", "geht's", "ada", "3", "km"]


@pytest.mark.parametrize(
    "text", ["Hallo!", "Guten Morgen, JARVIS", "Danke", "ok", "Thank you very much", "", "…", "👍"]
)
def test_greetings_thanks_and_confirmations_are_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize("text", ["Hallo, mein Hund heißt Bruno", "Wie wird das Wetter morgen?", "Hello Ada", "7"])
def test_anything_with_content_is_not_small_talk(text: str) -> None:
    assert not is_small_talk(text)

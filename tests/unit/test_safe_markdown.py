"""Text from outside as Markdown: what stays, what is taken off its meaning. How it looks is tested in the browser."""

import re

import pytest

from jarvis_memory.ui.safe_markdown import plain, safe_markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Between $5 and $10.", r"Between \$5 and \$10."),
        (r"Already \$5, a backslash \\$5.", r"Already \$5, a backslash \\\$5."),
        ("Only $$ and no formula", r"Only \$\$ and no formula"),
        ("A $$\n\nparagraph later $$5", "A \\$\\$\n\nparagraph later \\$\\$5"),
    ],
)
def test_a_dollar_is_a_dollar(text: str, shown: str) -> None:
    assert safe_markdown(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Inline $$a^2 + b^2$$ formula",
        "Over\n$$a +\nb$$\ntwo lines",
        "$$\na^2\n\n+ b^2\n$$",
        "> $$\n> a^2\n> $$",
    ],
)
def test_a_formula_between_double_dollars_stays(text: str) -> None:
    assert safe_markdown(text) == text


@pytest.mark.parametrize(
    "code",
    [
        "`echo $HOME ![x](y)`",
        "`` ` $1 ``",
        "`over $1\ntwo lines`",
        "```sh\necho $1\n```",
        "~~~\n$1\n```\n$2\n~~~",
        "````\n```\n$1\n```\n````",
        "> ```\n> $1\n> ```",
        "- ```sh\n  echo $1\n  ```",
        "1. ```sh\n   echo $1\n   ```",
    ],
)
def test_code_keeps_its_dollars_and_the_prose_around_it_does_not(code: str) -> None:
    assert safe_markdown(f"$5\n\n{code}\n\n$6") == f"\\$5\n\n{code}\n\n\\$6"


def test_code_keeps_its_dollars_while_it_is_still_coming() -> None:
    assert safe_markdown("$5\n```sh\necho $1") == "\\$5\n```sh\necho $1"


@pytest.mark.parametrize(
    "text",
    [
        "No fence: ``` here, ![x](https://a.example/x.png) and $5",
        "No code: \\`![x](https://a.example/x.png) and $5\\`",
        "No code: `one ![x](https://a.example/x.png)\n\ntwo $5`",
        "No formula: $$ ![x](https://a.example/x.png)\n\n$5 $$",
    ],
)
def test_what_only_looks_like_code_is_prose(text: str) -> None:
    shown = safe_markdown(text)
    assert "![" not in shown
    assert not re.search(r"(?<!\\)\$", shown)


@pytest.mark.parametrize(
    ("image", "link"),
    [
        ("![cat](https://a.example/cat.png)", "[cat](https://a.example/cat.png)"),
        ("![](https://a.example/cat.png)", "[](https://a.example/cat.png)"),
        ("![cat][1]\n\n[1]: https://a.example/cat.png", "[cat][1]\n\n[1]: https://a.example/cat.png"),
        ("![cat][]\n\n[cat]: https://a.example/cat.png", "[cat][]\n\n[cat]: https://a.example/cat.png"),
        ("![cat]\n\n[cat]: https://a.example/cat.png", "\\![cat]\n\n[cat]: https://a.example/cat.png"),
        ("![a [b] c](https://a.example/cat.png)", "\\![a [b] c](https://a.example/cat.png)"),
        ("![![a](https://a.example/1)](https://a.example/2)", "\\![[a](https://a.example/1)](https://a.example/2)"),
        ("![a](https://a.example/(1).png)", "\\![a](https://a.example/(1).png)"),
        ("\\\\![a](https://a.example/1)", "\\\\[a](https://a.example/1)"),
    ],
)
def test_an_image_becomes_a_link(image: str, link: str) -> None:
    assert safe_markdown(image) == link


def test_an_exclamation_mark_in_front_of_a_bracket_stays_readable() -> None:
    assert safe_markdown("Achtung![1] Halt!") == "Achtung\\![1] Halt!"
    assert safe_markdown(r"\![no image](https://a.example)") == r"\![no image](https://a.example)"


def test_markdown_of_an_answer_stays_as_it_is() -> None:
    text = "## Plan\n\n- **fett**, _kursiv_ und [Link](https://a.example)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert safe_markdown(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "**fett** _kursiv_ ~~weg~~ `code`",
        "[Link](https://a.example) ![Bild](https://a.example/x.png) [^1]",
        "<b>fett</b> &amp;",
        "$5 $$a$$",
        ":red[rot] :smile: :blue-background[blau]",
        "# Überschrift",
        "- Punkt",
        "+ Punkt",
        "> Zitat",
        "| a | b |",
        "--- === ~~~",
        "back\\slash",
        "1. Dezember",
        "1) Dezember",
    ],
)
def test_plain_leaves_no_sign_that_formats(text: str) -> None:
    signs = re.sub(r"\\[^a-z0-9\s]", "", plain(text))
    assert not re.search(r"[\\`*_{}\[\]()#+\-.!|~$:<>&^=]", signs)


@pytest.mark.parametrize("text", ["**a** [b](c) $5 1. Dezember", "a -> b <- c -- d", ":material/home: >= ~="])
def test_plain_changes_nothing_that_can_be_seen(text: str) -> None:
    shown = re.sub(r"\\([^a-z0-9\s])", r"\1", plain(text)).replace("\N{WORD JOINER}", "")
    assert shown == text


@pytest.mark.parametrize("text", ["->", "<-", "<->", "--", ">=", "<=", "~=", ":material/home:", ":streamlit:"])
def test_plain_tears_apart_what_streamlit_replaces_although_it_is_escaped(text: str) -> None:
    shown = re.sub(r"\\([^a-z0-9\s])", r"\1", plain(text))
    assert text not in shown


def test_plain_is_one_line() -> None:
    assert plain("eins\nzwei") == "eins zwei"

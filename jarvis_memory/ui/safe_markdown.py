"""Text from outside, made safe and faithful for `st.markdown`: prices stay prices, images become links.

HTML is escaped by Streamlit itself, and the Content-Security-Policy in app.py keeps remote images from loading
whatever a text contains; here it is about what a person sees.
"""

import re

# What is code or a formula, and keeps its dollars and exclamation marks.
_KEPT = re.compile(
    r"""
    # fenced code, also in a list or a quotation; while it is streamed the closing fence is missing
    ^(?:[ \t>]|[-*+][ ]|\d+[.)][ ])*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)
    # a formula on lines of its own
    | ^[ \t>]*\$\$[ \t]*$.*?^[ \t>]*\$\$[ \t]*$
    # inline code and a formula within a paragraph
    | (?<![\\`])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)
    | (?<![\\$])\$\$(?!\$)(?:(?!\n[ \t]*\n).)+?\$\$
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# Not after a backslash, unless that one is escaped itself.
_UNESCAPED = r"(?<!\\)((?:\\\\)*)"
_IMAGE = re.compile(_UNESCAPED + r"!(?=\[[^\[\]]*\](?:\([^()\n]*\)|\[[^\[\]]*\]))")
_OTHER_IMAGE = re.compile(_UNESCAPED + r"!(?=\[)")
_DOLLAR = re.compile(_UNESCAPED + r"\$")

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&^=])")
# What Streamlit replaces in a text although it is escaped: arrows, dashes and comparisons, and its icons.
_REPLACED = re.compile(r"(?<=-)(?=[->])|(?<=<)(?=[-=])|(?<=[>~])(?==)|(?<=:)(?=material/|streamlit:)")
_INVISIBLE = "\N{WORD JOINER}"


def safe_markdown(text: str) -> str:
    """`text` for st.markdown: `$` outside code and `$$…$$` is a dollar sign, images are links to them."""
    parts = []
    end = 0
    for kept in _KEPT.finditer(text):
        parts.append(_prose(text[end : kept.start()]))
        parts.append(kept.group(0))
        end = kept.end()
    parts.append(_prose(text[end:]))
    return "".join(parts)


def _prose(text: str) -> str:
    # The common image loses its mark; of an unusual one the mark stays, as a sign in front of the link.
    linked = _OTHER_IMAGE.sub(r"\1\\!", _IMAGE.sub(r"\1", text))
    return _DOLLAR.sub(r"\1\\$", linked)


def plain(text: str) -> str:
    """`text` for a label or a line of Markdown in which nothing of it is to be formatted."""
    return _PUNCTUATION.sub(r"\\\1", _REPLACED.sub(_INVISIBLE, text.replace("\n", " ")))

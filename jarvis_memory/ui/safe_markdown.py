"""Text from outside, made safe and faithful for `st.markdown`: prices stay prices, images become links.

HTML is escaped by Streamlit itself, and the Content-Security-Policy in app.py keeps remote images from loading
whatever a text contains; here it is about what a person sees.
"""

import re

# What keeps its dollars: fenced code (closed or still streaming), inline code, and formulas between double dollars.
_KEPT = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\2(?!`)|\$\$.+?\$\$)", re.DOTALL)
_IMAGE = re.compile(r"!(\[[^\]]*\]\([^)]*\)|\[[^\]]*\]\[[^\]]*\])")
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&^=])")


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
    return _IMAGE.sub(r"\1", re.sub(r"(?<!\\)\$", r"\\$", text))


def plain(text: str) -> str:
    """`text` for a label or a line of Markdown in which nothing of it is to be formatted."""
    return _PUNCTUATION.sub(r"\\\1", text.replace("\n", " "))

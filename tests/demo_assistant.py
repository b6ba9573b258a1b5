"""The scripted assistant behind `make demo`: German, or English when the system prompt is English.

It keeps no state: all it knows it reads from the request, so what it remembers proves the memory of the app.
How the answers are sent is in fake_claude.py.
"""

import html
import json
import re
from collections.abc import Iterator
from os.path import commonprefix
from typing import Any, NamedTuple

from tests.claude_replies import Reply, Text, ToolUse
from tests.demo_phrases import MARKDOWN, PHRASES, SLOW_SENTENCES, STOP_WORDS
from tests.history_rules import Body, blocks_of

GREETING = (
    r"(?:hallo|hi|hey|hello|moin|servus|guten (?:tag|morgen|abend)|good (?:morning|evening))\b"
    r"(?:[,.! ]*(?:jarvis|wie geht.*|how are.*))*[,.! ]*"
)
YES = r"(?:ja|yes|yep|klar|genau|gerne|okay|ok|sure)\b[^?]{0,25}"
NO = r"(?:nein|nee|no|nope|lieber nicht)\b[^?]{0,25}"
REMEMBER = r"(?:bitte |please )?(?:merke? dir(?: bitte)?|remember)(?P<that>,? dass| that)?[,:]? (?P<fact>.+)"
FORGET = r"(?:bitte |please )?(?:vergiss(?: bitte)?|forget)(?P<that>,? dass| that)?[,:]? (?P<fact>.+)"
NOW = r"(?:mein|ich\b|my\b|i\b)[^?]*\b(?:jetzt|now)\b[^?]*"
SEARCH = r"(?:.*\b(?:durch)?such\w*\b.*gedächtnis|.*\bsearch\b.*\bmemory)(?: nach| for)? (?P<query>.+)"
DOCUMENTS = r".*\b(?:meinen dokumenten|my documents)\b(?: say)? (?:über|zu|about) (?P<query>.+)"
EVERYTHING = r".*\b(?:was weißt du (?:alles )?(?:über|von) mich|what do you know about me)\b.*"
TALKED = r"(?:worüber|woran|was weißt du noch|what did we|what do you remember|what have we)\b.*"
QUESTION = r".*\?|(?:wer|wie|was|wo|wann|woher|wohin|welche\w*|who|how|what|where|when|which)\b.*"
CONVERSATION = (
    r'<conversation\b[^>]*title="(.*?)"[^>]*date="(.*?)"[^>]*>\s*(.*?)\s*'
    r"(?:<excerpt>.*?</excerpt>\s*)?</conversation>"
)
TRANSCRIPT_LINE = r"\[(?P<date>[^\]]*)\] (?:Nutzer|User): (?P<said>.+?)(?: \[(?:Anhang|Attachment): .*)?"
COMMON_WORDS = frozenset(STOP_WORDS.split())


class Fact(NamedTuple):
    id: int
    text: str


class Conversation(NamedTuple):
    title: str
    date: str
    summary: str


class Request(NamedTuple):
    """What a request tells the assistant."""

    english: bool
    facts: list[Fact]
    recalled: list[Conversation]  # the latest first
    said: list[str]  # the user's own texts
    tool: tuple[str, dict[str, Any], str] | None  # name, input and result of the call that just ran


def respond(body: Body) -> Reply:
    """The answer to a request of the app, made of nothing but that request."""
    if not body.get("stream") and not body.get("tools"):
        return Reply(_summary(body))
    request = _read(body)
    say = PHRASES["en" if request.english else "de"]
    answer = _after_tool(request, say) if request.tool else _answer(request, say)
    if isinstance(answer, str):
        answer = Text(answer, chunk_size=8, pause=0.01)
    return Reply(answer)


def _read(body: Body) -> Request:
    system = "\n".join(block["text"] for block in blocks_of(body.get("system")))
    said: list[str] = []
    recalled: list[Conversation] = []
    calls: dict[str, Any] = {}
    tool = None
    for message in body["messages"]:
        blocks = blocks_of(message["content"])
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        calls.update({block["id"]: block for block in blocks if block["type"] == "tool_use"})
        results = [block for block in blocks if block["type"] == "tool_result"]
        tool = None
        if message["role"] == "user" and results:
            call = calls[results[-1]["tool_use_id"]]
            result = "\n".join(part["text"] for part in blocks_of(results[-1].get("content")))
            tool = (call["name"], call["input"], result)
        elif message["role"] == "user":
            said.append(texts[-1].strip() if texts else "")
            recalled[:0] = _conversations(texts[:-1])
    return Request(_is_english(system), _facts(system), recalled, said, tool)


def _is_english(system: str) -> bool:
    if "Bekannte Fakten" in system or "Known facts" in system:
        return "Known facts about the user:" in system
    words = re.findall(r"\w+", system.lower())
    return sum(map(words.count, ("the", "of", "and"))) > sum(map(words.count, ("der", "die", "und", "den")))


def _facts(system: str) -> list[Fact]:
    found = re.findall(r"^- \[(\d+)\] (.+)$", system, re.MULTILINE)
    return [Fact(int(id_), text.strip()) for id_, text in found]


def _conversations(texts: list[str]) -> Iterator[Conversation]:
    for text in texts:
        if text.lstrip().startswith("<recalled_conversations>"):
            for parts in re.findall(CONVERSATION, text, re.DOTALL):
                yield Conversation(*(html.unescape(part) for part in parts))


def _is(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)


def _answer(request: Request, say: dict[str, str]) -> str | Text | ToolUse:
    text = request.said[-1]
    before = _is(FORGET, request.said[-2]) if len(request.said) > 1 else None
    if before and _is(YES, text) and (fact := _best(request.facts, before["fact"])):
        return ToolUse("forget_fact", {"query": fact.text, "fact_id": fact.id})
    if before and _is(NO, text):
        return say["kept"]
    if match := _is(REMEMBER, text):
        return ToolUse("remember_fact", {"fact": _statement(match)})
    if match := _is(FORGET, text):
        fact = _best(request.facts, match["fact"])
        return say["really"].format(fact=fact.text.rstrip(".")) if fact else say["unknown"]
    if _is(NOW, text):
        statement = _sentence(re.sub(r"\s*\b(?:jetzt|now)\b", "", text, flags=re.IGNORECASE))
        if fact := _best(request.facts, statement):
            return ToolUse("update_fact", {"fact_id": fact.id, "fact": statement})
        return ToolUse("remember_fact", {"fact": statement})
    if match := _is(SEARCH, text):
        return ToolUse("search_memory", {"query": match["query"].rstrip("?!. ")})
    if match := _is(DOCUMENTS, text):
        return ToolUse("search_documents", {"query": match["query"].rstrip("?!. ")})
    if re.search(r"\bmarkdown\b", text, re.IGNORECASE):
        return MARKDOWN
    if _is(r"(?:langsam|slowly)\b.*", text):
        sentences = (say["slow"].format(number=number) for number in range(1, SLOW_SENTENCES + 1))
        return Text(" ".join(sentences), chunk_size=20, pause=0.1)
    if _is(EVERYTHING, text) and request.facts:
        return "\n".join([say["facts"], *(f"- {_to_you(fact.text)}" for fact in request.facts)])
    if _is(GREETING, text):
        return say["greeting"]
    if _is(TALKED, text):
        return _from_recall(request, say, text) or _from_facts(request, text) or say["unknown"]
    if _is(QUESTION, text):
        return _from_facts(request, text) or _from_recall(request, say, text) or say["unknown"]
    return say["demo"]


def _from_facts(request: Request, question: str) -> str | None:
    fact = _best(request.facts, question)
    return _to_you(fact.text) if fact else None


def _from_recall(request: Request, say: dict[str, str], question: str) -> str | None:
    rated = [(_overlap(question, f"{one.title} {one.summary}"), one) for one in request.recalled]
    # "What did we talk about last time?" names no subject: what the app found first is the answer.
    best = max(rated, key=lambda pair: pair[0], default=None) if _content(question) else next(iter(rated), None)
    if best is None or (_content(question) and not best[0]):
        return None
    return say["talked"].format(**best[1]._asdict())


def _after_tool(request: Request, say: dict[str, str]) -> str:
    name, given, text = request.tool or ("", {}, "")
    try:
        result = json.loads(text)
    except ValueError:
        return say["failed"].format(reason=text)
    if name == "search_memory":
        lines = [f"- {line}" for line in _quotes(result)]
        return "\n".join([say["found"], *lines]) if lines else say["unknown"]
    if name == "search_documents":
        return _from_passage(result["passages"][0], say) if result["passages"] else say["unknown"]
    if name == "update_fact":
        return say["updated"].format(fact=_to_you(given["fact"]))
    if name == "remember_fact":
        key = "known" if result.get("already_known") else "remembered" if result.get("remembered") else "failed"
        return say[key].format(fact=_to_you(result.get("fact") or given["fact"]), reason=text)
    if result.get("deleted"):
        return say["forgotten"].format(fact=_to_you(result.get("content") or given["query"]))
    offered = result.get("matches") or result.get("suggestions") or []
    several = [one["content"] if isinstance(one, dict) else one for one in offered]
    return "\n".join([say["which"], *(f"- {one}" for one in several)]) if several else say["unknown"]


def _from_passage(passage: dict[str, Any], say: dict[str, str]) -> str:
    """The passage as a quotation, with its document and page."""
    place = say["page"].format(**passage) if "page" in passage else passage["document"]
    return say["quoted"].format(place=place, text=" ".join(passage["text"].split()))


def _quotes(result: Any) -> Iterator[str]:
    """One line for each hit in the result of a search, whatever its fields are called."""
    if isinstance(result, dict):
        words = [value for value in result.values() if isinstance(value, str)]
        nested = [value for value in result.values() if isinstance(value, list)]
        if words and not nested:
            yield ": ".join(words)
        result = [item for items in nested for item in items]
    for item in result if isinstance(result, list) else []:
        yield from [item] if isinstance(item, str) else _quotes(item)


def _statement(match: re.Match[str]) -> str:
    """The fact as a main clause: "dass mein Hund Bruno heißt" becomes "Mein Hund heißt Bruno"."""
    clause = match["fact"].strip().rstrip(".!")
    words = clause.split()
    if not match["that"] or "dass" not in match["that"] or len(words) < 3:
        return _sentence(clause)
    subject = 2 if re.fullmatch(r"mein\w*|unser\w*|der|die|das", words[0], re.IGNORECASE) else 1
    # A name belongs to the noun in front of it, unless the name is what the sentence says.
    if words[-1] != "heißt" and subject == 2 and len(words) > 4 and words[2][0].isupper():
        subject = 3
    return _sentence(" ".join([*words[:subject], words[-1], *words[subject:-1]]))


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".!")
    return text[:1].upper() + text[1:]


def _to_you(fact: str) -> str:
    """The fact as said to the user: "Dein Hund heißt Bruno.", "You live in Vienna."."""
    text = re.sub(r"\b([Mm])ein(e[mnrs]?)?\b", lambda m: ("D" if m[1] == "M" else "d") + "ein" + (m[2] or ""), fact)
    text = re.sub(r"\b([Mm])y\b", lambda m: "Your" if m[1] == "M" else "your", text)
    text = re.sub(r"\bI am\b|\bI'm\b", "You are", text)
    text = re.sub(r"^I\b", "You", text)
    text = re.sub(r"^Ich (\w+)", lambda m: f"Du {_second_person(m[1])}", text)
    return text if text.endswith((".", "!", "?")) else text + "."


def _second_person(verb: str) -> str:
    irregular = {
        "bin": "bist",
        "habe": "hast",
        "mag": "magst",
        "esse": "isst",
        "heiße": "heißt",
        "lese": "liest",
    }
    return irregular.get(verb) or (verb[:-1] if verb.endswith("e") and verb[-2] not in "td" else verb) + "st"


def _content(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in COMMON_WORDS]


def _overlap(asked: str, text: str) -> float:
    """How much of what was asked is in the text, from 0 to 1."""
    wanted = _content(asked)
    there = re.findall(r"\w+", text.lower())
    if not wanted:  # "Wie heiße ich?" has only common words: all but the first must be there
        wanted = re.findall(r"\w+", asked.lower())[1:]
        return float(bool(wanted) and set(wanted) <= set(there))
    return sum(any(_alike(word, other) for other in there) for word in wanted) / len(wanted)


def _alike(one: str, other: str) -> bool:
    return one == other or len(commonprefix([one, other])) >= max(4, 0.6 * max(len(one), len(other)))


def _best(facts: list[Fact], asked: str) -> Fact | None:
    best = max(facts, key=lambda fact: _overlap(asked, fact.text), default=None)
    return best if best and _overlap(asked, best.text) >= 0.5 else None


def _summary(body: Body) -> str:
    """Title and summary taken from the user's own lines of the transcript."""
    say = PHRASES["en" if _is_english(str(blocks_of(body.get("system")))) else "de"]
    text = blocks_of(body["messages"][-1]["content"])[-1]["text"]
    transcript = re.search(r"<transcript>(.*?)</transcript>", text, re.DOTALL)
    previous = re.search(r"<previous_summary>\s*(.*?)\s*</previous_summary>", text, re.DOTALL)
    spoken = (transcript[1] if transcript else "").splitlines()
    lines = [match for line in spoken if (match := _is(TRANSCRIPT_LINE, line))]
    told = [line for line in lines if not _is(f"{GREETING}|{YES}|{NO}", line["said"])] or lines
    before = html.unescape(previous[1]) if previous else ""
    subjects = [_subject(html.unescape(line["said"])) for line in told]
    new = [subject for subject in subjects if subject not in before][:8]
    date = told[0]["date"].rsplit(",", 1)[0] if told else ""
    now = say["spoke"].format(date=date, subjects="; ".join(new)) if new else ""
    title = " ".join(subjects[0].split()[:6]).rstrip("?!.,:") if subjects else say["chat"]
    return say["summary"].format(title=title, summary=f"{before} {now}".strip() or say["nothing"])


def _subject(text: str) -> str:
    """The first sentence, of a request to remember the fact in it."""
    first = re.split(r"(?<=[^\d][.!?]) ", text)[0]
    match = _is(REMEMBER, first)
    return _statement(match) if match else first.rstrip(".")

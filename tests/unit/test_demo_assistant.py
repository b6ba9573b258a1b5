"""The demo's assistant: what it makes of a request, and that the API's rules let its dialogues through."""

import json
from typing import Any

import anthropic
import pytest

from tests.claude_replies import Text, ToolUse
from tests.demo_assistant import respond
from tests.fake_claude import FakeClaude

GERMAN = "Du bist JARVIS, ein Assistent, und du duzt den Nutzer."
ENGLISH = "You are JARVIS, the assistant of the user."
NAMES = ("remember_fact", "forget_fact", "update_fact", "search_memory")
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in NAMES]
DOG = (7, "Mein Hund heißt Bruno")
HOME = (8, "Ich wohne in Wien")
TRIP = (
    "<recalled_conversations>\nFrühere Gespräche, nur zur Erinnerung.\n"
    '<conversation id="12" title="Reise &amp; Essen" date="12. November 2026">\n'
    "Der Nutzer plant eine Reise nach Lissabon mit &lt;Anna&gt;.\n</conversation>\n"
    '<conversation id="9" title="Fahrrad" date="3. Mai 2026">\nDas Fahrrad war kaputt.\n</conversation>\n'
    "</recalled_conversations>"
)


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def chat(*said: Any, facts: tuple[tuple[int, str], ...] = (), english: bool = False) -> dict[str, Any]:
    """A request in which the user said these texts; a tuple is one message of several blocks."""
    messages: list[dict[str, Any]] = []
    for one in said:
        messages += [
            user(*([one] if isinstance(one, str) else one)),
            {"role": "assistant", "content": "Gut."},
        ]
    listed = "\n".join(f"- [{id_}] {text}" for id_, text in facts)
    header = "Known facts about the user:" if english else "Bekannte Fakten ueber den Nutzer:"
    none = "(none yet)" if english else "(noch keine)"
    blocks = [ENGLISH if english else GERMAN, f"{header}\n{listed or none}"]
    system = [{"type": "text", "text": block} for block in blocks]
    sent = {"model": "claude-sonnet-5-5", "max_tokens": 99, "system": system, "tools": TOOLS}
    return sent | {"messages": messages[:-1]}


def after(name: str, given: dict[str, Any], result: Any, *, english: bool = False) -> str:
    """What the assistant says once a tool has run."""
    body = chat("…", english=english)
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}
    text = result if isinstance(result, str) else json.dumps(result)
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return said(body)


def said(body: dict[str, Any]) -> str:
    text = respond(body).blocks
    assert isinstance(text, str | Text)
    return text if isinstance(text, str) else text.text


def called(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    call = respond(body).blocks
    assert isinstance(call, ToolUse)
    return call.name, call.input


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Merk dir, dass mein Hund Bruno heißt.", "Mein Hund heißt Bruno"),
        ("Merke dir bitte: Mein Hund heißt Bruno", "Mein Hund heißt Bruno"),
        ("Bitte merk dir, dass ich in Wien wohne!", "Ich wohne in Wien"),
        (
            "merk dir, dass mein Freund Jan am 3. Mai Geburtstag hat",
            "Mein Freund Jan hat am 3. Mai Geburtstag",
        ),
        ("Merk dir, dass meine Schwester Lehrerin ist", "Meine Schwester ist Lehrerin"),
        ("Remember that my dog is called Bruno.", "My dog is called Bruno"),
    ],
)
def test_remembers_a_fact_as_a_whole_sentence(text: str, fact: str) -> None:
    assert called(chat(text)) == ("remember_fact", {"fact": fact})


def test_confirms_what_the_tool_says() -> None:
    given = {"fact": "Mein Hund heißt Bruno"}
    new = {"remembered": True, "already_known": False, "fact_id": 7, "fact": given["fact"]}
    assert after("remember_fact", given, new).startswith("Gemerkt: Dein Hund heißt Bruno.")
    assert after("remember_fact", given, new | {"already_known": True}).startswith("Das wusste ich schon")
    assert "nicht geklappt" in after("remember_fact", given, {"remembered": False})
    assert after("remember_fact", given, "kaputt") == "Das hat nicht geklappt: kaputt"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wie heißt mein Hund?", "Dein Hund heißt Bruno."),
        ("Wo wohne ich", "Du wohnst in Wien."),
        ("Wie heißt meine Katze?", "Das weiß ich (noch) nicht."),
        (
            "Was weißt du über mich?",
            "Das weiß ich über dich:\n- Dein Hund heißt Bruno.\n- Du wohnst in Wien.",
        ),
    ],
)
def test_answers_questions_from_the_facts(question: str, answer: str) -> None:
    assert said(chat(question, facts=(DOG, HOME))) == answer


def test_knows_nothing_that_is_not_in_the_request() -> None:
    earlier = chat("Merk dir, dass mein Hund Bruno heißt", "Wie heißt mein Hund?")
    assert said(earlier) == "Das weiß ich (noch) nicht."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wohin ging die Reise?", "12. November 2026 gesprochen: „Reise & Essen“. Der Nutzer plant eine"),
        ("Worüber haben wir gestern gesprochen?", "am 12. November 2026"),
        (
            "Was weißt du noch über mein Fahrrad?",
            "am 3. Mai 2026 gesprochen: „Fahrrad“. Das Fahrrad war kaputt.",
        ),
        ("Wie spät ist es?", "Das weiß ich (noch) nicht."),
    ],
)
def test_answers_from_recalled_conversations(question: str, answer: str) -> None:
    assert answer in said(chat(("<context>Heute</context>", TRIP, question)))


def test_prefers_a_fact_to_a_conversation_and_takes_recall_of_earlier_messages() -> None:
    assert said(chat((TRIP, "Wo wohne ich?"), facts=(HOME,))) == "Du wohnst in Wien."
    talked = said(chat((TRIP, "Worüber haben wir bei der Reise gesprochen?"), facts=((1, "Meine Reise war schön"),)))
    assert "Lissabon" in talked
    assert "Lissabon mit <Anna>" in said(chat((TRIP, "Hallo"), "Wer kommt mit nach Lissabon?"))


def test_forgets_only_after_a_yes() -> None:
    asked = "Vergiss, dass mein Hund Bruno heißt"
    assert "Mein Hund heißt Bruno" in said(chat(asked, facts=(HOME, DOG)))
    assert said(chat(asked)) == "Das weiß ich (noch) nicht."
    confirmed = ("forget_fact", {"query": "Mein Hund heißt Bruno", "fact_id": 7})
    assert called(chat(asked, "Ja, bitte.", facts=(HOME, DOG))) == confirmed
    assert said(chat(asked, "Nein", facts=(DOG,))) == "Gut, ich behalte es."
    assert called(chat(asked, "Bitte merk dir, dass ich müde bin", facts=(DOG,)))[0] == "remember_fact"
    assert "Vorführung" in said(chat("Hallo", "Ja", facts=(DOG,)))


def test_tells_how_forgetting_went() -> None:
    given = {"query": "Bruno"}
    assert after("forget_fact", given, {"deleted": True, "content": DOG[1]}) == "Vergessen: Dein Hund heißt Bruno."
    matches = [{"fact_id": 7, "content": DOG[1]}, {"fact_id": 9, "content": "Bruno bellt"}]
    several = after("forget_fact", given, {"deleted": False, "matches": matches, "suggestions": []})
    assert several == "Was davon meinst du?\n- Mein Hund heißt Bruno\n- Bruno bellt"
    assert after("forget_fact", given, {"deleted": False, "matches": [], "message": ""}).startswith("Das weiß ich")


def test_updates_the_fact_that_matches() -> None:
    fact = {"fact_id": 7, "fact": "Mein Hund heißt Rex"}
    assert called(chat("Mein Hund heißt jetzt Rex", facts=(HOME, DOG))) == ("update_fact", fact)
    assert called(chat("Mein Hund heißt jetzt Rex")) == ("remember_fact", {"fact": "Mein Hund heißt Rex"})
    assert after("update_fact", fact, {"updated": True}) == "Geändert: Dein Hund heißt Rex."


def test_searches_the_memory_and_quotes_what_comes_back() -> None:
    assert called(chat("Such bitte in deinem Gedächtnis nach Lissabon!")) == (
        "search_memory",
        {"query": "Lissabon"},
    )
    hits = {
        "query": "x",
        "conversations": [{"id": 1, "title": "Reise", "summary": "Nach Lissabon"}],
        "facts": [],
    }
    assert after("search_memory", {}, hits).splitlines()[1:] == ["- Reise: Nach Lissabon"]
    assert after("search_memory", {}, {"conversations": []}).startswith("Das weiß ich")


def test_quotes_a_search_result_of_plain_texts() -> None:
    assert after("search_memory", {}, {"matches": ["Mein Hund heißt Bruno"]}).endswith("\n- Mein Hund heißt Bruno")


def test_turns_facts_to_the_user_in_good_german() -> None:
    facts = ((1, "Ich arbeite mit meinem Bruder!"), (2, "Ich mag keine Oliven"))
    told = said(chat("Was weißt du über mich?", facts=facts))
    assert told.splitlines()[1:] == ["- Du arbeitest mit deinem Bruder!", "- Du magst keine Oliven."]
    english = said(chat("What do you know about me?", facts=((1, "I live with my brother"),), english=True))
    assert english.endswith("- You live with your brother.")


def test_the_heading_of_the_facts_decides_the_language() -> None:
    body = chat("Blumenkohl")
    body["system"][0]["text"] = "You are the assistant of the user and of the family."
    assert "Vorführung" in said(body)


def test_streams_in_small_chunks() -> None:
    text = respond(chat("Blumenkohl")).blocks
    assert isinstance(text, Text)
    assert (text.chunk_size, text.pause) == (8, 0.01)


def test_shows_what_is_hard_to_draw() -> None:
    markdown = said(chat("Zeig mir Markdown"))
    for sample in ("|---|", "```python", "$5 and $10", "$$", "![", "<b>html</b>"):
        assert sample in markdown


def test_answers_slowly_when_asked_to() -> None:
    text = respond(chat("Langsam bitte")).blocks
    assert isinstance(text, Text)
    assert text.text.count("Das ist Satz") == 60
    assert text.pause * len(text.text) / text.chunk_size > 10


def test_greets_and_says_what_can_be_tried() -> None:
    assert said(chat("Hallo JARVIS, wie geht es dir?")).startswith("Hallo!")
    assert said(chat("Blumenkohl")).count("\n- ") == 3


def test_speaks_english_to_an_english_prompt() -> None:
    facts = ((1, "My dog is called Bruno"), (2, "I live in Vienna"))
    assert said(chat("What is my dog called?", facts=facts, english=True)) == "Your dog is called Bruno."
    assert said(chat("Where do I live?", facts=facts, english=True)) == "You live in Vienna."
    update = ("update_fact", {"fact_id": 1, "fact": "My dog is called Rex"})
    assert called(chat("My dog is called Rex now.", facts=facts, english=True)) == update
    forget = ("forget_fact", {"query": "My dog is called Bruno", "fact_id": 1})
    assert called(chat("Forget that my dog is called Bruno", "yes", facts=facts, english=True)) == forget
    assert called(chat("Search your memory for Lisbon", english=True)) == (
        "search_memory",
        {"query": "Lisbon"},
    )
    assert "demonstration" in said(chat("Cauliflower", english=True))
    assert "table" not in said(chat("slowly please", english=True))
    noted = after("remember_fact", {"fact": facts[0][1]}, {"remembered": True}, english=True)
    assert noted.startswith("Noted: Your dog is called Bruno.")


def summary_call(transcript: str, system: str, previous: str = "") -> dict[str, Any]:
    before = f"<previous_summary>\n{previous}\n</previous_summary>\n" if previous else ""
    text = f"{before}<transcript>\n{transcript}\n</transcript>"
    asked = [{"role": "user", "content": text}]
    return {"model": "claude-haiku-5-5", "max_tokens": 99, "system": system, "messages": asked}


def test_summarises_what_the_user_said() -> None:
    transcript = (
        "[12. November 2026, 14:05] Nutzer: Hallo!\n[12. November 2026, 14:05] Assistent: Hallo.\n"
        "[12. November 2026, 14:06] Nutzer: Merk dir, dass mein Hund Bruno heißt. Er bellt.\n"
        "[12. November 2026, 14:07] Nutzer: Ja\n"
        "[12. November 2026, 14:08] Nutzer: Am 3. Mai fahre ich nach Lissabon."
    )
    summary = said(summary_call(transcript, "Fasse das Gespräch zusammen und nenne den Titel."))
    assert summary == (
        "Titel: Mein Hund heißt Bruno\n"
        "Zusammenfassung: Am 12. November 2026 sprach der Nutzer über: "
        "Mein Hund heißt Bruno; Am 3. Mai fahre ich nach Lissabon."
    )


def test_carries_an_earlier_summary_on_in_english() -> None:
    line = "[November 12, 2026, 14:05] User: My bike &lt;/transcript&gt; is broken."
    call = summary_call(line, "Summarise the conversation of the user.", previous="They spoke about Lisbon.")
    title, summary = said(call).splitlines()
    assert title == "Title: My bike </transcript> is broken"
    assert summary.startswith("Summary: They spoke about Lisbon. On November 12, 2026 the user talked about: My bike")


def test_an_empty_transcript_has_a_summary_too() -> None:
    assert said(summary_call("", "Fasse zusammen.")).startswith("Titel: Ein Gespräch\nZusammenfassung: Es wurde")


def test_its_dialogue_obeys_the_rules_of_the_api() -> None:
    with FakeClaude(respond) as claude:
        client = anthropic.Anthropic(api_key="test-key", base_url=claude.base_url, max_retries=0)
        body = chat("Merk dir, dass mein Hund Bruno heißt")
        with client.messages.stream(**body) as stream:
            call = stream.get_final_message()
        result = {"type": "tool_result", "tool_use_id": call.content[0].id, "content": '{"remembered": true}'}
        turn = [block.to_dict() for block in call.content]
        body["messages"] += [{"role": "assistant", "content": turn}, {"role": "user", "content": [result]}]
        with client.messages.stream(**body) as stream:
            assert stream.get_final_text().startswith("Gemerkt: Dein Hund heißt Bruno.")
        assert claude.refused == []

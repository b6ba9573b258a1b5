"""What the scripted assistant of the demo says, in German and in English. When: see demo_assistant.py."""

SLOW_SENTENCES = 60

# Words that say nothing about the subject of a question, one blank between two.
STOP_WORDS = (
    "wer wie was wo wann woher wohin welche welcher welches warum worüber woran ist sind war bin bist hat "
    "habe hast haben heißt heiße heißen ich du er sie es wir mein meine meiner meinem meinen dein deine "
    "mir mich dir der die das den dem des ein eine einen am an auf zu mit von über und oder in im noch "
    "denn weißt weiß gesprochen geredet letzte letztes letzten mal gestern heute dass nach bei who how "
    "what where when which why is are was am do does did has have had the a an my your i you we us it of "
    "to in on at with about and or called name know remember last time talk talked again that for me"
)

PHRASES = {
    "de": {
        "greeting": "Hallo! Schön, dass du da bist. Was möchtest du mir erzählen?",
        "demo": (
            "Das ist die Vorführung von JARVIS mit vorgefertigten Antworten. Probier zum Beispiel:\n\n"
            "- „Merk dir, dass mein Hund Bruno heißt“\n"
            "- in einem neuen Chat: „Wie heißt mein Hund?“\n"
            "- „Vergiss, dass mein Hund Bruno heißt“"
        ),
        "remembered": "Gemerkt: {fact} Das weiß ich auch im nächsten Chat noch.",
        "known": "Das wusste ich schon: {fact}",
        "updated": "Geändert: {fact}",
        "failed": "Das hat nicht geklappt: {reason}",
        "really": "Soll ich wirklich vergessen: „{fact}“? Antworte mit Ja oder Nein.",
        "kept": "Gut, ich behalte es.",
        "forgotten": "Vergessen: {fact}",
        "which": "Was davon meinst du?",
        "found": "Das habe ich in meinem Gedächtnis gefunden:",
        "facts": "Das weiß ich über dich:",
        "quoted": "Dort steht ({place}): „{text}“",
        "page": "{document}, S. {page}",
        "talked": "Darüber haben wir am {date} gesprochen: „{title}“. {summary}",
        "unknown": "Das weiß ich (noch) nicht.",
        "slow": "Das ist Satz {number} einer langen Antwort, die langsam erscheint.",
        "spoke": "Am {date} sprach der Nutzer über: {subjects}.",
        "chat": "Ein Gespräch",
        "nothing": "Es wurde nichts Bestimmtes gesprochen.",
        "summary": "Titel: {title}\nZusammenfassung: {summary}",
    },
    "en": {
        "greeting": "Hello! Good to see you. What would you like to tell me?",
        "demo": (
            "This is the demonstration of JARVIS with scripted answers. Try for example:\n\n"
            "- “Remember that my dog is called Bruno”\n"
            "- in a new chat: “What is my dog called?”\n"
            "- “Forget that my dog is called Bruno”"
        ),
        "remembered": "Noted: {fact} I will still know it in the next chat.",
        "known": "I knew that already: {fact}",
        "updated": "Changed: {fact}",
        "failed": "That did not work: {reason}",
        "really": "Shall I really forget “{fact}”? Answer yes or no.",
        "kept": "Fine, I keep it.",
        "forgotten": "Forgotten: {fact}",
        "which": "Which of these do you mean?",
        "found": "This is what I found in my memory:",
        "facts": "This is what I know about you:",
        "quoted": "It says ({place}): “{text}”",
        "page": "{document}, p. {page}",
        "talked": "We talked about this on {date}: “{title}”. {summary}",
        "unknown": "I do not know that (yet).",
        "slow": "This is sentence {number} of a long answer that appears slowly.",
        "spoke": "On {date} the user talked about: {subjects}.",
        "chat": "A conversation",
        "nothing": "Nothing in particular was discussed.",
        "summary": "Title: {title}\nSummary: {summary}",
    },
}

# Everything that is hard to show: prices beside a formula, foreign images, raw HTML.
MARKDOWN = """## Markdown

| Hund | Futter | Preis |
|---|---|---:|
| Bruno | Trockenfutter | $5 |
| Rex | Nassfutter | $10 |

Between $5 and $10, **bold**, _italic_, `code` and <b>html</b>.

```python
def greet(name: str) -> str:
    return f"Hallo {name}, das kostet $5"
```

$$
a^2 + b^2 = c^2
$$

![remote image](https://example.com/pixel.png?who=me)

1. one
2. two
"""

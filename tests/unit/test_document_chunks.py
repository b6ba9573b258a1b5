"""Where a document is cut: at headings, pages, paragraphs and sentences. Nothing of it is lost or said twice."""

import random

import pytest

from jarvis_memory.document_blocks import Block
from jarvis_memory.document_chunks import CHUNK_CHARACTERS, REST_CHARACTERS, Chunk, chunks_of

# 100 characters, with its full stop.
SENTENCE = "Der Mieter zahlt die Miete bis zum dritten Werktag des Monats und der Vermieter bestätigt das immer."


def text(said: str, page: int | None = None) -> Block:
    return Block(text=said, page=page)


def heading(said: str, level: int = 1, page: int | None = None) -> Block:
    return Block(text=said, page=page, heading_level=level)


def cut(*blocks: Block) -> list[tuple[str, str]]:
    return [(chunk.heading, chunk.content) for chunk in chunks_of(blocks)]


def contents(*blocks: Block) -> list[str]:
    return [chunk.content for chunk in chunks_of(blocks)]


def filled(characters: int, said: str = "ab ") -> str:
    return (said * characters)[: characters - 1] + "."


def test_nothing_gives_no_chunk() -> None:
    assert chunks_of([]) == []


def test_paragraphs_are_gathered_and_the_chunks_are_numbered() -> None:
    paragraphs = [text(filled(250, sign)) for sign in "abcde"]
    assert chunks_of(paragraphs) == [
        Chunk(number=0, page=None, heading="", content=f"{paragraphs[0].text}\n{paragraphs[1].text}"),
        Chunk(number=1, page=None, heading="", content=f"{paragraphs[2].text}\n{paragraphs[3].text}"),
        Chunk(number=2, page=None, heading="", content=paragraphs[4].text),
    ]


def test_a_chunk_has_at_most_600_characters_with_the_ends_of_lines() -> None:
    assert len(contents(text(filled(299)), text(filled(300)))) == 1
    assert len(contents(text(filled(300)), text(filled(300)))) == 2


def test_a_heading_ends_a_chunk_and_the_path_of_headings_stands_above() -> None:
    assert cut(
        text("Vorab"),
        heading("Mietvertrag"),
        text("Eins"),
        heading("Kündigung", 2),
        text("Zwei"),
        heading("Fristen", 3),
        text("Drei"),
        heading("Kaution", 2),
        text("Vier"),
        heading("Anhang"),
        text("Fünf"),
    ) == [
        ("", "Vorab"),
        ("Mietvertrag", "Eins"),
        ("Mietvertrag › Kündigung", "Zwei"),
        ("Mietvertrag › Kündigung › Fristen", "Drei"),
        ("Mietvertrag › Kaution", "Vier"),
        ("Anhang", "Fünf"),
    ]


def test_a_page_ends_a_chunk() -> None:
    chunks = chunks_of([heading("Titel", page=1), text("Eins", 1), text("Zwei", 2), text("Drei", 2)])
    assert [(chunk.page, chunk.heading, chunk.content) for chunk in chunks] == [
        (1, "Titel", "Eins"),
        (2, "Titel", "Zwei\nDrei"),
    ]


def test_a_path_that_is_too_long_is_cut_above_its_last_heading() -> None:
    blocks = [heading("Oben " * 30), heading("Mitte " * 20, 2), heading("Ganz unten", 3), text("x")]
    (chunk,) = chunks_of(blocks)
    assert len(chunk.heading) <= 200
    assert chunk.heading.startswith("Oben Oben")
    assert chunk.heading.endswith("… › Ganz unten")
    own = "x" * 199
    assert chunks_of([heading("Oben"), heading(own, 2), text("x")])[0].heading == own


def test_a_heading_that_is_as_long_as_a_paragraph_is_one() -> None:
    assert cut(heading("Wort " * 50 + "Ende"), text("Text")) == [("", "Wort " * 50 + "Ende\nText")]


def test_headings_without_text_are_not_lost() -> None:
    assert cut(
        heading("Inhalt"), heading("Eins", 2), heading("Zwei", 2), heading("Teil A"), heading("Eins", 2), text("Text")
    ) == [("", "Inhalt\nEins\nZwei"), ("Teil A › Eins", "Text")]
    assert cut(heading("Teil A"), text("Text"), heading("Leer", 2), heading("Voll", 2), text("Mehr")) == [
        ("Teil A", "Text"),
        ("Teil A", "Leer"),
        ("Teil A › Voll", "Mehr"),
    ]
    assert cut(heading("Teil A"), text("Text"), heading("Leer", 2), heading("Teil B"), heading("Teil C")) == [
        ("Teil A", "Text"),
        ("", "Leer\nTeil B\nTeil C"),
    ]


def test_headings_without_text_stay_on_their_pages() -> None:
    chunks = chunks_of([heading("Titelblatt", page=1), heading("Inhalt", page=2), heading("Eins", page=2)])
    assert [(chunk.page, chunk.content) for chunk in chunks] == [(1, "Titelblatt"), (2, "Inhalt\nEins")]


def test_a_long_paragraph_is_cut_at_the_ends_of_sentences() -> None:
    assert contents(text(" ".join([SENTENCE] * 10))) == [" ".join([SENTENCE] * 5), " ".join([SENTENCE] * 5)]


@pytest.mark.parametrize(
    "said",
    [
        "z. B. Äpfel",
        "d. h. Obst",
        "(vgl. Nr. 5)",
        "Dr. Müller",
        "Abs. 2",
        "bzw. Birnen",
        "ca. 5 Stück",
        "etc. Das",
        "Mr. Smith",
        "e.g. Apples",
        "i.e. Fruit",
        "am 1. Januar",
        "J. Bach",
        "so. und weiter",
    ],
)
def test_a_sentence_does_not_end_at_an_abbreviation_or_an_ordinal_number(said: str) -> None:
    # What is looked for would stand just where a chunk is full.
    long = f"{filled(501)} Xx {said} {filled(252)}"
    first, second = contents(text(long))
    assert first == filled(501)
    assert second == f"Xx {said} {filled(252)}"


@pytest.mark.parametrize("end", ["Ende.", "Ende!", "Ende?", "„Ende.“", "(Ende.)", "im Jahr 2020.", "Ende …"])
def test_a_sentence_ends_at_its_sign(end: str) -> None:
    assert contents(text(f"{filled(501)} Xx {end} Danach {filled(252)}")) == [
        f"{filled(501)} Xx {end}",
        f"Danach {filled(252)}",
    ]


def test_a_sentence_that_is_too_long_is_cut_at_the_end_of_a_line_or_at_a_blank_or_anywhere() -> None:
    assert contents(text("a" * 500 + "\n" + "b c " * 100)) == ["a" * 500, ("b c " * 100).strip()]
    assert [len(one) for one in contents(text("abcd " * 300))] == [599, 599, 299]
    assert [len(one) for one in contents(text("x" * 1_450))] == [600, 600, 250]


def test_a_very_small_rest_goes_to_the_chunk_before() -> None:
    assert contents(text(filled(550)), text(filled(119))) == [f"{filled(550)}\n{filled(119)}"]
    assert contents(text(filled(550)), text(filled(120))) == [filled(550), filled(120)]
    assert contents(text("x" * 650)) == ["x" * 650]
    assert contents(text(filled(550), 1), text("Kurz.", 2)) == [filled(550), "Kurz."]
    assert contents(text(filled(550)), heading("H"), text("Kurz.")) == [filled(550), "Kurz."]


def test_all_chunks_together_are_the_text_whatever_it_is() -> None:
    chance = random.Random(1)
    signs = 'aaaaaaaabcdeÄß ABC   ...!?,;"“\n\n1290'
    for _ in range(60):
        blocks = []
        for page in (1, 2, 3):
            for _ in range(chance.randint(0, 6)):
                said = "".join(chance.choices(signs, k=chance.choice([5, 80, 400, 3_000]))).strip() or "x"
                level = chance.choice([0, 0, 1, 2, 3])
                blocks.append(Block(text=said[:50].strip() if level else said, page=page, heading_level=level))
        chunks = chunks_of(blocks)
        assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
        assert all(0 < len(chunk.content) <= CHUNK_CHARACTERS + REST_CHARACTERS for chunk in chunks)
        shown = "".join(chunk.content for chunk in chunks)
        texts = [block for block in blocks if not block.heading_level]
        for page in (1, 2, 3):
            of_page = "".join(chunk.content for chunk in chunks if chunk.page == page)
            for block in texts:
                assert block.page != page or squeezed(block.text) in squeezed(of_page)
        shown += "".join(chunk.heading for chunk in chunks)
        for block in blocks:
            assert squeezed(block.text) in squeezed(shown)
        assert squeezed("".join(contents(*texts))) == squeezed("".join(block.text for block in texts))
        assert sum(len(squeezed(chunk.content)) for chunk in chunks) <= sum(len(squeezed(b.text)) for b in blocks)


def squeezed(said: str) -> str:
    return "".join(said.split())


def test_a_chunk_is_never_longer_than_said() -> None:
    assert CHUNK_CHARACTERS == 600
    assert max(len(one) for one in contents(*[text(SENTENCE * 3)] * 50)) <= 600

"""Files on the chat page: taken from the input, refused in a sentence without anything lost, shown in the history."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.database import Database, _create_engine
from jarvis_memory.running_turns import TURNS
from jarvis_memory.ui import files as files_module
from jarvis_memory.ui import wiring
from jarvis_memory.uploads import read_upload
from tests.fake_claude import FakeClaude
from tests.files import bomb, image, pdf
from tests.integration.chats import messages_of
from tests.integration.pages import TEXTS, chat_page, click, drawn, texts_in
from tests.integration.turns import ask, chat_requests, held

NOWHERE = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"


def sent(page: AppTest, message: str, *files: tuple[str, bytes]) -> AppTest:
    """The page after this was sent from its input."""
    page.chat_input(key="message").set_value(message)
    for name, data in files:
        page.chat_input(key="message").upload(name, data)
    return drawn(page)


def answered(page: AppTest) -> AppTest:
    turn = TURNS.get(int(page.query_params["c"][0]))
    assert turn is None or turn.done.wait(60)
    return drawn(page)


def in_the_input(page: AppTest) -> str | None:
    told = page.chat_input(key="message").proto
    return told.value if told.set_value else None


def kept(page: AppTest) -> list[str]:
    """The files that go with the next message."""
    return [button.label for button in page.button if (button.key or "").startswith("drop-file-")]


def names_of(pages: Parts, page: AppTest) -> list[list[str]]:
    """The names of the files of each message of the chat."""
    messages = messages_of(pages.database, pages.user_id, int(page.query_params["c"][0]))
    return [[block["name"] for block in message.blocks_of("attachment")] for message in messages]


def test_files_are_sent_and_shown_with_their_message(pages: Parts, claude: FakeClaude) -> None:
    page = sent(chat_page(), "Was ist das?", ("Foto.png", image()), ("notiz.md", b"# Hallo"))
    page = answered(page)
    [shown] = page.get("image")
    assert shown.proto.imgs[0].alt == "Foto.png"
    assert [one.label for one in page.get("download_button")] == ["notiz\\.md · 1 KB"]
    assert [block["type"] for block in chat_requests(claude)[0]["messages"][0]["content"]][:2] == ["image", "text"]
    assert kept(page) == []


def test_a_file_alone_is_a_message(pages: Parts) -> None:
    page = answered(sent(chat_page(), "", ("notiz.md", b"# Hallo")))
    assert names_of(pages, page) == [["notiz.md"], []]


def test_a_refused_file_is_named_and_text_and_the_other_files_stay(pages: Parts) -> None:
    page = sent(
        chat_page(), "Schau mal", ("gut.txt", b"gut"), ("zu_gross.png", bomb()), ("Bild.png", image()), ("x", b"\0")
    )
    assert texts_in(page.error) == [
        TEXTS.error("ImageHasTooManyPixels", {"name": "zu\\_gross\\.png", "limit": 80}),
        TEXTS.error("AttachmentUnknown", {"name": "x"}),
    ]
    assert in_the_input(page) == "Schau mal"
    assert TEXTS("chat.kept") in texts_in(page.caption)
    assert kept(page) == ["gut\\.txt · 1 KB", "Bild\\.png · 1 KB"]
    assert "c" not in page.query_params
    # The person presses Enter again.
    page = answered(sent(page, "Schau mal"))
    assert names_of(pages, page)[0] == ["gut.txt", "Bild.png"]
    assert kept(page) == []


def test_a_kept_file_can_be_left_out(pages: Parts) -> None:
    page = sent(chat_page(), "", ("eins.txt", b"1"), ("zwei.txt", b"2"), ("leer.txt", b" "))
    page = click(page, "drop-file-0")
    assert kept(page) == ["zwei\\.txt · 1 KB"]
    page = answered(sent(page, "Da"))
    assert names_of(pages, page)[0] == ["zwei.txt"]


def test_kept_files_stay_in_their_chat(pages: Parts) -> None:
    other = ask(pages, "Hallo").conversation_id
    page = sent(chat_page(), "", ("eins.txt", b"1"), ("leer.txt", b" "))
    page.query_params["c"] = str(other)
    page = drawn(page)
    assert kept(page) == []
    page = answered(sent(page, "Da"))
    assert names_of(pages, page) == [[], [], [], []]


def test_while_the_chat_answers_text_and_files_stay(pages: Parts, claude: FakeClaude) -> None:
    answer, started, release = held("Der Anfang, und das Ende.")
    claude.say(answer)
    page = sent(chat_page(), "Erzähl")
    assert started.wait(60)
    page = sent(page, "Und das?", ("eins.txt", b"1"))
    assert texts_in(page.error) == [TEXTS("error.TurnRunning")]
    assert (in_the_input(page), kept(page)) == ("Und das?", ["eins\\.txt · 1 KB"])
    release.set()
    page = answered(page)
    page = answered(sent(page, "Und das?"))
    assert names_of(pages, page) == [[], [], ["eins.txt"], []]


def test_without_a_database_text_and_files_stay(pages: Parts) -> None:
    page = chat_page()
    wiring.hand_in(replace(pages, database=Database(_create_engine(NOWHERE))))
    page = sent(page, "Lange überlegt", ("eins.txt", b"1"), ("leer.txt", b""))
    assert texts_in(page.error) == [
        TEXTS("error.DatabaseUnavailable"),
        TEXTS.error("AttachmentEmpty", {"name": "leer\\.txt"}),
    ]
    assert (in_the_input(page), kept(page)) == ("Lange überlegt", ["eins\\.txt · 1 KB"])
    wiring.hand_in(pages)
    page = answered(sent(page, "Lange überlegt"))
    assert names_of(pages, page)[0] == ["eins.txt"]


def test_a_pdf_becomes_its_text_for_a_model_of_ones_own(pages: Parts, claude: FakeClaude) -> None:
    page = answered(sent(chat_page(), "Wie viel?", ("Rechnung.pdf", pdf(said="42 Euro"))))
    assert names_of(pages, page)[0] == ["Rechnung.pdf.txt"]
    assert "42 Euro" in chat_requests(claude)[0]["messages"][0]["content"][0]["text"]


def test_of_many_images_the_newest_are_drawn_and_the_others_can_be_fetched(
    pages: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "IMAGES_SHOWN", 2)
    pictures = [read_upload(f"{number}.png", image(), pdfs=True) for number in range(3)]
    page = chat_page(ask(pages, "Drei", files=pictures).conversation_id)
    assert [one.proto.imgs[0].alt for one in page.get("image")] == ["1.png", "2.png"]
    assert [one.label for one in page.get("download_button")] == ["0\\.png · 1 KB"]

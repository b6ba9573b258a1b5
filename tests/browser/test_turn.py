"""A turn in the browser: it outlives reloads, other chats and closed tabs; Stop keeps what came; tabs stay apart."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.app_process import AppProcess
from tests.browser.driver import Visitor, visiting
from tests.fake_claude import FakeClaude, Text, wrong_key

BEGINNING = "Der Anfang. "
END = "Und das Ende."


@dataclass
class Held:
    """An answer that comes in part and goes on when the test lets it."""

    claude: FakeClaude
    _releases: list[threading.Event] = field(default_factory=list)

    def next_answer(self, end: str = END) -> threading.Event:
        """Claude's next answer is BEGINNING, and `end` once this event is set."""
        release = threading.Event()
        self._releases.append(release)
        self.claude.say(Text(BEGINNING + end, chunk_size=len(BEGINNING), release=release))
        return release

    def release_all(self) -> None:
        for release in self._releases:
            release.set()


@pytest.fixture
def held(app: AppProcess) -> Iterator[Held]:
    held = Held(app.claude)
    yield held
    held.release_all()


def say_and_see_the_beginning(visitor: Visitor, message: str) -> str:
    """Say it in a new chat. The path of that chat, while its answer is held."""
    visitor.open_chat()
    visitor.say(message)
    expect(visitor.answers).to_contain_text(BEGINNING.strip())
    expect(visitor.button("chat.stop")).to_be_visible()
    return f"/?c={visitor.conversation_id}"


def test_a_reload_in_the_middle_goes_on_showing_the_answer_live(visitor: Visitor, held: Held) -> None:
    release = held.next_answer()
    say_and_see_the_beginning(visitor, "Erzähl mir von der Elbe")
    visitor.page.reload()
    expect(visitor.answers).to_contain_text(BEGINNING.strip())
    expect(visitor.button("chat.stop")).to_be_visible()
    release.set()
    expect(visitor.complete_answer()).to_contain_text(BEGINNING + END)
    visitor.page.reload()
    expect(visitor.complete_answer()).to_contain_text(BEGINNING + END)
    expect(visitor.questions).to_have_count(1)


def test_another_chat_in_the_middle_does_not_disturb_the_answer(visitor: Visitor, held: Held) -> None:
    release = held.next_answer()
    say_and_see_the_beginning(visitor, "Erzähl mir von der Oder")
    visitor.new_chat()
    expect(visitor.ask("Hallo")).not_to_contain_text(BEGINNING.strip())
    visitor.listed("Erzähl mir von der Oder").click()
    expect(visitor.said).to_have_text(["Erzähl mir von der Oder"])
    expect(visitor.answers).to_contain_text(BEGINNING.strip())
    expect(visitor.button("chat.stop")).to_be_visible()
    release.set()
    expect(visitor.complete_answer()).to_contain_text(BEGINNING + END)


def test_the_answer_is_complete_for_who_closed_the_tab_and_comes_back_by_the_link(
    visitor: Visitor, held: Held, browser: Browser
) -> None:
    release = held.next_answer()
    link = say_and_see_the_beginning(visitor, "Erzähl mir von der Spree")
    visitor.page.close()
    release.set()
    with visiting(browser, visitor.address) as later:
        later.open(link)
        expect(later.complete_answer()).to_contain_text(BEGINNING + END)


def test_stop_keeps_what_came_and_retry_completes_it(visitor: Visitor, held: Held) -> None:
    held.next_answer()
    say_and_see_the_beginning(visitor, "Erzähl mir von der Havel")
    visitor.button("chat.stop").click()
    expect(visitor.answers).to_contain_text(visitor.texts("error.AnswerStopped"))
    expect(visitor.answers).to_contain_text(BEGINNING.strip())
    expect(visitor.button("chat.stop")).to_have_count(0)
    held.next_answer(end="Diesmal ganz.").set()
    visitor.button("chat.retry").click()
    answer = visitor.complete_answer()
    expect(answer).to_contain_text(BEGINNING + "Diesmal ganz.")
    expect(visitor.answers).to_have_count(1)
    expect(visitor.questions).to_have_count(1)
    expect(visitor.button("chat.retry")).to_have_count(0)


def test_a_second_tab_on_a_running_chat_is_refused_and_keeps_its_text(visitor: Visitor, held: Held) -> None:
    release = held.next_answer()
    link = say_and_see_the_beginning(visitor, "Erzähl mir von der Saale")
    second = visitor.another_tab(link)
    expect(second.answers).to_contain_text(BEGINNING.strip())
    second.say("Und von der Unstrut")
    expect(second.main.get_by_text(second.texts("error.TurnRunning"))).to_be_visible()
    expect(second.input).to_have_value("Und von der Unstrut")
    release.set()
    # Now it can be sent, and nothing was sent twice.
    second.complete_answer()
    expect(second.input).to_have_value("Und von der Unstrut")
    second.input.press("Enter")
    second.complete_answer(1)
    visitor.page.reload()
    visitor.complete_answer(1)
    expect(visitor.said).to_have_text(["Erzähl mir von der Saale", "Und von der Unstrut"])


def test_two_chats_answer_at_once_without_mixing(visitor: Visitor, held: Held) -> None:
    first_release = held.next_answer(end="Ende des Rheins.")
    say_and_see_the_beginning(visitor, "Erzähl mir vom Rhein")
    other = visitor.another_tab()
    second_release = held.next_answer(end="Ende des Mains.")
    say_and_see_the_beginning(other, "Erzähl mir vom Main")
    second_release.set()
    expect(other.complete_answer()).to_contain_text("Ende des Mains.")
    first_release.set()
    expect(visitor.complete_answer()).to_contain_text("Ende des Rheins.")


def test_a_failed_answer_says_why_and_retry_brings_it(visitor: Visitor, app: AppProcess) -> None:
    app.claude.say(wrong_key(), "Die Isar fließt durch München.")
    visitor.open_chat()
    visitor.say("Erzähl mir von der Isar")
    expect(visitor.answers).to_contain_text(visitor.texts("chat.failed"))
    expect(visitor.answers).to_contain_text(visitor.texts("error.ClaudeKeyRejected"))
    visitor.button("chat.retry").click()
    expect(visitor.answers).to_contain_text("Die Isar fließt durch München.")
    expect(visitor.page.get_by_text(visitor.texts("chat.failed"))).to_have_count(0)
    expect(visitor.said).to_have_text(["Erzähl mir von der Isar"])

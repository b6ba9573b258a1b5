"""The sidebar and the window of a long chat, without a browser: groups, archive, search, where a chat is opened."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from jarvis_memory.assembly import Parts
from jarvis_memory.preferences import save_choices
from jarvis_memory.ui.message_window import SHOWN
from tests.integration.chats import messages_of, run, said, somebody_else
from tests.integration.pages import CHAT, TEXTS, bulk, chat_page, click, drawn, memory_page, texts_in


def used(pages: Parts, title: str, *, ago: timedelta, **flags: bool) -> int:
    """A chat that was used last some time ago."""
    chat = said(pages.database, pages.user_id, ("Frage", "Ja."), title=title)
    set_flags = "".join(f", {name} = {value}" for name, value in flags.items())
    run(pages.database, f"UPDATE conversations SET updated_at = now() - :ago{set_flags} WHERE id = :c", ago=ago, c=chat)
    return chat


def listed(page: AppTest) -> list[str]:
    """The headings and entries of the list, in order; a heading with a colon."""
    shown = []
    for element in page.sidebar:
        if element.type == "button" and (element.key or "").startswith("conversation-"):
            shown.append(element.label)
        elif element.type == "caption":
            shown.append(f"{element.value}:")
    return shown


# --- the list ---------------------------------------------------------------------------------------------


def test_chats_are_grouped_by_time_with_the_pinned_ones_on_top(pages: Parts) -> None:
    with pages.database.begin() as connection:
        save_choices(connection, user_id=pages.user_id, time_zone="Europe/Berlin")
    zone = ZoneInfo("Europe/Berlin")
    now = datetime.now(zone)
    noon = now.replace(hour=12, minute=0)
    for title, moment, flags in [
        ("Uraltes", datetime(2024, 11, 3, tzinfo=UTC), {}),
        ("Älteres", datetime(2024, 12, 3, tzinfo=UTC), {}),
        ("Vor einer Woche", noon - timedelta(days=7), {}),
        ("Vorgestern", noon - timedelta(days=2), {}),
        ("Gestern früh", noon.replace(hour=0, minute=5) - timedelta(days=1), {}),
        ("Eben", now, {}),
        ("Wichtig", datetime(2024, 12, 3, tzinfo=UTC), {"pinned": True}),
        ("Weg", now, {"archived": True}),
    ]:
        used(pages, title, ago=now - moment, **flags)
    assert listed(chat_page()) == [
        f"{TEXTS('list.pinned')}:",
        "Wichtig",
        f"{TEXTS('list.today')}:",
        "Eben",
        f"{TEXTS('list.yesterday')}:",
        "Gestern früh",
        f"{TEXTS('list.last_week')}:",
        "Vorgestern",
        "Vor einer Woche",
        "Dezember 2024:",
        "Älteres",
        "November 2024:",
        "Uraltes",
    ]


def test_the_day_is_that_of_the_persons_time_zone(pages: Parts) -> None:
    # Where it is the most different from UTC, one of both is already or still another day.
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        with pages.database.begin() as connection:
            save_choices(connection, user_id=pages.user_id, time_zone=zone)
        midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0)
        chat = used(pages, "Kurz vor Mitternacht", ago=datetime.now(UTC) - midnight + timedelta(minutes=1))
        assert listed(chat_page()) == [f"{TEXTS('list.yesterday')}:", "Kurz vor Mitternacht"]
        run(pages.database, "DELETE FROM conversations WHERE id = :c", c=chat)


def test_the_archive_is_a_quiet_entry_that_leads_there_and_back(pages: Parts) -> None:
    used(pages, "Hier", ago=timedelta())
    page = chat_page()
    assert "archive" not in [button.key for button in page.button], "an empty archive needs no entry"
    for number in range(3):
        used(pages, f"Weg {number}", ago=timedelta(days=number + 20), archived=True)
    page = drawn(page)
    assert page.button(key="archive").label == f"{TEXTS('list.archive')} (3)"
    page = click(page, "archive")
    assert [label for label in listed(page) if not label.endswith(":")] == ["Weg 0", "Weg 1", "Weg 2"]
    page = click(page, "leave-archive")
    assert [label for label in listed(page) if not label.endswith(":")] == ["Hier"]


def test_an_archive_whose_last_chat_was_taken_out_shows_the_list(pages: Parts) -> None:
    chat = used(pages, "Weg", ago=timedelta(), archived=True)
    page = click(chat_page(chat), "archive")
    page = click(page, "unarchive")
    assert listed(page) == [f"{TEXTS('list.today')}:", "Weg"]
    assert "leave-archive" not in [button.key for button in page.button]


def test_two_thousand_chats_are_listed_with_one_query_for_what_is_shown(pages: Parts) -> None:
    bulk(
        pages,
        """INSERT INTO conversations (user_id, title, updated_at)
           SELECT :user_id, 'Chat ' || n, now() - interval '1 hour' * n FROM generate_series(1, 2000) AS n
           WHERE CAST(:model AS text) IS NOT NULL""",
    )
    page = click(chat_page(), "more-conversations")
    assert [label for label in listed(page) if label.startswith("Chat")] == [f"Chat {n}" for n in range(1, 81)]


# --- the search -------------------------------------------------------------------------------------------


def search(page: AppTest, query: str) -> AppTest:
    page.text_input(key="search-conversations").set_value(query)
    return drawn(page)


def found(page: AppTest) -> list[str]:
    return [button.label for button in page.sidebar.button if (button.key or "").startswith("found-")]


def test_what_is_found_stands_in_place_of_the_list_with_the_hit_marked(pages: Parts) -> None:
    said(pages.database, pages.user_id, ("Viele *Äpfel* für 3 $", "Ja."), title="Obst")
    said(pages.database, pages.user_id, ("Nichts", "Ja."), title="Leer")
    page = search(chat_page(), "äpfel")
    (label,) = found(page)
    title, _, snippet = label.split("  \n")
    assert title == "**Obst**"
    assert snippet == ":small[Viele \\*:primary-background[Äpfel]\\* für 3 \\$]"
    assert listed(page) == []
    assert search(page, "")
    assert "Leer" in listed(page)


def test_an_archived_chat_is_marked_where_it_is_found(pages: Parts) -> None:
    used(pages, "Im Schrank", ago=timedelta(), archived=True)
    (label,) = found(search(chat_page(), "schrank"))
    assert f" · {TEXTS('list.archive')}" in label


def test_a_search_without_a_hit_says_what_is_searched(pages: Parts) -> None:
    page = search(chat_page(), "nirgends")
    assert TEXTS("list.nothing_found") in texts_in(page.sidebar.caption)


def test_markup_in_titles_and_hits_is_shown_as_it_stands(pages: Parts) -> None:
    said(pages.database, pages.user_id, ("![x](http://a.example/b.png) <b>fett</b>", "Ja."), title=":red[rot] ] x")
    (label,) = found(search(chat_page(), "x"))
    assert "![" not in label
    assert "\\<b\\>" in label
    assert "**\\:red\\[rot\\] \\] :primary-background[x]**" in label


def test_a_hit_opens_the_chat_at_the_message_also_from_another_page(pages: Parts) -> None:
    chat = said(pages.database, pages.user_id, *((f"Frage {n}", f"Antwort {n}") for n in range(100)))
    hit = messages_of(pages.database, pages.user_id, chat)[20]
    page = search(memory_page(), "frage 10")
    page = click(page, f"found-{chat}")
    assert {name: "".join(value) for name, value in page.query_params.items()} == {"c": str(chat), "m": str(hit.id)}
    assert "Frage 10" in shown(page)


# --- the window of a long chat ------------------------------------------------------------------------------


@pytest.fixture
def long_chat(pages: Parts) -> int:
    """A chat of 500 messages."""
    chat = said(pages.database, pages.user_id, ("Frage 0", "Antwort 0"))
    with pages.database.begin() as connection:
        connection.execute(
            text(
                """INSERT INTO messages (conversation_id, user_id, role, content)
                   SELECT :c, :u, role, said || n FROM generate_series(1, 249) AS n,
                          (VALUES (1, 'user', 'Frage '), (2, 'assistant', 'Antwort ')) AS v(place, role, said)
                   ORDER BY n, place"""
            ),
            {"c": chat, "u": pages.user_id},
        )
    return chat


def shown(page: AppTest) -> list[str]:
    """The texts of the messages that are shown."""
    return [message.markdown[0].value for message in page.chat_message]


def at(chat: int, message: int | str) -> AppTest:
    page = AppTest.from_file(str(CHAT), default_timeout=60)
    page.query_params["c"] = str(chat)
    page.query_params["m"] = str(message)
    return drawn(page)


def keys(page: AppTest) -> list[str | None]:
    return [button.key for button in page.button]


def test_a_long_chat_shows_its_end_and_moves_back_and_forth(pages: Parts, long_chat: int) -> None:
    page = chat_page(long_chat)
    assert (len(shown(page)), shown(page)[0], shown(page)[-1]) == (SHOWN, "Frage 220", "Antwort 249")
    assert "load-later" not in keys(page)
    page = click(page, "earlier")
    assert (len(shown(page)), shown(page)[0], shown(page)[-1]) == (SHOWN, "Frage 205", "Antwort 234")
    page = click(page, "load-later")
    assert (len(shown(page)), shown(page)[-1]) == (SHOWN, "Frage 249")
    page = click(click(page, "earlier"), "earlier")
    assert shown(page)[0] == "Antwort 189"
    page = click(page, "to-the-end")
    assert (shown(page)[0], shown(page)[-1]) == ("Frage 220", "Antwort 249")


def test_a_chat_opened_at_a_message_shows_what_was_said_around_it(pages: Parts, long_chat: int) -> None:
    every = messages_of(pages.database, pages.user_id, long_chat)
    page = at(long_chat, every[200].id)
    assert (len(shown(page)), shown(page)[0], shown(page)[30]) == (SHOWN, "Frage 85", "Frage 100")
    assert {"earlier", "load-later", "to-the-end"} <= set(keys(page))
    assert any(f".st-key-message-{every[200].id}" in html.proto.body for html in page.get("html"))
    first, last = at(long_chat, every[0].id), at(long_chat, every[-1].id)
    assert ("earlier" in keys(first), "load-later" in keys(first)) == (False, True)
    assert ("earlier" in keys(last), "load-later" in keys(last)) == (True, False)
    assert shown(first)[0] == "Frage 0"
    assert shown(last)[-1] == "Antwort 249"


@pytest.mark.parametrize("message", ["abc", "0", "-1", "99999999", "1;alert(1)", "²"])
def test_a_link_to_no_message_of_the_chat_shows_its_end(pages: Parts, long_chat: int, message: str) -> None:
    page = at(long_chat, message)
    assert shown(page)[-1] == "Antwort 249"
    assert not any("alert" in html.proto.body for html in page.get("html"))


def test_a_link_to_a_message_of_another_chat_shows_the_end(pages: Parts, long_chat: int) -> None:
    other = somebody_else(pages.database)
    theirs = messages_of(pages.database, other, said(pages.database, other, ("Geheim", "Ja.")))[0].id
    elsewhere = said(pages.database, pages.user_id, ("Woanders", "Ja."))
    for message in (theirs, messages_of(pages.database, pages.user_id, elsewhere)[0].id):
        page = at(long_chat, message)
        assert shown(page)[-1] == "Antwort 249"
        assert not {"Geheim", "Woanders"} & set(shown(page))


# --- the menu of a chat ---------------------------------------------------------------------------------------


def choose(page: AppTest, action: str) -> AppTest:
    page.menu_button(key="menu").click(action)
    return drawn(page)


def test_a_chat_is_pinned_and_unpinned(pages: Parts) -> None:
    page = choose(chat_page(used(pages, "Meins", ago=timedelta())), "pin")
    assert listed(page) == [f"{TEXTS('list.pinned')}:", "Meins"]
    page = choose(page, "unpin")
    assert listed(page) == [f"{TEXTS('list.today')}:", "Meins"]


def test_an_archived_chat_says_so_and_is_taken_back_by_a_click(pages: Parts) -> None:
    page = choose(chat_page(used(pages, "Meins", ago=timedelta(), pinned=True)), "archive")
    assert any(TEXTS("conversation.archived") in value for value in texts_in(page.main.markdown))
    assert "Meins" not in listed(page)
    page = click(page, "unarchive")
    assert listed(page) == [f"{TEXTS('list.today')}:", "Meins"]
    assert not any(TEXTS("conversation.archived") in value for value in texts_in(page.main.markdown))


def test_a_dialog_stays_open_when_the_page_is_drawn_anew(pages: Parts) -> None:
    page = choose(chat_page(used(pages, "Meins", ago=timedelta())), "rename")
    page = drawn(page)
    assert page.text_input(key="title").value == "Meins"

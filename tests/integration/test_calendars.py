"""Calendars on a real CalDAV server: what is found, what is written, what others see of it, and what can go wrong."""

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import trustme

from jarvis_memory.calendar_server import CalendarServer, connect
from jarvis_memory.calendar_session import CalendarSession
from jarvis_memory.calendars import (
    Event,
    Listing,
    check_calendar,
    choose_calendar,
    create_event,
    delete_event,
    find_free_time,
    get_event,
    list_events,
    update_event,
)
from jarvis_memory.errors import (
    AppointmentChanged,
    CalendarUnknown,
    JarvisError,
    SeriesCannotMove,
    ServiceAnswerUnusable,
    ServiceFolderMissing,
    ServiceLoginRejected,
    ServiceNotSecure,
    ServiceUnreachable,
)
from jarvis_memory.settings import Settings
from tests.radicale_server import PASSWORD, RadicaleServer

BERLIN = ZoneInfo("Europe/Berlin")
VTIMEZONE = [
    *("BEGIN:VTIMEZONE", "TZID:Europe/Berlin"),
    *("BEGIN:DAYLIGHT", "DTSTART:19700329T020000", "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU"),
    *("TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "TZNAME:CEST", "END:DAYLIGHT"),
    *("BEGIN:STANDARD", "DTSTART:19701025T030000", "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU"),
    *("TZOFFSETFROM:+0200", "TZOFFSETTO:+0100", "TZNAME:CET", "END:STANDARD", "END:VTIMEZONE"),
]
# Every Monday at ten, from 12 October 2026; the clocks change on Sunday the 25th.
WEEKLY = ["DTSTART;TZID=Europe/Berlin:20261012T100000", "DTEND;TZID=Europe/Berlin:20261012T110000"]
WEEKLY += ["RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20261214T090000Z", "SUMMARY:Jour fixe"]


def vevent(uid: str, *lines: str) -> list[str]:
    return ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20261001T000000Z", *lines, "END:VEVENT"]


def at(day: int, hour: int = 0, minute: int = 0, month: int = 10) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


@pytest.fixture(scope="module")
def radicale() -> Iterator[RadicaleServer]:
    with RadicaleServer() as running:
        yield running


@pytest.fixture
def phone(radicale: RadicaleServer) -> RadicaleServer:
    """The same server as another program sees it, with its two calendars empty."""
    radicale.empty()
    return radicale


@pytest.fixture
def server(phone: RadicaleServer) -> Iterator[CalendarServer]:
    with connect(phone.settings) as connected:
        yield connected


def listed(server: CalendarServer, start: datetime, end: datetime, query: str = "") -> Listing:
    return list_events(server, start, end, BERLIN, query)


def only(listing: Listing) -> Event:
    [event] = listing.events
    return event


def starts(server: CalendarServer, start: datetime, end: datetime) -> list[str]:
    return [f"{event.appointment.start:%d.%m. %H:%M}" for event in listed(server, start, end).events]


def create(server: CalendarServer, title: str, start: Any, end: Any, **more: Any) -> Event:
    values = {"title": title, "start": start, "end": end, **more}
    return create_event(server, choose_calendar(server, more.pop("calendar", None)), values, BERLIN)


# --- looking ----------------------------------------------------------------------------------------------


def test_what_another_program_stored_is_listed_from_all_calendars_in_the_order_of_time(
    phone: RadicaleServer, server: CalendarServer
) -> None:
    phone.put("arbeit/b.ics", *vevent("b", "DTSTART:20261020T120000Z", "DTEND:20261020T130000Z", "SUMMARY:Büro"))
    phone.put(
        "privat/a.ics",
        *VTIMEZONE,
        *vevent(
            *("a", "DTSTART;TZID=Europe/Berlin:20261020T090000", "DURATION:PT30M", "SUMMARY:Übung\\, groß"),
            *("LOCATION:Straße 1", "DESCRIPTION:Zeile 1\\nZeile 2"),
            *('ATTENDEE;CN="Ben Ömer";PARTSTAT=ACCEPTED:mailto:ben@example.org', "ATTENDEE:mailto:eva@example.org"),
        ),
    )
    listing = listed(server, at(20), at(21))
    assert [calendar.name for calendar in listing.calendars] == ["Privat", "Arbeit & Büro"]
    first, second = listing.events
    assert (first.calendar.name, second.calendar.name) == ("Privat", "Arbeit & Büro")
    one = first.appointment
    assert (one.title, one.location, one.description) == ("Übung, groß", "Straße 1", "Zeile 1\nZeile 2")
    assert (one.start, one.end, one.all_day, one.recurring) == (at(20, 9), at(20, 9, 30), False, False)
    assert [(a.name, a.email, a.status) for a in one.attendees] == [
        ("Ben Ömer", "ben@example.org", "accepted"),
        ("", "eva@example.org", "needs-action"),
    ]
    assert second.appointment.start.isoformat() == "2026-10-20T14:00:00+02:00"


def test_a_weekly_meeting_stays_at_its_hour_when_the_clocks_change(
    phone: RadicaleServer, server: CalendarServer
) -> None:
    phone.put("privat/w.ics", *VTIMEZONE, *vevent("w", *WEEKLY))
    found = [event.appointment for event in listed(server, at(17), at(1, month=11)).events]
    assert [one.start.isoformat() for one in found] == ["2026-10-19T10:00:00+02:00", "2026-10-26T10:00:00+01:00"]
    assert all(one.recurring for one in found)


def test_a_meeting_on_the_sunday_of_the_change_is_at_its_hour(phone: RadicaleServer, server: CalendarServer) -> None:
    created = create(server, "Brunch", at(25, 11), at(25, 12))
    assert created.appointment.start.isoformat() == "2026-10-25T11:00:00+01:00"
    assert only(listed(server, at(25), at(26))).appointment.start == at(25, 11)
    stored = phone.get(created.id.removeprefix("/anna@example.org/"))
    assert "DTSTART;TZID=Europe/Berlin:20261025T110000" in stored
    assert "BEGIN:VTIMEZONE" in stored


def test_days_are_days_of_the_person_and_end_with_the_last_one(phone: RadicaleServer, server: CalendarServer) -> None:
    created = create(server, "Urlaub", date(2026, 10, 24), date(2026, 10, 26))
    stored = phone.get(created.id.removeprefix("/anna@example.org/"))
    assert "DTSTART;VALUE=DATE:20261024" in stored
    assert "DTEND;VALUE=DATE:20261027" in stored
    for day in (24, 25, 26):
        one = only(listed(server, at(day), at(day + 1))).appointment
        assert (one.start, one.end, one.all_day) == (date(2026, 10, 24), date(2026, 10, 26), True)
    assert listed(server, at(23), at(24)).events == []
    assert listed(server, at(27), at(28)).events == []


def test_an_appointment_over_midnight_belongs_to_both_days_and_one_that_ends_then_to_the_first(
    phone: RadicaleServer, server: CalendarServer
) -> None:
    create(server, "Fest", at(10, 22), at(11, 2))
    create(server, "Kino", at(10, 20), at(11))
    assert [event.appointment.title for event in listed(server, at(10), at(11)).events] == ["Kino", "Fest"]
    assert [event.appointment.title for event in listed(server, at(11), at(12)).events] == ["Fest"]


def test_a_time_without_a_zone_is_the_persons(phone: RadicaleServer, server: CalendarServer) -> None:
    phone.put("privat/f.ics", *vevent("f", "DTSTART:20261020T233000", "DTEND:20261020T235900", "SUMMARY:Spät"))
    assert only(listed(server, at(20), at(21))).appointment.start == at(20, 23, 30)
    assert listed(server, at(21), at(22)).events == []


def test_a_search_finds_words_in_title_place_text_and_people(phone: RadicaleServer, server: CalendarServer) -> None:
    create(server, "Zahnarzt", at(5, 9), at(5, 10), location="Größe-Straße", description="Karte mitnehmen")
    create(server, "Essen", at(5, 12), at(5, 13), attendees=["ben@example.org"])
    for query, titles in {
        "zahnarzt GRÖSSE": ["Zahnarzt"],
        "karte": ["Zahnarzt"],
        "ben@": ["Essen"],
        "zahnarzt essen": [],
        "": ["Zahnarzt", "Essen"],
    }.items():
        assert [event.appointment.title for event in listed(server, at(5), at(6), query).events] == titles


def test_a_cancelled_appointment_is_none(phone: RadicaleServer, server: CalendarServer) -> None:
    phone.put("privat/c.ics", *vevent("c", "DTSTART:20261020T100000Z", "STATUS:CANCELLED", "SUMMARY:Abgesagt"))
    assert listed(server, at(20), at(21)).events == []


@pytest.mark.parametrize(
    "broken",
    [
        ["DTSTART:kaputt", "SUMMARY:X"],
        ["SUMMARY:Ohne Zeit"],
        ["DTSTART:20261020T100000Z", "RRULE:FREQ=SECONDLY"],
        ["DTSTART:19700101T100000Z", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"],
        ["DTSTART:20261020T100000Z", "RRULE:FREQ=MANCHMAL"],
        ["DTSTART:20261020T100000Z", "RECURRENCE-ID:nie"],
    ],
)
def test_damaged_appointments_are_counted_and_the_others_listed(broken: list[str]) -> None:
    good = vevent("g", "DTSTART:20261020T100000Z", "SUMMARY:Gut")
    texts = ["\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"]) for lines in (vevent("b", *broken), good)]
    with LyingServer(texts) as lying, connect(lying.settings) as server:
        listing = listed(server, at(20), at(21))
    assert [event.appointment.title for event in listing.events] == ["Gut"]
    assert listing.skipped == 1


@pytest.mark.parametrize("text", ["", "kein Kalender", "BEGIN:VCALENDAR\nBEGIN:VEVENT\n"])
def test_what_is_no_calendar_at_all_is_counted(text: str) -> None:
    without_uid = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261020T100000Z\nEND:VEVENT\nEND:VCALENDAR"
    with (
        LyingServer([text.replace("\x00", "&#65533;") or "x", without_uid]) as lying,
        connect(lying.settings) as server,
    ):
        listing = listed(server, at(20), at(21))
    assert (listing.events, listing.skipped) == ([], 2)


# --- free time --------------------------------------------------------------------------------------------


def free(server: CalendarServer, start: datetime, end: datetime, minutes: int, hours: tuple[int, int]) -> list[str]:
    gaps = find_free_time(server, start, end, BERLIN, length=timedelta(minutes=minutes), hours=hours)
    return [f"{begin:%d. %H:%M}-{finish:%H:%M}" for begin, finish in gaps]


def test_free_time_is_what_no_calendar_takes(phone: RadicaleServer, server: CalendarServer) -> None:
    create(server, "A", at(5, 9), at(5, 11))
    create(server, "B", at(5, 10), at(5, 12), calendar="Arbeit & Büro")
    create(server, "C", at(5, 12, 20), at(5, 15))
    create(server, "Geburtstag", date(2026, 10, 5), date(2026, 10, 5))
    assert free(server, at(5), at(7), 30, (8, 16)) == ["05. 08:00-09:00", "05. 15:00-16:00", "06. 08:00-16:00"]
    assert free(server, at(5, 8, 45), at(5, 15, 30), 20, (8, 16)) == ["05. 12:00-12:20", "05. 15:00-15:30"]


def test_free_time_counts_the_hours_of_the_day_on_which_the_clocks_change(
    phone: RadicaleServer, server: CalendarServer
) -> None:
    assert free(server, at(25), at(26), 60 * 25, (0, 24)) == ["25. 00:00-00:00"]
    assert free(server, at(26), at(27), 60 * 25, (0, 24)) == []


# --- changing ---------------------------------------------------------------------------------------------


def test_a_change_keeps_what_it_does_not_name(phone: RadicaleServer, server: CalendarServer) -> None:
    lines = ["DTSTART:20261020T100000Z", "DURATION:PT45M", "SUMMARY:Alt", "LOCATION:Hier", "X-EIGEN:bleibt"]
    alarm = ["BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT10M", "DESCRIPTION:Los", "END:VALARM"]
    phone.put("privat/a.ics", *vevent("a", *lines, *alarm))
    event = only(listed(server, at(20), at(21)))
    changes = {"title": "Neu", "start": at(21, 15)}
    changed = update_event(server, event.id, event.version, changes, "all", BERLIN)
    assert (changed.appointment.title, changed.appointment.start) == ("Neu", at(21, 15))
    assert only(listed(server, at(21), at(22))).appointment.end == at(21, 15, 45)
    stored = phone.get("privat/a.ics")
    assert "DTSTART;TZID=Europe/Berlin:20261021T150000" in stored
    assert all(line in stored for line in ("LOCATION:Hier", "X-EIGEN:bleibt", "BEGIN:VALARM", "SEQUENCE:1"))


def test_a_timed_appointment_becomes_days_and_back(phone: RadicaleServer, server: CalendarServer) -> None:
    event = create(server, "Ausflug", at(10, 9), at(10, 17))
    days = {"start": date(2026, 10, 10), "end": date(2026, 10, 11)}
    listed_event = get_event(server, event.id, BERLIN)
    update_event(server, event.id, listed_event.version, days, "all", BERLIN)
    one = only(listed(server, at(11), at(12))).appointment
    assert (one.start, one.end) == (date(2026, 10, 10), date(2026, 10, 11))
    again = get_event(server, event.id, BERLIN)
    update_event(server, event.id, again.version, {"start": at(10, 9)}, "all", BERLIN)
    assert get_event(server, event.id, BERLIN).appointment.end == at(10, 10)


@pytest.fixture
def series(phone: RadicaleServer, server: CalendarServer) -> Event:
    """The occurrence of 26 October of a weekly series."""
    phone.put("privat/w.ics", *VTIMEZONE, *vevent("w", *WEEKLY))
    return only(listed(server, at(26), at(27)))


def test_one_of_a_series_is_changed_alone(phone: RadicaleServer, server: CalendarServer, series: Event) -> None:
    changes = {"start": at(27, 14), "title": "Verlegt"}
    changed = update_event(server, series.id, series.version, changes, "this", BERLIN)
    assert (changed.id, changed.appointment.start, changed.appointment.end) == (series.id, at(27, 14), at(27, 15))
    assert starts(server, at(18), at(3, month=11)) == ["19.10. 10:00", "27.10. 14:00", "02.11. 10:00"]
    # Once more: the one that differs already.
    again = get_event(server, series.id, BERLIN)
    assert again.appointment.title == "Verlegt"
    update_event(server, series.id, again.version, {"start": at(28, 9)}, "this", BERLIN)
    assert starts(server, at(18), at(3, month=11)) == ["19.10. 10:00", "28.10. 09:00", "02.11. 10:00"]
    assert phone.get("privat/w.ics").count("BEGIN:VEVENT") == 2


def test_one_of_a_series_is_deleted_alone(phone: RadicaleServer, server: CalendarServer, series: Event) -> None:
    delete_event(server, series.id, series.version, "this")
    assert starts(server, at(18), at(3, month=11)) == ["19.10. 10:00", "02.11. 10:00"]
    assert "EXDATE;TZID=Europe/Berlin:20261026T100000" in phone.get("privat/w.ics")
    with pytest.raises(AppointmentChanged):
        get_event(server, series.id, BERLIN)


def test_one_that_was_moved_is_deleted_alone(phone: RadicaleServer, server: CalendarServer, series: Event) -> None:
    update_event(server, series.id, series.version, {"start": at(27, 14)}, "this", BERLIN)
    delete_event(server, series.id, get_event(server, series.id, BERLIN).version, "this")
    assert starts(server, at(18), at(3, month=11)) == ["19.10. 10:00", "02.11. 10:00"]


def test_a_whole_series_moves_with_what_was_left_out_and_moved(
    phone: RadicaleServer, server: CalendarServer, series: Event
) -> None:
    delete_event(server, series.id, series.version, "this")
    second = only(listed(server, at(2, month=11), at(3, month=11)))
    update_event(server, second.id, second.version, {"start": at(5, 16, month=11), "title": "Anders"}, "this", BERLIN)
    first = only(listed(server, at(19), at(20)))
    # From Monday at ten to Tuesday at half past eleven, an hour and a half long.
    changes = {"start": at(20, 11, 30), "end": at(20, 13), "title": "Neuer Name"}
    changed = update_event(server, first.id, first.version, changes, "all", BERLIN)
    assert changed.appointment.title == "Neuer Name"
    assert starts(server, at(18), at(12, month=11)) == ["20.10. 11:30", "05.11. 16:00", "10.11. 11:30"]
    found = [event.appointment for event in listed(server, at(5, month=11), at(31, month=12)).events]
    assert [one.title for one in found[:2]] == ["Anders", "Neuer Name"]
    assert (found[-1].start, found[-1].end) == (at(15, 11, 30, month=12), at(15, 13, month=12))


def test_a_whole_series_is_deleted(phone: RadicaleServer, server: CalendarServer, series: Event) -> None:
    delete_event(server, series.id, series.version, "all")
    assert starts(server, at(1), at(31)) == []


def test_days_that_repeat_are_changed_and_left_out(phone: RadicaleServer, server: CalendarServer) -> None:
    lines = ["DTSTART;VALUE=DATE:20261001", "RRULE:FREQ=MONTHLY;COUNT=4", "SUMMARY:Miete"]
    phone.put("privat/m.ics", *vevent("m", *lines))
    november = only(listed(server, at(1, month=11), at(2, month=11)))
    assert november.appointment.start == date(2026, 11, 1)
    delete_event(server, november.id, november.version, "this")
    december = only(listed(server, at(1, month=12), at(2, month=12)))
    update_event(server, december.id, december.version, {"start": date(2026, 12, 3)}, "all", BERLIN)
    found = [event.appointment.start for event in listed(server, at(1), at(31, month=12)).events]
    assert found == [date(2026, 10, 3), date(2026, 12, 3)]


def test_a_series_by_a_rule_of_weekdays_in_the_month_does_not_move_to_another_day(
    phone: RadicaleServer, server: CalendarServer
) -> None:
    lines = ["DTSTART:20261005T100000Z", "DTEND:20261005T110000Z", "RRULE:FREQ=MONTHLY;BYDAY=1MO", "SUMMARY:Runde"]
    phone.put("privat/r.ics", *vevent("r", *lines))
    event = only(listed(server, at(5), at(6)))
    with pytest.raises(SeriesCannotMove):
        update_event(server, event.id, event.version, {"start": at(6, 12)}, "all", BERLIN)
    with pytest.raises(SeriesCannotMove):
        update_event(server, event.id, event.version, {"start": date(2026, 10, 5)}, "all", BERLIN)
    update_event(server, event.id, event.version, {"start": at(5, 15)}, "all", BERLIN)
    assert starts(server, at(1), at(5, month=11)) == ["05.10. 15:00", "02.11. 14:00"]


def test_what_was_changed_meanwhile_is_not_overwritten(
    phone: RadicaleServer, server: CalendarServer, series: Event
) -> None:
    phone.put("privat/w.ics", *VTIMEZONE, *vevent("w", *WEEKLY, "LOCATION:Vom Handy"))
    with pytest.raises(AppointmentChanged):
        update_event(server, series.id, series.version, {"title": "Neu"}, "all", BERLIN)
    with pytest.raises(AppointmentChanged):
        delete_event(server, series.id, series.version, "all")
    assert "LOCATION:Vom Handy" in phone.get("privat/w.ics")


def test_what_is_changed_between_looking_and_writing_is_not_overwritten(
    phone: RadicaleServer, server: CalendarServer, series: Event
) -> None:
    stored = server.load(series.calendar, series.id.partition("#")[0])
    assert stored is not None
    phone.put("privat/w.ics", *VTIMEZONE, *vevent("w", *WEEKLY, "LOCATION:Vom Handy"))
    with pytest.raises(AppointmentChanged):
        server.replace(stored, stored.data)
    with pytest.raises(AppointmentChanged):
        server.delete(stored)
    assert "LOCATION:Vom Handy" in phone.get("privat/w.ics")


def test_what_was_deleted_meanwhile_is_said_to_be_gone(
    phone: RadicaleServer, server: CalendarServer, series: Event
) -> None:
    phone.request("DELETE", "privat/w.ics")
    with pytest.raises(AppointmentChanged):
        get_event(server, series.id, BERLIN)


@pytest.mark.parametrize(
    "event_id",
    ["", "#", "/", "/etc/passwd", "privat/w.ics", "/anna@example.org/privat/", "/anna@example.org/privat/../arbeit/a"]
    + ["/anna@example.org/privat/w.ics#unsinn", "/anna@example.org/privat/w.ics", "https://example.org/w.ics"],
)
def test_a_name_that_was_made_up_finds_nothing(server: CalendarServer, series: Event, event_id: str) -> None:
    with pytest.raises(AppointmentChanged):
        get_event(server, event_id, BERLIN)


def test_a_calendar_is_chosen_by_its_name(phone: RadicaleServer, server: CalendarServer) -> None:
    assert choose_calendar(server, None).name == "Privat"
    assert choose_calendar(server, "arbeit & büro").name == "Arbeit & Büro"
    with pytest.raises(CalendarUnknown):
        choose_calendar(server, "Verein")


# --- the server -------------------------------------------------------------------------------------------


def test_a_calendar_that_works_is_found_by_the_check(phone: RadicaleServer) -> None:
    check_calendar(phone.settings)
    check_calendar(phone.settings_with(caldav_url=f"{phone.url}/anna@example.org/privat/"))


def test_without_a_calendar_the_check_says_so(phone: RadicaleServer) -> None:
    phone.request("DELETE", "privat/")
    phone.request("DELETE", "arbeit/")
    with pytest.raises(ServiceFolderMissing):
        check_calendar(phone.settings)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"caldav_password": "falsch"}, ServiceLoginRejected),
        ({"caldav_username": "ben"}, ServiceLoginRejected),
        ({"caldav_password": None}, ServiceLoginRejected),
        ({"caldav_url": "http://127.0.0.1:1/"}, ServiceUnreachable),
        ({"caldav_url": "https://nowhere.invalid/"}, ServiceUnreachable),
        ({"caldav_url": "http://calendar.example.org/"}, ServiceNotSecure),
    ],
)
def test_what_is_wrong_with_the_settings_has_an_error_of_its_own(
    phone: RadicaleServer, settings: dict[str, Any], kind: type[JarvisError], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(kind) as raised:
        check_calendar(phone.settings_with(**settings), timeout=2)
    assert raised.value.details["service"] == "caldav"
    assert PASSWORD not in f"{raised.value!r} {raised.value.details} {caplog.text}"


def test_only_a_certificate_that_is_trusted_and_fits_is_talked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with RadicaleServer(context) as secure:
        with pytest.raises(ServiceNotSecure):
            check_calendar(secure.settings)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with pytest.raises(ServiceFolderMissing):  # it talks to it
            check_calendar(secure.settings)
        with pytest.raises(ServiceNotSecure):
            check_calendar(secure.settings_with(caldav_url=secure.url.replace("localhost", "127.0.0.1")))


def test_a_server_that_never_answers_costs_a_moment() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(ServiceUnreachable):
            check_calendar(Settings(caldav_url=url, caldav_username="anna", caldav_password="x"), timeout=0.2)


def test_a_server_that_answers_a_byte_at_a_time_costs_no_more() -> None:
    hung_up = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 207 Multi-Status\r\nContent-Length: 100000\r\n\r\n")
            while not hung_up.wait(0.05):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as slow:
        dripping = threading.Thread(target=drip, args=(slow,))
        dripping.start()
        url = f"http://127.0.0.1:{slow.getsockname()[1]}/"
        try:
            with pytest.raises(ServiceUnreachable):
                check_calendar(Settings(caldav_url=url, caldav_username="anna", caldav_password="x"), timeout=0.2)
        finally:
            hung_up.set()
            dripping.join()


class LyingServer:
    """A server with one calendar that answers as it is told: texts as objects, or one answer to everything."""

    def __init__(self, texts: list[str] | None = None, *, status: int = 207, body: str = "", **headers: str) -> None:
        lying = self
        self.seen: list[tuple[str, str | None]] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                lying.seen.append((self.path, self.headers.get("Authorization")))
                if self.headers.get("Authorization") is None and texts is not None:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="x"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                content = (body if texts is None else lying.answer_to(self.command, self.path, texts)).encode()
                self.send_response(status)
                for name, value in ({"Content-Type": "text/xml; charset=utf-8"} | headers).items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_PROPFIND = do_REPORT = do_PUT = do_DELETE = do_GET = answer

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing in the output of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.settings = Settings(caldav_url=f"{self.url}/", caldav_username="anna", caldav_password="geheim")

    @staticmethod
    def answer_to(method: str, path: str, texts: list[str]) -> str:
        properties = (
            "<D:current-user-principal><D:href>/</D:href></D:current-user-principal>"
            "<C:calendar-home-set><D:href>/</D:href></C:calendar-home-set><D:displayname>Privat</D:displayname>"
            "<D:resourcetype><D:collection/><C:calendar/></D:resourcetype>"
        )
        answers = {"/privat/": properties}
        if method == "REPORT":
            answers = {
                f"/privat/{number}.ics": f'<D:getetag>"1"</D:getetag><C:calendar-data>{text}</C:calendar-data>'
                for number, text in enumerate(texts)
            }
        found = "".join(
            f"<D:response><D:href>{href}</D:href><D:propstat><D:prop>{prop}</D:prop>"
            "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            for href, prop in answers.items()
        )
        return f'<D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">{found}</D:multistatus>'

    def __enter__(self) -> "LyingServer":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"status": 200, "body": "<!doctype html><p>GEHEIMNIS", "Content_Type": "text/html"}, ServiceAnswerUnusable),
        ({"status": 207, "body": "<!doctype html><p>GEHEIMNIS", "Content_Type": "text/html"}, ServiceAnswerUnusable),
        ({"body": "<a><b>GEHEIMNIS"}, ServiceAnswerUnusable),
        ({"body": '<D:multistatus xmlns:D="DAV:"/>'}, ServiceAnswerUnusable),
        ({"body": "<x>GEHEIMNIS</x>"}, ServiceAnswerUnusable),
        ({"body": ""}, ServiceAnswerUnusable),
        ({"status": 404}, ServiceAnswerUnusable),
        ({"status": 500}, ServiceAnswerUnusable),
        ({"status": 429, "Retry_After": "900"}, ServiceAnswerUnusable),
        ({"status": 401}, ServiceLoginRejected),
        ({"status": 401, "WWW_Authenticate": "Negotiate"}, ServiceAnswerUnusable),
        ({"status": 302, "Location": "/"}, ServiceUnreachable),
    ],
)
def test_an_answer_that_is_none_is_said_to_be_one(
    answer: dict[str, Any], kind: type[JarvisError], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with LyingServer(**answer) as lying, pytest.raises(kind):
        check_calendar(lying.settings)
    assert "GEHEIMNIS" not in caplog.text


@pytest.mark.parametrize("place", ["http://localhost:{port}/", "http://127.0.0.1:1/", "https://example.org/"])
def test_the_password_goes_to_no_other_server(place: str) -> None:
    with LyingServer(body="") as other:
        port = other.url.rpartition(":")[2]
        with LyingServer(status=301, Location=place.format(port=port)) as lying, pytest.raises(ServiceNotSecure):
            check_calendar(lying.settings)
        answer = LyingServer.answer_to("PROPFIND", "/", []).replace(
            "<D:href>/</D:href>", f"<D:href>{other.url}/</D:href>"
        )
        with LyingServer(body=answer) as lying, pytest.raises(ServiceNotSecure):
            check_calendar(lying.settings)
    assert other.seen == []


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("https://caldav.icloud.com/1/", True),
        ("https://p42-caldav.icloud.com:443/1/", True),
        ("http://p42-caldav.icloud.com/1/", False),
        ("https://evil-icloud.com/", False),
        ("https://icloud.com.example.org/", False),
    ],
)
def test_a_large_service_may_send_to_a_server_of_its_own_domain(url: str, known: bool) -> None:
    assert CalendarSession("https://caldav.icloud.com/", 1)._may_know(url) is known

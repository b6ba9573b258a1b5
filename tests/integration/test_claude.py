"""claude.py with the real SDK against the scripted Claude: streams, failures, retries, Stop."""

import logging
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from decimal import Decimal
from typing import Any

import pytest

from jarvis_memory import claude as claude_module
from jarvis_memory.answers import Answer, Restarted, StreamEvent, TextDelta, Usage, Used
from jarvis_memory.answers import Thinking as ThinkingSeen
from jarvis_memory.claude import LONGEST_WAIT, Claude
from jarvis_memory.errors import (
    AnswerInterrupted,
    AnswerStopped,
    ClaudeAnswerUnreadable,
    ClaudeBusy,
    ClaudeError,
    ClaudeKeyRejected,
    ClaudeModelUnknown,
    ClaudeNotConfigured,
    ClaudeRequestRejected,
    ClaudeSpendLimit,
    ClaudeUnreachable,
)
from jarvis_memory.settings import Settings
from tests import fake_claude as fake
from tests.fake_claude import Fails, FakeClaude, Reply, Text, Thinking, ToolUse

KEY = "sk-ant-test-4711"
SONNET = "claude-sonnet-5-5"
TOOL = {"name": "remember_fact", "description": "Keeps a fact", "input_schema": {"type": "object"}}
GENEROUS = 20.0  # seconds, never waited for when the code is right
HELLO: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Hallo, hier ist Ada"}]}]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before retries, recorded and not waited."""
    recorded: list[float] = []
    real = claude_module._bounded_wait

    def record(error: ClaudeError, wait: float) -> float:
        recorded.append(real(error, wait))
        return 0.0

    monkeypatch.setattr(claude_module, "_bounded_wait", record)
    return recorded


def client(base_url: str, **settings: Any) -> Claude:
    return Claude(Settings(_env_file=None, **{"anthropic_api_key": KEY, "anthropic_base_url": base_url} | settings))


def streaming(
    one: Claude, *, stop: threading.Event | None = None, **changes: Any
) -> Generator[StreamEvent, None, Answer]:
    request: dict[str, Any] = {
        "model": SONNET,
        "system": [{"type": "text", "text": "Du bist JARVIS."}],
        "messages": HELLO,
        "tools": [TOOL],
    }
    return one.stream_answer(**request | changes, stop=stop or threading.Event())


def collect(stream: Generator[StreamEvent, None, Answer]) -> tuple[list[StreamEvent], Answer]:
    events = []
    while True:
        try:
            events.append(next(stream))
        except StopIteration as end:
            return events, end.value


def used(events: list[StreamEvent]) -> list[Usage]:
    return [event.usage for event in events if isinstance(event, Used)]


def shown(events: list[StreamEvent]) -> str:
    """What a page shows in the end: a Restarted voids the text before it."""
    text = ""
    for event in events:
        if isinstance(event, Restarted):
            text = ""
        elif isinstance(event, TextDelta):
            text += event.text
    return text


def broken(one: Claude, **changes: Any) -> tuple[list[StreamEvent], ClaudeError]:
    """The events before the error, and the error."""
    events: list[StreamEvent] = []
    with pytest.raises(ClaudeError) as raised:
        for event in streaming(one, **changes):
            events.append(event)
    return events, raised.value


# --- answers ----------------------------------------------------------------------------------------------


def test_a_text_streams_in_pieces_and_comes_back_whole(claude: FakeClaude) -> None:
    claude.say(Text("Guten Tag, schön dich zu sehen 🐕", chunk_size=5))
    events, answer = collect(streaming(client(claude.base_url)))
    assert len([event for event in events if isinstance(event, TextDelta)]) == 7
    assert shown(events) == "Guten Tag, schön dich zu sehen 🐕"
    assert answer.blocks == [{"type": "text", "text": "Guten Tag, schön dich zu sehen 🐕"}]
    assert answer.stop_reason == "end_turn"


def test_thinking_is_reported_and_kept_with_its_signature(claude: FakeClaude) -> None:
    claude.say([Thinking("Wer ist Ada?"), "Hallo Ada"])
    events, answer = collect(streaming(client(claude.base_url)))
    assert any(isinstance(event, ThinkingSeen) for event in events)
    assert shown(events) == "Hallo Ada"
    assert answer.blocks[0]["type"] == "thinking"
    assert answer.blocks[0]["signature"]


def test_the_tokens_are_those_that_the_api_counts(claude: FakeClaude) -> None:
    counted = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 30}
    claude.say(Reply("OK", usage=counted))
    events, _ = collect(streaming(client(claude.base_url)))
    assert used(events) == [Usage(input=7, output=5, cache_read=900, cache_write=30, cost=None)]
    assert used(events)[0].total == 942


def test_anthropics_own_requests_have_their_price(claude: FakeClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "claude_is_official", property(lambda _: True))
    claude.say(Reply("OK", usage={"input_tokens": 1_000, "output_tokens": 100}))
    events, _ = collect(streaming(client(claude.base_url)))
    assert [usage.cost for usage in used(events)] == [Decimal("0.003")]


@pytest.mark.parametrize("break_off", [fake.Drop, fake.EndsEarly, fake.CorruptChunk])
def test_what_broke_off_has_been_paid_for(claude: FakeClaude, break_off: Callable[[str], fake.Breaks]) -> None:
    claude.say(break_off("Vierhundert Zeichen. " * 20))
    events, error = broken(client(claude.base_url))
    assert isinstance(error, AnswerInterrupted)
    [usage] = used(events)
    assert usage.input > 0
    # The service counts at the end; until then a token is four characters.
    assert usage.output == len(shown(events)) // 4 > 90


def test_what_was_sent_again_is_counted_once(claude: FakeClaude, waits: list[float]) -> None:
    claude.say(fake.ErrorInStream("Der Anf"), Reply("OK", usage={"input_tokens": 7, "output_tokens": 5}))
    events, _ = collect(streaming(client(claude.base_url)))
    assert [(usage.input, usage.output) for usage in used(events)] == [(7, 5)]


def test_tool_calls_come_back_with_their_arguments(claude: FakeClaude) -> None:
    claude.say(["Moment.", ToolUse("remember_fact", {"fact": "Ada wohnt in Köln"}), ToolUse("remember_fact", {})])
    _, answer = collect(streaming(client(claude.base_url)))
    calls = [block for block in answer.blocks if block["type"] == "tool_use"]
    assert [call["input"] for call in calls] == [{"fact": "Ada wohnt in Köln"}, {}]
    assert answer.stop_reason == "tool_use"


@pytest.mark.parametrize("arguments", ['{"fact": "Ada wo', '["Ada"]', '{"limit": NaN}', '{"limit": 1e999}', '"Ada"'])
def test_arguments_that_are_no_object_of_json_are_none(claude: FakeClaude, arguments: str) -> None:
    claude.say(Reply(fake.CutToolJson("remember_fact", arguments), stop_reason="tool_use"))
    _, answer = collect(streaming(client(claude.base_url)))
    assert answer.blocks[0]["input"] is None


def test_nul_and_lone_surrogates_are_cleaned_out_of_an_answer(claude: FakeClaude) -> None:
    claude.say(["A\0d\ud800a", ToolUse("remember_fact", {"fact": "K\0öl\udfffn"})])
    events, answer = collect(streaming(client(claude.base_url)))
    assert shown(events) == "Ada"
    assert answer.blocks[0]["text"] == "Ada"
    assert answer.blocks[1]["input"] == {"fact": "Köln"}


# --- refusals of the service ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (fake.wrong_key(), ClaudeKeyRejected),
        (Fails(403, "permission_error", "not allowed"), ClaudeKeyRejected),
        (fake.unknown_model("claude-1"), ClaudeModelUnknown),
        (fake.invalid_request("max_tokens: too large"), ClaudeRequestRejected),
        (Fails(413, "request_too_large", "Request exceeds the maximum size"), ClaudeRequestRejected),
        (fake.spend_limit_reached(), ClaudeSpendLimit),
        (fake.own_spend_limit_reached(), ClaudeSpendLimit),
        (Fails(429, "rate_limit_error", "No.", {}, {"error_code": "enforced_spend_limit_reached"}), ClaudeSpendLimit),
        (fake.billing_problem(), ClaudeSpendLimit),
        (fake.invalid_request("Your credit balance is too low to access the Anthropic API."), ClaudeSpendLimit),
    ],
)
def test_what_waiting_does_not_help_is_raised_at_once(
    claude: FakeClaude, waits: list[float], reply: Fails, error: type[ClaudeError]
) -> None:
    claude.say(reply)
    events, raised = broken(client(claude.base_url))
    assert type(raised) is error
    assert raised.details["model"] == SONNET
    assert (events, waits, len(claude.requests)) == ([], [], 1)


@pytest.mark.parametrize(
    "reply",
    [
        fake.rate_limited(),
        fake.overloaded(),
        fake.server_error(),
        Fails(502, "api_error", "Bad gateway"),
        Fails(408, "timeout_error", "Request timed out"),
        Fails(409, "conflict_error", "Conflict"),
    ],
)
def test_what_passes_by_itself_is_tried_again(claude: FakeClaude, waits: list[float], reply: Fails) -> None:
    claude.say(reply, "Da bin ich.")
    events, _ = collect(streaming(client(claude.base_url)))
    assert shown(events) == "Da bin ich."
    assert waits == [1.0]
    assert len(claude.requests) == 2


def test_after_three_retries_the_service_counts_as_busy(claude: FakeClaude, waits: list[float]) -> None:
    claude.say(*[fake.overloaded()] * 5)
    _, raised = broken(client(claude.base_url))
    assert type(raised) is ClaudeBusy
    assert waits == [1.0, 2.0, 4.0]
    assert len(claude.requests) == 4


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [("7", 7.0), ("0", 1.0), ("900", LONGEST_WAIT), ("inf", LONGEST_WAIT), ("nan", 1.0), ("tomorrow", 1.0)],
)
def test_the_wait_is_what_the_server_asks_for_within_bounds(
    claude: FakeClaude, waits: list[float], retry_after: str, wait: float
) -> None:
    claude.say(Fails(429, "rate_limit_error", "Slow down", {"retry-after": retry_after}), "Da bin ich.")
    events, _ = collect(streaming(client(claude.base_url)))
    assert shown(events) == "Da bin ich."
    assert waits == [wait]


def test_stop_during_the_wait_before_a_retry_ends_the_answer_as_stopped(claude: FakeClaude) -> None:
    claude.say(fake.rate_limited(900), "zu spät")
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    _, raised = broken(client(claude.base_url), stop=stop)
    assert type(raised) is AnswerStopped
    assert len(claude.requests) == 1


def test_an_error_inside_the_stream_starts_the_answer_over_without_doubled_text(
    claude: FakeClaude, waits: list[float]
) -> None:
    claude.say(fake.ErrorInStream("Der halbe Sa"), "Der ganze Satz.")
    events, answer = collect(streaming(client(claude.base_url)))
    assert Restarted() in events
    assert shown(events) == "Der ganze Satz."
    assert answer.blocks == [{"type": "text", "text": "Der ganze Satz."}]
    assert waits == [1.0]


def test_an_error_inside_the_stream_that_is_no_overload_is_raised(claude: FakeClaude, waits: list[float]) -> None:
    claude.say(fake.ErrorInStream("Der halbe", type="invalid_request_error", message="no"))
    _, raised = broken(client(claude.base_url))
    assert type(raised) is ClaudeRequestRejected
    assert waits == []


def test_a_refused_thinking_block_is_left_out_and_the_request_sent_once_more(claude: FakeClaude) -> None:
    foreign = {"type": "thinking", "thinking": "", "signature": "bm9uZQ=="}
    said = {"type": "text", "text": "Hallo"}
    messages = [*HELLO, {"role": "assistant", "content": [foreign, said]}, HELLO[0]]
    claude.say("Wieder da.")
    events, _ = collect(streaming(client(claude.base_url), messages=messages))
    assert shown(events) == "Wieder da."
    assert len(claude.refused) == 1
    assert claude.requests[-1]["messages"][1]["content"] == [said]


def test_a_refusal_over_thinking_that_nothing_can_be_left_out_for_is_raised(claude: FakeClaude) -> None:
    claude.say(fake.invalid_request("thinking.type: not supported"), "nie")
    _, raised = broken(client(claude.base_url))
    assert type(raised) is ClaudeRequestRejected
    assert len(claude.requests) == 1


# --- streams that break -----------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [fake.Drop, fake.EndsEarly, fake.CorruptChunk])
def test_a_stream_that_breaks_off_is_interrupted_and_not_repeated(
    claude: FakeClaude, waits: list[float], script: type[fake.Breaks]
) -> None:
    claude.say(script("Der halbe Sa"), "nie")
    events, raised = broken(client(claude.base_url))
    assert type(raised) is AnswerInterrupted
    assert shown(events) == "Der halbe Sa"
    assert (len(claude.requests), waits) == (1, [])


@pytest.mark.parametrize("script", [fake.Stall("Der halbe Sa"), fake.PingsForever("Der halbe Sa")])
def test_a_stream_that_falls_silent_is_interrupted(claude: FakeClaude, script: fake.Breaks) -> None:
    claude.say(script)
    one = client(claude.base_url)
    one._patience = 0.3
    events, raised = broken(one)
    assert type(raised) is AnswerInterrupted
    assert shown(events) == "Der halbe Sa"


def test_a_web_page_instead_of_a_stream_is_unreadable(claude: FakeClaude) -> None:
    claude.say(fake.NotSse())
    _, raised = broken(client(claude.base_url))
    assert type(raised) is ClaudeAnswerUnreadable


@pytest.mark.parametrize("script", [fake.Stall("Der halbe Sa"), fake.PingsForever("Der halbe Sa")])
def test_stop_ends_a_stream_that_waits(claude: FakeClaude, script: fake.Breaks) -> None:
    claude.say(script)
    stop = threading.Event()
    ended: list[Exception] = []

    def ask() -> None:
        try:
            for event in streaming(client(claude.base_url), stop=stop):
                if isinstance(event, TextDelta):
                    stop.set()
        except ClaudeError as error:
            ended.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(GENEROUS)
    assert [type(error) for error in ended] == [AnswerStopped]


def test_stop_ends_the_wait_for_the_first_byte(silent_server: str) -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    _, raised = broken(client(silent_server), stop=stop)
    assert type(raised) is AnswerStopped


def test_a_stopped_turn_sends_no_further_request(claude: FakeClaude) -> None:
    stop = threading.Event()
    stop.set()
    _, raised = broken(client(claude.base_url), stop=stop)
    assert type(raised) is AnswerStopped
    assert claude.requests == []


# --- the connection and the settings ----------------------------------------------------------------------


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes the request and never answers, as a local model that reads a long prompt."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_refused_connection_is_tried_again_and_then_unreachable(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    _, raised = broken(client(f"http://127.0.0.1:{port}"))
    assert type(raised) is ClaudeUnreachable
    assert waits == [1.0, 2.0, 4.0]


def test_without_a_key_nothing_is_sent() -> None:
    one = Claude(Settings(_env_file=None))
    with pytest.raises(ClaudeNotConfigured):
        collect(streaming(one))
    with pytest.raises(ClaudeNotConfigured):
        one.complete(model=SONNET, system="Fasse zusammen.", text="Hallo")


def test_a_local_server_needs_no_key_and_gets_no_settings_that_only_anthropic_knows(claude: FakeClaude) -> None:
    claude.say("lokal")
    one = client(claude.base_url, anthropic_api_key=None)
    collect(streaming(one))
    one.complete(model=SONNET, system="Fasse zusammen.", text="Hallo")
    for request in claude.requests:
        assert "output_config" not in request
        assert "thinking" not in request


def test_anthropic_itself_is_told_how_much_effort_to_make(claude: FakeClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "claude_is_official", property(lambda _: True))
    one = client(claude.base_url)
    collect(streaming(one))
    one.complete(model=SONNET, system="Fasse zusammen.", text="Hallo")
    assert [request["output_config"] for request in claude.requests] == [{"effort": "medium"}, {"effort": "low"}]
    claude.models.add("claude-haiku-4-5-20251001")
    collect(streaming(one, model="claude-haiku-4-5-20251001"))
    assert "output_config" not in claude.requests[-1]


# --- complete ---------------------------------------------------------------------------------------------


def completed(claude: FakeClaude) -> Callable[[], tuple[str, Usage]]:
    return lambda: client(claude.base_url).complete(model=SONNET, system="Fasse zusammen.", text="Ha\0llo\ud800")


def test_a_short_text_is_completed_without_the_thinking(claude: FakeClaude) -> None:
    claude.say_to_summary(
        Reply([Thinking("hm"), "Titel: Ada\n", "Zusammen\0fassung: kurz"], usage={"output_tokens": 9})
    )
    said, usage = completed(claude)()
    assert said == "Titel: Ada\nZusammenfassung: kurz"
    assert usage.output == 9
    assert claude.requests[-1]["messages"] == [{"role": "user", "content": "Hallo"}]


def test_a_refusal_to_summarise_is_an_error(claude: FakeClaude) -> None:
    claude.say_to_summary(Reply("Nein.", stop_reason="refusal"))
    with pytest.raises(ClaudeError, match="refused to summarise"):
        completed(claude)()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (fake.wrong_key(), ClaudeKeyRejected),
        (fake.unknown_model("x"), ClaudeModelUnknown),
        (fake.overloaded(), ClaudeBusy),
        (fake.rate_limited(900), ClaudeBusy),
        (fake.spend_limit_reached(), ClaudeSpendLimit),
        (fake.NotSse(), ClaudeAnswerUnreadable),
        (fake.EndsEarly("halb"), ClaudeAnswerUnreadable),
        (fake.Drop("halb"), ClaudeUnreachable),
    ],
)
def test_a_failed_completion_is_raised_at_once(
    claude: FakeClaude, waits: list[float], reply: Any, error: type[ClaudeError]
) -> None:
    claude.say_to_summary(reply)
    with pytest.raises(error):
        completed(claude)()
    assert (len(claude.requests), waits) == (1, [])


# --- the log ----------------------------------------------------------------------------------------------


def test_neither_key_nor_what_was_said_reaches_the_log(
    claude: FakeClaude, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    claude.say(fake.overloaded(), [Thinking("geheim"), "Sehr vertraulich", ToolUse("remember_fact", {"fact": "intim"})])
    claude.say_to_summary("Titel: Diskretes\nZusammenfassung: Verschwiegenes")
    one = client(claude.base_url)
    collect(streaming(one))
    one.complete(model=SONNET, system="Fasse zusammen.", text="Hallo, hier ist Ada")
    assert "Answer of claude-sonnet-5-5" in caplog.text
    for secret in (KEY, "Ada", "geheim", "vertraulich", "intim", "Diskretes", "Verschwiegenes", "Du bist JARVIS"):
        assert secret not in caplog.text

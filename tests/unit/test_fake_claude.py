"""The scripted Claude, driven with the real SDK: streams and failures. Refusals: test_history_rules.py."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx2
import pytest
import requests

from tests import fake_claude as fake
from tests.fake_claude import CutToolJson, FakeClaude, Reply, Text, Thinking, ToolUse

TOOL = {"name": "remember_fact", "description": "Keeps a fact", "input_schema": {"type": "object"}}
HELLO = {"role": "user", "content": "Hallo"}


@pytest.fixture
def claude() -> Iterator[FakeClaude]:
    with FakeClaude() as server:
        yield server


def body(**changes: Any) -> dict[str, Any]:
    """A valid request with these parameters changed; None leaves one out."""
    valid = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [HELLO], "tools": [TOOL]}
    return {key: value for key, value in (valid | changes).items() if value is not None}


def client_of(claude: FakeClaude, key: str = "test-key", timeout: float = 10) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=key, base_url=claude.base_url, max_retries=0, timeout=timeout)


def ask(claude: FakeClaude, *, timeout: float = 10, **changes: Any) -> Any:
    """The final message of a stream."""
    with client_of(claude, timeout=timeout).messages.stream(**body(**changes)) as stream:
        return stream.get_final_message()


def post(claude: FakeClaude, sent: dict[str, Any], **headers: str | None) -> requests.Response:
    """A request past the SDK, for what the SDK does not let through."""
    usual = {"x-api-key": "test-key", "anthropic-version": "2023-06-01"}
    return requests.post(f"{claude.base_url}/v1/messages", json=sent, headers=usual | headers, timeout=10)


def test_streams_a_text_in_chunks(claude: FakeClaude) -> None:
    claude.say(Text("Guten Tag, schön dich zu sehen 🐕", chunk_size=5))
    with client_of(claude).messages.stream(**body()) as stream:
        chunks = list(stream.text_stream)
        message = stream.get_final_message()
    assert "".join(chunks) == "Guten Tag, schön dich zu sehen 🐕"
    assert len(chunks) == 7
    assert (message.stop_reason, message.role, message.type) == ("end_turn", "assistant", "message")
    assert stream.request_id is not None


def test_sends_the_events_in_the_published_order(claude: FakeClaude) -> None:
    claude.say([Thinking("Hm."), Text("Moment.", chunk_size=50), ToolUse("remember_fact", {})])
    lines = post(claude, body(stream=True)).text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert names == [
        "message_start",
        "ping",
        *block,
        *block,
        *block[:2],
        *block[1:],
        "message_delta",
        "message_stop",
    ]


def test_streams_a_tool_call_with_its_arguments_in_pieces(claude: FakeClaude) -> None:
    claude.say(["Ich merke es mir.", ToolUse("remember_fact", {"fact": "Mein Hund heißt Bruno"}, id="toolu_9")])
    message = ask(claude)
    assert message.stop_reason == "tool_use"
    assert message.content[1].to_dict() == {
        "type": "tool_use",
        "id": "toolu_9",
        "name": "remember_fact",
        "input": {"fact": "Mein Hund heißt Bruno"},
        "caller": {"type": "direct"},
    }


def test_gives_the_same_message_without_a_stream(claude: FakeClaude) -> None:
    claude.say(Reply("Hallo", stop_reason="refusal", usage={"cache_read_input_tokens": 900}))
    message = client_of(claude).messages.create(**body())
    assert message.content[0].text == "Hallo"
    assert message.stop_reason == "refusal"
    assert message.usage.cache_read_input_tokens == 900
    assert message.usage.cache_creation_input_tokens == 0
    assert message.usage.input_tokens > 0
    claude.say(Reply("Hallo", usage={"output_tokens": 7}))
    assert ask(claude).usage.output_tokens == 7


def test_answers_chats_and_summaries_from_queues_of_their_own(claude: FakeClaude) -> None:
    claude.say("eins", "zwei")
    claude.say_to_summary("Titel: Hund\nZusammenfassung: Es ging um Bruno.")
    assert ask(claude).content[0].text == "eins"
    summary = client_of(claude).messages.create(**body(tools=None))
    assert summary.content[0].text.startswith("Titel: Hund")
    assert ask(claude, tools=None).content[0].text == "zwei", "a chat without memory has no tools either"
    claude.say("drei")
    assert ask(claude).content[0].text == "drei"
    assert ask(claude).content[0].text == "OK."
    assert client_of(claude).messages.create(**body(tools=None)).content[0].text == fake.DEFAULT_SUMMARY


def test_asks_the_responder_when_nothing_is_queued() -> None:
    with FakeClaude(lambda sent: sent["messages"][0]["content"]) as claude:
        assert ask(claude).content[0].text == "Hallo"


def test_a_responder_that_fails_shows_as_a_server_error() -> None:
    with (
        FakeClaude(lambda sent: sent["nothing"]) as claude,
        pytest.raises(anthropic.InternalServerError) as error,
    ):
        ask(claude)
    assert "The script failed: KeyError('nothing')" in str(error.value)


def test_records_bodies_and_headers_in_order(claude: FakeClaude) -> None:
    _ = ask(claude, max_tokens=1), ask(claude, max_tokens=2)
    assert [sent["max_tokens"] for sent in claude.requests] == [1, 2]
    assert [sent["authorization"] for sent in claude.headers] == ["Bearer test-key"] * 2


def test_holds_an_answer_until_it_is_released(claude: FakeClaude) -> None:
    started, release = threading.Event(), threading.Event()
    claude.say(Text("abcdef", chunk_size=3, started=started, release=release))
    with client_of(claude).messages.stream(**body()) as stream:
        assert next(stream.text_stream) == "abc"
        assert started.wait(5)
        release.set()
        assert next(stream.text_stream) == "def"


def test_pauses_after_each_chunk(claude: FakeClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(claude, "closes_within", pauses.append)
    claude.say(Text("abcdef", chunk_size=2, pause=60))
    assert ask(claude).content[0].text == "abcdef"
    assert pauses == [60, 60, 60]


def test_closes_at_once_while_answers_are_held() -> None:
    with FakeClaude() as claude:
        claude.say(Text("abcdef", chunk_size=3, release=threading.Event()), fake.Stall("Hallo"))
        streams = [client_of(claude).messages.create(**body(stream=True)) for _ in range(2)]
        for stream in streams:
            next(iter(stream))
    assert claude.closes_within(0)


def test_answers_many_requests_at_once(claude: FakeClaude) -> None:
    claude.say(*[Text("ok")] * 8)
    with ThreadPoolExecutor(8) as pool:
        messages = list(pool.map(lambda _: ask(claude), range(8)))
    assert [message.content[0].text for message in messages] == ["ok"] * 8
    assert len(claude.requests) == 8


@pytest.mark.parametrize(
    ("failure", "error", "type_"),
    [
        (fake.wrong_key(), anthropic.AuthenticationError, "authentication_error"),
        (fake.billing_problem(), anthropic.PaymentRequiredError, "billing_error"),
        (fake.unknown_model("x"), anthropic.NotFoundError, "not_found_error"),
        (fake.rate_limited(), anthropic.RateLimitError, "rate_limit_error"),
        (fake.spend_limit_reached(), anthropic.RateLimitError, "rate_limit_error"),
        (fake.own_spend_limit_reached(), anthropic.BadRequestError, "invalid_request_error"),
        (fake.server_error(), anthropic.InternalServerError, "api_error"),
        (fake.overloaded(), anthropic.InternalServerError, "overloaded_error"),
        (fake.invalid_request("no"), anthropic.BadRequestError, "invalid_request_error"),
    ],
)
def test_fails_as_the_real_api_does(
    claude: FakeClaude, failure: fake.Fails, error: type[anthropic.APIStatusError], type_: str
) -> None:
    claude.say(failure)
    with pytest.raises(error) as caught:
        ask(claude)
    assert (caught.value.status_code, caught.value.type) == (failure.status, type_)
    assert caught.value.api_message == failure.message
    assert caught.value.request_id is not None


def test_a_spend_limit_differs_from_a_rate_limit_by_code_and_header(claude: FakeClaude) -> None:
    claude.say(fake.rate_limited(retry_after=7), fake.spend_limit_reached())
    with pytest.raises(anthropic.RateLimitError) as rate:
        ask(claude)
    with pytest.raises(anthropic.RateLimitError) as spend:
        ask(claude)
    assert (rate.value.error_code, rate.value.response.headers["retry-after"]) == (None, "7")
    assert spend.value.error_code == "enforced_spend_limit_reached"
    assert "retry-after" not in spend.value.response.headers


def test_an_error_inside_a_stream_comes_after_the_text(claude: FakeClaude) -> None:
    claude.say(fake.ErrorInStream(after="Guten"))
    with (
        client_of(claude).messages.stream(**body()) as stream,
        pytest.raises(anthropic.APIStatusError) as error,
    ):
        list(stream)
    assert (error.value.status_code, error.value.type) == (200, "overloaded_error")
    assert stream.current_message_snapshot.content[0].text == "Guten"


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (fake.Drop(after="Guten"), httpx2.RemoteProtocolError),
        (fake.CorruptChunk(after="Guten"), json.JSONDecodeError),
        (fake.Stall(after="Guten"), httpx2.ReadTimeout),
        (Text("Guten Tag", chunk_size=5, release=threading.Event()), httpx2.ReadTimeout),
    ],
)
def test_a_stream_breaks_after_its_text(claude: FakeClaude, broken: Any, error: type[Exception]) -> None:
    claude.say(broken)
    client = client_of(claude, timeout=0.3)
    with client.messages.stream(**body()) as stream, pytest.raises(error):
        list(stream)
    assert stream.current_message_snapshot.content[0].text == "Guten"


def test_a_stream_that_ends_early_has_no_stop_reason(claude: FakeClaude) -> None:
    claude.say(fake.EndsEarly(after=["Guten", ToolUse("remember_fact", {"fact": "x"})]))
    message = ask(claude)
    assert message.stop_reason is None
    assert message.content[1].input == {"fact": "x"}


def test_a_stall_ends_when_released_and_pings_when_the_client_leaves(claude: FakeClaude) -> None:
    release = threading.Event()
    release.set()
    claude.say(fake.Stall(release=release), fake.PingsForever(after="Guten"))
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(claude)  # a stall that is released closes the connection
    with client_of(claude).messages.stream(**body()) as stream:
        pings = 0
        for line in stream.response.iter_lines():
            pings += line == "event: ping"
            if pings == 3:
                break
    assert pings == 3
    assert ask(claude).content[0].text == "OK."


def test_cuts_the_arguments_of_a_tool_call(claude: FakeClaude) -> None:
    claude.say(CutToolJson("remember_fact", '{"fact": "Mein Hund he'))
    assert ask(claude).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (fake.EndsEarly("x"), json.JSONDecodeError),
        (fake.CorruptChunk("x"), json.JSONDecodeError),
        (fake.Drop("x"), anthropic.APIConnectionError),
        (fake.Stall("x"), anthropic.APITimeoutError),
        (fake.PingsForever("x"), anthropic.APITimeoutError),
        (fake.ErrorInStream("x"), anthropic.OverloadedError),
    ],
)
def test_breaks_without_a_stream_too(claude: FakeClaude, broken: Any, error: type[Exception]) -> None:
    claude.say(broken)
    with pytest.raises(error) as caught:
        client_of(claude, timeout=0.3).messages.create(**body())
    assert type(caught.value) is error


def test_a_page_instead_of_an_answer_is_no_message(claude: FakeClaude) -> None:
    claude.say(fake.NotSse("<html>"), fake.NotSse())
    assert client_of(claude).messages.create(**body()) == "<html>"
    with pytest.raises(AssertionError):
        ask(claude)


@pytest.mark.parametrize("headers", [{"x-api-key": ""}, {"x-api-key": "", "authorization": "Bearer "}])
def test_needs_a_key_unless_told_otherwise(claude: FakeClaude, headers: dict[str, str]) -> None:
    assert post(claude, body(), **headers).status_code == 401
    with FakeClaude(require_key=False) as open_to_all:
        assert post(open_to_all, body(), **headers).status_code == 200


def test_knows_its_models_and_paths(claude: FakeClaude) -> None:
    with pytest.raises(anthropic.NotFoundError, match="model: claude-old"):
        ask(claude, model="claude-old")
    claude.models.add("claude-old")
    assert ask(claude, model="claude-old").model == "claude-old"
    assert len(client_of(claude).models.list().data) == 3
    assert requests.get(f"{claude.base_url}/v1/nothing", timeout=5).status_code == 404
    assert requests.post(f"{claude.base_url}/v1/complete", json={}, timeout=5).status_code == 404
    assert post(claude, body(), **{"anthropic-version": None}).status_code == 400

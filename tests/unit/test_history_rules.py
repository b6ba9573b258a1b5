"""What the scripted Claude refuses, asked with the real SDK, over plain HTTP what the SDK would not send."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
import requests

from tests.fake_claude import FakeClaude, Thinking, ToolUse
from tests.files import image as an_image
from tests.files import pdf as a_pdf
from tests.history_rules import violations

TOOL = {"name": "remember_fact", "input_schema": {"type": "object"}}
SYSTEM = [{"type": "text", "text": "Du bist JARVIS."}, {"type": "text", "text": "Bekannte Fakten: keine"}]
CACHED = {"cache_control": {"type": "ephemeral"}}
THINKS = {"type": "adaptive", "display": "summarized"}


@pytest.fixture
def claude() -> Iterator[FakeClaude]:
    with FakeClaude() as server:
        yield server


def text(words: str = "Hallo", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(id_: str = "toolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "remember_fact", "input": {}, **more}


def result(id_: str = "toolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "done", **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks[0] if isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return user(*blocks) | {"role": "assistant"}


def image(data: bytes | None = None, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "source": encoded(an_image() if data is None else data, media_type), **more}


def document(data: bytes | None = None, media_type: str = "application/pdf", **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": encoded(a_pdf() if data is None else data, media_type), **more}


def encoded(data: bytes, media_type: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}


def note(said: str, media_type: str = "text/plain", **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "text", "media_type": media_type, "data": said, **more}}


def body(*messages: Any, **changes: Any) -> dict[str, Any]:
    sent = list(messages) or [user("Hallo")]
    return {"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": sent, "tools": [TOOL]} | changes


def create(claude: FakeClaude, sent: dict[str, Any]) -> Any:
    client = anthropic.Anthropic(api_key="test-key", base_url=claude.base_url, max_retries=0)
    # As extra_body, for parameters that the SDK itself would not take.
    return client.messages.create(model="", max_tokens=1, messages=[], extra_body=sent)


def refused(claude: FakeClaude, sent: dict[str, Any]) -> str:
    with pytest.raises(anthropic.BadRequestError) as error:
        create(claude, sent)
    assert error.value.type == "invalid_request_error"
    assert claude.refused[-1] == error.value.api_message
    return error.value.api_message or ""


@pytest.mark.parametrize(
    "messages",
    [
        [user("Hallo")],
        [user("Hallo"), user("Bist du da?")],
        [user("Hallo"), assistant("Ja"), assistant(text("Bitte?")), user(text("Danke", **CACHED))],
        [user("Merk dir"), assistant(text(), call()), user(result(), text("Und?"))],
        [user("Merk dir"), assistant(call("a"), call("b")), user(result("b", is_error=True), result("a"))],
        [
            user("Merk dir"),
            assistant(call("a"), call("b")),
            user(result("a")),
            user(result("b")),
            user("Und?"),
        ],
        [user("Merk dir"), assistant(call(caller={"type": "direct"})), user(result(content=[text("ok")]))],
        [user("Merk dir"), assistant(call()), user({"type": "tool_result", "tool_use_id": "toolu_1"})],
        [user(image(), document(title="Rechnung.pdf", **CACHED), note("Text")), assistant("Ja"), user("Und?")],
        [user(image(an_image(format_="JPEG"), "image/jpeg"), image(an_image(format_="WEBP"), "image/webp"))],
        [user(image(an_image((8_000, 10))), *[image()] * 19)],
        [user(*[image(an_image((2_000, 10)))] * 21)],
        [user(document(a_pdf(60)), document(a_pdf(40)))],
        [user("Zeig"), assistant(call()), user(result(content=[image()]))],
    ],
)
def test_accepts_what_the_real_api_accepts(claude: FakeClaude, messages: list[Any]) -> None:
    assert create(claude, body(*messages, system=SYSTEM)).content[0].text == "OK."
    assert claude.refused == []


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([assistant("Hallo"), user("Hallo")], 'first message must use the "user" role'),
        ([user("Hallo"), assistant("Ich")], "does not support assistant message prefill"),
        ([user("")], "messages.0: user messages must have non-empty content"),
        (
            [user("Hi"), {"role": "assistant", "content": []}, user("Hi")],
            "messages.1: assistant messages must",
        ),
        ([user(text(""))], "messages: text content blocks must be non-empty"),
        ([user(" \n")], "messages: text content blocks must contain non-whitespace text"),
        ([user("Hi"), assistant(text(" "), call()), user(result())], "must contain non-whitespace text"),
        ([user(text("", **CACHED))], "messages.0.content.0.text: cache_control cannot be set for empty text"),
        (
            [user(text("Hi", parsed_output=None))],
            "messages.0.content.0.text.parsed_output: Extra inputs are not",
        ),
        ([{"role": "user", "content": "Hi", "id": 3}], "messages.0.id: Extra inputs are not permitted"),
        ([{"role": "system", "content": "Hi"}], "messages.0.role: Input should be 'user' or 'assistant'"),
        ([user("Hi"), assistant(call()), user("Und?")], "messages.1: `tool_use` ids were found without"),
        ([user("Hi"), assistant(call())], "`tool_use` ids were found without `tool_result` blocks"),
        (
            [user("Hi"), assistant(call()), user(text(), result())],
            "immediately after: toolu_1. Each `tool_use`",
        ),
        ([user("Hi"), assistant(call("a"), call("b")), user(result("a"))], "immediately after: b. Each"),
        (
            [
                user("Hi"),
                assistant(call("a"), call("b")),
                user(result("a")),
                assistant("Ja"),
                user(result("b")),
            ],
            "immediately after: b. Each",
        ),
        (
            [user(result())],
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        ),
        ([user("Hi"), assistant(call("a")), user(result("a"), result("b"))], "unexpected `tool_use_id`"),
        (
            [user("Hi"), assistant(call()), user(result(), result())],
            "each tool_use must have a single result",
        ),
        ([user("Hi"), assistant(call(), call()), user(result())], "`tool_use` ids must be unique"),
        (
            [user("Hi"), assistant(call()), user(result()), assistant(call()), user(result())],
            "messages.3.content.0: `tool_use` ids must be unique",
        ),
        (
            [user("Hi"), assistant(call("a b")), user(result("a b"))],
            "tool_use.id: String should match pattern",
        ),
        (
            [user("Hi"), assistant(call(input="{")), user(result())],
            "tool_use.input: Input should be a valid dict",
        ),
        ([user(call())], "`tool_use` blocks can only be in `assistant` messages"),
        (
            [user("Hi"), assistant(result()), user("Hi")],
            "`tool_result` blocks can only be in `user` messages",
        ),
        ([{"role": "user", "content": 5}], "messages.0.content: Input should be a valid list"),
        ([user("Hi"), assistant({"text": "Hi"}), user("Hi")], "messages.1.content.0: Input should be a valid dict"),
        ([user({"type": "text"})], "messages.0.content.0.text.text: Field required"),
        ([user({"type": "tool_result"})], "messages.0.content.0.tool_result.tool_use_id: Field required"),
        ([user("Hi"), assistant({"type": "thinking", "thinking": "Hm"}), user("Hi")], "thinking.signature: Field"),
        ([user("Null\0")], "The request body is not valid JSON"),
        ([user("Hi"), assistant(call(input={"fact": "a\0"})), user(result())], "null characters"),
    ],
)
def test_refuses_a_history(claude: FakeClaude, messages: list[Any], message: str) -> None:
    assert message in refused(claude, body(*messages))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([image(media_type="image/bmp")], "source.base64.media_type: Input should be 'image/jpeg'"),
        ([image(media_type="image/jpeg")], "specified using the image/jpeg media type, but the image appears to be a"),
        ([image(an_image()[:50])], "Could not process image"),
        ([image(b"")], "image cannot be empty"),
        ([image(an_image((8_001, 10)))], "image dimensions exceed max allowed size: 8000 pixels"),
        ([image(an_image((2_001, 10))), *[image()] * 20], "for many-image requests: 2000 pixels"),
        ([image(an_image((1_200, 1_200), noise=True))], "image exceeds 5 MB maximum"),
        ([image(title="Foto")], "image.title: Extra inputs are not permitted"),
        ([image() | {"source": {"type": "base64", "media_type": "image/png", "data": "äöü"}}], "a valid base64 string"),
        ([image() | {"source": {"type": "base64", "media_type": "image/png"}}], "base64.data: Field required"),
        ([image() | {"source": {"type": "text"}}], "image.source.type: Input should be base64"),
        ([{"type": "image"}], "image.source: Field required"),
        ([document(media_type="text/plain")], "media_type: Input should be 'application/pdf'"),
        ([document(b"Text")], "The PDF specified was not valid."),
        ([document(a_pdf(password="x"))], "The PDF specified is password protected."),
        ([document(a_pdf(60)), document(a_pdf(41))], "A maximum of 100 PDF pages may be provided."),
        ([document(title=5)], "document.title: Input should be a valid string"),
        ([document(name="x")], "document.name: Extra inputs are not permitted"),
        ([note(" \n")], "document text must contain non-whitespace text"),
        ([note("Text", "text/csv")], "text.media_type: Input should be 'text/plain'"),
        ([note("Text", title="x")], "source.text.title: Extra inputs are not permitted"),
    ],
)
def test_refuses_files(claude: FakeClaude, blocks: list[Any], message: str) -> None:
    assert message in refused(claude, body(user(*blocks)))


def test_refuses_files_of_the_assistant(claude: FakeClaude) -> None:
    told = refused(claude, body(user("Hi"), assistant(image()), user("Hi")))
    assert "`image` blocks can only be in `user` messages" in told


def test_refuses_a_request_of_more_than_32_megabytes(claude: FakeClaude) -> None:
    with pytest.raises(anthropic.APIStatusError) as error:
        create(claude, body(user("x" * 32 * 1024 * 1024)))
    assert (error.value.status_code, error.value.type) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.5}, "`temperature` is deprecated for this model."),
        ({"top_p": 0.5}, "`top_p` is deprecated for this model."),
        ({"top_k": 5}, "`top_k` is deprecated for this model."),
        ({"frequency_penalty": 1}, "frequency_penalty: Extra inputs are not permitted"),
        ({"max_tokens": 0}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": "Hallo"}, "messages: Input should be a valid array"),
        ({"model": 5}, "model: Input should be a valid string"),
        ({"system": {"text": "Hi"}}, "system: Input should be a valid list"),
        ({"system": ["Hi"]}, "system: Input should be a valid list"),
        ({"system": [{"type": "image", "text": "Hi"}]}, "system.0.type: Input should be 'text'"),
        ({"system": [text("")]}, "system: text content blocks must be non-empty"),
        ({"tools": [TOOL | {"name": "remember fact"}]}, "tools.0.custom.name: String should match pattern"),
        ({"tools": [TOOL | {"name": "x" * 129}]}, "tools.0.custom.name: String should match pattern"),
        ({"tools": [{"name": "search"}]}, "tools.0.custom.input_schema: Field required"),
        ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
        ({"tool_choice": {"type": "any"}}, 'type "tool" and "any" are not supported for this model'),
        (
            {"model": "claude-haiku-5-5", "thinking": THINKS, "tool_choice": {"type": "tool", "name": "x"}},
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "not supported for this model"),
        ({"thinking": {"type": "disabled"}}, 'Use "between_tools" instead.'),
        (
            {"system": [text(**CACHED)] * 4, "tools": [TOOL | CACHED]},
            "A maximum of 4 blocks with cache_control",
        ),
    ],
)
def test_refuses_parameters(claude: FakeClaude, changes: dict[str, Any], message: str) -> None:
    assert message in refused(claude, body(**changes))


def test_takes_four_cache_breakpoints_and_a_forced_tool_without_thinking(claude: FakeClaude) -> None:
    marked = {"system": [text(**CACHED)] * 3, "tools": [TOOL | CACHED]}
    forced = {"model": "claude-haiku-5-5", "tool_choice": {"type": "any"}}
    assert create(claude, body(**marked, **forced)).stop_reason == "end_turn"


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_refuses_a_request_without_a_required_parameter(name: str) -> None:
    sent = body()
    del sent[name]
    assert violations(sent) == f"{name}: Field required"


@pytest.mark.parametrize(
    "raw",
    [json.dumps(body(user("halb \ud83d"))).encode(), b'{"model": "\xff"}', b"{", b'["no", "dictionary"]'],
)
def test_refuses_a_body_that_is_no_valid_json(claude: FakeClaude, raw: bytes) -> None:
    headers = {"x-api-key": "test-key", "anthropic-version": "2023-06-01"}
    answer = requests.post(f"{claude.base_url}/v1/messages", data=raw, headers=headers, timeout=5)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_refused_request_takes_no_answer_from_the_queue(claude: FakeClaude) -> None:
    claude.say("die Antwort")
    refused(claude, body(user("")))
    assert create(claude, body()).content[0].text == "die Antwort"


def thought(claude: FakeClaude, *messages: Any, **changes: Any) -> dict[str, Any]:
    """An assistant turn with thinking and a tool call, to be sent back."""
    claude.say([Thinking("Das merke ich mir."), ToolUse("remember_fact", {"fact": "x"}, id=f"call{len(messages)}")])
    answer = create(claude, body(*messages, system=SYSTEM, thinking=THINKS, **changes))
    return assistant(*[block.to_dict() for block in answer.content])


def test_takes_thinking_back_unchanged_also_when_cache_breakpoints_moved(claude: FakeClaude) -> None:
    turn = thought(claude, user(text("Merk dir", **CACHED)))
    back = user(result("call1"))
    second = thought(claude, user("Merk dir"), turn, back)
    marked = [SYSTEM[0], SYSTEM[1] | CACHED]
    after = user(result("call3") | CACHED)
    create(claude, body(user("Merk dir"), turn, back, second, after, system=marked))
    assert claude.refused == []


def test_leaves_the_text_of_thinking_out_unless_asked_for_it(claude: FakeClaude) -> None:
    claude.say(Thinking("geheim"), Thinking("gezeigt"))
    hidden = create(claude, body()).content[0]
    shown = create(claude, body(thinking=THINKS)).content[0]
    assert (hidden.thinking, shown.thinking) == ("", "gezeigt")
    assert hidden.signature
    create(claude, body(user("Hallo"), assistant(hidden.to_dict(), text("Ja")), user("Und?")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"system": [*SYSTEM, text("Heute ist Dienstag")]}, "The `system` prompt differs"),
        ({"tools": [TOOL, TOOL | {"name": "forget_fact"}]}, "The `tools` list differs"),
        ({"messages": 0}, "Content that preceded this block when it was created differs"),
    ],
)
def test_refuses_thinking_under_another_prefix(claude: FakeClaude, changes: dict[str, Any], message: str) -> None:
    turn = thought(claude, user("Merk dir"))
    asked = "Merk dir bitte" if "messages" in changes else "Merk dir"
    changes.pop("messages", None)
    told = refused(claude, body(user(asked), turn, user(result("call1")), **({"system": SYSTEM} | changes)))
    assert told.startswith("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to")
    assert message in told


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thinking": "Das merke ich mir"}, "blocks in the latest assistant message cannot be modified"),
        ({"signature": "abc"}, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ({"signature": "MTIz"}, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ({"signature": None}, "messages.1.content.0: Invalid `signature` in `thinking` block"),
    ],
)
def test_refuses_changed_thinking(claude: FakeClaude, changes: dict[str, Any], message: str) -> None:
    turn = thought(claude, user("Merk dir"))
    turn["content"][0] |= changes
    assert message in refused(claude, body(user("Merk dir"), turn, user(result("call1")), system=SYSTEM))


def test_lets_the_oldest_thinking_be_left_out_but_none_in_between(claude: FakeClaude) -> None:
    history = [user("Merk dir")]
    for number in (1, 3, 5):
        history += [thought(claude, *history), user(result(f"call{number}"))]
    create(claude, body(history[0], assistant(history[1]["content"][1]), *history[2:], system=SYSTEM))
    middle = assistant(history[3]["content"][1])
    told = refused(claude, body(*history[:3], middle, *history[4:], system=SYSTEM))
    assert told.startswith("messages.5.content.0: Invalid `signature`")

"""The tool loop against the scripted Claude, which refuses every history that the real API refuses."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from jarvis_memory.answers import TextDelta, Usage, Used
from jarvis_memory.claude import Claude
from jarvis_memory.errors import DatabaseUnavailable
from jarvis_memory.settings import Settings
from jarvis_memory.tool_loop import (
    MAX_TOOL_ROUNDS,
    LoopEvent,
    Notice,
    RoundStarted,
    ToolFinished,
    ToolStarted,
    run_chat_completion,
)
from jarvis_memory.tools.memory import MEMORY_TOOLS
from jarvis_memory.tools.tool import ToolResult
from tests.fake_claude import CutToolJson, FakeClaude, Reply, Text, Thinking, ToolUse

SONNET = "claude-sonnet-5-5"
GIVE_UP = "Ich komme so nicht ans Ziel."
QUESTION = {"role": "user", "content": [{"type": "text", "text": "Wie heißt mein Hund?"}]}
Execute = Callable[[str, dict[str, Any] | None], ToolResult]


class Tools:
    """Executes every call with the same result and remembers the calls."""

    def __init__(self, result: str = '{"facts": []}', is_error: bool = False) -> None:
        self.calls: list[tuple[str, dict[str, Any] | None]] = []
        self._result = ToolResult(content=result, is_error=is_error)

    def __call__(self, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        self.calls.append((name, arguments))
        return self._result


def run(claude: FakeClaude, execute: Execute, messages: list[Any] | None = None) -> tuple[list[LoopEvent], Usage]:
    """The events but those of the usage, and the usage of all requests together."""
    settings = Settings(_env_file=None, anthropic_api_key="test-key", anthropic_base_url=claude.base_url)
    loop = run_chat_completion(
        claude=Claude(settings),
        model=SONNET,
        system=[
            {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
            for text in ("Du bist JARVIS.", "Bekannte Fakten: keine")
        ],
        messages=[QUESTION] if messages is None else messages,
        tools=[tool.for_claude() for tool in MEMORY_TOOLS],
        execute=execute,
        stop=threading.Event(),
        rounds=[],
        give_up=GIVE_UP,
    )
    events: list[LoopEvent] = []
    usage = Usage()
    for event in loop:
        if isinstance(event, Used):
            usage += event.usage
        else:
            events.append(event)
    return events, usage


def said(events: list[LoopEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def notices(events: list[LoopEvent]) -> list[str]:
    return [event.kind for event in events if isinstance(event, Notice)]


def without_breakpoints(messages: list[Any]) -> list[Any]:
    return [
        {
            **message,
            "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]],
        }
        for message in messages
    ]


def test_a_tool_call_and_a_final_answer_make_exactly_four_messages(claude: FakeClaude) -> None:
    claude.say(["Ich sehe nach.", ToolUse("search_memory", {"query": "Hund"}, id="toolu_1")], "Bruno.")
    events, usage = run(claude, Tools('{"facts": ["Bruno"]}'))
    call = {"type": "tool_use", "id": "toolu_1", "name": "search_memory", "input": {"query": "Hund"}}
    messages = without_breakpoints(claude.requests[-1]["messages"])
    messages[1]["content"][1].pop("caller", None)
    assert [*messages, {"role": "assistant", "content": said(events[-1:])}] == [
        QUESTION,
        {"role": "assistant", "content": [{"type": "text", "text": "Ich sehe nach."}, call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"facts": ["Bruno"]}'}],
        },
        {"role": "assistant", "content": "Bruno."},
    ]
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [RoundStarted, ToolStarted, ToolFinished, RoundStarted]
    assert usage.output > 0


def test_the_messages_handed_in_stay_as_they_are(claude: FakeClaude) -> None:
    claude.say(ToolUse("search_memory", {"query": "Hund"}), "Bruno.")
    messages = [QUESTION]
    run(claude, Tools(), messages)
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "Wie heißt mein Hund?"}]}]


def test_the_usage_is_that_of_all_rounds_together(claude: FakeClaude) -> None:
    claude.say(
        Reply(ToolUse("search_memory", {"query": "Hund"}), usage={"input_tokens": 10, "output_tokens": 1}),
        Reply("Bruno.", usage={"input_tokens": 20, "output_tokens": 2}),
    )
    _, usage = run(claude, Tools())
    assert (usage.input, usage.output) == (30, 3)


def test_the_results_of_parallel_calls_go_back_in_one_message(claude: FakeClaude) -> None:
    calls = [ToolUse("search_memory", {"query": word}, id=f"toolu_{word}") for word in ("Hund", "Katze", "Maus")]
    claude.say([*calls, "So."], "Fertig.")
    tools = Tools()
    run(claude, tools)
    assert [arguments for _, arguments in tools.calls] == [{"query": "Hund"}, {"query": "Katze"}, {"query": "Maus"}]
    last = claude.requests[-1]["messages"][-1]
    assert [block["type"] for block in last["content"]] == ["tool_result"] * 3
    assert [block["tool_use_id"] for block in last["content"]] == ["toolu_Hund", "toolu_Katze", "toolu_Maus"]
    assert claude.refused == []


def test_thinking_and_tool_calls_are_replayed_as_they_came(claude: FakeClaude) -> None:
    # The scripted Claude refuses thinking that was changed or whose system, tools or earlier blocks were changed.
    claude.say(
        [Thinking("Nachsehen."), "Moment.", ToolUse("search_memory", {"query": "Hund"})],
        [Thinking("Noch einmal."), ToolUse("search_memory", {"query": "Bruno"})],
        [Thinking("Aha."), "Bruno."],
    )
    events, _ = run(claude, Tools())
    assert said(events).endswith("Bruno.")
    assert claude.refused == []
    replayed = [block["type"] for message in claude.requests[-1]["messages"] for block in message["content"]]
    assert replayed.count("thinking") == 2


def test_a_failed_tool_is_an_answer_for_claude(claude: FakeClaude) -> None:
    claude.say(ToolUse("search_memory", {"query": "Hund"}), "Das ging nicht.")
    run(claude, Tools("Es gibt kein Gedächtnis.", is_error=True))
    result = claude.requests[-1]["messages"][-1]["content"][0]
    assert result["is_error"] is True
    assert result["content"] == "Es gibt kein Gedächtnis."


def test_a_failing_system_ends_the_loop(claude: FakeClaude) -> None:
    def fail(name: str, arguments: dict[str, Any] | None) -> ToolResult:
        raise DatabaseUnavailable

    claude.say(ToolUse("search_memory", {"query": "Hund"}), "nie")
    with pytest.raises(DatabaseUnavailable):
        run(claude, fail)
    assert len(claude.requests) == 1


def test_after_the_last_round_a_sentence_is_said_and_no_tool_run_any_more(claude: FakeClaude) -> None:
    claude.say(*[["Weiter.", ToolUse("search_memory", {"query": "Hund"})] for _ in range(MAX_TOOL_ROUNDS + 3)])
    tools = Tools()
    events, _ = run(claude, tools)
    assert len(claude.requests) == MAX_TOOL_ROUNDS
    assert len(tools.calls) == MAX_TOOL_ROUNDS - 1
    assert notices(events) == ["too_many_rounds"]
    assert said(events).endswith(f"Weiter.\n\n{GIVE_UP}")


def test_a_call_cut_off_by_max_tokens_runs_no_tool(claude: FakeClaude) -> None:
    claude.say(["Ich merke mir,", CutToolJson("remember_fact", '{"fact": "Der Hu')])
    tools = Tools()
    events, _ = run(claude, tools)
    assert tools.calls == []
    assert notices(events) == ["max_tokens"]
    assert len(claude.requests) == 1


def test_a_whole_call_in_an_answer_cut_off_by_max_tokens_is_not_run_either(claude: FakeClaude) -> None:
    claude.say(Reply(ToolUse("remember_fact", {"fact": "x"}), stop_reason="max_tokens"))
    tools = Tools()
    events, _ = run(claude, tools)
    assert (tools.calls, notices(events)) == ([], ["max_tokens"])


@pytest.mark.parametrize("arguments", ['{"fact": "Der Hu', '["Der Hund"]', '{"limit": NaN}'])
def test_unreadable_arguments_are_told_to_claude_and_replayed_as_an_empty_object(
    claude: FakeClaude, arguments: str
) -> None:
    claude.say(Reply(CutToolJson("remember_fact", arguments), stop_reason="tool_use"), "Noch einmal?")
    tools = Tools("unreadable", is_error=True)
    run(claude, tools)
    assert tools.calls == [("remember_fact", None)]
    assert claude.requests[-1]["messages"][1]["content"][0]["input"] == {}
    assert claude.refused == []


@pytest.mark.parametrize(
    ("stop_reason", "notice"),
    [
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
        ("max_tokens", "max_tokens"),
        ("something_new", "unknown"),
    ],
)
def test_an_unusual_end_is_noticed(claude: FakeClaude, stop_reason: str, notice: str) -> None:
    claude.say(Reply("Bis hierher.", stop_reason=stop_reason))
    events, _ = run(claude, Tools())
    assert said(events) == "Bis hierher."
    assert notices(events) == [notice]


@pytest.mark.parametrize("stop_reason", ["refusal", "model_context_window_exceeded"])
def test_a_refused_answer_runs_no_tool(claude: FakeClaude, stop_reason: str) -> None:
    claude.say(Reply(ToolUse("remember_fact", {"fact": "x"}), stop_reason=stop_reason))
    tools = Tools()
    run(claude, tools)
    assert tools.calls == []


@pytest.mark.parametrize("stop_reason", ["end_turn", "stop_sequence"])
def test_a_usual_end_is_silent(claude: FakeClaude, stop_reason: str) -> None:
    claude.say(Reply("Fertig.", stop_reason=stop_reason))
    events, _ = run(claude, Tools())
    assert notices(events) == []


@pytest.mark.parametrize("stop_reason", ["end_turn", "stop", "tool_calls"])
def test_a_tool_call_is_run_whatever_a_local_server_calls_the_end(claude: FakeClaude, stop_reason: str) -> None:
    claude.say(Reply(ToolUse("search_memory", {"query": "Hund"}), stop_reason=stop_reason), "Bruno.")
    tools = Tools()
    events, _ = run(claude, tools)
    assert len(tools.calls) == 1
    assert said(events) == "Bruno."


def test_blank_texts_are_not_replayed(claude: FakeClaude) -> None:
    claude.say([Text(" \n"), ToolUse("search_memory", {"query": "Hund"}), Text("")], "Bruno.")
    run(claude, Tools())
    assert [block["type"] for block in claude.requests[-1]["messages"][1]["content"]] == ["tool_use"]
    assert claude.refused == []


def test_each_request_has_at_most_four_breakpoints_and_one_at_its_end(claude: FakeClaude) -> None:
    claude.say(*[ToolUse("search_memory", {"query": "Hund"})] * 5, "Bruno.")
    run(claude, Tools())
    assert len(claude.requests) == 6
    for request in claude.requests:
        blocks = [*request["system"], *(block for message in request["messages"] for block in message["content"])]
        assert sum("cache_control" in block for block in blocks) == 3
        assert "cache_control" in blocks[-1]


def test_within_a_turn_every_request_begins_as_the_one_before_it(claude: FakeClaude) -> None:
    claude.say(*[[Thinking("hm"), ToolUse("search_memory", {"query": "Hund"})]] * 3, "Bruno.")
    run(claude, Tools())
    for earlier, later in zip(claude.requests, claude.requests[1:], strict=False):
        assert (earlier["system"], earlier["tools"]) == (later["system"], later["tools"])
        before = without_breakpoints(earlier["messages"])
        assert without_breakpoints(later["messages"])[: len(before)] == before

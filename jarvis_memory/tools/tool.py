"""What a tool is, and `execute_tool`, the one way to run one."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from zoneinfo import ZoneInfo

import jsonschema

from jarvis_memory.database import Database
from jarvis_memory.embeddings import Embeddings, Vector
from jarvis_memory.errors import EmbeddingUnavailable, JarvisError, ToolError
from jarvis_memory.facts import Origin
from jarvis_memory.settings import Settings
from jarvis_memory.text import clean_deep

log = logging.getLogger(__name__)

RESULT_CHARACTERS = 20_000


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may use, and whose turn it runs in."""

    database: Database
    embeddings: Embeddings
    user_id: int
    conversation_id: int
    user_message_id: int
    answer_message_id: int
    # For the tools that reach out: whose calendar and mailbox.
    settings: Settings
    # Where what is learnt now may come from: foreign once a text of somebody else was read in this turn.
    origin: Origin = "said"
    # The person's; None means the machine's.
    time_zone: ZoneInfo | None = None


def embedded(context: ToolContext, query: str) -> Vector | None:
    """The vector to search with; None while the embedding service is down: then words alone have to do."""
    try:
        return context.embeddings.embed_query(query)
    except EmbeddingUnavailable as error:
        log.warning("Searching by words alone: %s", error)
        return None


# Whose text a tool's result is, where it is not the person's own.
Foreign = Literal["mail", "appointment", "document"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as Claude sees it, and the function behind it.

    `run` returns a JSON object as the result, or raises ToolError with a sentence that helps Claude to go on.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    run: Callable[[ToolContext, dict[str, Any]], dict[str, Any]]
    # What it does with the memory: a chat that does not read or write it is not offered the tool.
    memory: Literal["reads", "writes"] | None = None
    # When it waits for the person's click: never, always, or once something foreign was read in the same turn.
    approval: Literal["never", "always", "after_foreign"] = "never"
    # Its result holds text that somebody else wrote.
    foreign: Foreign | None = None
    # For a tool that waits: exactly what would happen, checked, as the card shows it and as `run` gets it then.
    # Raises ToolError when there is nothing to approve.
    prepare: Callable[[ToolContext, dict[str, Any]], dict[str, Any]] | None = None
    # The fields of what was prepared that the person may change in the card before they approve.
    editable: tuple[str, ...] = ()
    # Raises a JarvisError for the person when what they made of it cannot be carried out.
    check: Callable[[dict[str, Any]], None] | None = None

    def waits(self, context: ToolContext) -> bool:
        """Whether it waits for a click in this turn."""
        return self.approval == "always" or (self.approval == "after_foreign" and context.origin != "said")

    def for_claude(self) -> dict[str, Any]:
        """The entry of the request's `tools`."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """`content` is what Claude gets, JSON or a sentence about the error; `data` is what the card shows."""

    content: str
    is_error: bool = False
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ToolWaits:
    """The tool has not run: it waits for the person's decision about `action`, which is exactly what would happen."""

    action: dict[str, Any]


def execute_tool(
    tools: Sequence[Tool], context: ToolContext, name: str, tool_input: dict[str, Any] | None
) -> ToolResult | ToolWaits:
    """Run the tool, or say that it waits. What goes wrong inside it is a result for Claude.

    Raises JarvisError, as for a database that cannot be reached.
    """
    tool = find_tool(tools, name)
    if tool is None:
        return _failed(f"There is no tool named {name!r}.")
    if tool_input is None:
        return _failed("The arguments were not readable JSON. Call the tool again with complete arguments.")
    try:
        jsonschema.validate(tool_input, tool.input_schema)
    except jsonschema.ValidationError as error:
        place = ".".join(str(part) for part in error.absolute_path)
        return _failed(f"Bad arguments{' at ' + place if place else ''}: {error.message[:300]}")
    if not tool.waits(context):
        return _result_of(tool, tool.run, context, tool_input)
    if tool.prepare is None:
        return ToolWaits(action=tool_input)
    prepared = _result_of(tool, tool.prepare, context, tool_input)
    return prepared if prepared.is_error else ToolWaits(action=prepared.data)


def carry_out(tools: Sequence[Tool], context: ToolContext, name: str, action: dict[str, Any]) -> ToolResult:
    """Run a tool that has waited, after the person approved of this action. Raises as `execute_tool` does."""
    tool = find_tool(tools, name)
    if tool is None:
        return _failed(f"The tool {name!r} is not available any more. Nothing was done.")
    return _result_of(tool, tool.run, context, action)


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """The tool of this name."""
    return next((tool for tool in tools if tool.name == name), None)


def _result_of(
    tool: Tool,
    run: Callable[[ToolContext, dict[str, Any]], dict[str, Any]],
    context: ToolContext,
    given: dict[str, Any],
) -> ToolResult:
    try:
        data = clean_deep(run(context, given))
        assert isinstance(data, dict)
        content = json.dumps(data, ensure_ascii=False)
    except ToolError as error:
        return _failed(str(error))
    except JarvisError:
        raise
    except Exception:  # noqa: BLE001 - whatever a tool does, the conversation goes on
        log.exception("The tool %s failed", tool.name)
        return _failed("The tool failed because of an internal error. Tell the person and do not retry.")
    if len(content) > RESULT_CHARACTERS:
        content = content[:RESULT_CHARACTERS] + "… (cut)"
    return ToolResult(content=content, data=data)


def _failed(message: str) -> ToolResult:
    return ToolResult(content=message, is_error=True)

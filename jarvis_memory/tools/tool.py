"""What a tool is, and `execute_tool`, the one way to run one."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema

from jarvis_memory.database import Database
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.errors import JarvisError, ToolError
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


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as Claude sees it, and the function behind it.

    `run` returns a JSON object as the result, or raises ToolError with a sentence that helps Claude to go on.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    run: Callable[[ToolContext, dict[str, Any]], dict[str, Any]]

    def for_claude(self) -> dict[str, Any]:
        """The entry of the request's `tools`."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """`content` is what Claude gets, JSON or a sentence about the error; `data` is what the card shows."""

    content: str
    is_error: bool = False
    data: dict[str, Any] = field(default_factory=dict)


def execute_tool(
    tools: Sequence[Tool], context: ToolContext, name: str, tool_input: dict[str, Any] | None
) -> ToolResult:
    """Run the tool. What goes wrong inside it is a result for Claude; an unreachable database is raised.

    Raises JarvisError.
    """
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return _failed(f"There is no tool named {name!r}.")
    if tool_input is None:
        return _failed("The arguments were not readable JSON. Call the tool again with complete arguments.")
    try:
        jsonschema.validate(tool_input, tool.input_schema)
        data = clean_deep(tool.run(context, tool_input))
        assert isinstance(data, dict)
        content = json.dumps(data, ensure_ascii=False)
    except jsonschema.ValidationError as error:
        place = ".".join(str(part) for part in error.absolute_path)
        return _failed(f"Bad arguments{' at ' + place if place else ''}: {error.message[:300]}")
    except ToolError as error:
        return _failed(str(error))
    except JarvisError:
        raise
    except Exception:  # noqa: BLE001 - whatever a tool does, the conversation goes on
        log.exception("The tool %s failed", name)
        return _failed("The tool failed because of an internal error. Tell the person and do not retry.")
    if len(content) > RESULT_CHARACTERS:
        content = content[:RESULT_CHARACTERS] + "… (cut)"
    return ToolResult(content=content, data=data)


def _failed(message: str) -> ToolResult:
    return ToolResult(content=message, is_error=True)

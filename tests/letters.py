"""Letters: tools that reach out of JARVIS, for the tests of approvals. One is read, one is sent for good."""

from pathlib import Path
from typing import Any

from jarvis_memory.errors import JarvisError, ToolError
from jarvis_memory.tools.tool import Tool, ToolContext


class LetterUnusable(JarvisError):
    """A letter without a text."""


def letter_tools(outbox: Path, received: str = "", hang: Any = None) -> list[Tool]:
    """`read_letter` returns `received`; `send_letter` adds a line to `outbox`, after which `hang` is called."""

    def read(_: ToolContext, __: dict[str, Any]) -> dict[str, Any]:
        return {"text": received}

    def prepare(_: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["to"] == "nobody":
            raise ToolError("There is nobody of this name.")
        return {"from": "Anna", **arguments}

    def check(action: dict[str, Any]) -> None:
        if not action["text"].strip():
            raise LetterUnusable(field="text")

    def send(_: ToolContext, action: dict[str, Any]) -> dict[str, Any]:
        with outbox.open("a", encoding="utf-8") as file:
            file.write(f"{action['from']} → {action['to']}: {action['text']}\n")
        if hang:
            hang()
        return {"sent": True}

    text = {"type": "string", "maxLength": 1_000}
    return [
        Tool(
            name="read_letter",
            description="Reads the letter that came.",
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
            run=read,
            foreign="mail",
        ),
        Tool(
            name="send_letter",
            description="Sends a letter.",
            input_schema={
                "type": "object",
                "properties": {"to": text, "text": text},
                "required": ["to", "text"],
                "additionalProperties": False,
            },
            run=send,
            approval="always",
            prepare=prepare,
            check=check,
            editable=("to", "text"),
        ),
    ]


def sent(outbox: Path) -> list[str]:
    """The letters that went out."""
    return outbox.read_text(encoding="utf-8").splitlines() if outbox.exists() else []

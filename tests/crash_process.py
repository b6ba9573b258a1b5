"""A process of JARVIS without pages, for tests that kill it: does what stdin says, a line of JSON at a time.

Its settings are its environment, its argument the seconds between two saves of a growing answer. It prints one line
of JSON for each that it reads.
"""

import dataclasses
import json
import sys
import threading
from typing import Any

from jarvis_memory import turn_saver
from jarvis_memory.assembly import Parts, build_parts
from jarvis_memory.chat_turn import decide, start_turn
from jarvis_memory.documents import add_document
from jarvis_memory.settings import load_settings
from jarvis_memory.tools.tool import Tool, ToolContext
from tests.document_files import pdf_of
from tests.letters import letter_tools


def wait_for_ever() -> None:
    threading.Event().wait()


def hang(_: ToolContext, __: dict[str, Any]) -> dict[str, Any]:
    wait_for_ever()
    return {}


HANGING_TOOL = Tool(
    name="write_letter",
    description="Writes a letter, and never comes back.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    run=hang,
)


def do(parts: Parts, task: dict[str, Any]) -> dict[str, Any]:
    if "approve" in task:
        decided = decide(parts, user_id=parts.user_id, action_id=task["approve"], approve=True)
        assert decided
        return {"conversation_id": decided.conversation_id, "answer_message_id": decided.answer_message_id}
    if "document" in task:
        content = pdf_of([f"{task['document']} {page}\n" * 50 for page in range(900)])
        with parts.database.begin() as connection:
            number, _ = add_document(connection, user_id=parts.user_id, name="lang.pdf", content=content, megabytes=50)
        parts.background.wake()
        return {"document_id": number}
    turn = start_turn(parts, user_id=parts.user_id, message=task["ask"], conversation_id=task.get("conversation_id"))
    if task.get("wait"):
        turn.done.wait()
    return {"conversation_id": turn.conversation_id, "answer_message_id": turn.answer_message_id}


def main() -> None:
    turn_saver.SAVE_SECONDS = float(sys.argv[1])
    built = build_parts(load_settings())
    # What is sent is sent before the tool hangs.
    letters = letter_tools(built.settings.jarvis_data_dir / "outbox", hang=wait_for_ever)
    parts = dataclasses.replace(built, tools=[*built.tools, HANGING_TOOL, *letters])
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(do(parts, json.loads(line))), flush=True)
    parts.close()


if __name__ == "__main__":
    main()

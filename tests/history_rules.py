"""What the Messages API refuses, as pure functions over a request body, in the words of the real API.

Stricter than the real API in one point: a blank text block is refused also beside other blocks.
No server and no replies in here: see fake_claude.py.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.file_rules import file_violations, files_together

TOOL_NAME = "^[a-zA-Z0-9_-]{1,128}$"
TOOL_USE_ID = "^[a-zA-Z0-9_-]+$"
REQUIRED_PARAMETERS = ("model", "max_tokens", "messages")
SAMPLING_PARAMETERS = ("temperature", "top_p", "top_k")
OTHER_PARAMETERS = (
    "system tools tool_choice stream stop_sequences metadata thinking output_config cache_control "
    "service_tier container inference_geo speed diagnostics"
)
BLOCK_KEYS = {
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "thinking": {"type", "thinking", "signature"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
}
SONNET = "claude-sonnet-5-5"  # refuses a forced tool and thinking "disabled", which other models take
Body = dict[str, Any]
Block = dict[str, Any]


def violations(body: Body) -> str | None:
    """The message of the 400 that the API would answer with, None for a request that it accepts.

    Only the first violation is read, so each check may rely on those before it, its own lines included.
    """
    return next(_violations(body), None)


def blocks_of(content: Any) -> list[Block]:
    """The content of a message, of `system` or of a tool result as a list of blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def merged_messages(body: Body) -> list[tuple[str, list[Block]]]:
    """Role and blocks of each turn; neighbours of the same role are one turn, as for the real API."""
    turns: list[tuple[str, list[Block]]] = []
    for message in body["messages"]:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks_of(message["content"]))
        else:
            turns.append((message["role"], blocks_of(message["content"])))
    return turns


def _violations(body: Body) -> Iterator[str]:
    yield from _parameters(body)
    yield from _characters(body)
    yield from _system(body)
    yield from _tools(body)
    yield from _thinking_parameter(body)
    yield from _shapes(body)
    marked = sum(1 for value in _walk(body) if isinstance(value, dict) and value.get("cache_control"))
    if marked > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marked}."
    turns = merged_messages(body)
    if turns[0][0] != "user":
        yield 'messages: first message must use the "user" role'
    yield from _tool_pairs(turns)
    yield from files_together([block for _, blocks in turns for block in blocks])
    if turns[-1][0] == "assistant":
        yield ("This model does not support assistant message prefill. The conversation must end with a user message.")
    yield from _thinking_blocks(body)


def _parameters(body: Body) -> Iterator[str]:
    for name in REQUIRED_PARAMETERS:
        if body.get(name) is None:
            yield f"{name}: Field required"
    for name in body:
        if name in SAMPLING_PARAMETERS:
            yield f"`{name}` is deprecated for this model."
        elif name not in (*REQUIRED_PARAMETERS, *OTHER_PARAMETERS.split()):
            yield f"{name}: Extra inputs are not permitted"
    if not isinstance(body["model"], str):
        yield "model: Input should be a valid string"
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        yield "max_tokens: Input should be a valid integer greater than or equal to 1"
    if not isinstance(body["messages"], list) or not all(isinstance(one, dict) for one in body["messages"]):
        yield "messages: Input should be a valid array of messages"
    if not body["messages"]:
        yield "messages: at least one message is required"


def _characters(body: Body) -> Iterator[str]:
    for text in (value for value in _walk(body) if isinstance(value, str)):
        if re.search("[\ud800-\udfff]", text):
            yield "The request body is not valid JSON: no low surrogate in string"
        if "\0" in text:
            yield "The request body is not valid JSON: null characters are not permitted in strings"


def _walk(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        value = [*value, *value.values()]
    for item in value if isinstance(value, list) else []:
        yield from _walk(item)


def _system(body: Body) -> Iterator[str]:
    system = body.get("system", "")
    if isinstance(system, str):
        return
    if not isinstance(system, list) or not all(isinstance(block, dict) for block in system):
        yield "system: Input should be a valid list"
    for at, block in enumerate(system):
        if block.get("type") != "text":
            yield f"system.{at}.type: Input should be 'text'"
        yield from _block_shape(f"system.{at}", "system", block)


def _tools(body: Body) -> Iterator[str]:
    tools = body.get("tools") or []
    for at, tool in enumerate(tools):
        if not re.fullmatch(TOOL_NAME[1:-1], tool.get("name", "")):
            yield f"tools.{at}.custom.name: String should match pattern '{TOOL_NAME}'"
        if tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{at}.custom.input_schema: Field required"
    if len({tool["name"] for tool in tools}) < len(tools):
        yield "tools: Tool names must be unique."
    choice = (body.get("tool_choice") or {}).get("type")
    if choice in ("any", "tool"):
        if body["model"] == SONNET:
            yield 'tool_choice: type "tool" and "any" are not supported for this model'
        if (body.get("thinking") or {}).get("type", "disabled") != "disabled":
            yield "Thinking may not be enabled when tool_choice forces tool use."


def _thinking_parameter(body: Body) -> Iterator[str]:
    kind = (body.get("thinking") or {}).get("type")
    if kind == "enabled":
        yield 'thinking.type.enabled: not supported for this model. Use "adaptive" and output_config.effort.'
    if kind == "disabled" and body["model"] == SONNET:
        yield 'thinking.type.disabled: not supported for this model. Use "between_tools" instead.'


def _shapes(body: Body) -> Iterator[str]:
    for at, message in enumerate(body["messages"]):
        where = f"messages.{at}"
        for key in message.keys() - {"role", "content"}:
            yield f"{where}.{key}: Extra inputs are not permitted"
        if message.get("role") not in ("user", "assistant"):
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        content = message.get("content")
        if not isinstance(content, (str, list)):
            yield f"{where}.content: Input should be a valid list"
        if not content:
            yield f"{where}: {message['role']} messages must have non-empty content"
        for index, block in enumerate(blocks_of(content)):
            name = where if isinstance(content, str) else f"{where}.content.{index}"
            yield from _block_shape(name, message["role"], block)


def _block_shape(where: str, role: str, block: Block) -> Iterator[str]:
    if not isinstance(block, dict) or "type" not in block:
        yield f"{where}: Input should be a valid dictionary with a `type`"
    kind = block["type"]
    for key in block.keys() - BLOCK_KEYS.get(kind, block.keys()):
        yield f"{where}.{kind}.{key}: Extra inputs are not permitted"
    if kind == "text":
        if not isinstance(block.get("text"), str):
            yield f"{where}.text.text: Field required"
        if not block["text"] and block.get("cache_control"):
            yield f"{where}.text: cache_control cannot be set for empty text blocks"
        if not block["text"].strip():
            wanted = "contain non-whitespace text" if block["text"] else "be non-empty"
            yield f"{where.split('.')[0]}: text content blocks must {wanted}"
    if kind in ("image", "document"):
        yield from file_violations(where, role, block)
    if kind == "tool_result":
        if not isinstance(block.get("tool_use_id"), str):
            yield f"{where}.tool_result.tool_use_id: Field required"
        if role != "user":
            yield f"{where}: `tool_result` blocks can only be in `user` messages"
        for at, part in enumerate(blocks_of(block.get("content") or [])):
            yield from _block_shape(f"{where}.tool_result.content.{at}", role, part)
    if kind in ("tool_use", "thinking") and role != "assistant":
        yield f"{where}: `{kind}` blocks can only be in `assistant` messages"
    if kind == "tool_use":
        if not re.fullmatch(TOOL_USE_ID[1:-1], str(block.get("id", ""))):
            yield f"{where}.tool_use.id: String should match pattern '{TOOL_USE_ID}'"
        if not isinstance(block.get("input"), dict):
            yield f"{where}.tool_use.input: Input should be a valid dictionary"
    for key in BLOCK_KEYS["thinking"] - block.keys() if kind == "thinking" else ():
        yield f"{where}.thinking.{key}: Field required"


def _tool_pairs(turns: list[tuple[str, list[Block]]]) -> Iterator[str]:
    seen: set[str] = set()
    for at, (_, blocks) in enumerate(turns):
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        before = [block["id"] for block in turns[at - 1][1] if block["type"] == "tool_use"] if at else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        for index, block in enumerate(blocks):
            if block["type"] == "tool_use" and (block["id"] in seen or asked.count(block["id"]) > 1):
                yield f"messages.{at}.content.{index}: `tool_use` ids must be unique"
            if block["type"] == "tool_result" and block["tool_use_id"] not in before:
                yield (
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )
            if block["type"] == "tool_result" and results.count(block["tool_use_id"]) > 1:
                yield (
                    f"messages.{at}.content.{index}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {block['tool_use_id']}"
                )
        seen.update(asked)
        # Only what stands before any other block counts: text in front of the results hides them.
        leading = set()
        for block in turns[at + 1][1] if at + 1 < len(turns) else []:
            if block["type"] != "tool_result":
                break
            leading.add(block["tool_use_id"])
        if missing := [one for one in asked if one not in leading]:
            yield (
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message."
            )


def sign_thinking(body: Body, before: list[Block], thinking: str) -> str:
    """The signature of a thinking block answered to `body` after the blocks `before` of the same answer.

    It binds the text to system, tools and everything earlier; it says so itself: no server keeps state.
    """
    flat = [(role, block) for role, blocks in merged_messages(body) for block in blocks]
    return _signature(body, flat + [("assistant", block) for block in before], thinking)


def _signature(body: Body, earlier: list[tuple[str, Block]], thinking: str) -> str:
    previous = [block["signature"] for _, block in earlier if block["type"] == "thinking"]
    rest = [(role, block) for role, block in earlier if block["type"] != "thinking"]
    parts = (thinking, blocks_of(body.get("system", "")), body.get("tools") or [], rest, previous[-1:])
    return base64.b64encode(json.dumps([_digest(part) for part in parts]).encode()).decode()


def _decoded(signature: str) -> Any:
    return json.loads(base64.b64decode(signature, validate=True))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """The value without what may change between requests: cache breakpoints and unset optional fields."""
    if isinstance(value, dict):
        unset = {key for key in ("caller", "citations", "toolset_name") if value.get(key) is None}
        return {key: _plain(item) for key, item in value.items() if key not in unset | {"cache_control"}}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _thinking_blocks(body: Body) -> Iterator[str]:
    earlier: list[tuple[str, Block]] = []
    for at, (role, blocks) in enumerate(merged_messages(body)):
        for index, block in enumerate(blocks):
            if block["type"] == "thinking":
                yield from _replayed(f"messages.{at}.content.{index}", body, earlier, block)
            earlier.append((role, block))


def _replayed(where: str, body: Body, earlier: list[tuple[str, Block]], block: Block) -> Iterator[str]:
    try:
        thinking, system, tools, rest, previous = _decoded(block["signature"])
    except (ValueError, TypeError):
        yield f"{where}: Invalid `signature` in `thinking` block"
        return
    expected = _decoded(_signature(body, earlier, block["thinking"]))
    if thinking != expected[0]:
        yield (
            f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            "modified. These blocks must remain as they were in the original response."
        )
    bound = (
        f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
        'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". '
    )
    if system != expected[1]:
        yield bound + "The `system` prompt differs from the one this block was created with."
    if tools != expected[2]:
        yield bound + "The `tools` list differs from the one this block was created with."
    # The oldest thinking blocks may be left out; one in between may not.
    left_out = previous != expected[4] and any(other["type"] == "thinking" for _, other in earlier)
    if rest != expected[3] or left_out:
        yield bound + "Content that preceded this block when it was created differs in this request."

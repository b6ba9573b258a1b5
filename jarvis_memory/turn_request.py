"""What one turn sends to Claude: instructions, facts, what is recalled, and the conversation; stored as it is sent."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jarvis_memory.answers import Block
from jarvis_memory.assembly import Parts
from jarvis_memory.attachments import load_attachments
from jarvis_memory.conversations import (
    Conversation,
    Message,
    count_messages,
    get_conversation,
    load_messages,
    load_sent,
    update_message,
)
from jarvis_memory.errors import ConversationNotFound
from jarvis_memory.history import build_history
from jarvis_memory.history_cut import MOST_MESSAGES, history_budget, last_cut, new_cut
from jarvis_memory.memory_context import MemoryContext, build_memory_context
from jarvis_memory.models import context_window
from jarvis_memory.preferences import load_preferences
from jarvis_memory.prompts import (
    CALENDAR_ASSISTANT_INSTRUCTIONS,
    DOCUMENT_ASSISTANT_INSTRUCTIONS,
    MAIL_ASSISTANT_INSTRUCTIONS,
    MEMORY_ASSISTANT_INSTRUCTIONS,
    MEMORY_OFF,
    MEMORY_READ_ONLY,
    OWN_INSTRUCTIONS,
    Language,
    context_block,
    earlier_block,
)
from jarvis_memory.running_turns import RunningTurn
from jarvis_memory.sent_files import files_to_send
from jarvis_memory.summaries import get_summary
from jarvis_memory.tools.calendar import CALENDAR_TOOLS
from jarvis_memory.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class TurnRequest:
    """The parts of the request, and the tools that this chat may use."""

    language: Language
    system: list[Block]
    messages: list[Block]
    tools: list[Tool]
    # Whether files came with the message: their text is foreign.
    has_files: bool


def prepare_request(parts: Parts, user_id: int, turn: RunningTurn) -> TurnRequest:
    """Recall, put together, and store what is sent exactly as it is sent.

    Raises ConversationNotFound when the chat was deleted meanwhile, DatabaseUnavailable.
    """
    settings = parts.settings
    with parts.database.begin() as connection:
        preferences = load_preferences(connection, user_id=user_id, settings=settings)
        conversation = get_conversation(connection, user_id=user_id, conversation_id=turn.conversation_id)
    turn.model = conversation.model or preferences.model
    language = preferences.language
    history = _load(parts, user_id, turn)
    memory = (
        MemoryContext()
        if not conversation.reads_memory
        else build_memory_context(
            database=parts.database,
            embeddings=parts.embeddings,
            user_id=user_id,
            conversation_id=turn.conversation_id,
            message=history[-1].content,
            already_recalled=_already_recalled(history),
            facts_budget=settings.jarvis_facts_budget,
            language=language,
            time_zone=preferences.time_zone,
        )
    )
    instructions = f"{MEMORY_ASSISTANT_INSTRUCTIONS[language]}\n\n{DOCUMENT_ASSISTANT_INSTRUCTIONS[language]}"
    if settings.mail_is_configured:
        instructions += "\n\n" + MAIL_ASSISTANT_INSTRUCTIONS[language]
    if not conversation.remember:
        instructions += "\n\n" + (MEMORY_READ_ONLY if conversation.reads_memory else MEMORY_OFF)[language]
    tools = _tools(parts, conversation)
    if any(tool in CALENDAR_TOOLS for tool in tools):
        instructions += f"\n\n{CALENDAR_ASSISTANT_INSTRUCTIONS[language]}"
    if preferences.instructions:
        instructions += f"\n\n{OWN_INSTRUCTIONS[language]}\n{preferences.instructions}"
    system = _system([instructions, memory.facts_text])
    now = context_block(datetime.now(UTC), language, preferences.time_zone)
    history = _save_with_message(parts, user_id, turn, memory, now, history)
    history = _cut(parts, user_id, turn, history, language)
    messages = _for_claude(parts, user_id, history, language, recalled=conversation.reads_memory)
    _save_sent(parts, user_id, turn, memory, system, history[0], len(messages))
    turn.write(block=_memory_block(memory))
    return TurnRequest(
        language=language,
        system=system,
        messages=messages,
        tools=tools,
        has_files=bool(history[-1].blocks_of("attachment")),
    )


def resume_request(parts: Parts, user_id: int, turn: RunningTurn) -> TurnRequest:
    """The request of a turn that was paused, as it was sent before. Raises as `prepare_request` does."""
    with parts.database.begin() as connection:
        preferences = load_preferences(connection, user_id=user_id, settings=parts.settings)
        conversation = get_conversation(connection, user_id=user_id, conversation_id=turn.conversation_id)
        sent = load_sent(connection, user_id=user_id, message_id=turn.answer_message_id)
    # The thinking of a model belongs to it alone. What was sent is gone when the memory was deleted meanwhile.
    turn.model = sent["model"] if sent else conversation.model or preferences.model
    system = sent["system"] if sent else [MEMORY_ASSISTANT_INSTRUCTIONS[preferences.language]]
    history = _load(parts, user_id, turn)
    history = history[last_cut(history) :]
    return TurnRequest(
        language=preferences.language,
        system=_system(system),
        messages=_for_claude(parts, user_id, history, preferences.language, recalled=conversation.reads_memory),
        tools=_tools(parts, conversation),
        has_files=bool(history[-1].blocks_of("attachment")),
    )


def _system(texts: list[str]) -> list[Block]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in texts if text]


def _tools(parts: Parts, conversation: Conversation) -> list[Tool]:
    return [tool for tool in sorted(parts.tools, key=lambda tool: tool.name) if _may_use(conversation, tool)]


def _may_use(conversation: Conversation, tool: Tool) -> bool:
    if tool.memory == "writes":
        return conversation.remember
    return tool.memory is None or conversation.reads_memory


def _load(parts: Parts, user_id: int, turn: RunningTurn) -> list[Message]:
    """The conversation up to and with the message that is to be answered."""
    with parts.database.begin() as connection:
        history = load_messages(
            connection,
            user_id=user_id,
            conversation_id=turn.conversation_id,
            limit=MOST_MESSAGES,
            before_id=turn.user_message_id + 1,
        )
    if not history:  # deleted meanwhile
        raise ConversationNotFound
    return history


def _cut(parts: Parts, user_id: int, turn: RunningTurn, history: list[Message], language: Language) -> list[Message]:
    """What of the conversation goes along; a new cut is stored with the message it begins with."""
    history = history[last_cut(history) :]
    cut = new_cut(history, history_budget(context_window(turn.model, parts.settings)))
    if cut == 0:
        return history
    first = history[cut]
    with parts.database.begin() as connection:
        before = count_messages(connection, user_id=user_id, conversation_id=turn.conversation_id, before_id=first.id)
        summary = get_summary(connection, user_id=user_id, conversation_id=turn.conversation_id)
        blocks = [{"type": "earlier", "text": earlier_block(before, summary, language)}, *first.blocks]
        update_message(connection, user_id=user_id, message_id=first.id, blocks=blocks)
    return [replace(first, blocks=blocks), *history[cut + 1 :]]


def _for_claude(
    parts: Parts, user_id: int, history: list[Message], language: Language, *, recalled: bool
) -> list[Block]:
    """The messages of the request, with the files that still go along."""
    # Servers of one's own that speak the Messages API know images, but hardly any knows documents.
    documents = parts.settings.claude_reads_documents
    with parts.database.begin() as connection:
        ids = files_to_send(history, pdfs=documents)
        files = load_attachments(connection, user_id=user_id, ids=ids)
    return build_history(history, language, files, documents=documents, recalled=recalled)


def _already_recalled(history: list[Message]) -> list[int]:
    return [
        conversation["id"]
        for message in history[:-1]
        for block in message.blocks_of("recalled")
        for conversation in block["conversations"]
    ]


def _save_with_message(
    parts: Parts, user_id: int, turn: RunningTurn, memory: MemoryContext, now: str, history: list[Message]
) -> list[Message]:
    """Store what goes with the message exactly as it is sent, and read the conversation again with it."""
    kept = [*history[-1].blocks_of("attachment"), *history[-1].blocks_of("earlier_try")]
    blocks: list[dict[str, Any]] = [{"type": "now", "text": now}, *kept]
    if memory.recalled_text:
        recalled = [
            {
                "id": one.id,
                "title": one.title,
                "summary": one.summary,
                "excerpt": one.excerpt,
                "found_by": one.found_by,
            }
            for one in memory.recalled
        ]
        blocks.insert(0, {"type": "recalled", "text": memory.recalled_text, "conversations": recalled})
    with parts.database.begin() as connection:
        update_message(connection, user_id=user_id, message_id=turn.user_message_id, blocks=blocks)
    return _load(parts, user_id, turn)


def _save_sent(
    parts: Parts,
    user_id: int,
    turn: RunningTurn,
    memory: MemoryContext,
    system: list[dict[str, Any]],
    first: Message,
    messages: int,
) -> None:
    sent = {
        "model": turn.model,
        "system": [block["text"] for block in system],
        "earlier": "".join(block["text"] for block in first.blocks_of("earlier")) or None,
        "recalled": memory.recalled_text or None,
        "messages": messages,
    }
    with parts.database.begin() as connection:
        update_message(connection, user_id=user_id, message_id=turn.answer_message_id, sent=sent)


def _memory_block(memory: MemoryContext) -> dict[str, Any]:
    return {
        "type": "memory",
        "fact_ids": [fact.id for fact in memory.facts],
        "more_facts": memory.more_facts,
        "conversations": [
            {"id": one.id, "title": one.title, "date": one.updated_at.isoformat()} for one in memory.recalled
        ],
    }

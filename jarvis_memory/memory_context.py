"""`build_memory_context`: what the memory has for one message: the facts, and the earlier conversations that fit."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from jarvis_memory.database import Database
from jarvis_memory.embeddings import Embeddings, Vector
from jarvis_memory.errors import EmbeddingUnavailable
from jarvis_memory.facts import Fact, count_memory_facts, get_all_memory_facts, rank_memory_facts
from jarvis_memory.prompts import FACTS_HEADING, MORE_FACTS, NO_FACTS, RECALLED_NOTE, Language, written_date
from jarvis_memory.recall import RecalledConversation, recall_conversations
from jarvis_memory.text import escape_markup, is_small_talk

log = logging.getLogger(__name__)

# Of a budget that is too small for all facts, this share goes to the relevant ones, the rest to the newest.
RELEVANT_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class MemoryContext:
    """The two texts for the prompt and what they were made of. `recalled_text` is empty when nothing was recalled.

    Without anything it is that of a chat that does not read the memory.
    """

    facts_text: str = ""
    facts: list[Fact] = field(default_factory=list)
    more_facts: int = 0
    recalled_text: str = ""
    recalled: list[RecalledConversation] = field(default_factory=list)


def build_memory_context(
    *,
    database: Database,
    embeddings: Embeddings,
    user_id: int,
    conversation_id: int,
    message: str,
    already_recalled: list[int],
    facts_budget: int,
    language: Language,
    time_zone: ZoneInfo | None = None,
) -> MemoryContext:
    """Facts within `facts_budget` characters, and up to three other conversations that were not recalled here before.

    Without the embedding service it works with words alone. Raises DatabaseUnavailable.
    """
    embedding = None if is_small_talk(message) else _embedding(embeddings, message)
    with database.begin() as connection:
        facts = get_all_memory_facts(connection, user_id=user_id)
        total = count_memory_facts(connection, user_id=user_id)
        if _size(facts) > facts_budget or total > len(facts):
            relevant = rank_memory_facts(
                connection,
                user_id=user_id,
                query=message,
                embedding=embedding,
                embedding_model=embeddings.model,
                limit=200,
            )
            facts = _within_budget(relevant, facts, facts_budget)
        recalled = []
        if not is_small_talk(message):
            recalled = recall_conversations(
                connection,
                user_id=user_id,
                message=message,
                embedding=embedding,
                embedding_model=embeddings.model,
                without=[conversation_id, *already_recalled],
                now=datetime.now(UTC).astimezone(time_zone),
            )
    return MemoryContext(
        facts_text=_facts_text(facts, total - len(facts), language),
        facts=facts,
        more_facts=total - len(facts),
        recalled_text=_recalled_text(recalled, language, time_zone),
        recalled=recalled,
    )


def _embedding(embeddings: Embeddings, message: str) -> Vector | None:
    try:
        return embeddings.embed_query(message)
    except EmbeddingUnavailable as error:
        log.warning("Recall by words alone: %s", error)
        return None


def _line(fact: Fact) -> str:
    return f"- [{fact.id}] {fact.content}"


def _size(facts: list[Fact]) -> int:
    return sum(len(_line(fact)) + 1 for fact in facts)


def _within_budget(relevant: list[Fact], by_age: list[Fact], budget: int) -> list[Fact]:
    """The most relevant facts, then the newest, as far as the budget goes; in the order of their ids."""
    kept: dict[int, Fact] = {}
    left = budget
    for facts, floor in ((relevant, budget * (1 - RELEVANT_SHARE)), (reversed(by_age), 0.0)):
        for fact in facts:
            size = _size([fact])
            if fact.id not in kept and left - size >= floor:
                kept[fact.id] = fact
                left -= size
    return [kept[number] for number in sorted(kept)]


def _facts_text(facts: list[Fact], more: int, language: Language) -> str:
    lines = [FACTS_HEADING[language], *(_line(fact) for fact in facts)]
    if not facts:
        lines.append(NO_FACTS[language])
    if more:
        lines.append(MORE_FACTS[language].format(count=more))
    return "\n".join(lines)


def _recalled_text(recalled: list[RecalledConversation], language: Language, zone: ZoneInfo | None) -> str:
    if not recalled:
        return ""
    parts = ["<recalled_conversations>", RECALLED_NOTE[language]]
    for conversation in recalled:
        date = written_date(conversation.updated_at, language, zone)
        title = escape_markup(conversation.title)
        parts.append(f'<conversation id="{conversation.id}" title="{title}" date="{date}">')
        if conversation.summary:
            parts.append(escape_markup(conversation.summary))
        if conversation.excerpt:
            parts.append(f"<excerpt>\n{escape_markup(conversation.excerpt)}\n</excerpt>")
        parts.append("</conversation>")
    parts.append("</recalled_conversations>")
    return "\n".join(parts)

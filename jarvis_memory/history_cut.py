"""Where a long conversation is cut before it goes to Claude: at a message of the user, and not anew in every turn.

The message that comes first then carries a block of type "earlier" with the summary of what went before it. The cut
stays there until the rest grows too long again, so that the prompt begins with the same bytes from turn to turn and
is read from the cache.
"""

from jarvis_memory.conversations import Message
from jarvis_memory.sent_files import file_characters

# Kept of the model's window for the answer, the instructions, the facts and the tools.
RESERVED_TOKENS = 26_000
# German text has about three characters a token; thinking of names and code, rather fewer.
CHARACTERS_A_TOKEN = 2.5
# Also of a window of a million tokens: beyond this an answer costs more than what was said long ago is worth.
LONGEST_HISTORY = 300_000
SHORTEST_HISTORY = 8_000
# So many messages are read for a turn at most.
MOST_MESSAGES = 1_000
# What is left after a cut, of both: room for many turns before the next.
LEFT_AFTER_CUT = 0.6


def history_budget(window: int) -> int:
    """How many characters of conversation go to a model with this window (tokens)."""
    free = int((window - RESERVED_TOKENS) * CHARACTERS_A_TOKEN)
    return max(SHORTEST_HISTORY, min(LONGEST_HISTORY, free))


def last_cut(messages: list[Message]) -> int:
    """The place of the message that the history begins with, as it was cut last; 0 when it is whole."""
    return max((place for place, message in enumerate(messages) if message.blocks_of("earlier")), default=0)


def new_cut(messages: list[Message], budget: int) -> int:
    """Where a history has to be cut to be within `budget` characters and MOST_MESSAGES; 0: it is."""
    if sum(map(_size, messages)) <= budget and len(messages) < MOST_MESSAGES:
        return 0
    left, cut = budget * LEFT_AFTER_CUT, len(messages) - 1
    oldest = max(0, len(messages) - int(MOST_MESSAGES * LEFT_AFTER_CUT))
    for place in range(len(messages) - 1, oldest - 1, -1):
        left -= _size(messages[place])
        if left < 0 and place < len(messages) - 1:
            break
        # The last message is answered, however long it is.
        if messages[place].role == "user":
            cut = place
    return cut


def _size(message: Message) -> int:
    texts = sum(len(block.get("text", "")) for block in message.blocks)
    return len(message.content) + texts + file_characters(message)

"""Numbers and amounts of money as a person reads them."""

from decimal import Decimal

from babel.numbers import format_currency, format_decimal

from jarvis_memory.answers import Usage
from jarvis_memory.prompts import Language
from jarvis_memory.ui.texts import Texts

ONE_DOLLAR = Decimal(1)
TENTH_OF_A_CENT = Decimal("0.001")


def written_number(number: int, language: Language) -> str:
    """ "12.345" in German."""
    return str(format_decimal(number, locale=language))


def written_dollars(cost: Decimal, language: Language) -> str:
    """ "1,23 $" in German."""
    return str(format_currency(cost, "USD", locale=language))


def written_cost(cost: Decimal, texts: Texts) -> str:
    """What one answer cost: in cents below a dollar, because a few of them say more than "0.00"."""
    if cost >= ONE_DOLLAR:
        return f"≈ {written_dollars(cost, texts.language)}"
    if cost < TENTH_OF_A_CENT:
        return texts("cost.less", cents=format_decimal(Decimal("0.1"), locale=texts.language))
    return texts("cost.cents", cents=format_decimal(cost * 100, format="0.#", locale=texts.language))


def written_tokens(usage: Usage, texts: Texts) -> str:
    """What was read, how much of it from the cache, and what was written."""
    return texts(
        "usage.tokens",
        read=written_number(usage.prompt, texts.language),
        cached=written_number(usage.cache_read, texts.language),
        written=written_number(usage.output, texts.language),
    )

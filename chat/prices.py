"""What a price is: of tokens by sort, and of our engine's time. pricing.py tells which one holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """Of one model: of a million tokens of each sort, and of a second of our engine.

    `cached` is of prompt tokens that came from the cache; None: as any others.
    """

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)
    cached: Decimal | None = None
    engine_s: Decimal = Decimal(0)

    def of(
        self, *, prompt_tokens: int, cached_tokens: int, completion_tokens: int, engine_ms: float
    ) -> Decimal:
        """What these cost together."""
        cached = self.prompt if self.cached is None else self.cached
        tokens = (
            (prompt_tokens - cached_tokens) * self.prompt
            + cached_tokens * cached
            + completion_tokens * self.completion
        )
        return tokens / MILLION + Decimal(engine_ms) / 1000 * self.engine_s

    def at_most(self, tokens: int) -> Decimal:
        """What so many tokens can cost, of whatever sort, without the engine's time."""
        return max(self.prompt, self.completion, self.cached or Decimal(0)) * tokens / MILLION


def parse_prices(entries: Sequence[str]) -> Mapping[str, Price]:
    """`MODEL=SORT:AMOUNT+SORT:AMOUNT` with the sorts of `Price`. Raises ValueError, in words."""
    return dict(_parse(entry) for entry in entries)


def _parse(entry: str) -> tuple[str, Price]:
    model, _, sorts = entry.rpartition("=")
    if not model:
        raise ValueError(f"{entry!r} names no model and price")
    known = [field.name for field in fields(Price)]
    amounts: dict[str, Decimal] = {}
    for part in sorts.split("+"):
        sort, _, amount = part.partition(":")
        if sort not in known:
            raise ValueError(f"{sort!r} is none of {', '.join(known)}")
        amounts[sort] = _amount(amount)
    return model, Price(**amounts)


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no amount") from None
    if not (amount.is_finite() and amount >= 0):
        raise ValueError(f"{text!r} is no amount")
    return amount

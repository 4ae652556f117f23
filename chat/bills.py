"""What a caller without rows of its own takes: held before the engine is asked, entered at the end.

Answers of conversations are entered with their last events (run_log.finish); these are all others.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import DatabaseError, transaction

from chat import budgets
from chat.answer_rows import rights_now
from chat.budgets import Charge
from chat.concurrency import kept_alive, lease_end
from chat.db import in_db
from chat.events import Event, LogEvent, RunUsage
from chat.gathering import Gathering
from chat.holds import Hold, hold_each, let_go
from chat.ids import uuid7
from chat.merging import merged
from chat.once import Once
from chat.persisting import AWAY, go_on_trying
from chat.prices import Price
from chat.pricing import prices_of
from chat.reading import Reading
from chat.rights import Rights
from chat.shielded import done_or_undone, to_its_end

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Bill:
    """Note here what is said, or what it takes; an answer is known by its index."""

    model: str
    num_per_prompt: int
    events: dict[int, list[LogEvent]] = field(default_factory=dict)
    readings: dict[int, Reading] = field(default_factory=dict)
    usage: RunUsage | None = None

    def note(self, index: int, event: Event) -> None:
        if isinstance(event, LogEvent):
            self.events.setdefault(index, []).append(event)
        if (reading := self.readings.get(index)) is None:
            reading = self.readings[index] = Reading()
        reading.hear(event)

    def total(self, price: Price | None) -> Charge:
        """Of several answers to one prompt it counts once."""
        if self.usage is not None:
            return budgets.priced(price, self.usage)
        of_prompts: dict[int, list[Charge]] = {}
        for index in self.readings:
            events, reading = self.events.get(index, []), self.readings[index]
            charges = of_prompts.setdefault(index // self.num_per_prompt, [])
            charges.append(budgets.charge_of(price, events, reading.phase))
        return budgets.added([budgets.together(price, charges) for charges in of_prompts.values()])


@asynccontextmanager
async def billed(
    rights: Rights,
    model: str,
    *,
    num_answers: int = 1,
    num_per_prompt: int | None = None,
    most_tokens: Sequence[int] = (),
    is_run: bool = False,
    within: UUID | None = None,
) -> AsyncIterator[Bill]:
    """Within, a model is asked, for so many answers to each prompt; None: all are to one.

    `most_tokens` is what each can take; none: what answers can. With `is_run` all of it together is one
    of the answers that the tier has written at the same time. `within` is the run that waits for it.

    Raises TooManyRuns, BudgetSpent, SignedOut or UnknownModel; then nothing has been asked.
    """
    rights.check_models([model])
    run_id, bill = uuid7(), Bill(model, num_per_prompt or num_answers)
    context = copy_context()
    if is_held := is_run or not rights.budget().is_endless:
        most = most_tokens or [budgets.most_tokens(rights, model)] * num_answers
        hold = Hold(
            run_id,
            model,
            tokens=sum(most),
            beyond_one=sum(most) - max(most),
            leased_until=lease_end(),
            is_run=is_run,
            within=within,
        )
        holding = _holding.asked((rights, hold), group=(rights.user.pk, rights.api_key_id))
        await done_or_undone(holding, _let_go)
    try:
        with kept_alive(run_id) if is_held else nullcontext():
            yield bill
    finally:
        # Also for a caller who has gone: what was computed for them was computed. In the scope of the
        # caller, whoever it is that ends a stream.
        await to_its_end(_settle(rights, run_id, bill), context)


async def charged(
    rights: Rights,
    model: str,
    answers: Sequence[AsyncGenerator[Event, None]],
    *,
    num_per_prompt: int | None = None,
    most_tokens: Sequence[int] = (),
) -> AsyncGenerator[tuple[int, Event], None]:
    """The events of all answers as they come, each with its answer's index, on one bill."""
    async with (
        billed(
            rights,
            model,
            num_answers=len(answers),
            num_per_prompt=num_per_prompt,
            most_tokens=most_tokens,
            is_run=not rights.is_background,
        ) as bill,
        aclosing(merged(answers)) as events,
    ):
        async for index, event in events:
            bill.note(index, event)
            yield index, event


async def _hold_all(asked: Sequence[tuple[Rights, Hold]]) -> Sequence[UUID | Exception]:
    return await in_db(_hold_in_db)(asked[0][0], [hold for _, hold in asked])


def _hold_in_db(rights: Rights, holds: Sequence[Hold]) -> list[UUID | Exception]:
    """All of one user and one key. The ids of what is held, or why it is not."""
    with transaction.atomic():
        refusals = hold_each(rights_now(rights), holds)
    pairs = zip(holds, refusals, strict=True)
    return [refusal or hold.run_id for hold, refusal in pairs]


_holding = Gathering(_hold_all)
_let_go = in_db(let_go)


async def _settle(rights: Rights, run_id: UUID, bill: Bill) -> None:
    try:
        await _settling.ask((rights, run_id, bill), group=(rights.user.pk, rights.api_key_id))
    except DatabaseError:
        tokens = bill.total(None).num_tokens
        logger.exception("usage could not be entered", extra={"tokens": tokens})


async def _settle_all(asked: Sequence[tuple[Rights, UUID, Bill]]) -> Sequence[None]:
    """Where the database is away, as soon as it is back: nobody waits for that."""
    bills = [(run_id, bill) for _, run_id, bill in asked]
    once = Once()
    enter = partial(in_db(_enter_once), once, asked[0][0], bills)
    try:
        await enter()
    except AWAY:
        tokens = sum(bill.total(None).num_tokens for _, bill in bills)
        logger.warning("usage cannot be entered, trying again", extra={"tokens": tokens})
        go_on_trying(enter, f"the usage of {len(bills)} answers, {tokens} tokens, is not entered")
    return [None] * len(asked)


def _enter_once(once: Once, rights: Rights, bills: Sequence[tuple[UUID, Bill]]) -> None:
    once(partial(_enter, rights, bills))


def _enter(rights: Rights, bills: Sequence[tuple[UUID, Bill]]) -> None:
    """All of one user and one key, in the caller's transaction."""
    prices = prices_of(bill.model for _, bill in bills)
    by_model: dict[str, dict[UUID, Charge]] = {}
    for run_id, bill in bills:
        total = bill.total(prices.get(bill.model))
        by_model.setdefault(bill.model, {})[run_id] = total
    # In one order, or two processes could wait for each other's rows of the ledger.
    for model, charges in sorted(by_model.items()):
        budgets.settle_all(
            charges, owner_id=rights.user.pk, api_key_id=rights.api_key_id, model=model
        )


_settling = Gathering(_settle_all)

"""First questions of new chats, of many people at once, saved together.

What a send asks of the database costs about as much for one as for eight, and Django's making of its
statements more than Postgres' answering them: so those that come while others are being saved go
together, in two statements (migration 0025). Only what is plain is saved here. Whatever is to be
refused, was sent before, or has to wait for somebody else's lock is left to actions.send_message, alone,
which decides it anew.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from chat import history, personal
from chat.actions import Draft, Sent, checked_text, new_chat, params_for, question_in
from chat.answer_rows import answers_to
from chat.budgets import Spent, today
from chat.cache_scope import CacheScope, own_scope
from chat.db import in_db
from chat.errors import BudgetSpent
from chat.gathering import Gathering
from chat.holds import rows_for_one
from chat.models import Personalisation
from chat.prices import Price
from chat.pricing import prices_of
from chat.prompt_plan import PromptPlan
from chat.rights import Rights
from chat.sources import NOTHING
from chat.table_rows import as_row, as_rows, dumped
from chat.usage_models import Reservation
from inference import EngineError

logger = logging.getLogger(__name__)

AT_MOST = 16
"""Of a call: with more the first ones would wait for the last ones, and a burst begins in about the
order in which it came. To let only so many into the whole of their start was tried: less of it goes
together then, and the median first word came a third later."""

AT_ONCE = 2
"""Calls: while Postgres writes the rows of one, those of the next are made."""


@dataclass(frozen=True, slots=True)
class First:
    """A chat that was begun, and what its answer is to be written from."""

    sent: Sent
    plan: PromptPlan
    cache: CacheScope | None


@dataclass(frozen=True, slots=True)
class _Asked:
    rights: Rights
    draft: Draft
    text: str
    lease_owner: str


@dataclass(frozen=True, slots=True)
class _Before:
    """What there is of a user before the send."""

    is_sent: bool
    num_running: int
    own: Personalisation
    memories: list[str]
    spent: Spent


def is_plain(draft: Draft) -> bool:
    """Whether a draft may be saved here: a new chat, one model, and nothing to be looked up for it."""
    is_new = draft.conversation_id is None and draft.parent_id is None
    return is_new and not draft.setup.assistant_id and not draft.beside and draft.picked == NOTHING


async def save(rights: Rights, draft: Draft, lease_owner: str) -> First | None:
    """None: nothing was saved, and it has to be tried alone. Raises BadFrame."""
    text = checked_text(draft.text)
    return await _saving.ask(_Asked(rights, draft, text, lease_owner))


async def _save_all(asked: Sequence[_Asked]) -> Sequence[First | None]:
    return await in_db(_save_in_db)(asked)


def _save_in_db(asked: Sequence[_Asked]) -> list[First | None]:
    """One for each user: two tabs of one have to see each other."""
    by_user = {one.rights.user.pk: one for one in reversed(asked)}
    found: dict[Any, First] = {}
    try:
        with transaction.atomic():
            found = _saved(_with_users_locked(by_user))
    except DatabaseError:
        logger.warning("sends could not be saved together, trying them alone", exc_info=True)
        found = {}
    return [
        found.get(one.rights.user.pk) if by_user[one.rights.user.pk] is one else None
        for one in asked
    ]


def _with_users_locked(by_user: dict[Any, _Asked]) -> list[_Asked]:
    """With the users as of now. A row that somebody else holds is nobody's here: one user's wait is not
    to be another's."""
    users = get_user_model()._default_manager.select_for_update(of=("self",), skip_locked=True)
    return [
        replace(one, rights=replace(one.rights, user=user))
        for user in users.filter(pk__in=by_user, is_active=True).order_by("pk")
        if (one := by_user.get(user.pk))
    ]


def _saved(asked: Sequence[_Asked]) -> dict[Any, First]:
    if not asked:
        return {}
    prices = prices_of(one.draft.model for one in asked)
    pairs = zip(asked, _before(asked), strict=True)
    begun = [made for one, before in pairs if (made := _begun(one, before, prices))]
    if begun:
        given = dumped([_rows_of(first, holds) for first, holds in begun])
        with connection.cursor() as cursor:
            cursor.execute("SELECT chat_save_sends(%s)", [given])
    return {first.sent.conversation.owner_id: first for first, _ in begun}


def _before(asked: Sequence[_Asked]) -> list[_Before]:
    given = [
        {
            "owner": one.rights.user.pk,
            "key": one.rights.api_key_id,
            "client_id": one.draft.client_id,
        }
        for one in asked
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT is_sent, num_running, personalisation, memories::text, spent::text"
            " FROM chat_before_sends(%s, %s, %s)",
            [json.dumps(given), timezone.now(), today()],
        )
        rows = cursor.fetchall()
    return [
        _Before(
            is_sent, num_running, _own(one.rights.user, own), json.loads(memories), _spent(spent)
        )
        for one, (is_sent, num_running, own, memories, spent) in zip(asked, rows, strict=True)
    ]


def _own(user: Any, row: dict[str, Any] | str | None) -> Personalisation:
    values = json.loads(row) if isinstance(row, str) else row
    return Personalisation(**values) if values else Personalisation(owner_id=user.pk, version=0)


def _spent(row: str) -> Spent:
    """Money comes as a number with as many places as it has."""
    values = json.loads(row, parse_float=Decimal)
    for name in ("month_cost", "held_cost"):
        values[name] = Decimal(values[name])
    return Spent(**values)


def _begun(
    one: _Asked, before: _Before, prices: Mapping[str, Price]
) -> tuple[First, list[Reservation]] | None:
    """None: it is not plain after all."""
    rights, draft = one.rights, one.draft
    if before.is_sent or before.num_running >= rights.concurrent_runs:
        return None
    price = prices.get(draft.model)
    if price and price.engine_s and rights.budget().cost_per_month is not None:
        return None  # what it may cost is looked up in what the user's answers took so far
    memories = before.memories if before.own.uses_memories else None
    setup = personal.setup_by(before.own, draft.setup, memories)
    conversation = new_chat(rights.user, draft, one.text, setup)
    message = question_in(conversation, draft, one.text)
    params = params_for(rights, draft, conversation)
    generations = answers_to(message, [draft.model], params, one.lease_owner)
    try:
        rights.check_models([draft.model])
        holds = rows_for_one(rights, before.spent, prices, generations[0].pk, draft.model)
    except (EngineError, BudgetSpent):
        return None
    sent = Sent(conversation, message, generations, is_new=True, is_first=True)
    plan = history.plan_along(conversation, [message])
    return First(sent, plan, own_scope(before.own)), holds


def _rows_of(first: First, holds: Sequence[Reservation]) -> dict[str, Any]:
    sent = first.sent
    return {
        "owner": sent.conversation.owner_id,
        "conversation": as_row(sent.conversation),
        "messages": as_rows([sent.message, *sent.answers]),
        "generations": as_rows(sent.generations),
        "reservations": as_rows(holds),
    }


_saving: Gathering[_Asked, First | None] = Gathering(_save_all, AT_MOST, AT_ONCE)

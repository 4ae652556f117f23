"""Budgets hold what answers may take, are passed by one message at most, and lose nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from chat import actions, budgets, openai_completion, run_log
from chat.answer_rows import rights_now
from chat.asking import AnswerRequest, Sampling
from chat.budgets import Charge, Spent
from chat.errors import BeyondBudget, BudgetSpent
from chat.events import Delta, Failed, Finished, LogEvent, RunTimings, RunUsage, Started, Stopped
from chat.holds import Hold, hold_each
from chat.ids import uuid7
from chat.models import Generation, Reservation, Usage
from chat.openai_asking import Asked
from chat.openai_completion import ChatCompletion
from chat.openai_schemas import ChatCompletionIn
from chat.price_models import ModelPrice
from chat.prices import Price
from chat.rights import Budget, Rights
from chat.spans import Clock, Trace
from webapp.models import ApiKey, Tier, User
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from uuid import UUID

pytestmark = pytest.mark.django_db(transaction=True)

OWNER = "this process"
MODEL = "vitrine-small"


@pytest.fixture(autouse=True)
def alices_scope(alice: User) -> Iterator[None]:
    with as_user(alice.pk):
        yield


def limited(**limits: object) -> None:
    Tier.objects.filter(slug="free").update(
        **{"tokens_per_day": None, "tokens_per_month": None, "concurrent_runs": 100, **limits}
    )


def rights_of(user: User, key: ApiKey | None = None) -> Rights:
    return Rights(User.objects.get(pk=user.pk), key)


def begun(rights: Rights) -> Generation:
    draft = actions.Draft(client_id=str(uuid4()), text="Hi", model=MODEL)
    return actions.send_message(rights, draft, lease_owner=OWNER).generation


def ended(run: Generation, *events: LogEvent) -> None:
    run_log.finish(run.pk, OWNER, 1, events, events, Trace(Clock(), "1"))


def finished(prompt: int, completion: int, cached: int = 0) -> Finished:
    return Finished("stop", RunUsage(prompt, cached, completion), RunTimings(engine_ms=250.0))


def hold(rights: Rights, tokens: int, beyond_one: int = 0) -> "UUID":
    with transaction.atomic():
        hold = Hold(uuid7(), MODEL, tokens, beyond_one)
        (refusal,) = hold_each(rights_now(rights), [hold])
    if refusal is not None:
        raise refusal
    return hold.run_id


def settle(rights: Rights, run_id: "UUID", prompt: int, completion: int = 0) -> None:
    budgets.settle(
        run_id,
        owner_id=rights.user.pk,
        api_key_id=rights.api_key_id,
        model=MODEL,
        charge=Charge(RunUsage(prompt, 0, completion)),
    )


def test_an_answer_holds_when_it_begins_and_is_entered_when_it_ends(alice: User) -> None:
    limited(tokens_per_day=100_000, context_tokens=4096)
    rights = rights_of(alice)
    run = begun(rights)
    assert budgets.spent_by(rights) == Spent(0, 0, Decimal(0), 0, 4096, Decimal(0), 0)
    ended(run, Started(MODEL, "r1", 7), Delta("Hello", 0, ids=(3, 4)), finished(90, 10, cached=60))
    assert budgets.spent_by(rights) == Spent(100, 100, Decimal(0), 0, 0, Decimal(0), 0)
    entry = Usage.objects.get()
    assert (entry.owner, entry.model, entry.day) == (alice, MODEL, budgets.today())
    assert (entry.num_requests, entry.cached_tokens, entry.engine_ms) == (1, 60, 250.0)
    ended(begun(rights), Started(MODEL, "r1", 8), finished(10, 5))
    entry.refresh_from_db()
    assert (entry.num_requests, entry.prompt_tokens, entry.completion_tokens) == (2, 100, 15)


@pytest.mark.parametrize(
    ("end", "tokens"),
    [
        (Stopped(5, RunUsage(90, 0, 2), RunTimings()), 92),
        (Failed("worker_died", "gone"), 3),  # what was delivered, and no more
    ],
)
def test_answers_that_end_otherwise_are_entered_too(
    alice: User, end: LogEvent, tokens: int
) -> None:
    limited(tokens_per_day=100_000)
    rights = rights_of(alice)
    ended(begun(rights), Started(MODEL, "r1", 7), Delta("Hello", 0, ids=(3, 4, 5)), end)
    spent = budgets.spent_by(rights)
    assert (spent.day_tokens, spent.held_tokens) == (tokens, 0)


def test_an_answer_whose_end_cannot_be_stored_is_not_charged(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message, the ledger and what was held are one transaction."""
    limited(tokens_per_day=100_000, context_tokens=4096)
    rights = rights_of(alice)
    run = begun(rights)

    def no_trace(*_: object) -> None:
        raise IntegrityError

    monkeypatch.setattr(run_log, "_save_trace", no_trace)
    with pytest.raises(IntegrityError):
        ended(run, Started(MODEL, "r1", 7), finished(90, 10))
    spent = budgets.spent_by(rights)
    assert (spent.day_tokens, spent.held_tokens) == (0, 4096)
    assert Generation.objects.get(pk=run.pk).message.status == "running"


def test_a_budget_is_passed_by_one_message_at_most(alice: User) -> None:
    """Forty ask at once when there is room for one; what it takes may be more than was left."""
    limited(tokens_per_day=1000)
    rights = rights_of(alice)
    settle(rights, uuid7(), 999)
    together = threading.Barrier(8)

    def ask(number: int) -> "UUID | None":
        with as_user(alice.pk):
            if number < 8:
                together.wait()
            try:
                return hold(rights, 300)
            except BudgetSpent:
                return None
            finally:
                connection.close()

    with ThreadPoolExecutor(8) as pool:
        runs = [run for run in pool.map(ask, range(40)) if run]
    assert len(runs) == 1
    settle(rights, runs[0], 250, 50)
    assert budgets.spent_by(rights).day_tokens == 1299
    with pytest.raises(BudgetSpent, match="used up"):
        hold(rights, 1)


def test_what_is_held_is_told_apart_from_what_is_spent(alice: User) -> None:
    limited(tokens_per_day=1000)
    rights = rights_of(alice)
    run_id = hold(rights, 1000)
    with pytest.raises(BudgetSpent, match="under way") as caught:
        hold(rights, 1)
    assert caught.value.retry_after_s == budgets.WAIT_S
    settle(rights, run_id, 10)
    hold(rights, 1)


def test_what_dies_without_a_word_lets_go_at_last(alice: User) -> None:
    limited(tokens_per_day=1000)
    rights = rights_of(alice)
    run_id = hold(rights, 1000)
    past = timezone.now() - timedelta(seconds=1)
    Reservation.objects.filter(pk=run_id).update(expires_at=past)
    hold(rights, 1)


@pytest.mark.parametrize("period", ["day", "month"])
def test_yesterdays_tokens_count_for_the_month_only(alice: User, period: str) -> None:
    limited(**{f"tokens_per_{period}": 100})
    rights = rights_of(alice)
    settle(rights, uuid7(), 100)
    first = budgets.today().replace(day=1)
    earlier = first if budgets.today() != first else first - timedelta(days=1)
    Usage.objects.update(day=earlier)
    if period == "month" and earlier >= first:
        with pytest.raises(BudgetSpent, match="this month") as caught:
            hold(rights, 1)
        assert caught.value.retry_after_s > 0
    else:
        hold(rights, 1)


def test_money_has_an_end_too_and_a_persons_own_is_in_place_of_the_tiers(
    alice: User, settings: LazySettings
) -> None:
    settings.PRICES = {MODEL: Price(prompt=Decimal(1), completion=Decimal(2))}
    limited(cost_per_month=Decimal("0.10"))
    rights = rights_of(alice)
    run = begun(rights)
    assert Reservation.objects.get().cost > 0
    ended(run, Started(MODEL, "r1", 7), finished(60_000, 20_000))
    assert Usage.objects.get().cost == Decimal("0.10")
    with pytest.raises(BudgetSpent, match=r"0\.10 EUR"):
        begun(rights)
    User.objects.filter(pk=alice.pk).update(cost_per_month=Decimal("0.11"))
    begun(rights_of(alice))


def test_the_engines_time_is_held_before_anybody_knows_it(alice: User) -> None:
    """At first all that is left; then, by what answers took, with room."""
    limited(cost_per_month=Decimal(10), concurrent_runs=100)
    ModelPrice.objects.create(model=MODEL, engine_s=Decimal("0.5"))
    rights = rights_of(alice)
    hold(rights, 1000)
    assert budgets.spent_by(rights).held_cost == Decimal(10)
    with pytest.raises(BudgetSpent):
        hold(rights, 1000)
    Reservation.objects.all().delete()
    run_id = uuid7()
    charge = Charge(RunUsage(50, 0, 50), 200.0, Decimal("0.1"))
    budgets.settle(run_id, owner_id=alice.pk, api_key_id=None, model=MODEL, charge=charge)
    hold(rights, 1000)  # 0.2 s for 100 tokens: 2 s for these, times four
    assert budgets.spent_by(rights).held_cost == Decimal(4)
    for _ in range(2):
        hold(rights, 1000)
    with pytest.raises(BudgetSpent):
        hold(rights, 1000)


def test_sixty_at_once_do_not_pass_a_limit_of_money_by_more_than_one(alice: User) -> None:
    limited(cost_per_month=Decimal("0.05"), concurrent_runs=100)
    ModelPrice.objects.create(model=MODEL, engine_s=Decimal("0.5"))
    rights = rights_of(alice)
    wanted = [Hold(uuid7(), MODEL, 100) for _ in range(60)]
    with transaction.atomic():
        assert hold_each(rights_now(rights), wanted).count(None) == 1


def test_what_fits_into_no_budget_is_not_to_be_asked_again(alice: User) -> None:
    limited(tokens_per_day=1000)
    rights = rights_of(alice)
    with pytest.raises(BeyondBudget) as never:
        hold(rights, 3000, beyond_one=1000)
    assert (never.value.status, never.value.retry_after_s) == (400, None)
    settle(rights, uuid7(), 500)
    with pytest.raises(BudgetSpent) as tomorrow:
        hold(rights, 3000, beyond_one=600)
    assert tomorrow.value.status == 429
    assert 0 < (tomorrow.value.retry_after_s or 0) <= 86_400


def test_cheap_choices_of_another_server_fit_into_a_small_budget(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(tokens_per_day=50_000)
    rights = rights_of(alice)
    data = ChatCompletionIn(model="far", messages=[{"role": "user", "content": "Hi"}], n=3)
    held: list[list[int]] = []
    far = SimpleNamespace(is_upstream=lambda model: True)
    monkeypatch.setattr(openai_completion, "engine", lambda: far)
    monkeypatch.setattr(openai_completion, "answer", lambda request: None)
    monkeypatch.setattr(
        openai_completion, "charged", lambda *_, most_tokens, **__: held.append(most_tokens)
    )

    def hold_all(content: str, max_tokens: int | None) -> None:
        request = AnswerRequest(
            "a1",
            "far",
            [{"role": "user", "content": content}],
            "1",
            sampling=Sampling(max_tokens=max_tokens),
        )
        ChatCompletion(data, Asked(rights, request, None)).events()
        hold(rights, sum(held[-1]), sum(held[-1]) - max(held[-1]))

    with pytest.raises(BeyondBudget):
        hold_all("Hi", None)
    with pytest.raises(BeyondBudget):
        hold_all("word " * 10_000, 50)
    hold_all("Hi", 50)


def test_a_keys_own_budget_ends_the_key_and_not_its_user(alice: User) -> None:
    limited()
    key = ApiKey.objects.create(user=alice, scopes=["chat"], tokens_per_day=100)
    other = ApiKey.objects.create(user=alice, scopes=["chat"], tokens_per_day=100, secret_hash="2")
    settle(Rights(alice, key), uuid7(), 100)
    with pytest.raises(BudgetSpent, match="This key's"):
        hold(rights_of(alice, key), 1)
    hold(rights_of(alice, other), 1)
    hold(rights_of(alice), 1)


def test_without_limits_nothing_is_held_and_all_is_entered(alice: User) -> None:
    limited()
    rights = rights_of(alice)
    assert rights.budget() == Budget()
    run = begun(rights)
    assert not Reservation.objects.exists()
    ended(run, Started(MODEL, "r1", 7), finished(5, 5))
    assert Usage.objects.get().completion_tokens == 5


def test_several_answers_to_one_prompt_pay_for_it_once() -> None:
    charges = [Charge(RunUsage(100, 40, 7), 10.0), Charge(RunUsage(100, 90, 5), 20.0)]
    assert budgets.together(None, charges) == Charge(RunUsage(100, 90, 12), 30.0)
    assert budgets.together(None, []) == Charge(RunUsage())


def test_nobody_sees_what_others_spend(alice: User, bob: User) -> None:
    limited(tokens_per_day=1000)
    rights = rights_of(alice)
    settle(rights, uuid7(), 7)
    hold(rights, 1)
    for scope in (as_user(bob.pk), as_nobody()):
        with scope:
            assert not Usage.objects.exists()
            assert not Reservation.objects.exists()
            assert budgets.spent_by(rights) == Spent(0, 0, Decimal(0), 0, 0, Decimal(0), 0)
    with as_system():
        assert Usage.objects.get().owner == alice

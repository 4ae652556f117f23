"""Who has to wait is asked for many people at once, and told as if for each alone."""

import asyncio
import uuid
from datetime import timedelta
from functools import partial

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from chat import cooling, decisions
from chat.db import in_db
from moderation.models import Decision, Strike
from moderation.standings import strikes_of, with_strikes
from webapp.models import User
from webapp.tenancy import as_nobody, as_user

pytestmark = pytest.mark.django_db(transaction=True)


def a_decision(user: User) -> Decision:
    return Decision(
        id=uuid.uuid4(),
        owner_id=user.pk,
        stage="input",
        source="chat",
        model="m",
        policy_id=uuid.uuid4(),
        policy_name="Everybody",
        policy_version=1,
        action="block",
        reasons=[{"category": "hate", "probability": 0.9}],
        scores={"hate": 0.9},
        text="",
    )


def strike(user: User, points: float, **changes: object) -> None:
    with as_user(user.pk):
        decision = a_decision(user)
        decision.save(force_insert=True)
        row = Strike.objects.create(owner_id=user.pk, decision=decision, points=points)
        Strike.objects.filter(pk=row.pk).update(**changes)


@pytest.fixture(autouse=True)
def _nobody_is_known() -> None:
    cooling._clean.clear()


async def test_only_who_has_strikes_that_count_waits(
    alice: User, bob: User, charlie: User, admin: User
) -> None:
    old = timezone.now() - 11 * settings.STRIKES.half_life
    await in_db(strike)(alice, 9.0)
    await in_db(strike)(bob, 9.0, lifted_at=timezone.now())
    await in_db(strike)(charlie, 9.0, created_at=old)
    everybody = [alice, bob, charlie, admin]

    async def waits(user: User) -> bool:
        with as_user(user.pk):
            return await cooling.waits_until(str(user.pk)) is not None

    for _ in range(2):  # and once more, by what is remembered
        assert await asyncio.gather(*map(waits, everybody)) == [True, False, False, False]
    with as_nobody():
        assert await in_db(with_strikes)([user.pk for user in everybody]) == {alice.pk}
        assert await in_db(strikes_of)(alice.pk) == [], "a scope that sees nobody's strikes"


async def test_decisions_of_many_are_kept_as_each_alone_would_be(alice: User, bob: User) -> None:
    with as_user(alice.pk):
        for user in (alice, bob, alice):
            decisions.keep_soon(partial(a_decision, user))
        await decisions.written()
    for user, expected in ((alice, 2), (bob, 1)):
        with as_user(user.pk):
            rows = await in_db(lambda: list(Decision.objects.all()))()
            assert [row.owner_id for row in rows] == [user.pk] * expected
            assert rows[0].reasons == [{"category": "hate", "probability": 0.9}]
            assert timezone.now() - rows[0].created_at < timedelta(minutes=1)


def test_the_scope_is_as_it_was(alice: User, bob: User) -> None:
    with as_user(bob.pk), connection.cursor() as cursor:
        with_strikes([alice.pk, bob.pk])
        cursor.execute("SELECT current_setting('vitrine.scope')")
        assert cursor.fetchone() == (f"user:{bob.pk}",)

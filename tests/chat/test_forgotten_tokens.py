"""Token ids of old answers are dropped; the answers stay, and a second look says why there is none."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from chat import second_looks, tasks, turns
from chat.errors import NotFound
from chat.models import Generation, GenerationTurn, Message
from tests.chat.test_pruning import answered
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def ids_of(user: "User", run: Generation) -> tuple[list[int], list[int]]:
    with as_user(user.pk):
        turn = GenerationTurn.objects.get(generation=run.pk)
        return turn.prompt_ids, turn.output_ids


def test_older_ones_go_and_all_else_stays(alice: "User", bob: "User") -> None:
    old, bobs = answered(alice), answered(bob)
    moment = timezone.now()
    fresh = answered(alice)
    with as_system():
        assert turns.forget(moment) == 2
        assert turns.forget(moment) == 0
    assert [ids_of(alice, old), ids_of(bob, bobs)] == [([], [])] * 2
    assert ids_of(alice, fresh) == ([1, 2], [3, 4])
    with as_user(alice.pk):
        assert Message.objects.get(generation=old).text == "Hello there"
        assert GenerationTurn.objects.get(generation=old).index == 0


def test_an_answer_that_is_written_keeps_what_it_may_go_on_from(alice: "User") -> None:
    running = answered(alice, is_ended=False)
    with as_system():
        assert turns.forget(timezone.now() + timedelta(days=1)) == 0
    assert ids_of(alice, running)[0] == [1, 2]


def test_many_go_in_portions(
    alice: "User",
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    runs = [answered(alice) for _ in range(5)]
    monkeypatch.setattr(turns, "_PORTION", 2)
    with as_system(), django_assert_max_num_queries(9):
        assert turns.forget(timezone.now() + timedelta(seconds=1)) == 5
    assert {ids_of(alice, run)[0] == [] for run in runs} == {True}


@pytest.mark.parametrize(
    ("days", "age_days", "is_kept"), [(365, 364, True), (365, 366, False), (0, 9999, True)]
)
def test_the_setting_says_how_long(
    alice: "User",
    settings: "SettingsWrapper",
    monkeypatch: pytest.MonkeyPatch,
    days: int,
    age_days: int,
    is_kept: bool,
) -> None:
    settings.PROMPT_DAYS = days
    run = answered(alice)
    later = timezone.now() + timedelta(days=age_days)

    class Later:
        @staticmethod
        def now() -> datetime:
            return later

    monkeypatch.setattr(tasks, "timezone", Later)
    with as_system():
        tasks.forget_prompts()
    assert bool(ids_of(alice, run)[0]) is is_kept


def test_a_second_look_says_so_and_only_to_whom_it_belongs(alice: "User", charlie: "User") -> None:
    run = answered(alice)
    with as_system():
        turns.forget(timezone.now() + timedelta(seconds=1))
    with as_user(alice.pk), pytest.raises(second_looks.CannotLook, match="not kept any more"):
        second_looks.written(alice, run.message_id)
    with as_user(charlie.pk), pytest.raises(NotFound):
        second_looks.written(charlie, run.message_id)

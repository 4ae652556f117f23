"""New chats of many people, saved together: as if each had been saved alone."""

import asyncio
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from chat import actions, first_sends
from chat.actions import Draft
from chat.answer_rows import rights_now
from chat.budgets import today
from chat.db import in_db
from chat.errors import BadFrame, BudgetSpent, TooManyRuns
from chat.first_sends import First
from chat.models import Conversation, Generation, Message, Personalisation
from chat.price_models import ModelPrice
from chat.rights import Rights
from chat.setup import Setup
from chat.table_rows import as_row, as_rows, dumped
from chat.usage_models import Reservation, Usage
from inference import BUILTIN
from webapp.models import Tier, User
from webapp.tenancy import as_nobody, as_system, as_user

pytestmark = pytest.mark.django_db(transaction=True)

OWN = ("id", "client_id", "created_at", "updated_at", "lease_until", "expires_at", "params")
NAMES = ("id", "conversation", "conversation_id", "message", "message_id", "parent", "parent_id")


def a_draft(client_id: str, text: str = "How are you?", **more: Any) -> Draft:
    return Draft(client_id, text, BUILTIN, **more)


def rights_of(user: User) -> Rights:
    return Rights(User.objects.get(pk=user.pk))


def saved(*asked: tuple[User, Draft]) -> list[First | None]:
    """All of them in one call, by way of the first one's context."""
    given = [first_sends._Asked(rights_of(u), d, d.text, "process") for u, d in asked]
    with as_user(asked[0][0].pk):
        return first_sends._save_in_db(given)


def save(given: list[dict[str, Any]]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT chat_save_sends(%s)", [dumped(given)])


def facts_of(user: User) -> list[dict[str, Any]]:
    """All rows of somebody's chats, without what is each row's own."""
    with as_user(user.pk):
        rows = [
            *Conversation.objects.all(),
            *Message.objects.order_by("role"),
            *Generation.objects.all(),
            *Reservation.objects.all(),
        ]
    return [
        {name: value for name, value in vars(row).items() if name not in (*OWN, *NAMES, "_state")}
        | {"of": type(row).__name__, "owner_id": None}
        for row in rows
    ]


@pytest.fixture(autouse=True)
def _one_answer_at_a_time(db: None) -> None:
    Tier.objects.filter(slug="free").update(concurrent_runs=1, tokens_per_day=100_000)


def test_the_rows_are_those_of_a_send_alone(alice: User, bob: User, charlie: User) -> None:
    for user in (alice, charlie):
        with as_user(user.pk):
            Personalisation.objects.create(owner=user, about_you="I sail.", caches_answers=True)
    setup = Setup(None, "Rhyme.", {"temperature": 0}, "summary")
    one, other = saved((alice, a_draft("a", setup=setup)), (bob, a_draft("b")))
    assert one
    assert other
    assert one.cache
    assert not other.cache
    with as_user(charlie.pk):
        actions.send_message(rights_of(charlie), a_draft("c", setup=setup), lease_owner="process")
    assert facts_of(alice) == facts_of(charlie)
    with as_user(alice.pk):
        stored = Message.objects.get(client_id="a")
        assert stored.pk == one.sent.message.pk
        assert stored.created_at == one.sent.message.created_at
        assert stored.conversation.instructions == "About the user: I sail."
        assert stored.conversation.parameters == {"temperature": 0}
        assert Generation.objects.get().params["sent"] == "a"
        assert Reservation.objects.get().pk == one.sent.generation.pk
    with as_user(bob.pk):
        assert [row.client_id for row in Message.objects.order_by("role")] == [None, "b"]
    with as_nobody():
        assert not Message.objects.exists()
        assert not Conversation.objects.exists()


def test_what_is_to_be_refused_is_left_to_others(alice: User, bob: User, charlie: User) -> None:
    assert all(saved((alice, a_draft("a1"))))
    again, second, first = saved(
        (alice, a_draft("a2")),  # writes one already
        (bob, a_draft("b1")),
        (charlie, a_draft("c1", text="x")),
    )
    assert again is None
    assert second
    assert first
    with as_user(alice.pk), pytest.raises(TooManyRuns):
        actions.send_message(rights_of(alice), a_draft("a2"), lease_owner="process")
    Tier.objects.filter(slug="free").update(concurrent_runs=9)
    assert saved((bob, a_draft("b1"))) == [None], "sent before"
    with as_user(charlie.pk):
        Usage.objects.create(owner=charlie, day=today(), model="m", prompt_tokens=100_000)
    assert saved((charlie, a_draft("c2"))) == [None]
    with as_user(charlie.pk), pytest.raises(BudgetSpent):
        actions.send_message(rights_of(charlie), a_draft("c2"), lease_owner="process")
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    with as_user(charlie.pk):
        Usage.objects.all().delete()
    assert saved((charlie, a_draft("c3"))) == [None]


def test_two_tabs_of_one_are_never_saved_in_one_call(alice: User) -> None:
    Tier.objects.filter(slug="free").update(concurrent_runs=9)
    first, second = saved((alice, a_draft("a1")), (alice, a_draft("a2")))
    assert first
    assert second is None


def test_a_price_by_the_engines_time_is_left_to_others(alice: User) -> None:
    ModelPrice.objects.create(model=BUILTIN, engine_s=1)
    assert all(saved((alice, a_draft("a1"))))
    Tier.objects.filter(slug="free").update(cost_per_month=5, concurrent_runs=9)
    assert saved((alice, a_draft("a2"))) == [None]


async def test_nobody_waits_for_a_row_that_somebody_else_holds(alice: User, bob: User) -> None:
    held, done = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        with as_user(alice.pk), transaction.atomic():
            rights_now(rights_of(alice))
            loop.call_soon_threadsafe(held.set)
            asyncio.run_coroutine_threadsafe(done.wait(), loop).result(20)

    holding = asyncio.ensure_future(in_db(hold)())
    await held.wait()
    try:
        async with asyncio.timeout(10):
            found = await in_db(saved)((alice, a_draft("a")), (bob, a_draft("b")))
    finally:
        done.set()
        await holding
    assert found[0] is None
    assert found[1] is not None


async def test_many_at_once_all_begin_in_the_order_in_which_they_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = [await in_db(User.objects.create_user)(f"u{n}@example.org") for n in range(20)]
    calls: list[int] = []
    save = first_sends._save_in_db

    def counted(asked: Any) -> Any:
        calls.append(len(asked))
        return save(asked)

    monkeypatch.setattr(first_sends, "_save_in_db", counted)
    order: list[int] = []

    async def send(number: int) -> None:
        rights = await in_db(rights_of)(users[number])
        with as_user(users[number].pk):
            assert await first_sends.save(rights, a_draft(f"s{number}"), "process")
        order.append(number)

    await asyncio.gather(*map(send, range(20)))
    assert sum(calls) == 20
    assert max(calls) <= first_sends.AT_MOST
    assert len(calls) < 20
    with as_system():
        assert await Generation.objects.acount() == 20


async def test_an_empty_text_is_refused_at_once(alice: User) -> None:
    with pytest.raises(BadFrame):
        await first_sends.save(await in_db(rights_of)(alice), a_draft("a", text=" "), "process")


def test_postgres_itself_keeps_people_apart(alice: User, bob: User) -> None:
    """Even for a caller that mixes them up."""
    assert all(saved((bob, a_draft("b1"))))
    given: list[dict[str, Any]] = [{"owner": alice.pk, "key": None, "client_id": "b1"}]
    with connection.cursor() as cursor, as_user(bob.pk):
        cursor.execute(
            "SELECT is_sent, num_running FROM chat_before_sends(%s, %s, %s)",
            [dumped(given), timezone.now(), today()],
        )
        assert cursor.fetchone() == (False, 0), "Bob's rows were seen in Alice's name"
    chat = Conversation(owner=bob, title="Bob's")
    given = [{"owner": alice.pk, "conversation": as_row(chat), "messages": []}]
    given[0] |= {"generations": [], "reservations": []}
    with pytest.raises(DatabaseError, match="row-level security"), as_user(bob.pk):
        save(given)
    with as_user(bob.pk):
        assert [row.title for row in Conversation.objects.all()] == ["How are you?"]
        intruder = Message(conversation=Conversation.objects.get(), role="user", text="psst")
    mine = Conversation(owner=alice)
    given = [{"owner": alice.pk, "conversation": as_row(mine), "messages": as_rows([intruder])}]
    given[0] |= {"generations": [], "reservations": []}
    with pytest.raises(DatabaseError, match="row-level security"), as_user(alice.pk):
        save(given)


def test_the_scope_is_as_it_was(alice: User, bob: User) -> None:
    with as_user(bob.pk):
        assert all(first_sends._save_in_db([_asked(alice, "a"), _asked(bob, "b")]))
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('vitrine.scope')")
            assert cursor.fetchone() == (f"user:{bob.pk}",)
        assert {row.owner_id for row in Conversation.objects.all()} == {bob.pk}


def _asked(user: User, client_id: str) -> Any:
    return first_sends._Asked(rights_of(user), a_draft(client_id), "Hello", "process")

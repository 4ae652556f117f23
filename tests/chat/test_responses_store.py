"""What is kept of responses, as rows."""

import secrets
import time
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisAway

from chat import responses_store
from chat.api_errors import ApiError
from chat.ids import uuid7
from chat.models import StoredResponse
from chat.responses_schemas import ResponseIn
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db(transaction=True)


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text, "id": f"msg_{text}"}


def keep(user: User, text: str, previous: StoredResponse | None = None) -> StoredResponse:
    id_ = uuid7()
    return StoredResponse.objects.create(
        pk=id_,
        owner=user,
        thread=previous.thread if previous else id_,
        previous=previous.pk if previous else None,
        input=[said(text)],
        body={"output": [said(f"re {text}")], "instructions": "long"},
    )


def age(row: StoredResponse, age: timedelta) -> None:
    StoredResponse.objects.filter(pk=row.pk).update(created_at=timezone.now() - age)


def ids() -> set[UUID]:
    return set(StoredResponse.objects.values_list("pk", flat=True))


def test_a_thread_lives_as_long_as_it_is_gone_on_with(alice: User) -> None:
    old, day = responses_store.KEEP + timedelta(days=1), timedelta(days=1)
    with as_system():
        first = keep(alice, "one")
        second = keep(alice, "two", first)
        done = keep(alice, "other")
        age(first, old)
        age(done, old)
        age(second, day)
        responses_store.forget_old()
        assert ids() == {first.pk, second.pk}
        age(second, old)
        responses_store.forget_old(StoredResponse.objects.filter(owner=alice))
        assert not ids()


def test_nothing_is_read_but_the_way(alice: User, bob: User) -> None:
    read = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        read.append(context["cursor"].rowcount)
        return result

    with as_user(alice.pk):
        root = keep(alice, "root")
        children = [keep(alice, f"child {n}", root) for n in range(500)]
        last = keep(alice, "grandchild", children[250])
        with connection.execute_wrapper(count):
            found = responses_store.earlier(alice, f"resp_{last.pk.hex}")
    assert (found.id, found.thread) == (last.pk, root.pk)
    texts = [item["content"] for item in found.items]
    expected = ["root", "child 250", "grandchild"]
    assert texts == [text for each in expected for text in (each, f"re {each}")]
    assert read == [3, 3]
    with as_user(bob.pk):
        _assert_missing(bob, last)


def test_what_lacks_a_part_or_is_too_long_is_not_gone_on_from(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_user(alice.pk):
        first = keep(alice, "one")
        second = keep(alice, "two", first)
        third = keep(alice, "three", second)
        monkeypatch.setattr(responses_store, "MAX_THREAD", 3)
        assert len(responses_store.earlier(alice, f"resp_{third.pk.hex}").items) == 6
        monkeypatch.setattr(responses_store, "MAX_THREAD", 2)
        _assert_missing(alice, third)
        assert len(responses_store.earlier(alice, f"resp_{second.pk.hex}").items) == 4
        monkeypatch.undo()
        first.delete()
        _assert_missing(alice, third)


def _assert_missing(user: User, row: StoredResponse) -> None:
    with pytest.raises(ApiError) as caught:
        responses_store.earlier(user, f"resp_{row.pk.hex}")
    assert (caught.value.status, caught.value.code) == (404, "previous_response_not_found")


SIZE = 50_000  # of what nothing makes much shorter


def fill(*rows: StoredResponse) -> None:
    """Each takes SIZE; they are an hour apart."""
    for n, row in enumerate(rows):
        StoredResponse.objects.filter(pk=row.pk).update(
            input=[secrets.token_urlsafe(SIZE * 3 // 4)],
            created_at=timezone.now() - timedelta(hours=9 - n),
        )


def save(user: User, previous: responses_store.Earlier | None = None) -> UUID:
    body = {"id": responses_store.new_id(), "output": []}
    responses_store.save(user, body, [], previous)
    return UUID(body["id"].removeprefix("resp_"))


@pytest.mark.usefixtures("clean_redis")
def test_where_a_users_take_too_much_the_oldest_go(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses_store, "MAX_KEPT_BYTES", 5 * SIZE // 2)
    with as_user(bob.pk):
        others = keep(bob, "mine")
    with as_user(alice.pk):
        rows = [keep(alice, str(n)) for n in range(3)]
        fill(*rows)
        newest = save(alice)
        assert ids() == {rows[1].pk, rows[2].pk, newest}
    with as_user(bob.pk):
        assert ids() == {others.pk}


@pytest.mark.usefixtures("clean_redis")
def test_of_threads_those_go_first_that_nobody_has_gone_on_with_for_longest(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses_store, "MAX_KEPT_BYTES", 5 * SIZE // 2)
    with as_user(alice.pk):
        first = keep(alice, "one")
        done = keep(alice, "other")
        follow_up = keep(alice, "other's", done)
        second = keep(alice, "two", first)
        fill(first, done, follow_up, second)
        newest = save(alice, responses_store.earlier(alice, f"resp_{second.pk.hex}"))
        assert ids() == {first.pk, second.pk, newest}
        assert len(responses_store.earlier(alice, f"resp_{newest.hex}").items) == 4
        monkeypatch.setattr(responses_store, "MAX_KEPT_BYTES", 3 * SIZE // 2)
        responses_store._forget_oldest(alice, StoredResponse.objects.filter(owner=alice))
        assert ids() == {second.pk, newest}, "one takes too much alone"


@pytest.mark.usefixtures("clean_redis")
def test_what_all_take_together_is_not_looked_at_with_each(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Mock()
    monkeypatch.setattr(responses_store, "_forget_oldest", measured)
    for user, num_times in ((alice, 1), (alice, 1), (bob, 2)):
        with as_user(user.pk):
            save(user)
        assert measured.call_count == num_times
    away = Mock(add=Mock(side_effect=RedisAway))
    monkeypatch.setattr(responses_store, "cache", away)
    with as_user(alice.pk):
        save(alice)
    assert measured.call_count == 3


@pytest.mark.usefixtures("clean_redis")
def test_threads_are_put_in_order_only_where_they_take_too_much(alice: User) -> None:
    """There may be a million of them, and each look goes through all."""
    with as_user(alice.pk):
        keep(alice, "mine")
        with CaptureQueriesContext(connection) as queries:
            save(alice)
    measuring = [query["sql"] for query in queries if "pg_column_size" in query["sql"]]
    assert len(measuring) == 1
    assert "GROUP BY" not in measuring[0]


@pytest.mark.usefixtures("clean_redis")
def test_who_has_very_many_is_looked_at_more_seldom(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"responses-measured-{alice.pk}"
    monkeypatch.setattr(responses_store, "MEASURE_EVERY_S", 1)
    monkeypatch.setattr(responses_store, "_forget_oldest", lambda *_: time.sleep(0.1))
    with as_user(alice.pk):
        save(alice)
        time.sleep(1.2)
        assert cache.get(key), "one that took long is over for longer"
        monkeypatch.setattr(responses_store, "_forget_oldest", lambda *_: None)
        cache.delete(key)
        save(alice)
        time.sleep(1.2)
        assert cache.get(key) is None


def test_what_no_model_reads_again_is_not_kept(alice: User) -> None:
    thought: Any = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "y" * 9_000}]}
    text: Any = {"type": "output_text", "text": "Yes.", "annotations": [{"a": "y" * 9_000}]}
    text["logprobs"] = [{"token": "y" * 9_000}]
    said = {"role": "assistant", "content": [text]}
    asked = ResponseIn(model="m", input=[thought, said]).items
    body = {"id": responses_store.new_id(), "output": []}
    with as_user(alice.pk):
        responses_store.save(alice, body, asked, None)
        [kept] = StoredResponse.objects.values_list("input", flat=True)
    assert [item["type"] for item in kept] == ["reasoning", "message"]
    assert kept[0] == {"type": "reasoning", "id": "rs_1", "summary": [], "content": []}
    assert kept[1]["content"][0]["text"] == "Yes."
    assert len(str(kept)) < 1_000

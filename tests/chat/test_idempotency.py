"""Idempotency-Key: one request, one run, one answer; and never another user's."""

import asyncio
import threading
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, OperationalError
from django.db.models import QuerySet
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from chat import idempotency, responses_store
from chat.models import KeptAnswer, StoredResponse
from inference import BUILTIN_EMBEDDING
from tests.chat.api_caller import Caller
from tests.sites import wait_until
from webapp.models import User
from webapp.tenancy import as_system, as_user

BODY: dict[str, Any] = {
    "model": "endless",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 20,
}
"""Without a seed: two runs would not say the same."""


def _post(caller: Caller, key: str, body: Any = None, path: str = "/chat/completions") -> Any:
    return caller.post(path, body or BODY, **{"Idempotency-Key": key})


def _key() -> str:
    return uuid4().hex


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", BODY),
        ("/completions", {"model": "endless", "prompt": "Once", "max_tokens": 9}),
        ("/responses", {"model": "endless", "input": "Hello", "max_output_tokens": 9}),
        ("/messages", BODY),
        ("/embeddings", {"model": BUILTIN_EMBEDDING, "input": "x"}),
    ],
)
def test_the_same_request_gets_the_same_answer(caller: Caller, path: str, body: Any) -> None:
    key = _key()
    first, second = (_post(caller, key, body, path) for _ in range(2))
    assert first.status_code == second.status_code == 200, first.text
    assert first.content == second.content
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["content-type"] == first.headers["content-type"]
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


def test_without_a_key_each_is_run(caller: Caller) -> None:
    ids = {caller.post("/chat/completions", BODY).json()["id"] for _ in range(2)}
    assert len(ids) == 2


def test_another_request_with_the_key_is_refused(caller: Caller) -> None:
    key = _key()
    assert _post(caller, key).status_code == 200
    other = _post(caller, key, {**BODY, "max_tokens": 21})
    assert other.status_code == 422
    assert other.json()["error"]["code"] == "idempotency_key_reused"


def test_anthropics_clients_are_told_so_in_their_shape(caller: Caller) -> None:
    key = _key()
    assert _post(caller, key, BODY, "/messages").status_code == 200
    other = _post(caller, key, {**BODY, "max_tokens": 21}, "/messages")
    assert (other.status_code, other.json()["type"]) == (422, "error")
    assert other.json()["error"]["code"] == "idempotency_key_reused"


def test_a_key_is_its_users_and_its_routes(caller: Caller, stranger: Caller) -> None:
    key = _key()
    mine, theirs = _post(caller, key), _post(stranger, key)
    assert mine.status_code == theirs.status_code == 200
    assert mine.json()["id"] != theirs.json()["id"]
    assert "idempotent-replayed" not in theirs.headers
    elsewhere = _post(caller, key, BODY, "/messages")
    assert elsewhere.status_code == 200
    assert elsewhere.json()["type"] == "message"


def test_of_two_at_once_one_is_run(caller: Caller) -> None:
    key, body = _key(), {**BODY, "max_tokens": 300}
    answers: list[httpx2.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(_post(caller, key, body))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = [answer for answer in answers if answer.status_code == 200]
    others = [answer for answer in answers if answer.status_code != 200]
    assert len({answer.content for answer in ended}) == 1
    for other in others:
        assert other.status_code == 409
        assert other.json()["error"]["code"] == "idempotency_key_in_use"
        assert int(other.headers["retry-after"]) >= 1
    assert _post(caller, key, body).content == ended[0].content


def test_what_failed_may_be_tried_again(caller: Caller) -> None:
    key = _key()
    wrong = {**BODY, "messages": [{"role": "user", "content": "word " * 5000}]}
    assert _post(caller, key, wrong).status_code == 400
    assert _post(caller, key).status_code == 200


def test_a_caller_who_left_may_come_back(caller: Caller) -> None:
    key, body = _key(), {**BODY, "max_tokens": 600}
    with (
        pytest.raises(httpx2.TimeoutException),
        httpx2.Client(headers={**caller.headers, "Idempotency-Key": key}, timeout=0.3) as visitor,
    ):
        visitor.post(f"{caller.url}/chat/completions", json=body)
    wait_until(lambda: _post(caller, key, {**BODY, "max_tokens": 2}).status_code == 200)


@pytest.mark.django_db(transaction=True)
async def test_an_answer_that_cannot_be_kept_at_once_is_given_and_kept_later(
    alice: User, rf: RequestFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, tries = QuerySet.update, iter(range(100))

    def away_at_first(rows: Any, **values: Any) -> int:
        if rows.model is KeptAnswer and next(tries) < 2:
            raise OperationalError("the database is away")
        return update(rows, **values)

    async def view(request: Any, data: Any) -> HttpResponse:
        return HttpResponse(b"{}", content_type="application/json")

    monkeypatch.setattr(QuerySet, "update", away_at_first)
    request: Any = rf.post("/v1/embeddings", {}, headers={"Idempotency-Key": _key()})
    request.user = alice
    with as_user(alice.pk):
        first = await idempotency.idempotent(view)(request, None)
        assert (first.status_code, first.content) == (200, b"{}")
        deadline = monotonic() + 20
        while not await KeptAnswer.objects.filter(status=200).aexists():
            assert monotonic() < deadline
            await asyncio.sleep(0.05)
        again = await idempotency.idempotent(view)(request, None)
    assert again[idempotency.REPLAYED] == "true"


def test_a_stream_is_a_stream(caller: Caller) -> None:
    key = _key()
    for _ in range(2):
        response = _post(caller, key, {**BODY, "stream": True})
        assert response.headers["content-type"] == "text/event-stream"
        assert "idempotent-replayed" not in response.headers


@pytest.mark.parametrize("given", ["x" * 256, "tab\tinside"])
def test_a_key_that_is_none(caller: Caller, given: str) -> None:
    response = _post(caller, given)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_value"


# --- rows -------------------------------------------------------------------------------------


def _rows(user: User) -> tuple[KeptAnswer, StoredResponse]:
    with as_user(user.pk):
        kept = KeptAnswer.objects.create(
            owner=user, route="/v1/x", key="k", request_hash="h", status=200, body=b"{}"
        )
        stored = StoredResponse.objects.create(owner=user, thread=uuid4(), input=[], body={})
    return kept, stored


@pytest.mark.django_db(transaction=True)
def test_rows_are_seen_by_their_owner_alone(alice: User, charlie: User) -> None:
    kept, stored = _rows(alice)
    for user_id, number in ((alice.pk, 1), (charlie.pk, 0)):
        with as_user(user_id):
            assert KeptAnswer.objects.filter(pk=kept.pk).count() == number
            assert StoredResponse.objects.filter(pk=stored.pk).count() == number
    with as_user(charlie.pk), pytest.raises(Exception, match="row-level security"):
        StoredResponse.objects.create(owner=alice, thread=uuid4(), input=[], body={})


@pytest.mark.django_db(transaction=True)
def test_a_key_is_put_down_once(alice: User) -> None:
    with as_user(alice.pk):
        _, is_new = idempotency._claim(alice, "/v1/x", "key", "hash")
        _, is_again = idempotency._claim(alice, "/v1/x", "key", "hash")
        assert (is_new, is_again) == (True, False)
        with pytest.raises(IntegrityError):
            KeptAnswer.objects.create(owner=alice, route="/v1/x", key="key", request_hash="other")


@pytest.mark.django_db(transaction=True)
def test_a_row_whose_process_died_is_taken_over(alice: User) -> None:
    with as_user(alice.pk):
        idempotency._claim(alice, "/v1/x", "key", "hash")
        long_ago = timezone.now() - idempotency.ABANDONED - timedelta(seconds=1)
        KeptAnswer.objects.update(created_at=long_ago)
        assert idempotency._claim(alice, "/v1/x", "key", "hash")[1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_kept", [True, False])
def test_an_answer_that_is_too_large_leaves_its_key_free(alice: User, is_kept: bool) -> None:
    with as_user(alice.pk):
        row, _ = idempotency._claim(alice, "/v1/embeddings", _key(), "digest")
        body = b"x" * (idempotency.MAX_BODY_BYTES + (not is_kept))
        async_to_sync(idempotency._settle)(row, HttpResponse(body))
        assert KeptAnswer.objects.filter(pk=row.pk, status=200).exists() == is_kept
        assert KeptAnswer.objects.filter(pk=row.pk).exists() == is_kept


@pytest.mark.django_db(transaction=True)
def test_of_one_user_so_much_is_kept_and_of_the_next_again(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEPT_BYTES", 25)

    def is_kept(user: User) -> bool:
        with as_user(user.pk):
            row, _ = idempotency._claim(user, "/v1/embeddings", _key(), "digest")
            async_to_sync(idempotency._settle)(row, HttpResponse(b"x" * 10))
            return KeptAnswer.objects.filter(pk=row.pk).exists()

    assert [is_kept(alice) for _ in range(4)] == [True, True, False, False]
    assert is_kept(bob)


@pytest.mark.django_db(transaction=True)
def test_old_rows_go(alice: User) -> None:
    _rows(alice)
    with as_system():
        day = timedelta(days=1)
        KeptAnswer.objects.update(created_at=timezone.now() - idempotency.KEEP + day / 24)
        StoredResponse.objects.update(created_at=timezone.now() - responses_store.KEEP + day)
        idempotency.forget_old()
        responses_store.forget_old()
        assert (KeptAnswer.objects.count(), StoredResponse.objects.count()) == (1, 1)
        KeptAnswer.objects.update(created_at=timezone.now() - idempotency.KEEP - day)
        StoredResponse.objects.update(created_at=timezone.now() - responses_store.KEEP - day)
        idempotency.forget_old()
        responses_store.forget_old()
        assert (KeptAnswer.objects.count(), StoredResponse.objects.count()) == (0, 0)

"""/v1/batches with OpenAI's client: from the file of requests to the files of answers."""

import json
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from inference import BUILTIN_EMBEDDING
from tests.chat.api_caller import Caller
from tests.chat.batch_client import CHAT, begin, chat_body, ended, line, results, upload
from tests.chat.test_limits import a_key, a_tier, place
from tests.openai_description import check, needs_description
from tests.sites import Site, email_of, wait_until

pytestmark = needs_description

FEATURES = ["api_keys", "files"]
LONG = 600


@pytest.fixture
def own(chat_site: Site) -> Iterator[openai.OpenAI]:
    """Of a user whose batches wait for nobody else's."""
    with a_client(chat_site, a_key(chat_site, features=FEATURES)) as client:
        yield client


def a_client(site: Site, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0)


def test_a_batch_of_chats_from_end_to_end(own: openai.OpenAI) -> None:
    lines = [line(f"ask-{n}", chat_body(f"Say {n}", seed=n)) for n in range(7)]
    lines.append(line("wrong-model", chat_body(model="nothing")))
    lines.append(line("wrong-value", chat_body(temperature=9)))
    lines.append(line("stream", chat_body(stream=True)))
    batch = begin(own, lines, metadata={"job": "nightly"})
    assert batch.status == "validating"
    assert batch.metadata == {"job": "nightly"}
    check(batch.to_dict(), "Batch")
    batch = ended(own, batch.id)
    assert batch.status == "completed"
    assert batch.errors is None
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (10, 7, 3)
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at
    assert batch.expires_at - batch.created_at == pytest.approx(86400, abs=2)

    good, bad = results(own, batch.output_file_id), results(own, batch.error_file_id)
    assert list(good) == [f"ask-{n}" for n in range(7)]
    for one in good.values():
        assert set(one) == {"id", "custom_id", "response", "error"}
        assert one["id"].startswith("batch_req_")
        assert one["error"] is None
        assert set(one["response"]) == {"status_code", "request_id", "body"}
        assert one["response"]["status_code"] == 200
        check(one["response"]["body"], "CreateChatCompletionResponse")
    told = {
        name: (one["response"]["status_code"], one["response"]["body"]["error"]["param"])
        for name, one in bad.items()
    }
    assert told == {
        "wrong-model": (404, "model"),
        "wrong-value": (400, "temperature"),
        "stream": (400, "stream"),
    }
    usages = [one["response"]["body"]["usage"] for one in good.values()]
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in usages) == 21
    assert batch.usage.input_tokens == sum(usage["prompt_tokens"] for usage in usages)
    output = own.files.retrieve(batch.output_file_id)
    check(output.to_dict(), "OpenAIFile")
    assert output.purpose == "batch_output"
    assert output.filename == f"{batch.id}_output.jsonl"


def test_a_line_is_answered_as_its_endpoint_answers(own: openai.OpenAI) -> None:
    body = chat_body("The same", seed=7, max_tokens=12)
    alone = own.chat.completions.create(**body).to_dict()
    batch = ended(own, begin(own, [line("one", body)]).id)
    answered = results(own, batch.output_file_id)["one"]["response"]["body"]
    assert answered["choices"] == alone["choices"]
    assert batch.model == "endless"


@pytest.mark.parametrize(
    ("endpoint", "body", "schema"),
    [
        ("/v1/completions", {"prompt": "Once", "max_tokens": 4}, "CreateCompletionResponse"),
        ("/v1/responses", {"input": "Hello", "max_output_tokens": 16}, "Response"),
        ("/v1/embeddings", {"input": ["a", "b"]}, "CreateEmbeddingResponse"),
    ],
)
def test_the_other_endpoints(
    own: openai.OpenAI, endpoint: str, body: dict[str, Any], schema: str
) -> None:
    model = BUILTIN_EMBEDDING if endpoint == "/v1/embeddings" else "endless"
    lines = [line(str(n), {"model": model, **body}, endpoint) for n in range(2)]
    batch = ended(own, begin(own, lines, endpoint).id)
    assert batch.status == "completed"
    found = results(own, batch.output_file_id)
    assert list(found) == ["0", "1"]
    for one in found.values():
        check(one["response"]["body"], schema)
    assert batch.usage.input_tokens > 0


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["  ", "\t"], [(None, "empty_file")]),
        ([line("a"), "{not json"], [(2, "invalid_json_line")]),
        ([line("a"), "[1]", "7", "null"], [(n, "invalid_request") for n in (2, 3, 4)]),
        ([line("a"), line("b"), line("a")], [(3, "duplicate_custom_id")]),
        ([line(""), line(None), line(7)], [(n, "missing_required_parameter") for n in (1, 2, 3)]),
        ([line("a", method="GET")], [(1, "invalid_method")]),
        ([line("a", url="/v1/embeddings")], [(1, "invalid_url")]),
        ([line("a", body="text")], [(1, "missing_required_parameter")]),
        (["[" * 100_000], [(1, "invalid_json_line")]),
        (["\xff\x00", line("a")], [(1, "invalid_json_line")]),
        (['{"temperature": NaN}', line("a")], [(1, "invalid_json_line")]),
        ([line("a"), '{"x": 1e400}'], [(2, "invalid_json_line")]),
    ],
)
def test_a_wrong_file_fails_with_its_lines(own: openai.OpenAI, lines: list[Any], told: Any) -> None:
    batch = ended(own, begin(own, lines).id)
    assert batch.status == "failed"
    assert batch.failed_at is not None
    assert [(error.line, error.code) for error in batch.errors.data] == told
    assert all(error.message for error in batch.errors.data)
    assert (batch.output_file_id, batch.error_file_id) == (None, None)


def test_a_file_with_a_mark_blank_lines_and_crlf_is_right(own: openai.OpenAI) -> None:
    text = "\ufeff" + json.dumps(line("a")) + "\r\n\r\n" + json.dumps(line("b")) + "\r\n"
    file = upload(own, text.encode())
    batch = own.batches.create(input_file_id=file, endpoint=CHAT, completion_window="24h")
    assert set(results(own, ended(own, batch.id).output_file_id)) == {"a", "b"}


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"endpoint": "/v1/moderations"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"metadata": {"x" * 65: "x"}}, None),
        ({"metadata": {"x": "x" * 513}}, "metadata.x"),
        ({"metadata": {"x": 1}}, "metadata.x"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, None),
        ({"input_file_id": 7}, "input_file_id"),
        ({"other": 7}, "other"),
    ],
)
def test_a_wrong_body_is_refused(caller: Caller, changes: dict[str, Any], param: Any) -> None:
    body = {"input_file_id": "file-x", "endpoint": CHAT, "completion_window": "24h"} | changes
    response = caller.post("/batches", body)
    assert response.status_code == 400, response.text
    if param:
        assert response.json()["error"]["param"] == param


def test_a_file_for_something_else_is_refused(own: openai.OpenAI) -> None:
    file = upload(own, [line("a")], "user_data")
    with pytest.raises(openai.BadRequestError) as caught:
        own.batches.create(input_file_id=file, endpoint=CHAT, completion_window="24h")
    assert caught.value.param == "input_file_id"
    with pytest.raises(openai.NotFoundError) as missing:
        own.batches.create(input_file_id="file-1", endpoint=CHAT, completion_window="24h")
    assert missing.value.param == "input_file_id"


def test_another_users_batch_is_as_missing_as_none(
    own: openai.OpenAI, chat_site: Site, strangers_key: str
) -> None:
    batch = ended(own, begin(own, [line("a")]).id)
    with a_client(chat_site, strangers_key) as others:
        for look in (others.batches.retrieve, others.batches.cancel):
            for id_ in (batch.id, f"batch_{'0' * 32}", "batch_x"):
                with pytest.raises(openai.NotFoundError):
                    look(id_)
        assert batch.id not in [b.id for b in others.batches.list()]
        with pytest.raises(openai.NotFoundError):
            others.files.content(batch.output_file_id)
    assert own.batches.retrieve(batch.id).status == "completed"


def test_batches_are_listed_newest_first(own: openai.OpenAI) -> None:
    check(own.batches.list().to_dict(), "ListBatchesResponse")
    ids = [begin(own, [line("a")]).id for _ in range(3)]
    page = own.batches.list(limit=2)
    check(page.to_dict(), "ListBatchesResponse")
    assert [b.id for b in page.data] == ids[:0:-1]
    assert page.has_more
    assert [b.id for b in own.batches.list(limit=1)] == ids[::-1]
    for id_ in ids:
        assert ended(own, id_).status == "completed"


def test_the_same_idempotency_key_makes_one_batch(own: openai.OpenAI) -> None:
    file = upload(own, [line("a")])
    made = [
        own.batches.create(
            input_file_id=file,
            endpoint=CHAT,
            completion_window="24h",
            extra_headers={"Idempotency-Key": "once"},
        )
        for _ in range(2)
    ]
    assert made[0].id == made[1].id
    assert len(own.batches.list().data) == 1


# --- ends -----------------------------------------------------------------------------------------


def _under_way(client: openai.OpenAI, num_lines: int = 60, **more: Any) -> str:
    """A batch with something done, and much that is not for a while: who looks may be slow."""
    lines = [
        line(str(n), chat_body(max_tokens=20 if n < 4 else 200, **more)) for n in range(num_lines)
    ]
    batch_id: str = begin(client, lines).id
    wait_until(
        lambda: client.batches.retrieve(batch_id).request_counts.completed >= 2,  # type: ignore[union-attr]
        timeout_s=60,
        what="the first results",
    )
    return batch_id


def _assert_all_told(client: openai.OpenAI, batch: Any, code: str, num_lines: int = 60) -> None:
    """Every line has an answer or a reason, and none has both."""
    good, bad = results(client, batch.output_file_id), results(client, batch.error_file_id)
    assert set(good) | set(bad) == {str(n) for n in range(num_lines)}
    assert not set(good) & set(bad)
    assert len(good) == batch.request_counts.completed >= 2
    assert bad
    for one in bad.values():
        assert one["response"] is None
        assert one["error"]["code"] == code


def test_what_is_done_by_a_cancel_is_kept(own: openai.OpenAI) -> None:
    batch_id = _under_way(own)
    asked = own.batches.cancel(batch_id)
    assert asked.status == "cancelling"
    check(asked.to_dict(), "Batch")
    batch = ended(own, batch_id, timeout_s=20)
    assert batch.status == "cancelled"
    assert batch.cancelling_at <= batch.cancelled_at
    _assert_all_told(own, batch, "batch_cancelled")
    assert own.batches.cancel(batch_id).status == "cancelled"


def test_what_has_ended_cannot_be_cancelled(own: openai.OpenAI) -> None:
    batch = ended(own, begin(own, [line("a")]).id)
    with pytest.raises(openai.BadRequestError) as caught:
        own.batches.cancel(batch.id)
    assert "completed" in caught.value.message


def test_after_a_day_it_expires_with_what_is_done(own: openai.OpenAI, chat_site: Site) -> None:
    batch_id = _under_way(own)
    _set(chat_site, batch_id, "expires_at = now() - interval '1 second'")
    batch = ended(own, batch_id, timeout_s=20)
    assert batch.status == "expired"
    assert batch.expired_at is not None
    _assert_all_told(own, batch, "batch_expired")


def test_a_file_that_is_read_stays_until_the_end(own: openai.OpenAI) -> None:
    batch_id = _under_way(own)
    file = own.batches.retrieve(batch_id).input_file_id
    with pytest.raises(openai.BadRequestError) as caught:
        own.files.delete(file)
    assert caught.value.code == "file_in_use"
    own.batches.cancel(batch_id)
    ended(own, batch_id)
    assert own.files.delete(file).deleted


def test_a_revoked_key_ends_its_batch(own: openai.OpenAI, chat_site: Site) -> None:
    batch_id = _under_way(own)
    revoke = "UPDATE webapp_apikey SET revoked_at = %s WHERE prefix = %s"
    chat_site.execute(revoke.replace("%s", "now()", 1), own.api_key[:11])
    wait_until(lambda: _get(chat_site, batch_id)[0] == "cancelled", what="the end")
    _, errors, num_completed, num_results, _ = _get(chat_site, batch_id)
    assert [error["code"] for error in errors] == ["rights_ended"]
    assert num_completed >= 2
    assert num_results == 0
    time.sleep(1)
    assert _get(chat_site, batch_id)[2] == num_completed


def test_a_suspended_user_ends_the_batch(own: openai.OpenAI, chat_site: Site) -> None:
    batch_id = _under_way(own)
    suspend = (
        "UPDATE webapp_user SET is_active = false WHERE id ="
        " (SELECT user_id FROM webapp_apikey WHERE prefix = %s)"
    )
    chat_site.execute(suspend, own.api_key[:11])
    wait_until(lambda: _get(chat_site, batch_id)[0] == "cancelled", what="the end")


def _row_id(batch_id: str) -> str:
    return batch_id.removeprefix("batch_")


def _set(site: Site, batch_id: str, change: str) -> None:
    site.execute(f"UPDATE chat_batch SET {change} WHERE id = %s", _row_id(batch_id))


def _get(site: Site, batch_id: str) -> tuple[Any, ...]:
    import psycopg

    with psycopg.connect(f"host={site.data_dir}/sockets user=vitrine dbname=vitrine") as connection:
        connection.execute("SET vitrine.scope = 'system'")
        row = connection.execute(
            "SELECT status, errors, num_completed,"
            " (SELECT count(*) FROM chat_batchresult WHERE batch_id = b.id), lease_owner"
            " FROM chat_batch b WHERE id = %s",
            [_row_id(batch_id)],
        ).fetchone()
    assert row is not None
    return row


# --- rights and limits ----------------------------------------------------------------------------


def test_a_key_may_no_more_in_a_batch_than_without(chat_site: Site) -> None:
    owners = a_key(chat_site, name="batcher", features=FEATURES)
    assert owners
    chat_only = chat_site.create_api_key("batcher@example.org", "files")
    with a_client(chat_site, chat_only) as client:
        with pytest.raises(openai.PermissionDeniedError) as caught:
            begin(client, [line("a")])
        assert caught.value.code == "insufficient_scope"


def test_a_model_that_the_plan_has_not_is_missing(chat_site: Site) -> None:
    key = a_key(chat_site, features=FEATURES, model_names=["short"])
    with a_client(chat_site, key) as client:
        batch = ended(client, begin(client, [line("a")]).id)
        answer = results(client, batch.error_file_id)["a"]["response"]
        assert (answer["status_code"], answer["body"]["error"]["code"]) == (404, "model_not_found")


def test_a_spent_budget_waits_and_is_charged_as_ever(chat_site: Site) -> None:
    """Until there is more, or for a day: what is done by then is kept."""
    key = a_key(chat_site, name="saver", features=FEATURES, tokens_per_day=60)
    with a_client(chat_site, key) as client:
        lines = [line(str(n), chat_body(max_tokens=20)) for n in range(12)]
        batch_id = begin(client, lines).id

        def rests() -> bool:
            usage = client.batches.retrieve(batch_id).usage
            return usage is not None and usage.total_tokens >= 60

        wait_until(rests, timeout_s=60, what="the end of the budget")
        # It keeps no place while it rests, which others wait for.
        wait_until(lambda: _get(chat_site, batch_id)[4] == "", what="a rest")
        batch = client.batches.retrieve(batch_id)
        assert batch.status == "in_progress"
        assert batch.request_counts is not None
        assert batch.request_counts.failed == 0
        assert batch.request_counts.completed < 12
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(**chat_body())
        place(chat_site, email_of("saver"), a_tier(chat_site, features=FEATURES))
        _set(chat_site, batch_id, "lease_until = now()")  # a minute later
        batch = ended(client, batch_id)
        assert batch.status == "completed"
        assert set(results(client, batch.output_file_id)) == {str(n) for n in range(12)}
        assert batch.usage.total_tokens == _tokens_of(chat_site, key)


def test_one_that_rests_is_cancelled_at_once(chat_site: Site) -> None:
    with a_client(chat_site, a_key(chat_site, features=FEATURES, tokens_per_day=1)) as client:
        batch_id = begin(client, [line(str(n)) for n in range(3)]).id
        wait_until(
            lambda: _get(chat_site, batch_id)[2] == 1 and _get(chat_site, batch_id)[4] == "",
            what="a rest",
        )
        client.batches.cancel(batch_id)
        assert ended(client, batch_id, timeout_s=10).status == "cancelled"


def _tokens_of(site: Site, key: str) -> int:
    """What the ledger says that a key has taken."""
    import psycopg

    with psycopg.connect(f"host={site.data_dir}/sockets user=vitrine dbname=vitrine") as connection:
        connection.execute("SET vitrine.scope = 'system'")
        row = connection.execute(
            "SELECT sum(prompt_tokens + completion_tokens) FROM chat_usage WHERE api_key_id ="
            " (SELECT id FROM webapp_apikey WHERE prefix = %s)",
            [key[:11]],
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_of_one_user_only_so_many_wait(own: openai.OpenAI) -> None:
    first = _under_way(own, 200)
    file = upload(own, [line("a")])
    ids = [
        own.batches.create(input_file_id=file, endpoint=CHAT, completion_window="24h").id
        for _ in range(19)
    ]
    with pytest.raises(openai.RateLimitError):
        own.batches.create(input_file_id=file, endpoint=CHAT, completion_window="24h")
    # Those that never began end at once, too, though another is at work.
    for id_ in [*ids, first]:
        own.batches.cancel(id_)
    assert {ended(own, id_).status for id_ in [*ids, first]} == {"cancelled"}

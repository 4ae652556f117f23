"""The lease of a batch: one process at a time, and what the other writes counts for nothing."""

import errno
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat import batch_calls, batch_files, batch_lines, batch_rows, batch_runner, file_store
from chat.batch_calls import Answer
from chat.batch_lines import Checked
from chat.batch_rows import End, LeaseLost
from chat.batch_runner import BatchRun
from chat.db import in_db
from chat.models import ApiFile, Batch, BatchResult, BatchStatus
from chat.rights import Rights
from chat.runs import PROCESS_ID
from chat.waiting import Waits, waiting
from tests.chat.batch_client import jsonl, line
from webapp.api_keys import create_api_key, revoke_api_key
from webapp.models import Tier
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db
ME, OTHER = "me", "other"


@pytest.fixture
def batch(alice: "User") -> Any:
    with as_user(alice.pk):
        yield Batch.objects.create(
            owner=alice,
            endpoint="/v1/chat/completions",
            input_file="00000000-0000-0000-0000-000000000001",
            expires_at=timezone.now() + timedelta(hours=24),
            lease_until=timezone.now() - timedelta(seconds=1),
        )


def answer(text: str = "{}", status: int = 200) -> Answer:
    return Answer(status, "", 0.0, text, {"prompt_tokens": 2, "completion_tokens": 1})


def run_out(batch: Batch) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Batch.objects.filter(pk=batch.pk).update(lease_until=past)


def test_of_two_processes_one_has_it(batch: Batch) -> None:
    assert batch_rows.claim(batch.pk, ME)
    assert batch_rows.claim(batch.pk, OTHER) is None
    with as_system():
        assert batch_rows.find_waiting() == []
        assert waiting() == set()
        run_out(batch)
        assert batch_rows.find_waiting() == [(batch.pk, batch.owner_id, False)]
        assert waiting() == {Waits.BATCHES}


def test_who_has_lost_it_writes_nothing(batch: Batch) -> None:
    batch_rows.claim(batch.pk, ME)
    batch_rows.begin(batch.pk, ME, Checked(3, "m"))
    run_out(batch)
    assert batch_rows.claim(batch.pk, OTHER)
    before = Batch.objects.values().get(pk=batch.pk)
    lost = ApiFile(owner_id=batch.owner_id, purpose="batch_output", name="x", size_bytes=1)
    for write in (
        lambda: batch_rows.renew(batch.pk, ME),
        lambda: batch_rows.begin(batch.pk, ME, Checked(7, "n")),
        lambda: batch_rows.keep(batch, ME, 1, answer()),
        lambda: batch_rows.finish(batch.pk, ME, End(BatchStatus.COMPLETED, output=lost)),
    ):
        with pytest.raises(LeaseLost):
            write()
    batch_rows.release(batch.pk, ME)
    batch_rows.begin_end(batch.pk, ME)
    assert Batch.objects.values().get(pk=batch.pk) == before
    assert not BatchResult.objects.exists()
    assert not ApiFile.objects.exists()


def test_attempts_are_counted_of_those_that_died_without_a_result(batch: Batch) -> None:
    def taken_up() -> int:
        row = batch_rows.claim(batch.pk, ME)
        assert row is not None
        return row.attempts

    assert taken_up() == 0
    run_out(batch)
    assert taken_up() == 1
    batch_rows.keep(batch, ME, 1, answer())
    run_out(batch)
    assert taken_up() == 1
    batch_rows.release(batch.pk, ME)
    assert taken_up() == 1, "let go of in peace"


def test_the_files_tell_of_every_line_once(batch: Batch) -> None:
    path = file_store.path_of(Batch.objects.get().input_file)
    path.write_bytes(jsonl([line(str(n)) for n in range(1, 5)]))
    batch_rows.claim(batch.pk, ME)
    batch_rows.begin(batch.pk, ME, Checked(4, "m"))
    batch_rows.keep(batch, ME, 3, answer('{"custom_id": "3"}'))
    batch_rows.keep(batch, ME, 1, answer('{"custom_id": "1"}', status=400))
    row = batch_rows.renew(batch.pk, ME)
    assert (row.num_completed, row.num_failed, row.prompt_tokens) == (1, 1, 4)
    output, error = batch_files.write(row, ("batch_expired", "Too late."))
    assert output
    assert error
    told = [file_store.path_of(file.pk).read_text().splitlines() for file in (output, error)]
    assert [[text.split('"custom_id": ')[1][1] for text in lines] for lines in told] == [
        ["3"],
        ["1", "2", "4"],
    ]
    batch_rows.finish(batch.pk, ME, End(BatchStatus.EXPIRED, output=output, error=error))
    assert not BatchResult.objects.exists()
    assert {file.pk for file in ApiFile.objects.all()} == {output.pk, error.pk}
    for file_id in (output.pk, error.pk, Batch.objects.get().input_file):
        file_store.remove(file_id)


def test_a_full_disk_is_left_as_it_was(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(file: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on the device")

    batch_rows.claim(batch.pk, ME)
    batch_rows.begin(batch.pk, ME, Checked(2, "m"))
    batch_rows.keep(batch, ME, 1, answer("x" * 100_000))
    batch_rows.keep(batch, ME, 2, answer("y" * 100_000, status=400))
    before = set(file_store.folder().iterdir())
    monkeypatch.setattr(file_store, "make_safe", no_space)
    with pytest.raises(OSError, match="no space"):
        batch_files.write(batch_rows.renew(batch.pk, ME), None)
    assert set(file_store.folder().iterdir()) == before


@pytest.mark.django_db(transaction=True)
def test_an_end_that_cannot_be_written_is_tried_ever_more_rarely(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on the device")

    monkeypatch.setattr(batch_files, "write", no_space)
    Batch.objects.update(status=BatchStatus.FINALIZING)

    async def tried() -> float:
        """How long after a try the next one is."""
        row = await in_db(batch_rows.claim)(batch.pk, PROCESS_ID)
        assert row is not None
        await BatchRun(row).run()
        row = await Batch.objects.aget()
        assert row.status == BatchStatus.FINALIZING
        await Batch.objects.aupdate(lease_until=timezone.now() - timedelta(seconds=1))
        return (row.lease_until - timezone.now()).total_seconds()

    pauses = [async_to_sync(tried)() for _ in range(batch_rows.MAX_ATTEMPTS + 4)]
    assert max(pauses[: batch_rows.MAX_ATTEMPTS]) <= batch_rows.LEASE_S
    assert pauses[-1] > 2 * pauses[-2] * 0.9 > 2 * batch_rows.LEASE_S
    Batch.objects.update(attempts=30_000)
    assert async_to_sync(tried)() <= batch_rows.LONGEST_REST_S


def test_a_cancel_is_not_overtaken(alice: "User", batch: Batch) -> None:
    batch_rows.claim(batch.pk, ME)
    batch_rows.cancel(alice, batch.public_id)
    batch_rows.begin(batch.pk, ME, Checked(1, "m"))
    batch_rows.begin_end(batch.pk, ME)
    assert batch_rows.renew(batch.pk, ME).status == BatchStatus.CANCELLING


def test_rights_are_those_of_now(alice: "User", batch: Batch) -> None:
    key, _ = create_api_key(alice)
    batch.api_key_id = key.pk
    rights = batch_rows.rights_of(batch)
    assert rights
    assert (rights.api_key, rights.priority) == (key, "background")
    key.scopes = ["files", "embeddings"]
    key.save()
    assert batch_rows.rights_of(batch) is None
    key.scopes = ["files", "chat"]
    key.save()
    assert batch_rows.rights_of(batch)
    Tier.objects.filter(pk=alice.tier_id).update(features=["files"])
    assert batch_rows.rights_of(batch) is None
    batch.api_key_id = None
    assert batch_rows.rights_of(batch)
    Tier.objects.filter(pk=alice.tier_id).update(features=["api_keys", "files"])
    batch.api_key_id = key.pk
    revoke_api_key(key)
    assert batch_rows.rights_of(batch) is None
    batch.api_key_id = None
    alice.is_active = False
    alice.save()
    assert batch_rows.rights_of(batch) is None


@pytest.mark.parametrize(
    ("status", "code", "num_tries", "wait_s"),
    [
        (200, "", 1, None),
        (400, "invalid_value", 1, None),
        (404, "model_not_found", 1, None),
        (429, "insufficient_quota", 99, 60.0),
        (503, "overloaded", 99, 1.0),
        (401, "signed_out", 99, 1.0),
        (500, "generation_failed", 1, 2.0),
        (503, "worker_died", 2, 4.0),
        (503, "worker_died", 3, None),
        (503, "upstream_unavailable", 3, 8.0),
        (503, "upstream_unavailable", 39, 60.0),
        (503, "upstream_unavailable", 40, None),
        (503, "moderation_unavailable", 39, 60.0),
        (502, "upstream_error", 3, None),
    ],
)
def test_what_is_asked_again(status: int, code: str, num_tries: int, wait_s: Any) -> None:
    retry_after_s = 3600.0 if code == "insufficient_quota" else 0.0
    assert Answer(status, code, retry_after_s, "", {}).wait_s(num_tries) == wait_s


def test_waiting_for_others_is_no_failure(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [(429, "upstream_busy"), (429, "upstream_busy"), (502, "upstream_error"), (200, "")]
    answers = iter(Answer(status, code, 0.0, "", {}) for status, code in ends)

    async def ask(*_: object) -> Answer:
        return next(answers)

    async def sleep(_: float) -> None:
        pass

    monkeypatch.setattr(batch_calls, "ask", ask)
    monkeypatch.setattr(batch_runner.asyncio, "sleep", sleep)
    run = BatchRun(batch)
    run.rights = cast(Rights, object())
    asked = batch_lines.Line(1, "one", {})
    answer = async_to_sync(run._answer)(asked)
    assert answer is not None
    assert answer.status == 200


def test_results_have_no_more_room_than_files(batch: Batch, settings: Any) -> None:
    settings.MAX_FILES_BYTES = 1000
    batch_rows.claim(batch.pk, ME)
    batch_rows.begin(batch.pk, ME, Checked(3, "m"))
    batch_rows.keep(batch, ME, 1, answer("x" * 999))
    assert batch_rows.has_room(batch)
    batch_rows.keep(batch, ME, 2, answer("y"))
    assert not batch_rows.has_room(batch)

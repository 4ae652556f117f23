"""What a crash leaves on the disk or in the database goes, and nothing else does."""

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from chat import file_store, files, tasks
from chat.ids import uuid7
from chat.models import ApiFile, Batch, BatchStatus
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db
OLD = timedelta(hours=2)


@pytest.fixture(autouse=True)
def empty_folder() -> Iterator[None]:
    for path in file_store.folder().iterdir():
        path.unlink()
    yield
    for path in file_store.folder().iterdir():
        path.unlink()


def on_disk(file_id: UUID, *, age: timedelta = OLD) -> None:
    path = file_store.path_of(file_id)
    path.write_text("x")
    at_s = (timezone.now() - age).timestamp()
    os.utime(path, (at_s, at_s))


def row_of(user: "User", *, age: timedelta = OLD, **more: Any) -> ApiFile:
    row = ApiFile.objects.create(owner=user, purpose="batch", name="x", size_bytes=1, **more)
    ApiFile.objects.filter(pk=row.pk).update(created_at=timezone.now() - age)
    return row


def there() -> tuple[set[str], set[str]]:
    lying = {path.name for path in file_store.folder().iterdir()}
    return lying, {row.pk.hex for row in ApiFile.objects.all()}


def test_files_without_rows_and_rows_without_files_go(alice: "User") -> None:
    with as_system():
        whole = row_of(alice)
        on_disk(whole.pk)
        row_of(alice)
        on_disk(uuid7())
        file_store.sweep()
        assert there() == ({whole.pk.hex}, {whole.pk.hex})


def test_files_of_another_database_and_rows_of_another_disk_stay(
    alice: "User", caplog: pytest.LogCaptureFixture
) -> None:
    """An environment without its DATABASE_URL, or a folder that is not mounted: both are wanted once
    that is noticed."""
    with as_system():
        whole = row_of(alice)
        on_disk(whole.pk)
        others = [uuid7() for _ in range(3)]
        for id_ in others:
            on_disk(id_)
        file_store.sweep()
        assert there() == ({id_.hex for id_ in (*others, whole.pk)}, {whole.pk.hex})
        assert "3 of 4 files of /v1/files have no row" in caplog.text
        for path in file_store.folder().iterdir():
            path.unlink()
        rows = [whole, *(row_of(alice) for _ in range(2))]
        file_store.sweep()
        assert there() == (set(), {row.pk.hex for row in rows})
        assert "3 of 3 rows of /v1/files have no file" in caplog.text


def test_what_is_being_written_stays(alice: "User") -> None:
    with as_system():
        arriving = uuid7()
        on_disk(arriving, age=timedelta(minutes=5))
        made = row_of(alice, age=timedelta(minutes=5))
        file_store.sweep()
        assert there() == ({arriving.hex}, {made.pk.hex})


def test_files_whose_time_is_over_go_but_for_those_that_a_batch_reads(alice: "User") -> None:
    past, future = timezone.now() - OLD, timezone.now() + OLD
    with as_system():
        over, read, later = (row_of(alice, expires_at=time) for time in (past, past, future))
        for row in (over, read, later):
            on_disk(row.pk)
        batch = Batch.objects.create(owner=alice, input_file=read.pk, expires_at=future)
        tasks.sweep_files()
        assert there() == ({read.pk.hex, later.pk.hex},) * 2
        Batch.objects.filter(pk=batch.pk).update(status=BatchStatus.COMPLETED)
        tasks.sweep_files()
        assert there() == ({later.pk.hex},) * 2


def test_a_file_whose_time_is_over_is_missing_before_it_is_swept(alice: "User") -> None:
    with as_user(alice.pk):
        row = row_of(alice, expires_at=timezone.now() - OLD)
        kept = row_of(alice)
        assert files.page(alice, "", limit=9, newest_first=True, after="") == [kept]
        with pytest.raises(Exception, match="no file with the id"):
            files.find(alice, f"{files.PREFIX}{row.pk.hex}")


def test_rows_are_seen_in_the_scope_of_their_owner_only(alice: "User", bob: "User") -> None:
    """Whatever the query says."""
    with as_system():
        file = row_of(alice)
        batch = Batch.objects.create(owner=alice, input_file=file.pk, expires_at=timezone.now())
        batch.results.create(owner=alice, number=1, is_error=False, text="x")

    def counts() -> list[int]:
        found = []
        with connection.cursor() as cursor:
            for table in ("chat_apifile", "chat_batch", "chat_batchresult"):
                cursor.execute(f"SELECT count(*) FROM {table}")
                found.append(cursor.fetchone()[0])
        return found

    with as_nobody():
        assert counts() == [0, 0, 0]
    with as_user(bob.pk):
        assert counts() == [0, 0, 0]
    with as_user(alice.pk):
        assert counts() == [1, 1, 1]

"""A file's way from its upload until its passages are found, and what may happen on it."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from math import sqrt
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat.document_view import view
from inference import EncodingFailed
from retrieval import document_files, embedding, staging, tasks, version_leases
from retrieval.chunking import ChunkSettings
from retrieval.db import in_db
from retrieval.embedding import Embedded
from retrieval.indexing import forget, make_live
from retrieval.models import Chunk, Collection, Document, Embedding, Version, VersionState
from retrieval.parsing import Limits
from retrieval.scopes import SearchScope
from retrieval.searching import passages, search
from retrieval.version_leases import LeaseLost
from tests.retrieval.pdfs import PdfPage, make_pdf
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from uuid import UUID

    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)
ME, OTHER = "me", "other"
TEXT = "# Birds\n\n" + "\n\n".join(
    f"The canary number {n} sings in tree {n * 7}." for n in range(200)
)


@pytest.fixture(autouse=True)
def system(tmp_path: Any, settings: Any) -> Iterator[None]:
    settings.DATA_DIR = tmp_path
    with as_system():
        yield


def bring(collection: Collection, content: bytes | str, name: str = "birds.md") -> Version:
    document = Document.objects.create(collection=collection, name=name)
    version = Version.objects.create(
        document=document, collection=collection, lease_until=timezone.now() - timedelta(seconds=1)
    )
    data = content.encode() if isinstance(content, str) else content
    document_files.path_of(version.pk).write_bytes(data)
    return version


def read(version: Version, me: str = ME) -> Version:
    staging.read(version.pk, me, lambda text: len(text.split()), Limits(), ChunkSettings())
    version.refresh_from_db()
    return version


async def vectors_of(texts: Sequence[str]) -> Embedded:
    """By how many letters and digits a text has."""
    found = [[float(sum(map(str.isalpha, t))), float(sum(map(str.isdigit, t))), 1.0] for t in texts]
    unit = [[x / sqrt(sum(y * y for y in one)) for x in one] for one in found]
    return Embedded(unit, "tiny")


def embed(me: str = ME, by: Any = vectors_of) -> None:
    asyncio.run(embedding.embed_waiting(by, me))


def test_a_file_is_read_embedded_and_found(notes: Collection, alice: "User") -> None:
    version = read(bring(notes, TEXT))
    assert (version.state, version.title) == (VersionState.EMBEDDING, "Birds")
    assert version.num_chunks == len(version.staged) > 1
    with as_user(alice.pk):
        assert search("canary", [], SearchScope()) == [], "not before it is ready"
    embed()
    version.refresh_from_db()
    assert (version.state, version.staged) == (VersionState.READY, [])
    assert version.num_embedded == version.num_chunks == Embedding.objects.count()
    with as_user(alice.pk):
        best = passages([search("canary 93", [], SearchScope())[0].chunk_id])[0]
        assert "canary number 93" in best.text
        assert best.text == version.text[best.start : best.end]
        assert best.document.name == "birds.md"


def test_what_a_file_is_is_known_by_what_is_in_it(notes: Collection, alice: "User") -> None:
    pdf = make_pdf([PdfPage([(72.0, 700.0, 12.0, "The canary sings of glass.")])])
    for version in (bring(notes, pdf, "a name without an ending"), bring(notes, TEXT)):
        read(version)
    embed()
    with as_user(alice.pk):
        found = [
            {row.document.name for row in passages([one.chunk_id for one in hits])}
            for kind in ("application/pdf", "text/markdown")
            for hits in [search("canary", [], SearchScope(media_types=[kind]))]
        ]
    assert found == [{"a name without an ending"}, {"birds.md"}]


def test_a_version_is_what_it_was_read_as(notes: Collection, alice: "User") -> None:
    pdf = make_pdf([PdfPage([(72.0, 700.0, 12.0, "The canary sings of glass.")])])
    first = read(bring(notes, pdf, "birds"))
    embed()
    document = first.document
    second = Version.objects.create(
        document=document, collection=notes, number=2, lease_until=first.lease_until
    )
    document_files.path_of(second.pk).write_text(TEXT)
    read(second)
    with as_user(alice.pk):
        assert view(alice, document.pk).kind == "pdf", "that is found still"
        found = search("canary", [], SearchScope(media_types=["application/pdf"]))
        assert passages([found[0].chunk_id])
        assert view(alice, document.pk, second.pk).kind == "text"
    embed()
    document.refresh_from_db()
    assert document.media_type == "text/plain"
    with as_user(alice.pk):
        assert view(alice, document.pk).kind == "text"
        assert view(alice, document.pk, first.pk).kind == "pdf"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "empty"),
        ("x.pdf", b"%PDF-1.7 nonsense", ""),
        ("a.exe", b"MZ\x90\x00" * 99, ""),
    ],
)
def test_a_file_that_cannot_be_read_fails_alone(
    notes: Collection, name: str, content: bytes, said: str
) -> None:
    bad, good = bring(notes, content, name), bring(notes, TEXT)
    for version in (bad, good):
        read(version)
    assert bad.state == VersionState.FAILED
    assert said in bad.reason
    assert bad.reason.endswith(".")
    embed()
    good.refresh_from_db()
    assert good.state == VersionState.READY


def test_a_file_that_is_gone(notes: Collection) -> None:
    version = bring(notes, TEXT)
    document_files.remove(version.pk)
    assert read(version).state == VersionState.FAILED


def run_out(version: Version) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Version.objects.filter(pk=version.pk).update(lease_until=past)


def test_of_two_workers_one_reads(notes: Collection) -> None:
    version = bring(notes, TEXT)
    assert version_leases.claim(version.pk, OTHER, VersionState.QUEUED)
    assert read(version).state == VersionState.QUEUED
    run_out(version)
    assert version_leases.find_waiting(VersionState.QUEUED) == [version.pk]
    assert read(version).state == VersionState.EMBEDDING
    with pytest.raises(LeaseLost):
        version_leases.update(version.pk, OTHER, num_chunks=0)


def test_a_thousand_files_of_one_hold_up_nobody_elses(
    notes: Collection, alice: "User", bob: "User"
) -> None:
    many = [bring(notes, f"{TEXT}\n{n}", f"{n}.md") for n in range(5)]
    theirs = Collection.objects.create(owner=bob, name="Notes")
    one, two = bring(theirs, TEXT), bring(theirs, TEXT)
    chats = Collection.objects.create(owner=alice, name="Chats", is_for_chats=True)
    attached = bring(chats, TEXT)
    waiting = version_leases.find_waiting(VersionState.QUEUED)
    turns = [{attached}, {many[0], one}, {many[1], two}, *({rest} for rest in many[2:])]
    for turn in turns:
        now, waiting = waiting[: len(turn)], waiting[len(turn) :]
        assert set(now) == {version.pk for version in turn}
    assert version_leases.find_waiting(VersionState.QUEUED, limit=1) == [attached.pk]
    for limit, turn in enumerate(([many[0], one], [many[0], one, many[1], two]), 1):
        found = version_leases.find_waiting(VersionState.QUEUED, limit=1 + 2 * limit)
        assert {*found} == {attached.pk, *(version.pk for version in turn)}
    for version in many:
        read(version)
    seen: list[str] = []

    async def embed_and_attach(texts: Sequence[str]) -> Embedded:
        seen.append(texts[0])
        if len(seen) == 1:
            await in_db(read)(attached)
        return await vectors_of(texts)

    embed(by=embed_and_attach)
    ready = Version.objects.filter(state=VersionState.READY).order_by("ready_at")
    assert list(ready) == [many[0], attached, *many[1:]]


@pytest.mark.usefixtures("clean_redis")
def test_files_that_wait_long_are_sent_once_to_be_read(
    notes: Collection, alice: "User", bob: "User", monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    versions = [bring(notes, f"Bird {n}", f"{n}.txt") for n in range(200)]
    theirs = Collection.objects.create(owner=bob, name="Notes")
    late = bring(theirs, TEXT)
    sent: list[str] = []
    monkeypatch.setattr(tasks.read_version, "delay", sent.append)
    for _ in range(3):
        tasks.take_up_documents()
    assert sorted(sent) == sorted(str(one.pk) for one in [*versions, late])

    class Counter:
        window_tokens = 256

        def __call__(self, text: str) -> int:
            return len(text.split())

    monkeypatch.setattr(tasks, "_counter", lambda model: Counter())
    find, nums_found = version_leases.find_waiting, []

    def counted(*states: VersionState, **how: Any) -> "list[UUID]":
        found = find(*states, **how)
        nums_found.append(len(found))
        return found

    for version_id in sent[:30]:
        with monkeypatch.context() as patch:
            patch.setattr(version_leases, "find_waiting", counted)
            tasks.read_version(version_id)
        done = list(Version.objects.filter(state=VersionState.EMBEDDING))
        if late in done:
            break
    assert {*done} == {late, *versions[: len(done) - 1]}, "of both owners, the oldest first"
    assert len(nums_found) == len(done)
    assert max(nums_found) <= 50, "of many only the next ones are looked up"
    Version.objects.filter(pk__in=[one.pk for one in done]).update(state=VersionState.PARSING)
    tasks.take_up_documents()
    assert len(sent) == 201 + len(done), "their worker has died"


def test_a_worker_that_was_thought_dead_writes_nothing(notes: Collection) -> None:
    version = read(bring(notes, TEXT))

    async def slow(texts: Sequence[str]) -> list[list[float]]:
        run_out_now = in_db(run_out)
        await run_out_now(version)
        assert await in_db(version_leases.claim)(version.pk, OTHER, VersionState.EMBEDDING)
        return await vectors_of(texts)

    embed(by=slow)
    assert not Chunk.objects.exists()
    run_out(version)
    embed(OTHER)
    assert Chunk.objects.count() == version.num_chunks


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_what_is_cancelled_or_taken_over_just_before_it_is_published_is_not(
    notes: Collection, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    version = read(bring(notes, TEXT))
    rows = Version.objects.filter(pk=version.pk)

    def taken(*args: Any) -> None:
        if is_cancelled:
            rows.update(state=VersionState.FAILED, reason="cancelled", lease_owner="", staged=[])
        else:
            rows.update(lease_owner=OTHER)
        make_live(*args)

    monkeypatch.setattr(embedding, "make_live", taken)
    embed()
    assert not Chunk.objects.exists()
    assert not Document.objects.exclude(live_version=None)
    assert rows.get().state == (VersionState.FAILED if is_cancelled else VersionState.EMBEDDING)


def test_of_what_is_found_no_reason_why_not_is_kept(notes: Collection) -> None:
    version = read(bring(notes, TEXT))
    Version.objects.filter(pk=version.pk).update(reason="cancelled")
    embed()
    version.refresh_from_db()
    assert (version.state, version.reason, version.staged) == (VersionState.READY, "", [])


def test_what_takes_three_processes_down_is_given_up(notes: Collection) -> None:
    version = bring(notes, TEXT)
    for n in range(version_leases.MAX_ATTEMPTS):
        assert version_leases.claim(version.pk, f"w{n}", VersionState.QUEUED)
        run_out(version)
    assert read(version).state == VersionState.FAILED
    assert "several times" in version.reason


def test_what_takes_the_engine_down_holds_up_no_other_document(notes: Collection) -> None:
    poison = read(bring(notes, "# Poison\n\nThis takes it down.", "poison.md"))
    good = read(bring(notes, TEXT))

    async def failing(texts: Sequence[str]) -> Embedded:
        if any("takes it down" in text for text in texts):
            raise EncodingFailed("The worker died twice.")
        return await vectors_of(texts)

    for n in range(1, version_leases.MAX_ATTEMPTS + 1):
        embed(by=failing)
        good.refresh_from_db()
        assert good.state == VersionState.READY
        poison.refresh_from_db()
        assert poison.attempts == n
        run_out(poison)
    assert poison.state == VersionState.FAILED
    assert "several times" in poison.reason
    embed(by=failing)
    assert not Chunk.objects.filter(version=poison).exists()


def test_a_document_that_is_deleted_meanwhile_leaves_nothing(notes: Collection) -> None:
    version = read(bring(notes, TEXT))
    document = version.document

    async def deleting(texts: Sequence[str]) -> list[list[float]]:
        await in_db(forget)(document)
        return await vectors_of(texts)

    embed(by=deleting)
    for table in (Document, Version, Chunk, Embedding):
        assert not table.objects.exists()


def test_a_second_version_takes_the_place_of_the_first(notes: Collection, alice: "User") -> None:
    first = read(bring(notes, TEXT))
    embed()
    second = Version.objects.create(
        document=first.document, collection=notes, number=2,
        lease_until=timezone.now() - timedelta(seconds=1),
    )  # fmt: skip
    document_files.path_of(second.pk).write_text("The raven sings now.")
    read(second)
    with as_user(alice.pk):
        assert search("canary", [], SearchScope())
    embed()
    with as_user(alice.pk):
        assert not search("canary", [], SearchScope())
        assert len(search("raven", [], SearchScope())) == 1


def test_a_version_whose_vectors_take_long_is_taken_up_by_nobody_else(
    notes: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine makes vectors behind everybody's answers, however long these take."""
    monkeypatch.setattr(version_leases, "LEASE_S", 0.5)
    monkeypatch.setattr(version_leases, "RENEW_S", 0.1)
    version = read(bring(notes, TEXT))
    seen = []

    async def slowly(texts: Sequence[str]) -> Embedded:
        for _ in range(4):
            await asyncio.sleep(0.3)
            seen.append(await in_db(version_leases.find_waiting)(VersionState.EMBEDDING))
        return await vectors_of(texts)

    embed(by=slowly)
    assert not any(seen)
    version.refresh_from_db()
    assert (version.state, version.attempts) == (VersionState.READY, 0)

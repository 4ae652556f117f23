"""Another embedding model takes over: nothing is ever found less, and each passage is read once."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from math import sqrt
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from django.test import Client
from django.utils import timezone

from chat.models import CachedAnswer
from inference import EncodingFailed
from retrieval import embedding, model_leases, reembedding, retiring
from retrieval.db import in_db
from retrieval.embedding import Embedded
from retrieval.indexing import Passage, forget, make_live
from retrieval.models import (
    Chunk,
    Collection,
    Document,
    Embedding,
    EmbeddingModel,
    Version,
    VersionState,
)
from retrieval.reembedding import ConfiguredModel, Reembedding
from retrieval.scopes import SearchScope
from retrieval.searching import Meaning, passages, search
from retrieval.vectors import embedding_model, hold, models_in_use
from tests.retrieval.conftest import Add
from tests.retrieval.test_indexing import bring, read
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW = ConfiguredModel("old", 26), ConfiguredModel("new", 27, "first")
TEXTS = [f"{letter}{letter}{letter} bird" for letter in "abcdefg"]
Hook = Callable[[Sequence[str]], Awaitable[None]]


@pytest.fixture(autouse=True)
def system(tmp_path: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(reembedding, "AT_ONCE", 2)
    monkeypatch.setattr(retiring, "AT_ONCE", 3)
    with connection.cursor() as cursor:
        for name in indexes():  # a test's rows are taken away behind it, and its indexes are not
            cursor.execute(f"DROP INDEX {name}")
    with as_system():
        yield


def vector_of(text: str, model: ConfiguredModel) -> list[float]:
    """By how often each letter is in a text; the last dimensions count nothing."""
    counts = Counter(text)
    found = [float(counts[chr(ord("a") + n)]) for n in range(26)]
    length = sqrt(sum(x * x for x in found)) or 1.0
    return [x / length for x in found] + [0.0] * (model.dimensions - 26)


class Model:
    """Embeds, and counts how often it has read each text; `hook` is awaited before each batch."""

    def __init__(self, model: ConfiguredModel = NEW, hook: Hook | None = None) -> None:
        self.model, self.hook = model, hook
        self.read: Counter[str] = Counter()

    async def __call__(self, texts: Sequence[str]) -> Embedded:
        if self.hook is not None:
            await self.hook(texts)
        self.read.update(texts)
        vectors = [vector_of(text, self.model) for text in texts]
        return Embedded(vectors, self.model.name, self.model.revision)


def run(by: Model, part: Reembedding | None = None, me: str = "me") -> None:
    asyncio.run((part or Reembedding()).run(by, by.model, me))


def row(model: ConfiguredModel) -> EmbeddingModel:
    return embedding_model(model.name, model.dimensions, model.revision)


@pytest.fixture
def birds(notes: Collection, add: Add) -> list[Document]:
    """Documents of a passage each, found by the old model."""
    old = row(OLD)
    return [add(notes, text, vectors=[vector_of(text, OLD)], model=old) for text in TEXTS]


def found(user: "User", text: str) -> list[str]:
    """By meaning alone, as a question is that has a vector by each model."""
    by_name = {one.name: one for one in (OLD, NEW)}
    meanings = [Meaning(one, vector_of(text, by_name[one.name])) for one in models_in_use()]
    with as_user(user.pk):
        return [
            one.text for one in passages([c.chunk_id for c in search("", meanings, SearchScope())])
        ]


def indexes() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'embedding_near_%'")
        return {name for (name,) in cursor.fetchall()}


def assert_only(model: ConfiguredModel) -> None:
    """Every passage has one vector, and it is this model's; nothing is left of any other."""
    (only,) = models_in_use()
    assert (only.name, only.revision, only.lease_owner) == (model.name, model.revision, "")
    assert indexes() == {f"embedding_near_{only.pk}"}
    having = list(Embedding.objects.values_list("chunk_id", flat=True))
    assert sorted(having) == sorted(Chunk.objects.values_list("pk", flat=True))
    for one in Embedding.objects.select_related("chunk"):
        assert one.collection_id == one.chunk.collection_id
        assert one.vector == pytest.approx(vector_of(one.chunk.text, model), abs=1e-3)


def test_the_old_vectors_serve_until_the_new_ones_are_there(
    alice: "User", birds: list[Document]
) -> None:
    seen: list[int] = []

    async def look(texts: Sequence[str]) -> None:
        for text in TEXTS:
            assert (await in_db(found)(alice, text))[0] == text
        old, new = await in_db(models_in_use)()
        assert (old.name, new.name) == ("old", "new")
        assert await in_db(Embedding.objects.filter(model=old).count)() == len(TEXTS)
        seen.append(await in_db(Embedding.objects.filter(model=new).count)())

    by = Model(hook=look)
    run(by)
    assert seen == [0, 2, 4, 6]
    assert by.read == Counter(TEXTS)
    assert_only(NEW)
    assert [found(alice, text)[0] for text in TEXTS] == TEXTS


@pytest.mark.parametrize("bad", [{TEXTS[0]}, {TEXTS[2], TEXTS[3]}, {TEXTS[6]}])
def test_a_passage_that_the_new_model_cannot_read_stops_no_other(
    alice: "User", birds: list[Document], bad: set[str]
) -> None:
    async def fail(texts: Sequence[str]) -> None:
        if bad & set(texts):
            raise EncodingFailed("not a number")

    by, part = Model(hook=fail), Reembedding()
    run(by, part)
    assert set(by.read) - {"word"} == set(TEXTS) - bad
    for model, texts in ((OLD, bad), (NEW, set(TEXTS) - bad)):
        rows = Embedding.objects.filter(model__name=model.name)
        assert set(rows.values_list("chunk__text", flat=True)) == texts
    assert [found(alice, text)[0] for text in TEXTS] == TEXTS
    by.hook = None
    run(by, part)
    assert not set(by.read) & bad, "until the process ends"
    run(by)
    assert_only(NEW)


def test_a_model_that_breaks_in_the_middle_gives_up_no_passage(birds: list[Document]) -> None:
    by, part = Model(), Reembedding()

    async def fail(texts: Sequence[str]) -> None:
        if by.read:
            raise EncodingFailed("out of memory")

    by.hook = fail
    with pytest.raises(EncodingFailed):
        run(by, part)
    assert by.read
    by.hook = None
    run(by, part)
    assert_only(NEW)


def test_a_model_that_reads_nothing_takes_nothing_over(
    alice: "User", birds: list[Document]
) -> None:
    async def fail(texts: Sequence[str]) -> None:
        raise EncodingFailed("not a number")

    for _ in range(2):
        with pytest.raises(EncodingFailed):
            run(Model(hook=fail))
    assert [found(alice, text)[0] for text in TEXTS] == TEXTS


def test_the_admin_console_tells_how_far_it_is(
    alice: "User", admin: "User", client: Client, birds: list[Document]
) -> None:
    num, seen = len(TEXTS), []

    async def look(texts: Sequence[str]) -> None:
        for one in await in_db(models_in_use)():
            done = await in_db(reembedding.progress)(one)
            seen.append((one.name, done.num_done, done.percent, done.state))

    run(Model(hook=look))
    assert seen[:4] == [
        ("old", num, 100, "gives way"),
        ("new", 0, 0, "takes over"),
        ("old", num, 100, "gives way"),
        ("new", 2, 200 // num, "takes over"),
    ]
    client.force_login(admin)
    page = client.get("/admin/retrieval/embeddingmodel/").content.decode()
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert f"{num} of {num} (100 %) is in use" in words
    client.force_login(alice)
    assert client.get("/admin/retrieval/embeddingmodel/").status_code in (302, 403)


def test_another_revision_is_another_model(birds: list[Document]) -> None:
    run(Model())
    changed = ConfiguredModel(NEW.name, 30, "second")
    run(Model(changed))
    assert_only(changed)


def test_a_model_whose_files_change_meanwhile(birds: list[Document]) -> None:
    """The engine has loaded others than were looked at: what they make is not taken for the first's."""
    by = Model(ConfiguredModel(NEW.name, 30, "second"))
    part = Reembedding()
    asyncio.run(part.run(by, NEW, "me"))
    assert not Embedding.objects.filter(model__name=NEW.name).exists()
    run(by, part)
    assert_only(by.model)


def test_the_context_of_a_passage_is_read_with_it(notes: Collection, birds: list[Document]) -> None:
    document = Document.objects.create(collection=notes, name="headed")
    version = Version.objects.create(document=document, collection=notes)
    make_live(version, [Passage("zzz", 0, 3, context="# Head")], None)
    by = Model()
    run(by)
    assert by.read["# Head\nzzz"] == 1


def test_passages_that_never_had_a_vector_get_one(notes: Collection, add: Add) -> None:
    for text in TEXTS:
        add(notes, text)
    run(Model())
    assert_only(NEW)


def test_nothing_is_done_where_nothing_is(notes: Collection) -> None:
    by = Model()
    run(by)
    assert not by.read
    assert not models_in_use()


def test_when_all_is_done_passages_are_not_looked_through_again(
    birds: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Reembedding()
    run(Model(), part)
    monkeypatch.setattr(reembedding, "_lacking", None)
    run(Model(), part)


def test_models_without_any_vector_go(birds: list[Document]) -> None:
    for document in birds:
        forget(document)
    run(Model())
    assert_only(NEW)


# --- what dies, and what else works at it ---------------------------------------------------------


class Killed(BaseException):
    pass


def test_a_process_that_dies_loses_a_batch(
    birds: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die_at_the_third(texts: Sequence[str]) -> None:
        if sum(by.read.values()) == 4:
            raise Killed

    by = Model(hook=die_at_the_third)
    with monkeypatch.context() as patch:
        patch.setattr(model_leases, "release", lambda *_: None)  # kill -9 lets go of nothing
        with pytest.raises(Killed):
            run(by)
    by.hook = None
    run(by, me="other")
    assert sum(by.read.values()) == 4, "it may only be slow"
    assert len(models_in_use()) == 2
    EmbeddingModel.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run(by, me="other")
    assert by.read == Counter(TEXTS)
    assert_only(NEW)


def test_a_process_that_dies_while_old_vectors_go(
    birds: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    for step in ("_drop_index", "_drop_model"):
        with monkeypatch.context() as patch:
            patch.setattr(retiring, step, die)
            with pytest.raises(Killed):
                run(Model())
        assert len(models_in_use()) == 2
    run(Model())
    assert_only(NEW)


def test_an_engine_that_fails_lets_another_process_go_on(birds: list[Document]) -> None:
    async def fail(texts: Sequence[str]) -> None:
        raise RuntimeError("no engine")

    with pytest.raises(RuntimeError):
        run(Model(hook=fail))
    run(Model(), me="other")
    assert_only(NEW)


async def pause(texts: Sequence[str]) -> None:
    await asyncio.sleep(0.01)


def together(by: Model, num: int) -> None:
    async def all_of_them() -> None:
        parts = [Reembedding() for _ in range(num)]
        for _ in range(20):
            each = (part.run(by, by.model, f"p{n}") for n, part in enumerate(parts))
            await asyncio.gather(*each)
            if await in_db(len)(await in_db(models_in_use)()) == 1:
                return

    asyncio.run(all_of_them())


def test_of_several_processes_one_reads_each_passage(birds: list[Document]) -> None:
    by = Model(hook=pause)
    together(by, 4)
    assert by.read == Counter(TEXTS)
    assert_only(NEW)


def test_where_one_is_thought_dead_nothing_is_kept_twice(
    birds: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_leases, "LEASE_S", 0.0)  # everybody thinks so of everybody
    by = Model(hook=pause)
    together(by, 3)
    assert set(by.read) == set(TEXTS)
    assert_only(NEW)


def test_the_lease_is_renewed_while_a_batch_takes_long(
    birds: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_leases, "LEASE_S", 0.5)
    monkeypatch.setattr(model_leases, "RENEW_S", 0.05)
    other = Model()

    async def slow(texts: Sequence[str]) -> None:
        await asyncio.sleep(0.8)
        await Reembedding().run(other, NEW, "other")

    run(Model(hook=slow))
    assert not other.read
    assert_only(NEW)


def test_the_process_that_was_started_last_decides(birds: list[Document]) -> None:
    now = timezone.now()
    before, after = Reembedding(now - timedelta(hours=1)), Reembedding(now)
    by_old = Model(OLD)
    run(by_old, before)
    run(Model(), after)
    run(by_old, before)
    assert not by_old.read, "all had vectors by it, and then it did not decide any more"
    newest = max(models_in_use(), key=lambda one: one.configured_at or now - timedelta(days=1))
    assert newest.name == "new"
    # What it still brings is found by its own model, and then by that of the others.
    run(Model(), after)
    assert_only(NEW)


def test_back_to_the_old_model_in_the_middle(birds: list[Document]) -> None:
    class Changed(Exception):
        pass

    async def change(texts: Sequence[str]) -> None:
        if sum(by.read.values()) == 4:
            raise Changed

    by = Model(hook=change)
    with pytest.raises(Changed):
        run(by)
    back = Model(OLD)
    run(back)
    assert not back.read
    assert_only(OLD)


# --- what happens to documents meanwhile ----------------------------------------------------------


def once(action: Callable[[], Any]) -> Hook:
    """Within the second batch."""
    num = iter(range(100))

    async def hook(texts: Sequence[str]) -> None:
        if next(num) == 1:
            await in_db(action)()

    return hook


@pytest.mark.parametrize("at", range(len(TEXTS)))
def test_a_document_is_deleted_meanwhile(birds: list[Document], at: int) -> None:
    run(Model(hook=once(lambda: forget(birds[at]))))
    assert Chunk.objects.count() == len(TEXTS) - 1
    assert_only(NEW)


@pytest.mark.parametrize("at", range(len(TEXTS)))
def test_a_new_version_is_published_with_the_old_model_meanwhile(
    birds: list[Document], at: int
) -> None:
    def publish() -> None:
        document = birds[at]
        version = Version.objects.create(
            document=document, collection_id=document.collection_id, number=2
        )
        make_live(version, [Passage("zzz", 0, 3, vector=vector_of("zzz", OLD))], row(OLD))

    run(Model(hook=once(publish)))
    run(Model())
    assert Chunk.objects.filter(text="zzz").count() == 1
    assert Chunk.objects.count() == len(TEXTS)
    assert_only(NEW)


def beside(blocking: Callable[[], None]) -> Callable[[Awaitable[Any]], Any]:
    """Runs what is given while another thread has done `blocking`, which is undone afterwards."""

    async def both(work: Awaitable[Any]) -> None:
        loop, inside, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def in_transaction() -> None:
            with transaction.atomic():
                blocking()
                loop.call_soon_threadsafe(inside.set)
                go_on.wait(30)
                transaction.set_rollback(True)

        task = asyncio.create_task(in_db(in_transaction)())  # type: ignore[arg-type]
        try:
            await inside.wait()
            async with asyncio.timeout(20):
                await work
        finally:
            go_on.set()
            await task

    return lambda work: asyncio.run(both(work))


def test_who_is_deleting_a_document_is_not_waited_for(birds: list[Document]) -> None:
    row(NEW)
    by, part = Model(), Reembedding()
    beside(lambda: forget(birds[0]))(part.run(by, NEW, "me"))
    kept = Embedding.objects.filter(model__name="new").values_list("chunk__text", flat=True)
    assert sorted(kept) == TEXTS[1:]
    run(by, part)  # it was not deleted after all
    assert_only(NEW)


def test_a_model_that_somebody_publishes_with_is_not_deleted(birds: list[Document]) -> None:
    empty = embedding_model("empty", 3)
    new = row(NEW)
    drop = in_db(retiring._drop_model)
    dropped: list[bool] = []

    async def try_to() -> None:
        dropped.append(await drop(empty))

    beside(lambda: hold(empty))(try_to())
    asyncio.run(try_to())
    assert dropped == [False, True]
    assert new in models_in_use()


def test_a_file_that_is_brought_meanwhile_goes_first(
    notes: Collection, birds: list[Document]
) -> None:
    versions: list[Version] = []
    by = Model(hook=once(lambda: versions.append(read(bring(notes, "zzz zzz", "z.txt")))))
    run(by)
    assert sum(by.read.values()) == 4, "the batch that it was at"
    run(by)
    assert sum(by.read.values()) == 4
    asyncio.run(embedding.embed_waiting(Model(), "me"))
    run(by)
    assert by.read == Counter(TEXTS), "what was brought has its vector already"
    assert_only(NEW)


def test_a_file_that_is_on_its_way_with_a_model_that_goes(
    notes: Collection, birds: list[Document]
) -> None:
    """A process with the old model has its vectors, and publishes them when that is deleted."""
    version = read(bring(notes, "zzz zzz", "z.txt"))
    passage = [Passage("zzz zzz", 0, 7, vector=vector_of("zzz zzz", OLD))]
    Version.objects.filter(pk=version.pk).update(lease_owner="other", state=VersionState.PARSING)
    model = row(OLD)
    run(Model())
    assert_only(NEW)
    with pytest.raises(EmbeddingModel.DoesNotExist):
        make_live(version, passage, model)
    assert not Chunk.objects.filter(version=version).exists()
    Version.objects.filter(pk=version.pk).update(state=VersionState.EMBEDDING)
    embedding._publish(version.pk, "other", passage, model)
    version.refresh_from_db()
    assert version.state == VersionState.READY
    assert {one.name for one in models_in_use()} == {"old", "new"}
    run(Model())
    assert_only(NEW)


# --- who, and what else depends on a model --------------------------------------------------------


def test_no_user_can_do_it(alice: "User", charlie: "User", birds: list[Document]) -> None:
    old, new = row(OLD), row(NEW)
    before = indexes()
    for scope in (as_user(alice.pk), as_user(charlie.pk), as_nobody()):
        with scope:
            by = Model()
            run(by)
            assert not by.read
            with pytest.raises(PermissionError):
                retiring.retire_some(new)
            with pytest.raises(ProgrammingError, match="row-level security"):
                embedding_model("planted", 3)
            assert not EmbeddingModel.objects.update(configured_at=timezone.now())
            assert not EmbeddingModel.objects.filter(pk=new.pk).delete()[0]
            with pytest.raises(ProgrammingError, match="row-level security"):
                Embedding.objects.create(
                    chunk_id=1, model=new, collection_id=birds[0].collection_id, vector=[1.0] * 27
                )
    assert set(models_in_use()) == {old, new}
    assert Embedding.objects.filter(model=old).count() == len(TEXTS)
    assert indexes() == before


def test_answers_that_are_found_by_the_old_vectors_go(alice: "User", birds: list[Document]) -> None:
    def cached(key: str, model: EmbeddingModel | None) -> CachedAnswer:
        return CachedAnswer.objects.create(
            owner=alice, key=key, context=key, question="?", text="!", model="m",
            vector_model=model, vector=None if model is None else vector_of("a", OLD),
            expires_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip

    cached("of the old", row(OLD))
    cached("without", None)
    run(Model())
    assert [one.key for one in CachedAnswer.objects.all()] == ["without"]
    assert_only(NEW)


def test_the_log_tells_how_many(birds: list[Document], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "retrieval")
    run(Model())
    assert [one.getMessage() for one in caplog.records if "retrieval.re" in one.name] == [
        "7 of 7 passages get vectors by new",
        "all 7 passages have vectors by new",
        "the vectors by old are deleted: new has taken over",
    ]

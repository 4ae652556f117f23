"""What is found, by whom, and in which order."""

import random
from math import cos, log, pi, sin, sqrt
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Sum

from retrieval import lexical, vectors
from retrieval.indexing import Passage, forget, make_live
from retrieval.lexical import Ranked
from retrieval.models import (
    Access,
    Chunk,
    Collection,
    Document,
    Embedding,
    EmbeddingModel,
    Term,
    Version,
)
from retrieval.scopes import SearchScope
from retrieval.searching import Meaning, fused, passages, search
from retrieval.terms import terms_of
from retrieval.vectors import embedding_model
from tests.retrieval.conftest import Add
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db

ALL = SearchScope()


def tiny(dimensions: int) -> EmbeddingModel:
    with as_system():
        return embedding_model("tiny", dimensions)


def texts_found(
    question: str, scope: SearchScope = ALL, meaning: Meaning | None = None
) -> list[str]:
    found = search(question, [meaning] if meaning else [], scope)
    return [chunk.text for chunk in passages([one.chunk_id for one in found])]


# --- who ------------------------------------------------------------------------------------------


def test_the_owner_finds_and_nobody_else(
    alice: "User", bob: "User", notes: Collection, add: Add
) -> None:
    model = tiny(3)
    add(notes, "The canary sings.", vectors=[[1, 0, 0]], model=model)
    meaning = Meaning(model, [1.0, 0.0, 0.0])
    with as_user(alice.pk):
        assert texts_found("canary", meaning=meaning) == ["The canary sings."]
    for stranger in (as_user(bob.pk), as_nobody()):
        with stranger:
            assert texts_found("canary", meaning=meaning) == []
            for table in (Collection, Document, Version, Chunk, Embedding, Term):
                assert not table.objects.exists()


@pytest.mark.parametrize("way", ["user", "group", "everybody"])
def test_shared_and_unshared_at_once(
    alice: "User", bob: "User", charlie: "User", notes: Collection, add: Add, way: str
) -> None:
    add(notes, "The canary sings.")
    group = Group.objects.create(name="birds")
    bob.groups.add(group)
    whom: dict[str, Any] = {"user": {"user": bob}, "group": {"group": group}, "everybody": {}}[way]
    with as_user(alice.pk):
        access = Access.objects.create(collection=notes, owner=alice, **whom)
    with as_user(bob.pk):
        assert texts_found("canary") == ["The canary sings."]
    with as_user(charlie.pk):
        assert bool(texts_found("canary")) == (way == "everybody")
    with as_nobody():
        assert texts_found("canary") == []
    with as_user(alice.pk):
        access.delete()
    with as_user(bob.pk):
        assert texts_found("canary") == []


def test_who_leaves_a_group_finds_nothing_more(
    alice: "User", bob: "User", notes: Collection, add: Add
) -> None:
    add(notes, "The canary sings.")
    group = Group.objects.create(name="birds")
    with as_user(alice.pk):
        Access.objects.create(collection=notes, owner=alice, group=group)
    bob.groups.add(group)
    with as_user(bob.pk):
        assert texts_found("canary")
        bob.groups.remove(group)
        assert not texts_found("canary")


def test_readers_write_nothing(alice: "User", bob: "User", notes: Collection, add: Add) -> None:
    document = add(notes, "The canary sings.")
    with as_user(alice.pk):
        access = Access.objects.create(collection=notes, owner=alice, user=bob)
    with as_user(bob.pk):
        assert not Document.objects.filter(pk=document.pk).update(name="mine")
        assert not Collection.objects.filter(pk=notes.pk).update(name="mine")
        assert not Document.objects.filter(pk=document.pk)._raw_delete("default")
        with pytest.raises(DatabaseError), transaction.atomic():
            Document.objects.create(collection=notes, name="planted")
        with pytest.raises(DatabaseError), transaction.atomic():
            Access.objects.create(collection=notes, owner=alice, may_write=True)
        assert not Access.objects.filter(pk=access.pk).update(may_write=True)
    with as_user(alice.pk):
        Access.objects.filter(pk=access.pk).update(may_write=True)
    with as_user(bob.pk):
        Document.objects.create(collection=notes, name="welcome")
        assert not Collection.objects.filter(pk=notes.pk).update(owner=bob)


def test_nobody_writes_passages_but_the_system(alice: "User", notes: Collection, add: Add) -> None:
    add(notes, "The canary sings.")
    with as_user(alice.pk):
        assert not Chunk.objects.update(text="changed")
        assert not Term.objects.update(num_chunks=5)
        assert not Chunk.objects.all()._raw_delete("default")


def test_no_search_is_left_behind(alice: "User", notes: Collection, add: Add) -> None:
    add(notes, "The canary sings.", "The dog barks.")
    with as_user(alice.pk), transaction.atomic():
        assert len(lexical.ranked("canary", ALL, 5)) == 1
        assert Chunk.objects.count() == 2


# --- which ----------------------------------------------------------------------------------------


def bm25(question: str, texts: list[str]) -> list[float]:
    """As the papers have it, in Python."""
    docs = [terms_of(f" {text}") for text in texts]
    mean = sum(doc.num_terms for doc in docs) / len(docs)
    scores = [0.0] * len(docs)
    for word in terms_of(question).counts:
        num = sum(word in doc.counts for doc in docs)
        for at, doc in enumerate(docs):
            if word in doc.counts:
                tf = doc.counts[word]
                idf = log(1 + (len(docs) - num + 0.5) / (num + 0.5))
                scores[at] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * doc.num_terms / mean))
    return scores


def test_ranks_are_those_of_bm25(alice: "User", notes: Collection, add: Add) -> None:
    chance = random.Random(1)
    words = [f"w{n}" for n in range(60)] + ["東京都", "ma\u00f1ana", "STRASSE"]
    weights = [1 / (n + 1) for n in range(len(words))]
    texts = [" ".join(chance.choices(words, weights, k=chance.randrange(3, 40))) for _ in range(80)]
    for at in range(0, 80, 20):
        add(notes, *texts[at : at + 20])
    with as_user(alice.pk), transaction.atomic():
        for _ in range(20):
            question = " ".join(chance.choices(words, k=4))
            wanted = sorted((s for s in bm25(question, texts) if s > 0), reverse=True)
            found = lexical.ranked(question, ALL, 100)
            assert [one.score for one in found] == pytest.approx(wanted)
            assert all(0 < one.coverage <= 1 + 1e-9 for one in found)


def test_coverage_is_the_part_of_the_question_that_is_there(
    alice: "User", notes: Collection, add: Add
) -> None:
    """Words that no passage has count as much as the rarest: a question of such words is not covered."""
    add(notes, "canary bird", "the bird", "the dog", "the cat")
    with as_user(alice.pk), transaction.atomic():

        def best(question: str) -> float:
            return lexical.ranked(question, ALL, 5)[0].coverage

        assert best("canary bird") == pytest.approx(1)
        assert best("canary zeppelin") < 0.5
        assert best("the zeppelin") < 0.2


def test_rarity_is_that_of_what_is_searched(
    alice: "User", bob: "User", notes: Collection, add: Add
) -> None:
    """What is in another's documents moves no score."""
    add(notes, "canary bird", "bird dog")
    with as_user(alice.pk), transaction.atomic():
        before = lexical.ranked("canary bird", ALL, 5)
    with as_user(bob.pk):
        theirs = Collection.objects.create(owner=bob, name="Theirs")
    add(theirs, *["canary"] * 30)
    with as_user(alice.pk), transaction.atomic():
        assert lexical.ranked("canary bird", ALL, 5) == before


def test_common_words_alone_find_something_too(
    alice: "User", notes: Collection, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "MAX_FOUND", 5)
    add(notes, *[f"the bird {n}" for n in range(20)])
    with as_user(alice.pk), transaction.atomic():
        assert len(lexical.ranked("the bird", ALL, 50)) == 5
        assert len(lexical.ranked("the bird 7", ALL, 50)) == 1


@pytest.mark.parametrize("max_exact", [10_000, 0])
def test_the_nearest_come_first_however_they_are_found(
    alice: "User",
    bob: "User",
    notes: Collection,
    add: Add,
    max_exact: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "MAX_EXACT", max_exact)
    chance = random.Random(3)
    model = tiny(8)
    with as_user(bob.pk):
        theirs = Collection.objects.create(owner=bob, name="Theirs")
    points = [[chance.gauss(0, 1) for _ in range(8)] for _ in range(400)]
    points = [[x / sqrt(sum(y * y for y in point)) for x in point] for point in points]
    for owner, share in ((notes, points[:40]), (theirs, points[40:])):
        add(owner, *[f"p{n}" for n in range(len(share))], vectors=share, model=model)
    with as_user(alice.pk), transaction.atomic():
        found = vectors.nearest(points[0], model, ALL, 40)
        assert len(found) == 40, "what others own takes no place away"
        wanted = sorted(
            (sum(map(lambda a, b: a * b, points[0], p)) for p in points[:40]), reverse=True
        )
        assert [cosine for _, cosine in found] == pytest.approx(wanted, abs=0.01)


def test_vectors_that_no_index_takes_are_compared_one_by_one(
    alice: "User", notes: Collection, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MAX_EXACT", 0)
    chance = random.Random(7)
    model = tiny(4096)
    points = [[chance.gauss(0, 1 / 64) for _ in range(4096)] for _ in range(4)]
    add(notes, *[f"p{n}" for n in range(len(points))], vectors=points, model=model)
    with as_user(alice.pk), transaction.atomic():
        found = vectors.nearest(points[2], model, ALL, 4)
        best = passages([found[0][0]])[0]
        assert (len(found), best.text) == (4, "p2")
        assert len(vectors.similarity([id_ for id_, _ in found], model)) == 6


def test_a_filter_leaves_no_fewer_of_many_than_there_are(
    alice: "User", notes: Collection, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index goes on past what a filter leaves out, but not for ever."""
    monkeypatch.setattr(vectors, "MAX_EXACT", 100)
    monkeypatch.setattr(vectors, "MAX_SCAN_TUPLES", 300)
    chance = random.Random(5)
    model = tiny(3)
    near = [[1.0, chance.random() / 100, chance.random() / 100] for _ in range(2000)]
    add(notes, *["bird"] * len(near), vectors=near, model=model)
    rare = add(notes, "fish", vectors=[[-1.0, 0.0, 0.0]], model=model, tags=["rare"])
    with as_user(alice.pk), transaction.atomic():
        for scope in (SearchScope(tags=["rare"]), SearchScope(after=rare.created_at)):
            assert len(vectors.nearest([1.0, 0.0, 0.0], model, scope, 10)) == 1
        assert len(vectors.nearest([1.0, 0.0, 0.0], model, ALL, 10)) == 10


def test_whose_passages_are_all_far_away_finds_them_nevertheless(
    alice: "User", bob: "User", notes: Collection, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index gives up among what others own, which is nearer by far."""
    monkeypatch.setattr(vectors, "MAX_EXACT", 100)
    monkeypatch.setattr(vectors, "MAX_SCAN_TUPLES", 300)
    chance = random.Random(5)
    model = tiny(3)
    with as_user(bob.pk):
        theirs = Collection.objects.create(owner=bob, name="Theirs")
    for owner, low, high, num in ((theirs, -0.5, 1.0, 2000), (notes, -1.0, -0.9, 150)):
        points = []
        for _ in range(num):
            x, angle = chance.uniform(low, high), chance.uniform(0, 2 * pi)
            y = sqrt(1 - x * x)
            points.append([x, y * cos(angle), y * sin(angle)])
        add(owner, *["bird"] * num, vectors=points, model=model)
    with as_user(alice.pk), transaction.atomic():
        with connection.cursor() as cursor:
            for way in ("bitmapscan", "seqscan", "sort", "hashjoin", "mergejoin"):
                cursor.execute(f"SET LOCAL enable_{way} = off")  # as where there are many more
        assert len(vectors.nearest([1.0, 0.0, 0.0], model, ALL, 10)) == 10


def test_filters(alice: "User", notes: Collection, add: Add) -> None:
    with as_user(alice.pk):
        other = Collection.objects.create(owner=alice, name="Other")
    model = tiny(3)
    vector = {"vectors": [[1, 0, 0]], "model": model}
    one = add(notes, "bird one", tags=["work"], media_type="text/plain", **vector)
    two = add(other, "bird two", tags=["work", "old"], media_type="application/pdf", **vector)
    cases = [
        (SearchScope(), {"bird one", "bird two"}),
        (SearchScope(collections=[notes.pk]), {"bird one"}),
        (SearchScope(collections=[]), set()),
        (SearchScope(documents=[two.pk]), {"bird two"}),
        (SearchScope(tags=["work"]), {"bird one", "bird two"}),
        (SearchScope(tags=["work", "old"]), {"bird two"}),
        (SearchScope(media_types=["text/plain"]), {"bird one"}),
        (SearchScope(before=two.created_at), {"bird one"}),
        (SearchScope(after=two.created_at), {"bird two"}),
    ]
    assert one.created_at < two.created_at
    with as_user(alice.pk):
        for scope, wanted in cases:
            assert set(texts_found("bird", scope)) == wanted
            meaning = Meaning(model, [1.0, 0.0, 0.0])
            assert set(texts_found("", scope, meaning)) == wanted


def test_what_the_model_cannot_read_weighs_less(alice: "User", notes: Collection, add: Add) -> None:
    model = tiny(3)
    add(notes, "Right word.", vectors=[[0, 1, 0]], model=model)
    add(notes, "Near.", vectors=[[1, 0, 0]], model=model)
    add(notes, "Word for word, with many others around it.", vectors=[[0.6, 0.8, 0]], model=model)
    with as_user(alice.pk):
        known = search("word", [Meaning(model, [1.0, 0.0, 0.0])], SearchScope())
        half = search("word", [Meaning(model, [1.0, 0.0, 0.0], 0.5)], SearchScope())
        unknown = search("word", [Meaning(model, [1.0, 0.0, 0.0], 0.0)], SearchScope())
        words = search("word", [], SearchScope())
    cosines = {one.chunk_id: one.cosine for one in known}
    assert all(one.cosine == pytest.approx((cosines[one.chunk_id] or 0) / 4) for one in half)
    ranked = [one.chunk_id for one in words]
    assert [one.chunk_id for one in unknown][: len(ranked)] == ranked
    assert {one.cosine for one in unknown} == {0.0}


@pytest.mark.parametrize(
    "question",
    ["", " ", "'", "\\", ":*", "a'b\\c:d | !x & (y", "\x00", "\ud800", "🙂", "a" * 100_000],
)
def test_odd_questions(alice: "User", notes: Collection, add: Add, question: str) -> None:
    add(notes, "a'b\\c:d 🙂", "a" * 70)
    with as_user(alice.pk):
        search(question, [], ALL)


def test_scores_add_up() -> None:
    found = fused([Ranked(1, 8.0, 1.0), Ranked(2, 4.0, 0.5)], [(3, 0.9), (2, 0.8), (4, 0.1)])
    assert [(one.chunk_id, pytest.approx(one.score)) for one in found] == [
        (2, 1.3), (1, 1.1), (3, 0.9), (4, 0.1)
    ]  # fmt: skip
    assert [(one.lexical_rank, one.vector_rank) for one in found] == [
        (2, 2), (1, None), (None, 1), (None, 3)
    ]  # fmt: skip
    assert fused([], []) == []


# --- versions and deletion ------------------------------------------------------------------------


def sums() -> dict[str, Any]:
    """What is counted, and what there is."""
    with as_system():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT word, count(*) FROM retrieval_chunk, unnest(terms) AS t (word, p, w)"
                " WHERE word NOT LIKE ':%' GROUP BY word"
            )
            words = dict(cursor.fetchall())
        known = dict(Term.objects.values_list("term", "num_chunks"))
        counted = Collection.objects.aggregate(chunks=Sum("num_chunks"), terms=Sum("num_terms"))
        there = Chunk.objects.aggregate(terms=Sum("num_terms"))
        assert known == words
        assert counted == {"chunks": Chunk.objects.count(), "terms": there["terms"] or 0}
        return words


def test_counts_follow_versions_and_deletion(alice: "User", notes: Collection, add: Add) -> None:
    model = tiny(3)
    first = add(notes, "old bird", "old dog", vectors=[[1, 0, 0]] * 2, model=model)
    second = add(notes, "other bird")
    assert sums()["bird"] == 2
    with as_system():
        version = Version.objects.create(document=first, collection=notes, number=2)
        make_live(version, [Passage("new bird", 0, 8)], None)
    assert sums() == {"new": 1, "bird": 2, "other": 1}
    assert not Embedding.objects.exists()
    with as_user(alice.pk):
        assert set(texts_found("bird old dog")) == {"new bird", "other bird"}
    with as_system():
        for document in (first, second):
            document.refresh_from_db()
            forget(document)
        assert not Term.objects.exists()
    assert sums() == {}


def test_with_a_collection_goes_all_that_was_in_it(
    alice: "User", notes: Collection, add: Add
) -> None:
    add(notes, "old bird", vectors=[[1, 0, 0]], model=tiny(3))
    with as_user(alice.pk):
        Collection.objects.get(pk=notes.pk).delete()
    with as_system():
        for table in (Document, Version, Chunk, Embedding, Term):
            assert not table.objects.exists()


def test_a_collection_counts_its_changes(notes: Collection, add: Add) -> None:
    add(notes, "bird")
    with as_system():
        assert Collection.objects.filter(pk=notes.pk, version=F("version")).get().version == 2

"""Measuring what is found: right figures, nothing that stays, and a record for operators."""

import json
import re
from collections.abc import Sequence
from io import StringIO
from math import log2
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from retrieval.evaluation import (
    KS,
    WAYS,
    Configuration,
    evaluate,
    fused_by_ranks,
    ndcg,
    parse_configuration,
)
from retrieval.models import Chunk, Collection, Document, EmbeddingModel, Evaluation, Term, Version
from retrieval.question_sets import load
from tests.retrieval.test_question_sets import squad, written
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = pytest.mark.django_db

FRUIT = ("Pears grow on trees in the garden.", [("Where do pears grow?", "on trees")])
SEA = ("The sea is salty and deep.", [("What tastes of salt, and is deep?", "The sea")])
NIGHT = ("Owls hunt at night.", [("When do owls hunt?", "at night")])


def by_letters(texts: Sequence[str], role: str) -> list[list[float]]:
    """A model that knows letters only."""
    counts = [[text.lower().count(letter) + 0.01 for letter in "abcdefghijklmno"] for text in texts]
    return [[n / sum(x * x for x in row) ** 0.5 for n in row] for row in counts]


def words(text: str) -> int:
    return len(text.split())


def configured(*ways: str) -> list[Configuration]:
    return [Configuration(way, 64, 0) for way in ways]


def test_what_is_found_by_words_is_scored(tmp_path: Path) -> None:
    given = load(written(tmp_path, squad(FRUIT, SEA, NIGHT)))
    with as_system():
        results = evaluate(given, configured(*WAYS), by_letters, words)
    by_words = results[WAYS.index("words")].scores
    # "taste" and "salt" are in no passage: "deep" and "and" find the sea all the same
    assert results[WAYS.index("words")].first_ranks == [1, 1, 1]
    assert by_words.recall == dict.fromkeys(KS, 1.0)
    assert by_words.precision[10] == pytest.approx(0.1)
    assert (by_words.mrr, by_words.ndcg_at_10, by_words.num_chunks) == (1.0, 1.0, 3)
    for one in results:
        assert one.scores.num_questions == 3
        assert list(one.scores.recall.values()) == sorted(one.scores.recall.values())
        assert one.scores.recall[10] == pytest.approx(
            sum(rank is not None for rank in one.first_ranks) / 3
        )
    meant = results[WAYS.index("meaning")].scores
    assert meant.recall[3] == 1.0  # it ranks all there is
    assert meant.characters[10] == sum(len(text) for text, _ in (FRUIT, SEA, NIGHT))


def test_nothing_of_it_stays(tmp_path: Path, alice: User) -> None:
    given = load(written(tmp_path, squad(FRUIT, SEA)))
    kinds = (Chunk, Collection, Document, EmbeddingModel, Term, Version, get_user_model())
    with as_system():
        before = [kind.objects.count() for kind in kinds]
        evaluate(given, configured("hybrid"), by_letters, words)
        assert [kind.objects.count() for kind in kinds] == before


def test_what_others_have_is_not_found(tmp_path: Path, notes: Collection, add: object) -> None:
    add(notes, "Where do pears grow? Where do pears grow?")  # type: ignore[operator]
    given = load(written(tmp_path, squad(FRUIT)))
    with as_system():
        (result,) = evaluate(given, configured("words"), by_letters, words)
    assert (result.first_ranks, result.scores.precision[1]) == ([1], 1.0)


def test_a_chunk_that_holds_the_answer_is_wanted_and_no_other(tmp_path: Path) -> None:
    text = " ".join(f"Line {n} says pear." for n in range(40)) + " The secret is quince."
    given = load(written(tmp_path, squad((text, [("What is the secret?", "quince")]))))
    with as_system():
        (result,) = evaluate(given, [Configuration("words", 32, 0)], by_letters, words)
    assert result.scores.num_chunks > 3
    assert result.first_ranks == [1]
    assert result.scores.precision[3] == pytest.approx(1 / 3)


def test_sizes_of_chunks_are_compared(tmp_path: Path) -> None:
    text = " ".join(f"Line {n} says pear." for n in range(40))
    given = load(written(tmp_path, squad((text, [("Which line says 7?", "Line 7")]))))
    sizes = [Configuration("words", 200, 0), Configuration("words", 32, 0)]
    with as_system():
        large, small = evaluate(given, sizes, by_letters, words)
    assert large.scores.num_chunks == 1
    assert small.scores.num_chunks > large.scores.num_chunks
    assert small.scores.characters[1] < large.scores.characters[1]


def test_ndcg_is_as_published() -> None:
    assert ndcg([True, False, True], 2) == pytest.approx((1 + 1 / 2) / (1 + 1 / log2(3)))
    assert ndcg([False, True], 1) == pytest.approx(1 / log2(3))
    assert (ndcg([], 1), ndcg([False] * 10, 3), ndcg([True], 1)) == (0.0, 0.0, 1.0)
    # what is beyond what could be found at all takes nothing away
    assert ndcg([True] * 10, 40) == pytest.approx(1.0)


def test_ranks_are_fused() -> None:
    assert fused_by_ranks([1, 2, 3], [3, 1]) == [1, 3, 2]
    assert fused_by_ranks([], [5]) == [5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("words", Configuration("words", 256, 128)),
        ("hybrid:100", Configuration("hybrid", 100, 50)),
        ("rrf:512/0", Configuration("rrf", 512, 0)),
        ("meaning:/64", Configuration("meaning", 256, 64)),
    ],
)
def test_configurations_are_read(text: str, found: Configuration) -> None:
    assert parse_configuration(text, 256, 200 if found.overlap_tokens == 128 else 128) == found


@pytest.mark.parametrize(
    "text", ["", "bm25", "words:x", "words:1", "words:100/51", "words:-5", "words:9000"]
)
def test_wrong_ones_are_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_configuration(text, 256, 128)


# --- the command ------------------------------------------------------------------------------------


def run(path: Path, *options: str) -> str:
    out = StringIO()
    with as_system():
        call_command("evalretrieval", str(path), *options, stdout=out)
    return out.getvalue()


def test_the_command_measures_and_keeps_it(
    tmp_path: Path, client: Client, admin: User, bob: User
) -> None:
    path = written(tmp_path, squad(FRUIT, SEA, NIGHT), "fruit.json")
    report = tmp_path / "report.json"
    shown = run(path, "--compare", "words:64/0", "--json", str(report))
    assert "fruit.json: 3 questions, 3 documents, all-minilm-l6-v2" in shown
    assert re.search(r"recall@1 +1\.000 +1\.000\n", shown)
    assert "Among the first 5: 0 questions by hybrid:256/128 alone" in shown
    told = json.loads(report.read_text())
    assert [one["configuration"] for one in told["results"]] == ["hybrid:256/128", "words:64/0"]
    assert told["results"][0]["recall"]["1"] == 1.0
    with as_system():
        rows = list(Evaluation.objects.order_by("pk"))
    assert [(row.way, row.max_tokens, row.overlap_tokens) for row in rows] == [
        ("hybrid", 256, 128),
        ("words", 64, 0),
    ]
    assert len({row.run for row in rows}) == 1
    _is_shown_read_only(client, admin, rows[0])
    _is_seen_by_nobody_else(client, bob, rows[0])


def _is_shown_read_only(client: Client, admin: User, row: Evaluation) -> None:
    client.force_login(admin)
    page = client.get("/admin/retrieval/evaluation/").content.decode()
    assert "fruit.json" in page
    assert "hybrid, 256 / 128" in page
    assert client.get(f"/admin/retrieval/evaluation/{row.pk}/change/").status_code == 200
    assert client.get("/admin/retrieval/evaluation/add/").status_code == 403
    assert (
        client.post(f"/admin/retrieval/evaluation/{row.pk}/delete/", {"post": "yes"}).status_code
        == 403
    )


def _is_seen_by_nobody_else(client: Client, bob: User, row: Evaluation) -> None:
    client.force_login(bob)
    assert client.get("/admin/retrieval/evaluation/").status_code in (302, 403)
    with as_user(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM retrieval_evaluation")
        assert cursor.fetchone()[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "bm25"], "none of hybrid"),
        (["--by", "words", "--compare", "words"], "Both configurations"),
        (["--model", "nobody/knows"], "nobody/knows"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, options: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(written(tmp_path, squad(FRUIT)), *options)
    with as_system():
        assert not Evaluation.objects.exists()


def test_a_set_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "none.json")
    with pytest.raises(CommandError, match="columns"):
        run(written(tmp_path, "a,b\n"))

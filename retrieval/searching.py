"""Finding passages: by words and by meaning, and both together.

The two scores are added, that of words as a part of the best one's. By ranks alone (reciprocal rank
fusion) a model that does not know a language would push aside what words have found: on XQuAD's German
that made recall@1 .75, below the .85 of words alone, and adding scores made it .87 (measured with
`python -m benchmarks.retrieval`).
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from retrieval import lexical, vectors
from retrieval.lexical import Ranked
from retrieval.models import Chunk, EmbeddingModel
from retrieval.scopes import SearchScope

MEANING_WEIGHT = 1.0  # of a cosine, beside a part of the best score by words
NUM_CANDIDATES = 50  # of each way of finding


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that was found. Ranks count from 1; None: not found in this way.

    `coverage` is how much of what the question's words weigh is in it, from 0 to 1; `cosine` counts as
    much as the model could read of the question.
    """

    chunk_id: int
    score: float
    lexical_rank: int | None = None
    lexical_score: float = 0.0
    coverage: float = 0.0
    vector_rank: int | None = None
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """The vector of a question, by this model, which could read so much of it.

    Two texts of nothing but "unknown" tokens are near each other whatever they say. Of a passage that
    is near about as much was read, so that the share counts twice.
    """

    model: EmbeddingModel
    vector: "Sequence[float] | array[float]"
    known_share: float = 1.0


def search(
    question: str, meanings: Sequence[Meaning], scope: SearchScope, limit: int = 10
) -> list[Candidate]:
    """The best passages of those that the scope of the connection may see, the best first."""
    with transaction.atomic():
        by_words = lexical.ranked(question, scope, NUM_CANDIDATES)
        cosines: dict[int, float] = {}
        for each in meanings:  # a passage that has vectors of two models counts by the newer one's
            nearest = vectors.nearest(each.vector, each.model, scope, NUM_CANDIDATES)
            cosines |= {id_: each.known_share**2 * cosine for id_, cosine in nearest}
    by_meaning = sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))
    return fused(by_words, by_meaning)[:limit]


def fused(by_words: Sequence[Ranked], by_meaning: Sequence[tuple[int, float]]) -> list[Candidate]:
    """A passage that only one way has found has no more of the other than the last one found there."""
    words, cosines = {one.chunk_id: one for one in by_words}, dict(by_meaning)
    word_ranks = {id_: rank for rank, id_ in enumerate(words, 1)}
    vector_ranks = {id_: rank for rank, id_ in enumerate(cosines, 1)}
    best = max((one.score for one in by_words), default=0.0) or 1.0
    least = min(cosines.values(), default=0.0)
    found = []
    for id_ in words.keys() | cosines.keys():
        by_word = words.get(id_, Ranked(id_, 0.0, 0.0))
        found.append(
            Candidate(
                chunk_id=id_,
                score=by_word.score / best + MEANING_WEIGHT * cosines.get(id_, least),
                lexical_rank=word_ranks.get(id_),
                lexical_score=by_word.score,
                coverage=by_word.coverage,
                vector_rank=vector_ranks.get(id_),
                cosine=cosines.get(id_),
            )
        )
    return sorted(found, key=lambda one: (-one.score, one.chunk_id))


def passages(ids: Sequence[int]) -> list[Chunk]:
    """In this order; those that are gone, or may not be seen any more, are left out."""
    rows = Chunk.objects.select_related("document").in_bulk(ids)
    return [rows[id_] for id_ in ids if id_ in rows]

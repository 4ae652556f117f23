"""Passages by their words, ranked as BM25 does: rare words count for more, and long passages for less.

Postgres' own ranks know nothing of how rare a word is. So the index of terms finds candidates, by the
rarest words of the question, and BM25 is computed over these. How rare a word is comes from the
collections that are searched, and from nothing that the reader may not see. Source: Robertson and
Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from django.db import connection

from retrieval.scopes import SearchScope
from retrieval.terms import any_of, words_of

K1 = 1.2  # how soon repetitions stop to count
B = 0.75  # how much the length counts
MAX_WORDS = 64  # of a question
MAX_FOUND = 4000  # passages that are ranked

_SIZES = """
    SELECT coalesce(sum(num_chunks), 0), coalesce(sum(num_terms), 0) FROM retrieval_collection c
    WHERE %(counted)s::uuid[] IS NULL OR c.id = ANY(%(counted)s)
"""
_RARITY = """
    SELECT term, sum(num_chunks) FROM retrieval_term
    WHERE term = ANY(%(words)s)
        AND (%(counted)s::uuid[] IS NULL OR collection_id = ANY(%(counted)s))
    GROUP BY term HAVING sum(num_chunks) > 0
"""
_LOOK_FOR = "SELECT set_config('vitrine.passages', %(query)s, true)"
_RANKED = """
    WITH words AS (
        SELECT * FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS given (word, weight)
    ), found AS MATERIALIZED (
        SELECT c.id, c.terms, c.num_terms FROM retrieval_chunk c
        JOIN retrieval_document d ON d.id = c.document_id AND d.live_version = c.version_id
        WHERE true {conditions}
        LIMIT %(most)s
    )
    SELECT found.id, sum(
        words.weight * tf * ({k1} + 1) / (tf + {k1} * (1 - {b} + {b} * found.num_terms / %(length)s))
    ) AS score, sum(words.weight)
    FROM found, unnest(found.terms) AS term (word, positions, weights),
        words, LATERAL (SELECT cardinality(term.positions)) AS count (tf)
    WHERE words.word = term.word
    GROUP BY found.id
    ORDER BY score DESC, found.id
    LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Ranked:
    """`score` has no bounds; those of one question compare with each other only. `coverage` is the part
    of the question's weight that is in the passage: of words that nobody knows, it has none."""

    chunk_id: int
    score: float
    coverage: float


def ranked(question: str, scope: SearchScope, limit: int) -> list[Ranked]:
    """The best passages, the best first. Inside a transaction."""
    words = list(dict.fromkeys(words_of(question)))[:MAX_WORDS]
    given: dict[str, Any] = {**scope.parameters(), "words": words}
    with connection.cursor() as cursor:
        cursor.execute(_SIZES, given)
        num_chunks, num_terms = map(int, cursor.fetchone())
        cursor.execute(_RARITY, given)
        nums = {word: int(num) for word, num in cursor.fetchall()}
        if not nums or not num_terms:
            return []
        cursor.execute(_LOOK_FOR, {"query": any_of(_rarest(nums))})
        try:
            statement = _RANKED.format(conditions=scope.conditions("c"), k1=K1, b=B)
            given |= {
                "words": list(nums),
                "weights": [_weight(num, num_chunks) for num in nums.values()],
                "length": num_terms / num_chunks,
                "most": MAX_FOUND,
                "limit": limit,
            }
            cursor.execute(statement, given)
            most = sum(_weight(nums.get(word, 0), num_chunks) for word in words)
            return [Ranked(id_, float(score), float(has) / most) for id_, score, has in cursor]
        finally:
            cursor.execute(_LOOK_FOR, {"query": ""})


def _weight(num: int, num_chunks: int) -> float:
    """Never below zero, however common. Source: Lucene's BM25Similarity."""
    return log(1 + (num_chunks - num + 0.5) / (num + 0.5))


def _rarest(nums: dict[str, int]) -> Sequence[str]:
    """Words of which no more passages are known than are ranked; one word at least. What the common ones
    add is counted for those that the rare ones find."""
    chosen: list[str] = []
    total = 0
    for word, num in sorted(nums.items(), key=lambda pair: pair[1]):
        total += num
        if chosen and total > MAX_FOUND:
            break
        chosen.append(word)
    return chosen

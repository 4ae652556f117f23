"""The words of a passage, as Postgres keeps and finds them.

A run of a script without spaces becomes its pairs of characters; any other run is a word. Accents and
case are dropped. Beside the words each passage has terms that say whose it is: those of its collection
and of the system, which row-level security looks for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from retrieval.characters import fold, runs

MAX_WORD_CHARS = 64  # of a longer one the rest is dropped, here as in queries
_MAX_POSITION = 16_383
_MAX_POSITIONS = 255  # of one word; Postgres keeps no more


@dataclass(frozen=True, slots=True)
class Terms:
    """How often each word is in a passage. `num_terms` counts repetitions."""

    counts: Counter[str]
    num_terms: int

    def to_tsvector(self, collection_id: UUID) -> str:
        """As Postgres reads it: the number of positions of a word is how often it is there."""
        words = [f"'{word}':{_positions(count)}" for word, count in self.counts.items()]
        return " ".join([f"':c:{collection_id}'", "':system'", *words])


def terms_of(text: str) -> Terms:
    words = words_of(text)
    return Terms(Counter(words), len(words))


def words_of(text: str) -> list[str]:
    """No word holds a quote, a backslash or a colon: all of them separate words."""
    # What Postgres can keep in no text is in no word.
    text = text.replace("\0", " ").encode("utf-8", "ignore").decode()
    words = []
    for run, is_spaceless in runs(fold(text)):
        if not is_spaceless:
            words.append(run[:MAX_WORD_CHARS])
        elif len(run) == 1:
            words.append(run)
        else:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
    return words


def any_of(words: Sequence[str]) -> str:
    """A query for passages that hold one of these words, as Postgres reads it."""
    return " | ".join(f"'{word}'" for word in words)


def _positions(count: int) -> str:
    return ",".join(map(str, range(1, min(count, _MAX_POSITIONS) + 1)))

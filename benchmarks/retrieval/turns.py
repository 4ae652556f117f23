"""Questions that mean what was spoken of before: XQuAD's, as the second of two about one passage.

A name that both questions hold is left out of the second ("it"), so that only the first one tells what
it is about. Beside these, questions on another subject than the one before, which must not be led
astray. Compared are ways of looking for the second one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from benchmarks.retrieval.quality import DATA, add_passage
from benchmarks.table import Row
from inference import BUILTIN_EMBEDDING, EngineConfig
from retrieval import vectors
from retrieval.evaluation import Embedder
from retrieval.models import Collection
from retrieval.question_sets import load
from retrieval.scopes import SearchScope
from retrieval.searching import NUM_CANDIDATES, Candidate, Meaning, search
from retrieval.selecting import fits
from webapp.models import User
from webapp.tenancy import as_system, as_user

_NAME = re.compile(r"(?<=[\w,] )(?:the )?[A-Z][\w'’-]+(?: (?:of |the |and )?[A-Z][\w'’-]+)*")


@dataclass(frozen=True, slots=True)
class Turn:
    """`whole` is the question before its names were left out."""

    before: str
    question: str
    whole: str
    document: int


def measure() -> list[Row]:
    given = load(DATA / "xquad.en.json")
    follow_ups, others = turns_of([(q.text, q.document) for q in given.questions])
    texts = [document.text for document in given.documents]
    user = User.objects.create_user("turns@example.org")
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        embed = Embedder(EngineConfig(models_dir=Path(folder)), BUILTIN_EMBEDDING)
        asked = sorted({text for turn in follow_ups + others for text in _queries(turn)})
        of_query = dict(zip(asked, embed(asked, "query"), strict=True))
        passages = embed(texts, "document")
    with as_user(user.pk):
        collection = Collection.objects.create(owner=user, name="turns")
    with as_system():
        model = vectors.embedding_model(BUILTIN_EMBEDDING, len(passages[0]))
        chunks = [
            add_passage(collection, *pair, model) for pair in zip(texts, passages, strict=True)
        ]

    def find(text: str) -> list[Candidate]:
        return search(
            text,
            [Meaning(model, of_query[text], embed.known_shares[text])],
            SearchScope(),
            2 * NUM_CANDIDATES,
        )

    with as_user(user.pk):
        return [
            {
                "questions": name,
                "num": len(turns),
                "by": way,
                **_rates(turns, chunks, ways(find)[way]),
            }
            for name, turns in (("follow-ups", follow_ups), ("on another subject", others))
            for way in ways(find)
        ]


def turns_of(questions: Sequence[tuple[str, int]]) -> tuple[list[Turn], list[Turn]]:
    """Follow-ups, and as many questions behind one of another article."""
    follow_ups, others = [], []
    for number, ((before, document), (text, same)) in enumerate(pairwise(questions)):
        shared = [name for name in _NAME.findall(text) if name in before]
        if document != same or not shared:
            continue
        question = text
        for name in sorted(shared, key=len, reverse=True):
            question = question.replace(name, "it", 1)
        follow_ups.append(Turn(before, question, text, document))
        far, place = questions[(number + len(questions) // 2) % len(questions)]
        others.append(Turn(before, far, far, place))
    return follow_ups, others


def _joined(turn: Turn) -> str:
    return f"{turn.before} {turn.question}"


def _queries(turn: Turn) -> list[str]:
    return [turn.question, turn.whole, _joined(turn)]


Find = Callable[[str], list[Candidate]]


def ways(find: Find) -> dict[str, Callable[[Turn], list[int]]]:
    def alone(turn: Turn) -> list[int]:
        return [one.chunk_id for one in find(turn.question)]

    def joined_where_nothing_fits(turn: Turn) -> list[int]:
        found = find(turn.question)
        if not any(fits(one) for one in found):
            found = find(_joined(turn))
        return [one.chunk_id for one in found]

    def joined(turn: Turn) -> list[int]:
        return [one.chunk_id for one in find(_joined(turn))]

    def both(weight: float) -> Callable[[Turn], list[int]]:
        def added(turn: Turn) -> list[int]:
            scores: dict[int, float] = {}
            for text, part in ((turn.question, 1.0), (_joined(turn), weight)):
                found = find(text)
                least = min((one.score for one in found), default=0.0)
                for one in found:
                    scores[one.chunk_id] = scores.get(one.chunk_id, 0.0) + part * (
                        one.score - least
                    )
            return sorted(scores, key=lambda id_: -scores[id_])

        return added

    def whole(turn: Turn) -> list[int]:
        return [one.chunk_id for one in find(turn.whole)]

    return {
        "the question alone": alone,
        "joined where nothing fits": joined_where_nothing_fits,
        "joined": joined,
        "both, joined x 0.25": both(0.25),
        "both, joined x 0.5": both(0.5),
        "both, joined x 1": both(1.0),
        "as it was meant": whole,
    }


def _rates(turns: Sequence[Turn], chunks: Sequence[int], find: Callable[[Turn], list[int]]) -> Row:
    ranks = []
    for turn in turns:
        found = find(turn)
        wanted = chunks[turn.document]
        ranks.append(found.index(wanted) + 1 if wanted in found else None)
    return {
        "recall@1 %": 100 * fmean(rank == 1 for rank in ranks),
        "recall@5 %": 100 * fmean(rank is not None and rank <= 5 for rank in ranks),
    }

"""How well passages are found: a set of questions, asked in one way or several.

Its documents are cut, indexed and searched as everybody's are, in a collection that exists within one
transaction only, which is rolled back: nobody ever sees it, whatever happens meanwhile. In the system's
scope.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log2
from statistics import fmean
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db import transaction

from inference import Engine, EngineConfig
from retrieval import lexical, vectors
from retrieval.chunking import Chunk as Piece
from retrieval.chunking import ChunkSettings, chunks
from retrieval.ids import uuid7
from retrieval.indexing import Passage, make_live
from retrieval.models import Chunk, Collection, Document, EmbeddingModel, Version
from retrieval.question_sets import Question, QuestionSet
from retrieval.scopes import SearchScope
from retrieval.searching import NUM_CANDIDATES, Meaning, search
from retrieval.staging import to_embed

KS = (1, 3, 5, 10)
WAYS = ("hybrid", "rrf", "words", "meaning")
_RRF_K = 60
_AT_ONCE = 256  # texts for the engine

Role = Literal["document", "query"]
Embed = Callable[[Sequence[str], Role], Sequence[Sequence[float]]]
Find = Callable[[str, Sequence[float]], list[int]]
"""From a question and its vector to ids of passages, the best first."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A way of finding, among chunks of this size."""

    way: str
    max_tokens: int
    overlap_tokens: int

    def __str__(self) -> str:
        return f"{self.way}:{self.max_tokens}/{self.overlap_tokens}"

    @property
    def chunking(self) -> ChunkSettings:
        return ChunkSettings(max_tokens=self.max_tokens, overlap_tokens=self.overlap_tokens)


def parse_configuration(text: str, max_tokens: int, overlap_tokens: int) -> Configuration:
    """WAY, WAY:TOKENS or WAY:TOKENS/OVERLAP; what is left out is as given. Raises ValueError."""
    way, _, size = text.partition(":")
    given, _, overlap = size.partition("/")
    if way not in WAYS:
        raise ValueError(f"{way!r} is none of {', '.join(WAYS)}.")
    try:
        tokens = int(given) if given else max_tokens
        shared = int(overlap) if overlap else min(overlap_tokens, tokens // 2)
    except ValueError:
        raise ValueError(f"{text!r} is not WAY:TOKENS/OVERLAP, as in hybrid:256/64.") from None
    if not 32 <= tokens <= 8192 or not 0 <= shared <= tokens // 2:
        raise ValueError(f"{text!r}: 32 to 8192 tokens, and half of them as overlap at most.")
    return Configuration(way, tokens, shared)


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over all questions, for the first k passages of each; shares are from 0 to 1.

    `recall` is how often the answer is among them, `precision` how many of them hold it, and
    `characters` how long they are together: larger passages recall more and say it in more words.
    """

    num_questions: int
    num_chunks: int
    recall: dict[int, float]
    precision: dict[int, float]
    characters: dict[int, float]
    mrr: float
    ndcg_at_10: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Result:
    """`first_ranks[i]` is the rank of the first passage that answers question i; None: not found."""

    configuration: Configuration
    scores: Scores
    first_ranks: list[int | None]


def evaluate(
    given: QuestionSet,
    configurations: Sequence[Configuration],
    embed: Embed,
    count_tokens: Callable[[str], int],
    known_shares: Mapping[str, float] | None = None,
) -> list[Result]:
    """A result for each configuration. Nothing of it stays. `known_shares` as of `finders`, once `embed`
    was asked."""
    cut = {
        one.chunking: [chunks(text, count_tokens, one.chunking) for text in given.documents]
        for one in configurations
    }
    texts = [text for documents in cut.values() for pieces in documents for text in _texts(pieces)]
    found = Vectors(
        of_passages=_embedded(texts, "document", embed),
        of_questions=_embedded([one.text for one in given.questions], "query", embed),
    )
    results = {}
    with transaction.atomic():
        owner = _nobody()
        for chunking, documents in cut.items():
            ground = _Ground(given, documents, found, owner, known_shares)
            for one in configurations:
                if one.chunking == chunking:
                    results[one] = ground.result(one)
        transaction.set_rollback(True)
    return [results[one] for one in configurations]


def _texts(pieces: Sequence[Piece]) -> list[str]:
    return to_embed([_passage(piece) for piece in pieces])


def _passage(piece: Piece, vector: Any = None) -> Passage:
    return Passage(
        text=piece.text,
        start=piece.start,
        end=piece.end,
        context=piece.context,
        num_tokens=piece.num_tokens,
        vector=None if vector is None else list(vector),
    )


@dataclass(frozen=True, slots=True)
class Vectors:
    of_passages: dict[str, Sequence[float]]
    of_questions: dict[str, Sequence[float]]


def _embedded(texts: Sequence[str], role: Role, embed: Embed) -> dict[str, Sequence[float]]:
    each = list(dict.fromkeys(texts))
    return dict(zip(each, embed(each, role), strict=True)) if each else {}


def _nobody() -> Any:
    user = get_user_model()
    row = user(**{user.USERNAME_FIELD: f"evaluation-{uuid7().hex}@invalid", "is_active": False})
    row.save()
    return row


class _Ground:
    """The documents of a set, cut in one way, in a collection of their own."""

    def __init__(
        self,
        given: QuestionSet,
        documents: Sequence[Sequence[Piece]],
        found: Vectors,
        owner: Any,
        known_shares: Mapping[str, float] | None,
    ) -> None:
        self.known_shares = known_shares
        self.given = given
        self.documents = documents
        self.vectors = found
        self.num_chunks = sum(map(len, documents))
        dimensions = len(next(iter(found.of_questions.values())))
        # A model of its own: the index of the real one is neither used nor filled, or waited for.
        self.model = EmbeddingModel.objects.create(
            name=f"evaluation {uuid7()}", dimensions=dimensions
        )
        self.collection = Collection.objects.create(owner=owner, name="evaluation")
        for number, pieces in enumerate(documents):
            self._add(str(number), pieces)
        chunks = Chunk.objects.filter(collection=self.collection.pk)
        rows = chunks.values_list("pk", "document__name", "number", "start", "end")
        self.places = {pk: (int(name), start, end) for pk, name, _, start, end in rows}

    def _add(self, name: str, pieces: Sequence[Piece]) -> None:
        document = Document.objects.create(collection=self.collection, name=name)
        version = Version.objects.create(document=document, collection=self.collection)
        found = [self.vectors.of_passages[text] for text in _texts(pieces)]
        passages = [_passage(*pair) for pair in zip(pieces, found, strict=True)]
        make_live(version, passages, self.model)

    def result(self, configuration: Configuration) -> Result:
        scope = SearchScope(collections=[self.collection.pk])
        find = finders(self.model, scope, self.known_shares)[configuration.way]
        rows = [self._row(question, find) for question in self.given.questions]
        scores = Scores(
            num_questions=len(rows),
            num_chunks=self.num_chunks,
            recall={k: fmean(any(row.hits[:k]) for row in rows) for k in KS},
            precision={k: fmean(sum(row.hits[:k]) / k for row in rows) for k in KS},
            characters={k: fmean(sum(row.lengths[:k]) for row in rows) for k in KS},
            mrr=fmean(1 / row.first if row.first else 0.0 for row in rows),
            ndcg_at_10=fmean(ndcg(row.hits[:10], row.num_right) for row in rows),
        )
        return Result(configuration, scores, [row.first for row in rows])

    def _row(self, question: Question, find: Find) -> "_Row":
        vector = self.vectors.of_questions[question.text]
        found = [self.places[id_] for id_ in find(question.text, vector)]
        right = [
            piece
            for piece in self.documents[question.document]
            if _answers(question, piece.start, piece.end)
        ]
        hits = [
            document == question.document and _answers(question, start, end)
            for document, start, end in found
        ]
        lengths = [end - start for _, start, end in found]
        return _Row(hits, lengths, len(right))


@dataclass(frozen=True, slots=True)
class _Row:
    """Of one question: for each passage that was found whether it answers, and how long it is."""

    hits: list[bool]
    lengths: list[int]
    num_right: int

    @property
    def first(self) -> int | None:
        return self.hits.index(True) + 1 if True in self.hits else None


def _answers(question: Question, start: int, end: int) -> bool:
    """Whether these characters hold half of an answer, or are half of them within one."""
    for first, last in question.spans:
        shared = min(end, last) - max(start, first)
        if shared > 0 and 2 * shared >= min(last - first, end - start):
            return True
    return False


def ndcg(hits: Sequence[bool], num_right: int) -> float:
    """Source: Järvelin and Kekäläinen (2002), with gains of 0 and 1."""
    best = sum(1 / log2(rank + 1) for rank in range(1, min(num_right, len(hits)) + 1))
    gained = sum(1 / log2(rank + 1) for rank, is_hit in enumerate(hits, 1) if is_hit)
    return gained / best if best else 0.0


def finders(
    model: EmbeddingModel, scope: SearchScope, known_shares: Mapping[str, float] | None = None
) -> dict[str, Find]:
    """By each of WAYS. `hybrid` is what the chat uses, `rrf` fuses by ranks alone. `known_shares` are of
    questions, where not all of each."""
    known = {} if known_shares is None else known_shares

    def by_words(question: str, _: Any) -> list[int]:
        with transaction.atomic():
            return [one.chunk_id for one in lexical.ranked(question, scope, NUM_CANDIDATES)]

    def by_meaning(_: str, vector: Any) -> list[int]:
        with transaction.atomic():
            return [id_ for id_, _ in vectors.nearest(vector, model, scope, NUM_CANDIDATES)]

    def by_ranks(question: str, vector: Any) -> list[int]:
        return fused_by_ranks(by_words(question, vector), by_meaning(question, vector))

    def by_both(question: str, vector: Any) -> list[int]:
        meaning = Meaning(model, vector, known.get(question, 1.0))
        found = search(question, [meaning], scope, NUM_CANDIDATES)
        return [one.chunk_id for one in found]

    return {"words": by_words, "meaning": by_meaning, "rrf": by_ranks, "hybrid": by_both}


def fused_by_ranks(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion. Source: Cormack, Clarke and Büttcher (2009)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda id_: (-scores[id_], id_))


class Embedder:
    """By an engine of this process, for whoever has none; it ends with what was asked. What is longer
    than the model reads is cut. `known_shares` are of all texts so far."""

    def __init__(self, config: EngineConfig, model: str) -> None:
        self.config = config
        self.model = model
        self.known_shares: dict[str, float] = {}

    def __call__(self, texts: Sequence[str], role: Role) -> list[Sequence[float]]:
        return asyncio.run(self._embed(texts, role))

    async def _embed(self, texts: Sequence[str], role: Role) -> list[Sequence[float]]:
        engine = Engine(self.config)
        try:
            prompts = (await engine.encoder_layout(self.model)).prompts
            found: list[Sequence[float]] = []
            for at in range(0, len(texts), _AT_ONCE):
                part = texts[at : at + _AT_ONCE]
                name = role if role in prompts else None
                done = await engine.embed(self.model, part, prompt_name=name, truncate=True)
                found += [list(vector) for vector in done.vectors]
                self.known_shares |= zip(part, done.known_shares, strict=True)
            return found
        finally:
            await engine.close()

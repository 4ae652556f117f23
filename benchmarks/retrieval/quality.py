"""XQuAD's questions, each of which one passage answers: how often it is found first, or among five.

The same passages are ranked by rank_bm25, where it is installed, over the same words; by our words; by
vectors of the built-in model; and by both together, with scores added and, for comparison, by ranks.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from benchmarks.table import Row
from inference import BUILTIN_EMBEDDING, EngineConfig
from retrieval import vectors
from retrieval.evaluation import Embedder, Find, finders
from retrieval.indexing import Passage, make_live
from retrieval.models import Chunk, Collection, Document, EmbeddingModel, Version
from retrieval.question_sets import QuestionSet, load
from retrieval.scopes import SearchScope
from retrieval.searching import NUM_CANDIDATES
from retrieval.terms import words_of
from webapp.models import User
from webapp.tenancy import as_system, as_user

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "xquad"
_NAMES = {"words": "words", "meaning": "vectors", "rrf": "both, by ranks", "hybrid": "both"}


def measure(languages: Sequence[str]) -> list[Row]:
    """Rows of recall@1, recall@5 and the mean reciprocal rank."""
    return [row for language in languages for row in _measure(language)]


def _measure(language: str) -> list[Row]:
    given = load(DATA / f"xquad.{language}.json")
    texts = [document.text for document in given.documents]
    questions = [question.text for question in given.questions]
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        embed = Embedder(EngineConfig(models_dir=Path(folder)), BUILTIN_EMBEDDING)
        passage_vectors = embed(texts, "document")
        question_vectors = embed(questions, "query")
    user = User.objects.create_user(f"{language}@example.org")
    with as_user(user.pk):
        collection = Collection.objects.create(owner=user, name=language)
    with as_system():
        model = vectors.embedding_model(BUILTIN_EMBEDDING, len(passage_vectors[0]))
        chunks = [
            add_passage(collection, text, vector, model)
            for text, vector in zip(texts, passage_vectors, strict=True)
        ]
    ways = finders(model, SearchScope(), embed.known_shares)
    named = {name: ways[way] for way, name in _NAMES.items()}
    with as_user(user.pk):
        return [
            {"language": language, "by": name, **_rates(find, given, chunks, question_vectors)}
            for name, find in {**_peer(texts, chunks), **named}.items()
        ]


def add_passage(
    collection: Collection, text: str, vector: Sequence[float], model: EmbeddingModel
) -> int:
    """The id of its one passage."""
    document = Document.objects.create(collection=collection, name=text[:60])
    version = Version.objects.create(document=document, collection=collection)
    make_live(version, [Passage(text, 0, len(text), vector=list(vector))], model)
    return Chunk.objects.get(version=version).pk


def _peer(texts: list[str], chunks: list[int]) -> dict[str, Find]:
    """Where it is installed: `pip install rank-bm25`."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        return {}
    peer = BM25Okapi([words_of(text) for text in texts])

    def by_peer(question: str, _: Sequence[float]) -> list[int]:
        scores = peer.get_scores(words_of(question))
        order = sorted(range(len(chunks)), key=lambda at: -scores[at])
        return [chunks[at] for at in order[:NUM_CANDIDATES]]

    return {"BM25 (rank_bm25)": by_peer}


def _rates(
    find: Find, given: QuestionSet, chunks: list[int], question_vectors: Sequence[Sequence[float]]
) -> Row:
    ranks = []
    for question, vector in zip(given.questions, question_vectors, strict=True):
        found = find(question.text, vector)
        wanted = chunks[question.document]
        ranks.append(found.index(wanted) + 1 if wanted in found else None)
    return {
        "recall@1 %": 100 * fmean(rank == 1 for rank in ranks),
        "recall@5 %": 100 * fmean(rank is not None and rank <= 5 for rank in ranks),
        "MRR %": 100 * fmean(1 / rank if rank else 0.0 for rank in ranks),
    }

"""Vectors of passages and of questions, by the engine of this process."""

import logging
from collections.abc import Sequence

from django.conf import settings

from chat.db import in_db
from chat.engine import engine
from inference import Caller, EngineError
from retrieval.embedding import Embedded, embed_waiting
from retrieval.reembedding import ConfiguredModel, Reembedding
from retrieval.searching import Meaning
from retrieval.vectors import models_in_use

logger = logging.getLogger(__name__)

_INDEX = Caller("documents", 1.0, "background")
_reembedding = Reembedding()
_revisions: dict[str, str] = {}  # by model: as its files were read, until a worker tells its own
_said: set[str] = set()  # what the log knows: a model that is gone is gone for every question


async def embed_documents(me: str, max_chunks: int | None = None) -> None:
    """Give vectors to all passages that wait for theirs, or those of small documents; `me` is this
    process. In the system's scope."""
    try:
        await embed_waiting(_passages, me, max_chunks)
    except EngineError as error:
        logger.warning("documents wait for their vectors: %s", error)


async def reembed_documents(me: str) -> None:
    """Give vectors to all passages that have none by the configured model. In the system's scope."""
    try:
        await _reembedding.run(_passages, await _configured(settings.EMBEDDING_MODEL), me)
    except EngineError as error:
        _warn_once(f"passages wait for vectors by {settings.EMBEDDING_MODEL}", error)


async def _configured(name: str) -> ConfiguredModel:
    """It is not loaded for that: nobody may ever have brought a document."""
    engine().require(name, "embedding")
    layout = await engine().encoder_layout(name)
    if name not in _revisions or engine().revision(name):
        _revisions[name] = await engine().encoder_revision(name)
    return ConfiguredModel(name, layout.dimensions, _revisions[name])


async def meanings_of(question: str, caller: Caller) -> list[Meaning]:
    """A question's vector by each model that passages have vectors of: two, while one takes over from
    another. A model that is no longer there is left out: words find as ever."""
    found: list[Meaning] = []
    embedded: dict[str, Embedded | None] = {}  # by name: two revisions are not asked twice
    for model in await in_db(models_in_use)():
        if model.name not in embedded:
            embedded[model.name] = await _question(model.name, question, caller)
        one = embedded[model.name]
        if one is not None and one.revision == model.revision:
            found.append(Meaning(model, one.vectors[0], one.known_shares[0]))
        elif one is not None:
            _warn_once(f"questions have no vectors by {model.name} {model.revision}", "it is gone")
    return found


async def _question(model: str, text: str, caller: Caller) -> Embedded | None:
    try:
        return await embed(model, [text], "query", caller)
    except EngineError as error:
        _warn_once(f"questions have no vectors by {model}", error)
        return None


def _warn_once(what: str, why: object) -> None:
    if what not in _said:
        _said.add(what)
        logger.warning("%s: %s", what, why)


async def _passages(texts: Sequence[str]) -> Embedded:
    return await embed(settings.EMBEDDING_MODEL, texts, "document", _INDEX)


async def embed(model: str, texts: Sequence[str], role: str, caller: Caller) -> Embedded:
    """Vectors of texts, which lose what the model does not read. Raises EngineError.

    `role` is "query" or "document": what stands in front of the text, of models that make a difference.
    """
    layout = await engine().encoder_layout(model)
    found = await engine().embed(
        model,
        texts,
        prompt_name=role if role in layout.prompts else None,
        truncate=True,
        caller=caller,
    )
    revision = engine().revision(model)
    return Embedded(found.vectors, model, revision, found.known_shares)


async def relevance_of(question: str, texts: Sequence[str], caller: Caller) -> list[float] | None:
    """How well each text answers the question, from 0 to 1, by the reranker; None where it is away."""
    try:
        found = await engine().rerank(
            settings.RERANK_MODEL, question, texts, truncate=True, caller=caller
        )
    except EngineError as error:
        logger.warning("passages are not ranked anew: %s", error)
        return None
    return [one.score for one in found.documents]

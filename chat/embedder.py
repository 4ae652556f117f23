"""Vectors of passages and of questions, by the engine of this process."""

import logging
from collections.abc import Sequence

from django.conf import settings

from chat.db import in_db
from chat.engine import engine
from inference import Caller, EngineError
from retrieval.embedding import Embedded, embed_waiting
from retrieval.searching import Meaning
from retrieval.vectors import models_in_use

logger = logging.getLogger(__name__)

_INDEX = Caller("documents", 1.0, "background")


async def embed_documents(me: str, max_chunks: int | None = None) -> None:
    """Give vectors to all passages that wait for theirs, or those of small documents; `me` is this
    process. In the system's scope."""
    try:
        await embed_waiting(_passages, me, max_chunks)
    except EngineError as error:
        logger.warning("documents wait for their vectors: %s", error)


async def meanings_of(question: str, caller: Caller) -> list[Meaning]:
    """A question's vector by each model that passages have vectors of: two, while one takes over from
    another. A model that is no longer there is left out: words find as ever."""
    found = []
    for model in await in_db(models_in_use)():
        try:
            embedded = await _embedded(model.name, [question], "query", caller)
        except EngineError as error:
            logger.warning("a question has no vector by %s: %s", model.name, error)
            continue
        if embedded.revision == model.revision:
            found.append(Meaning(model, embedded.vectors[0]))
    return found


async def _passages(texts: Sequence[str]) -> Embedded:
    return await _embedded(settings.EMBEDDING_MODEL, texts, "document", _INDEX)


async def _embedded(model: str, texts: Sequence[str], role: str, caller: Caller) -> Embedded:
    """`role`: what stands in front of the text, of models that make a difference."""
    layout = await engine().encoder_layout(model)
    found = await engine().embed(
        model,
        texts,
        prompt_name=role if role in layout.prompts else None,
        truncate=True,
        caller=caller,
    )
    return Embedded(found.vectors, model, engine().state(model).revision)


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

"""Vectors for messages that wait for theirs; then a search finds them by what they mean.

In a web process, whose engine has the embedding model: in its class `background`, after all documents,
and only where no other model has to leave memory for it. A process that dies leaves its messages to the
next one when their lease runs out.
"""

import asyncio
import logging
from functools import cache

from django.conf import settings

from chat import message_vectors
from chat.db import in_db
from chat.embedder import embed
from chat.engine import engine
from chat.message_pieces import pieces_of
from chat.message_vectors import Waiting
from chat.waiting import Waits, waiting
from inference import Caller, EngineError, TokenCounter
from retrieval.models import EmbeddingModel, Version, VersionState

logger = logging.getLogger(__name__)

MESSAGES_AT_ONCE = 16
PIECES_AT_ONCE = 64  # between two calls the leases are renewed
ROWS_AT_ONCE = 2_000  # of what is dropped
_CALLER = Caller("messages", 1.0, "background")


async def embed_messages() -> None:
    """Until none waits, or documents do. In the system's scope."""
    if not settings.CHAT_MEANING:
        await _drop(await in_db(_all_models)())
        return
    try:
        await _drop(await in_db(message_vectors.others_than)(*_current()))
        while await in_db(_is_our_turn)() and await engine().has_room(settings.EMBEDDING_MODEL):
            batch = await in_db(message_vectors.claim)(MESSAGES_AT_ONCE)
            if not batch:
                return
            await _embed(batch)
    except EngineError as error:
        logger.warning("messages wait for their vectors: %s", error)


def _current() -> tuple[str, str]:
    """The model that gives vectors, and its revision, "" until it is loaded."""
    model = settings.EMBEDDING_MODEL
    return model, engine().revision(model)


def _all_models() -> list[EmbeddingModel]:
    return list(EmbeddingModel.objects.all())


async def _drop(models: list[EmbeddingModel]) -> None:
    while await in_db(message_vectors.queue_anew)(models, ROWS_AT_ONCE):
        pass


def _is_our_turn() -> bool:
    """Documents come first: somebody has asked for those."""
    is_document_waiting = Version.objects.filter(state=VersionState.EMBEDDING).exists()
    return Waits.MESSAGES in waiting() and not is_document_waiting


async def _embed(batch: list[Waiting]) -> None:
    try:
        model = await _add_vectors(batch)
    except EngineError:
        # Of a model that is there the messages may be the fault; of one that is not, nobody's.
        is_ready = engine().state(settings.EMBEDDING_MODEL).state == "ready"
        await in_db(message_vectors.hand_back)(batch, is_suspect=is_ready)
        raise
    except BaseException:
        await in_db(message_vectors.hand_back)(batch, is_suspect=False)  # this process ends
        raise
    await in_db(message_vectors.keep)(batch, model)


async def _add_vectors(batch: list[Waiting]) -> EmbeddingModel | None:
    """By which model; None where all messages say too little."""
    name = settings.EMBEDDING_MODEL
    layout = await engine().encoder_layout(name)
    counter = await asyncio.to_thread(_counter, name)
    for one in batch:
        one.pieces = await asyncio.to_thread(pieces_of, one.text, counter, layout.window_tokens)
        one.vectors = []
    texts = [(one, piece.text) for one in batch for piece in one.pieces]
    revision = None
    for at in range(0, len(texts), PIECES_AT_ONCE):
        part = texts[at : at + PIECES_AT_ONCE]
        embedded = await embed(name, [text for _, text in part], "document", _CALLER)
        revision = embedded.revision
        for (one, _), vector in zip(part, embedded.vectors, strict=True):
            one.vectors.append(vector)
        await in_db(message_vectors.renew)(batch)
    if revision is None:
        return None
    return await in_db(message_vectors.model_of)(name, layout.dimensions, revision)


@cache
def _counter(model: str) -> TokenCounter:
    return TokenCounter.load(settings.ENGINE, model)

"""The one place where the engine of this process is made."""

from django.conf import settings

from inference import Engine, EngineError, ModelKind, UnknownModel, WorkerState

FIRST_WORD_S = 0.08
"""About what a first word takes on two cores."""

_engine: Engine | None = None


def engine() -> Engine:
    """The engine. Made at its first use, which has to be on the event loop that will serve."""
    global _engine
    if _engine is None:
        _engine = Engine(settings.ENGINE)
    return _engine


def make_way() -> None:
    """Somebody asks: until the first word is there, chores leave the processors to the answer."""
    if _engine is not None:
        _engine.give_way(FIRST_WORD_S)


def known_context_tokens(model: str) -> int | None:
    """How long a prompt and its answer may be together; None where nobody has told yet."""
    if _engine is None:
        return None
    try:
        return _engine.max_context_tokens(model)
    except UnknownModel:
        return None


def context_tokens_by_files(model: str) -> int | None:
    """The same, and of a model that is not loaded what its files say."""
    known = known_context_tokens(model)
    if known is not None or _engine is None or is_known_elsewhere(model):
        return known
    try:
        return _engine.context_tokens(model)
    except EngineError:
        return None


def is_known_elsewhere(model: str) -> bool:
    """Whether another server runs the model, as far as this process knows it."""
    try:
        return _engine is not None and _engine.is_upstream(model)
    except UnknownModel:
        return False


def workers_now() -> list[WorkerState]:
    """Of all models, from any thread; none before anybody has asked for the engine."""
    return [] if _engine is None else _engine.workers()


def problems_now() -> list[str]:
    """A sentence for each model that the environment names and that cannot serve its purpose.

    From any thread; none before anybody has asked for the engine."""
    if _engine is None:
        return []
    named: list[tuple[str, str, ModelKind]] = [
        ("VITRINE_DEFAULT_MODEL", settings.ENGINE.default_model, "chat"),
        ("VITRINE_EMBEDDING_MODEL", settings.EMBEDDING_MODEL, "embedding"),
        ("VITRINE_RERANK_MODEL", settings.RERANK_MODEL, "reranker"),
        ("VITRINE_QUESTION_MODEL", settings.QUESTION_MODEL, "chat"),
    ]
    found = []
    for variable, model, kind in named:
        try:
            if model:
                _engine.require(model, kind)
        except UnknownModel:
            found.append(f"{variable}: there is no model '{model}'.")
        except EngineError as error:
            found.append(f"{variable}: {error}")
    return found


async def close_engine() -> None:
    """End the workers; a later `engine()` makes a new one."""
    global _engine
    if _engine is not None:
        closing, _engine = _engine, None
        await closing.close()

"""A question as it would be put by itself, by a model: "And when?" means what was spoken of before.

Only where the operator has named a model for it: how well a small one does it has not been measured. It
has little time, and is not believed: what is looked for holds words of the chat and no others.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from django.conf import settings

from chat import prompt
from chat.asking import AnswerRequest, Sampling
from chat.engine import engine
from chat.events import Delta, Event, Failed, Finished
from chat.sources import Sources
from inference import ChatMessage, EngineError
from retrieval.terms import words_of

logger = logging.getLogger(__name__)

REQUEST = (
    "Put the last question so that it can be understood without the conversation: say what it means by"
    " words like “it” or “there”. Keep its language. Write the question and nothing else."
)
MAX_TOKENS = 96
MAX_QUESTIONS, MAX_SHOWN_CHARS = 3, 600  # before it; of each, and of the last answer
_MAX_CHARS = 400
_MAX_NEW = 0.34  # of the words: "of", "the", another form of a word
_SAMPLING = Sampling(max_tokens=MAX_TOKENS, temperature=0.0)
_UPSTREAM_SAMPLING = Sampling(max_tokens=4 * MAX_TOKENS)  # may fix its temperature

Answer = Callable[[AnswerRequest], AsyncGenerator[Event, None]]


def is_asked_elsewhere(sources: Sources | None) -> bool:
    """Whether another server is told the question, so that it may be put by itself."""
    return _model_for(sources) != "" and engine().is_upstream(settings.QUESTION_MODEL)


def _model_for(sources: Sources | None) -> str:
    return str(settings.QUESTION_MODEL) if sources is not None and sources.earlier else ""


async def standalone(
    answer: Answer, sources: Sources, asked: AnswerRequest, fit: Callable[[str], str]
) -> str:
    """The question by itself; empty where there is no model for it, nothing was said before, it took too
    long, or what came of it is not the question. `asked` is what the question is asked for; `fit` makes
    texts fit for a model to read."""
    model = _model_for(sources)
    if not model:
        return ""
    sources = replace(
        sources,
        question=fit(sources.question),
        earlier=tuple(map(fit, sources.earlier)),
        last_answer=fit(sources.last_answer),
    )
    try:
        async with asyncio.timeout(settings.QUESTION_S):
            text = await _written(answer, _request(sources, asked, model))
    except (EngineError, TimeoutError) as error:
        logger.warning("questions are looked for as they are: %s", error or f"{model} is too slow")
        return ""
    return text if is_faithful(text, sources) else ""


def _request(sources: Sources, asked: AnswerRequest, model: str) -> AnswerRequest:
    said = [f"Question: {text[:MAX_SHOWN_CHARS]}" for text in sources.earlier[-MAX_QUESTIONS:]]
    if sources.last_answer:
        said.append(f"Answer: {sources.last_answer[:MAX_SHOWN_CHARS]}")
    said.append(f"Last question: {sources.question[:MAX_SHOWN_CHARS]}")
    messages: list[ChatMessage] = [{"role": "user", "content": "\n".join(said)}]
    return AnswerRequest(
        run_id=f"question-{asked.run_id}",
        model=model,
        messages=prompt.with_system(REQUEST, messages),
        user=asked.user,
        weight=asked.weight,
        sampling=_UPSTREAM_SAMPLING if engine().is_upstream(model) else _SAMPLING,
        priority=asked.priority,
        source="question",
        api_key=asked.api_key,
        conversation_id=asked.conversation_id,
        confirmed=asked.confirmed,
    )


async def _written(answer: Answer, request: AnswerRequest) -> str:
    text = ""
    async with aclosing(answer(request)) as events:
        async for event in events:
            if isinstance(event, Delta) and event.part == "text":
                text += event.text
            elif isinstance(event, Failed):
                logger.warning("questions are looked for as they are: %s", event.message)
            elif isinstance(event, Finished) and event.reason == "stop":
                return " ".join(text.split()).removeprefix("Question: ").strip("\"'“”„«» ")
    return ""


def is_faithful(text: str, sources: Sources) -> bool:
    """Whether it is the question with words of the chat in it: no answer, and nothing made up. Pure."""
    if not 0 < len(text) <= _MAX_CHARS:
        return False
    words, question = set(words_of(text)), set(words_of(sources.question))
    said = question.union(*map(words_of, (*sources.earlier, sources.last_answer)))
    kept = len(words & question) / max(1, len(question))
    return kept >= 1 - _MAX_NEW and len(words - said) <= _MAX_NEW * len(words)

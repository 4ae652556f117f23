"""How a guard model is asked about a text: by the engine on this machine, or on another server.

On this machine the probabilities of its words are read. A server tells the words alone, so there a
verdict is all or nothing.
"""

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from math import exp
from typing import Protocol, TypeVar

from inference import (
    Caller,
    ChatMessage,
    ChatRequest,
    ChatTokenizer,
    ContextTooLong,
    Engine,
    EngineError,
    Failed,
    GenerateRequest,
    ModelRefused,
    Said,
    SamplingParams,
    Text,
    TokenLogprob,
    Tokens,
)
from moderation.classifiers.guard_families import family_of
from moderation.classifiers.guard_verdicts import Family, Question, Step
from moderation.classifiers.reading import in_thread

NUM_LIKELY = 20
_PROBE = "Lighthouse"
_MARKS = re.compile(r"</?(?:BEGIN|END) (?:CONVERSATION|UNSAFE CONTENT CATEGORIES|SAFETY POLICY)>")
T = TypeVar("T")


class Guard(Protocol):
    """A guard model that is known to be one."""

    @property
    def family(self) -> Family: ...

    async def ask(
        self, text: str, question: Question, caller: Caller, begun: str = ""
    ) -> list[Step]:
        """What it answers; with `begun`, how it goes on behind that. Raises EngineError, of which
        ContextTooLong tells that the text has to be shorter."""
        ...


async def guard_here(engine: Engine, model: str, named: str) -> Guard:
    """One of this machine's models. Raises ModelError, WrongKind."""
    tokenizer = await engine.tokenizer(model)
    family = _checked(family_of(model, tokenizer.chat_template, named), model)
    for has_parts in (False, True):
        guard = _Here(family, engine, model, tokenizer, has_parts)
        if await in_thread(guard.takes_text):
            return guard
    raise ModelRefused(f"The chat template of '{model}' does not take a text to judge.")


async def guard_elsewhere(engine: Engine, model: str, named: str) -> Guard:
    """One that other servers run. Raises ModelRefused."""
    family = _checked(family_of(model, "", named), model)
    if any(question.arguments for question in family.questions):
        raise ModelRefused(f"'{model}' can only be asked on this machine.")
    return _Elsewhere(family, engine, model)


def _checked(family: Family | None, model: str) -> Family:
    if family is None:
        raise ModelRefused(
            f"'{model}' is no guard model of a family that is known. Say which one it is:"
            f" guard:{model}?family=llamaguard (or shieldgemma, qwen3guard)"
        )
    return family


@dataclass(frozen=True, slots=True)
class _Here:
    """`has_parts`: its template reads messages as lists of parts only."""

    family: Family
    engine: Engine
    model: str
    tokenizer: ChatTokenizer
    has_parts: bool

    def takes_text(self) -> bool:
        """Some templates fail on what they do not know, and others leave it out without a word."""
        try:
            prompts = [self._prompt(_PROBE, question) for question in self.family.questions]
        except EngineError:
            return False
        return all(_PROBE in self.tokenizer.decode(list(prompt)) for prompt in prompts)

    async def ask(
        self, text: str, question: Question, caller: Caller, begun: str = ""
    ) -> list[Step]:
        prompt = await in_thread(self._prompt, text, question)
        prompt += self.tokenizer.encode_marks(begun)
        request = GenerateRequest(
            request_id=_new_id(),
            model=self.model,
            prompt_ids=prompt,
            params=SamplingParams(self.family.max_tokens, temperature=0.0, num_logprobs=NUM_LIKELY),
            user=caller.user,
            weight=caller.weight,
            cache_salt=caller.user,
            priority=caller.priority,
        )
        self._check_room(len(prompt))
        steps: list[Step] = []
        async for update in _heard(self.engine.generate(request)):
            if isinstance(update, Tokens):
                steps += [self._step(one) for one in update.logprobs]
        return steps

    def _prompt(self, text: str, question: Question) -> tuple[int, ...]:
        plain = _plain(text)
        content = [{"type": "text", "text": plain}] if self.has_parts else plain
        message: ChatMessage = {"role": "user", "content": content}
        return self.tokenizer.encode_chat([message], **question.arguments)

    def _check_room(self, num_tokens: int) -> None:
        room, reserved = self.engine.context_tokens(self.model), self.family.max_tokens
        if num_tokens + reserved > room:
            raise ContextTooLong(
                num_prompt_tokens=num_tokens, max_context_tokens=room, num_reserved=reserved
            )

    def _step(self, drawn: TokenLogprob) -> Step:
        likely: dict[str, float] = {}
        for token_id, logprob in {drawn.token_id: drawn.logprob, **dict(drawn.top)}.items():
            text = self._text_of(token_id)
            likely[text] = likely.get(text, 0.0) + exp(logprob)
        return Step(self._text_of(drawn.token_id), likely)

    def _text_of(self, token_id: int) -> str:
        return self.tokenizer.token_bytes(token_id).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    family: Family
    engine: Engine
    model: str

    async def ask(
        self, text: str, question: Question, caller: Caller, begun: str = ""
    ) -> list[Step]:
        request = ChatRequest(
            request_id=_new_id(),
            model=self.model,
            messages=({"role": "user", "content": _plain(text)},),
            options={"max_tokens": self.family.max_tokens, "temperature": 0},
            begun=begun,
        )
        said = ""
        async for update in _heard(self.engine.chat(request)):
            if isinstance(update, Said):
                said += "".join(one.text for one in update.segments if isinstance(one, Text))
        return [Step(word, {word: 1.0}) for word in re.findall(r"\s*\S+", said.rstrip())]


async def _heard(updates: AsyncGenerator[T | Failed, None]) -> AsyncGenerator[T, None]:
    """All but a failure, which is raised."""
    async with aclosing(updates):
        async for update in updates:
            if isinstance(update, Failed):
                raise update.as_error()
            yield update


def _plain(text: str) -> str:
    """Without what is no token but a mark all the same: nobody ends the conversation that is judged."""
    return _MARKS.sub(" ", text)


def _new_id() -> str:
    return f"guard-{secrets.token_hex(8)}"

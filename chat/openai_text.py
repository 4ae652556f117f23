"""One call of /v1/completions: texts that go on where prompts end. Source: OpenAI's API description."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr, field_validator

from chat.bills import charged
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import Delta, Event, Finished, LogEvent
from chat.off_loop import off_loop
from chat.openai_asking import for_choice, sampling_of
from chat.openai_bodies import text_logprobs_body
from chat.openai_choices import Choice, Choices, new_id
from chat.openai_schemas import (
    A_LIST,
    A_LIST_OF_IDS,
    A_TEXT,
    BY_INPUT_SHAPE,
    LISTS_OF_IDS,
    SamplingIn,
)
from chat.openai_stream import Numbered
from chat.raw_text import RawRequest, RawText
from chat.rights import Rights
from chat.storable import storable
from inference import ChatTokenizer, ContextTooLong, InvalidParameter, TokenLogprob

MAX_CHOICES = 128
DEFAULT_MAX_TOKENS = 16  # OpenAI's own
MAX_PROMPT_CHARS = 1_000_000

Prompt = Annotated[StrictStr, Field(max_length=MAX_PROMPT_CHARS)]
Id = Annotated[StrictInt, Field(ge=0, lt=2**31)]  # more is none, and no tokenizer takes it
Ids = Annotated[list[Id], Field(min_length=1, max_length=MAX_PROMPT_CHARS)]
Many = Field(min_length=1, max_length=MAX_CHOICES)


class TextCompletionIn(SamplingIn):
    """The whole body."""

    prompt: Annotated[
        Annotated[Prompt, A_TEXT]
        | Annotated[list[Prompt], Many, A_LIST]
        | Annotated[Ids, A_LIST_OF_IDS]
        | Annotated[list[Ids], Many, LISTS_OF_IDS],
        BY_INPUT_SHAPE,
    ]
    max_tokens: int | None = Field(None, ge=0, le=1_000_000)
    logprobs: int | None = Field(None, ge=0, le=5)
    echo: bool | None = None
    best_of: int | None = Field(None, ge=0, le=20)
    suffix: str | None = None

    @field_validator("suffix")
    @classmethod
    def _has_no_suffix(cls, value: str | None) -> None:
        if value:
            raise ValueError("text in front of a suffix cannot be asked for here")

    @field_validator("best_of")
    @classmethod
    def _is_best_of_one(cls, value: int | None) -> int | None:
        if value not in (None, 1):
            raise ValueError("only 1: ask for several with n, and choose by logprobs")
        return value

    @property
    def prompts(self) -> list[str | list[int]]:
        """One entry per prompt: a list of numbers is one prompt of token ids."""
        value: Any = self.prompt
        is_one = isinstance(value, str) or isinstance(value[0], int)
        return [value] if is_one else value


async def text_completion(rights: Rights, data: TextCompletionIn) -> "TextCompletion":
    """Raises EngineError, and ShuttingDown where no new answer may begin."""
    if is_draining():
        raise ShuttingDown
    rights.require_model(data.model)
    if engine().is_upstream(data.model):
        problem = "it runs on another server, which is asked for chats only"
        raise InvalidParameter("model", problem)
    if len(data.prompts) * (data.n or 1) > MAX_CHOICES:
        raise InvalidParameter("n", f"at most {MAX_CHOICES} answers to all prompts together")
    if data.max_tokens == 0 and not data.echo:
        raise InvalidParameter("max_tokens", "0 is for prompts that are echoed")
    tokenizer = await engine().tokenizer(data.model)
    prompts = await off_loop(_encode, rights, data, tokenizer)
    return TextCompletion(rights, data, tokenizer, prompts)


class TextCompletion(Choices):
    kind = chunk_kind = "text_completion"
    prompt_field = "prompt"

    def __init__(
        self,
        rights: Rights,
        data: TextCompletionIn,
        tokenizer: ChatTokenizer,
        prompts: list[tuple[int, ...]],
    ) -> None:
        super().__init__(data, new_id("cmpl"), len(prompts) * (data.n or 1))
        self.rights = rights
        self.data = data
        self.tokenizer = tokenizer
        self.texts = [
            RawText(self._request(rights, prompts[index // self.num_per_prompt], index))
            for index in range(self.num_choices)
        ]
        self._has_echoed = [not data.echo] * self.num_choices
        self._num_chars = [0] * self.num_choices

    def _request(self, rights: Rights, prompt_ids: tuple[int, ...], index: int) -> RawRequest:
        data = self.data
        # What is not wanted at all costs one token: the engine rates prompts on its way to it.
        max_tokens = DEFAULT_MAX_TOKENS if data.max_tokens is None else max(1, data.max_tokens)
        sampling = sampling_of(data, max_tokens=max_tokens, num_logprobs=data.logprobs)
        return RawRequest(
            run_id=f"{self.id}-{index}",
            model=data.model,
            prompt_ids=prompt_ids,
            prompt_text=self.tokenizer.decode(list(prompt_ids)),
            api_key=rights.key_name,
            user=str(rights.user.pk),
            weight=rights.user.tier.weight,
            priority=rights.priority,
            sampling=for_choice(sampling, index % self.num_per_prompt),
            num_prompt_logprobs=data.logprobs if data.echo else None,
        )

    def events(self) -> AsyncGenerator[Numbered, None]:
        texts = [self._events_of(text) for text in self.texts]
        requests = (text.request for text in self.texts)
        most = [len(one.prompt_ids) + (one.sampling.max_tokens or 0) for one in requests]
        return charged(
            self.rights,
            self.model,
            texts,
            num_per_prompt=self.num_per_prompt,
            most_tokens=most,
        )

    async def _events_of(self, text: RawText) -> AsyncGenerator[Event, None]:
        async with aclosing(text.events()) as events:
            async for event in events:
                if self.data.max_tokens == 0 and isinstance(event, Delta):
                    continue
                if self.data.max_tokens == 0 and isinstance(event, Finished):
                    usage = replace(event.usage, completion_tokens=0)
                    event = replace(event, reason="length", usage=usage)
                yield event

    def whole_choice(self, index: int, events: list[LogEvent]) -> Choice:
        deltas = [event for event in events if isinstance(event, Delta)]
        text, rated = self._echo(index)
        text += "".join(delta.text for delta in deltas)
        rated += [token for delta in deltas for token in delta.logprobs]
        end = events[-1]
        assert isinstance(end, Finished)
        return self._choice(index, text, rated, end.reason)

    def first_choices(self) -> list[Choice]:
        return []

    def streamed_choice(self, index: int, event: Event) -> Choice | None:
        if not isinstance(event, Delta | Finished):
            return None
        text, rated = self._echo(index)
        if isinstance(event, Finished):
            return self._choice(index, text, rated, event.reason)
        text += event.text
        rated += event.logprobs
        return self._choice(index, text, rated) if text or rated else None

    def _echo(self, index: int) -> tuple[str, list[TokenLogprob | int]]:
        """The prompt in front of the first text, where it was asked for, and its tokens."""
        if self._has_echoed[index]:
            return "", []
        self._has_echoed[index] = True
        text = self.texts[index]
        ids = text.request.prompt_ids
        given = self.data.prompts[index // self.num_per_prompt]
        shown = storable(given if isinstance(given, str) else self.tokenizer.decode(list(ids)))
        if self.data.logprobs is None:
            return shown, []
        return shown, [ids[0], *text.prompt_logprobs]

    def _choice(
        self,
        index: int,
        text: str,
        rated: Sequence[TokenLogprob | int],
        reason: str | None = None,
    ) -> Choice:
        logprobs = None
        if self.data.logprobs is not None and rated:
            start = self._num_chars[index]
            logprobs = text_logprobs_body(self.tokenizer, rated, start)
        self._num_chars[index] += len(text)
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


def _encode(
    rights: Rights, data: TextCompletionIn, tokenizer: ChatTokenizer
) -> list[tuple[int, ...]]:
    """Token ids of each prompt. Raises ContextTooLong, of the longest one."""
    prompts = [
        tokenizer.encode_prompt(prompt) if isinstance(prompt, str) else tuple(prompt)
        for prompt in data.prompts
    ]
    longest = max(map(len, prompts))
    limit = engine().context_tokens(data.model)
    limit = min(limit, rights.user.tier.context_tokens or limit)
    if longest >= limit:
        error = ContextTooLong(num_prompt_tokens=longest, max_context_tokens=limit)
        error.param = "prompt"
        raise error
    return prompts

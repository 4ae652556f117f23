"""A prompt gone on with as it is: no chat template, no tools, nothing between the engine and the caller.

The events are those of answer(), so that whatever frames an answer frames this, too.
"""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import monotonic

from chat import metrics
from chat.active import counted
from chat.asking import AnswerRequest, Sampling
from chat.engine import engine
from chat.events import Delta, Event, Failed, Finished, Phase, Refused, RunTimings, RunUsage
from chat.sampling_params import sampling_params
from chat.screen import screen_of
from chat.screening import screened
from chat.spans import Clock
from chat.storable import storable
from inference import (
    EngineError,
    GenerateRequest,
    Loading,
    Prefill,
    Priority,
    PromptLogprobs,
    Queued,
    TokenLogprob,
    Tokens,
    Update,
)
from inference import Failed as EngineFailed
from inference import Finished as EngineFinished


@dataclass(frozen=True, slots=True)
class RawRequest:
    """`user` and `weight` as in AnswerRequest. `num_prompt_logprobs` as in SamplingParams."""

    run_id: str
    model: str
    prompt_ids: tuple[int, ...]
    prompt_text: str
    user: str
    weight: float
    sampling: Sampling
    priority: Priority = "api"
    num_prompt_logprobs: int | None = None
    api_key: tuple[int, str] | None = None


class RawText:
    """What follows the prompt. `prompt_logprobs` are there once the first text is.

    The first token of a prompt has none: nothing stands in front of it.
    """

    def __init__(self, request: RawRequest) -> None:
        self.request = request
        self.prompt_logprobs: list[TokenLogprob] = []
        self._started_s = monotonic()
        self._num_chars = 0
        self._ttft_ms = 0.0

    async def events(self) -> AsyncGenerator[Event, None]:
        """The last is Finished or Failed. Closing the iterator early aborts the engine's request."""
        request = self.request
        screen = await screen_of(self._as_answer(), is_raw=True)
        num_tokens = 0
        with counted():
            try:
                events = screened(screen, [request.prompt_text], self._written, Clock())
                async with aclosing(events):
                    async for event in events:
                        if isinstance(event, Delta):
                            num_tokens += len(event.ids)
                        if isinstance(event, Refused) and _is_kept(event):
                            num_read = len(request.prompt_ids)
                            event = Finished("content_filter", RunUsage(num_read, 0, num_tokens))
                        metrics.heard(request.model, request.priority, event)
                        yield event
            except EngineError as error:
                failed = Failed(error.code, str(error), error.retry_after_s, error.param)
                metrics.heard(request.model, request.priority, failed)
                yield failed

    async def _written(self) -> AsyncGenerator[Event, None]:
        async with aclosing(engine().generate(self._engine_request())) as updates:
            async for update in updates:
                if (event := self._hear(update)) is not None:
                    yield event
                if isinstance(update, Tokens):
                    yield Phase("decode", tokens=update.num_output)

    def _as_answer(self) -> AnswerRequest:
        """What moderation asks of a request."""
        of = self.request
        return AnswerRequest(
            run_id=of.run_id,
            model=of.model,
            messages=[],
            user=of.user,
            weight=of.weight,
            priority=of.priority,
            api_key=of.api_key,
        )

    def _engine_request(self) -> GenerateRequest:
        request = self.request
        seed = request.sampling.seed
        seed = secrets.randbits(63) if seed is None else seed
        params = sampling_params(request.model, request.sampling, seed=seed, grammar="")
        return GenerateRequest(
            request_id=request.run_id,
            model=request.model,
            prompt_ids=request.prompt_ids,
            params=replace(params, num_prompt_logprobs=request.num_prompt_logprobs),
            user=request.user,
            weight=request.weight,
            cache_salt=request.user,
            priority=request.priority,
        )

    def _hear(self, update: Update) -> Event | None:
        match update:
            case Loading(phase, fraction):
                return Phase("loading", progress=fraction, detail=phase)
            case Queued(position, wait_s):
                return Phase("queued", position=position, wait_s=wait_s)
            case Prefill(done, total, cached):
                return Phase("prefill", done=done, total=total, cached=cached)
            case PromptLogprobs(logprobs=logprobs):
                self.prompt_logprobs += logprobs
                return None
            case Tokens(text=text, ids=ids, logprobs=logprobs):
                return self._delta(storable(text), ids, logprobs)
            case EngineFinished():
                return self._finished(update)
            case EngineFailed(code, message, retry_after_s, param):
                return Failed(code, message, retry_after_s, param)

    def _delta(self, text: str, ids: tuple[int, ...], logprobs: tuple[TokenLogprob, ...]) -> Delta:
        if text and not self._ttft_ms:
            self._ttft_ms = self._elapsed_ms()
        delta = Delta(text, self._num_chars, ids=ids, logprobs=logprobs)
        self._num_chars += len(text)
        return delta

    def _finished(self, end: EngineFinished) -> Finished:
        usage, timings = end.usage, end.timings
        return Finished(
            "length" if end.reason == "length" else "stop",
            RunUsage(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens),
            RunTimings(
                queued_ms=timings.queued_ms,
                prefill_ms=timings.prefill_ms,
                ttft_ms=self._ttft_ms,
                decode_ms=timings.decode_ms,
                total_ms=self._elapsed_ms(),
                engine_ms=timings.engine_ms,
            ),
        )

    def _elapsed_ms(self) -> float:
        return (monotonic() - self._started_s) * 1e3


def _is_kept(end: Refused) -> bool:
    """Whether what was written before a policy stopped it stays."""
    return end.stage == "output" and not end.removes

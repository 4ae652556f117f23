"""Requests on their way through a worker, with all that is needed to send them again.

The worker knows a flight by its `wire_id`, which is never used twice: a caller's ids may be, and the
worker may still be ending the request before.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection
from dataclasses import replace
from itertools import count
from time import monotonic

from inference.encode_messages import Encoded, EncodeRequest
from inference.hearing_messages import Heard, HearRequest
from inference.messages import (
    Failed,
    Finished,
    GenerateRequest,
    Prefill,
    PromptLogprobs,
    Reply,
    Timings,
    Tokens,
    Usage,
)
from inference.priority import Priority

Ids = tuple[int, ...]
_END = Finished | Encoded | Heard | Failed
_MAX_BLAMED = 2  # of deaths since its last sign of innocence
_MAX_DEATHS = 6  # in all: a cause may write a token before each
_wire_numbers = count(1)


class Flight(ABC):
    """One request, from its arrival to its end, over as many workers as it takes."""

    failed_code: str
    """What it fails with when it may be the cause of its workers' deaths."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.wire_id = f"{request_id}#{next(_wire_numbers)}"
        self.num_deaths = 0
        self._num_blamed = 0
        self.is_on_board = False
        self.boarded_s = 0.0
        self.aborted_s: float | None = None
        self.ended = False
        self.since_s = monotonic()
        self._updates: asyncio.Queue[Reply] = asyncio.Queue()

    @property
    @abstractmethod
    def is_suspect(self) -> bool:
        """Whether it has to be on board alone among such, because a worker died on it."""

    @property
    def prompt(self) -> tuple[str, str, Ids]:
        """For whom something of it may be cached and who asks, and its tokens; none where nothing is."""
        return "", "", ()

    @property
    @abstractmethod
    def priority(self) -> Priority:
        """The class of its request."""

    @property
    def image_bytes(self) -> int:
        return 0

    @property
    @abstractmethod
    def is_replay(self) -> bool:
        """Whether a worker had accepted it."""

    @abstractmethod
    def num_left(self, usual_output: float) -> tuple[int, float]:
        """Tokens to read, and those that will probably be written; an answer has so many usually."""

    @property
    def is_lost(self) -> bool:
        """Whether so many workers have died on it that it is not tried again."""
        return self._num_blamed >= _MAX_BLAMED or self.num_deaths >= _MAX_DEATHS

    def lose_worker(self, *, is_blamed: bool = True) -> None:
        """One has died with it on board. A second time counts only where it is blamed."""
        if is_blamed or not self.num_deaths:
            self.num_deaths += 1
            self._num_blamed += 1

    def hear(self, update: Reply) -> None:
        """Hand an update to the reader."""
        if self.ended:
            return  # a reader may take its time, and news of the worker is not for it any more
        update = self._noted(update)
        self.ended = isinstance(update, _END)
        self._updates.put_nowait(update)

    async def updates(self) -> AsyncGenerator[Reply, None]:
        """All updates, up to the end."""
        while True:
            update = await self._updates.get()
            yield update
            if isinstance(update, _END):
                return

    def _noted(self, update: Reply) -> Reply:
        """Remember what a replay needs of an update; returns what the reader gets."""
        return update

    @abstractmethod
    def as_sent(self) -> GenerateRequest | EncodeRequest | HearRequest:
        """What the worker is asked now."""

    @abstractmethod
    def hear_aborted(self) -> None:
        """Answer an abort in the worker's place, while there is none."""


def lose_worker(lost: Collection[Flight]) -> None:
    """A worker has died with these on board. Where there is a suspect, of which there is one at a time,
    it is blamed: others had gone on since a death before."""
    has_suspect = any(flight.is_suspect for flight in lost)
    for flight in lost:
        flight.lose_worker(is_blamed=flight.is_suspect or not has_suspect)


class Generation(Flight):
    """An answer that is written: the next worker goes on behind the tokens that were emitted.

    A worker's death may be its doing until it has emitted another token; then blame begins anew.
    """

    failed_code = "generation_failed"

    def __init__(self, request: GenerateRequest) -> None:
        super().__init__(request.request_id)
        self.request = request
        self._prompt_cache_ids = request.cache_ids
        self._output_ids: list[int] = []
        self._num_prompt_rated = request.num_prompt_rated
        self._num_cached: int | None = None
        self._num_unread: int | None = None
        self._num_output_at_death = -1
        self._first_token_s: float | None = None

    def as_sent(self) -> GenerateRequest:
        return replace(
            self.request,
            request_id=self.wire_id,
            output_ids=self.request.output_ids + tuple(self._output_ids),
            num_prompt_rated=self._num_prompt_rated,
            is_replay=self.is_replay,
        )

    @property
    def priority(self) -> Priority:
        return self.request.priority

    @property
    def image_bytes(self) -> int:
        return self.request.image_bytes

    @property
    def is_replay(self) -> bool:
        return self.request.is_replay or self.num_deaths > 0

    @property
    def is_suspect(self) -> bool:
        return len(self._output_ids) == self._num_output_at_death

    def lose_worker(self, *, is_blamed: bool = True) -> None:
        super().lose_worker(is_blamed=is_blamed)
        self._num_output_at_death = len(self._output_ids)
        self._num_unread = None

    @property
    def num_output(self) -> int:
        return len(self.request.output_ids) + len(self._output_ids)

    @property
    def prompt(self) -> tuple[str, str, Ids]:
        if self.request.params.num_prompt_logprobs is not None:
            return "", "", ()  # those are computed, whatever is cached
        return self.request.kv_salt, self.request.user, self._prompt_cache_ids

    @property
    def token_ids(self) -> Ids:
        """As caches know them."""
        return (*self._prompt_cache_ids, *self.request.output_ids, *self._output_ids)

    def num_left(self, usual_output: float) -> tuple[int, float]:
        allowed = self.request.params.max_tokens - self.num_output
        expected = min(allowed, max(16.0, usual_output - self.num_output))
        if self._num_unread is None:
            return len(self.request.prompt_ids) + self.num_output, expected
        return self._num_unread, expected

    def hear_aborted(self) -> None:
        usage = Usage(len(self.request.prompt_ids), self._num_cached or 0, self.num_output)
        self.hear(Finished("abort", usage, Timings()))

    def _noted(self, update: Reply) -> Reply:
        if isinstance(update, Prefill):
            self._num_unread = update.num_total - update.num_done
            if self._num_cached is None:
                self._num_cached = min(update.num_cached, len(self.request.prompt_ids))
        elif isinstance(update, Tokens):
            self._num_unread = self._num_blamed = 0
            self._output_ids += update.ids
            self._first_token_s = self._first_token_s or monotonic()
        elif isinstance(update, PromptLogprobs):
            rated = update.start + len(update.logprobs)
            self._num_prompt_rated = max(self._num_prompt_rated, rated)
        elif isinstance(update, Finished):
            # A caller's usage does not depend on deaths: the next worker's cache is an empty one.
            num_cached = (
                update.usage.cached_tokens if self._num_cached is None else self._num_cached
            )
            usage = replace(update.usage, cached_tokens=num_cached)
            return replace(update, usage=usage, timings=self._timings(update.timings))
        return update

    def _timings(self, of_last_worker: Timings) -> Timings:
        """Over all workers: the last one knows its own part only, and the usage counts all."""
        now_s = monotonic()
        if self.aborted_s is not None:
            of_last_worker = replace(of_last_worker, stop_ms=(now_s - self.aborted_s) * 1e3)
        if not self.num_deaths:
            return of_last_worker
        first_s = self._first_token_s if self._first_token_s is not None else now_s
        ttft_ms = (first_s - self.since_s) * 1e3
        return replace(
            of_last_worker,
            prefill_ms=max(0.0, ttft_ms - of_last_worker.queued_ms),
            ttft_ms=ttft_ms,
            decode_ms=(now_s - first_s) * 1e3,
        )


class Encoding(Flight):
    """Texts that become vectors or scores, or a window of sound that becomes text: nothing is half done,
    so a replay begins anew."""

    failed_code = "encoding_failed"

    def __init__(self, request: EncodeRequest | HearRequest) -> None:
        super().__init__(request.request_id)
        self.request = request

    @property
    def is_suspect(self) -> bool:
        return self.num_deaths > 0

    @property
    def priority(self) -> Priority:
        return self.request.caller.priority

    @property
    def is_replay(self) -> bool:
        return self.request.is_replay or self.num_deaths > 0

    def num_left(self, usual_output: float) -> tuple[int, float]:
        return self.request.num_tokens, 0.0

    def as_sent(self) -> EncodeRequest | HearRequest:
        return replace(self.request, request_id=self.wire_id, is_replay=self.is_replay)

    def hear_aborted(self) -> None:
        self.hear(Failed("aborted", "The request was aborted."))

"""One model on this machine: its requests, and the workers that compute them.

A request outlives its worker. When a worker dies, another one, or its successor, gets what is missing
of each (see `flights`); the caller notices a pause. A request that was on board when a worker died, and
again before it has gone on, is failed, because it may be the cause; so is one at the sixth death in all.
Those that were on board once come one after the other, so that of those on board one can be the cause.
The next request wakes a model that sleeps, and where it has several workers, as many of them as there
are requests.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from inference.boarding import Boarding
from inference.catalog import ModelSpec, ModelState, State
from inference.checks import check_types
from inference.config import EngineConfig
from inference.encode_messages import Encoded, EncodeRequest
from inference.errors import Overloaded, RequestError
from inference.flights import Encoding, Flight, Generation
from inference.hearing_messages import Heard, HearRequest
from inference.messages import (
    Cached,
    EngineStats,
    Failed,
    GenerateRequest,
    Loading,
    ModelInfo,
    Reply,
    Update,
    kv_salt,
)
from inference.needs import estimate_needs
from inference.placement import Placement
from inference.restarts import REST_S
from inference.supervisor import WAITING_FOR_MEMORY, Supervisor
from inference.vision.layout import layout_at

T = TypeVar("T")


class ModelHost:
    """All methods run on the event loop."""

    def __init__(
        self,
        spec: ModelSpec,
        path: Path,
        config: EngineConfig,
        placement: Placement,
        changed: Callable[[], None],
        loads_anew: Callable[[str], None],
    ) -> None:
        num_workers = placement.num_workers(spec)
        self.spec = spec
        self.path = path
        self.config = replace(config, num_threads=max(1, config.num_threads // num_workers))
        self.workers = [
            Supervisor(spec, number, path, self.config, placement, self)
            for number in range(num_workers)
        ]
        self._placement = placement
        self._boarding = Boarding(self.workers, max_waiting_tokens=config.max_waiting_tokens)
        self._changed = changed
        self._loads_anew = loads_anew
        self._failure = ""

    # --- how it stands ------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Of the worker that is furthest: a model is ready when one is."""
        return "failed" if self._failure else self._foremost.state

    @property
    def detail(self) -> str:
        return self._failure or self._foremost.detail

    @property
    def _foremost(self) -> Supervisor:
        order = ("ready", "loading", "asleep", "failed", "cold")
        return min(self.workers, key=lambda worker: (order.index(worker.state), -worker.progress))

    @property
    def info(self) -> ModelInfo | None:
        """Of the worker that is furthest, else what one was before it died."""
        return self._foremost.info or next((w.info for w in self.workers if w.info), None)

    @property
    def sees_images(self) -> bool:
        """Whether messages for it may have images, by its files."""
        return self.spec.kind == "chat" and layout_at(self.path) is not None

    @property
    def stats(self) -> EngineStats:
        return self.workers[0].stats.plus(*(worker.stats for worker in self.workers[1:]))

    @property
    def num_restarts(self) -> int:
        return sum(worker.num_restarts for worker in self.workers)

    @property
    def flights(self) -> dict[str, Flight]:
        return self._boarding.flights

    @property
    def revision(self) -> str:
        """Empty until it was loaded."""
        info = self.info
        return info.revision if info else ""

    @property
    def max_context_tokens(self) -> int | None:
        """None until it was loaded."""
        info = self.info
        return info.max_context_tokens if info else None

    def as_state(self, *, is_default: bool) -> ModelState:
        return ModelState(
            spec=self.spec,
            state=self.state,
            is_default=is_default,
            detail=self.detail,
            progress=self._foremost.progress,
            max_context_tokens=self.max_context_tokens,
            revision=self.revision,
            is_straggling=any(worker.is_straggling for worker in self.workers),
            num_workers=len(self.workers),
            num_ready=sum(worker.is_ready for worker in self.workers),
            sees_images=self.sees_images,
        )

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all workers that there are not; failed ones are tried again, sleeping ones wake."""
        self._failure = ""
        for worker in self.workers:
            worker.start()

    async def has_room(self) -> bool:
        """Whether there is a worker, or memory for one that nobody uses or waits for."""
        if any(worker.is_awake for worker in self.workers):
            return True
        place = self._placement.choose(self.spec.name, is_chat=self.spec.kind == "chat")
        facts = (self.spec.name, self.path, self.config, place.residency.budget_bytes())
        needs = await asyncio.to_thread(partial(estimate_needs, *facts, on_gpu=bool(place.gpus)))
        return place.residency.has_spare(needs.size_bytes)

    async def close(self) -> None:
        """End the workers; requests on board are failed."""
        await asyncio.gather(*(worker.close() for worker in self.workers))
        self._failure = ""
        self._fail_all(Failed("engine_closed", "The engine was shut down."))
        self._changed()

    def _wake(self, num_more: int = 0) -> None:
        """As many workers as there are requests, where there may be so many."""
        able = [w for w in self.workers if not w.is_awake and w.rests_until_s <= monotonic()]
        if not able:
            return
        num_awake = sum(worker.is_awake for worker in self.workers)
        num_missing = self._boarding.num_going + num_more - num_awake
        for worker in able[: max(0, num_missing)]:
            self._failure = ""
            worker.start()

    def _fail_all(self, failed: Failed) -> None:
        for flight in self.flights.values():
            flight.hear(failed)

    # --- what the workers tell ----------------------------------------------------------------

    def has_another(self, worker: Supervisor) -> bool:
        number = self.workers.index(worker)
        return any(
            other.is_ready or (other.is_awake and place < number)
            for place, other in enumerate(self.workers)
            if other is not worker
        )

    def changed(self) -> None:
        self._boarding.board()
        for flight in self._boarding.waiting():
            self._explain_wait(flight)
        self._changed()

    def loads_anew(self) -> None:
        self._loads_anew(self.spec.name)

    def review(self) -> None:
        self._boarding.board()
        for worker in self.workers:
            worker.rest_if_unused()
        if not any(worker.is_awake for worker in self.workers):
            self._wake()

    def landed(self, worker: Supervisor, flight: Flight) -> None:
        self._boarding.landed(worker, flight)

    def gave_up(self, worker: Supervisor, failed: Failed) -> None:
        if any(other.is_awake for other in self.workers):
            worker.rests_until_s = monotonic() + REST_S
            return
        self._failure = failed.message
        self._fail_all(failed)
        self._changed()

    # --- requests -----------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        """The updates of one request; ends after `Finished` or `Failed`.

        Leaving the iterator early aborts the request at the worker's next step.
        """
        try:
            check_types(request)  # what is counted and compared here, before the worker sees it
        except RequestError as error:
            yield Failed.of(error)
            return
        async with aclosing(self._fly(Generation(request))) as updates:
            async for update in updates:
                assert not isinstance(update, Encoded | Heard | Cached)
                yield update

    async def encode(self, request: EncodeRequest) -> Encoded:
        """The vectors or scores of one request. Cancelling it aborts it. Raises EngineError."""
        return await self._only(request, Encoded)

    async def hear(self, request: HearRequest) -> Heard:
        """What is said in one window. Cancelling it aborts it. Raises EngineError."""
        return await self._only(request, Heard)

    async def _only(self, request: EncodeRequest | HearRequest, kind: type[T]) -> T:
        """The one answer that such a request has."""
        async with aclosing(self._fly(Encoding(request))) as updates:
            async for update in updates:
                if isinstance(update, kind):
                    return update
                if isinstance(update, Failed):
                    raise update.as_error()
        raise AssertionError("every request has an end")

    async def count_cached(
        self, prompts: Sequence[Sequence[int]], cache_salt: str, timeout_s: float, adapter: str = ""
    ) -> tuple[int, ...] | None:
        """How many tokens of each prompt are in the KV cache of the worker that has most of them.

        None where no answer came in time.
        """
        salt = kv_salt(adapter, cache_salt)
        asked = (worker.count_cached(prompts, salt, timeout_s) for worker in self.workers)
        told = [counts for counts in await asyncio.gather(*asked) if counts is not None]
        return tuple(map(max, zip(*told, strict=True))) if told else None

    async def _fly(self, flight: Flight) -> AsyncGenerator[Reply, None]:
        """Send a request and hear of it until it ends, or until its reader leaves."""
        rest_s = min(worker.rests_until_s for worker in self.workers) - monotonic()
        if self.state == "failed" and rest_s > 0:
            yield Failed("worker_died", self.detail, retry_after_s=rest_s)
            return
        self._wake(num_more=1)
        self._boarding.add(flight)
        self._boarding.board()
        if not flight.is_on_board:
            self._let_wait(flight)
        try:
            async with aclosing(flight.updates()) as updates:
                async for update in updates:
                    yield update
        finally:
            self._abort(flight)
            self._boarding.remove(flight)
            self.review()
            if not self.flights:
                for worker in self.workers:
                    worker.stop_waiting()

    def _let_wait(self, flight: Flight) -> None:
        """For a worker, unless too many do. Nobody knows yet how long they will take."""
        if self._boarding.has_room(flight):
            self._explain_wait(flight)
        else:
            flight.hear(Failed.of(Overloaded.expecting(None)))

    def _explain_wait(self, flight: Flight) -> None:
        """Why a request is on board of no worker."""
        if self.state == "loading":
            flight.hear(Loading(self.detail, self._foremost.progress))
            return
        ready = [worker for worker in self.workers if worker.is_ready]
        if ready and all(worker.is_too_late(flight) for worker in ready):
            flight.hear(Loading(WAITING_FOR_MEMORY, 0.0))

    def abort(self, request_id: str) -> None:
        """Stop the requests of an id at the next step; a reader still hears of the end."""
        for flight in self.flights.values():
            if flight.request_id == request_id:
                self._abort(flight)

    def _abort(self, flight: Flight) -> None:
        if flight.ended:
            return
        flight.aborted_s = flight.aborted_s or monotonic()
        self._boarding.abort(flight)

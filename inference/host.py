"""One model's worker process, seen from the web process: spawned, watched, replaced when it dies.

A request outlives the worker. When a worker dies, the next one gets the prompt and the tokens that
were emitted, and goes on behind them; the caller notices a pause. A request that was on board twice
when a worker died is failed, because it may be the cause. A model whose workers die while they load
it is given up, and rests before the next request may try again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic

from inference.catalog import ModelSpec, ModelState, State
from inference.channel import AsyncChannel
from inference.config import EngineConfig
from inference.messages import (
    Abort,
    EngineStats,
    Failed,
    Finished,
    GenerateRequest,
    LoadFailed,
    Loading,
    ModelInfo,
    PromptLogprobs,
    Ready,
    Shutdown,
    StepFrame,
    Submit,
    Timings,
    Tokens,
    Update,
    Usage,
    WorkerSetup,
)
from inference.worker_process import bury, log_words_of, spawn

logger = logging.getLogger(__name__)
MAX_DEATHS = 2  # of workers with the same request on board
MAX_FAILED_LOADS = 3  # workers in a row that died before they were ready
REST_S = 60.0  # after so many: a load that the kernel kills for its memory hurts the whole machine
_wire_numbers = count(1)


@dataclass(slots=True, eq=False)
class _Flight:
    """A request on its way, with all that is needed to send it again.

    The worker knows it by `wire_id`, which is never used twice: a caller's ids may be, and the
    worker may still be ending the request before.
    """

    request: GenerateRequest
    wire_id: str = field(init=False)
    updates: "asyncio.Queue[Update]" = field(default_factory=asyncio.Queue)
    output_ids: list[int] = field(default_factory=list)
    num_prompt_rated: int = 1
    num_deaths: int = 0
    aborted_s: float | None = None
    ended: bool = False
    since_s: float = field(default_factory=monotonic)
    first_token_s: float | None = None

    def __post_init__(self) -> None:
        self.wire_id = f"{self.request.request_id}#{next(_wire_numbers)}"

    def hear(self, update: Update) -> None:
        if self.ended:
            return  # a reader may take its time, and news of the worker is not for it any more
        if isinstance(update, Tokens):
            self.output_ids += update.ids
            self.first_token_s = self.first_token_s or monotonic()
        elif isinstance(update, PromptLogprobs):
            self.num_prompt_rated = update.start + len(update.logprobs)
        elif isinstance(update, Finished):
            update = replace(update, timings=self._timings(update.timings))
        self.ended = isinstance(update, Finished | Failed)
        self.updates.put_nowait(update)

    def _timings(self, of_last_worker: Timings) -> Timings:
        """Over all workers: the last one knows its own part only, and the usage counts all."""
        now_s = monotonic()
        if self.aborted_s is not None:
            of_last_worker = replace(of_last_worker, stop_ms=(now_s - self.aborted_s) * 1e3)
        if not self.num_deaths:
            return of_last_worker
        first_s = self.first_token_s if self.first_token_s is not None else now_s
        ttft_ms = (first_s - self.since_s) * 1e3
        return replace(
            of_last_worker,
            prefill_ms=max(0.0, ttft_ms - of_last_worker.queued_ms),
            ttft_ms=ttft_ms,
            decode_ms=(now_s - first_s) * 1e3,
        )

    def hear_aborted(self) -> None:
        """Answer an abort in the worker's place, while there is none."""
        usage = Usage(len(self.request.prompt_ids), 0, len(self.output_ids))
        self.hear(Finished("abort", usage, Timings()))

    def as_sent(self) -> GenerateRequest:
        """What the worker is asked: to go on behind the tokens that were emitted."""
        output_ids = self.request.output_ids + tuple(self.output_ids)
        return replace(
            self.request,
            request_id=self.wire_id,
            output_ids=output_ids,
            num_prompt_rated=max(self.request.num_prompt_rated, self.num_prompt_rated),
        )


class WorkerHost:
    """Supervises the worker of one model. All methods run on the event loop."""

    def __init__(self, spec: ModelSpec, config: EngineConfig, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.config = config
        self.state: State = "cold"
        self.detail = ""
        self.progress = 0.0
        self.info: ModelInfo | None = None
        self.stats = EngineStats()
        self.pid: int | None = None
        self.num_restarts = 0
        self._changed = changed
        self._flights: dict[str, _Flight] = {}
        self._channel: AsyncChannel | None = None
        self._task: asyncio.Task[None] | None = None
        self._deaths_s: deque[float] = deque()
        self._num_failed_loads = 0
        self._rests_until_s = 0.0
        self._heard_s = monotonic()
        self._stuck = False

    def as_state(self, *, is_default: bool) -> ModelState:
        return ModelState(
            spec=self.spec,
            state=self.state,
            is_default=is_default,
            detail=self.detail,
            progress=self.progress,
            max_context_tokens=self.info.max_context_tokens if self.info else None,
            revision=self.info.revision if self.info else "",
        )

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Spawn the worker if there is none; a failed model is tried again."""
        if self.state in ("loading", "ready"):
            return
        self._deaths_s.clear()
        self._num_failed_loads = 0
        self._rests_until_s = 0.0
        self._set_state("loading", "starting")
        supervise = self._supervise(previous=self._task)
        self._task = asyncio.create_task(supervise, name=f"host {self.spec.name}")

    async def close(self) -> None:
        """End the worker; requests on board are failed."""
        if self._task is not None:
            if self._channel is not None:
                self._channel.send(Shutdown())
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._fail_all("engine_closed", "The engine was shut down.")
        self._set_state("cold", "")

    async def _supervise(self, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None:  # of a model that failed, still burying its worker
            await asyncio.gather(previous, return_exceptions=True)
        while True:
            try:
                reason = await self._run_worker()
            except OSError as error:
                reason = f"it could not be started: {error}"
            if reason is None:
                return
            logger.warning("the worker of %s ended: %s", self.spec.name, reason)
            self._blame_flights(reason)
            if self._failed_to_load_too_often():
                self._rests_until_s = monotonic() + REST_S
                message = f"{MAX_FAILED_LOADS} engine workers ended while they loaded the model"
                self._give_up("worker_died", f"{message}; the last one: {reason}.")
                return
            if self._died_too_often():
                self._give_up("worker_died", f"The engine worker died again and again: {reason}.")
                return
            self.num_restarts += 1
            self._set_state("loading", "restarting")
            await asyncio.sleep(min(10.0, 0.1 * 2 ** len(self._deaths_s)))

    async def _run_worker(self) -> str | None:
        """One worker from its start to its end: why it died, or None if the model does not load."""
        process, ours = await spawn(self.config)
        self.pid = process.pid
        self._stuck = False
        self._heard_s = monotonic()
        watchdog = asyncio.create_task(self._watch(process))
        reader = asyncio.create_task(log_words_of(process, self.spec.name))
        try:
            self._channel = await AsyncChannel.open(ours)
            self._channel.send(WorkerSetup(self.config, self.spec.name, self.spec.path))
            return await self._pump(self._channel)
        finally:
            watchdog.cancel()
            if self._channel is not None:
                self._channel.close()
            self._channel = self.pid = None
            await bury(process)
            await asyncio.wait({reader}, timeout=1.0)  # its last words
            reader.cancel()

    async def _pump(self, channel: AsyncChannel) -> str | None:
        """Hand out what the worker says until it has nothing more to say."""
        while True:
            try:
                value = await channel.receive()
            except EOFError:
                return f"no sign for {self._patience_s:g} s" if self._stuck else "it died"
            self._heard_s = monotonic()
            match value:
                case StepFrame(updates, stats):
                    self.stats = stats
                    for wire_id, update in updates:
                        if flight := self._flights.get(wire_id):
                            flight.hear(update)
                case Loading(phase, fraction):
                    self._set_state("loading", phase, fraction)
                case Ready(info, load_s):
                    self._become_ready(info, load_s, channel)
                case LoadFailed(code, message):
                    self._give_up(code, message)
                    return None

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Kill a worker that is silent although it has work: alive is not the same as working."""
        tick_s = min(self.config.watchdog_s, self.config.loading_watchdog_s) / 4
        while True:
            await asyncio.sleep(tick_s)
            if self._silent_s() > self._patience_s:
                self._stuck = True
                process.kill()

    @property
    def _patience_s(self) -> float:
        """How long a worker may be silent while it has work."""
        is_loading = self.state == "loading"
        return self.config.loading_watchdog_s if is_loading else self.config.watchdog_s

    def _silent_s(self) -> float:
        """For how long the worker has owed a sign; 0 while it owes none.

        Any frame is one: who waits behind others hears nothing for long, and all is well.
        """
        if self.state == "loading":
            return monotonic() - self._heard_s
        waiting_since_s = [f.since_s for f in self._flights.values() if not f.ended]
        if not waiting_since_s:
            return 0.0
        return monotonic() - max(self._heard_s, min(waiting_since_s))

    def _become_ready(self, info: ModelInfo, load_s: float, channel: AsyncChannel) -> None:
        logger.info("%s is ready after %.1f s", self.spec.name, load_s)
        self.info = info
        self._num_failed_loads = 0
        self._set_state("ready", "", 1.0)
        for flight in self._flights.values():
            if flight.aborted_s is not None and not flight.ended:
                flight.hear_aborted()  # its abort went down with the last worker
            elif not flight.ended:
                channel.send(Submit(flight.as_sent()))

    def _failed_to_load_too_often(self) -> bool:
        self._num_failed_loads += self.state == "loading"
        return self._num_failed_loads >= MAX_FAILED_LOADS

    def _died_too_often(self) -> bool:
        now_s = monotonic()
        self._deaths_s.append(now_s)
        while self._deaths_s[0] < now_s - 60:
            self._deaths_s.popleft()
        return len(self._deaths_s) > self.config.max_restarts_per_minute

    def _blame_flights(self, reason: str) -> None:
        for flight in self._flights.values():
            if flight.ended:
                continue
            flight.num_deaths += self.state == "ready"
            if flight.num_deaths >= MAX_DEATHS:
                message = f"The engine worker died {MAX_DEATHS} times on this request ({reason})."
                flight.hear(Failed("generation_failed", message))

    def _give_up(self, code: str, message: str) -> None:
        self._set_state("failed", message)
        self._fail_all(code, message)

    def _fail_all(self, code: str, message: str) -> None:
        for flight in self._flights.values():
            flight.hear(Failed(code, message))

    def _set_state(self, state: State, detail: str, progress: float = 0.0) -> None:
        self.state, self.detail, self.progress = state, detail, progress
        if state == "loading":
            for flight in self._flights.values():
                flight.hear(Loading(detail, progress))
        self._changed()

    # --- requests -----------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        """The updates of one request; ends after `Finished` or `Failed`.

        Leaving the iterator early aborts the request at the worker's next step.
        """
        rest_s = self._rests_until_s - monotonic()
        if self.state == "failed" and rest_s > 0:
            yield Failed("worker_died", self.detail, retry_after_s=rest_s)
            return
        self.start()
        flight = _Flight(request)
        self._flights[flight.wire_id] = flight
        if self.state == "ready" and self._channel is not None:
            self._channel.send(Submit(flight.as_sent()))
        else:
            flight.hear(Loading(self.detail, self.progress))
        try:
            while True:
                update = await flight.updates.get()
                yield update
                if isinstance(update, Finished | Failed):
                    return
        finally:
            self._abort(flight)
            del self._flights[flight.wire_id]

    def abort(self, request_id: str) -> None:
        """Stop the requests of an id at the next step; `Finished("abort")` still comes to a listener."""
        for flight in self._flights.values():
            if flight.request.request_id == request_id:
                self._abort(flight)

    def _abort(self, flight: _Flight) -> None:
        if flight.ended:
            return
        flight.aborted_s = flight.aborted_s or monotonic()
        if self.state == "ready" and self._channel is not None:
            self._channel.send(Abort(flight.wire_id))
        else:
            flight.hear_aborted()

"""One model's worker process, seen from the web process: spawned, watched, replaced when it dies.

A request outlives the worker. When a worker dies, the next one gets what is missing of each (see
`flights`); the caller notices a pause. A request that was on board twice when a worker died is
failed, because it may be the cause; encodings that were on board once come one after the other, so
that the cause is on board alone. A model whose workers die while they load it is given up, and
rests before the next request may try again.

A worker that nobody uses gives its memory back when another model needs it, or after a while: it ends,
and the model sleeps. The next request wakes it. One that is used, and whose memory another model waits
for, takes on nothing new and sleeps when it has done its work (see `residency`); what came meanwhile
wakes it, behind the other.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from time import monotonic

from inference.catalog import ModelSpec, ModelState, State
from inference.channel import AsyncChannel
from inference.config import EngineConfig
from inference.encode_messages import Encoded, EncodeRequest
from inference.errors import ModelError, error_of
from inference.flights import Encoding, Flight, Generation
from inference.messages import (
    Abort,
    EngineStats,
    Failed,
    GenerateRequest,
    LoadFailed,
    Loading,
    ModelInfo,
    Ready,
    Reply,
    Shutdown,
    StepFrame,
    Submit,
    Update,
    WorkerSetup,
)
from inference.needs import Needs, estimate_needs
from inference.pace import Pace
from inference.residency import Residency
from inference.stay import Stay
from inference.worker_process import WorkerProcess, bury, log_words_of, spawn

logger = logging.getLogger(__name__)
MAX_DEATHS = 2  # of workers with the same request on board
MAX_FAILED_LOADS = 3  # workers in a row that died before they were ready
WAITING_FOR_MEMORY = "waiting for memory"
REST_S = 60.0  # after so many: a load that the kernel kills for its memory hurts the whole machine


class WorkerHost:
    """Supervises the worker of one model. All methods run on the event loop."""

    def __init__(
        self,
        spec: ModelSpec,
        path: Path,
        config: EngineConfig,
        residency: Residency,
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.path = path
        self.config = config
        self.state: State = "cold"
        self.detail = ""
        self.progress = 0.0
        self.info: ModelInfo | None = None
        self.stats = EngineStats()
        self.pid: int | None = None
        self.num_restarts = 0
        self._changed = changed
        self._flights: dict[str, Flight] = {}
        self._channel: AsyncChannel | None = None
        self._process: WorkerProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._deaths_s: deque[float] = deque()
        self._num_failed_loads = 0
        self._rests_until_s = 0.0
        self._heard_s = monotonic()
        self._stuck = False
        self._pace = Pace()
        self._falls_asleep = False
        self._stay = Stay(
            spec.name,
            residency,
            sleep_after_s=config.sleep_after_s,
            sleep=self._fall_asleep,
            review=self._review,
        )

    def as_state(self, *, is_default: bool) -> ModelState:
        return ModelState(
            spec=self.spec,
            state=self.state,
            is_default=is_default,
            detail=self.detail,
            progress=self.progress,
            max_context_tokens=self.info.max_context_tokens if self.info else None,
            revision=self.info.revision if self.info else "",
            is_straggling=self.state == "ready" and self._pace.is_slow,
        )

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Spawn the worker if there is none; a failed model is tried again, a sleeping one wakes."""
        if self.state in ("loading", "ready"):
            return
        self._deaths_s.clear()
        self._num_failed_loads = 0
        self._rests_until_s = 0.0
        self._set_state("loading", "waking" if self.state == "asleep" else "starting")
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
        if previous is not None:  # of a model that failed or sleeps, still burying its worker
            await asyncio.gather(previous, return_exceptions=True)
        while True:
            try:
                reason = await self._live()
            except ModelError as error:
                self._give_up(error.code, str(error))
                return
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

    async def _live(self) -> str | None:
        """Wait for memory, and run a worker in it: as `_run_worker`. Raises ModelError."""
        self._falls_asleep = False
        needs = await asyncio.to_thread(
            estimate_needs,
            *(self.spec.name, self.path, self.config, self._stay.residency.budget_bytes()),
        )
        with self._stay.room(needs.size_bytes):
            if self._stay.is_waiting:
                self._set_state("loading", WAITING_FOR_MEMORY)
                await self._stay.granted()
            return await self._run_worker(needs)

    async def _run_worker(self, needs: Needs) -> str | None:
        """One worker from its start to its end: why it died, or None if another would do no good.

        That is where the model does not load, and where it sleeps.
        """
        self._process, ours = await spawn(self.config)
        self.pid = self._process.pid
        self._stuck = False
        self._pace.forget_worker()
        self._heard_s = monotonic()
        watchdog = asyncio.create_task(self._watch(self._process))
        reader = asyncio.create_task(log_words_of(self._process.stderr, self.spec.name))
        drafts = () if needs.draft_problem else self.config.draft_models
        config = replace(self.config, kv_bytes=needs.kv_bytes or None, draft_models=drafts)
        try:
            self._channel = await AsyncChannel.open(ours)
            self._channel.send(WorkerSetup(config, self.spec.name, self.path))
            return await self._pump(self._channel, needs)
        finally:
            watchdog.cancel()
            if self._channel is not None:
                self._channel.close()
            self._channel = self.pid = None
            await bury(self._process)
            await asyncio.wait({reader}, timeout=1.0)  # its last words
            reader.cancel()

    async def _pump(self, channel: AsyncChannel, needs: Needs) -> str | None:
        """Hand out what the worker says until it has nothing more to say."""
        while True:
            try:
                value = await channel.receive()
            except EOFError:
                if self._falls_asleep:
                    return None
                return f"no sign for {self._patience_s:g} s" if self._stuck else "it died"
            if self._falls_asleep:
                continue  # what was on its way is for nobody
            self._heard_s = monotonic()
            match value:
                case StepFrame(updates, stats):
                    self.stats = stats
                    self._note_pace(stats)
                    for wire_id, update in updates:
                        if flight := self._flights.get(wire_id):
                            flight.hear(update)
                    self._rest_if_unused()
                case Loading(phase, fraction):
                    self._set_state("loading", phase, fraction)
                case Ready(info, load_s):
                    logger.info("%s is ready after %.1f s", self.spec.name, load_s)
                    if needs.draft_problem:
                        info = replace(info, draft_problem=needs.draft_problem)
                    self._become_ready(info, Needs(info.weights_bytes, needs.kv_bytes))
                case LoadFailed(code, message):
                    self._give_up(code, message)
                    return None

    def _note_pace(self, stats: EngineStats) -> None:
        was_slow = self._pace.is_slow
        self._pace.hear(stats)
        if self._pace.is_slow == was_slow:
            return
        if self._pace.is_slow:
            logger.warning(
                "the worker of %s is a straggler: its steps take %.1f times as long as they did"
                " when all was calm",
                *(self.spec.name, self._pace.ratio),
            )
        else:
            logger.info("the worker of %s has its pace back", self.spec.name)
        self._changed()

    async def _watch(self, process: WorkerProcess) -> None:
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

    def _become_ready(self, info: ModelInfo, needs: Needs) -> None:
        if self.info is not None and self.info.revision != info.revision:
            self._pace = Pace()
        self.info = info
        self._num_failed_loads = 0
        for flight in self._flights.values():
            flight.is_on_board = False
            if flight.aborted_s is not None:
                flight.hear_aborted()  # its abort went down with the last worker
        self._set_state("ready", "", 1.0)
        self._stay.settle(needs.size_bytes)
        for flight in self._flights.values():
            if self._stay.is_too_late(flight.since_s):
                flight.hear(Loading(WAITING_FOR_MEMORY, 0.0))
        self._review()

    def _send_due(self) -> None:
        """Send the worker what it has not got yet and may have now."""
        if self.state != "ready" or self._channel is None:
            return
        flights = [flight for flight in self._flights.values() if not flight.ended]
        is_suspect_on_board = any(f.is_suspect and f.is_on_board for f in flights)
        for flight in flights:
            if flight.is_on_board or (flight.is_suspect and is_suspect_on_board):
                continue
            if self._stay.is_too_late(flight.since_s):
                continue
            is_suspect_on_board |= flight.is_suspect
            flight.is_on_board = True
            self._stay.use()
            self._channel.send(Submit(flight.as_sent()))

    # --- sleep --------------------------------------------------------------------------------

    def _rest_if_unused(self) -> None:
        if self.state != "ready" or self._channel is None:
            return
        if all(f.ended or self._stay.is_too_late(f.since_s) for f in self._flights.values()):
            self._stay.rest()

    def _review(self) -> None:
        self._send_due()
        self._rest_if_unused()

    def _stop_waiting(self) -> None:
        """Who wanted the model has left, so that no other has to make room for it."""
        if self._task is not None:
            self._task.cancel()
        self._set_state("asleep" if self.info else "cold", "")

    def _fall_asleep(self) -> None:
        """End a worker that has nothing on board. Killed, for it may not be able to hear."""
        logger.info("%s falls asleep", self.spec.name)
        self._falls_asleep = True
        self._stay.leave()
        if self._process is not None and not self._process.has_ended:
            self._process.kill()
        self.stats = EngineStats()
        self._pace.forget_worker()
        self._set_state("asleep", "")
        if any(not flight.ended for flight in self._flights.values()):
            self.start()

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
            flight.num_deaths += self.state == "ready" and flight.is_on_board
            if flight.num_deaths >= MAX_DEATHS:
                message = f"The engine worker died {MAX_DEATHS} times on this request ({reason})."
                flight.hear(Failed(flight.failed_code, message))

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
        async with aclosing(self._fly(Generation(request))) as updates:
            async for update in updates:
                assert not isinstance(update, Encoded)
                yield update

    async def encode(self, request: EncodeRequest) -> Encoded:
        """The vectors or scores of one request. Cancelling it aborts it. Raises EngineError."""
        async with aclosing(self._fly(Encoding(request))) as updates:
            async for update in updates:
                if isinstance(update, Encoded):
                    return update
                if isinstance(update, Failed):
                    raise error_of(update.code, update.message, update.retry_after_s, update.param)
        raise AssertionError("every request has an end")

    async def _fly(self, flight: Flight) -> AsyncGenerator[Reply, None]:
        """Send a request and hear of it until it ends, or until its reader leaves."""
        rest_s = self._rests_until_s - monotonic()
        if self.state == "failed" and rest_s > 0:
            yield Failed("worker_died", self.detail, retry_after_s=rest_s)
            return
        self.start()
        self._flights[flight.wire_id] = flight
        if self.state != "ready":
            flight.hear(Loading(self.detail, self.progress))
        elif self._stay.is_too_late(flight.since_s):
            flight.hear(Loading(WAITING_FOR_MEMORY, 0.0))
        self._send_due()
        try:
            async with aclosing(flight.updates()) as updates:
                async for update in updates:
                    yield update
        finally:
            self._abort(flight)
            del self._flights[flight.wire_id]
            self._review()
            if self._stay.is_waiting and not self._flights:
                self._stop_waiting()

    def abort(self, request_id: str) -> None:
        """Stop the requests of an id at the next step; a reader still hears of the end."""
        for flight in self._flights.values():
            if flight.request_id == request_id:
                self._abort(flight)

    def _abort(self, flight: Flight) -> None:
        if flight.ended:
            return
        flight.aborted_s = flight.aborted_s or monotonic()
        if self.state == "ready" and self._channel is not None and flight.is_on_board:
            self._channel.send(Abort(flight.wire_id))
        else:
            flight.hear_aborted()

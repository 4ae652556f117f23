"""One worker of a model, seen from the web process: spawned, watched, replaced when it dies.

A worker that nobody uses gives its memory back when another model needs it, or after a while: it ends,
and sleeps. One that is used, and whose memory another model waits for, takes on nothing new and sleeps
when it has done its work (see `residency`).
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Protocol

from inference.berth import Berth, LiveWorker
from inference.catalog import ModelSpec, State, WorkerState
from inference.channel import AsyncChannel
from inference.config import EngineConfig
from inference.errors import ModelError
from inference.flights import Encoding, Flight, lose_worker
from inference.ledger import NoSpareMemory
from inference.messages import (
    Abort,
    Asleep,
    Cached,
    EngineStats,
    Failed,
    GiveWay,
    LoadFailed,
    Loading,
    ModelInfo,
    Ready,
    Shutdown,
    Sleep,
    StepFrame,
    Submit,
    Wake,
    WorkerSetup,
)
from inference.needs import Needs, estimate_needs
from inference.pace import Pace
from inference.placement import Misplaced, Place, Placement
from inference.probes import Probes
from inference.restarts import Restarts
from inference.routing import PrefixMemory
from inference.stay import Stay
from inference.watchdog import Watchdog
from inference.worker_process import WorkerProcess, bury, log_words_of, spawn

logger = logging.getLogger(__name__)
WAITING_FOR_MEMORY = "waiting for memory"
RETRY_S = 10.0  # until a further worker looks again whether there is memory for it


class Crew(Protocol):
    """Those whom a supervisor tells what has become of its worker: the model's host."""

    def changed(self) -> None:
        """Its state is another."""

    def loads_anew(self) -> None:
        """Its worker reads the model's files, which may be others than before."""

    def review(self) -> None:
        """Other requests than before may board now, or nobody may."""

    def landed(self, worker: "Supervisor", flight: Flight) -> None:
        """A request has ended on board."""

    def has_another(self, worker: "Supervisor") -> bool:
        """Whether the model has one besides, or one before it in number is on its way."""

    def gave_up(self, worker: "Supervisor", failed: Failed) -> None:
        """It ends for good, until it is started again."""


class Supervisor:
    """Keeps one worker alive. All methods run on the event loop."""

    def __init__(
        self,
        spec: ModelSpec,
        number: int,
        path: Path,
        config: EngineConfig,
        placement: Placement,
        crew: Crew,
    ) -> None:
        self.model = model = spec.name
        self.spec = spec
        self.number = number + 1
        self.name = model if number == 0 else f"{model} ({number + 1})"
        self.path = path
        self.config = config
        self.state: State = "cold"
        self.detail = ""
        self.progress = 0.0
        self.info: ModelInfo | None = None
        self.stats = EngineStats()
        self.pid: int | None = None
        self.num_restarts = 0
        self.rests_until_s = 0.0
        self.pace = Pace()
        self.prefixes = PrefixMemory()
        self.on_board: dict[str, Flight] = {}
        self._crew = crew
        self._placement = placement
        self.place = placement.host
        self._berth = Berth(self.name, placement.host.residency)
        self._host_bytes: int | None = None  # of a worker that has just left its device
        self._probes = Probes()
        self._channel: AsyncChannel | None = None
        self._process: WorkerProcess | None = None
        self._watchdog: Watchdog
        self._task: asyncio.Task[None] | None = None
        self._restarts = Restarts(config.max_restarts_per_minute)
        self._is_innocent = False  # neither the worker nor what it did brought its end about
        self._falls_asleep = False
        self._stay = Stay(
            self.name,
            placement.host.residency,
            model=model,
            sleep_after_s=config.sleep_after_s,
            sleep=self._fall_asleep,
            review=crew.review,
        )

    @property
    def is_awake(self) -> bool:
        return self.state in ("loading", "ready")

    @property
    def is_ready(self) -> bool:
        return self.state == "ready" and self._channel is not None

    @property
    def is_straggling(self) -> bool:
        return self.state == "ready" and self.pace.is_slow

    @property
    def was_started(self) -> bool:
        return self.state != "cold" or self.info is not None

    def as_state(self) -> WorkerState:
        return WorkerState(
            self.model,
            self.number,
            self.state,
            self.place.gpus if self.is_awake else (),
            self.is_straggling,
            self.num_restarts,
            self.stats,
        )

    def is_too_late(self, flight: Flight) -> bool:
        """Whether a request came behind those for whom this worker has to make room."""
        return self._stay.is_too_late(flight.since_s)

    # --- requests -----------------------------------------------------------------------------

    def take(self, flight: Flight) -> None:
        """Send a request to the worker, which is ready."""
        assert self._channel is not None
        flight.is_on_board = True
        flight.boarded_s = monotonic()
        self.on_board[flight.wire_id] = flight
        self._stay.use()
        self._channel.send(Submit(flight.as_sent()))

    def abort(self, flight: Flight) -> None:
        """Stop a request on board at the worker's next step."""
        if self.is_ready:
            assert self._channel is not None
            self._channel.send(Abort(flight.wire_id))
        else:
            flight.hear_aborted()

    def give_way(self, for_s: float) -> None:
        """Compute no chore for so long, if there is one on board."""
        flights = self.on_board.values()
        if self.is_ready and any(isinstance(f, Encoding) and f.request.is_chore for f in flights):
            assert self._channel is not None
            self._channel.send(GiveWay(for_s))

    def forget(self, flight: Flight) -> None:
        """Nobody reads what becomes of a request any more."""
        self.on_board.pop(flight.wire_id, None)

    async def count_cached(
        self, prompts: Sequence[Sequence[int]], kv_salt: str, timeout_s: float
    ) -> tuple[int, ...] | None:
        """How many tokens of each prompt are in the KV cache; None where no answer came in time.

        A worker that is not there, or has still to load, has none.
        """
        if not self.is_ready or not prompts:
            return (0,) * len(prompts)
        assert self._channel is not None
        return await self._probes.ask(self._channel, prompts, kv_salt, timeout_s)

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Spawn the worker if there is none; one that was given up is tried again, or it wakes."""
        if self.is_awake:
            return
        self._restarts.forget()
        self.rests_until_s = 0.0
        self._set_state("loading", "waking" if self.state == "asleep" else "starting")
        supervise = self._supervise(previous=self._task)
        self._task = asyncio.create_task(supervise, name=f"supervisor {self.name}")

    async def close(self) -> None:
        """End the worker and forget what is on board."""
        if self._task is not None:
            if self._channel is not None:
                self._channel.send(Shutdown())
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._berth.clear()
        self.on_board.clear()
        self._set_state("cold", "")

    async def _supervise(self, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None:  # of a worker that failed or sleeps, which is still being buried
            await asyncio.gather(previous, return_exceptions=True)
        while True:
            try:
                reason = await self._live()
            except NoSpareMemory:
                self.rests_until_s = monotonic() + RETRY_S
                self._set_state("asleep" if self.info else "cold", "")
                return
            except ModelError as error:
                self._give_up(error.code, str(error))
                return
            except Misplaced:
                logger.info("%s computes on the processor, and is started anew there", self.name)
                continue
            except OSError as error:
                reason = f"it could not be started: {error}"
            except Exception:  # our own fault: nobody would notice a supervisor that is no more
                logger.exception("the supervisor of %s's worker failed", self.name)
                reason = "its supervisor failed"
            if reason is None:
                return
            logger.warning("the worker of %s ended: %s", self.name, reason)
            self._lose_flights(reason)
            is_failed_load = self.state == "loading" and not self._is_innocent
            given_up = self._restarts.note_death(reason, is_failed_load=is_failed_load)
            if given_up is not None:
                self.rests_until_s = monotonic() + given_up.rest_s
                self._give_up("worker_died", given_up.message)
                return
            self.num_restarts += 1
            self._set_state("loading", "restarting")
            await asyncio.sleep(self._restarts.pause_s)

    async def _live(self) -> str | None:
        """Wait for memory, and run a worker in it: as `_run_worker`.

        Raises ModelError, NoSpareMemory, Misplaced.
        """
        self._falls_asleep = self._is_innocent = False
        is_chat = self.spec.kind == "chat"
        lying = self._berth.lying
        place = lying.place if lying else self._placement.choose(self.model, is_chat=is_chat)
        self.place = place
        with self._placement.at(place, self.model):
            needs = lying.needs if lying else await self._estimate(place)
            is_further = bool(place.gpus) and self._crew.has_another(self)
            with self._stay.room(place.residency, needs.size_bytes, is_further=is_further):
                if self._stay.is_waiting:
                    self._set_state("loading", WAITING_FOR_MEMORY)
                    await self._stay.granted()
                return await self._run_worker(needs)

    async def _estimate(self, place: Place) -> Needs:
        facts = (self.model, self.path, self.config, place.residency.budget_bytes())
        return await asyncio.to_thread(partial(estimate_needs, *facts, on_gpu=bool(place.gpus)))

    async def _run_worker(self, needs: Needs) -> str | None:
        """One process from its start or its waking on: why it died, or None if another would do no good.

        That is where the model does not load, and where it sleeps.
        """
        if (worker := await self._berth.take()) is not None:
            worker.channel.send(Wake())
        else:
            worker = await self._begin(needs)
        self._process, self._channel = worker.process, worker.channel
        self.pid = self._process.pid
        self.stats = EngineStats()
        self.pace.forget_worker()
        self._host_bytes = None
        self._watchdog = Watchdog(self._process, self.config, self._waiting_since_s)
        watching = asyncio.create_task(self._watchdog.watch())
        try:
            return await self._pump(self._channel, self._watchdog, needs)
        finally:
            watching.cancel()
            self._channel = self.pid = None
            self.prefixes.clear()
            host_bytes = self._host_bytes
            if host_bytes is None or not self._berth.lay(worker, host_bytes):
                await worker.end()

    async def _begin(self, needs: Needs) -> LiveWorker:
        """A new process, which has been told what to load."""
        process, ours = await spawn(self.config, self.place.gpus)
        words = asyncio.create_task(log_words_of(process.stderr, self.name))
        config = replace(
            self.config, kv_bytes=needs.kv_bytes or None, has_own_gpus=bool(self.place.gpus)
        )
        if needs.draft_problem:
            config = replace(config, draft_models=())
        if needs.adapter_problem:
            config = config.without_adapters(needs.adapter_problem)
        try:
            channel = await AsyncChannel.open(ours)
        except BaseException:
            await bury(process)
            words.cancel()
            raise
        channel.send(WorkerSetup(config, self.model, self.path))
        self._crew.loads_anew()
        return LiveWorker(process, channel, words, self.place, needs)

    async def _pump(self, channel: AsyncChannel, watchdog: Watchdog, needs: Needs) -> str | None:
        """Hand out what the worker says until it has nothing more to say."""
        while True:
            try:
                value = await channel.receive()
            except EOFError:
                return None if self._falls_asleep else self._reason_of_death(watchdog)
            if isinstance(value, Asleep):
                self._host_bytes = value.host_bytes
                return None
            if self._falls_asleep:
                continue  # what was on its way is for nobody
            watchdog.hear()
            match value:
                case StepFrame():
                    self._hear(value)
                case Loading(phase, fraction):
                    self._set_state("loading", phase, fraction)
                case Ready(info, load_s):
                    self._check_place(info)
                    logger.info("%s is ready after %.1f s", self.name, load_s)
                    if needs.draft_problem:
                        info = replace(info, draft_problem=needs.draft_problem)
                    watchdog.is_loading = False
                    self._become_ready(info, replace(needs, weights_bytes=info.weights_bytes))
                case LoadFailed(code, message):
                    self._give_up(code, message)
                    return None

    def _check_place(self, info: ModelInfo) -> None:
        """Raises Misplaced where a GPU's memory is held that the model has no use for."""
        if self.place.gpus and info.device == "cpu":
            self._placement.keep_on_host(self.model)
            raise Misplaced

    def _hear(self, frame: StepFrame) -> None:
        self.stats = frame.stats
        self._note_pace(frame.stats)
        for wire_id, update in frame.updates:
            if isinstance(update, Cached):
                self._probes.hear(wire_id, update)
            elif flight := self.on_board.get(wire_id):
                flight.hear(update)
                if flight.ended:
                    del self.on_board[wire_id]
                    self._crew.landed(self, flight)
        self._crew.review()

    def _reason_of_death(self, watchdog: Watchdog) -> str:
        self._is_innocent = self._process is not None and self._process.has_lost_its_zygote
        if self._is_innocent:
            return "the process that forks workers ended"
        return f"no sign for {watchdog.patience_s:g} s" if watchdog.has_killed else "it died"

    def _note_pace(self, stats: EngineStats) -> None:
        was_slow = self.pace.is_slow
        self.pace.hear(stats)
        if self.pace.is_slow == was_slow:
            return
        if self.pace.is_slow:
            logger.warning(
                "the worker of %s is a straggler: its steps take %.1f times as long as they did"
                " when all was calm",
                *(self.name, self.pace.ratio),
            )
        else:
            logger.info("the worker of %s has its pace back", self.name)
        self._crew.changed()

    def _become_ready(self, info: ModelInfo, needs: Needs) -> None:
        if self.info is not None and self.info.revision != info.revision:
            self.pace = Pace()
        self.info = info
        self._restarts.note_ready()
        self.state, self.detail, self.progress = "ready", "", 1.0
        self._stay.settle(needs.size_bytes)
        self._crew.changed()
        self._crew.review()

    def _waiting_since_s(self) -> float:
        return min((flight.boarded_s for flight in self.on_board.values()), default=inf)

    # --- sleep --------------------------------------------------------------------------------

    def rest_if_unused(self) -> None:
        if self.is_ready and not self.on_board:
            self._stay.rest()

    def stop_waiting(self) -> None:
        """Who wanted the worker has left, so that no other has to make room for it."""
        if not self._stay.is_waiting:
            return
        if self._task is not None:
            self._task.cancel()
        self._set_state("asleep" if self.info else "cold", "")

    def _fall_asleep(self) -> None:
        """Let a worker that has nothing on board give its memory back: it goes to lie on the host, or
        ends. Killed, for it may not be able to hear."""
        logger.info("%s falls asleep", self.name)
        self._falls_asleep = True
        self._stay.leave()
        if self._may_lie_on_host():
            assert self._channel is not None
            self._watchdog.is_loading = True  # it owes a sign, and has as long as for loading
            self._watchdog.hear()
            self._channel.send(Sleep())
        elif self._process is not None and not self._process.has_ended:
            self._process.kill()
        self.stats = EngineStats()
        self.pace.forget_worker()
        self._set_state("asleep", "")
        self._crew.review()

    def _may_lie_on_host(self) -> bool:
        wanted = self.config.sleeps_on_host
        if wanted is None:
            wanted = bool(self.place.gpus)
        is_able = self.spec.kind == "chat" and self.config.num_ranks(self.model) == 1
        if not (wanted and is_able and self.is_ready and self.info):
            return False
        return self._berth.has_room(self.info.weights_bytes)

    # --- death --------------------------------------------------------------------------------

    def _lose_flights(self, reason: str) -> None:
        """What was on board may board another worker, unless it may be what kills them."""
        lost, self.on_board = self.on_board, {}
        if self.state == "ready" and not self._is_innocent:
            lose_worker(lost.values())
        for flight in lost.values():
            flight.is_on_board = False
            if flight.is_lost:
                message = (
                    f"The engine worker died {flight.num_deaths} times on this request ({reason})."
                )
                flight.hear(Failed(flight.failed_code, message))
            elif flight.aborted_s is not None:
                flight.hear_aborted()  # its abort went down with the worker

    def _give_up(self, code: str, message: str) -> None:
        self._set_state("failed", message)
        self._crew.gave_up(self, Failed(code, message))

    def _set_state(self, state: State, detail: str, progress: float = 0.0) -> None:
        self.state, self.detail, self.progress = state, detail, progress
        self._crew.changed()

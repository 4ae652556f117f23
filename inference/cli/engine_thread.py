"""An engine beside a terminal: its event loop has a thread, the keyboard has the main one.

`input()` blocks, and only in the main thread does Ctrl-C end it; the loop must go on meanwhile, or
the engine would take its worker for silent.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from inference.catalog import ModelState
from inference.config import EngineConfig
from inference.engine import Engine
from inference.errors import EngineError, ModelError
from inference.messages import Failed, Finished, GenerateRequest, Update

T = TypeVar("T")


class EngineThread:
    """Runs an engine until the end of its `with` block; its workers end with it."""

    def __init__(self, config: EngineConfig) -> None:
        self.engine = Engine(config)
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, name="engine", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self.engine.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await something on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def start_loading(self, model: str) -> None:
        self.loop.call_soon_threadsafe(self.engine.load, model)

    def load(self, model: str) -> Iterator[ModelState]:
        """How a model's loading goes, until it is ready. Raises ModelError where it cannot be."""
        states: SimpleQueue[ModelState] = SimpleQueue()
        self.start_loading(model)
        watching = asyncio.run_coroutine_threadsafe(self._watch(model, states), self.loop)
        try:
            while (state := states.get()).state != "ready":
                if state.state == "failed":
                    raise ModelError(state.detail)
                yield state
        finally:
            watching.cancel()

    async def _watch(self, model: str, states: SimpleQueue[ModelState]) -> None:
        async for _ in self.engine.changes():
            states.put(self.engine.state(model))

    def generate(self, request: GenerateRequest) -> Iterator[Update]:
        """What a request hears, to its end. Leaving the iterator aborts it."""
        updates: SimpleQueue[Update] = SimpleQueue()
        hearing = asyncio.run_coroutine_threadsafe(self._hear(request, updates), self.loop)
        try:
            while True:
                yield (update := updates.get())
                if isinstance(update, Finished | Failed):
                    return
        finally:
            hearing.cancel()

    async def _hear(self, request: GenerateRequest, updates: SimpleQueue[Update]) -> None:
        try:
            async for update in self.engine.generate(request):
                updates.put(update)
        except EngineError as error:
            updates.put(Failed.of(error))

    def abort(self, request: GenerateRequest) -> None:
        """End a request that `generate` began, from a signal's handler too.

        Two turns of the loop later, so that one that was just begun is known to the engine.
        """
        self.loop.call_soon_threadsafe(
            self.loop.call_soon, self.engine.abort, request.model, request.request_id
        )

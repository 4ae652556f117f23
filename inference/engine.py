"""The engine as the rest of Vitrine sees it: models by name, and answers as streams of updates."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from inference.catalog import ModelSpec, ModelState, discover
from inference.config import EngineConfig
from inference.defaults import SamplingDefaults, read_context_tokens, read_sampling_defaults
from inference.errors import UnknownModel
from inference.host import WorkerHost
from inference.messages import EngineStats, GenerateRequest, Update
from inference.tokenizer import ChatTokenizer


class Engine:
    """The pool of workers, one per loaded model. Lives on one event loop; loads no torch."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._hosts: dict[str, WorkerHost] = {}
        self._tokenizers: dict[str, asyncio.Task[ChatTokenizer]] = {}
        self._sampling_defaults: dict[str, SamplingDefaults] = {}
        self._changed = asyncio.Event()
        self.refresh()

    # --- models -------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look for models again: one may have been pulled since."""
        found = discover(self.config)
        added = [name for name in found if name not in self._hosts]
        for name in added:
            self._hosts[name] = WorkerHost(found[name], self.config, self._announce)
        if added:
            self._announce()

    @property
    def default_model(self) -> str:
        """The model for those who name none: as configured, else the first of the catalogue."""
        return self.config.default_model or next(iter(self._hosts))

    def models(self) -> list[ModelState]:
        """Every model of the catalogue and how it stands, those pulled a moment ago included."""
        self.refresh()
        return [
            host.as_state(is_default=name == self.default_model)
            for name, host in self._hosts.items()
        ]

    def spec(self, model: str) -> ModelSpec:
        return self._host(model).spec

    def state(self, model: str) -> ModelState:
        return self._host(model).as_state(is_default=model == self.default_model)

    def stats(self, model: str) -> EngineStats:
        return self._host(model).stats

    def worker_pid(self, model: str) -> int | None:
        """The process id of the model's worker; None while there is none."""
        return self._host(model).pid

    async def changes(self) -> AsyncIterator[None]:
        """Yields whenever some model's state has changed. A slow reader misses none but merges."""
        while True:
            changed = self._changed
            yield
            await changed.wait()

    def load(self, model: str) -> None:
        """Start loading a model in the background; `models()` shows how it goes."""
        self._host(model).start()

    async def unload(self, model: str) -> None:
        await self._host(model).close()

    async def close(self) -> None:
        """End every worker."""
        await asyncio.gather(*(host.close() for host in self._hosts.values()))

    # --- requests -----------------------------------------------------------------------------

    async def tokenizer(self, model: str) -> ChatTokenizer:
        """The tokenizer of a model; read once, in a thread. Raises ModelError."""
        task = self._tokenizers.get(model)
        if task is None or (task.done() and task.exception() is not None):
            path = self.spec(model).path
            task = asyncio.create_task(asyncio.to_thread(ChatTokenizer.load, path))
            self._tokenizers[model] = task
        return await asyncio.shield(task)

    def context_tokens(self, model: str) -> int:
        """Prompt and answer together may have so many tokens. Raises ModelError.

        A model that is not loaded tells what its files say; memory may allow less.
        """
        loaded = self._host(model).info
        if loaded is not None:
            return loaded.max_context_tokens
        return read_context_tokens(self.spec(model).path)

    def sampling_defaults(self, model: str) -> SamplingDefaults:
        """How the makers of a model want it to be sampled."""
        if model not in self._sampling_defaults:
            self._sampling_defaults[model] = read_sampling_defaults(self.spec(model).path)
        return self._sampling_defaults[model]

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        """Queue a request and hear of it until it ends; a cold model is loaded first.

        Leaving the iterator aborts. Raises UnknownModel at once.
        """
        return self._host(request.model).generate(request)

    def abort(self, model: str, request_id: str) -> None:
        """Stop a request at the next step. Its iterator ends with `Finished("abort")`."""
        self._host(model).abort(request_id)

    def _host(self, model: str) -> WorkerHost:
        host = self._hosts.get(model)
        if host is None:
            self.refresh()
            host = self._hosts.get(model)
        if host is None:
            raise UnknownModel(model)
        return host

    def _announce(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

"""The engine as the rest of Vitrine sees it: models by name, answers as streams of updates, texts as
vectors and scores."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import replace

from inference.adapted_model import AdaptedModel
from inference.catalog import ModelSpec, ModelState, WorkerState, discover, problem_of
from inference.config import EngineConfig
from inference.defaults import SamplingDefaults, read_context_tokens, read_sampling_defaults
from inference.encode_messages import Caller
from inference.encoder import Classifications, Embeddings, Encoder, Reranking
from inference.encoder_layout import EncoderLayout, read_encoder_layout
from inference.encoder_revision import read_encoder_revision
from inference.encoder_tokenizer import EncoderTokenizer
from inference.errors import UnknownModel, WrongKind
from inference.file_stamps import Stamp, stamp_of
from inference.hearing import Hearing
from inference.host import ModelHost
from inference.kinds import KIND_NAMES, ModelKind
from inference.messages import EngineStats, GenerateRequest, ModelInfo, Update
from inference.pictures import PictureRequest, Pictures
from inference.placement import Placement
from inference.sound import SpeechRequest, Transcript, TranscriptionRequest
from inference.tokenizer import ChatTokenizer
from inference.upstreams import audio
from inference.upstreams.drawing import draw
from inference.upstreams.messages import ChatRequest, UpstreamUpdate
from inference.upstreams.speaking import speak
from inference.upstreams.spec import UpstreamSpec
from inference.upstreams.upstream import Upstream

logger = logging.getLogger(__name__)


class Engine:
    """The pool of workers, one or several per loaded model, and beside it the models of other servers.

    Lives on one event loop; loads no torch.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._served: dict[str, ModelHost | AdaptedModel | Upstream] = {}
        self._left_out: dict[str, str] = {}  # adapters, with the reasons
        self._upstream_specs = {upstream.name: upstream for upstream in config.upstreams}
        self._own_config = replace(config, upstreams=())  # for workers, who are told no keys
        self._placement = Placement(config)
        self._tokenizers: dict[str, asyncio.Task[ChatTokenizer]] = {}
        self._encoders: dict[str, asyncio.Task[Encoder]] = {}
        self._hearings: dict[str, asyncio.Task[Hearing]] = {}
        self._sampling_defaults: dict[str, SamplingDefaults] = {}
        self._stamps: dict[str, Stamp] = {}  # of the files of hosts, of which these were read
        self._leaving: dict[str, asyncio.Task[None]] = {}  # models that were deleted
        self._changed = asyncio.Event()
        self.refresh()

    # --- models -------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look for models again: one may have been pulled since, or deleted."""
        found = discover(self.config)
        gone = self._let_go(found)
        added = [
            name
            for name, spec in found.items()
            if name not in self._served and self._leaving.keys().isdisjoint({name, spec.base})
        ]
        for name in added:
            self._served[name] = self._serve(found[name])
        self._tell_left_out(found)
        if added or gone:
            self._announce()

    def _let_go(self, found: Mapping[str, ModelSpec]) -> list[str]:
        """Pulled models whose directories are no more, and their adapters, once nobody uses them.

        While files of a new revision take the place of old ones, the directory is there. Nothing goes
        where there is no loop to end the workers on: in a thread that only reads.
        """
        if not _is_on_loop():
            return []
        gone = [
            (name, served)
            for name, served in self._served.items()
            if name not in found and _is_deleted(served)
        ]
        for name, served in gone:
            del self._served[name]
            self._stamps.pop(name, None)
            self._forget(name)
            if isinstance(served, ModelHost):
                self._leaving[name] = asyncio.create_task(self._close(name, served))
        return [name for name, _ in gone]

    async def _close(self, name: str, host: ModelHost) -> None:
        try:
            await host.close()
        finally:
            del self._leaving[name]

    def _serve(self, spec: ModelSpec) -> ModelHost | AdaptedModel | Upstream:
        if spec.base:
            (path,) = (one.path for one in self.config.served_adapters if one.name == spec.name)
            return AdaptedModel(spec, self._host(spec.base), path)
        if spec.path is None:
            return Upstream(spec, self._upstream_specs[spec.name], self._announce)
        return ModelHost(
            spec, spec.path, self._own_config, self._placement, self._announce, self._loads_anew
        )

    def _tell_left_out(self, found: dict[str, ModelSpec]) -> None:
        """Log why an adapter is no model, once: its base may be pulled yet."""
        for adapter in self.config.adapters:
            problem = problem_of(adapter, found)
            if problem and self._left_out.get(adapter.name) != problem:
                logger.warning("%s", problem)
            self._left_out[adapter.name] = problem

    @property
    def default_model(self) -> str:
        """The model for those who name none: as configured, where that is there and can chat; else the
        first of the catalogue, for what was pulled may have been deleted."""
        configured = self._served.get(self.config.default_model)
        if configured is not None and configured.spec.kind == "chat":
            return configured.spec.name
        return next(iter(self._served))

    def models(self, kind: ModelKind | None = None) -> list[ModelState]:
        """The models of the catalogue and how they stand, those pulled a moment ago included.

        All that are not internal, or those of one kind.
        """
        self.refresh()
        return [
            served.as_state(is_default=name == self.default_model)
            for name, served in self._served.items()
            if not served.spec.is_internal and (kind is None or served.spec.kind == kind)
        ]

    def require(self, model: str, kind: ModelKind) -> None:
        """Raises UnknownModel, or WrongKind where a model is made for something else."""
        own_kind = self.spec(model).kind
        if own_kind != kind:
            raise WrongKind(model, kind=KIND_NAMES[own_kind], wanted=KIND_NAMES[kind])

    def spec(self, model: str) -> ModelSpec:
        return self._find(model).spec

    def is_internal(self, model: str) -> bool:
        """Whether a model is there for the program's own use."""
        served = self._served.get(model)
        return served is not None and served.spec.is_internal

    def is_upstream(self, model: str) -> bool:
        """Whether another server runs the model: it is asked by chat(), not by generate()."""
        return isinstance(self._find(model), Upstream)

    def upstream_spec(self, model: str) -> UpstreamSpec:
        return self._upstream(model).upstream

    def sees_images(self, model: str) -> bool:
        """Whether messages for it may have images."""
        served = self._find(model)
        if isinstance(served, Upstream):
            return served.upstream.sees_images
        return served.sees_images

    def state(self, model: str) -> ModelState:
        return self._find(model).as_state(is_default=model == self.default_model)

    def max_context_tokens(self, model: str) -> int | None:
        """How long a prompt and its answer may be together; None where nobody has told yet."""
        return self._find(model).max_context_tokens

    def revision(self, model: str) -> str:
        """Which weights answer; empty until they were loaded, and of other servers' models."""
        return self._find(model).revision

    def info(self, model: str) -> ModelInfo | None:
        """What a loaded model is, of an adapter its base; None until it is loaded."""
        return self._host(model).info

    def stats(self, model: str) -> EngineStats:
        return self._host(model).stats

    def worker_pid(self, model: str) -> int | None:
        """The process id of the model's worker, of several the first; None while there is none."""
        return next(iter(self.worker_pids(model)), None)

    def worker_pids(self, model: str) -> list[int]:
        """Of all its workers that there are now."""
        return [worker.pid for worker in self._host(model).workers if worker.pid is not None]

    def workers(self) -> list[WorkerState]:
        """Every worker that there is or was, of all models. Looks for no new models."""
        hosts = [served for served in self._served.values() if isinstance(served, ModelHost)]
        return [
            worker.as_state() for host in hosts for worker in host.workers if worker.was_started
        ]

    def give_way(self, for_s: float) -> None:
        """Leave the processors to an answer that begins: encoders that compute chores (the class
        `background`) stop for so long, but for half of the time at most."""
        for served in self._served.values():
            if isinstance(served, ModelHost) and served.spec.kind != "chat":
                for worker in served.workers:
                    worker.give_way(for_s)

    async def changes(self) -> AsyncIterator[None]:
        """Yields whenever some model's state has changed. A slow reader misses none but merges."""
        while True:
            changed = self._changed
            yield
            await changed.wait()

    def load(self, model: str) -> None:
        """Start loading a model in the background; `models()` shows how it goes.

        Servers that were given up for a while are tried again at once.
        """
        served = self._find(model)
        if isinstance(served, Upstream):
            served.try_again()
        else:
            self._host(model).start()

    async def has_room(self, model: str) -> bool:
        """Whether a model is loaded or on its way, or could be without another one making room for it.

        For work that nobody waits for. Raises ModelError.
        """
        return await self._host(model).has_room()

    async def unload(self, model: str) -> None:
        """Of an adapter, its base with all of its adapters."""
        await self._host(model).close()

    async def close(self) -> None:
        """End every worker, and hang up on other servers."""
        own = [one for one in self._served.values() if not isinstance(one, AdaptedModel)]
        await asyncio.gather(*(served.close() for served in own), *self._leaving.values())

    # --- answers ------------------------------------------------------------------------------

    async def tokenizer(self, model: str) -> ChatTokenizer:
        """The tokenizer of a chat model; read once, in a thread. Raises ModelError, WrongKind."""
        self.require(model, "chat")
        task = self._tokenizers.get(model)
        if task is None or (task.done() and task.exception() is not None):
            self._note_files(model)
            task = self._tokenizers[model] = asyncio.create_task(self._read_tokenizer(model))
        return await asyncio.shield(task)

    async def _read_tokenizer(self, model: str) -> ChatTokenizer:
        """An adapter has its base's, with its own chat template if it brings one."""
        served, template = self._local(model), ""
        if isinstance(served, AdaptedModel):
            template = await asyncio.to_thread(served.read_chat_template)
            if not template:
                return await self.tokenizer(served.host.spec.name)
        return await asyncio.to_thread(ChatTokenizer.load, self._host(model).path, template)

    def context_tokens(self, model: str) -> int:
        """Prompt and answer together may have so many tokens. Raises ModelError.

        A model that is not loaded tells what its files say; memory may allow less.
        """
        host = self._host(model)
        if host.info is not None:
            return host.info.max_context_tokens
        return read_context_tokens(host.path)

    def sampling_defaults(self, model: str) -> SamplingDefaults:
        """How the makers of a model want it to be sampled."""
        if model not in self._sampling_defaults:
            self._note_files(model)
            self._sampling_defaults[model] = read_sampling_defaults(self._host(model).path)
        return self._sampling_defaults[model]

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        """Queue a request and hear of it until it ends; a cold model is loaded first.

        Leaving the iterator aborts. Raises UnknownModel or WrongKind at once.
        """
        self.require(request.model, "chat")
        return self._local(request.model).generate(request)

    def chat(self, request: ChatRequest) -> AsyncGenerator[UpstreamUpdate, None]:
        """Ask another server's model and hear of it until it ends.

        Leaving the iterator hangs up. Raises UnknownModel or WrongKind at once.
        """
        self.require(request.model, "chat")
        return self._upstream(request.model).chat(request)

    async def count_cached(
        self,
        model: str,
        prompts: Sequence[Sequence[int]],
        *,
        cache_salt: str,
        timeout_s: float = 1.0,
    ) -> tuple[int, ...] | None:
        """How many tokens of each prompt a model's KV cache holds, asked between two of its steps.

        None where no answer came in time. Wakes no model. Raises UnknownModel, WrongKind.
        """
        self.require(model, "chat")
        return await self._local(model).count_cached(prompts, cache_salt, timeout_s)

    def abort(self, model: str, request_id: str) -> None:
        """Stop a request at the next step. Its iterator ends with `Finished("abort")`."""
        self._find(model).abort(request_id)

    # --- vectors and scores -------------------------------------------------------------------

    # What these have in common: a cold model is loaded first, cancelling aborts at the next step,
    # and a worker's death costs a pause. A text longer than the model's window raises TextTooLong,
    # or loses its end with `truncate`. They raise EngineError.

    async def embed(
        self,
        model: str,
        texts: Sequence[str | Sequence[int]],
        *,
        prompt_name: str | None = None,
        truncate: bool = False,
        dimensions: int | None = None,
        caller: Caller | None = None,
    ) -> Embeddings:
        """A vector for each text; of length 1 where the model's files say so.

        A text may be token ids, read as they are. `prompt_name` is one of the model's own ("query",
        "document" …); None is its default one, often none. `dimensions` cuts vectors of models that
        are made for it.
        """
        encoder = await self._encoder(model, "embedding")
        return await encoder.embed(
            texts,
            prompt_name=prompt_name,
            truncate=truncate,
            dimensions=dimensions,
            caller=caller or Caller(),
        )

    async def classify(
        self,
        model: str,
        texts: Sequence[str | tuple[str, str]],
        *,
        truncate: bool = False,
        caller: Caller | None = None,
    ) -> Classifications:
        """All labels of each text, or of each pair of texts, with their probabilities."""
        encoder = await self._encoder(model, "classifier")
        return await encoder.classify(texts, truncate=truncate, caller=caller or Caller())

    async def rerank(
        self,
        model: str,
        query: str,
        documents: Sequence[str],
        *,
        truncate: bool = False,
        caller: Caller | None = None,
    ) -> Reranking:
        """How well each document answers the query."""
        encoder = await self._encoder(model, "reranker")
        return await encoder.rerank(query, documents, truncate=truncate, caller=caller or Caller())

    # --- sound --------------------------------------------------------------------------------

    async def transcribe(self, request: TranscriptionRequest) -> Transcript:
        """What is said in a file. Cancelling ends it. Raises EngineError, BadSound among them."""
        self.require(request.model, "transcription")
        served = self._find(request.model)
        if isinstance(served, Upstream):
            return await audio.transcribe(served, request)
        return await (await self._hearing(request.model)).transcribe(request)

    def speak(self, request: SpeechRequest) -> AsyncGenerator[bytes, None]:
        """A text as sound, in pieces, by a model on another server; leaving it early hangs up.

        Raises UnknownModel or WrongKind at once.
        """
        self.require(request.model, "speech")
        return speak(self._upstream(request.model), request)

    async def draw(self, request: PictureRequest) -> Pictures:
        """Pictures by a model on another server. Cancelling hangs up. Raises EngineError."""
        self.require(request.model, "image")
        return await draw(self._upstream(request.model), request)

    async def _hearing(self, model: str) -> Hearing:
        """Read once, in a thread. Raises ModelError."""
        task = self._hearings.get(model)
        if task is None or (task.done() and task.exception() is not None):
            self._note_files(model)
            host = self._host(model)
            loading = asyncio.to_thread(Hearing.load, host.path, host.hear)
            task = self._hearings[model] = asyncio.create_task(loading)
        return await asyncio.shield(task)

    async def encoder_layout(self, model: str) -> EncoderLayout:
        """What the files of an encoder say: its dimensions, window, prompts, labels."""
        return (await self._encoder(model, self.spec(model).kind)).layout

    async def encoder_revision(self, model: str) -> str:
        """As `ModelState.revision`; of one that has not been loaded yet as its files are now, which are
        read anew each time. Raises ModelError."""
        if revision := self.revision(model):
            return revision
        served = self._local(model)
        if isinstance(served, AdaptedModel):
            return await asyncio.to_thread(served.read_revision)
        return await asyncio.to_thread(read_encoder_revision, served.path)

    async def _encoder(self, model: str, kind: ModelKind) -> Encoder:
        """Read once, in a thread. Raises ModelError, WrongKind."""
        self.require(model, kind)
        task = self._encoders.get(model)
        if task is None or (task.done() and task.exception() is not None):
            self._note_files(model)
            task = asyncio.create_task(asyncio.to_thread(_read_encoder, self._local(model)))
            self._encoders[model] = task
        return await asyncio.shield(task)

    # --- what was read of files -----------------------------------------------------------------

    def _note_files(self, model: str) -> None:
        """Something is about to be read of them, and kept."""
        host = self._host(model)
        self._stamps.setdefault(host.spec.name, self._stamp_of(host))

    def _loads_anew(self, base: str) -> None:
        """A worker reads a model's files: what is kept of other ones does not fit it any more."""
        host = self._host(base)
        if self._stamps.get(base) in (None, self._stamp_of(host)):
            return
        del self._stamps[base]
        for model, served in self._served.items():
            if served is host or (isinstance(served, AdaptedModel) and served.host is host):
                self._forget(model)

    def _forget(self, model: str) -> None:
        for kept in (self._tokenizers, self._encoders, self._hearings, self._sampling_defaults):
            kept.pop(model, None)

    def _stamp_of(self, host: ModelHost) -> Stamp:
        """With the files of its adapters."""
        adapted = (one for one in self._served.values() if isinstance(one, AdaptedModel))
        return stamp_of([host.path, *(one.path for one in adapted if one.host is host)])

    def _host(self, model: str) -> ModelHost:
        """Of an adapter, its base's."""
        served = self._local(model)
        return served.host if isinstance(served, AdaptedModel) else served

    def _local(self, model: str) -> ModelHost | AdaptedModel:
        served = self._find(model)
        if isinstance(served, Upstream):
            raise UnknownModel(model)
        return served

    def _upstream(self, model: str) -> Upstream:
        served = self._find(model)
        if not isinstance(served, Upstream):
            raise UnknownModel(model)
        return served

    def _find(self, model: str) -> ModelHost | AdaptedModel | Upstream:
        served = self._served.get(model)
        if served is None:
            self.refresh()
            served = self._served.get(model)
        if served is None:
            raise UnknownModel(model)
        return served

    def _announce(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_deleted(served: ModelHost | AdaptedModel | Upstream) -> bool:
    """Whether a model's directory is no more, and nobody waits for an answer of it."""
    if isinstance(served, Upstream):
        return False
    host = served.host if isinstance(served, AdaptedModel) else served
    return not host.path.is_dir() and not host.flights


def _read_encoder(served: ModelHost | AdaptedModel) -> Encoder:
    """An adapter has its base's tokenizer and layout."""
    path = served.host.path if isinstance(served, AdaptedModel) else served.path
    layout = read_encoder_layout(path)
    return Encoder(layout, EncoderTokenizer.load(path, layout), served.encode)

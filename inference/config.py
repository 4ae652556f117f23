"""How the engine is set up. Built once by the web process, sent whole to every worker."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from inference.upstreams.spec import UpstreamSpec

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("auto", "float32", "bfloat16", "int8", "int4", "fp8")
ALL_MODELS = "*"
MAX_WORKERS = 64
KV_DTYPES = ("auto", "fp8")
KV_LAYOUTS = ("auto", "slabs", "paged")
GPU_STEP = ("fusing", "graphs", "overlap")
WORKER_NAME = "vitrine-engine"
"""Of a worker's process; vitrine-worker is Celery's."""


def default_num_threads() -> int:
    """Threads for torch: one core stays free for the web process, whose work cannot wait."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


MAX_NUM_DRAFTING = 4
# More at once are others' time on a processor; on a GPU they are nearly free until some hundred.
_NUM_SEQUENCES_ON_CPU, _NUM_SEQUENCES_ON_GPU = 16, 256
_BUDGET_TOKENS_ON_CPU, _BUDGET_TOKENS_ON_GPU = 256, 2048


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter of a model: `name` is asked for like a model's, `path` its directory.

    With a `problem` it is not read, and whoever asks for it is told that. One that `is_internal` is for
    the program's own use, and not among the models that people are shown.
    """

    name: str
    base: str
    path: Path
    problem: str = ""
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits of the engine.

    All loaded models together keep within `memory_bytes`; None: what is free when the first is loaded,
    less a reserve. One that nobody has used for `sleep_after_s` sleeps; None: only where another needs
    its memory. `kv_bytes` None: of what the weights leave, a quarter for each chat model, at most 4 GiB.

    `max_num_sequences` are decoded at once, and `step_budget_tokens` computed in a step; None: as many
    as suit the device.

    While at most `max_num_drafting` sequences decode, each guesses some tokens ahead (see
    `speculation`); 0 switches that off.

    `draft_models` names, for a model, a small one of the same vocabulary that guesses for it where the
    sequence itself tells nothing. It lies in the same worker, and its keys and values take up to a
    quarter of `kv_bytes`.

    `adapters` are LoRA adapters, which lie in the workers of their models and share their caches.

    `workers` says how many a model may have, ALL_MODELS for those that are not named; one by default.
    They share out `num_threads` and what caches take by default; each has the weights for itself.

    `tensor_parallel` names chat models that are split over several processes (`ranks`), which share out
    the threads and the cache; keys and values are in pages then, and there is no draft model.

    `dtype` is one of DTYPES; "auto" is bfloat16 where the processor multiplies it in hardware, and
    "int8", "int4" and "fp8" are that with linear layers in so many bits, or the nearest that is right
    on a device (`few_bits`; a GPU's int8 is fp8 where it has that). In bfloat16 an answer that is
    resumed may differ from the undisturbed one, and one with drafts from one without: several tokens at
    once round differently.

    `kv_layout` is one of KV_LAYOUTS; "auto" is slabs on a CPU, which reads them in place. Models that
    keep states have slabs in any case: their snapshots belong to one.

    `kv_dtype` is one of KV_DTYPES, what keys and values are kept as; "auto" is as they are computed.
    Those of fp8 are in pages, on any device.

    `device` is one of DEVICES, where chat models compute; "auto" is CUDA where torch finds it. Keys and
    values are in pages there. `has_own_gpus` is said to a worker that sees no GPUs but those that it was
    given; `kv_bytes` are of their memory then, and of the host's else.

    `sleeps_on_host`: a chat model that gives up its device keeps its process, and its weights in the
    host's memory while there is room; None: where it has a GPU of its own. Else its process ends.

    `gpu_step` are those of GPU_STEP that steps on a GPU may use, where a test at load finds them right:
    few large launches in place of small ones, CUDA graphs of steps in which all decode, and launching
    the next one before the last one is read.

    `upstreams` are models on other servers; workers are told nothing of them, nor of their keys.

    Tokens go to the web process at most every `gather_s`, and a millisecond more for each stream (see
    `gathering`); 0: with each step.

    A worker that says nothing for `watchdog_s` while it has requests, or for `loading_watchdog_s`
    while it loads, is replaced. A step takes seconds at most; reading a large model from a slow disk
    takes minutes.
    """

    models_dir: Path
    extra_models: tuple[str, ...] = ()
    upstreams: tuple[UpstreamSpec, ...] = ()
    default_model: str = ""
    num_threads: int = field(default_factory=default_num_threads)
    max_num_sequences: int | None = None
    step_budget_tokens: int | None = None
    max_waiting_tokens: int = 400_000
    max_num_drafting: int = MAX_NUM_DRAFTING
    memory_bytes: int | None = None
    sleep_after_s: float | None = None
    draft_models: tuple[tuple[str, str], ...] = ()
    adapters: tuple[Adapter, ...] = ()
    workers: tuple[tuple[str, int], ...] = ()
    tensor_parallel: tuple[tuple[str, int], ...] = ()
    kv_bytes: int | None = None
    dtype: str = "auto"
    kv_layout: str = "auto"
    kv_dtype: str = "auto"
    device: str = "auto"
    has_own_gpus: bool = False
    sleeps_on_host: bool | None = None
    gpu_step: tuple[str, ...] = GPU_STEP
    gather_s: float = 0.03
    watchdog_s: float = 120.0
    loading_watchdog_s: float = 600.0
    max_restarts_per_minute: int = 5

    def num_sequences_on(self, device: str) -> int:
        """How many a worker decodes at once, on a device of that type."""
        if self.max_num_sequences is not None:
            return self.max_num_sequences
        return _NUM_SEQUENCES_ON_CPU if device == "cpu" else _NUM_SEQUENCES_ON_GPU

    def budget_tokens_on(self, device: str) -> int:
        """How many a step computes at most, on a device of that type."""
        if self.step_budget_tokens is not None:
            return self.step_budget_tokens
        return _BUDGET_TOKENS_ON_CPU if device == "cpu" else _BUDGET_TOKENS_ON_GPU

    def num_workers(self, model: str) -> int:
        counts = dict(self.workers)
        return counts.get(model, counts.get(ALL_MODELS, 1))

    def num_ranks(self, model: str) -> int:
        return dict(self.tensor_parallel).get(model, 1)

    def adapters_of(self, model: str) -> tuple[Adapter, ...]:
        return tuple(adapter for adapter in self.served_adapters if adapter.base == model)

    @property
    def reserved_names(self) -> frozenset[str]:
        """Of the program's own adapters, which no other model has."""
        return frozenset(adapter.name for adapter in self.adapters if adapter.is_internal)

    @property
    def served_adapters(self) -> tuple[Adapter, ...]:
        """Those that do not have such a name without being one of them."""
        reserved = self.reserved_names
        return tuple(a for a in self.adapters if a.is_internal or a.name not in reserved)

    def without_adapters(self, problem: str) -> "EngineConfig":
        """The same, with all adapters refused for this reason."""
        adapters = tuple(replace(adapter, problem=problem) for adapter in self.adapters)
        return replace(self, adapters=adapters)


def parse_draft_models(entries: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`BIG=SMALL`, each. Raises ValueError with a sentence for the operator."""
    pairs = []
    for entry in entries:
        big, separator, small = (part.strip() for part in entry.partition("="))
        if not (separator and big and small):
            raise ValueError(f"'{entry}' is not MODEL=DRAFT_MODEL")
        if big == small:
            raise ValueError(f"'{big}' would guess for itself; that saves nothing")
        pairs.append((big, small))
    names = [big for big, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"'{twice[0]}' has two draft models")
    return tuple(pairs)


def parse_adapters(entries: Sequence[str]) -> tuple[Adapter, ...]:
    """`NAME=MODEL+PATH`, each. Raises ValueError with a sentence for the operator."""
    adapters = []
    for entry in entries:
        name, _, rest = (part.strip() for part in entry.partition("="))
        base, _, path = (part.strip() for part in rest.partition("+"))
        if not (name and base and path):
            raise ValueError(f"'{entry}' is not NAME=MODEL+PATH")
        if name == base:
            raise ValueError(f"'{name}' is the name of an adapter and of its model")
        adapters.append(Adapter(name, base, Path(path).expanduser().resolve()))
    names = [adapter.name for adapter in adapters]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"'{twice[0]}' is the name of two adapters")
    return tuple(adapters)


def parse_gpu_step(entries: Sequence[str]) -> tuple[str, ...]:
    """Some of GPU_STEP, or "none". Raises ValueError with a sentence."""
    if list(entries) == ["none"]:
        return ()
    if strange := [entry for entry in entries if entry not in GPU_STEP]:
        raise ValueError(f"'{strange[0]}' is none of {', '.join(GPU_STEP)}, none")
    return tuple(entries)


def parse_ranks(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """`MODEL=NUMBER` each. Raises ValueError with a sentence."""
    for entry in entries:
        if "=" not in entry:
            raise ValueError(f"'{entry}' is not MODEL=NUMBER: each model that is split is named")
    return parse_workers(entries)


def parse_workers(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """`MODEL=NUMBER` each, or a number for all others. Raises ValueError with a sentence."""
    counts: dict[str, int] = {}
    for entry in entries:
        name, _, number = (part.strip() for part in entry.rpartition("="))
        if not (number.isdecimal() and 1 <= int(number) <= MAX_WORKERS) or (
            "=" in entry and not name
        ):
            raise ValueError(f"'{entry}' is not MODEL=NUMBER with a number from 1 to {MAX_WORKERS}")
        name = name or ALL_MODELS
        if name in counts:
            raise ValueError(f"'{entry}' says for a second time how many workers there are")
        counts[name] = int(number)
    return tuple(counts.items())

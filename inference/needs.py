"""How much memory a model's worker takes: estimated from its files before it is loaded, and as it is
found afterwards. Reads file headers only; loads no torch."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference import memory
from inference.adapter_files import read_adapter
from inference.catalog import discover
from inference.config import EngineConfig
from inference.errors import ModelRefused
from inference.few_bits_size import few_bits_bytes
from inference.kinds import read_kind
from inference.vision.room import seeing_bytes
from inference.weights import read_weights

logger = logging.getLogger(__name__)
# Private memory of a worker on CPU beside weights and cache: 270 MiB with torch and transformers
# imported, some 30 more after its first steps.
WORKER_BYTES = 320 * 2**20
WEIGHTS_OVERHEAD = 1.15  # buffers, activations, the tokenizer, the interpreter
_MAX_KV_BYTES = 4 * 2**30
_KV_SHARE = 4  # a fourth of what the weights leave, so that others have a chance to stay loaded
_MAX_RESERVE_BYTES = 2**30
# Of a GPU: a model may take a little more than its files tell, and would crowd out its neighbour.
_GPU_SLACK_SHARE = 32
_RESERVE_SHARE = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker takes at most while it loads and runs. `kv_bytes` is 0 for an encoder, and
    `seeing_bytes`, for looking at images and for what was seen, for a model that reads texts only.

    `draft_problem` says why its draft model is not counted and may not be loaded, `adapter_problem` the
    same of its adapters; else they are empty.
    """

    weights_bytes: int
    kv_bytes: int
    draft_problem: str = ""
    adapter_problem: str = ""
    seeing_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        held_bytes = self.kv_bytes + self.seeing_bytes
        return int(self.weights_bytes * WEIGHTS_OVERHEAD) + held_bytes + WORKER_BYTES


def estimate_needs(
    name: str, path: Path, config: EngineConfig, budget_bytes: int, *, on_gpu: bool = False
) -> Needs:
    """By the files of a model, as it is while it loads, before anything of it becomes int8; of a GPU's
    memory afterwards, for it gets few bits on its way there.

    Its adapters and its draft model's weights lie beside its own, where the budget has room for them.
    Its cache gets what is configured, else its share of what the weights leave; a draft model's is a
    part of that. Of a model with several workers, each gets its part of that share. On a GPU, whose
    memory is `budget_bytes`, the cache has all that `gpu_share` says, and a draft model takes nothing,
    for it is on the processor. Raises ModelRefused.
    """
    kind = read_kind(path)
    weights_bytes = _weights_bytes(name, path, config, on_gpu=on_gpu)
    if kind != "chat":
        return Needs(weights_bytes + _adapter_bytes(name, config, on_gpu), 0)
    kv_bytes = config.kv_bytes or 1
    to_see = _seeing_bytes(path, config, on_gpu=on_gpu)
    problems = {"adapters": "", "draft model": ""}
    beside = {
        "adapters": _adapter_bytes(name, config, on_gpu),
        "draft model": 0 if on_gpu else _draft_bytes(name, config),
    }
    for what, num_bytes in beside.items():
        if Needs(weights_bytes + num_bytes, kv_bytes + to_see).size_bytes <= budget_bytes:
            weights_bytes += num_bytes
        elif num_bytes:
            problems[what] = f"{name} runs without its {what}: there is no memory for both."
            logger.warning("%s", problems[what])
    without_bytes = Needs(weights_bytes, 0, seeing_bytes=to_see).size_bytes
    if on_gpu:
        others = _other_chat_bytes(name, config)
        kv_bytes = gpu_share(without_bytes, others, budget_bytes) - without_bytes
        return Needs(
            weights_bytes,
            config.kv_bytes or max(1, kv_bytes),
            problems["draft model"],
            problems["adapters"],
            to_see,
        )
    num_workers = max(1, min(config.num_workers(name), budget_bytes // without_bytes))
    left_bytes = (budget_bytes - num_workers * without_bytes) // num_workers
    return Needs(
        weights_bytes,
        config.kv_bytes or kv_share(left_bytes),
        problems["draft model"],
        problems["adapters"],
        to_see,
    )


def gpu_share(own_bytes: int, others_bytes: Sequence[int], budget_bytes: int) -> int:
    """What a model may take of a GPU, with its cache, where weights take so much.

    In proportion to its weights, if all of them leave a fourth of the memory to their caches; else
    everything, and they take turns. A little is left.
    """
    all_bytes = own_bytes + sum(others_bytes)
    budget_bytes -= budget_bytes // _GPU_SLACK_SHARE
    if all_bytes > budget_bytes - budget_bytes // _KV_SHARE:
        return budget_bytes
    return budget_bytes * own_bytes // all_bytes


def _other_chat_bytes(name: str, config: EngineConfig) -> list[int]:
    """Of the weights of each other chat model on this machine, without its adapters and draft model."""
    found = []
    for spec in discover(config).values():
        if spec.name == name or spec.path is None or spec.base or spec.kind != "chat":
            continue
        with suppress(ModelRefused):  # one that cannot be loaded needs nothing
            weights_bytes = _weights_bytes(spec.name, spec.path, config, on_gpu=True)
            to_see = _seeing_bytes(spec.path, config, on_gpu=True)
            found.append(Needs(weights_bytes, 0, seeing_bytes=to_see).size_bytes)
    return found


def _weights_bytes(name: str, path: Path, config: EngineConfig, *, on_gpu: bool) -> int:
    """Raises ModelRefused."""
    is_whole = config.num_ranks(name) == 1  # what is split over ranks keeps 16 bits
    few_bytes = few_bits_bytes(path, config.dtype) if on_gpu and is_whole else None
    if few_bytes is not None:
        return few_bytes
    return read_weights(path).num_parameters * bytes_of_weight(config.dtype, on_gpu=on_gpu)


def _seeing_bytes(path: Path, config: EngineConfig, *, on_gpu: bool) -> int:
    """Raises ModelRefused."""
    return seeing_bytes(path, bytes_of_weight(config.dtype, on_gpu=on_gpu), on_gpu=on_gpu)


def kv_share(left_bytes: int) -> int:
    """For a cache that nobody configured, of what the weights leave."""
    return min(max(left_bytes // _KV_SHARE, 1), _MAX_KV_BYTES)


def _adapter_bytes(name: str, config: EngineConfig, on_gpu: bool) -> int:
    """Of those of a model's adapters that can be loaded; the worker says what is wrong with others."""
    num_parameters = 0
    for adapter in config.adapters_of(name):
        with suppress(ModelRefused):
            num_parameters += read_adapter(adapter.path).num_parameters
    return num_parameters * bytes_of_weight(config.dtype, on_gpu=on_gpu)


def _draft_bytes(name: str, config: EngineConfig) -> int:
    """Of the weights of a model's draft model; 0 if it has none, or none that can be loaded."""
    draft_name = dict(config.draft_models).get(name)
    if draft_name is None or not config.max_num_drafting:
        return 0
    spec = discover(config).get(draft_name)
    if spec is None or spec.path is None or spec.base:
        return 0
    try:
        return read_weights(spec.path).num_parameters * bytes_of_weight(config.dtype)
    except ModelRefused:
        return 0  # the worker says why, and serves the model without it


def measure_budget(config: EngineConfig) -> int:
    """What all models together may take: as configured, else what is free and what they take already,
    but for a twentieth."""
    if config.memory_bytes is not None:
        return config.memory_bytes
    free_bytes = memory.own_loadable_bytes()
    return free_bytes - min(free_bytes // _RESERVE_SHARE, _MAX_RESERVE_BYTES)


def bytes_of_weight(dtype: str, *, on_gpu: bool = False) -> int:
    """Bytes of a weight; what assembly.dtype_of() asks torch for "auto", "int8" and "int4"."""
    if dtype == "float32" or (dtype != "bfloat16" and not (on_gpu or _multiplies_bfloat16())):
        return 4
    return 2


@cache
def _multiplies_bfloat16() -> bool:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return "avx512_bf16" in flags or "amx_bf16" in flags

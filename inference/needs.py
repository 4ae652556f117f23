"""How much memory a model's worker takes: estimated from its files before it is loaded, and as it is
found afterwards. Reads file headers only; loads no torch."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference import memory
from inference.config import EngineConfig
from inference.kinds import read_kind
from inference.weights import read_weights

# Private memory of a worker on CPU beside weights and cache: 270 MiB with torch and transformers
# imported, some 30 more after its first steps.
WORKER_BYTES = 320 * 2**20
_WEIGHTS_OVERHEAD = 1.15  # as in loader.py: buffers, activations, the tokenizer
_MAX_KV_BYTES = 4 * 2**30
_KV_SHARE = 4  # a fourth of what the weights leave, so that others have a chance to stay loaded
_MAX_RESERVE_BYTES = 2**30
_RESERVE_SHARE = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker takes at most while it loads and runs. `kv_bytes` is 0 for an encoder."""

    weights_bytes: int
    kv_bytes: int

    @property
    def size_bytes(self) -> int:
        return int(self.weights_bytes * _WEIGHTS_OVERHEAD) + self.kv_bytes + WORKER_BYTES


def estimate_needs(path: Path, config: EngineConfig, budget_bytes: int) -> Needs:
    """By the files of a model, as it is while it loads, before anything of it becomes int8.

    Its cache gets what is configured, else its share of what the weights leave. Raises ModelRefused.
    """
    kind = read_kind(path)
    weights_bytes = read_weights(path).num_parameters * _itemsize(config.dtype)
    if kind != "chat":
        return Needs(weights_bytes, 0)
    left_bytes = budget_bytes - Needs(weights_bytes, 0).size_bytes
    share_bytes = min(max(left_bytes // _KV_SHARE, 1), _MAX_KV_BYTES)
    return Needs(weights_bytes, config.kv_bytes or share_bytes)


def measure_budget(config: EngineConfig) -> int:
    """What all models together may take: as configured, else what is free, but for a twentieth."""
    if config.memory_bytes is not None:
        return config.memory_bytes
    free_bytes = memory.available_bytes()
    return free_bytes - min(free_bytes // _RESERVE_SHARE, _MAX_RESERVE_BYTES)


def _itemsize(dtype: str) -> int:
    """Bytes of a weight; what loader.best_dtype() asks torch for "auto" and "int8"."""
    if dtype == "float32" or (dtype != "bfloat16" and not _multiplies_bfloat16()):
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

"""What the processes of one model have in common that is split over them: tensor parallelism.

Each rank has a part of each layer's heads and neurons, and of the keys and values of those heads; sums
over all ranks stand behind attention and feed-forward (Shoeybi et al. 2019, "Megatron-LM", section 3).
transformers splits a model by its own plan (`base_model_tp_plan`). Rank 0 is the worker that everybody
knows; it tells the others what each step computes. Imports torch.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed
from transformers import PretrainedConfig
from transformers.distributed.configuration_utils import DistributedConfig

from inference.config import EngineConfig
from inference.device import device_of
from inference.errors import ModelError, ModelRefused
from inference.paged_kv import PagedKV
from inference.slot_states import has_states
from inference.spans import Span


@dataclass(frozen=True, slots=True)
class RankSetup:
    """What a rank needs to load its part. `meeting` is a file, by which the ranks find each other."""

    rank: int
    num_ranks: int
    meeting: Path
    model: str
    path: Path
    config: EngineConfig


@dataclass(frozen=True, slots=True)
class ForwardStep:
    """One forward, as `ModelRunner` runs it; `tables` are the blocks of its sequences."""

    ids: list[int]
    positions: list[int]
    spans: list[Span]
    rows: list[int]
    tables: dict[str, list[int]]


class MirroredKV(PagedKV):
    """The pages of a rank that keeps no books: it is told where tokens are."""

    def __init__(self, num_blocks: int, kept_as: torch.dtype | None = None) -> None:
        super().__init__(num_blocks, 0, kept_as=kept_as)
        self.tables: dict[str, list[int]] = {}

    def blocks(self, sequence_id: str) -> Sequence[int]:
        return self.tables[sequence_id]


def join(setup: RankSetup) -> None:
    """Meet the other ranks. Raises ModelError where there are fewer devices than ranks, and RuntimeError
    where one of them does not come in time."""
    is_cuda = device_of(setup.config).type == "cuda"
    if is_cuda:
        if torch.cuda.device_count() < setup.num_ranks:
            raise ModelError(f"There are fewer than {setup.num_ranks} CUDA devices.")
        torch.cuda.set_device(setup.rank)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all are on this machine
    names = {"RANK": setup.rank, "LOCAL_RANK": setup.rank, "WORLD_SIZE": setup.num_ranks}
    os.environ.update({name: str(value) for name, value in names.items()})
    store = torch.distributed.FileStore(  # type: ignore[attr-defined]
        str(setup.meeting), setup.num_ranks
    )
    torch.distributed.init_process_group(
        "nccl" if is_cuda else "gloo",
        store=store,
        rank=setup.rank,
        world_size=setup.num_ranks,
        timeout=timedelta(seconds=setup.config.loading_watchdog_s),
    )


def num_threads(config: EngineConfig, num_ranks: int) -> int:
    """Of each rank: together they have what one worker has."""
    return max(1, config.num_threads // num_ranks)


def split_over(num_ranks: int) -> dict[str, DistributedConfig]:
    """What `from_pretrained` is told, so that it loads this rank's part only."""
    return {"distributed_config": DistributedConfig(tp_size=num_ranks)} if num_ranks > 1 else {}


def check_can_be_split(config: PretrainedConfig, num_ranks: int) -> None:
    """Raise ModelRefused for what certainly cannot."""
    if has_states(config):
        raise ModelRefused(
            f"The architecture '{config.model_type}' keeps states, which cannot be split yet."
        )
    text = config.get_text_config()
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        count = getattr(text, name, None)
        if isinstance(count, int) and count % num_ranks:
            raise ModelRefused(
                f"The model has {count} {name}, which cannot be split into {num_ranks} equal parts."
            )

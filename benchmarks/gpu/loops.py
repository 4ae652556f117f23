"""Engine loops over a model that is on the device already, one for each thing that a step may use."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer

from inference.block_pool import BLOCK_TOKENS
from inference.cli.random_model import write_tokenizer
from inference.engine_loop import EngineLoop
from inference.gpu.fusing import fuse_on_device
from inference.gpu.graphs import CudaCapture
from inference.gpu.overlap import OverlappedLoop
from inference.gpu.step_selftest import checked_step
from inference.grammar import Grammars
from inference.loader import read_rust_tokenizer
from inference.model_runner import ModelRunner
from inference.paged_kv import PagedKV
from inference.scheduler import Scheduler
from inference.waiting import Estimates

VARIANTS = ("eager", "+ graphs", "+ fusing", "+ overlap")
_STEP_TOKENS = 2048


class _Unhurried(Estimates):
    """All are let in and prompts are read at once, beside whoever writes: only what comes behind them is
    measured."""

    def learn_step(self, *_: float) -> None:
        pass

    def learn_output(self, num_tokens: int) -> None:
        pass


def tokenizer_of(vocab_size: int) -> Tokenizer:
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        write_tokenizer(Path(folder), vocab_size)
        return read_rust_tokenizer(Path(folder))


def each_variant(
    model: Any, tokenizer: Tokenizer, batches: Sequence[int], context_tokens: int
) -> Iterator[tuple[str, EngineLoop | None]]:
    """One after the other, each with what those before it have; None where a test at load refuses it.
    Graphs are captured for the batches alone, which ascend: with all others it takes seconds.

    The model is fused on the way, and stays so.
    """
    for name in VARIANTS:
        if name == "+ fusing":
            fuse_on_device("the model", model)
        yield name, _loop(name, model, tokenizer, batches, context_tokens)


def best_loop(
    model: Any, tokenizer: Tokenizer, batches: Sequence[int], context_tokens: int
) -> EngineLoop | None:
    """With all that there is; the model is fused."""
    fuse_on_device("the model", model)
    return _loop(VARIANTS[-1], model, tokenizer, batches, context_tokens)


def _loop(
    name: str, model: Any, tokenizer: Tokenizer, batches: Sequence[int], context_tokens: int
) -> EngineLoop | None:
    num_sequences = batches[-1]
    num_blocks = num_sequences * (-(-context_tokens // BLOCK_TOKENS) + 1)
    kv = PagedKV(num_blocks, context_tokens)
    scheduler = Scheduler(
        kv,
        max_num_sequences=num_sequences,
        step_budget_tokens=_STEP_TOKENS,
        max_waiting_tokens=10**9,
    )
    scheduler.estimates = scheduler.waiting.estimates = _Unhurried(output_tokens=0.0)
    runner = ModelRunner(model, kv)
    vocab_size = model.config.get_text_config().vocab_size
    grammars = Grammars(tokenizer, eos_ids=(), vocab_size=vocab_size)
    parts = (runner, kv, scheduler, tokenizer, grammars)
    settings: dict[str, Any] = {"eos_ids": frozenset(), "vocab_size": vocab_size}
    if name == "eager":
        return EngineLoop(*parts, **settings)
    capture = CudaCapture() if runner.device.type == "cuda" else None
    decode = checked_step("the model", runner, num_sequences, capture, batches)
    if decode is None or (capture is not None and not len(decode.graphs)):
        return None
    return OverlappedLoop(*parts, **settings, decode=decode, is_ahead=name == "+ overlap")

"""Puts one engine loop together: model, cache, scheduler, tokenizer. Imports torch."""

from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers.utils.logging import disable_progress_bar

from inference import memory
from inference.config import EngineConfig
from inference.engine_loop import EngineLoop
from inference.errors import ModelRefused, ModelTooLarge
from inference.grammar import Grammars
from inference.kv_cache import SlabKV
from inference.loader import LoadedModel, Progress, best_dtype, load_model
from inference.messages import ModelInfo
from inference.model_runner import ModelRunner
from inference.scheduler import Scheduler

_MAX_KV_BYTES = 4 * 2**30
_LEAST_CONTEXT_TOKENS = 1024


def assemble(
    name: str, path: Path, config: EngineConfig, progress: Progress
) -> tuple[EngineLoop, ModelInfo]:
    """Load a model and build the loop that serves it. Raises ModelError."""
    torch.set_num_threads(config.num_threads)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    dtype = best_dtype() if config.dtype == "auto" else getattr(torch, config.dtype)
    loaded = load_model(name, path, progress, dtype)
    progress("warming up", 0.9)
    kv = _make_kv(loaded, config)
    scheduler = Scheduler(
        kv,
        max_num_sequences=config.max_num_sequences,
        step_budget_tokens=config.step_budget_tokens,
        max_waiting_tokens=config.max_waiting_tokens,
        max_num_drafting=config.max_num_drafting,
    )
    vocab_size = loaded.config.get_text_config().vocab_size
    loop = EngineLoop(
        ModelRunner(loaded.model, kv),
        kv,
        scheduler,
        tokenizer := _rust_tokenizer(path),
        Grammars(tokenizer, eos_ids=loaded.eos_ids, vocab_size=vocab_size),
        eos_ids=loaded.eos_ids,
        vocab_size=vocab_size,
    )
    return loop, replace(loaded.info, max_context_tokens=kv.max_context_tokens)


def _make_kv(loaded: LoadedModel, config: EngineConfig) -> SlabKV:
    """A cache within the memory limit; where it holds less than the model's context, that shrinks."""
    available = memory.available_bytes()
    kv_bytes = config.kv_bytes or min(available // 4, _MAX_KV_BYTES)
    capacity_tokens = kv_bytes // loaded.kv_bytes_per_token
    max_context_tokens = min(loaded.info.max_context_tokens, capacity_tokens)
    least_tokens = min(loaded.info.max_context_tokens, _LEAST_CONTEXT_TOKENS)
    if max_context_tokens < least_tokens:
        needed = least_tokens * loaded.kv_bytes_per_token
        raise ModelTooLarge(
            f"The KV cache of {loaded.info.name}", needed_bytes=needed, available_bytes=kv_bytes
        )
    return SlabKV(capacity_tokens, max_context_tokens)


def _rust_tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as error:  # the Rust side raises bare Exception
        raise ModelRefused(f"The tokenizer does not load: {error}") from error

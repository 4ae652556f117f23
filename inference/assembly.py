"""Puts one engine loop together: model, cache, scheduler, tokenizer. Imports torch."""

import logging
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from transformers.utils.logging import disable_progress_bar

from inference import int8, memory
from inference.adapter_loader import Base, load_adapters
from inference.adapters import Adapters
from inference.block_pool import BLOCK_TOKENS
from inference.catalog import BUILTIN_EMBEDDING
from inference.config import EngineConfig
from inference.device import device_of, free_kv_bytes
from inference.draft_loader import Draft, load_draft, make_draft_model
from inference.draft_model import DraftModel
from inference.encoder_loader import load_encoder
from inference.encoder_loop import EncoderLoop
from inference.engine_loop import EngineLoop
from inference.errors import ModelError, ModelTooLarge
from inference.gpu.overlap import OverlappedLoop
from inference.gpu.step_memory import step_bytes
from inference.gpu.step_selftest import make_decode_step
from inference.grammar import Grammars
from inference.hearing_loop import HearingLoop
from inference.hearing_model import load_hearing
from inference.hybrid_kv import HybridKV
from inference.hybrid_runner import make_runner
from inference.kinds import read_kind
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.layering import layer_chunks
from inference.loader import (
    LoadedModel,
    Progress,
    best_dtype,
    bits_of,
    load_model,
    read_rust_tokenizer,
)
from inference.merged_weights import Change
from inference.messages import ModelInfo
from inference.model_runner import ModelRunner
from inference.native.linear import NativeLinear, is_quick_for_many_rows
from inference.needs import kv_share
from inference.paged_kv import PagedKV
from inference.ranks import num_threads
from inference.scheduler import Scheduler
from inference.tensor_parallel import Followers, LeadingRunner

logger = logging.getLogger(__name__)
_DRAFT_SHARE = 4  # of the memory for keys and values, a quarter is a draft model's
_LEAST_CONTEXT_TOKENS = 1024
# Of each slot: a step works on a copy, so that one that fails has changed nothing; and a snapshot.
_STATE_COPIES = 3


def assemble(
    name: str, path: Path, config: EngineConfig, progress: Progress
) -> tuple[EngineLoop | EncoderLoop | HearingLoop, ModelInfo]:
    """Load a model and build the loop that serves its kind. Raises ModelError."""
    torch.set_num_threads(config.num_threads)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    kind = read_kind(path)
    if kind == "chat":
        return _assemble_chat(name, path, config, progress)
    if kind == "transcription":
        ear, info = load_hearing(name, path, progress, dtype_of(replace(config, device="cpu")))
        return HearingLoop(ear, max_waiting_tokens=config.max_waiting_tokens), info
    dtype = dtype_of(replace(config, device="cpu"))  # where encoders compute
    bits = bits_of(config.dtype)
    is_ours = int8.sound_kind() is NativeLinear and is_quick_for_many_rows()
    if name == BUILTIN_EMBEDDING and config.dtype == "auto" and is_ours:
        # All questions and documents go through it: half the time, and English is found as well
        # (docs/retrieval.md). Around the products float32 is quicker than bfloat16 for few tokens.
        bits, dtype = 8, torch.float32
    encoder, info = load_encoder(name, path, progress, dtype, bits=bits)

    def again(change: Change) -> nn.Module:
        return load_encoder(name, path, lambda *_: None, dtype, bits=bits, change=change)[0].model

    base = Base.of_encoder(name, encoder, again)
    encoder.adapters = adapters = load_adapters(base, config, progress, dtype)
    info = replace(
        info,
        weights_bytes=info.weights_bytes + adapters.size_bytes,
        adapters=tuple(adapters.infos.values()),
    )
    return EncoderLoop(encoder, max_waiting_tokens=config.max_waiting_tokens), info


def dtype_of(config: EngineConfig) -> torch.dtype:
    """Of what a chat model computes in floating point."""
    is_named = config.dtype in ("float32", "bfloat16")
    if not is_named and device_of(config).type == "cuda" and torch.cuda.is_bf16_supported():
        return torch.bfloat16
    dtype: torch.dtype = getattr(torch, config.dtype) if is_named else best_dtype()
    return dtype


def _assemble_chat(
    name: str, path: Path, config: EngineConfig, progress: Progress
) -> tuple[EngineLoop, ModelInfo]:
    followers, dtype = None, dtype_of(config)
    if (num_ranks := config.num_ranks(name)) > 1:
        torch.set_num_threads(num_threads(config, num_ranks))
        config = _of_each_rank(config, num_ranks)
        followers = Followers(name, path, config)
    try:
        loaded = load_part(name, path, config, progress)
    except ModelError:
        if followers is not None:
            followers.close()
        raise
    adapters = load_adapters(Base.of_chat(loaded), config, progress, dtype)
    tokenizer = read_rust_tokenizer(path)
    draft_dtype = dtype_of(replace(config, device="cpu"))  # where draft models compute
    draft = load_draft(loaded, tokenizer, config, progress, draft_dtype)
    progress("warming up", 0.9)
    kv, draft_model = _make_caches(loaded, draft, config)
    scheduler = _make_scheduler(kv, config, draft_model, loaded.info.device)
    vocab_size = loaded.config.get_text_config().vocab_size
    runner = _make_runner(loaded, kv, followers, adapters)
    scheduler.num_layers = layer_chunks(runner)
    grammars = Grammars(tokenizer, eos_ids=loaded.eos_ids, vocab_size=vocab_size)
    parts = (runner, kv, scheduler, tokenizer, grammars)
    eos_ids, is_ahead = loaded.eos_ids, "overlap" in config.gpu_step
    decode = make_decode_step(name, runner, scheduler.max_num_sequences, config)
    if decode is not None and len(decode.graphs) and draft_model is None:
        # A step with drafts is in no graph: 20 ms on an H200, for a shape whose graphs take one.
        scheduler.max_num_drafting = 0
    if decode is None:
        loop = EngineLoop(*parts, eos_ids=eos_ids, vocab_size=vocab_size)
    else:
        loop = OverlappedLoop(
            *parts, eos_ids=eos_ids, vocab_size=vocab_size, decode=decode, is_ahead=is_ahead
        )
    weights_bytes = loaded.info.weights_bytes + adapters.size_bytes
    if draft_model is not None and draft.loaded is not None and _lie_together(loaded, draft.loaded):
        weights_bytes += draft.loaded.info.weights_bytes
    return loop, replace(
        loaded.info,
        weights_bytes=weights_bytes,
        max_context_tokens=kv.max_context_tokens,
        draft_model=draft.name if draft_model else "",
        draft_problem=draft.problem,
        adapters=tuple(adapters.infos.values()),
    )


def load_part(name: str, path: Path, config: EngineConfig, progress: Progress) -> LoadedModel:
    """A chat model, or the part of it that is this rank's. Raises ModelError."""
    return load_model(
        name,
        path,
        progress,
        dtype_of(config),
        bits=bits_of(config.dtype),
        is_fp8=config.dtype == "fp8",
        kept_as=kept_as_of(config),
        num_ranks=config.num_ranks(name),
        device=device_of(config),
        is_fused="fusing" in config.gpu_step,
    )


def kept_as_of(config: EngineConfig) -> torch.dtype | None:
    """The type of keys and values in pages; None: as they are computed."""
    return torch.float8_e4m3fn if config.kv_dtype == "fp8" else None


def _of_each_rank(config: EngineConfig, num_ranks: int) -> EngineConfig:
    """Blocks are numbers that all ranks understand; slabs would have to be copied by each of them. A
    draft model would be one rank's, while the others wait."""
    kv_bytes = _host_kv_bytes(config) // num_ranks
    return replace(config, kv_layout="paged", draft_models=(), kv_bytes=kv_bytes)


def _make_runner(
    loaded: LoadedModel, kv: KVCache, followers: Followers | None, adapters: Adapters
) -> ModelRunner:
    if followers is None:
        return make_runner(loaded.model, kv, adapters, loaded.eyes)
    assert isinstance(kv, PagedKV)
    followers.begin(kv.num_blocks)
    return LeadingRunner(loaded.model, kv, followers)


def _make_caches(
    loaded: LoadedModel, draft: Draft, config: EngineConfig
) -> tuple[KVCache, DraftModel | None]:
    """The model's cache, and a draft model with its own, out of the same memory if it is on the same
    device."""
    if draft.loaded is None:
        return make_kv(loaded, config), None
    kv_bytes = _kv_bytes(config, draft.loaded)
    draft_model = make_draft_model(
        loaded, draft.loaded, kv_bytes // _DRAFT_SHARE, config.max_num_drafting
    )
    if not _lie_together(loaded, draft.loaded):
        return make_kv(loaded, config), draft_model
    rest = kv_bytes - draft_model.kv.capacity_tokens * draft.loaded.footprint.kv_bytes_per_token
    try:
        return make_kv(loaded, replace(config, kv_bytes=rest)), draft_model
    except ModelTooLarge as error:
        kv = make_kv(loaded, config)
        draft.give_up(loaded.info.name, error)
        return kv, None


def _lie_together(loaded: LoadedModel, small: LoadedModel) -> bool:
    """Whether a draft model takes of its model's memory: it is always on the processor."""
    return loaded.info.device == small.info.device


def _kv_bytes(config: EngineConfig, loaded: LoadedModel) -> int:
    if loaded.info.device != "cpu":  # what is configured or reckoned is of the host's memory
        needed = step_bytes(
            loaded.model,
            num_tokens=min(
                config.budget_tokens_on(loaded.info.device), loaded.info.max_context_tokens
            ),
            num_sequences=config.num_sequences_on(loaded.info.device),
            vocab_size=loaded.config.get_text_config().vocab_size,
            kept_as=kept_as_of(config),
        )
        free_bytes = free_kv_bytes(torch.device(loaded.info.device), needed)
        own_bytes = config.kv_bytes if config.has_own_gpus else None
        return min(own_bytes or free_bytes, free_bytes)
    return _host_kv_bytes(replace(config, kv_bytes=None) if config.has_own_gpus else config)


def _host_kv_bytes(config: EngineConfig) -> int:
    return config.kv_bytes or kv_share(memory.available_bytes())


def make_kv(loaded: LoadedModel, config: EngineConfig) -> KVCache:
    """A cache within the memory limit; where it holds less than the model's context, that shrinks.

    Raises ModelTooLarge where that is hardly anything.
    """
    kv_bytes = _kv_bytes(config, loaded)
    state_bytes = loaded.footprint.state_bytes
    kept_as = kept_as_of(config)
    is_paged = config.kv_layout == "paged" or loaded.info.device != "cpu" or kept_as is not None
    if state_bytes is None:
        if is_paged:
            return _make_pages(kv_bytes, loaded, kept_as)
        return SlabKV(*_tokens_within(kv_bytes, loaded))
    if is_paged:
        logger.warning("%s keeps states, so its keys and values are in slabs", loaded.info.name)
    num_slots = _num_slots(kv_bytes, loaded, config)
    kv_bytes -= num_slots * _STATE_COPIES * state_bytes
    return HybridKV(*_tokens_within(kv_bytes, loaded), num_slots)


def _make_pages(kv_bytes: int, loaded: LoadedModel, kept_as: torch.dtype | None) -> PagedKV:
    """As many whole blocks as fit, beside the null block."""
    null_bytes = BLOCK_TOKENS * loaded.footprint.kv_bytes_per_token
    tokens, max_context_tokens = _tokens_within(kv_bytes - null_bytes, loaded, BLOCK_TOKENS)
    namespace = (loaded.info.name, loaded.info.revision)
    return PagedKV(tokens // BLOCK_TOKENS, max_context_tokens, namespace, kept_as)


def _tokens_within(kv_bytes: int, loaded: LoadedModel, granule: int = 1) -> tuple[int, int]:
    """How many tokens the cache holds, a multiple of `granule`; how many one sequence may have."""
    per_token = max(1, loaded.footprint.kv_bytes_per_token)  # 0 where no layer attends
    capacity_tokens = kv_bytes // (per_token * granule) * granule
    max_context_tokens = min(loaded.info.max_context_tokens, capacity_tokens)
    least_tokens = min(loaded.info.max_context_tokens, _LEAST_CONTEXT_TOKENS)
    if max_context_tokens < least_tokens:
        raise ModelTooLarge(
            f"The KV cache of {loaded.info.name}",
            needed_bytes=least_tokens * per_token,
            available_bytes=kv_bytes,
        )
    return capacity_tokens, max_context_tokens


def _num_slots(kv_bytes: int, loaded: LoadedModel, config: EngineConfig) -> int:
    """As many as sequences may run, if their states leave half of the memory to keys and values."""
    needed = _STATE_COPIES * (loaded.footprint.state_bytes or 1)
    num_slots = min(config.num_sequences_on(loaded.info.device), kv_bytes // 2 // needed)
    if num_slots < 1:
        raise ModelTooLarge(
            f"The cache of {loaded.info.name}, with a state for each sequence,",
            needed_bytes=2 * needed,
            available_bytes=kv_bytes,
        )
    return num_slots


def _make_scheduler(
    kv: KVCache, config: EngineConfig, draft_model: DraftModel | None, device: str
) -> Scheduler:
    """States have a slot for each sequence, and cannot go back behind a draft that was wrong."""
    if isinstance(kv, HybridKV):
        config = replace(config, max_num_sequences=kv.states.num_slots, max_num_drafting=0)
    return Scheduler(
        kv,
        max_num_sequences=config.num_sequences_on(device),
        step_budget_tokens=config.budget_tokens_on(device),
        max_waiting_tokens=config.max_waiting_tokens,
        max_num_drafting=config.max_num_drafting,
        draft_model=draft_model,
        is_launched=device != "cpu",
    )

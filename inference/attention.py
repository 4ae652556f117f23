"""The attention function that makes transformers' models run over our KV cache.

transformers calls it in every attention layer with queries, keys and values that carry RoPE
already; it stores keys and values and attends over all of the sequence. A step's inputs are packed
as one row of tokens; which token belongs to whom is in the step's context object, because some
models drop unknown keyword arguments on the way (stablelm, nemotron).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from inference.gpu import plain
from inference.gpu.paged_step import PagedStep
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.native import attention as native
from inference.paged_kv import PagedKV
from inference.spans import Span

if TYPE_CHECKING:
    from array import array

    from inference.gpu.checking import CheckedKernels
    from inference.layered_rows import LayeredRows
    from inference.vision.deep_rows import DeepRows

NAME = "vitrine"


@dataclass(slots=True)
class StepContext:
    """What the attention layers of one step need to know. `layers_seen` proves who called. Where `paged`
    is given, it says all that `spans` do, by tensors; else the first layer makes it for the kernels."""

    kv: KVCache
    spans: list[Span]
    layers_seen: set[int] = field(default_factory=set)
    layers_by_keys: dict[int, int] = field(default_factory=dict)  # by the id of their key tensor
    paged: PagedStep | None = None
    parts: "array[int] | None" = None  # what the first fused layer has told the others
    layered: "LayeredRows | None" = None  # who is not in all layers
    planes: Tensor | None = None  # (3, tokens): positions where some are in a grid
    deep: "DeepRows | None" = None  # what of images goes into some layers


_current: StepContext | None = None  # one step at a time, on one thread, in a worker process


@contextmanager
def in_step(context: StepContext) -> Iterator[None]:
    """Within, attention layers are in this step."""
    global _current
    _current = context
    try:
        yield
    finally:
        _current = None


def get_context() -> StepContext | None:
    return _current


_kernels: "ModuleType | CheckedKernels | None" = None  # inference.gpu.attention, where it is used


def use_kernels(kernels: "ModuleType | CheckedKernels | None") -> None:
    """From now on pages are read and written by these, and by plain operations if None."""
    global _kernels
    _kernels = kernels


def uses_kernels() -> bool:
    return _kernels is not None


def kernels_in_use() -> "ModuleType | CheckedKernels | None":
    return _kernels


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """query: (rows, heads, tokens, head_dim), key: (rows, kv_heads, tokens, head_dim), value:
    likewise with value_dim -> (rows, tokens, heads, value_dim). Causal within each sequence.

    A packed step is one row; where linear-attention layers decode, each sequence has its own.
    """
    context = _current
    assert context is not None, "the model ran outside of a step"
    layer = _layer_of(module, key, context)
    num_rows = query.shape[0]
    query, key, value = (_packed(tensor) for tensor in (query, key, value))
    if context.layered is not None:  # kernels read as many keys as they are told of
        assert key.shape[1] == query.shape[1] == sum(span.num_tokens for span in context.spans)
    has_kernels = _kernels is not None and isinstance(context.kv, PagedKV)
    if has_kernels or context.paged is not None:
        assert isinstance(context.kv, PagedKV)
        if context.paged is None:
            context.paged = PagedStep.of(context.kv, context.spans, query.device)
        attended: Tensor = (_kernels or plain).attend(
            context.paged,
            context.kv.pages(layer, key, value),
            *(tensor.transpose(0, 1) for tensor in (query, key, value)),
            scale=scaling,
            window=sliding_window,
            softcap=softcap,
            sinks=s_aux,
        )
        return attended.view(num_rows, -1, *attended.shape[1:]), None
    heads, num_tokens = query.shape[:2]
    out = query.new_empty(num_tokens, heads, value.shape[-1])
    slab_kv = context.kv if isinstance(context.kv, SlabKV) else None
    is_plain = slab_kv is not None and not softcap and s_aux is None
    few_tokens = native.most_tokens(query, key, value) if is_plain else 0
    slabs: list[native.SlabSpan] = []
    begin = 0
    for span in context.spans:
        packed = slice(begin, begin + span.num_tokens)
        new = (key[:, packed], value[:, packed])
        is_ours = few_tokens > 0 and (span.each_alone or span.num_tokens <= few_tokens)
        if slab_kv is not None and is_ours:
            pair = slab_kv.with_room(layer, span.sequence_id, span.start, *new)
            slabs.append((*pair, span.start, span.num_tokens, begin, span.each_alone))
        else:
            keys, values = context.kv.extend(layer, span.sequence_id, span.start, *new)
            attended = _attend(
                query[:, packed], keys, values, scaling, sliding_window, softcap, s_aux
            )
            out[packed] = attended.transpose(0, 1)
        begin += span.num_tokens
    if slabs:
        native.attend(query, key, value, slabs, out, scaling=scaling, sliding_window=sliding_window)
    return out.view(num_rows, -1, heads, value.shape[-1]), None


def _layer_of(module: nn.Module, key: Tensor, context: StepContext) -> int:
    """Where a module's keys are in the cache: its own layer, or the one that it has them from."""
    layer = module.layer_idx
    assert isinstance(layer, int)
    context.layers_seen.add(layer)
    if getattr(module, "is_kv_shared_layer", False):
        # The very tensor of an earlier layer (gemma3n, gemma4), alive since then: ids are unique.
        return context.layers_by_keys.get(id(key), layer)
    context.layers_by_keys[id(key)] = layer
    return layer


def _packed(rows: Tensor) -> Tensor:
    """(rows, heads, tokens, dim) -> (heads, rows * tokens, dim)"""
    return rows[0] if rows.shape[0] == 1 else rows.transpose(0, 1).flatten(1, 2)


def _attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scaling: float | None,
    sliding_window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """query: (heads, new, head_dim), keys: (kv_heads, all, head_dim) -> (heads, new, value_dim).

    The new tokens are the last of all.
    """
    num_new, num_all = query.shape[1], keys.shape[1]
    if sliding_window is not None and num_new == 1 and num_all > sliding_window:
        keys, values = keys[:, -sliding_window:], values[:, -sliding_window:]
        num_all = sliding_window
    group = query.shape[0] // keys.shape[0]
    if num_new == 1 and group > 1 and not softcap and sinks is None:
        # The heads of a group as so many queries: seven to twelve times as fast as enable_gqa.
        heads = query.reshape(1, keys.shape[0], group, -1)
        grouped = scaled_dot_product_attention(
            heads, keys.unsqueeze(0), values.unsqueeze(0), scale=scaling
        )
        return grouped.reshape(query.shape[0], 1, -1)
    whole_prompt = num_new == num_all and (sliding_window is None or num_all <= sliding_window)
    mask = None
    if num_new > 1 and not whole_prompt:
        mask = causal_mask(num_new, num_all, sliding_window, query.device)
    if softcap or sinks is not None:
        if num_new > 1 and mask is None:
            mask = causal_mask(num_new, num_all, None, query.device)
        return attend_plainly(query, keys, values, scaling, softcap, sinks, mask)
    out: Tensor = scaled_dot_product_attention(
        query.unsqueeze(0),
        keys.unsqueeze(0),
        values.unsqueeze(0),
        attn_mask=mask,
        is_causal=num_new > 1 and mask is None,
        scale=scaling,
        enable_gqa=group > 1,
    )
    return out[0]


def causal_mask(
    num_new: int, num_all: int, sliding_window: int | None, device: torch.device
) -> Tensor:
    """(new, all), True where a new token may look."""
    query_position = torch.arange(num_all - num_new, num_all, device=device)[:, None]
    key_position = torch.arange(num_all, device=device)[None, :]
    mask = key_position <= query_position
    if sliding_window is not None:
        mask &= query_position - key_position < sliding_window
    return mask


def attend_plainly(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scaling: float | None,
    softcap: float | None,
    sinks: Tensor | None,
    mask: Tensor | None,
) -> Tensor:
    """Attention written out in float32, for what SDPA cannot do: softcaps and attention sinks."""
    group = query.shape[0] // keys.shape[0]
    keys = keys.repeat_interleave(group, dim=0).float()
    values = values.repeat_interleave(group, dim=0)
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    scores = query.float() @ keys.transpose(1, 2) * scale  # (heads, new, all)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if sinks is not None:  # one more column per head that takes probability and gives no value
        column = sinks.float().reshape(-1, 1, 1).expand(-1, scores.shape[1], 1)
        probs = torch.cat([scores, column], dim=-1).softmax(-1)[..., :-1]
    else:
        probs = scores.softmax(-1)
    return (probs @ values.float()).to(query.dtype)


AttentionInterface.register(NAME, attention)

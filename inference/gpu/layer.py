"""Decoder layers of the Llama kind in seven launches for one token, and in ten for many.

Part by part a layer is about twenty launches, and where each reads little, a step takes as long as its
launches. A layer is called so where it has the parts that we know and computes what it computes part by
part; so it is still computed where an adapter takes part, or where keys are not in pages.
"""

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inference import attention
from inference.attention import StepContext
from inference.fp8 import Fp8Linear
from inference.fusing import is_same, random_values
from inference.gpu import few_rows, norms, whole
from inference.gpu.few_rows import MOST_ROWS, Norm
from inference.gpu.gated import gate
from inference.gpu.heads import place_heads
from inference.gpu.paged_step import PagedStep
from inference.layer_parts import (
    FEED_FORWARD,
    LayerParts,
    Unfit,
    children,
    decoder_layers,
    epsilon,
    norm_weight,
)
from inference.out_of_memory import is_fault
from inference.paged_kv import PagedKV, gathered
from inference.spans import Span
from inference.whole_linear import WholeLinear

logger = logging.getLogger(__name__)
_SIZES = (1e-3, 1.0)  # of what is tried
# New tokens of three sequences, step by step: few and many of them, and one alone.
_TRIED = ([5, 1, 2], [1, 1, 1], [20, 1, 9], [0, 1, 0])
_MAX_ERROR = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}
_MAX_FP8_ERROR = 8e-2  # few rows are not rounded to 8 bits: they come nearer to what is meant


class Product:
    """One of a layer's products. Its weights are where its module has them: a sleep moves them."""

    def __init__(self, module: nn.Module) -> None:
        if type(module) is not nn.Linear and not isinstance(module, Fp8Linear | WholeLinear):
            raise Unfit
        self.module: Any = module
        self.is_fp8 = isinstance(module, Fp8Linear)
        self.is_whole = isinstance(module, WholeLinear)

    @property
    def most_rows(self) -> int:
        """Of which `of_few` is as quick as the product of many."""
        if self.is_whole:
            return whole.MOST_ROWS
        return 1 if self.is_fp8 else MOST_ROWS

    def of_few(
        self,
        x: Tensor,
        *,
        norm: Norm | None = None,
        residual: Tensor | None = None,
        is_gated: bool = False,
    ) -> Tensor:
        """`norm` and `is_gated` are for one row."""
        around: dict[str, Any] = {
            "bias": self.module.bias,
            "norm": norm,
            "residual": residual,
            "is_gated": is_gated,
        }
        if self.is_whole:
            return whole.linear(x, self.module.weight, **around)
        scales = self.module.scales if self.is_fp8 else None
        return few_rows.linear(x, self.module.weight, scales=scales, **around)

    def of_many(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """The residual may be written to."""
        if residual is None:
            product: Tensor = self.module(x)
        elif type(self.module) is not nn.Linear or self.module.bias is not None:
            product = residual + self.module(x)
        else:  # where the residual lies: torch would copy it first, to add to the copy
            product = residual.addmm_(x, self.module.weight.t())
        return product


class FusedLayer:
    """One of the layers of a model that are called so. Raises Unfit where it is none."""

    def __init__(self, layer: Any) -> None:
        parts = LayerParts.of(layer)
        attn, mlp, query, gates = parts.attn, parts.mlp, parts.query, parts.gates
        if children(mlp) - {"act_fn"} != FEED_FORWARD:
            raise Unfit
        if any(_has_own(module) for module in (layer, attn, mlp)):
            raise Unfit
        if not is_same(mlp.act_fn, functional.silu, random_values(5, 64)):
            raise Unfit
        self.packed, self.output = Product(query.joined), Product(attn.o_proj)
        self.gates, self.down = Product(gates.joined), Product(mlp.down_proj)
        self.most_rows = min(self.output.most_rows, self.down.most_rows)
        # Parameters stay the same ones, wherever a sleep moves what is in them.
        self.before, self.behind = map(_norm, parts.norms)
        self.of_heads = [*map(_norm, parts.head_norms)]
        self.head_dim: int = attn.head_dim
        self.num_heads, self.num_kv_heads = (size // attn.head_dim for size in query.sizes[:2])
        self.scaling: float = attn.scaling
        self.number: int = attn.layer_idx
        is_fit = (
            all(size % self.head_dim == 0 for size in query.sizes)
            and query.sizes[1] == query.sizes[2]
            and gates.sizes[0] == gates.sizes[1] == mlp.down_proj.in_features
            and attn.o_proj.in_features == query.sizes[0]
            and all(len(norm.weight) == self.head_dim for norm in self.of_heads)
        )
        if not is_fit:
            raise Unfit
        self.original: Callable[..., Any] = layer.forward

    def forward(
        self,
        hidden_states: Tensor,
        *args: Any,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        **kwargs: Any,
    ) -> Any:
        """(1, tokens, width) -> likewise, as the layer that this one stands for."""
        context = attention.get_context()
        if context is not None and position_embeddings is not None and not args:
            step = _step_of(context, hidden_states)
            if step is not None and self._can(hidden_states, position_embeddings):
                context.layers_seen.add(self.number)
                cos, sin = position_embeddings
                return self._computed(hidden_states[0], (cos[0], sin[0]), context, step)[None]
        return self.original(
            hidden_states, *args, position_embeddings=position_embeddings, **kwargs
        )

    def _can(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> bool:
        return (
            x.shape[0] == 1
            and x.stride(-1) == 1
            and all(a.shape == (1, x.shape[1], self.head_dim) and a.stride(-1) == 1 for a in angles)
            and angles[0].stride() == angles[1].stride()
        )

    def _computed(
        self, x: Tensor, angles: tuple[Tensor, Tensor], context: StepContext, step: PagedStep
    ) -> Tensor:
        """(tokens, width) -> likewise"""
        before, behind = self.before, self.behind
        if len(x) == 1:
            packed = self.packed.of_few(x, norm=before)
            x = self.output.of_few(self._attended(packed, angles, context, step), residual=x)
            gated = self.gates.of_few(x, norm=behind, is_gated=True)
            return self.down.of_few(gated, residual=x)
        packed = self.packed.of_many(_normed(x, before, step))
        attended = self._attended(packed, angles, context, step)
        if len(x) <= self.most_rows:
            x = self.output.of_few(attended, residual=x)
            gated = gate(self.gates.of_many(_normed(x, behind, step)))
            return self.down.of_few(gated, residual=x)
        normed, x = _normed_sum(x, self.output.of_many(attended), behind, step)
        return self.down.of_many(gate(self.gates.of_many(normed)), residual=x)

    def _attended(
        self,
        packed: Tensor,
        angles: tuple[Tensor, Tensor],
        context: StepContext,
        step: PagedStep,
    ) -> Tensor:
        """(tokens, queries, keys and values) -> (tokens, heads * head_dim)"""
        assert isinstance(context.kv, PagedKV)
        like = packed.view(len(packed), -1, self.head_dim)[:, : self.num_kv_heads].transpose(0, 1)
        pages = context.kv.pages(self.number, like, like)
        query = place_heads(
            packed,
            self.num_heads,
            angles,
            step.slots,
            *pages,
            norms=(self.of_heads[0], self.of_heads[1]) if self.of_heads else None,
        )
        kernels = attention.kernels_in_use()
        assert kernels is not None
        attended: Tensor = kernels.attend_written(step, pages, query, scale=self.scaling)
        return attended.flatten(1)


@torch.inference_mode()
def fuse_layers(model: nn.Module, kept_as: torch.dtype | None = None) -> int:
    """Call those layers as one that are right so, if all are of that kind; returns how many. `kept_as`
    is the type of keys and values in pages, if it is not theirs."""
    if not attention.uses_kernels():
        return 0
    layers = decoder_layers(model)
    try:
        fused = [FusedLayer(layer) for layer in layers]
        errors = [_error_of(one, kept_as) for one in fused]
    except (Unfit, AttributeError, TypeError):
        return 0
    except Exception as error:  # of layers that want something else than their parts say
        if is_fault(error):
            raise
        logger.warning("the layers are computed part by part: %s: %s", type(error).__name__, error)
        return 0
    right = [number for number, error in enumerate(errors) if error <= 1]
    if len(right) < len(layers):
        wrong = sorted({*range(len(layers))} - {*right})
        logger.warning("some layers are computed part by part: fused, %s are wrong", wrong)
    for number in right:
        layers[number].forward = fused[number].forward
    return len(right)


def has_fused_all(model: nn.Module) -> bool:
    """Whether all layers of a model are called as one."""
    owners = [getattr(layer.forward, "__self__", None) for layer in decoder_layers(model)]
    return bool(owners) and all(isinstance(owner, FusedLayer) for owner in owners)


def _step_of(context: StepContext, x: Tensor) -> PagedStep | None:
    """Where a step's tokens are in pages that kernels may read; None where parts have to see to it."""
    is_fit = (
        attention.uses_kernels()
        and isinstance(context.kv, PagedKV)
        and not any(span.adapter for span in context.spans)
    )
    if not is_fit:
        return None
    if context.paged is None:
        assert isinstance(context.kv, PagedKV)
        context.paged = PagedStep.of(context.kv, context.spans, x.device)
    return context.paged


# --- is it right? -------------------------------------------------------------------------------


def _error_of(layer: FusedLayer, kept_as: torch.dtype | None = None) -> float:
    """Of what comes out and what is in the pages then, in units of what is allowed; NaN if one is."""
    weight = layer.before.weight
    is_in_8_bits = layer.packed.is_fp8 or kept_as is not None
    limit = _MAX_FP8_ERROR if is_in_8_bits else _MAX_ERROR[weight.dtype]
    errors = []
    for size in _SIZES:
        found, expected = (
            _tried(layer, forward, size, weight, kept_as)
            for forward in (layer.forward, layer.original)
        )
        errors += [
            (a.float() - b.float()).norm() / b.float().norm()
            for a, b in zip(found, expected, strict=True)
        ]
    return float(torch.stack(errors).max()) / limit


def _tried(
    layer: FusedLayer,
    forward: Callable[..., Tensor],
    size: float,
    weight: Tensor,
    kept_as: torch.dtype | None,
) -> list[Tensor]:
    """For some sequences, step by step. Of small inputs what a layer adds to them is all that shows."""
    kv = PagedKV(16, 128, kept_as=kept_as)
    generator = torch.Generator().manual_seed(1)
    starts = [0] * len(_TRIED[0])

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(weight)

    found = []
    for news in _TRIED:
        spans = [Span(str(i), s, n) for i, (s, n) in enumerate(zip(starts, news, strict=True)) if n]
        starts = [start + new for start, new in zip(starts, news, strict=True)]
        for span in spans:
            assert kv.reserve(span.sequence_id, span.start + span.num_tokens)
        turns = torch.randn(1, sum(news), layer.head_dim, generator=generator) * 3
        angles = turns.cos().to(weight), turns.sin().to(weight)
        x = random(1, sum(news), len(weight)) * size
        with attention.in_step(StepContext(kv, spans)):
            out = forward(x, position_embeddings=angles, attention_mask=None)
        found.append(out)
    for pages in kv.layers[layer.number]:
        for i, end in enumerate(starts):
            found.append(gathered(pages, kv.block_table(str(i)).to(pages.device), end))
    return found


# --- parts --------------------------------------------------------------------------------------


def _normed(x: Tensor, norm: Norm, step: PagedStep) -> Tensor:
    """Steps that decode are in graphs. In others launches are the host's time, and ours take several
    times as long as torch's."""
    if step.is_decode:
        return norms.normed(x, norm)
    normed: Tensor = functional.rms_norm(x, norm.weight.shape, norm.weight, norm.epsilon)
    return normed


def _normed_sum(x: Tensor, added: Tensor, norm: Norm, step: PagedStep) -> tuple[Tensor, Tensor]:
    if step.is_decode:
        return norms.normed_sum(x, added, norm)
    total = x + added
    return _normed(total, norm, step), total


def _has_own(module: nn.Module) -> bool:
    """Whether it has something to compute with beside its parts: sinks, scales."""
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return bool(own) or getattr(module, "residual_multiplier", 1.0) != 1.0


def _norm(module: nn.Module) -> Norm:
    return Norm(norm_weight(module), epsilon(module))

"""Decoder layers of the Llama kind as one call each, for steps of few tokens: see layer.c.

Between the products of a lone stream's step Python and torch took a quarter of the time. A layer is
called so where it has the parts that we know, of kinds that we have kernels for, and gives the very
values that it gives part by part. A step goes through the parts themselves where a chunk is long, an
adapter takes part or keys are not in slabs.
"""

import logging
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof
from typing import Any

import torch
from torch import Tensor, nn

from inference import attention
from inference.attention import StepContext
from inference.kv_cache import SlabKV
from inference.layer_parts import LayerParts, Unfit, decoder_layers, epsilon, norm_weight
from inference.native import attention as native
from inference.native.kernels import TYPES, Layer, kernels
from inference.native.linear import NativeLinear
from inference.spans import Span

logger = logging.getLogger(__name__)
_MOST_TOKENS = (
    256  # of a step: with more, calling takes no time that counts, and scratch memory grows
)
_SIZES = (1e-3, 1.0, 1e3)  # of what is tried
_TRIED = ([5, 1, 9], [1, 1, 1], [2, 1, 1])  # new tokens of three sequences, step by step


class FusedLayer:
    """One of the layers of a model that are called so. Raises Unfit where it is none."""

    def __init__(self, layer: Any, number: int, layers: Sequence[int]) -> None:
        library = kernels()
        if library is None:
            raise Unfit
        parts = LayerParts.of(layer)
        attn, mlp, query, gates = parts.attn, parts.mlp, parts.query, parts.gates
        output, down = _native(attn.o_proj), _native(mlp.down_proj)
        norms = [*parts.norms, *parts.head_norms]
        weights = [norm_weight(norm) for norm in norms]
        self.dtype = weights[0].dtype
        dim, sizes, width = attn.head_dim, query.sizes, len(weights[0])
        inner = mlp.down_proj.in_features
        is_fit = (
            all(weight.dtype == self.dtype for weight in weights)
            and [len(weight) for weight in weights] == [width] * 2 + [dim] * (len(weights) - 2)
            and all(size % dim == 0 for size in sizes)
            and sizes[1] == sizes[2]
            and gates.sizes == [inner, inner]
            and (output.in_features, output.out_features) == (sizes[0], width)
            and (query.in_features, gates.in_features, down.out_features) == (width,) * 3
        )
        if not is_fit or self.dtype not in TYPES:
            raise Unfit
        self.number: int = attn.layer_idx
        self.width, self.dim, self.num_kv_heads = width, dim, sizes[1] // dim
        self.norms, self._layers = weights[:2], layers
        sample = torch.empty(1, 1, dim, dtype=self.dtype)
        self.most_tokens = native.most_tokens(sample, sample, sample)
        addresses = [weight.data_ptr() for weight in weights] + [None] * (4 - len(weights))
        epsilons = [epsilon(norm) for norm in norms] + [0.0] * (4 - len(norms))
        self._layer = Layer(
            *(
                part.address
                for part in (_native(query.joined), output, _native(gates.joined), down)
            ),
            *addresses,
            *(number, width, sizes[0] // dim, self.num_kv_heads, dim, inner),
            *epsilons,
            *(attn.scaling, TYPES[self.dtype]),
        )
        self._keep = (weights, query, output, gates, down)  # the kernel knows addresses only
        self._address = addressof(self._layer)
        self._decode: Callable[..., None] = library.decode_layer
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
        parts = self._parts(context) if context is not None else None
        if (
            parts
            and position_embeddings
            and not args
            and self._can(hidden_states, position_embeddings)
        ):
            assert context is not None
            context.layers_seen.add(self.number)
            out = torch.empty_like(hidden_states)
            self._decode(
                *(self._address, hidden_states.data_ptr(), out.data_ptr(), hidden_states.shape[1]),
                *(position_embeddings[0].data_ptr(), position_embeddings[1].data_ptr()),
                *(parts.buffer_info()[0], len(context.spans), torch.get_num_threads()),
            )
            return out
        return self.original(
            hidden_states, *args, position_embeddings=position_embeddings, **kwargs
        )

    def _can(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> bool:
        shape = (1, x.shape[1], self.dim)
        return (
            x.shape[0] == 1
            and x.dtype == self.dtype
            and x.is_contiguous()
            and all(a.shape == shape and a.dtype == x.dtype and a.is_contiguous() for a in angles)
        )

    def _parts(self, context: StepContext) -> "array[int]":
        """A table of `Part` of layer.c for the step, the same for all layers; empty where they are to be
        computed part by part."""
        if context.parts is not None:
            return context.parts
        table, begin, kv = array("q"), 0, context.kv
        context.parts = array("q")
        if not isinstance(kv, SlabKV):
            return context.parts
        most_tokens = min(self.most_tokens, _MOST_TOKENS)
        if any(s.adapter or s.num_tokens > most_tokens for s in context.spans):
            return context.parts
        if sum(s.num_tokens for s in context.spans) > _MOST_TOKENS:
            return context.parts
        for span in context.spans:
            new = torch.empty(self.num_kv_heads, span.num_tokens, self.dim, dtype=self.dtype)
            places = kv.places(self._layers, span, (new, new))
            table.extend((places, span.start, span.num_tokens, begin, span.each_alone))
            begin += span.num_tokens
        context.parts = table
        return table


@torch.inference_mode()
def fuse_layers(model: nn.Module) -> int:
    """Call those layers as one that can be, if all can; returns how many."""
    layers = decoder_layers(model)
    try:
        numbers = [layer.self_attn.layer_idx for layer in layers]
        fused = [FusedLayer(layer, at, numbers) for at, layer in enumerate(layers)]
        if not all(_is_same(layer) for layer in fused):
            return 0
    except (Unfit, AttributeError, TypeError):
        return 0
    except Exception as error:  # of layers that want something else than their parts say
        logger.info("the layers are computed part by part: %s", error)
        return 0
    for layer, one in zip(layers, fused, strict=True):
        layer.forward = one.forward
    return len(fused)


def _is_same(layer: FusedLayer) -> bool:
    """Whether it gives the very values, and writes the very keys, of its parts.

    Behind a norm all inputs are of one size, so the norms' weights are made small and large as well: a
    limit on what is projected would else not show.
    """
    for size in _SIZES:
        with _scaled(layer.norms, size):
            found = _tried(layer, layer.forward, size)
            expected = _tried(layer, layer.original, size)
        if not all(map(torch.equal, found, expected)):
            return False
    return True


@contextmanager
def _scaled(weights: Sequence[Tensor], factor: float) -> Iterator[None]:
    before = [weight.clone() for weight in weights]
    for weight in weights:
        weight.mul_(factor)
    try:
        yield
    finally:
        for weight, values in zip(weights, before, strict=True):
            weight.copy_(values)


def _tried(layer: FusedLayer, forward: Callable[..., Tensor], size: float) -> list[Tensor]:
    """What comes out for some sequences, step by step, and what is in the cache then."""
    kv = SlabKV(1024, 256)
    generator = torch.Generator().manual_seed(1)
    starts = [0] * len(_TRIED[0])

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(layer.dtype)

    found = []
    for news in _TRIED:
        spans = [Span(str(i), s, n) for i, (s, n) in enumerate(zip(starts, news, strict=True))]
        starts = [span.start + span.num_tokens for span in spans]
        for span, end in zip(spans, starts, strict=True):
            assert kv.reserve(span.sequence_id, end)
        angles = random(1, sum(news), layer.dim), random(1, sum(news), layer.dim)
        x = random(1, sum(news), layer.width) * size
        with attention.in_step(StepContext(kv, spans)):
            found.append(forward(x, position_embeddings=angles, attention_mask=None))
    for i, end in enumerate(starts):
        new = torch.empty(layer.num_kv_heads, 0, layer.dim, dtype=layer.dtype)
        pair = kv.with_room(layer.number, str(i), end, new, new)
        found += [tensor[:, :end] for tensor in pair]
    return found


def _native(module: nn.Module) -> NativeLinear:
    if not isinstance(module, NativeLinear):
        raise Unfit
    return module

"""Lets a step's last rows pass only some of a model's layers: see layered_chunk. Imports torch."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from inference import attention
from inference.kv_cache import SlabKV
from inference.layered_chunk import LayeredChunk
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.sequence import Sequence

logger = logging.getLogger(__name__)
MAX_ERROR = 0.05  # of logits, relative; rows that went astray err by more than 1
_CHUNK_TOKENS = 5
_NUM_TOKENS = 3 * _CHUNK_TOKENS


class _Layer:
    """A decoder layer that a step's last rows may be spared."""

    def __init__(self, layer: Any, number: int) -> None:
        self._forward: Callable[..., Any] = layer.forward
        self._number = number

    def __call__(
        self,
        hidden_states: Tensor,
        *args: Any,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        position_ids: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        context = attention.get_context()
        if context is not None and context.layered is not None:
            hidden_states = context.layered.enter(self._number, hidden_states)
            num_tokens = hidden_states.shape[1]
            if num_tokens == 0:
                return hidden_states
            if position_embeddings is not None:
                cosines, sines = position_embeddings
                position_embeddings = cosines[:, :num_tokens], sines[:, :num_tokens]
            if position_ids is not None:
                position_ids = position_ids[:, :num_tokens]
        return self._forward(
            hidden_states,
            *args,
            position_embeddings=position_embeddings,
            position_ids=position_ids,
            **kwargs,
        )


@torch.inference_mode()
def layer_chunks(runner: ModelRunner) -> int:
    """Let chunks of a model over slabs pass its layers step by step; returns how many layers that are.

    0, and nothing is changed, where the logits are others then. Only while nothing runs.
    """
    layers = _layers_of(runner.model)
    if any(isinstance(layer.forward, _Layer) for layer in layers):
        return len(layers)  # another runner's, of the same model
    if type(runner) is not ModelRunner or not isinstance(runner.kv, SlabKV) or len(layers) < 2:
        return 0
    originals = [layer.forward for layer in layers]
    for number, layer in enumerate(layers):
        layer.forward = _Layer(layer, number)
    if _is_same(runner.model, len(layers)):
        return len(layers)
    for layer, original in zip(layers, originals, strict=True):
        layer.forward = original
    return 0


def _layers_of(model: nn.Module) -> list[Any]:
    """The one list of layers that attend, in the order of their numbers; empty where there is none."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    attending = [list(m) for m in lists if all(hasattr(one, "self_attn") for one in m) and len(m)]
    if len(attending) != 1:
        return []
    if any(getattr(layer.self_attn, "is_kv_shared_layer", False) for layer in attending[0]):
        return []  # they attend over another layer's keys, which have fewer rows then
    numbers = [getattr(layer.self_attn, "layer_idx", None) for layer in attending[0]]
    return attending[0] if numbers == list(range(len(numbers))) else []


def _is_same(model: nn.Module, num_layers: int) -> bool:
    """Whether chunks that pass in steps, beside two that write, give the same logits."""
    try:
        expected, found = (_tried(model, num_layers, in_steps=steps) for steps in (False, True))
    except Exception as error:  # of a model that wants something else than its layers say
        logger.info("chunks pass all layers at once: %s", error)
        return False
    difference = (found - expected).abs().max() / expected.abs().max().clamp_min(1e-30)
    return bool(difference <= MAX_ERROR)


def _tried(model: nn.Module, num_layers: int, *, in_steps: bool) -> Tensor:
    """(rows, vocab): the logits of those that write, and of one whose prompt is read in three chunks.

    The second passes one layer after the other by itself, the third in steps beside those that write.
    """
    runner = ModelRunner(model, SlabKV(512, 128))
    writers, reader = [_sequence("one"), _sequence("other")], _sequence("reader")
    for sequence in (*writers, reader):
        assert runner.kv.reserve(sequence.id, 2 * _NUM_TOKENS)
    rows = [runner.run([(s, _NUM_TOKENS) for s in writers] + [(reader, _CHUNK_TOKENS)]).logits]
    alone = range(1, num_layers + 1) if in_steps else [num_layers]
    rows += _pass(runner, reader, alone, [])
    beside = sorted({1, num_layers // 2, num_layers})
    return torch.cat(rows + _pass(runner, reader, beside, writers, in_steps=in_steps))


def _pass(
    runner: ModelRunner,
    reader: Sequence,
    ends: Iterable[int],
    writers: list[Sequence],
    *,
    in_steps: bool = True,
) -> list[Tensor]:
    """The logits of steps beside some that write, in each of which the next chunk comes to such a layer;
    or else through all layers in the last one."""
    *_, num_layers = ends
    rows = []
    if in_steps:
        reader.chunk = LayeredChunk(_CHUNK_TOKENS, num_layers)
    for number, end in enumerate(ends):
        plan = [(writer, 1) for writer in writers]
        for writer in writers:
            writer.append(number, 0.0)
        if reader.chunk is not None:
            reader.chunk.end = end
        if reader.chunk is not None or end == num_layers:
            plan.append((reader, _CHUNK_TOKENS))
        rows.append(runner.run(plan).logits)
    return rows


def _sequence(name: str) -> Sequence:
    prompt = tuple(range(1, 1 + _NUM_TOKENS))
    return Sequence(GenerateRequest(name, "", prompt, SamplingParams(max_tokens=1)))

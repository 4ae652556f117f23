"""Proof, at load time, that an architecture computes the same over our KV cache as by itself.

A model can run without an error and still be wrong: masks that carry meaning, layers with a state of
their own, positions that are not what they seem. So a copy of the architecture, shrunk and with
random weights, answers the same prompts twice: by transformers' plain forward, and packed, chunked
and mixed over the cache. Costs a fraction of a second; found every silent fault that we know of.
"""

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PretrainedConfig

from inference import attention
from inference.context_window import max_context_tokens
from inference.errors import ModelRefused
from inference.experts import set_experts_implementation
from inference.hybrid_kv import HybridKV
from inference.hybrid_runner import make_runner
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.sequence import Sequence
from inference.slot_states import has_states
from inference.small_config import VOCAB_SIZE, shrink
from inference.vision.prompt_images import PromptImage

MAX_RELATIVE_ERROR = 1e-3  # sound architectures stay below 2e-4 in float32, wrong ones above 2e-2
_WEIGHT_STD = 0.15
_FEED_FORWARD = ("mlp", "moe")  # kinds of layers, in transformers' words
_PROMPT_LENGTHS = (37, 5, 26)
_CHUNK_TOKENS = 16
_NUM_DECODED = 5


def check_architecture(config: PretrainedConfig) -> None:
    """Raise ModelRefused when the architecture would be wrong over our cache."""
    require_right(
        config,
        lambda: packed_error(shrink(config)),
        fails="does not run over Vitrine's KV cache",
        differs="over Vitrine's KV cache than by itself",
    )


def require_right(
    config: PretrainedConfig, find_error: Callable[[], float], *, fails: str, differs: str
) -> None:
    """Raise ModelRefused where a small copy of an architecture fails, or errs by more than rounding.

    `fails` and `differs` say what it does then: "The architecture 'x' {fails}", "The architecture 'x'
    computes something else {differs}".
    """
    architecture = f"The architecture '{config.model_type}'"
    try:
        error = find_error()
    except ModelRefused:
        raise
    except Exception as problem:  # whatever a model file raises, the answer is the same
        raise ModelRefused(
            f"{architecture} {fails}; a small copy of it failed by {type(problem).__name__}: {problem}"
        ) from problem
    if not error <= MAX_RELATIVE_ERROR:
        raise ModelRefused(
            f"{architecture} computes something else {differs} (relative error {error:.1e}), so its"
            " answers would be wrong."
        )


@torch.inference_mode()
def packed_error(
    config: PretrainedConfig,
    kv: KVCache | None = None,
    device: torch.device | None = None,
    *,
    change: Callable[[nn.Module], object] | None = None,
) -> float:
    """The largest relative difference of any last-token logits, packed against plain; may be NaN.

    Over `kv`, an empty cache that fits the architecture; by default one that is made for it. Plain is
    always on the processor, packed on `device`, after a `change` that should make no difference.

    Raises ModelRefused when a layer that should have did not attend over the cache.
    """
    model, prompts = small_model(config)
    plain = plain_logits(model, prompts)
    model.to(device or "cpu").set_attn_implementation(attention.NAME)
    if change is not None:
        change(model)
    kv = small_cache(config, len(prompts)) if kv is None else kv
    runner = make_runner(model, kv)
    packed = run_packed(runner, prompts)
    if unseen := _mixing_layers(config) - runner.layers_seen:
        raise ModelRefused(
            f"In the architecture '{config.model_type}' the layers {sorted(unseen)} did not attend over"
            " the cache: they look back in a way of their own, which Vitrine cannot serve."
        )
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


def small_cache(config: PretrainedConfig, num_sequences: int) -> KVCache:
    """That fits a shrunk config, and holds the prompts of `small_model`."""
    return HybridKV(1024, 256, num_sequences) if has_states(config) else SlabKV(1024, 256)


def small_model(config: PretrainedConfig) -> tuple[Any, list[list[int]]]:
    """A model of a shrunk config with random weights, always the same ones, and prompts for it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32
        ).eval()
        set_experts_implementation(model)
        widen(model)
        return model, some_prompts(config)


def some_prompts(config: PretrainedConfig) -> list[list[int]]:
    """Random ones of several lengths, for a shrunk config."""
    longest = max_context_tokens(config)
    lengths = [min(n, longest) for n in _PROMPT_LENGTHS]
    return [torch.randint(3, VOCAB_SIZE, (n,)).tolist() for n in lengths]


def plain_logits(model: Any, prompts: list[list[int]]) -> list[Tensor]:
    """By transformers' own forward: (tokens, vocab) for each prompt."""
    return [model(input_ids=torch.tensor([p]), use_cache=False).logits[0] for p in prompts]


def _mixing_layers(config: PretrainedConfig) -> set[int]:
    """The layers that look at other tokens: all but those that are a feed-forward network only."""
    num_layers = config.num_hidden_layers
    kinds = getattr(config, "layer_types", None) or [""] * num_layers
    return {layer for layer in range(num_layers) if kinds[layer] not in _FEED_FORWARD}


def widen(model: nn.Module) -> None:
    """Weights so wide that each layer tells in the logits, and that attention is far from uniform.

    As initialised they are so narrow that a state or a softcap which is lost would pass for rounding.
    """
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(std=_WEIGHT_STD)


def worst_error(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The largest relative error of (found, expected), wherever each of them is; NaN if any is NaN,
    which max() would drop."""
    here = ((found.cpu(), expected.cpu()) for found, expected in pairs)
    errors = [(found - expected).abs().max() / expected.abs().max() for found, expected in here]
    return float(torch.stack(errors).max())


def run_packed(
    runner: ModelRunner,
    prompts: list[list[int]],
    adapters: Iterable[str] = (),
    images: Iterable[tuple[PromptImage, ...]] = (),
    chunk_tokens: int = _CHUNK_TOKENS,
) -> list[tuple[int, int, Tensor]]:
    """Feed the prompts in mixed chunks; (prompt, position, logits) wherever a chunk ended.

    `adapters` are the names of those that they go through, if they do, `images` stand in them.
    """
    params = SamplingParams(max_tokens=1)
    sequences = []
    of_each = zip(prompts, chain(adapters, repeat("")), chain(images, repeat(())), strict=False)
    for number, (prompt, adapter, seen) in enumerate(of_each):
        # All but the last five are a prompt's, which is computed in another way than an answer.
        beginning = tuple(prompt[:-_NUM_DECODED] or prompt)
        request = GenerateRequest(str(number), "", beginning, params, adapter=adapter, images=seen)
        sequences.append(Sequence(request))
        sequences[-1].token_ids = []
    unread = {s.id: list(p) for s, p in zip(sequences, prompts, strict=True)}
    checked: list[tuple[int, int, Tensor]] = []
    while any(unread.values()):
        plan = []
        for sequence in sequences:
            chunk = _next_chunk(unread[sequence.id], chunk_tokens)
            if chunk:
                sequence.token_ids += chunk
                runner.kv.reserve(sequence.id, len(sequence.token_ids))
                plan.append((sequence, len(chunk)))
        result = runner.run(plan)
        for sequence, row in zip(result.due, result.logits, strict=True):
            checked.append((int(sequence.id), sequence.num_computed - 1, row))
    return checked


def _next_chunk(unread: list[int], chunk_tokens: int) -> list[int]:
    """Take the next tokens of a prompt: chunks at first, the last five one by one as in decoding."""
    num_to_chunk = len(unread) - _NUM_DECODED
    num_tokens = min(chunk_tokens, num_to_chunk) if num_to_chunk > 0 else 1
    chunk, unread[:] = unread[:num_tokens], unread[num_tokens:]
    return chunk

"""A model whose keys and values are kept in 8 bits: twice the room of 16, and nearly the same logits."""

from pathlib import Path

import torch

from inference import Finished
from inference.engine_loop import EngineLoop
from inference.messages import GenerateRequest, SamplingParams
from inference.paged_kv import PagedKV
from inference.sequence import Sequence
from tests.inference.loops import PROMPTS, answers, make_loop, request, run


def _logits(loop: EngineLoop) -> torch.Tensor:
    """Behind each token of a prompt that is read in chunks."""
    prompt = PROMPTS[3]
    params = SamplingParams(max_tokens=1, num_prompt_logprobs=0)
    sequence = Sequence(GenerateRequest("text", "tiny", prompt, params))
    loop.kv.reserve(sequence.id, len(prompt) + 1)
    found = []
    while sequence.num_pending:
        result = loop.runner.run([(sequence, min(24, sequence.num_pending))])
        found += [logits for _, logits in result.prompts]
    loop.kv.release(sequence.id)
    return torch.cat(found)


def test_a_cache_of_8_bits_has_room_for_four_times_float32s_tokens(tiny_model: Path) -> None:
    plain = make_loop(tiny_model, kv_layout="paged")
    small = make_loop(tiny_model, kv_dtype="fp8")
    assert isinstance(small.kv, PagedKV)
    assert small.kv.capacity_tokens >= 3.9 * plain.kv.capacity_tokens
    exact, found = _logits(plain), _logits(small)
    error = (found - exact).norm() / exact.norm()
    assert 1e-4 < error < 0.1


def test_prefixes_of_8_bits_are_used_again(tiny_model: Path) -> None:
    loop = make_loop(tiny_model, kv_dtype="fp8")
    first = answers(loop, *(request(f"r{n}", prompt) for n, prompt in enumerate(PROMPTS)))
    again = run(loop, *(request(f"again {n}", prompt) for n, prompt in enumerate(PROMPTS)))
    ends = [updates[-1] for updates in again.values()]
    assert all(isinstance(end, Finished) for end in ends)
    assert sum(end.usage.cached_tokens for end in ends if isinstance(end, Finished)) > 100
    assert all(first)
    loop.check()

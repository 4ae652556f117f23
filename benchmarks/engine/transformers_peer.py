"""transformers' own two ways to generate, in bfloat16 on the same torch and threads."""

from pathlib import Path
from time import monotonic
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    ContinuousBatchingConfig,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
)

_PAGE_TOKENS = 256  # its default
_BATCH_TOKENS = 512  # of one forward pass; its own guess is made for GPUs


def _model(folder: Path, threads: int, device: str = "cpu") -> Any:
    torch.set_num_threads(threads)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return model.to(device).eval()


class _Clock(LogitsProcessor):
    """Is called once a step, when the step's logits are there."""

    def __init__(self) -> None:
        self.steps_s: list[float] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.steps_s.append(monotonic())
        return scores


class Generate:
    """`generate` with a static batch: padded on the left, and on until the longest has ended.

    Tokens that a job did not ask for are not counted.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._model = _model(folder, threads)

    @torch.inference_mode()
    def run(self, prompts: list[list[int]], num_outputs: list[int]) -> list[list[float]]:
        longest = max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        ids = [[0] * pad + prompt for pad, prompt in zip(padding, prompts, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
        clock = _Clock()
        self._model.generate(
            torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            logits_processor=LogitsProcessorList([clock]),
            generation_config=GenerationConfig(
                max_new_tokens=max(num_outputs), do_sample=False, eos_token_id=None, pad_token_id=0
            ),
        )
        return [clock.steps_s[:number] for number in num_outputs]

    def close(self) -> None:
        """Nothing goes on behind a run."""


class ContinuousBatching:
    """transformers' continuous batching with paged attention (SDPA, as there are no flash kernels)."""

    def __init__(
        self, folder: Path, threads: int, slots: int, longest_tokens: int, device: str = "cpu"
    ) -> None:
        model = _model(folder, threads, device)
        pages = -(-longest_tokens // _PAGE_TOKENS) + 1
        self._manager = model.init_continuous_batching(
            generation_config=GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0),
            continuous_batching_config=ContinuousBatchingConfig(
                num_blocks=2 * slots * pages,
                max_batch_tokens=_BATCH_TOKENS if device == "cpu" else None,
                max_requests_per_batch=slots,
                allow_block_sharing=False,
            ),
        )
        self._manager.start()

    def run(self, prompts: list[list[int]], num_outputs: list[int]) -> list[list[float]]:
        names = [
            self._manager.add_request(prompt, max_new_tokens=number, record_timestamps=True)
            for prompt, number in zip(prompts, num_outputs, strict=True)
        ]
        token_s: dict[str, list[float]] = {}
        while len(token_s) < len(names):
            result = self._manager.get_result(timeout=1)
            if result is None:
                if not self._manager.is_running():
                    raise RuntimeError("continuous batching ended by itself")
            elif result.is_finished():
                assert result.error is None, result.error
                token_s[result.request_id] = result.timestamps
        return [token_s[name] for name in names]

    def close(self) -> None:
        """Its thread would keep the process alive."""
        self._manager.stop(block=True)

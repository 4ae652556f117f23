"""The least time in which a device could do a work: by what it reads at least, and multiplies at least.

Weights are read once in each step, keys and values once for each token that attends to them; the table
of embeddings is not, of which a step reads a row for each token. What a model's own kernels do beside
that (norms, RoPE, drawing) costs nothing here. Source: Williams, Waterman, Patterson 2009, "Roofline".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.gpu.timing import Ceilings
from benchmarks.table import Row

_BYTES = 2  # of bfloat16, in any case: percents beyond 100 are what fewer bits gain


@dataclass(frozen=True, slots=True)
class Roofline:
    """Of one model. `num_layer_weights` are multiplied with each token, `num_head_weights` with those
    that a next token is drawn behind."""

    found: Ceilings
    num_layer_weights: int
    num_head_weights: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int

    @classmethod
    def of(cls, found: Ceilings, shape: dict[str, Any]) -> "Roofline":
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))
        num_table = model.get_input_embeddings().weight.numel()
        is_tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
        num_all = sum(one.numel() for one in model.parameters())
        return cls(
            found,
            num_layer_weights=num_all - (num_table if is_tied else 2 * num_table),
            num_head_weights=num_table,
            num_layers=shape["num_hidden_layers"],
            num_heads=shape["num_attention_heads"],
            num_kv_heads=shape["num_key_value_heads"],
            head_dim=shape["head_dim"],
        )

    @property
    def _kv_bytes(self) -> int:
        """Of one token, in all layers."""
        return 2 * _BYTES * self.num_layers * self.num_kv_heads * self.head_dim

    def step_s(self, num_sequences: int, num_behind: int) -> float:
        """One token of each, with so many tokens behind all of them together."""
        num_weights = self.num_layer_weights + self.num_head_weights
        read_s = _BYTES * num_weights / self.found.bytes_per_s
        multiplied_s = 2 * num_weights * num_sequences / self.found.operations_per_s
        return max(read_s, multiplied_s) + num_behind * self._kv_bytes / self.found.bytes_per_s

    def reading_s(self, num_tokens: int) -> float:
        """A prompt, whose tokens attend to half of it in the mean."""
        pairs = num_tokens**2 / 2
        attended = 4 * pairs * self.num_layers * self.num_heads * self.head_dim
        multiplied = 2 * self.num_layer_weights * num_tokens
        return (multiplied + attended) / self.found.operations_per_s

    def requests_s(self, sizes: Sequence[tuple[int, int]]) -> float:
        """All prompts one after the other, and then all answers at once: tokens in and out of each. The
        first token of an answer comes of reading."""
        least_s = sum(self.reading_s(num_in) for num_in, _ in sizes)
        for number in range(1, max(num_out for _, num_out in sizes)):
            behind = [num_in + number for num_in, num_out in sizes if num_out > number]
            least_s += self.step_s(len(behind), sum(behind))
        return least_s


def add_share(row: Row, least_s: float, took_s: float | None) -> Row:
    row["% of roofline"] = took_s and 100 * least_s / took_s
    return row

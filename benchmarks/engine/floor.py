"""The least CPU time that the physics of a machine allow a piece of work.

A decode step reads all weights once and computes with them for every sequence, and reads each
sequence's keys and values; a prefill computes. Source of the formula: the roofline model, with the
ceilings that `ceilings.py` has just measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from benchmarks.engine.ceilings import Ceilings
from inference.cli.random_model import tensors

_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1, "int4": 4.25 / 8}
_KV_BYTES = {"float32": 4, "bfloat16": 2, "int8": 2, "int4": 2}


@dataclass(frozen=True, slots=True)
class Floor:
    """The least CPU seconds for a model whose weights have a type. Tied tables are read by lm_head."""

    config: dict[str, Any]
    dtype: str
    ceilings: Ceilings

    def prefill_s(self, num_tokens: int) -> float:
        """One prompt, up to its first token: all layers for all tokens, lm_head for the last one."""
        num_body = self._num_parameters - self._num_embedding
        attention = 2 * num_tokens**2 * self._query_size * self.config["num_hidden_layers"]
        operations = 2 * num_body * num_tokens + 2 * self._num_embedding + attention
        return float(max(self._read_weights_s, operations / self._gemm_per_s))

    def decode_step_s(self, lengths: Sequence[int]) -> float:
        """One token for each sequence, of which so many tokens are in the cache."""
        compute_s = 2 * self._num_parameters * len(lengths) / self._gemm_per_s
        read_s = sum(lengths) * self._kv_bytes_per_token / self.ceilings.read_bytes_per_s
        return max(self._read_weights_s, compute_s) + read_s

    def decode_s(self, prompts: Sequence[int], outputs: Sequence[int]) -> float:
        """All steps behind the first tokens, every sequence in each of them until it ends."""
        return sum(
            self.decode_step_s(
                [p + step for p, o in zip(prompts, outputs, strict=True) if o > step]
            )
            for step in range(1, max(outputs))
        )

    @property
    def _num_parameters(self) -> int:
        return sum(prod(shape) for _, shape in tensors(self.config))

    @property
    def _num_embedding(self) -> int:
        return int(self.config["vocab_size"] * self.config["hidden_size"])

    @property
    def _query_size(self) -> int:
        return int(self.config["num_attention_heads"] * self.config["head_dim"])

    @property
    def _kv_bytes_per_token(self) -> int:
        config = self.config
        kv_size = config["num_key_value_heads"] * config["head_dim"]
        return int(2 * config["num_hidden_layers"] * kv_size * _KV_BYTES[self.dtype])

    @property
    def _read_weights_s(self) -> float:
        body = (self._num_parameters - self._num_embedding) * _BYTES[self.dtype]
        head = self._num_embedding * max(1, _BYTES[self.dtype])  # never less than 8 bits
        return (body + head) / self.ceilings.read_bytes_per_s

    @property
    def _gemm_per_s(self) -> float:
        """Weights of 4 bits are multiplied in 8."""
        return self.ceilings.gemm_per_s["int8" if self.dtype == "int4" else self.dtype]


def floor_of(shape: dict[str, Any], dtype: str, ceilings: Ceilings) -> Floor | None:
    """None for types whose arithmetic was not measured."""
    return Floor(shape, dtype, ceilings) if dtype in _BYTES else None

"""The KV cache on CPU: one contiguous slab per sequence and layer.

Contiguous slabs beat pages on CPU: attention reads a slab as a plain view, while gathering pages
costs as much again for keys and for values. Torch maps memory lazily, so a slab costs what has
been written to it. `reserve` and `release` count tokens and are all that the scheduler needs.
"""

import torch
from torch import Tensor

GRANULE_TOKENS = 64  # the smallest slab; slabs double from here, so growing copies O(1) per token


class SlabKV:
    """Keys and values of all sequences, within `capacity_tokens` over all of them."""

    def __init__(self, capacity_tokens: int, max_context_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.max_context_tokens = max_context_tokens
        self.used_tokens = 0
        self._reserved: dict[str, int] = {}
        self._slabs: dict[str, dict[int, tuple[Tensor, Tensor]]] = {}

    # --- accounting: integers only ------------------------------------------------------------

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        """Make room for `num_tokens` of a sequence in all. False: there is none, nothing changed."""
        have = self._reserved.get(sequence_id, 0)
        if num_tokens <= have:
            return True
        want = self._slab_tokens(num_tokens)
        if self.used_tokens + want - have > self.capacity_tokens:
            want = num_tokens  # a tight fit is better than none
            if self.used_tokens + want - have > self.capacity_tokens:
                return False
        self.used_tokens += want - have
        self._reserved[sequence_id] = want
        return True

    def release(self, sequence_id: str) -> None:
        """Give a sequence's tokens back; unknown ids are fine, so that every end may call it."""
        self.used_tokens -= self._reserved.pop(sequence_id, 0)
        self._slabs.pop(sequence_id, None)

    def check(self) -> None:
        """Prove that the books are right. Raises AssertionError; called whenever the engine idles."""
        assert self.used_tokens == sum(self._reserved.values())
        assert 0 <= self.used_tokens <= self.capacity_tokens
        assert self._slabs.keys() <= self._reserved.keys()

    def _slab_tokens(self, num_tokens: int) -> int:
        slab = GRANULE_TOKENS
        while slab < num_tokens:
            slab *= 2
        return max(num_tokens, min(slab, self.max_context_tokens))

    # --- tensors ------------------------------------------------------------------------------

    def extend(
        self, layer: int, sequence_id: str, start: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values behind `start` and return views of all of them so far.

        keys: (kv_heads, new_tokens, head_dim), values: (kv_heads, new_tokens, value_dim);
        the views are (kv_heads, start + new_tokens, dim). Needs an earlier `reserve`.
        """
        end = start + keys.shape[1]
        slabs = self._slabs.setdefault(sequence_id, {})
        slab = slabs.get(layer)
        if slab is None or slab[0].shape[1] < end:
            slab = self._grown(slab, self._reserved[sequence_id], start, keys, values)
            slabs[layer] = slab
        slab[0][:, start:end] = keys
        slab[1][:, start:end] = values
        return slab[0][:, :end], slab[1][:, :end]

    @staticmethod
    def _grown(
        old: tuple[Tensor, Tensor] | None,
        num_tokens: int,
        filled: int,
        keys: Tensor,
        values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        new = (
            torch.empty((keys.shape[0], num_tokens, keys.shape[2]), dtype=keys.dtype),
            torch.empty((values.shape[0], num_tokens, values.shape[2]), dtype=values.dtype),
        )
        if old is not None:
            for source, target in zip(old, new, strict=True):
                target[:, :filled] = source[:, :filled]
        return new

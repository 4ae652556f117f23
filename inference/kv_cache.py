"""The KV cache on CPU: one contiguous slab per sequence and layer, and prefixes used again.

Contiguous slabs beat pages on CPU: attention reads a slab as a plain view, while gathering pages
costs as much again for keys and for values. Torch maps memory lazily, so a slab costs what has
been written to it. The slab of a sequence that has ended stays as long as there is room; the next
one that begins alike takes it over, or a copy of its beginning.

Every token is free, used by a running sequence, or cached: `check()` proves it.
"""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inference.prefix_index import PrefixIndex
from inference.spans import Span

GRANULE_TOKENS = 64  # the smallest slab; slabs double from here, so growing copies O(1) per token


@dataclass(slots=True, eq=False)
class Slab:
    """Room for the tokens of one sequence; `token_ids` are those whose keys and values are right.

    `layers` holds keys (kv_heads, tokens, head_dim) and values (kv_heads, tokens, value_dim).
    """

    salt: str = ""
    num_tokens: int = 0
    token_ids: Sequence[int] = ()
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    places: "array[int] | None" = None  # as `SlabKV.places` says, since the last tensor is new


class SlabKV:
    """Keys and values of all sequences, running and ended, within `capacity_tokens` over all."""

    shares_prefixes = True

    def __init__(self, capacity_tokens: int, max_context_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.max_context_tokens = max_context_tokens
        self.used_tokens = 0
        self.cached_tokens = 0
        self._running: dict[str, Slab] = {}
        self._cached: OrderedDict[Slab, None] = OrderedDict()  # the least recently used first
        self._index: PrefixIndex[Slab] = PrefixIndex()

    # --- accounting: integers only ------------------------------------------------------------

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        """Make room for `num_tokens` of a sequence in all, if need be in place of cached ones.

        False: there is none, and the sequence has what it had.
        """
        slab = self._running.get(sequence_id)
        have = slab.num_tokens if slab else 0
        if num_tokens <= have:
            return True
        want = self._slab_tokens(num_tokens)
        if self.used_tokens + want - have > self.capacity_tokens:
            want = num_tokens  # a tight fit is better than none
            if self.used_tokens + want - have > self.capacity_tokens:
                return False
        while self.used_tokens + self.cached_tokens + want - have > self.capacity_tokens:
            self._drop(next(iter(self._cached)))
        if slab is None:
            slab = self._running[sequence_id] = Slab()
        slab.num_tokens = want
        self.used_tokens += want - have
        return True

    def attach(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> int:
        """Give a new sequence what is cached of its beginning; returns how many tokens that is.

        At least one token is left to compute, or there would be no logits. A slab that is mostly
        common is taken over; of one that holds much more, the beginning is copied.
        """
        assert sequence_id not in self._running
        slab, num_common = self._find(token_ids[: len(token_ids) - 1], salt)
        if slab is None:
            return 0
        if slab in self._cached and 2 * num_common >= len(slab.token_ids):
            self._uncache(slab)
            self._running[sequence_id] = slab
            self.used_tokens += slab.num_tokens
            slab.token_ids = ()
            return num_common
        if slab in self._cached:
            self._cached.move_to_end(slab)
        source = slab.layers  # also if the slab itself has to make room now
        if not self.reserve(sequence_id, len(token_ids) + 1):
            return 0
        own = self._running[sequence_id]
        own.layers = {
            layer: self._grown(pair, own.num_tokens, num_common, *pair)
            for layer, pair in source.items()
        }
        return num_common

    def count_cached(self, token_ids: Sequence[int], salt: str) -> int:
        """How many tokens of a beginning could be had without computing them; changes nothing."""
        return self._find(token_ids, salt)[1]

    def share(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> None:
        """Let others copy from a running sequence what is computed of it, chunk by chunk."""
        slab = self._running[sequence_id]
        assert token_ids
        slab.salt, slab.token_ids = salt, tuple(token_ids)
        self._index.add(slab)

    def release(self, sequence_id: str, token_ids: Sequence[int] = (), salt: str = "") -> None:
        """End a sequence; its slab stays for others if it says which tokens it has computed.

        Unknown ids are fine, so that every end may call it.
        """
        slab = self._running.pop(sequence_id, None)
        if slab is None:
            return
        self.used_tokens -= slab.num_tokens
        if slab.token_ids:
            self._index.remove(slab)
        if not token_ids or not slab.layers:
            return
        slab.salt, slab.token_ids = salt, tuple(token_ids)
        self.cached_tokens += slab.num_tokens
        self._cached[slab] = None
        self._index.add(slab)

    def forget_all(self) -> None:
        assert not self._running
        self.give_back()

    def give_back(self) -> None:
        """Forget all slabs that nobody uses: the allocator has their memory back."""
        while self._cached:
            self._drop(next(iter(self._cached)))

    def check(self) -> None:
        """Prove that the books are right. Raises AssertionError; called whenever the engine idles."""
        assert self.used_tokens == sum(slab.num_tokens for slab in self._running.values())
        assert self.cached_tokens == sum(slab.num_tokens for slab in self._cached)
        assert 0 <= self.used_tokens + self.cached_tokens <= self.capacity_tokens
        slabs = {*self._running.values(), *self._cached}
        assert len(slabs) == len(self._running) + len(self._cached), "a slab with two owners"
        assert self._index.holders() <= slabs, "a beginning of a slab that is gone"
        for slab in slabs:
            assert len(slab.token_ids) <= slab.num_tokens
            assert all(len(pair[0][0]) <= slab.num_tokens for pair in slab.layers.values())

    def _find(self, token_ids: Sequence[int], salt: str) -> tuple[Slab | None, int]:
        """The slab to begin with, and how many of its tokens are good for these."""
        return self._index.find(token_ids, salt)

    def _uncache(self, slab: Slab) -> None:
        del self._cached[slab]
        self.cached_tokens -= slab.num_tokens
        self._index.remove(slab)

    def _drop(self, slab: Slab) -> None:
        self._uncache(slab)
        slab.layers = {}

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
        pair = self.with_room(layer, sequence_id, start, keys, values)
        pair[0][:, start:end] = keys
        pair[1][:, start:end] = values
        return pair[0][:, :end], pair[1][:, :end]

    def with_room(
        self, layer: int, sequence_id: str, start: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The whole slab, (kv_heads, room, dim), with room for these behind `start`; writes nothing."""
        slab = self._running[sequence_id]
        pair = slab.layers.get(layer)
        if pair is None or pair[0].shape[1] < start + keys.shape[1]:
            # Kernels write where they are told to, beyond a slab's end, too.
            assert start + keys.shape[1] <= slab.num_tokens, "nothing was reserved for these tokens"
            pair = self._grown(pair, slab.num_tokens, start, keys, values)
            slab.layers[layer] = pair
            slab.places = None
        return pair

    def places(self, layers: Sequence[int], span: Span, new: tuple[Tensor, Tensor]) -> int:
        """The address of where keys and values of these layers, always the same ones, lie: of each
        the address of its keys, that of its values, and for how many tokens there is room.

        `new` has the shapes of what will be written for the span, as in `with_room`.
        """
        slab = self._running[span.sequence_id]
        if slab.places is None or span.start + span.num_tokens > min(slab.places[2::3]):
            pairs = [self.with_room(layer, span.sequence_id, span.start, *new) for layer in layers]
            slab.places = array("q")
            for keys, values in pairs:
                slab.places.extend((keys.data_ptr(), values.data_ptr(), keys.shape[1]))
        return slab.places.buffer_info()[0]

    def bytes_per_token(self, sequence_id: str) -> int:
        """What each token of a sequence takes, over all layers that have written so far."""
        pairs = self._running[sequence_id].layers.values()
        return sum(t[:, 0].numel() * t.itemsize for pair in pairs for t in pair)

    @staticmethod
    def _grown(
        old: tuple[Tensor, Tensor] | None,
        num_tokens: int,
        filled: int,
        keys: Tensor,
        values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """New tensors for `num_tokens`, like the given ones, with the first `filled` of the old."""
        new = (
            torch.empty((keys.shape[0], num_tokens, keys.shape[2]), dtype=keys.dtype),
            torch.empty((values.shape[0], num_tokens, values.shape[2]), dtype=values.dtype),
        )
        if old is not None:
            for source, target in zip(old, new, strict=True):
                target[:, :filled] = source[:, :filled]
        return new

"""A KV cache in pages: each layer's keys and values in blocks that all sequences take from one pool.

The layout is the one that GPU kernels read: per layer a tensor of keys and one of values,
(blocks, BLOCK_TOKENS, kv_heads, dim), a table of block numbers per sequence, and for each new token the
slot that it is written to, block * BLOCK_TOKENS + offset. Kept in 8 bits (e4m3) they have no
scale: what is beyond 448 is cut off, which is far beyond what keys and values of trained models are.
`extend` writes and reads by plain tensor operations and copies what it reads: right on any device, and
slower than slabs, which are read in place.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain

import torch
from torch import Tensor

from inference.block_pool import BLOCK_TOKENS, NULL_BLOCK, BlockPool
from inference.fp8 import LARGEST


class PagedKV(BlockPool):
    """Keys and values of all sequences, running and ended, in a `BlockPool`'s blocks.

    A layer's tensors are made when it first writes, for heads and sizes are each layer's own.
    """

    def __init__(
        self,
        num_blocks: int,
        max_context_tokens: int,
        namespace: Sequence[str] = (),
        kept_as: torch.dtype | None = None,
    ) -> None:
        """`kept_as` is the type of what is kept, float8_e4m3fn; None: as it comes."""
        super().__init__(num_blocks, max_context_tokens, namespace)
        self.kept_as = kept_as
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def forget_all(self) -> None:
        """The pages are made anew when somebody writes."""
        super().forget_all()
        self.layers.clear()

    # --- where tokens are -----------------------------------------------------------------------

    def block_table(self, sequence_id: str) -> Tensor:
        """The blocks of a sequence in order: (blocks,), int32."""
        return torch.tensor(self.blocks(sequence_id), dtype=torch.int32)

    def flat_tables(self, sequence_ids: Sequence[str]) -> "tuple[array[int], int]":
        """Those of a batch, one behind the other, each filled up with NULL_BLOCK to the returned length.

        A step has thousands of such numbers: a tensor for each sequence would take milliseconds.
        """
        tables = [self.blocks(sequence_id) for sequence_id in sequence_ids]
        width = max(map(len, tables), default=0)
        flat = array("i")
        for table in tables:
            flat.extend(table)
            flat.extend(array("i", [NULL_BLOCK]) * (width - len(table)))
        return flat, width

    def slot_mapping(self, sequence_id: str, start: int, end: int) -> Tensor:
        """The slots of a sequence's tokens from `start` up to `end`: (end - start,).

        int64: the first element of a slot lies beyond 2**31 in any pool of some GiB.
        """
        return torch.tensor([*chain(*self.slots(sequence_id, start, end))], dtype=torch.int64)

    def slots(self, sequence_id: str, start: int, end: int) -> Iterator[range]:
        """The same, block by block. Raises IndexError where there is no room."""
        blocks = self.blocks(sequence_id)
        for number in range(start // BLOCK_TOKENS, -(-end // BLOCK_TOKENS)):
            first = number * BLOCK_TOKENS
            shift = blocks[number] * BLOCK_TOKENS - first
            yield range(max(start, first) + shift, min(end, first + BLOCK_TOKENS) + shift)

    # --- keys and values ------------------------------------------------------------------------

    def extend(
        self, layer: int, sequence_id: str, start: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values behind `start` and return copies of all of them so far.

        keys: (kv_heads, new_tokens, head_dim), values: (kv_heads, new_tokens, value_dim);
        the copies are (kv_heads, start + new_tokens, dim). Needs an earlier `reserve`.
        """
        end = start + keys.shape[1]
        pages_of_keys, pages_of_values = self.pages(layer, keys, values)
        slots = self.slot_mapping(sequence_id, start, end).to(keys.device)
        table = self.block_table(sequence_id)[: -(-end // BLOCK_TOKENS)].to(keys.device)
        for pages, new in ((pages_of_keys, keys), (pages_of_values, values)):
            kept = new if self.kept_as is None else new.clamp(-LARGEST, LARGEST).to(self.kept_as)
            movable(pages).flatten(0, 1)[slots] = movable(kept).transpose(0, 1)
        found = (gathered(pages, table, end) for pages in (pages_of_keys, pages_of_values))
        all_keys, all_values = (one.to(keys.dtype) for one in found)
        return all_keys, all_values

    def pages(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """A layer's pages, which are for keys and values like these, (kv_heads, tokens, dim)."""
        if layer not in self.layers:
            self.layers[layer] = self._empty_like(keys), self._empty_like(values)
        return self.layers[layer]

    def bytes_per_token(self, sequence_id: str) -> int:
        """What each token takes, over all layers that have written so far."""
        return sum(t[0, 0].numel() * t.itemsize for pair in self.layers.values() for t in pair)

    def _empty_like(self, new: Tensor) -> Tensor:
        """Pages for keys or values like these, (kv_heads, tokens, dim), and the null block's."""
        shape = (self.num_blocks + 1, BLOCK_TOKENS, new.shape[0], new.shape[2])
        pages = new.new_empty(shape, dtype=self.kept_as or new.dtype)
        # Or a kernel's probability of 0 times what was there could be NaN.
        movable(pages)[NULL_BLOCK] = 0
        return pages


def movable(tensor: Tensor) -> Tensor:
    """The same memory, of a type that torch knows how to move on any device: of 8 bits only bytes."""
    return tensor.view(torch.uint8) if tensor.itemsize == 1 else tensor


def gathered(pages: Tensor, table: Tensor, num_tokens: int) -> Tensor:
    """The first tokens of the blocks of a table: (kv_heads, num_tokens, dim)."""
    # Several times as fast on a CPU as pages[table].
    blocks = movable(pages).index_select(0, table).view(pages.dtype)
    return blocks.flatten(0, 1)[:num_tokens].transpose(0, 1)

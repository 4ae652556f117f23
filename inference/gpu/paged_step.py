"""Where the tokens of a step are in a paged cache. Knows no kernels."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inference.paged_kv import PagedKV
from inference.pinned import sent
from inference.spans import Span


@dataclass(frozen=True, slots=True)
class PagedStep:
    """Tensors on the model's device, made once for all layers of a step.

    `slots`: (tokens,) int64, where each new key and value goes, -1 for nowhere; `tables`: (sequences,
    most blocks) int32; `starts`: (sequences + 1,) int32, where each sequence's new tokens begin;
    `lengths`: (sequences,) int32, those included.
    """

    slots: Tensor
    tables: Tensor
    starts: Tensor
    lengths: Tensor
    is_decode: bool

    @classmethod
    def of(cls, kv: PagedKV, spans: Sequence[Span], device: torch.device) -> "PagedStep":
        """Of `spans`, at least one, which have room in the cache. Nothing waits for the device."""
        slots, starts, lengths = array("q"), array("i", [0]), array("i")
        for span in spans:
            end = span.start + span.num_tokens
            for some in kv.slots(span.sequence_id, span.start, end):
                slots.extend(some)
            starts.append(len(slots))
            lengths.append(end)
        flat, width = kv.flat_tables([span.sequence_id for span in spans])
        tables, on_starts, on_lengths = _sent((flat, starts, lengths), device)
        return cls(
            sent(torch.frombuffer(slots, dtype=torch.int64), device),
            tables.view(len(spans), width),
            on_starts,
            on_lengths,
            all(span.num_tokens == 1 for span in spans),
        )


def _sent(numbers: "Sequence[array[int]]", device: torch.device) -> list[Tensor]:
    """Each as int32, all in one copy."""
    joined, places = array("i"), []
    for own in numbers:
        places.append((len(joined), len(joined) + len(own)))
        joined.extend(own)
        # Triton compiles anew for a tensor that begins elsewhere than at a multiple of 16 bytes.
        joined.extend([0] * (-len(joined) % 4))
    there = sent(torch.frombuffer(joined, dtype=torch.int32), device)
    return [there[begin:end] for begin, end in places]

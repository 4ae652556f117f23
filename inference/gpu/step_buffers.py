"""What decode steps read and write on the device, always in the same places, and what is sent there.

Each sequence that decodes has a seat: its table of blocks, its knobs and the last token that it has
drawn stay there, so that a step is told of seats and positions only, and of blocks that are new. What
goes to the device lies in pinned memory, and is copied behind what was submitted before, without a wait.
"""

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
from torch import Tensor

from inference.block_pool import BLOCK_TOKENS, NULL_BLOCK
from inference.gpu.paged_step import PagedStep
from inference.gpu.sampling import Knobs
from inference.paged_kv import PagedKV
from inference.pinned import pinned
from inference.sequence import UNKNOWN, Sequence

_NOBODY = 0  # the seat of rows that fill up a bucket; its table leads to the null block only


@dataclass(slots=True)
class _Seat:
    """`blocks` is the very table of the cache: where it has another, the sequence has lost its place."""

    number: int
    blocks: Rows[int]
    num_known: int = 0  # of its blocks on the device


@dataclass(frozen=True, slots=True)
class Staged:
    """What the host has to say before a step, in pinned memory.

    `rows`: (bucket, 4) int64: seat, place in the sequence, token or UNKNOWN, and position for rotary
    embedding. `cells`: (2, n): places in the tables
    and the blocks that stand there now. `taken`: (n,) seats that are somebody's now, with the `knobs`.
    """

    rows: Tensor
    cells: Tensor
    taken: Tensor
    knobs: Knobs


class StepBuffers:
    """For at most `num_sequences` that decode at once, over a cache."""

    def __init__(self, kv: PagedKV, num_sequences: int, device: torch.device) -> None:
        self.kv = kv
        self.device = device
        self.num_sequences = num_sequences
        num_seats = num_sequences + 1
        self._width = kv.max_context_tokens // BLOCK_TOKENS + 1
        ids = torch.zeros(num_seats, dtype=torch.int64, device=device)
        shape = (num_seats, self._width)
        self.tables = torch.full(shape, NULL_BLOCK, dtype=torch.int32, device=device)
        self.last_ids = ids
        self.knobs = Knobs.empty(num_seats, device)
        self.rows = ids.new_zeros(num_sequences, 4)
        self.starts = torch.arange(num_seats, dtype=torch.int32, device=device)
        self.drawn = ids.new_zeros(num_sequences)
        self._seats: dict[str, _Seat] = {}
        self._free = list(range(num_sequences, _NOBODY, -1))

    # --- on the host ----------------------------------------------------------------------------

    def stage(self, sequences: Rows[Sequence], bucket: int) -> Staged:
        """The next token of each; the rest of the bucket is nobody's."""
        self._sweep()
        rows, cells, taken = [], [], []
        for sequence in sequences:
            seat = self._seats.get(sequence.id)
            if seat is None:
                seat = _Seat(self._free.pop(), self.kv.blocks(sequence.id))
                self._seats[sequence.id] = seat
                taken.append((seat.number, sequence.request.params))
            first = seat.number * self._width
            cells += [(first + n, seat.blocks[n]) for n in range(seat.num_known, len(seat.blocks))]
            seat.num_known = len(seat.blocks)
            place = len(sequence.token_ids) - 1
            position = place if sequence.grid is None else place + sequence.grid.shift
            rows.append((seat.number, place, sequence.token_ids[-1], position))
        rows += [(_NOBODY, -1, 0, 0)] * (bucket - len(rows))
        return Staged(
            self._pinned(torch.tensor(rows)),
            self._pinned(torch.tensor(cells, dtype=torch.int64).reshape(-1, 2).T.contiguous()),
            self._pinned(torch.tensor([number for number, _ in taken], dtype=torch.int64)),
            Knobs(*map(self._pinned, Knobs.of([params for _, params in taken]).tensors)),
        )

    def forget(self) -> None:
        """What was staged may never have arrived: all is told again."""
        self._free += [seat.number for seat in self._seats.values()]
        self._seats.clear()

    def room_for_drawn(self, bucket: int) -> Tensor:
        return self._pinned(torch.empty(bucket, dtype=torch.int64))

    def _pinned(self, tensor: Tensor) -> Tensor:
        return pinned(tensor, self.device)

    def _sweep(self) -> None:
        """Seats whose sequences have left the cache are free, also where one of that id came back."""
        for sequence_id, seat in list(self._seats.items()):
            if self.kv.blocks(sequence_id) is not seat.blocks:
                self._free.append(self._seats.pop(sequence_id).number)

    # --- on the device --------------------------------------------------------------------------

    def load(self, staged: Staged) -> None:
        """Not to be captured: how much is new differs from step to step."""
        self.rows[: len(staged.rows)].copy_(staged.rows, non_blocking=True)
        if staged.cells.numel():
            places, blocks = staged.cells.to(self.device, non_blocking=True)
            self.tables.view(-1).index_copy_(0, places, blocks.int())
        if staged.taken.numel():
            taken = staged.taken.to(self.device, non_blocking=True)
            for tensor, new in zip(self.knobs.tensors, staged.knobs.tensors, strict=True):
                tensor.index_copy_(0, taken, new.to(self.device, non_blocking=True))

    def step(self, bucket: int) -> tuple[Tensor, Tensor, PagedStep]:
        """Ids and positions of the tokens to compute, (bucket,) each, and where they are."""
        seats, places, given, positions = self.rows[:bucket].unbind(1)
        ids = torch.where(given == UNKNOWN, self.last_ids.index_select(0, seats), given)
        tables = self.tables.index_select(0, seats)
        lengths = (places + 1).int()
        is_nobody, places = places < 0, places.clamp_min(0)
        blocks = tables.gather(1, (places // BLOCK_TOKENS)[:, None])[:, 0].long()
        slots = blocks * BLOCK_TOKENS + places % BLOCK_TOKENS
        slots = torch.where(is_nobody, -1, slots)
        starts = self.starts[: bucket + 1]
        return ids, positions, PagedStep(slots, tables, starts, lengths, is_decode=True)

    def knobs_and_positions(self, bucket: int) -> tuple[Knobs, Tensor]:
        """Of the tokens that are drawn now, (bucket,) each."""
        seats, places, _, _ = self.rows[:bucket].unbind(1)
        return self.knobs.take(seats), places + 1

    def keep_drawn(self, drawn: Tensor) -> None:
        """drawn: (bucket,), in order; the next step finds them in their seats."""
        bucket = len(drawn)
        self.drawn[:bucket].copy_(drawn)
        self.last_ids.index_copy_(0, self.rows[:bucket, 0], drawn.clamp_min(0))

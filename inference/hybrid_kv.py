"""The cache of models with linear-attention layers: slabs for keys and values, slots for states."""

from collections.abc import Sequence

from inference.kv_cache import Slab, SlabKV
from inference.slot_states import SlotStates, States


class HybridKV(SlabKV):
    """A `SlabKV` whose running sequences hold one of `num_slots` slots of states each.

    Keys and values of a prefix are good for whoever begins with it, but states stand for all tokens up
    to one. So a sequence leaves snapshots: where the last chunk in the middle of its prompt ended, and
    at its end. Another one goes on behind the last snapshot within their common beginning. There are
    as many snapshots as slots; the slabs with the least recently used ones make room.
    """

    shares_prefixes = False  # of a sequence that is still being read, mostly nothing

    def __init__(self, capacity_tokens: int, max_context_tokens: int, num_slots: int) -> None:
        super().__init__(capacity_tokens, max_context_tokens)
        self.states = SlotStates(num_slots)
        self._snapshots: dict[Slab, dict[int, States]] = {}  # by the number of their tokens

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        """Make room for `num_tokens` of a sequence, and for its states. False: there is none."""
        if sequence_id in self._running:
            return super().reserve(sequence_id, num_tokens)
        if not self.states.take(sequence_id):
            return False
        if not super().reserve(sequence_id, num_tokens):
            self.states.free(sequence_id)
            return False
        return True

    def attach(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> int:
        """Give a new sequence keys, values and states of its beginning; returns up to which token."""
        slab, num_common = self._find(token_ids[: len(token_ids) - 1], salt)
        if slab is None or not self.states.take(sequence_id):
            return 0
        states = self._snapshots[slab][num_common]
        if not super().attach(sequence_id, token_ids, salt):
            self.states.free(sequence_id)
            return 0
        self.states.put(sequence_id, states)
        self._add_snapshot(self._running[sequence_id], num_common, states)
        return num_common

    def keep(self, sequence_id: str, num_tokens: int) -> None:
        """Take a snapshot of a running sequence, in place of the one before."""
        slab = self._running[sequence_id]
        self._snapshots.pop(slab, None)
        self._add_snapshot(slab, num_tokens, self.states.of(sequence_id))

    def release(self, sequence_id: str, token_ids: Sequence[int] = (), salt: str = "") -> None:
        """End a sequence; its slot is free, and with its tokens its states stay for others."""
        slab = self._running.get(sequence_id)
        super().release(sequence_id, token_ids, salt)
        if slab is not None and slab in self._cached:
            self._add_snapshot(slab, len(token_ids), self.states.of(sequence_id))
            if slab not in self._snapshots:
                self._drop(slab)  # keys without states are of no use
        elif slab is not None:
            self._snapshots.pop(slab, None)
        self.states.free(sequence_id)

    def check(self) -> None:
        super().check()
        assert self.states.holders == set(self._running), "a slot without a sequence"
        assert len(self.states.holders) <= self.states.num_slots
        assert self._num_snapshots <= self.states.num_slots
        assert set(self._snapshots) <= {*self._running.values(), *self._cached}
        for slab, snapshots in self._snapshots.items():
            assert max(snapshots) <= (
                len(slab.token_ids) if slab in self._cached else slab.num_tokens
            )

    @property
    def _num_snapshots(self) -> int:
        return sum(map(len, self._snapshots.values()))

    def _add_snapshot(self, slab: Slab, num_tokens: int, states: States) -> None:
        """Where none fits, because those who run hold them all, there will be none."""
        others = [cached for cached in self._cached if cached is not slab]
        while self._num_snapshots >= self.states.num_slots and others:
            self._drop(others.pop(0))
        if self._num_snapshots < self.states.num_slots:
            self._snapshots.setdefault(slab, {})[num_tokens] = states

    def _find(self, token_ids: Sequence[int], salt: str) -> tuple[Slab | None, int]:
        """As far as a snapshot goes."""
        slab, num_common = super()._find(token_ids, salt)
        if slab is None:
            return None, 0
        within = [n for n in self._snapshots.get(slab, ()) if n <= num_common]
        return (slab, max(within)) if within else (None, 0)

    def _uncache(self, slab: Slab) -> None:
        super()._uncache(slab)
        self._snapshots.pop(slab, None)

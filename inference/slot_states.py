"""The states of linear-attention layers: one slot for each running sequence.

Such layers (Mamba, gated delta nets, short convolutions) keep no keys and values: they fold what
they have read into states of fixed size. To transformers a `SlotStates` is the `Cache` that a model
reads them from and writes them to; to the engine it is a fixed number of slots, each held by one
sequence from its first token to its end.

A state cannot be cut back to an earlier token. So what a step computes is set aside until `commit`,
and a step that fails has advanced nobody.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PretrainedConfig
from transformers.cache_utils import (
    DYNAMIC_LAYER_TYPE_MAPPING,
    LinearAttentionCacheLayerMixin,
    get_layer_types_and_kwargs,
)

_Key = tuple[str, int, int]  # "conv" or "recurrent", the layer, and which one of the layer's states
States = dict[_Key, Tensor]
"""The states of one sequence behind some token, (1, ...) each. Never written to, once they are."""


def has_states(config: PretrainedConfig) -> bool:
    """Whether transformers itself would keep a state for any layer of this architecture."""
    kinds, _ = get_layer_types_and_kwargs(config.get_text_config())
    layers = [DYNAMIC_LAYER_TYPE_MAPPING.get(kind, object) for kind in kinds]
    return any(issubclass(layer, LinearAttentionCacheLayerMixin) for layer in layers)


class SlotStates:
    """Slots for `num_slots` sequences; `layers_seen` are the layers that have kept a state so far."""

    # What transformers asks a cache for besides its states.
    is_compileable = False
    layers = ()

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.layers_seen: set[int] = set()
        self._slots: dict[str, States] = {}
        self._batch: list[str] = []
        self._is_fresh = True
        self._current: States = {}  # of the forward pass that runs: (batch, ...) each
        self._computed: dict[str, States] = {}  # by the step that runs

    # --- slots --------------------------------------------------------------------------------

    @property
    def holders(self) -> set[str]:
        return set(self._slots)

    def take(self, sequence_id: str) -> bool:
        """Give a sequence a slot, if it has none yet. False: all are taken."""
        if sequence_id not in self._slots:
            if len(self._slots) >= self.num_slots:
                return False
            self._slots[sequence_id] = {}
        return True

    def free(self, sequence_id: str) -> None:
        """Take a sequence's slot back; unknown ids are fine, so that every end may call it."""
        self._slots.pop(sequence_id, None)

    def of(self, sequence_id: str) -> States:
        """What a sequence's slot holds: the states behind its last computed token."""
        return self._slots[sequence_id]

    def put(self, sequence_id: str, states: States) -> None:
        """Let a sequence, which has a slot, go on from states that another one was in."""
        assert sequence_id in self._slots
        self._slots[sequence_id] = states

    def num_bytes(self, sequence_id: str) -> int:
        """The size of what a sequence's slot holds."""
        return sum(state.nbytes for state in self._slots[sequence_id].values())

    # --- a step -------------------------------------------------------------------------------

    def begin(self) -> None:
        """A step begins: forget what one that failed has left."""
        self._computed = {}

    def enter(self, sequence_ids: Sequence[str], *, is_fresh: bool) -> None:
        """A forward pass begins, with one row per sequence. `is_fresh`: from their first token."""
        self._batch, self._is_fresh, self._current = list(sequence_ids), is_fresh, {}

    def leave(self) -> None:
        """The forward pass is done: set its states aside."""
        for sequence_id in self._batch:
            self._computed[sequence_id] = {}
        while self._current:
            key, states = self._current.popitem()
            rows = list(torch.split(states, 1))
            if len(rows) > 1:  # or each row would keep the whole batch in memory
                rows = [row.clone() for row in rows]
            for sequence_id, row in zip(self._batch, rows, strict=True):
                self._computed[sequence_id][key] = row

    def commit(self) -> None:
        """The step is done: what it has computed are the states now."""
        for sequence_id, states in self._computed.items():
            assert sequence_id in self._slots, "a step of a sequence without a slot"
            self._slots[sequence_id] = states
        self._computed = {}

    # --- transformers' Cache ------------------------------------------------------------------

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        """(batch, channels, kernel_size), or None before the first token."""
        return self._read(("conv", layer_idx, state_idx))

    def update_conv_state(
        self,
        conv_states: Tensor,
        layer_idx: int,
        state_idx: int = 0,
        conv_kernel_size: int | None = None,
        **_: Any,
    ) -> Tensor:
        """conv_states: (batch, channels, new_tokens) -> the same behind those that came before.

        The last `conv_kernel_size` of them are kept; without it, as many as were given at first.
        """
        before = self._read(("conv", layer_idx, state_idx))
        size = conv_kernel_size or (conv_states if before is None else before).shape[-1]
        known = conv_states if before is None else torch.cat([before, conv_states], dim=-1)
        if known.shape[-1] < size:
            known = torch.nn.functional.pad(known, (size - known.shape[-1], 0))
        self._write(("conv", layer_idx, state_idx), known[..., -size:].clone())
        return known

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        """(batch, ...) as the layer has left it, or None before the first token."""
        return self._read(("recurrent", layer_idx, state_idx))

    def update_recurrent_state(
        self, recurrent_states: Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> Tensor:
        self._write(("recurrent", layer_idx, state_idx), recurrent_states)
        return recurrent_states

    def has_previous_state(
        self, layer_idx: int | None = None, state_idx: int | None = None
    ) -> bool:
        return not self._is_fresh

    def is_recording_past(self, layer_idx: int) -> bool:
        return False

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values are the attention function's: here they pass through."""
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """None: positions are always given, and masks are the attention function's."""
        return 0

    def _read(self, key: _Key) -> Tensor | None:
        """A copy, since layers write the next state over it."""
        if self._is_fresh:
            return None
        if key not in self._current:
            self._write(key, torch.cat([self._slots[id_][key] for id_ in self._batch]))
        return self._current[key]

    def _write(self, key: _Key, states: Tensor) -> None:
        self._current[key] = states
        self.layers_seen.add(key[1])

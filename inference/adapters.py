"""LoRA adapters of a loaded model: each sequence's tokens go through the base and its own adapter.

A step's tokens lie together by adapter, so each adapter in it costs two thin products a layer, however
many sequences use it; the base's product is one for all (Chen et al. 2023, "Punica", and Sheng et al.
2023, "S-LoRA", section 4: the base and the adapters are computed apart and added). The base's weights
are never changed, of whatever kind they are, and a step without adapters runs the very layers that there
were before. A small model that computes one adapter at a time has others in their place meanwhile
(`merged_weights.py`). Imports torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from inference.adapter_weights import Pair, Place
from inference.errors import ModelRefused, UnknownModel
from inference.low_rank import LowRankSum, Part
from inference.merged_weights import MergedWeights
from inference.messages import AdapterInfo
from inference.native.low_rank import make_sum
from inference.spans import Span


@dataclass(slots=True)
class _Step:
    """Whose the rows of a step are: a slice for each adapter, or several where its rows lie apart."""

    num_rows: int = 0
    groups: list[tuple[str, slice]] = field(default_factory=list)


class _Layer:
    """A layer of the base that some adapters change."""

    def __init__(self, module: nn.Module, step: _Step) -> None:
        self.module = module
        self.lows: dict[str, LowRankSum] = {}
        self._step = step
        self._own = module.__dict__.get("forward")
        self._plain: Callable[[Tensor], Tensor] = module.forward

    def forward(self, x: Tensor) -> Tensor:
        out = self._plain(x)
        rows, sums = x.reshape(-1, x.shape[-1]), out.view(-1, out.shape[-1])
        if len(rows) != self._step.num_rows:
            raise RuntimeError(
                f"a layer with an adapter got {len(rows)} rows of a step of {self._step.num_rows}"
            )
        for name, group in self._step.groups:
            if low := self.lows.get(name):
                low.add(rows[group], sums[group])
        return out

    def switch(self, *, is_on: bool) -> None:
        # Past nn.Module's own __setattr__, which takes longer than all else here.
        forward = self.forward if is_on else self._own
        if forward is not None:
            self.module.__dict__["forward"] = forward
        else:
            del self.module.__dict__["forward"]


class Adapters:
    """Those of one model, by name; none at first. Whoever runs the model tells `enter` what it runs."""

    def __init__(self) -> None:
        self.infos: dict[str, AdapterInfo] = {}
        self._layers: dict[int, _Layer] = {}  # by their modules' ids
        self._merged: dict[str, MergedWeights] = {}
        self._put_in: MergedWeights | None = None
        self._step = _Step()
        self._is_on = False

    @property
    def size_bytes(self) -> int:
        return sum(info.size_bytes for info in self.infos.values())

    def require(self, name: str) -> None:
        """Raises ModelRefused, with what is wrong, or UnknownModel."""
        if name not in self.infos:
            raise UnknownModel(name)
        if problem := self.infos[name].problem:
            raise ModelRefused(problem)

    def add_merged(self, info: AdapterInfo, merged: MergedWeights) -> None:
        """Have layers with an adapter in their weights, for a model that `enter_one` is called for."""
        self._merged[info.name] = merged
        self.infos[info.name] = replace(info, size_bytes=merged.size_bytes)

    def add(
        self, info: AdapterInfo, places: Mapping[str, Place], pairs: Mapping[str, Pair]
    ) -> None:
        """Put an adapter's A and B (with its scale) beside the layers that compute the same paths."""
        parts: dict[int, list[Part]] = {}
        for path, (a, b) in pairs.items():
            module, columns = places[path].module, places[path].columns
            if id(module) not in self._layers:
                self._layers[id(module)] = _Layer(module, self._step)
            parts.setdefault(id(module), []).append(Part(columns, a, b))
        lows = {key: make_sum(own) for key, own in parts.items()}
        for key, low in lows.items():
            self._layers[key].lows[info.name] = low
        size_bytes = sum(low.num_bytes for low in lows.values())
        self.infos[info.name] = replace(info, size_bytes=size_bytes)

    def refuse(self, info: AdapterInfo) -> None:
        """One that is not served, because of its problem."""
        self.infos[info.name] = info

    def enter(self, spans: Sequence[Span]) -> None:
        """The next forward computes these, packed or as the rows of a batch."""
        if not self._layers:
            return
        begin = 0
        groups: list[tuple[str, slice]] = []
        for span in spans:
            end = begin + span.num_tokens
            name, group = groups[-1] if groups else ("", slice(0, 0))
            if span.adapter and (name, group.stop) == (span.adapter, begin):
                groups[-1] = (name, slice(group.start, end))
            elif span.adapter:
                groups.append((span.adapter, slice(begin, end)))
            begin = end
        self._enter(groups, begin)

    def enter_one(self, name: str, num_rows: int) -> None:
        """The next forward computes so many rows, all through one adapter, or through none ("")."""
        merged = self._merged.get(name)
        is_other = merged is not self._put_in
        if is_other and self._put_in is not None:
            self._put_in.take_out()
            self._put_in = None
        # These may be the very same layers: whatever changes them goes before another comes.
        if self._layers:
            self._enter([(name, slice(0, num_rows))] if name and not merged else [], num_rows)
        if is_other and merged is not None:
            merged.put_in()
            self._put_in = merged

    def _enter(self, groups: list[tuple[str, slice]], num_rows: int) -> None:
        self._step.groups, self._step.num_rows = groups, num_rows
        if self._is_on != bool(groups):
            self._is_on = bool(groups)
            for layer in self._layers.values():
                layer.switch(is_on=self._is_on)

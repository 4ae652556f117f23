"""Linear layers in 8 and in 4 bits by our own kernels: see linear.c for how."""

from collections.abc import Sequence
from ctypes import addressof, byref

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from inference import int4
from inference.int4 import GROUP, HALF
from inference.int8_linear import Int8Linear, joined_bias, joined_weight, joined_whole
from inference.native.kernels import TYPES, Weight, kernels
from inference.native.pages import aligned_zeros

_OUTPUTS, _INPUTS = 16, 64  # of a tile
_ZERO = 128


def is_quick_for_many_rows() -> bool:
    """Whether the kernels gain on float32 where memory is not the limit, as in an encoder's batches."""
    library = kernels()
    return library is not None and bool(library.has_vnni())


class NativeLinear(Int8Linear):
    """Two to three times as fast as oneDNN's product with its operations around it.

    The 8 bits of the inputs, the product and its scales are one call. Raises NotImplementedError where
    there are no kernels.
    """

    def __init__(self, linears: Sequence[nn.Linear], out_dtype: torch.dtype | None = None) -> None:
        super().__init__(linears, out_dtype)
        library = kernels()
        if library is None:
            raise NotImplementedError("there are no kernels for this machine")
        self._linear = library.linear
        self.num_outputs = -(-self.out_features // _OUTPUTS) * _OUTPUTS
        self.num_inputs = -(-self.in_features // _INPUTS) * _INPUTS
        self.factors: Tensor | None = None
        whole, scales = self._quantized(linears)
        sums = self._pack(whole).sum(1, dtype=torch.int32)
        padding = (0, self.num_outputs - self.out_features)
        self.scales, self.shifts = pad(scales, padding), pad(_ZERO * sums, padding)
        bias = joined_bias(linears)
        self.bias = None if bias is None else pad(bias.float(), padding)
        tensors = (self.tiles, self.factors, self.scales, self.shifts, self.bias)
        self._weight = Weight(
            *(None if tensor is None else tensor.data_ptr() for tensor in tensors),
            *(self.out_features, self.in_features, self.num_inputs),
        )
        getattr(library, self._packer)(whole.data_ptr(), byref(self._weight))
        self.address = addressof(self._weight)

    _packer = "pack"

    def _quantized(self, linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
        """What is packed, int8 (outputs, inputs), and a scale per output."""
        return joined_whole(linears)

    def _pack(self, whole: Tensor) -> Tensor:
        """Make room for the tiles; returns the weights in 8 bits, (outputs, inputs)."""
        self.tiles = aligned_zeros(self.num_outputs * self.num_inputs)
        return whole

    @property
    def num_bytes(self) -> int:
        tensors = (self.tiles, self.factors, self.scales, self.shifts)
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype not in TYPES:
            return self.forward(x.float()).to(x.dtype)
        rows = x.reshape(-1, self.in_features)
        if rows.stride(1) != 1:
            rows = rows.contiguous()
        out_dtype = self.out_dtype or x.dtype
        num_rows = rows.shape[0]
        out = torch.empty(num_rows, self.out_features, dtype=out_dtype)
        self._linear(
            *(self.address, rows.data_ptr(), num_rows, rows.stride(0) * rows.itemsize),
            *(TYPES[x.dtype], out.data_ptr(), TYPES[out_dtype], torch.get_num_threads()),
        )
        return out.view(*x.shape[:-1], self.out_features)


class Int4Linear(NativeLinear):
    """Weights in 4 bits, with a factor for 32 of them and a scale per output (`int4`)."""

    _packer = "pack_halves"

    def _quantized(self, linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
        halves, self._group_factors, scales = int4.quantize(joined_weight(linears))
        return halves, scales

    def _pack(self, whole: Tensor) -> Tensor:
        self.tiles = aligned_zeros(self.num_outputs * self.num_inputs // 2)
        self.tiles.view(torch.uint8).fill_(HALF << 4 | HALF)
        factors = self._group_factors
        own = factors.repeat_interleave(GROUP, dim=1)[:, : self.in_features]
        num_blocks, num_groups = self.num_outputs // _OUTPUTS, self.num_inputs // GROUP
        padding = (0, num_groups - factors.shape[1], 0, self.num_outputs - len(factors))
        blocks = pad(factors, padding).view(num_blocks, _OUTPUTS, num_groups)
        self.factors = blocks.transpose(1, 2).to(torch.uint8).contiguous()
        del self._group_factors
        return (whole * own).to(torch.int8)

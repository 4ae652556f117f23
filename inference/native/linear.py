"""Linear layers in 8 bits by our own kernels: see linear.c for how."""

from collections.abc import Sequence
from ctypes import addressof, byref

import torch
from torch import Tensor, nn

from inference.int8_linear import Int8Linear, joined_bias, joined_whole
from inference.native.kernels import TYPES, Weight, aligned_zeros, kernels

_OUTPUTS, _INPUTS = 16, 64  # of a tile
_ZERO = 128


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
        whole, scales = joined_whole(linears)
        num_outputs = -(-self.out_features // _OUTPUTS) * _OUTPUTS
        num_inputs = -(-self.in_features // _INPUTS) * _INPUTS
        self.tiles = aligned_zeros(num_outputs * num_inputs)
        shifts = _ZERO * whole.sum(1, dtype=torch.int32)
        bias = joined_bias(linears)
        padding = (0, num_outputs - self.out_features)
        self.scales, self.shifts = (nn.functional.pad(t, padding) for t in (scales, shifts))
        self.bias = None if bias is None else nn.functional.pad(bias.float(), padding)
        addresses = (t.data_ptr() for t in (self.tiles, self.scales, self.shifts))
        self._weight = Weight(
            *addresses,
            self.bias.data_ptr() if self.bias is not None else None,
            *(self.out_features, self.in_features, num_inputs),
        )
        library.pack(whole.data_ptr(), byref(self._weight))
        self._address = addressof(self._weight)

    @property
    def num_bytes(self) -> int:
        return self.tiles.nbytes + self.scales.nbytes + self.shifts.nbytes

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
            *(self._address, rows.data_ptr(), num_rows, rows.stride(0) * rows.itemsize),
            *(TYPES[x.dtype], out.data_ptr(), TYPES[out_dtype], torch.get_num_threads()),
        )
        return out.view(*x.shape[:-1], self.out_features)

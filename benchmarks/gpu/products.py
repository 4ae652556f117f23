"""A layer's products by themselves, with weights of 16, 8 and 4 bits: from how many rows on is it
quicker to spell whole numbers out?
"""

from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.gpu.roofline import add_share
from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference.gpu import whole
from inference.whole_linear import WholeLinear, WholeWeight

_SHAPES = ((6144, 4096), (24576, 4096), (4096, 12288))  # outputs and inputs, of Qwen3-8B
_ROWS = (1, 2, 8, 16, 32, 64, 128, 512)
_QUICK_SHAPES, _QUICK_ROWS = ((48, 64),), (1, 3)
_ALL_BYTES = 2**29  # in bfloat16, of weights that are read in turn: more than caches hold


def measure_products(bench: Bench, found: Ceilings) -> list[Row]:
    """The percent of the roofline is the quickest one's, and the roofline bfloat16's."""
    shapes = _QUICK_SHAPES if bench.is_quick else _SHAPES
    return [row for size in shapes for row in _rows_of(bench, found, *size)]


def _rows_of(bench: Bench, found: Ceilings, num_out: int, num_in: int) -> list[Row]:
    torch.manual_seed(num_out)
    linear = nn.Linear(num_in, num_out, bias=False, device=bench.device, dtype=torch.bfloat16)
    num_copies = 1 if bench.is_quick else max(1, _ALL_BYTES // linear.weight.nbytes)
    plain = [linear.weight.detach().clone() for _ in range(num_copies)]
    of_bits = {
        bits: [WholeLinear([linear], bits=bits).weight for _ in range(num_copies)]
        for bits in (8, 4)
    }
    rows = []
    for num_rows in _QUICK_ROWS if bench.is_quick else _ROWS:
        x = torch.randn(num_rows, num_in, device=bench.device).to(torch.bfloat16)
        row: Row = {"outputs x inputs": f"{num_out} x {num_in}", "rows": num_rows}
        row["bfloat16 us"] = 1e6 * bench.device_seconds([partial(_plain, x, w) for w in plain])
        for bits, weights in of_bits.items():
            took_s = None
            if num_rows <= whole.MOST_ROWS:
                took_s = bench.device_seconds([partial(whole.linear, x, w) for w in weights])
            row[f"int{bits} us"] = took_s and 1e6 * took_s
            spelt_s = bench.device_seconds([partial(_spelt_out, x, w) for w in weights])
            row[f"int{bits} spelt out us"] = 1e6 * spelt_s
        num_weights = num_out * num_in
        least_s = max(
            2 * num_weights / found.bytes_per_s, 2 * num_weights * num_rows / found.operations_per_s
        )
        quickest_us = min(took for name, took in row.items() if name.endswith(" us") and took)
        rows.append(add_share(row, least_s, quickest_us / 1e6))
    return rows


def _plain(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight.t()


def _spelt_out(x: Tensor, weight: WholeWeight) -> Tensor:
    return x @ whole.dequantize(weight, slice(None), x.dtype).t()

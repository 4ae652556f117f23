"""`python -m benchmarks.gpu`: a device's limits, kernels, products, decode steps, weights of few bits,
serving, peers.

Weights are random, of real shapes, and prompts are random tokens. `steps` adds one thing that a step may
use after the other; `bfloat16`, `fp8`, `int8` and `int4` have all of it, with weights so. `generate` and
`batching` are transformers'. Percents of the roofline are of the limits that were measured first.
What has not begun after `--limit-s` is left out, and said to be. With `--quick` all of it is run in
small on any device, on a processor in Triton's interpreter, to see that it works.
"""

import argparse
import asyncio
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.engine.accuracy import measure_accuracy
from benchmarks.gpu.peers import measure_batching, measure_generate
from benchmarks.gpu.roofline import add_share
from benchmarks.gpu.serving import RATES, kept_model, measure_serving
from benchmarks.gpu.steps import BATCHES, FEW_BITS, measure_best, measure_steps
from benchmarks.gpu.timing import Bench, Ceilings, ceilings
from benchmarks.table import Row, machine, show, write
from inference.cli.shapes import SHAPES

KINDS = ("bfloat16", *FEW_BITS)
LIMIT_S = 480.0  # a lent device may have ten minutes in all
PARTS = ("kernels", "products", "steps", *KINDS, "dtypes", "serving", "generate", "batching")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["qwen3-0.6b"])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="of steps")
    parser.add_argument("--rates", nargs="*", type=float, default=RATES, help="requests a second")
    parser.add_argument("--no-kill", action="store_true", help="none of the worker")
    parser.add_argument("--folder", type=Path, help="where models of random weights are kept")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="to begin parts in")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device; --quick --device cpu shows that it works")
    if set(options.parts) - {*PARTS}:
        parser.error(f"the parts are {', '.join(PARTS)}")
    if options.device == "cpu" and "TRITON_INTERPRET" not in os.environ:
        _interpret()
    parts = options.parts or PARTS
    bench = Bench(torch.device(options.device), options.quick)
    limit_s = inf if options.quick else options.limit_s
    result = _Result(options.json or Path("var/benchmarks/gpu.json"), limit_s)
    found = ceilings(bench)
    limits = {"GB/s": found.bytes_per_s / 1e9, "TFLOP/s": found.operations_per_s / 1e12}
    result.figures |= {"machine": machine(), "device": _name(bench.device), "limits": limits}
    show("Limits of the device, by a copy and a product of bfloat16", [limits])
    if "kernels" in parts:
        from benchmarks.gpu.kernels import measure_kernels
        from benchmarks.gpu.prompt_kernels import measure_prompt_kernels

        result.add(
            "kernels", "Decode attention, Qwen3-8B's heads", lambda: measure_kernels(bench, found)
        )
        result.add(
            "prompt kernels",
            "Kernels of prompts, Qwen3-8B's heads",
            lambda: measure_prompt_kernels(bench, found),
        )
    if "products" in parts:
        from benchmarks.gpu.products import measure_products

        result.add(
            "products",
            "Products of a layer, Qwen3-8B's sizes",
            lambda: measure_products(bench, found),
        )
    for shape in options.shapes:
        _measure_shape(bench, found, shape, parts, options, result)
    sys.exit(bool(result.problems))


def _interpret() -> None:
    """Begin anew, in Triton's interpreter: it has to be asked for before Triton is imported."""
    words = [sys.executable, "-m", "benchmarks.gpu", *sys.argv[1:]]
    os.execve(sys.executable, words, os.environ | {"TRITON_INTERPRET": "1"})


def _measure_shape(
    bench: Bench,
    found: Ceilings,
    shape: str,
    parts: Sequence[str],
    options: argparse.Namespace,
    result: "_Result",
) -> None:
    if "steps" in parts:
        work = partial(measure_steps, bench, found, SHAPES[shape], options.batches)
        result.add(f"steps {shape}", f"{shape}: one decode step", work)
    for kind in KINDS:
        if kind in parts:
            work = partial(measure_best, bench, found, SHAPES[shape], kind, options.batches)
            title = f"{shape}: one decode step with all that there is, weights in {kind}"
            result.add(f"{kind} {shape}", title, work)
    with TemporaryDirectory(prefix="vitrine-bench-") as temporary:
        folder = options.folder or Path(temporary)
        if "dtypes" in parts:
            few = ("fp8", "int4") if options.device == "cuda" else ("int8", "int4", "fp8")
            result.add(
                f"dtypes {shape}",
                f"{shape}: weights of fewer bits, against float32",
                lambda: _with_shares(
                    found,
                    measure_accuracy(kept_model(shape, folder), ("bfloat16", "bfloat16+fp8", *few)),
                ),
            )
        if "serving" in parts:
            settings = {
                "is_quick": options.quick,
                "rates": options.rates,
                "has_kill": not options.no_kill,
            }
            result.add(
                f"serving {shape}",
                f"{shape}: requests through the engine",
                lambda: asyncio.run(
                    measure_serving(found, shape, folder, options.device, **settings)
                ),
            )
        if "batching" in parts:
            where = (shape, folder, options.device)
            work = partial(measure_batching, found, *where, is_quick=options.quick)
            result.add(f"batching {shape}", f"{shape}: requests, beside a peer", work)
    if "generate" in parts:
        title = f"{shape}: transformers' generate of one sequence"
        result.add(
            f"generate {shape}", title, partial(measure_generate, bench, found, SHAPES[shape])
        )


def _with_shares(found: Ceilings, rows: list[Row]) -> list[Row]:
    """Of a single token, for which the weights are read."""
    for row in rows:
        if row["a token ms"]:
            add_share(row, row["weights MiB"] * 2**20 / found.bytes_per_s, row["a token ms"] / 1e3)
    return rows


class _Result:
    """Written behind each part, for time on a lent device may end at any moment. A part that fails is
    told of, and the next one goes on."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self.path = path
        self.figures: Row = {}
        self.problems: dict[str, str] = {}
        self._left_out: list[str] = []
        self._end_s = time.perf_counter() + limit_s

    def add(self, key: str, title: str, work: Callable[[], list[Row]]) -> None:
        begin_s = time.perf_counter()
        if begin_s > self._end_s:
            print(f"… {key}: left out, for the time is over (--limit-s)", file=sys.stderr)
            self._left_out.append(key)
            self.figures["left out"] = self._left_out
            write(self.path, self.figures)
            return
        try:
            rows = work()
        except Exception as error:
            traceback.print_exc()
            self.problems[key] = f"{type(error).__name__}: {error}"
        else:
            self.figures[key] = rows
            show(title, rows)
        took_s = time.perf_counter() - begin_s
        print(f"… {key}: {took_s:.1f} s", file=sys.stderr, flush=True)
        if self.problems:
            self.figures["problems"] = self.problems
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        write(self.path, self.figures)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()

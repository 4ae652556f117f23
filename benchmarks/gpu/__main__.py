"""`python -m benchmarks.gpu`: a device's limits, kernels, products, decode steps, weights of few bits,
serving, peers.

Weights are random, of real shapes, and prompts are random tokens. `transformers` is its generate with a
dynamic cache, `static` with a static one, which it compiles on a GPU, on the same weights. Percents of
the roofline are of the limits that were measured first.
With `--quick` all of it is run in small on any device, to see that it works.
"""

import argparse
import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.engine.accuracy import measure_accuracy
from benchmarks.gpu.peers import measure_peers
from benchmarks.gpu.serving import RATES, measure_serving
from benchmarks.gpu.steps import BATCHES, measure_few_bits, measure_steps
from benchmarks.gpu.timing import Bench, ceilings
from benchmarks.table import machine, save, show, write
from inference.cli.random_model import make_random_model
from inference.cli.shapes import SHAPES

PARTS = ("kernels", "products", "steps", "fp8", "int4", "dtypes", "serving", "peers")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["qwen3-0.6b"])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="of steps")
    parser.add_argument("--rates", nargs="*", type=float, default=RATES, help="requests a second")
    parser.add_argument("--no-kill", action="store_true", help="none of the worker")
    parser.add_argument("--folder", type=Path, help="where models of random weights are kept")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device; --quick --device cpu shows that it works")
    if set(options.parts) - {*PARTS}:
        parser.error(f"the parts are {', '.join(PARTS)}")
    parts = options.parts or PARTS
    bench = Bench(torch.device(options.device), options.quick)
    found = ceilings(bench)
    limits = {"GB/s": found.bytes_per_s / 1e9, "TFLOP/s": found.operations_per_s / 1e12}
    show("Limits of the device, by a copy and a product of bfloat16", [limits])
    result = {"machine": machine(), "device": _name(bench.device), "limits": limits}
    has_triton = options.device == "cuda" or os.environ.get("TRITON_INTERPRET")
    if "kernels" in parts and has_triton:
        from benchmarks.gpu.kernels import measure_kernels

        result["kernels"] = measure_kernels(bench, found)
        show("Decode attention, Qwen3-8B's heads", result["kernels"])
    if "products" in parts and has_triton:
        from benchmarks.gpu.products import measure_products

        result["products"] = measure_products(bench)
        show("Products of a layer, Qwen3-8B's sizes", result["products"])
    for shape in options.shapes:
        if "steps" in parts:
            rows = result[f"steps {shape}"] = measure_steps(
                bench, found, SHAPES[shape], options.batches
            )
            show(f"{shape}: one decode step", rows)
        for kind in ("fp8", "int4"):
            if kind in parts:
                rows = result[f"{kind} {shape}"] = measure_few_bits(
                    bench, SHAPES[shape], kind, options.batches
                )
                show(f"{shape}: one decode step, weights in {kind}", rows)
        if "dtypes" in parts:
            with TemporaryDirectory(prefix="vitrine-bench-") as folder:
                model = make_random_model(shape, Path(folder) / shape)
                few = ("fp8", "int4") if options.device == "cuda" else ("int8", "int4", "fp8")
                rows = result[f"dtypes {shape}"] = measure_accuracy(
                    model, ("bfloat16", "bfloat16+fp8", *few)
                )
            show(f"{shape}: weights of fewer bits, against float32", rows)
        if "serving" in parts:
            with TemporaryDirectory(prefix="vitrine-bench-") as folder:
                serving = measure_serving(
                    shape,
                    options.folder or Path(folder),
                    options.device,
                    is_quick=options.quick,
                    rates=options.rates,
                    has_kill=not options.no_kill,
                )
                served = result[f"serving {shape}"] = asyncio.run(serving)
            show(f"{shape}: requests through the engine", served)
        if "peers" in parts:
            with TemporaryDirectory(prefix="vitrine-bench-") as folder:
                peers = result[f"peers {shape}"] = measure_peers(
                    shape, options.folder or Path(folder), options.device, is_quick=options.quick
                )
            show(f"{shape}: requests, beside a peer", peers)
    if options.json:
        write(options.json, result)
    else:
        save("gpu", result)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()

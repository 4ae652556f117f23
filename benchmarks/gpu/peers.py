"""transformers' continuous batching on the same requests as ours, one after the other."""

import asyncio
import time
from pathlib import Path

from benchmarks.engine.transformers_peer import ContinuousBatching
from benchmarks.gpu.serving import closed_loop, requests, row_of
from benchmarks.table import Row
from inference.cli.random_model import make_random_model

_SEED = 64  # of the requests' sizes


def measure_peers(shape: str, folder: Path, device: str, *, is_quick: bool) -> list[Row]:
    """A quarter of the 256 requests: it has no kernels of its own for attention over pages, but SDPA
    with a mask over the whole batch."""
    path = folder / shape
    if not path.exists():
        make_random_model(shape, path)
    count, longest = (4, 16) if is_quick else (64, 1024)
    name = f"{count} requests at once"
    rows = [asyncio.run(closed_loop(path, device, _SEED, count, longest, f"vitrine, {name}"))]
    asked = requests(_SEED, count, longest)
    peer = ContinuousBatching(path, 1, count, 2 * longest, device)
    try:
        begin_s = time.perf_counter()
        clock = time.monotonic() - begin_s
        told = peer.run(
            [list(one.prompt_ids) for one in asked], [one.params.max_tokens for one in asked]
        )
        took_s = time.perf_counter() - begin_s
    finally:
        peer.close()
    times = [[at_s - clock - begin_s for at_s in own] for own in told]
    return [*rows, row_of(f"transformers' continuous batching, {name}", times, took_s)]

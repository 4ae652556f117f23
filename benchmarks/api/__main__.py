"""`python -m benchmarks.api`: what /v1/chat/completions adds to the bare engine.

A scripted source writes 50 tokens a second for each stream; all streams begin at once, and every answer
has to come whole. CPU is that of the web process, and of all of the site's processes but the source,
from the first request to the last token; of the bare engine that of the process that reads its tokens.
"""

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path

import psutil

from benchmarks.api import bare
from benchmarks.api.client import Caller
from benchmarks.chat.scripted import __file__ as scripted_file
from benchmarks.chat.scripted import loop
from benchmarks.processes import cpu_s, without_workers
from benchmarks.table import Row, machine, save, show
from tests.sites import Site, email_of

_SCRIPTED = Path(scripted_file).parent
_ROOT = Path(__file__).resolve().parents[2]
_MODEL = "vitrine-small"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bare.environment(_SCRIPTED, _ROOT)
    environment = {
        "PYTHONPATH": f"{_SCRIPTED}:{_ROOT}",
        "SCRIPTED_LENGTH": str(loop.NUM_TOKENS),
        "VITRINE_PRELOAD": "true",
    }
    with (
        tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder,
        Site(Path(folder), None, **environment) as site,
    ):
        key = _key(site)
        asyncio.run(_round(site, key, 1))  # warm: from then on it holds what every answer needs
        idle_mib = psutil.Process(site.child("web").pid).memory_full_info().uss / 2**20
        idle_rss_mib = site.child("web").memory_info().rss / 2**20
        rows = [_row(site, key, count, options.rounds) for count in options.streams]
    show("/v1/chat/completions beside the bare engine, 50 tokens/s for each stream", rows)
    print(f"\nThe web process, idle: {idle_rss_mib:.0f} MiB resident, {idle_mib:.0f} MiB its own")
    idle = {"resident": idle_rss_mib, "own": idle_mib}
    save("api", {"machine": machine(), "rows": rows, "idle web MiB": idle})


def _key(site: Site) -> str:
    """Of a user whom no limit stops."""
    site.set_up().close()
    site.sign_up("caller").close()
    site.execute("UPDATE webapp_tier SET requests_per_minute = NULL, concurrent_runs = 1000")
    return site.create_api_key(email_of("caller"))


def _row(site: Site, key: str, count: int, num_rounds: int) -> Row:
    rounds = [asyncio.run(_round(site, key, count)) for _ in range(num_rounds)]
    bares = [asyncio.run(bare.measure(count)) for _ in range(num_rounds)]

    def median(name: str) -> float:
        return statistics.median(float(each[name]) for each in rounds)

    bare_ttft_ms = statistics.median(statistics.median(ttft_s) for ttft_s, _ in bares) * 1e3
    bare_us = statistics.median(cpu_us for _, cpu_us in bares)
    return {
        "streams": count,
        "ttft ms p50": median("ttft p50"),
        "bare ms": bare_ttft_ms,
        "added ms": median("ttft p50") - bare_ttft_ms,
        "web CPU µs/token": median("web"),
        "bare µs": bare_us,
        "all CPU µs/token": median("all"),
        "answers whole": f"{sum(int(each['whole']) for each in rounds)}/{count * num_rounds}",
    }


async def _round(site: Site, key: str, count: int) -> Row:
    callers = [Caller(site, key, _MODEL, loop.NUM_TOKENS) for _ in range(count)]
    web, every = [site.child("web")], without_workers(site)
    web_s, every_s = cpu_s(web), cpu_s(every)
    await asyncio.gather(*(caller.ask() for caller in callers))
    num_tokens = count * loop.NUM_TOKENS
    return {
        "web": (cpu_s(web) - web_s) / num_tokens * 1e6,
        "all": (cpu_s(every) - every_s) / num_tokens * 1e6,
        "ttft p50": statistics.median(caller.ttft_s for caller in callers) * 1e3,
        "whole": sum(c.text.rstrip() == loop.text_of(loop.NUM_TOKENS).rstrip() for c in callers),
    }


if __name__ == "__main__":
    main()

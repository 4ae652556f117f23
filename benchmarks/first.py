"""`python -m benchmarks.first`: time to first token, speed, and what the web layer costs per token.

The same prompts run in turn through the bare engine (our worker, no web), through a browser's socket
on a real `manage.py serve` (Postgres, log, socket and all), and through transformers' own generate on
the same weights and threads as the peer. Every answer has as many tokens as the site's system prompt
leaves room for, and nobody guesses ahead: a model that never ends repeats itself, and would be guessed
right. Rounds are interleaved, medians shown. The CPU figure is the steady one: processes' own CPU
seconds per token, without the engine worker's.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from threading import Thread

from benchmarks import table
from benchmarks.model import NAME, make_endless
from benchmarks.processes import cpu_s, without_workers
from inference import (
    Engine,
    EngineConfig,
    Finished,
    GenerateRequest,
    SamplingParams,
    Tokens,
)
from tests.chat.reader import Reader
from tests.sites import Site

QUESTION = "Tell me a long story about a lighthouse and its keeper."
CONTEXT_TOKENS = 512
THREADS = 1
Measured = tuple[float, float, float, int]  # ttft_s, wall_s, cpu_s without the worker, tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        model = make_endless(Path(folder), CONTEXT_TOKENS)
        environment = {
            "VITRINE_MODELS": f"{NAME}={model}",
            "VITRINE_DEFAULT_MODEL": NAME,
            "VITRINE_THREADS": str(THREADS),
            "VITRINE_DRAFTING": "0",
            "VITRINE_PRELOAD": "true",
        }
        with Site(Path(folder) / "data", **environment) as site:
            site.set_up().close()
            socket = _Socket(site)
            num_tokens = socket(1)[3]
            peer, bare = _Peer(model, num_tokens), _Bare(model, num_tokens)
            ways = {"transformers generate": peer, "bare engine": bare, "browser socket": socket}
            try:
                rows = _run(ways, arguments.streams, arguments.rounds)
            finally:
                bare.close()
    table.show("One answer each, all streams at once", rows)
    table.save("first", {"machine": table.machine(), "rows": rows})


def _run(
    ways: Mapping[str, Callable[[int], Measured]], streams: list[int], rounds: int
) -> list[table.Row]:
    for measure in ways.values():
        measure(1)  # warm: imports, loading, first pages
    found: dict[tuple[int, str], list[Measured]] = {}
    for _ in range(rounds):
        for num_streams in streams:
            for name, measure in ways.items():
                found.setdefault((num_streams, name), []).append(measure(num_streams))
    return [_row(*key, results) for key, results in found.items()]


def _row(num_streams: int, name: str, results: list[Measured]) -> table.Row:
    return {
        "way": name,
        "streams": num_streams,
        "tokens": results[0][3],
        "ttft ms": statistics.median(r[0] for r in results) * 1e3,
        "tokens/s": statistics.median(r[3] / r[1] for r in results),
        "web CPU µs/token": statistics.median(r[2] / r[3] for r in results) * 1e6,
    }


class _Bare:
    """Our engine by itself: this process holds the pool, the worker is its child."""

    def __init__(self, model: Path, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.config = EngineConfig(
            models_dir=model.parent / "none",
            extra_models=(f"{NAME}={model}",),
            default_model=NAME,
            num_threads=THREADS,
            max_num_drafting=0,
        )
        self.loop = asyncio.new_event_loop()
        self.engine: Engine | None = None

    def __call__(self, num_streams: int) -> Measured:
        return self.loop.run_until_complete(self._measure(num_streams))

    def close(self) -> None:
        if self.engine is not None:
            self.loop.run_until_complete(self.engine.close())
        self.loop.close()

    async def _measure(self, num_streams: int) -> Measured:
        if self.engine is None:
            self.engine = Engine(self.config)
        tokenizer = await self.engine.tokenizer(NAME)
        prompt = tokenizer.encode_chat([{"role": "user", "content": QUESTION}])
        params = SamplingParams(max_tokens=self.num_tokens, temperature=0.0)
        started, cpu = time.perf_counter(), time.process_time()
        results = await asyncio.gather(
            *(
                self._one(GenerateRequest(f"{started}.{n}", NAME, prompt, params), started)
                for n in range(num_streams)
            )
        )
        wall_s, used_s = time.perf_counter() - started, time.process_time() - cpu
        ttft_s = statistics.median(r[0] for r in results)
        return ttft_s, wall_s, used_s, sum(r[1] for r in results)

    async def _one(self, request: GenerateRequest, started: float) -> tuple[float, int]:
        assert self.engine is not None
        ttft_s = num_tokens = 0.0
        async for update in self.engine.generate(request):
            if isinstance(update, Tokens) and not ttft_s:
                ttft_s = time.perf_counter() - started
            elif isinstance(update, Finished):
                num_tokens = update.usage.completion_tokens
        return ttft_s, int(num_tokens)


class _Socket:
    """A browser's way: socket, database, log and engine. Two streams per user, as the tier allows."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def __call__(self, num_streams: int) -> Measured:
        readers = [Reader.signed_up(self.site, "reader").open() for _ in range(num_streams)]
        processes = without_workers(self.site)
        cpu_before_s = cpu_s(processes)
        started = time.perf_counter()
        results: list[tuple[float, int]] = []
        threads = [Thread(target=self._one, args=(r, started, results)) for r in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall_s, web_cpu_s = time.perf_counter() - started, cpu_s(processes) - cpu_before_s
        for reader in readers:
            with closing(reader.client):
                reader.close()
        ttft_s = statistics.median(r[0] for r in results)
        return ttft_s, wall_s, web_cpu_s, sum(r[1] for r in results)

    def _one(self, reader: Reader, started: float, results: list[tuple[float, int]]) -> None:
        accepted = reader.send(QUESTION)
        run = accepted["run"]
        while not reader.text(run):
            reader.hear()
        ttft_s = time.perf_counter() - started
        results.append((ttft_s, reader.hear_end(run)["usage"]["completion_tokens"]))


class _Peer:
    """transformers' own generate with a static batch, in this process, on as many threads."""

    def __init__(self, model: Path, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.path = model

    def __call__(self, num_streams: int) -> Measured:
        os.environ.setdefault("GOMP_SPINCOUNT", "0")
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from inference.loader import best_dtype

        if not hasattr(self, "model"):
            torch.set_num_threads(THREADS)
            self.model = AutoModelForCausalLM.from_pretrained(self.path, dtype=best_dtype())
            self.tokenizer = AutoTokenizer.from_pretrained(self.path)
        messages = [{"role": "user", "content": QUESTION}]
        ids = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=False
        ).repeat(num_streams, 1)
        num_new = self.num_tokens
        settings = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        started = time.perf_counter()
        self.model.generate(ids, max_new_tokens=1, **settings)
        ttft_s = time.perf_counter() - started
        started = time.perf_counter()
        self.model.generate(ids, max_new_tokens=num_new, **settings)
        return ttft_s, time.perf_counter() - started, 0.0, num_new * num_streams


if __name__ == "__main__":
    main()

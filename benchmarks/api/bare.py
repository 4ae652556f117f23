"""The engine without a web process around it, on the scripted source: what there is to add to."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from benchmarks.chat.scripted import loop
from inference import Engine, EngineConfig, GenerateRequest, SamplingParams, Tokens

_PROMPT = tuple(range(5, 45))


async def measure(count: int) -> tuple[list[float], float]:
    """Seconds to each stream's first token, and CPU µs per token of this process."""
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        engine = Engine(EngineConfig(models_dir=Path(folder)))
        try:
            await _stream(engine, "warm", 5)
            began_s = time.process_time()
            ttft_s = await asyncio.gather(
                *(_stream(engine, f"r{number}", loop.NUM_TOKENS) for number in range(count))
            )
            cpu_us = (time.process_time() - began_s) / (count * loop.NUM_TOKENS) * 1e6
        finally:
            await engine.close()
    return ttft_s, cpu_us


async def _stream(engine: Engine, name: str, num_tokens: int) -> float:
    params = SamplingParams(max_tokens=num_tokens)
    request = GenerateRequest(name, engine.default_model, _PROMPT, params)
    began_s, first_s = time.monotonic(), 0.0
    async for update in engine.generate(request):
        if isinstance(update, Tokens):
            first_s = first_s or time.monotonic() - began_s
    return first_s


def environment(scripted: Path, root: Path) -> None:
    """For the zygote that this process starts; before it does."""
    os.environ["PYTHONPATH"] = f"{scripted}:{root}"
    os.environ["SCRIPTED_LENGTH"] = str(loop.NUM_TOKENS)

"""A site of ours with the scripted loop in the engine's place, and before the scripted upstream."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api.client import Endpoint
from benchmarks.api.rounds import System, idle_row
from benchmarks.chat.scripted import loop
from benchmarks.processes import without_workers
from benchmarks.table import Row
from tests.sites import Site, email_of

_MODEL = "vitrine-small"
_PATH = "/v1/chat/completions"


@dataclass(frozen=True)
class Vitrine:
    """One site: `own` asks its engine, `relaying` the upstream."""

    own: System
    relaying: System
    idle: Row
    web_mib: dict[str, float]


@contextmanager
def running_vitrine(folder: Path, python_path: str, before: Endpoint) -> Iterator[Vitrine]:
    environment = {
        "PYTHONPATH": python_path,
        "SCRIPTED_LENGTH": str(loop.NUM_TOKENS),
        "VITRINE_PRELOAD": "true",
        "VITRINE_MODELS": f"{before.model}=http://127.0.0.1:{before.port}/v1",
    }
    began_s = time.monotonic()
    with Site(folder, None, **environment) as site:
        key = _key(site)
        parts = {"all": lambda: without_workers(site), "web": lambda: [site.child("web")]}
        own = System("Vitrine", Endpoint(site.port, _PATH, _MODEL, key), parts)
        own.warm()  # from then on it holds what every answer needs
        idle, web_mib = idle_row(own, time.monotonic() - began_s), _web_mib(site)
        there = Endpoint(site.port, _PATH, before.model, key)
        relaying = System("Vitrine, relaying", there, parts)
        relaying.warm()
        yield Vitrine(own, relaying, idle, web_mib)


def _key(site: Site) -> str:
    """Of a user whom no limit stops. What there is of budgets is large, not endless: then nothing would
    be held of it for an answer, as it is in a default installation."""
    site.set_up().close()
    site.sign_up("caller").close()
    site.execute(
        "UPDATE webapp_tier SET requests_per_minute = NULL, concurrent_runs = 1000,"
        " tokens_per_day = tokens_per_day * 1000, tokens_per_month = tokens_per_month * 1000"
    )
    return site.create_api_key(email_of("caller"))


def _web_mib(site: Site) -> dict[str, float]:
    memory = site.child("web").memory_full_info()
    return {"resident": memory.rss / 2**20, "own": memory.uss / 2**20}

"""An engine whose one model runs on other servers."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

from inference import (
    ChatRequest,
    Engine,
    EngineConfig,
    Said,
    Text,
    UpstreamSpec,
    UpstreamUpdate,
    parse_upstream,
)
from tests.upstream_server import UpstreamServer, events, texts

HELLO = events(*texts("Hel", "lo."))


def spec_of(*servers: UpstreamServer, options: str = "", scheme: str = "") -> UpstreamSpec:
    urls = "|".join(scheme + server.url for server in servers)
    return parse_upstream(f"far={urls}?key=K{options}#their-model", lambda _: "sk-1")


class Far:
    """An engine with one model, on other servers."""

    def __init__(self, spec: UpstreamSpec, models_dir: Path) -> None:
        self.engine = Engine(EngineConfig(models_dir=models_dir, upstreams=(spec,)))

    async def ask(self, text: str = "Hi", **fields: Any) -> list[UpstreamUpdate]:
        request = ChatRequest("r1", "far", ({"role": "user", "content": text},), **fields)
        async with aclosing(self.engine.chat(request)) as updates:
            return [update async for update in updates]


def text_of(updates: list[UpstreamUpdate]) -> str:
    segments = [s for u in updates if isinstance(u, Said) for s in u.segments]
    return "".join(s.text for s in segments if isinstance(s, Text))

"""What the way from the engine to a browser's socket costs; a scripted source takes the engine's place.

All chats are started at once, each by a user of its own. CPU is that of the site's processes without
the source: the web process alone, and all of them with Postgres, Valkey and the task worker; counted
while all streams flow, from the last one's first word to the first one's end. The source's first word
is there at its next step, so the time to it is what Vitrine adds.
"""

import asyncio
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.chat.scripted import loop
from benchmarks.processes import cpu_s, without_workers
from benchmarks.table import Row
from tests.chat.reader import TERMINAL, text_of
from tests.sites import Site

_SCRIPTED = Path(__file__).parent / "scripted"
_ROOT = Path(__file__).resolve().parents[2]
_ACK_EVERY = 50
_numbers = itertools.count(1)  # nobody asks the same twice: a text that was judged is remembered


def measure(streams: list[int], rounds: int) -> list[Row]:
    """One row for each number of streams."""
    environment = {
        "PYTHONPATH": f"{_SCRIPTED}:{_ROOT}",
        "SCRIPTED_LENGTH": str(loop.NUM_TOKENS),
        "VITRINE_PRELOAD": "true",
    }
    with (
        tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder,
        Site(Path(folder), None, **environment) as site,
    ):
        site.set_up()
        cookies = [_cookies(site, number) for number in range(max(streams))]
        asyncio.run(_round(site, cookies[:1]))  # warm: imports and pages
        found = {
            count: [asyncio.run(_round(site, cookies[:count])) for _ in range(rounds)]
            for count in streams
        }
    return [_row(count, results) for count, results in found.items()]


def _cookies(site: Site, number: int) -> str:
    client = site.sign_up(f"reader{number}")
    try:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)
    finally:
        client.close()


def _row(count: int, results: list[Row]) -> Row:
    def median(name: str) -> float:
        return statistics.median(float(result[name]) for result in results)

    return {
        "streams": count,
        "ttft ms p50": median("ttft p50"),
        "ttft ms max": median("ttft max"),
        "pieces/s each": median("pieces/s"),
        "web CPU µs/token": median("web"),
        "all CPU µs/token": median("all"),
        "answers whole": f"{sum(r['whole'] for r in results)}/{count * len(results)}",
    }


async def _round(site: Site, cookies: list[str]) -> Row:
    """All streams once; figures of this round."""
    clients = [await _Client.open(site, cookie) for cookie in cookies]
    web, every = [site.child("web")], without_workers(site)
    await asyncio.sleep(1)
    asking = [asyncio.create_task(client.ask()) for client in clients]
    while not all(client.num_events for client in clients):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    begin = _Picture(clients, web, every)
    await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    end = _Picture(clients, web, every)
    await asyncio.gather(*asking)
    for client in clients:
        await client.socket.close()
    ttft_ms = [client.ttft_s * 1e3 for client in clients]
    flowing_s = end.time_s - begin.time_s
    num_tokens = loop.TOKENS_PER_S * flowing_s * len(clients)
    return {
        "web": (end.web_s - begin.web_s) / num_tokens * 1e6,
        "all": (end.every_s - begin.every_s) / num_tokens * 1e6,
        "ttft p50": statistics.median(ttft_ms),
        "ttft max": max(ttft_ms),
        "pieces/s": (end.num_events - begin.num_events) / flowing_s / len(clients),
        "whole": sum(c.text == loop.text_of(loop.NUM_TOKENS).rstrip() for c in clients),
    }


class _Picture:
    """How far everything is at this moment."""

    def __init__(
        self, clients: list["_Client"], web: list[psutil.Process], every: list[psutil.Process]
    ) -> None:
        self.web_s, self.every_s, self.time_s = cpu_s(web), cpu_s(every), time.monotonic()
        self.num_events = sum(client.num_events for client in clients)


class _Client:
    """A tab: sends one message and listens to its answer. Reads little of what comes, and late:
    its own work is not to delay what it measures."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.ttft_s = 0.0
        self.num_events = 0
        self.text = ""

    @classmethod
    async def open(cls, site: Site, cookie: str) -> "_Client":
        address = f"ws://127.0.0.1:{site.port}/ws/chat/"
        return cls(
            await connect(
                address,
                additional_headers={"Cookie": cookie},
                origin=site.url,  # type: ignore[arg-type]
                compression=None,
            )
        )

    async def ask(self) -> None:
        started_s = time.monotonic()
        text = f"Tell me of {next(_numbers)} words."
        await self._say(type="message.send", client_id=f"c{started_s}", text=text)
        frames: list[str] = []
        run, is_over = "", False
        while not is_over:
            frame = str(await self.socket.recv())
            frames.append(frame)
            if not run and '"message.accepted"' in frame:
                run = json.loads(frame)["run"]
            if '"delta"' in frame:
                self.ttft_s = self.ttft_s or time.monotonic() - started_s
                self.num_events += 1
            if '"run.event"' in frame:
                is_over = any(f'"{kind}"' in frame for kind in TERMINAL)
                if len(frames) % _ACK_EVERY == 0:
                    await self._say(type="run.ack", run=run, seq=json.loads(frame)["seq"])
        parsed = [json.loads(frame) for frame in frames]
        self.text = text_of([f["event"] for f in parsed if f["type"] == "run.event"])

    async def _say(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

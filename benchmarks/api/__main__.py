"""`python -m benchmarks.api`: what /v1/chat/completions adds to the bare engine, and what peers do.

A scripted source writes 50 tokens a second for each stream; all streams begin at once, and every answer
has to come whole. CPU is that of the web process, and of all of the site's processes but the source,
from the first request to the last token; of the bare engine that of the process that reads its tokens.

With `--peers` other people's servers run in the same turns, before a server that says the same words at
the same pace. Vitrine stands before that one as well, beside its own engine: "relaying".
"""

import argparse
import asyncio
import os
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.api import bare
from benchmarks.api.peers import PEERS, running_peer, running_upstream
from benchmarks.api.rounds import Measure, Round, System, by_turns
from benchmarks.api.rows import cpu, ratios, row
from benchmarks.api.vitrine import Vitrine, running_vitrine
from benchmarks.chat.scripted import __file__ as scripted_file
from benchmarks.table import Row, machine, save, show

_SCRIPTED = Path(scripted_file).parent
_ROOT = Path(__file__).resolve().parents[2]
_BARE = "bare engine"
Rounds = dict[int, dict[str, list[Round]]]


def main() -> None:
    options = _options()
    bare.environment(_SCRIPTED, _ROOT)
    load = os.getloadavg()[0]  # of others: our own comes later
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vitrine-bench-")))
        upstream = stack.enter_context(running_upstream(folder))
        before = upstream.endpoint
        environments = options.environments or folder / "environments"
        started = [
            stack.enter_context(running_peer(name, environments, folder, before))
            for name in options.peers
        ]
        peers = [peer for peer, _ in started]
        python_path = f"{_SCRIPTED}:{_ROOT}"
        vitrine = stack.enter_context(running_vitrine(folder / "site", python_path, before))
        others = [vitrine.relaying, upstream, *peers] if peers else []
        rounds = _rounds([vitrine.own, *others], options.streams, options.rounds)
    rows = [_row(count, found, vitrine) for count, found in rounds.items()]
    show("/v1/chat/completions beside the bare engine, 50 tokens/s for each stream", rows)
    resident_mib, own_mib = vitrine.web_mib["resident"], vitrine.web_mib["own"]
    print(f"\nThe web process, idle: {resident_mib:.0f} MiB resident, {own_mib:.0f} MiB its own")
    print(f"The machine's load in the minute before: {load:.1f}")
    result = {"machine": machine(), "load": load, "rows": rows, "idle web MiB": vitrine.web_mib}
    if peers:
        idle = [vitrine.idle, *(row for _, row in started)]
        result |= _beside_peers(rounds, vitrine, upstream, peers) | {"idle": idle}
        show("At rest, memory of all processes but the engine's", idle)
    save("api", result)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", default=[], choices=PEERS, help="asked beside us")
    parser.add_argument(
        "--environments",
        type=lambda name: Path(name).resolve(),
        help="a folder where peers are installed, or will be; without it for this run alone",
    )
    return parser.parse_args()


def _rounds(systems: list[System], streams: list[int], num_rounds: int) -> Rounds:
    own, *others = systems
    measures: dict[str, Measure] = {own.name: own.measure, _BARE: _bare}
    measures |= {system.name: system.measure for system in others}
    return {count: by_turns(measures, count, num_rounds) for count in streams}


def _bare(count: int) -> Round:
    ttft_s, cpu_us = asyncio.run(bare.measure(count))
    return Round(statistics.median(ttft_s) * 1e3, {"all": cpu_us}, count)


def _row(count: int, found: dict[str, list[Round]], vitrine: Vitrine) -> Row:
    rounds = found[vitrine.own.name]
    own = row(vitrine.own.name, count, rounds, found[_BARE])
    return {
        "streams": count,
        "ttft ms p50": own["ttft ms p50"],
        "bare ms": own["without ms"],
        "added ms": own["added ms"],
        "web CPU µs/token": cpu(rounds, "web"),
        "bare µs": cpu(found[_BARE], "all"),
        "all CPU µs/token": own["CPU µs/token"],
        "answers whole": own["answers whole"],
    }


def _beside_peers(
    rounds: Rounds, vitrine: Vitrine, upstream: System, peers: Sequence[System]
) -> Row:
    own = [system.name for system in (vitrine.own, vitrine.relaying)]
    names = [peer.name for peer in peers]
    behind = dict.fromkeys([*own, *names], upstream.name) | {vitrine.own.name: _BARE}
    rows = [
        row(name, count, found[name], found[other])
        for count, found in rounds.items()
        for name, other in behind.items()
    ]
    show("Vitrine and peers; CPU of all processes but the source's", rows)
    quotients = ratios(rows, own, names)
    show("Vitrine in times of a peer", quotients)
    return {"peers": rows, "ratios": quotients}


if __name__ == "__main__":
    main()

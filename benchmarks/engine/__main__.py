"""`python -m benchmarks.engine [SCENARIO …]`: the engine, its peers beside it, and the machine's limits.

Weights are random, of real shapes; prompts are random tokens; every answer has as many tokens as was
asked for. All systems run the same jobs in turn, round after round, on as many threads. Figures are
medians with the distance between the quartiles (IQR); beside tokens a second stand tokens a CPU second
of the process that computes, and the share that the machine's own limits are of what was needed.

prefill, decode and mixed have peers; drawing, turns, stall, fairness and overload are about ours alone.
accuracy sets logits beside those of float32, so that no speed is bought with what nobody sees.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import table
from benchmarks.engine.accuracy import measure_accuracy
from benchmarks.engine.ceilings import Ceilings, CeilingsMeter
from benchmarks.engine.drawing import measure_drawing
from benchmarks.engine.fairness import measure_fairness
from benchmarks.engine.overload import measure_overload
from benchmarks.engine.setting import QUICK, Setting
from benchmarks.engine.speed import WORKLOADS, compare
from benchmarks.engine.stall import measure_stall
from benchmarks.engine.systems import PEERS, Peer, System, Unavailable, Vitrine
from benchmarks.engine.turns import measure_turns
from inference.cli.random_model import make_random_model
from inference.cli.shapes import SHAPES
from inference.config import DTYPES

T = TypeVar("T")

ALONE = {
    "drawing": measure_drawing,
    "turns": measure_turns,
    "stall": measure_stall,
    "fairness": measure_fairness,
}
SCENARIOS = ("accuracy", *WORKLOADS, *ALONE, "overload")
_BUSY_LOAD = 0.5  # per core: more, and others take part in every figure


def main() -> None:
    arguments = _arguments()
    setting = _setting(arguments)
    load_average = os.getloadavg()[0]
    is_busy = load_average > _BUSY_LOAD * len(os.sched_getaffinity(0))
    if is_busy:
        print(f"The machine is busy (load {load_average:.1f}): compare columns, not absolutes.")
    run = _Run(setting, arguments.dtypes, arguments.peers)
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        for shape in arguments.shapes:
            model = make_random_model(shape, Path(folder) / shape)
            run.measure(shape, model, arguments.scenarios or SCENARIOS)
    result = {
        "machine": table.machine(),
        "load_average": {"before": load_average, "after": os.getloadavg()[0]},
        "is_busy": is_busy,
        "setting": asdict(setting),
        **run.result,
    }
    if arguments.json:
        table.write(arguments.json, result)
    else:
        table.save("engine", result)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=None)
    parser.add_argument(
        "--dtypes", nargs="+", default=["bfloat16", "int8", "int4"], help="of our weights"
    )
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[*PEERS])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--overload-s", type=float, help="how long the overload lasts")
    parser.add_argument("--quick", action="store_true", help="a tiny shape and little work")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    for scenario in arguments.scenarios:
        if scenario not in SCENARIOS:
            parser.error(f"there is no scenario '{scenario}', but {', '.join(SCENARIOS)}")
    real = [name for name in SHAPES if name not in ("tiny", "qwen3-8b")]
    arguments.shapes = arguments.shapes or (["tiny"] if arguments.quick else real)
    return arguments


def _setting(arguments: argparse.Namespace) -> Setting:
    asked: dict[str, Any] = dict(QUICK) if arguments.quick else {}
    for name in ("rounds", "threads", "overload_s"):
        if (value := getattr(arguments, name)) is not None:
            asked[name] = value
    return replace(Setting(), **asked)


class _Run:
    """Measures shapes one after the other; `result` is for JSON."""

    def __init__(self, setting: Setting, dtypes: list[str], peers: list[str]) -> None:
        self._setting, self._dtypes, self._peers = setting, dtypes, peers
        self.result: dict[str, Any] = {"shapes": {}, "skipped": {}, "ceilings": []}

    def measure(self, shape: str, model: Path, scenarios: list[str] | tuple[str, ...]) -> None:
        found: dict[str, Any] = self.result["shapes"].setdefault(shape, {})
        if "accuracy" in scenarios:
            found["accuracy"] = self._accuracy(shape, model)
        if set(scenarios) == {"accuracy"}:
            return
        systems: list[System] = []
        self._ceilings = CeilingsMeter(self._setting.threads)
        try:
            ours = [v for d in self._dtypes if (v := self._start_ours(model, d))]
            systems += ours
            if any(name in WORKLOADS for name in scenarios):
                systems += [p for name in self._peers if (p := self._start_peer(model, name))]
            for name in scenarios:
                if name in WORKLOADS:
                    found[name] = self._compare(name, shape, systems)
                elif name in ALONE:
                    found[name] = self._measure_ours(name, shape, ours)
        finally:
            for system in systems:
                system.close()
            self._ceilings.close()
        if "overload" in scenarios:
            found["overload"] = self._overload(shape, model, [v.dtype for v in ours])

    def _accuracy(self, shape: str, model: Path) -> table.Row:
        dtypes = [dtype for dtype in self._dtypes if dtype in DTYPES]
        # One of the two ways in which transformers generates is enough: the logits are the same.
        peers = [name for name in self._peers if name != "transformers continuous batching"]
        rows = measure_accuracy(model, [*dtypes, *peers])
        table.show(f"{shape}: accuracy, against float32", rows)
        return {"rows": rows}

    def _compare(self, name: str, shape: str, systems: list[System]) -> table.Row:
        workloads = WORKLOADS[name](self._setting, SHAPES[shape]["vocab_size"])
        result = compare(systems, workloads, self._setting, SHAPES[shape], self._measure_ceilings)
        table.show(f"{shape}: {name}", result["rows"])
        ratios = [
            {"workload": workload, "ratio": pair, **values}
            for workload, pairs in result["ratios"].items()
            for pair, values in pairs.items()
        ]
        table.show(f"{shape}: {name}, ours over theirs", ratios)
        return result

    def _measure_ours(self, name: str, shape: str, ours: list[Vitrine]) -> table.Row:
        vocab_size = SHAPES[shape]["vocab_size"]
        results = {v.name: ALONE[name](v, self._setting, vocab_size) for v in ours}
        return _merge(f"{shape}: {name}", results)

    def _overload(self, shape: str, model: Path, dtypes: list[str]) -> table.Row:
        vocab_size = SHAPES[shape]["vocab_size"]
        results = {
            f"vitrine {dtype}": measure_overload(model, dtype, self._setting, vocab_size)
            for dtype in dtypes
        }
        return _merge(f"{shape}: overload", results)

    def _measure_ceilings(self) -> Ceilings:
        ceilings = self._ceilings.measure()
        self.result["ceilings"].append(asdict(ceilings))
        return ceilings

    def _start_ours(self, model: Path, dtype: str) -> Vitrine | None:
        return self._try(f"vitrine {dtype}", lambda: Vitrine(model, dtype, self._setting))

    def _start_peer(self, model: Path, name: str) -> Peer | None:
        return self._try(name, lambda: Peer.start(name, model, self._setting))

    def _try(self, name: str, start: Callable[[], T]) -> T | None:
        """A system that cannot run here is skipped with a line that says why."""
        try:
            return start()
        except Unavailable as error:
            self.result["skipped"][name] = str(error)
            print(f"{name} is skipped: {error}", file=sys.stderr)
            return None


def _merge(title: str, results: dict[str, table.Row]) -> table.Row:
    """The results of all our types of weights as one, shown."""
    rows = [row for result in results.values() for row in result["rows"]]
    table.show(title, rows)
    ratios = {name: result["ratios"] for name, result in results.items()}
    table.show(f"{title}, ratios", [{"system": n, **values} for n, values in ratios.items()])
    return {"rows": rows, "ratios": ratios}


if __name__ == "__main__":
    main()

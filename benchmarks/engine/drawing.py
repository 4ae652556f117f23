"""What drawing costs: many answers at once by the usual settings, beside greedy ones."""

from random import Random
from statistics import median
from typing import Any

from benchmarks import table
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, decode_span, random_prompt

# Random weights have flat logits, of which a top_p alone would keep most of the vocabulary.
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "temperature 1": {"temperature": 1.0},
    "temperature .7, top_k 20, top_p .95": {"temperature": 0.7, "top_k": 20, "top_p": 0.95},
}


def measure_drawing(vitrine: Vitrine, setting: Setting, vocab_size: int) -> table.Row:
    per_s: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for number in range(setting.rounds):
        rng = Random(f"{setting.seed} drawing {number}")
        for name, sampling in SETTINGS.items():
            jobs = [
                Job(
                    random_prompt(rng, setting.decode_prompt_tokens, vocab_size),
                    setting.decode_tokens,
                    sampling=tuple(sampling.items()),
                )
                for _ in range(max(setting.decode_streams))
            ]
            per_s[name].append(decode_span(vitrine.run(jobs)).tokens_per_s)
    rows = [
        {
            "system": vitrine.name,
            "streams": max(setting.decode_streams),
            "drawn": name,
            "tok/s": median(values),
        }
        for name, values in per_s.items()
    ]
    greedy = median(per_s["greedy"])
    return {
        "rows": rows,
        "ratios": {f"{name} / greedy": median(v) / greedy for name, v in per_s.items() if v},
    }

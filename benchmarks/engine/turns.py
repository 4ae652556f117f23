"""Turn by turn: how soon the last turn of a conversation begins, against the same prompt unseen."""

from random import Random
from statistics import median

from benchmarks import table
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, Trace, random_prompt


def measure_turns(vitrine: Vitrine, setting: Setting, vocab_size: int) -> table.Row:
    warm, cold = [], []
    for number in range(setting.rounds):
        rng = Random(f"{setting.seed} turns {number}")
        last = _converse(vitrine, setting, rng, vocab_size, salt=f"warm {number}")
        warm.append(last)
        unseen = Job(last.job.prompt_ids, 1, cache_salt=f"cold {number}")
        cold += vitrine.run([unseen])
    warm_s, cold_s = (median(trace.ttft_s for trace in traces) for traces in (warm, cold))
    row = {
        "system": vitrine.name,
        "turn": setting.turns,
        "prompt tokens": len(warm[0].job.prompt_ids),
        "cached tokens": warm[0].num_cached,
        "TTFT ms": warm_s * 1e3,
        "cold TTFT ms": cold_s * 1e3,
    }
    return {"rows": [row], "ratios": {"cold / warm": cold_s / warm_s}}


def _converse(vitrine: Vitrine, setting: Setting, rng: Random, vocab_size: int, salt: str) -> Trace:
    """All turns of a conversation; each prompt is all that was said before, and a question."""
    said = random_prompt(rng, setting.system_tokens, vocab_size)
    trace = None
    for _ in range(setting.turns):
        said += random_prompt(rng, setting.question_tokens, vocab_size)
        (trace,) = vitrine.run([Job(said, setting.answer_tokens, cache_salt=salt)])
        said += tuple(trace.ids)
    assert trace is not None
    return trace

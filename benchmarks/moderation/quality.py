"""How much is found, and how much that is harmless is flagged: texts that nothing was learnt from."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.moderation.technical import technical
from benchmarks.table import Row
from inference import EngineConfig
from moderation import evaluation, judging
from moderation.categories import INJECTION_CATEGORIES, UNSAFE_CATEGORIES, Scores
from moderation.classifiers.spec import BuiltIn
from moderation.evaluation import Case
from moderation.heads.heads import WEIGHTS
from moderation.heads.published import published, published_kinds
from moderation.heads_adapter import HEADS_ADAPTER

_APART = WEIGHTS.parent / "held_out"
_BY_STRANGERS = Path(__file__).parent / "by_strangers"
_KINDS = ("unsafe", "injection", "safe", "benign")
_SHARES = (0.01, 0.02, 0.03, 0.05)
_PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "data" / "injection"


def measure(files: Sequence[Path] = ()) -> tuple[list[Row], list[Row]]:
    """By set, and of CyberSecEval's attacks, which are among these, by kind. Or of the sets in `files`
    alone, which are JSON lines as those in `by_strangers/`."""
    by_strangers = _by_strangers(files or sorted(_BY_STRANGERS.glob("*.jsonl")))
    sets = {} if files else {f"held back: {kind}": _apart(kind) for kind in _KINDS}
    sets |= by_strangers
    kinds: dict[str, list[str]] = {}
    if not files and _PUBLISHED.is_dir():
        sets |= published(_PUBLISHED)
        kinds = published_kinds(_PUBLISHED)
    if not files:
        sets |= technical()
    texts = [text for group in sets.values() for text in group]
    cases = [Case(text, False, None) for text in dict.fromkeys(texts)]
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        config = EngineConfig(models_dir=Path(folder), adapters=(HEADS_ADAPTER,))
        judged = asyncio.run(judging.judge(cases, [], config, [BuiltIn()]))
    scores = {case.text: found for case, found in zip(judged.cases, judged.scores, strict=True)}
    rows = [_row(name, [scores[text] for text in group]) for name, group in sets.items()]
    for group in ("held back", *dict.fromkeys(name.partition(":")[0] for name in by_strangers)):
        for kind, names, others in (
            ("unsafe", UNSAFE_CATEGORIES, ("safe",)),
            ("injection", INJECTION_CATEGORIES, ("safe", "benign")),
        ):
            if f"{group}: {kind}" not in sets:
                continue
            others = tuple(one for one in others if f"{group}: {one}" in sets)
            if not others:
                continue
            true = [scores[text] for text in sets[f"{group}: {kind}"]]
            false = [scores[text] for one in others for text in sets[f"{group}: {one}"]]
            highest = evaluation.any_of([dict(one) for one in [*true, *false]], names)
            labels = [True] * len(true) + [False] * len(false)
            ordinary = highest[-len(sets[f"{group}: {others[-1]}"]) :]
            found_at = _found_at(highest[: len(true)], ordinary)
            for row in rows:
                if row["set"] == f"{group}: {kind}":
                    row |= {"AUPRC": evaluation.auprc(labels, highest), **found_at}
    return rows, [_kind(name, [scores[text] for text in group]) for name, group in kinds.items()]


def _found_at(true: Sequence[float], false: Sequence[float]) -> Row:
    """What share is found with thresholds by which so many of the others are flagged: of ordinary texts
    for injections, of those that sound unsafe for unsafe ones."""
    cuts = {share: evaluation.threshold_for(false, share) for share in _SHARES}
    return {
        f"at {share:.0%}": 100 * sum(one >= cut for one in true) / len(true)
        for share, cut in cuts.items()
    }


def _kind(name: str, found: list[Scores]) -> Row:
    at = judging.thresholds()
    flagged = sum(any(one[n] >= at[n] for n in INJECTION_CATEGORIES) for one in found)
    return {"attacks": name, "texts": len(found), "found": flagged}


def _row(name: str, found: list[Scores]) -> Row:
    at = judging.thresholds()

    def flagged(names: tuple[str, ...]) -> float:
        return 100 * sum(any(one[n] >= at[n] for n in names) for one in found) / len(found)

    return {
        "set": name,
        "texts": len(found),
        "unsafe %": flagged(UNSAFE_CATEGORIES),
        "injection %": flagged(INJECTION_CATEGORIES),
        "AUPRC": "",
        **{f"at {share:.0%}": "" for share in _SHARES},
    }


def _by_strangers(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Sets that were written by somebody who had not seen the classifiers, nor their examples. Of the
    first four in `by_strangers/` what is unsafe or sounds so: from their attacks and ordinary texts the
    heads have learnt. Nothing was learnt from the fifth and sixth, which are development sets by now."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            name = f"{path.stem} by strangers: {one['set']}"
            found.setdefault(name, []).append(one["text"])
            if one["set"] in ("injection", "benign"):
                found.setdefault(f"{name}, {one['kind']}", []).append(one["text"])
    return found


def _apart(kind: str) -> list[str]:
    """All sets; lines are `[categories] text`, those of harmless ones the text alone."""
    paths = sorted(_APART.glob(f"{kind}*.txt"))
    lines = [line for path in paths for line in path.read_text().splitlines()]
    texts = [line.partition("] ")[2] if line.startswith("[") else line for line in lines]
    texts = [text.replace("\\n", "\n") for text in texts]
    return [text for text in texts if text.strip()]

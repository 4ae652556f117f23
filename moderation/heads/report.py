"""REPORT.md: how good the heads are on what they have not seen."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from inference.adapter_files import WEIGHTS_FILE
from moderation import evaluation
from moderation.categories import (
    HEAD_CATEGORIES,
    INJECTION_CATEGORIES,
    UNSAFE_CATEGORIES,
    Scores,
)
from moderation.heads import examples as written
from moderation.heads.combining import MAX_NATURAL_FLAGGED, NaturalShare
from moderation.heads.heads import WEIGHTS, Heads, shipped_thresholds
from moderation.heads.published import published
from moderation.heads.train import Trained
from moderation.heads.vectors import CACHE_DIR, vectors_of, vectors_of_pieces
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.normalising import judged
from moderation.windows import WINDOW_WORDS, read

REPORT = Path(__file__).parent / "REPORT.md"
_ADAPTER = HEADS_ADAPTER.path / WEIGHTS_FILE

_TEXT = """\
# The embedding heads

Written by `python -m moderation.heads train`; don't edit. A logistic head for each category, on the
vector of all-minilm-l6-v2 with a LoRA adapter (`adapter/`, tuned by `inference/tuning.py`), on hashed
n-grams of words and characters, and on concepts that some thirty languages have words for
(`concepts.py`); calibrated by Platt's method on held-out folds. Of a text of more than {window} words
each sentence is read once; a window has the mean of its sentences' vectors. One head more looks at each
window for orders to a machine that were planted in a document, and two look at each sentence beside all
others: for such orders, and for tasks that the text doesn't call for. What the heads for attacks say is
added up (`attacks.py`). All of it was learnt from `examples/`, which were written for this project.

{counts}

{folds}

## Whole texts, by folds

Most examples are lines that frames and blanks multiply. There are whole texts as well: messages to an
assistant, and documents with an order planted in them or with none, by writers who had not seen the
heads and were asked for ordinary texts that a careless detector would flag. {apart_writers} of them are
held out as a whole each. Of five of these, who wrote attacks, the adapter has seen nothing. Their texts
are scored here as they are when they're served, by heads that have seen nothing of that writer. By these
scores it is learnt how much each head counts, and where attacks begin: so that of these writers'
ordinary texts together {most:.2%} are flagged.

{natural}

## Texts written apart

`held_out/`: nothing is learnt from them. What the heads missed of the first two sets was looked at
while the examples were written, so these two are development sets; the third was written after the
last example of that time. It changed one figure: the share of harmless texts that the thresholds of
harmful content may flag went from 5 to 3 %. The fourth, of injections only, was written before the
examples of the same forms that came then (overrides before a request, other languages, orders behind a
document), by the same hand and with those forms in mind. How much of it was found in sum was seen while
features were chosen; which of its lines were missed was not. Harmless lines of the first two sets that
were flagged later led to more harmless examples of their kind. The fifth, of orders in code, logs and
pages, and of code, manuals and logs without any, was written before the examples of such texts, and
which of its lines were missed or flagged was not looked at. The sixth (documents) and the seventh
(messages to an assistant) are another tenth of what the writers of the whole texts above have written,
chosen by their hash; with them and with others it was decided how much such texts count and how many
heads there are, so they are development sets too. Scored as texts are when they're
served: by their windows and their sentences, at the shipped thresholds.

{apart}

{injection}
## Files

| | |
| --- | --- |
| adapter | {adapter_size:,} bytes, sha256 {adapter} |
| weights | {size:,} bytes, sha256 {weights} |
| examples | sha256 {digest} |
| time to score | {time:.2f} ms a text of {words} words, without its vector |
"""

_AFTER_FOLDS = "## Whole texts, by folds"
_FOLDS = """\
## Held-out folds

Each example is scored by an adapter and heads that were trained without it, its neighbours in the file
and all their variants. Most of the harmless ones were written to sound harmful, so this is harder than
everyday text. ECE is the expected calibration error, of 10 bins. Precision, recall and the share of
harmless texts flagged (FPR) are those at the shipped threshold.

{categories}

{together}

{documents}

Reliability, all categories together (`p`: mean probability, `share`: how many of those hold):

{reliability}
"""
_SINCE = """\
Since the last whole training, the adapter has learnt more by whole texts of several writers
(`python -m moderation.heads tune`), and all heads have been fitted to it and to more examples
(`python -m moderation.heads fit`). What makes probabilities of the logits for harmful content, and the
figures of the held-out folds, are those of that training."""


def write(trained: Trained | None, natural: Sequence[NaturalShare], injection: Path | None) -> str:
    """The report, which is written to REPORT.md as well. `injection` holds attacks that are no part of
    this project; without it, what was measured on them is left out. Where the heads alone were fitted
    (`trained` is None), what stands there of the folds is kept."""
    heads = Heads()
    milliseconds, num_words = _time_to_score(heads)
    thresholds = trained.thresholds if trained else dict(shipped_thresholds())
    text = _TEXT.format(
        counts=_counts() if trained else f"{_counts()}\n\n{_SINCE}",
        window=WINDOW_WORDS,
        folds=_folds(trained) if trained else _folds_kept(),
        most=MAX_NATURAL_FLAGGED,
        apart_writers=len(written.WRITERS_APART),
        natural=_natural(natural),
        apart=_apart(heads, thresholds),
        injection=_injection(heads, thresholds, injection) if injection else "",
        adapter_size=_ADAPTER.stat().st_size,
        adapter=_digest(_ADAPTER),
        size=WEIGHTS.stat().st_size,
        weights=_digest(WEIGHTS),
        digest=heads.digest[:16],
        time=milliseconds,
        words=num_words,
    )
    REPORT.write_text(text, encoding="utf-8")
    return text


def _folds(trained: Trained) -> str:
    return _FOLDS.format(
        categories=_categories(trained),
        together=_together(trained),
        documents=_documents(trained),
        reliability=_reliability(trained),
    ).strip()


def _folds_kept() -> str:
    written_before = REPORT.read_text(encoding="utf-8")
    start = written_before.index(_FOLDS.partition("\n")[0])
    return written_before[start : written_before.index(_AFTER_FOLDS)].strip()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _counts() -> str:
    examples = written.training_examples()
    harmless = sum(not one.categories for one in examples)
    return (
        f"{written.num_written():,} lines written by hand become {len(examples):,} examples by frames"
        f" and blanks, in {len({one.group for one in examples}):,} groups; {harmless:,} of them are"
        " harmless."
    )


def _categories(trained: Trained) -> str:
    rows = []
    for name in HEAD_CATEGORIES:
        judged = [
            (name in one.categories, scores[name])
            for one, scores in zip(trained.examples, trained.held_out, strict=True)
            if name not in one.unjudged
        ]
        labels, scores = map(np.array, zip(*judged, strict=True))
        threshold = trained.thresholds[name]
        made = evaluation.decisions(labels, scores, threshold)
        safe = [
            found[name]
            for one, found in zip(trained.examples, trained.held_out, strict=True)
            if not one.categories
        ]
        rows.append(
            f"| {name} | {int(labels.sum()):,} | {evaluation.auprc(labels, scores):.3f}"
            f" | {evaluation.roc_auc(labels, scores):.3f}"
            f" | {evaluation.expected_calibration_error(labels, scores):.3f} | {threshold:.3f}"
            f" | {made.precision:.2f} | {made.recall:.2f}"
            f" | {evaluation.flagged_share(safe, threshold):.1%} |"
        )
    return _table(
        "category", "examples", "AUPRC", "ROC", "ECE", "threshold", "precision", "recall", "FPR",
        rows=rows,
    )  # fmt: skip


def _together(trained: Trained) -> str:
    rows = []
    for title, names in (("unsafe", UNSAFE_CATEGORIES), ("injection", INJECTION_CATEGORIES)):
        found = [
            (bool(one.categories), scores)
            for one, scores in zip(trained.examples, trained.held_out, strict=True)
            if not one.categories or not one.categories.isdisjoint(names)
        ]
        labels = [label for label, _ in found]
        rows.append(_row(title, labels, [scores for _, scores in found], names, trained.thresholds))
    return _table(
        "together", "found of", "AUPRC", "ROC", "recall", "flagged of harmless", rows=rows
    )


def _documents(trained: Trained) -> str:
    labels = np.array([one.is_order for one in trained.documents])
    scores = np.array(trained.held_out_documents)
    flagged = scores >= trained.thresholds["prompt_injection"]
    return (
        f"Documents, by their pieces alone: of {int(labels.sum()):,} with an order"
        f" {flagged[labels].mean():.1%} are found (AUPRC {evaluation.auprc(labels, scores):.3f}), and"
        f" {flagged[~labels].mean():.1%} of {int((~labels).sum()):,} harmless ones are flagged."
    )


def _natural(shares: Sequence[NaturalShare]) -> str:
    if not shares:
        return "Of the weights that are shipped these shares were not kept."
    kinds = {"harmless": "harmless", "direct": "attacks", "planted": "with an order"}
    rows = [
        f"| {one.title}: {kinds[one.kind]} | {one.num_texts:,} | {one.num_flagged / one.num_texts:.1%} |"
        for one in shares
    ]
    return _table("texts", "number", "flagged", rows=rows)


def _apart(heads: Heads, thresholds: dict[str, float]) -> str:
    texts = written.held_out_examples()
    by_file = {one.group: [] for one in texts}  # type: dict[str, list[Scores]]
    for one, scores in zip(texts, _scores_of([one.text for one in texts], heads), strict=True):
        by_file[one.group].append(scores)
    rows = []
    titles = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
    for number, title in zip(("", "2", "3", "4", "5", "6", "7"), titles, strict=True):
        safe, benign = by_file.get(f"safe{number}", []), by_file[f"benign{number}"]
        for kind, names, harmless in (
            ("unsafe", UNSAFE_CATEGORIES, safe),
            ("injection", INJECTION_CATEGORIES, [*safe, *benign]),
        ):
            if not (found := by_file.get(f"{kind}{number}", [])):
                continue
            labels = [True] * len(found) + [False] * len(harmless)
            rows.append(_row(f"{title}: {kind}", labels, [*found, *harmless], names, thresholds))
    return _table("set", "found of", "AUPRC", "ROC", "recall", "flagged of harmless", rows=rows)


def _scores_of(texts: Sequence[str], heads: Heads) -> list[Scores]:
    """As a text is scored when it's served: by its windows and its pieces."""
    texts_read = [read(judged(text)) for text in texts]
    return heads.judge(texts_read, vectors_of_pieces(texts_read, HEADS_ADAPTER.path))


def _row(
    title: str,
    labels: Sequence[bool],
    found: Sequence[Scores],
    names: Sequence[str],
    thresholds: dict[str, float],
) -> str:
    highest = [max(scores[name] for name in names) for scores in found]
    flagged = np.array([_is_flagged(scores, names, thresholds) for scores in found])
    truth = np.array(labels)
    return (
        f"| {title} | {int(flagged[truth].sum())} of {int(truth.sum())}"
        f" | {evaluation.auprc(truth, highest):.3f} | {evaluation.roc_auc(truth, highest):.3f}"
        f" | {flagged[truth].mean():.2f} | {flagged[~truth].mean():.1%} of {int((~truth).sum())} |"
    )


def _is_flagged(scores: Scores, names: Sequence[str], thresholds: dict[str, float]) -> bool:
    return any(scores[name] >= thresholds[name] for name in names)


def _reliability(trained: Trained) -> str:
    labels, scores = [], []
    for one, found in zip(trained.examples, trained.held_out, strict=True):
        for name in HEAD_CATEGORIES:
            if name not in one.unjudged:
                labels.append(name in one.categories)
                scores.append(found[name])
    bins = evaluation.reliability(labels, scores)
    rows = [f"| {one.mean_score:.3f} | {one.share_true:.3f} | {one.count:,} |" for one in bins]
    return _table("p", "share", "scores", rows=rows)


def _injection(heads: Heads, thresholds: dict[str, float], directory: Path) -> str:
    """The development set of PurpleLlama's CybersecurityBenchmarks and BIPIA, where it's at hand."""
    rows = []
    for title, texts in published(directory).items():
        found = _scores_of(texts, heads)
        flagged = [_is_flagged(one, INJECTION_CATEGORIES, thresholds) for one in found]
        unsafe = [_is_flagged(one, UNSAFE_CATEGORIES, thresholds) for one in found]
        rows.append(
            f"| {title} | {len(texts)} | {np.mean(flagged):.1%} | {np.mean(flagged[1::2]):.1%}"
            f" | {np.mean(unsafe):.1%} |"
        )
    table = _table("set", "texts", "taken for an injection", "not looked at", "unsafe", rows=rows)
    return f"""\
## A set that is not this project's

Nothing was learnt from it. But what the heads missed of every other one of its texts was looked at,
and its forms, not its lines, led to examples; and features were chosen while such shares were seen. So
it is a development set, and of others less may be found. Of CyberSecEval's direct attacks, a third are
harmless by themselves (a question on dinosaurs where the system prompt forbids them): no reader who does
not know the system prompt can tell.

{table}

"""


def _time_to_score(heads: Heads) -> tuple[float, int]:
    text = "How do I keep a sourdough starter alive while I am on holiday for three weeks?"
    vector = vectors_of([text], HEADS_ADAPTER.path, CACHE_DIR)
    times = []
    for _ in range(300):
        start = perf_counter()
        heads.score(vector, [text])
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times)), len(text.split())


def _table(*titles: str, rows: Sequence[str]) -> str:
    head = f"| {' | '.join(titles)} |\n| --- |{' ---: |' * (len(titles) - 1)}\n"
    return head + "\n".join(rows)

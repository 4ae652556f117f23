"""`python -m benchmarks.moderation [screening|quality]`: what judging texts costs, and how good it is;
without a word both."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

from benchmarks.table import machine, save, show
from inference import EngineConfig
from moderation.heads_adapter import HEADS_ADAPTER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["screening", "quality"])
    parser.add_argument(
        "--file", type=Path, action="append", default=[],
        help="JSON lines to measure the quality by alone: set (injection, benign, unsafe, safe), kind"
        " and text",
    )  # fmt: skip
    parser.add_argument("--texts", type=int, default=100, help="of each length, to screen")
    parser.add_argument("--answers", type=int, default=10, help="to screen")
    options = parser.parse_args()
    if options.part != "screening":
        _tell_quality(options.file)
    if options.part != "quality" and not options.file:
        _tell_screening(options.texts, options.answers)


def _tell_quality(files: Sequence[Path]) -> None:
    """Of texts that were held back, and of published attacks where they are at hand; or of `files`."""
    from benchmarks.moderation import quality

    rows, kinds = quality.measure(files)
    show("Built-in classifiers at the shipped thresholds", rows)
    if kinds:
        show("CyberSecEval's attacks by kind", kinds)
    name = "-".join(["moderation-quality", *(file.stem for file in files)])
    save(name, {"machine": machine(), "rows": rows, "kinds": kinds})


def _tell_screening(num_texts: int, num_answers: int) -> None:
    """Of questions by their length, and of answers."""
    from benchmarks.moderation import screening

    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        config = EngineConfig(models_dir=Path(folder), adapters=(HEADS_ADAPTER,))
        questions = asyncio.run(screening.of_questions(config, num_texts))
        answers = asyncio.run(screening.of_answers(config, num_answers))
    show("A question until its verdict", questions)
    show("An answer, each of whose sentences is judged before it is shown", answers)
    save("moderation-screening", {"machine": machine(), "questions": questions, "answers": answers})


if __name__ == "__main__":
    main()

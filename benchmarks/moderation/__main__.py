"""`python -m benchmarks.moderation screening|quality`: what judging texts costs, and how good it is."""

import argparse
import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

from benchmarks.table import machine, save, show
from inference import EngineConfig
from moderation.heads_adapter import HEADS_ADAPTER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    screening = parts.add_parser("screening", help="questions by their length, and answers")
    screening.add_argument("--texts", type=int, default=100)
    screening.add_argument("--answers", type=int, default=10)
    parts.add_parser(
        "quality", help="held-back texts, and published attacks where they are at hand"
    )
    options = parser.parse_args()
    if options.part == "quality":
        from benchmarks.moderation import quality

        rows = quality.measure()
        show("Built-in classifiers at the shipped thresholds", rows)
        save("moderation-quality", {"machine": machine(), "rows": rows})
        return
    from benchmarks.moderation import screening as part

    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        config = EngineConfig(models_dir=Path(folder), adapters=(HEADS_ADAPTER,))
        questions = asyncio.run(part.of_questions(config, options.texts))
        answers = asyncio.run(part.of_answers(config, options.answers))
    show("A question until its verdict", questions)
    show("An answer, each of whose sentences is judged before it is shown", answers)
    save("moderation-screening", {"machine": machine(), "questions": questions, "answers": answers})


if __name__ == "__main__":
    main()

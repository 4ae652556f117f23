"""`python -m moderation.heads train`: from the examples to weights, thresholds and REPORT.md."""

import argparse
import os
import sys
from pathlib import Path


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: one order of the sums
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(prog="python -m moderation.heads", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="write the weights, the thresholds and the report")
    train.add_argument("--injection", type=Path, help="a directory of attacks to report on as well")
    arguments = parser.parse_args()

    from moderation.heads.report import write
    from moderation.heads.train import train as run

    sys.stdout.write(write(run(), arguments.injection))


if __name__ == "__main__":
    main()

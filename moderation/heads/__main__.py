"""`python -m moderation.heads train`: from the examples to an adapter, weights, thresholds and a report.
`python -m moderation.heads tune`: go on with the adapter, by whole texts of many writers.
`python -m moderation.heads fit`: to the weights, by the adapter and thresholds there are."""

import argparse
import os
import sys
from pathlib import Path


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: one order of the sums
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(prog="python -m moderation.heads", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, told in (
        ("train", "write adapter, weights, thresholds and the report"),
        ("fit", "write the weights, and what the report says of them"),
    ):
        command = commands.add_parser(name, help=told)
        command.add_argument("--injection", type=Path, help="attacks to report on as well")
    commands.add_parser("tune", help="write the adapter: it learns more of whole texts")
    arguments = parser.parse_args()

    from moderation.heads.adapters import go_on
    from moderation.heads.report import write
    from moderation.heads.train import fit_to_adapter, train

    if arguments.command == "tune":
        go_on()
    elif arguments.command == "train":
        trained = train()
        sys.stdout.write(write(trained, trained.natural, arguments.injection))
    else:
        sys.stdout.write(write(None, fit_to_adapter(), arguments.injection))


if __name__ == "__main__":
    main()

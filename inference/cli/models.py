"""`python -m inference models`: which models there are, and whether they can be served."""

import argparse
import sys

from inference.catalog import ModelSpec, discover
from inference.cli.arguments import engine_config
from inference.defaults import read_context_tokens
from inference.errors import ModelError
from inference.kinds import read_kind
from inference.weights import read_weights


def run(arguments: argparse.Namespace) -> int:
    for spec in discover(engine_config(arguments)).values():
        sys.stdout.write(describe(spec) + "\n")
    return 0


def describe(spec: ModelSpec) -> str:
    """A line about a model: its size and context, or why it cannot be served."""
    if spec.path is None:
        return f"{spec.name:<40} {spec.description}"
    try:
        kind = read_kind(spec.path)
        weights = read_weights(spec.path)
        context_tokens = read_context_tokens(spec.path)
    except ModelError as error:
        return f"{spec.name:<40} {error}"
    return (
        f"{spec.name:<40} {kind:<10} {weights.num_parameters / 1e6:>10,.1f} M parameters"
        f" {weights.size_bytes / 2**20:>10,.1f} MiB {context_tokens:>9,} tokens"
    )

"""`python -m inference models`: which models there are, and whether they can be served."""

import argparse
import sys
from collections.abc import Iterator

from inference.adapter_files import read_adapter
from inference.catalog import ModelSpec, discover, problem_of
from inference.cli.arguments import engine_config
from inference.config import Adapter, EngineConfig
from inference.defaults import read_context_tokens
from inference.errors import ModelError
from inference.kinds import read_kind
from inference.weights import read_weights


def run(arguments: argparse.Namespace) -> int:
    for line in list_models(engine_config(arguments)):
        sys.stdout.write(line + "\n")
    return 0


def list_models(config: EngineConfig) -> Iterator[str]:
    """A line about each model, and then about each adapter, also one that is left out."""
    specs = discover(config)
    for spec in specs.values():
        if not (spec.base or spec.is_internal):
            yield describe(spec)
    for adapter in config.adapters:
        if not adapter.is_internal:
            yield describe_adapter(adapter, problem_of(adapter, specs))


def describe_adapter(adapter: Adapter, problem: str) -> str:
    """A line about an adapter: its base and size, or why it cannot be served."""
    if problem:
        return f"{adapter.name:<40} {problem}"
    try:
        files = read_adapter(adapter.path)
    except ModelError as error:
        return f"{adapter.name:<40} {error}"
    return (
        f"{adapter.name:<40} {'adapter':<10} {files.num_parameters / 1e6:>10,.1f} M parameters"
        f" of rank {files.rank} for {adapter.base}"
    )


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

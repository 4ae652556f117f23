"""Small models on disk, made once per run."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from inference import Engine, EngineConfig
from inference.native.kernels import kernels
from inference.tokenizer import ChatTokenizer
from tests.inference.interpreter import hasten
from tests.inference.tiny_models import make_model
from tests.inference.tiny_vision import FAMILIES, make_seeing_model

hasten()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A qwen3 with random weights and wide logits."""
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def seeing_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each family that sees."""
    folder = tmp_path_factory.mktemp("seeing")
    return {family: make_seeing_model(folder / family, family) for family in FAMILIES}


@pytest.fixture(scope="session")
def llava(seeing_models: dict[str, Path]) -> Path:
    return seeing_models["llava"]


@pytest.fixture(scope="session")
def tokenizer(llava: Path) -> ChatTokenizer:
    """Of that model."""
    return ChatTokenizer.load(llava)


needs_kernels = pytest.mark.skipif(
    kernels() is None, reason="this machine has no compiler or no AVX512-VNNI"
)


def engine_config(path: Path, **settings: object) -> EngineConfig:
    given: dict[str, Any] = {
        "models_dir": path.parent / "pulled",
        "extra_models": (f"tiny={path}",),
        "default_model": "tiny",
        "num_threads": 1,
        "kv_bytes": 64 * 2**20,
        "dtype": "float32",  # parity to the last token: bfloat16 rounds prefill and decode differently
        "gather_s": 0.0,  # what is done at a certain token is done at once
    }
    return EngineConfig(**given | settings)


@pytest.fixture
async def engine(tiny_model: Path) -> AsyncIterator[Engine]:
    """A real engine with a real worker process on the small model."""
    running = Engine(engine_config(tiny_model))
    yield running
    await running.close()

"""Small models on disk, made once per run."""

import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from inference import Engine, EngineConfig
from inference.native.kernels import kernels
from inference.tokenizer import ChatTokenizer
from tests.inference.far import HELLO, Far, spec_of
from tests.inference.hub_server import Hub
from tests.inference.interpreter import hasten
from tests.inference.tiny_models import make_model
from tests.inference.tiny_vision import FAMILIES, make_seeing_model
from tests.upstream_server import UpstreamServer

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
    kernels() is None, reason="this machine has no compiler or no AVX2"
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


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer([HELLO]) as server:
        yield server


@pytest.fixture
def other() -> Iterator[UpstreamServer]:
    with UpstreamServer([HELLO]) as server:
        yield server


@pytest.fixture
async def far(server: UpstreamServer, tmp_path: Path) -> AsyncIterator[Far]:
    far = Far(spec_of(server), tmp_path)
    yield far
    await far.engine.close()


@pytest.fixture
async def pair(server: UpstreamServer, other: UpstreamServer, tmp_path: Path) -> AsyncIterator[Far]:
    far = Far(spec_of(server, other), tmp_path)
    yield far
    await far.engine.close()


@pytest.fixture
def hub(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """One that has the tiny model."""
    import huggingface_hub.constants as constants
    from huggingface_hub import file_download, hf_api

    folder = tmp_path / "hub"
    shutil.copytree(tiny_model, folder)
    (folder / "pytorch_model.bin").write_bytes(b"never wanted")
    with Hub(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # The network outside: where the client finds its hub, and how patiently it retries.
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(hf_api.api, "endpoint", server.url)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            server.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2**14)
        monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)
        yield server
        server.shutdown()

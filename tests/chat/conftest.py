"""A real site with small random models, one of which never ends its answer by itself."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chat.reader import Reader
from tests.inference.tiny_models import make_model
from tests.sites import Site, SiteMaker

SECONDS_LONG = "endless"
"""A model that writes until its context is full: some seconds in which things can happen."""


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The value of VITRINE_MODELS."""
    folder: Path = tmp_path_factory.mktemp("chat-models")
    endless = make_model(
        folder / "endless", eos_token_id=None, num_hidden_layers=16, max_position_embeddings=700
    )
    short = make_model(folder / "short", max_position_embeddings=128, seed=1)
    return f"endless={endless},short={short}"


def chat_environment(small_models: str) -> dict[str, str]:
    return {
        "VITRINE_MODELS": small_models,
        "VITRINE_DEFAULT_MODEL": SECONDS_LONG,
        "VITRINE_DTYPE": "float32",
        "VITRINE_THREADS": "1",
        "VITRINE_PRELOAD": "true",
    }


@pytest.fixture(scope="session")
def chat_site(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    """For tests that leave the site whole."""
    with make_site(**chat_environment(small_models)) as site:
        site.set_up().close()
        yield site


@pytest.fixture
def alices_tab(chat_site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(chat_site, "alice")
    with closing(reader.client), reader:
        yield reader

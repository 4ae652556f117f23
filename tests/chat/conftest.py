"""A real site with the small random models."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.chat.reader import Reader
from tests.sites import Site, SiteMaker

SECONDS_LONG = "endless"
"""A model that writes until its context is full: some seconds in which things can happen."""


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

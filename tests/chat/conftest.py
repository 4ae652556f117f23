"""A real site with the small random models."""

from collections.abc import Iterator
from contextlib import closing

import openai
import pytest

from tests.chat.reader import Reader
from tests.sites import Site, SiteMaker, email_of

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


@pytest.fixture(scope="session")
def key(chat_site: Site) -> str:
    chat_site.sign_up("developer").close()
    return chat_site.create_api_key(email_of("developer"), "--name", "tests")


@pytest.fixture
def client(chat_site: Site, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{chat_site.url}/v1", api_key=key, max_retries=0) as client:
        yield client

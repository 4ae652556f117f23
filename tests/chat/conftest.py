"""A real site with the small random models."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import openai
import psycopg
import pytest

from tests.chat.api_caller import Caller
from tests.chat.reader import Reader
from tests.sites import Site, SiteMaker, email_of
from tests.upstream_server import UpstreamServer

if TYPE_CHECKING:
    from chat.models import Conversation
    from tests.chat.meanings import Loop
    from tests.chat.screens import Kept
    from webapp.models import User

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


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamServer]:
    """Another company's, whose models a site of the test's may have."""
    with UpstreamServer() as server:
        yield server


@pytest.fixture
def alices_tab(chat_site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(chat_site, "alice")
    with closing(reader.client), reader:
        yield reader


@pytest.fixture(scope="session")
def key(chat_site: Site) -> str:
    """Of somebody whose programs may ask for many answers at once."""
    chat_site.sign_up("developer").close()
    chat_site.execute("UPDATE webapp_tier SET concurrent_runs = 100 WHERE slug = 'enterprise'")
    chat_site.execute(
        "UPDATE webapp_user SET tier_id = 'enterprise' WHERE email = %s", email_of("developer")
    )
    return chat_site.create_api_key(email_of("developer"))


@pytest.fixture(scope="session")
def strangers_key(chat_site: Site) -> str:
    chat_site.sign_up("stranger").close()
    return chat_site.create_api_key(email_of("stranger"))


@pytest.fixture
def caller(chat_site: Site, key: str) -> Caller:
    return Caller(chat_site, key)


@pytest.fixture
def stranger(chat_site: Site, strangers_key: str) -> Caller:
    return Caller(chat_site, strangers_key)


@pytest.fixture
def client(chat_site: Site, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{chat_site.url}/v1", api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def running_loop() -> Iterator["Loop"]:
    from tests.chat.meanings import Loop

    running = Loop()
    running.load()
    yield running
    running.close()


@pytest.fixture
def loop(running_loop: "Loop") -> "Loop":
    """With the embedding model ready."""
    running_loop.load()
    return running_loop


@pytest.fixture
def cooking(alice: "User", loop: "Loop") -> "Conversation":
    """A chat of Alice's beside another one, with their vectors."""
    from tests.chat.meanings import FLIGHT, LENTILS
    from tests.chat.test_search import chat
    from webapp.tenancy import as_user

    with as_user(alice.pk):
        made = chat(alice, "Dinner", "What shall I do today?", LENTILS)
        chat(alice, "Travel", "When do we start?", FLIGHT)
    loop.embed()
    return made


@pytest.fixture
def database(chat_site: Site) -> Iterator[psycopg.Connection[Any]]:
    from webapp.servers.postgres import Postgres

    with psycopg.connect(Postgres(chat_site.data_dir).conninfo(), autocommit=True) as connection:
        connection.execute("SELECT set_config('vitrine.scope', 'system', false)")
        yield connection


# --- screens, of which no row is written ----------------------------------------------------------


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> "Kept":
    """What would have been written down."""
    from tests.chat.screens import keep_in

    return keep_in(monkeypatch)


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Texts with "bad" in them are illicit; told once this is set."""
    from tests.chat.screens import judge_by

    may_go_on = asyncio.Event()
    judge_by(monkeypatch, lambda text: {"illicit": float("bad" in text)}, may_go_on)
    return may_go_on


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from chat import moderating
    from tests.chat.screens import nobody

    monkeypatch.setattr(moderating, "screen", nobody)


@pytest.fixture
def ruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in rules alone."""
    from tests.chat.screens import by_rules, judge_by

    judge_by(monkeypatch, by_rules)


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in rules, and hate in texts with "hateful"."""
    from tests.chat.screens import by_rules, judge_by

    judge_by(monkeypatch, lambda text: by_rules(text) | {"hate": float("hateful" in text)})

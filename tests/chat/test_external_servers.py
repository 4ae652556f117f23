"""DATABASE_URL and REDIS_URL replace the embedded servers: the same chat on servers of one's own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis

from tests.chat.conftest import chat_environment
from tests.chat.reader import Reader, assert_gapless
from tests.conftest import DATA_DIR
from tests.sites import SiteMaker, free_port, wait_until

REDIS_PASSWORD = "not / the: usual@one"


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """Debian's Redis over TCP with a password that a URL must quote."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(
        [*command, "--requirepass", REDIS_PASSWORD], stdout=subprocess.DEVNULL
    )
    client = redis.Redis(port=port, password=REDIS_PASSWORD)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    try:
        wait_until(answers, what="Redis")
        yield f"redis://:not%20%2F%20the%3A%20usual%40one@127.0.0.1:{port}/3"
    finally:
        client.close()
        server.kill()
        server.wait()


@pytest.fixture
def database_url(servers: None) -> Iterator[str]:
    """A database of the role that row-level security binds."""
    name = f"external_{os.getpid()}"
    where = f"host={DATA_DIR}/sockets user=vitrine dbname=vitrine"
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://vitrine@/{name}?host={DATA_DIR}/sockets"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_chat_on_servers_of_ones_own(
    make_site: SiteMaker, small_models: str, redis_url: str, database_url: str
) -> None:
    environment = chat_environment(small_models)
    with make_site(**environment, DATABASE_URL=database_url, REDIS_URL=redis_url) as site:
        names = {process.name() for process in site.descendants()}
        assert not names & {"postgres", "valkey-server"}
        site.set_up().close()
        reader = Reader.signed_up(site, "alice")
        with closing(reader.client), reader, reader.another_tab() as other:
            accepted = reader.send("Hello there")
            # The other tab hears of it through Redis.
            assert other.hear_until(type="conversation.changed")["running"] == [accepted["run"]]
            assert reader.hear_end(accepted["run"])["kind"] == "finished"
            assert_gapless(reader.numbered(accepted["run"]))
            assert reader.saved(accepted)["text"] == reader.text(accepted["run"]) != ""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET vitrine.scope = 'system'")
        (count,) = connection.execute("SELECT count(*) FROM chat_message").fetchone() or (0,)
        assert count == 2
    assert not (site.data_dir / "sockets").exists() or not list(
        (site.data_dir / "sockets").glob(".s.PGSQL*")
    )

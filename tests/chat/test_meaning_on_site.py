"""What is said to a real site is found by its meaning, by who said it, whatever dies meanwhile."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from tests.browser.library import add_chats
from tests.chat.meanings import COOKING, LENTILS
from tests.chat.reader import Reader
from tests.chat.test_temporary import ask, said
from tests.sites import Site, SiteMaker, email_of, wait_until
from webapp.servers.postgres import Postgres


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with make_site(VITRINE_CHAT_MEANING="true", VITRINE_PRELOAD="true") as site:
        site.set_up().close()
        yield site


@contextmanager
def a_reader(site: Site, name: str) -> Iterator[Reader]:
    reader = Reader.signed_up(site, name)
    with closing(reader.client), reader:
        yield reader


def items(reader: Reader, query: str) -> list[dict[str, Any]]:
    response = reader.client.get("/api/search", params={"q": query})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["items"]
    return found


def vectors_of(site: Site) -> dict[str, int]:
    """How many rows there are, by the text of their message; 0 of one that waits."""
    statement = """
        SELECT m.text, count(v.vector) FROM chat_messagevector v
        JOIN chat_message m ON m.id = v.message_id GROUP BY m.text
    """
    with psycopg.connect(Postgres(site.data_dir).conninfo(user="postgres")) as db:
        return dict(db.execute(statement).fetchall())


def test_what_was_said_is_soon_found_by_its_owner_alone(site: Site) -> None:
    with a_reader(site, "alice") as alice:
        accepted = alice.send(LENTILS)
        alice.hear_end(accepted["run"])
        wait_until(lambda: vectors_of(site).get(LENTILS), timeout_s=60, what="a vector")
        [item] = items(alice, COOKING)
        assert item["message"] == accepted["message"]["id"]
        assert item["url"] == f"/c/{accepted['conversation']['id']}?m={item['message']}"
        assert 0.4 <= item["cosine"] < 1
        assert "".join(text for text, _ in item["snippet"]) == LENTILS
        [by_words] = items(alice, "lentils bay")
        assert by_words["cosine"] is None
    with a_reader(site, "charlie") as charlie:
        assert items(charlie, COOKING) == []


def test_a_temporary_chat_leaves_no_vector(site: Site) -> None:
    passing, lasting = f"In passing: {LENTILS}", f"To be kept: {LENTILS}"
    with a_reader(site, "temp") as reader:
        reader.hear_end(ask(reader, said("user", passing))["run"])
        reader.hear_end(reader.send(lasting)["run"])
        wait_until(lambda: vectors_of(site).get(lasting), timeout_s=60, what="a vector")
        assert passing not in vectors_of(site)


def test_messages_survive_the_death_of_everything(site: Site) -> None:
    texts = [f"{LENTILS} Then wait for {n} minutes." for n in range(300)]
    site.sign_up("many").close()
    add_chats(site, email_of("many"), {"Many": texts})
    wait_until(lambda: any(map(vectors_of(site).get, texts)), timeout_s=60, what="a vector")
    site.kill()
    site.start()
    wait_until(lambda: all(map(vectors_of(site).get, texts)), timeout_s=90, what="all vectors")
    assert {vectors_of(site)[text] for text in texts} == {1}

"""Documents on their way survive whatever dies: each ends once, and nothing is there twice."""

import signal
import time
from collections.abc import Iterator
from contextlib import closing

import httpx2
import pytest

from tests.chat.test_documents import a_collection, hits, ready, upload
from tests.sites import Site, SiteMaker, email_of, wait_until

# Some seconds of vectors, and on a processor of the slow kind, with another test beside it, no minutes.
NUM_PARTS = 24
LONG = "\n\n".join(
    f"# Part {n}\n\n" + f"The numbat number {n} eats termites by the river. " * 40
    for n in range(NUM_PARTS)
)


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with make_site() as site:
        site.set_up().close()
        site.sign_up("numbat").close()
        yield site


@pytest.fixture
def visitor(site: Site) -> Iterator[httpx2.Client]:
    with closing(site.sign_in(email_of("numbat"))) as visitor:
        visitor.get("/")
        visitor.headers["X-CSRFToken"] = visitor.cookies["vitrine_csrf"]
        yield visitor


def in_state(visitor: httpx2.Client, document: str, *states: str) -> bool:
    state = visitor.get(f"/api/documents/{document}").json()["version"]["state"]
    assert state != "failed"
    return state in states


def until_in(visitor: httpx2.Client, document: str, *states: str) -> None:
    wait_until(lambda: in_state(visitor, document, *states), timeout_s=60, what=str(states))


def assert_whole(visitor: httpx2.Client, collection: str, document: str) -> None:
    """Every passage is there once."""
    value = ready(visitor, document)
    shown = visitor.get(f"/api/collections/{collection}").json()
    assert shown["num_chunks"] == value["version"]["num_chunks"] > NUM_PARTS
    found = hits(visitor, "numbat number 17", collections=[collection], limit=50)
    places = [(hit["start"], hit["end"]) for hit in found]
    assert len(places) == len(set(places))
    assert "numbat number 17" in found[0]["text"]


@pytest.mark.parametrize("state", ["queued", "parsing", "embedding"])
def test_task_workers_die_by_kill_9(site: Site, visitor: httpx2.Client, state: str) -> None:
    collection = a_collection(visitor)
    document = upload(visitor, collection, LONG + state, "long.md").json()["id"]
    if state != "queued":
        until_in(visitor, document, state, "embedding", "ready")
    worker = site.child("worker")
    for process in [*worker.children(recursive=True), worker]:
        process.send_signal(signal.SIGKILL)
    assert_whole(visitor, collection, document)


def test_the_whole_site_dies_by_kill_9(site: Site, visitor: httpx2.Client) -> None:
    collection = a_collection(visitor)
    document = upload(visitor, collection, LONG, "long.md").json()["id"]
    until_in(visitor, document, "embedding", "ready")
    site.kill()
    site.start()
    assert_whole(visitor, collection, document)


def test_a_document_is_deleted_while_it_is_on_its_way(site: Site, visitor: httpx2.Client) -> None:
    collection = a_collection(visitor)
    kept = upload(visitor, collection, "The kowari stays.", "kept.txt").json()["id"]
    for state in ("queued", "parsing", "embedding"):
        document = upload(visitor, collection, LONG, f"{state}.md").json()["id"]
        if state != "queued":
            until_in(visitor, document, state, "embedding", "ready")
        assert visitor.delete(f"/api/documents/{document}").status_code == 204
    ready(visitor, kept)
    time.sleep(3)  # whoever was at work on the others comes to their end
    shown = visitor.get(f"/api/collections/{collection}").json()
    assert (shown["num_documents"], shown["num_chunks"]) == (1, 1)
    found = hits(visitor, "numbat kowari", collections=[collection])
    assert [hit["text"] for hit in found] == ["The kowari stays."]

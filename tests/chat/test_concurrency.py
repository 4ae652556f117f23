"""Answers at the same time: programs and people share what the tier has, exactly, in all processes."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2
import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat import concurrency
from chat.answer_rows import rights_now
from chat.bills import billed
from chat.concurrency import lease_end
from chat.errors import TooManyRuns
from chat.holds import Hold, hold_each, let_go_of_expired
from chat.ids import uuid7
from chat.models import Reservation, Usage
from chat.rights import Rights
from tests.chat.reader import Reader
from tests.chat.test_external_servers import database_url, redis_url
from tests.chat.test_limits import a_key, a_tier, place
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, events, texts
from webapp.models import Tier, User
from webapp.tenancy import as_user

__all__ = ["database_url", "redis_url"]

HELLO = [{"role": "user", "content": "Hello"}]
BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": HELLO, "max_tokens": 2},
    "responses": {"input": "Hello", "store": False, "max_output_tokens": 2},
    "messages": {"messages": HELLO, "max_tokens": 2},
    "completions": {"prompt": "Hello", "max_tokens": 2},
}


class Crowd:
    """How many requests the far server has computed at the same time, as it has seen itself.

    It counts until it begins to speak: who hears its last word is faster than its own next line. The
    first ones wait for company, which may be slow to come.
    """

    def __init__(self) -> None:
        self.most = self.num_now = self.num_answered = 0
        self._lock = threading.Condition()
        self._say = events(*texts("Hello ", "from far."))

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.num_now += 1
            self.num_answered += 1
            self.most = max(self.most, self.num_now)
            self._lock.notify_all()
            self._lock.wait_for(lambda: self.most >= 4, timeout=5)
        time.sleep(0.3)  # for a fifth
        with self._lock:
            self.num_now -= 1
        self._say(handler)


def ask(url: str, key: str, door: str, model: str, **more: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"}
    body = {"model": model, **BODIES[door], **more}
    return httpx2.post(f"{url}/v1/{door}", json=body, headers=headers, timeout=60)


def ask_at_once(sites: list[Site], key: str, num_requests: int) -> Counter[int]:
    """Three shapes of request, every second one as a stream; their status codes."""
    doors = ("chat/completions", "responses", "messages")

    def one(number: int) -> int:
        site, door = sites[number % len(sites)], doors[number % 3]
        response = ask(site.url, key, door, "far", stream=number % 2 == 0)
        assert response.status_code in (200, 429), response.text
        if response.status_code == 429:
            assert response.json()["error"]["code"] == "too_many_runs"
            assert response.headers["retry-after"] == "5"
        return response.status_code

    with ThreadPoolExecutor(50) as pool:
        return Counter(pool.map(one, range(num_requests)))


@pytest.fixture
def two_sites(
    make_site: SiteMaker, redis_url: str, database_url: str
) -> Iterator[tuple[list[Site], UpstreamServer]]:
    """Two processes that share a database, a Redis and a far server."""
    with UpstreamServer() as far, ExitStack() as stack:
        shared = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        models = {"VITRINE_MODELS": f"far={far.url}", "VITRINE_DEFAULT_MODEL": "far"}
        sites = [stack.enter_context(make_site(**models, **shared))]
        sites[0].set_up().close()  # before the other starts, and prints another link
        sites.append(stack.enter_context(make_site(**models, **shared)))
        yield sites, far


def test_of_two_hundred_at_once_never_more_than_four_run(
    two_sites: tuple[list[Site], UpstreamServer],
) -> None:
    sites, far = two_sites
    for several in (sites[:1], sites):
        key = a_key(sites[0], concurrent_runs=4)
        crowd = Crowd()
        far.answers = [crowd.answer]
        codes = ask_at_once(several, key, 200)
        assert crowd.most == 4
        assert codes[200] == crowd.num_answered >= 4
        assert codes[429] == 200 - codes[200] > 0
        # And all places are free again.
        assert ask_at_once(several, key, 4) == {200: 4}


@pytest.fixture
def writer(chat_site: Site) -> Iterator[Reader]:
    """Somebody who may have one answer at a time."""
    reader = Reader.signed_up(chat_site, "writer")
    place(chat_site, reader.email, a_tier(chat_site, concurrent_runs=1))
    with closing(reader.client), reader:
        yield reader


def test_a_chat_and_a_program_share_the_places(chat_site: Site, writer: Reader) -> None:
    key = chat_site.create_api_key(writer.email)
    run = writer.send("Write on", model="endless")["run"]
    for door in BODIES:
        refused = ask(chat_site.url, key, door, "short")
        assert refused.status_code == 429, door
        error = refused.json()["error"]
        assert (error["code"], error["type"]) == ("too_many_runs", "rate_limit_error")
        assert refused.headers["retry-after"] == "5"
        assert ("type" in refused.json()) == (door == "messages")  # Anthropic's shape
    writer.say({"type": "run.stop", "run": run, "chars": None})
    writer.hear_end(run)
    for door in BODIES:
        assert ask(chat_site.url, key, door, "short").status_code == 200, door


def test_several_choices_are_one_answer(chat_site: Site, writer: Reader) -> None:
    key = chat_site.create_api_key(writer.email)
    several = ask(chat_site.url, key, "chat/completions", "short", n=3)
    assert len(several.json()["choices"]) == 3
    prompts = ask(chat_site.url, key, "completions", "short", prompt=["a", "b"], n=2)
    assert len(prompts.json()["choices"]) == 4


def test_a_stream_has_its_place_until_its_reader_leaves(make_site: SiteMaker) -> None:
    hello = events(*texts("Hello ")[:1], hangs_s=60)
    with UpstreamServer([hello]) as far, make_site(VITRINE_MODELS=f"far={far.url}") as site:
        site.set_up().close()
        reader = Reader.signed_up(site, "writer")
        place(site, reader.email, a_tier(site, concurrent_runs=1))
        key = site.create_api_key(reader.email)
        body = {"model": "far", "messages": HELLO, "stream": True}
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{site.url}/v1/chat/completions"
        with closing(reader.client), reader:
            with httpx2.stream("POST", url, json=body, headers=headers, timeout=60) as stream:
                lines = stream.iter_lines()  # kept: without it the stream would close
                next(lines)
                reader.say({"type": "message.send", "client_id": "m", "text": "Hi", "model": "far"})
                assert reader.hear_until(type="error")["code"] == "too_many_runs"
            far.answers = [events(*texts("Hello"))]
            deadline = time.monotonic() + 20
            while ask(site.url, key, "chat/completions", "far").status_code == 429:
                assert time.monotonic() < deadline
                time.sleep(0.1)


# --- one process, one row -------------------------------------------------------------------------


@pytest.fixture
def rights(transactional_db: None, alice: User) -> Iterator[Rights]:
    Tier.objects.filter(slug="free").update(
        concurrent_runs=1, tokens_per_day=None, tokens_per_month=None
    )
    with as_user(alice.pk):
        yield Rights(User.objects.get(pk=alice.pk))


def begin(rights: Rights) -> None:
    with transaction.atomic():
        hold = Hold(uuid7(), "small", 10, leased_until=lease_end(), is_run=True)
        (refusal,) = hold_each(rights_now(rights), [hold])
    if refusal is not None:
        raise refusal


def test_of_forty_that_begin_at_once_one_goes_through(rights: Rights) -> None:
    def one(_: int) -> bool:
        with as_user(rights.user.pk):
            try:
                begin(rights)
            except TooManyRuns:
                return False
            finally:
                connection.close()
            return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(40))) == 1


def test_an_answer_of_a_process_that_died_lets_go_of_its_place(rights: Rights) -> None:
    begin(rights)
    with pytest.raises(TooManyRuns):
        begin(rights)
    past = timezone.now() - timedelta(seconds=1)
    assert Reservation.objects.get().alive_until < timezone.now() + timedelta(seconds=31)
    Reservation.objects.update(alive_until=past)
    begin(rights)


def test_an_answer_outlives_any_fixed_time(rights: Rights) -> None:
    begin(rights)
    past = timezone.now() - timedelta(seconds=1)
    Reservation.objects.update(expires_at=past, alive_until=past)
    concurrency.renew(Reservation.objects.get().pk)
    with pytest.raises(TooManyRuns):
        begin(rights)
    let_go_of_expired()
    assert Reservation.objects.exists()


async def test_what_is_no_answer_holds_while_its_process_lives(
    rights: Rights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch's line, embeddings: no place, but a part of the budget, and not beyond the process."""
    monkeypatch.setattr(concurrency, "RENEW_S", 0.05)
    monkeypatch.setattr(concurrency, "LEASE_S", 0.5)
    await Tier.objects.filter(slug="free").aupdate(tokens_per_day=1_000_000)
    limited = Rights(await User.objects.select_related("tier").aget(pk=rights.user.pk))
    async with billed(limited, "small"):
        held = await Reservation.objects.aget()
        assert held.alive_until is None
        assert held.expires_at < timezone.now() + timedelta(seconds=1)
        deadline = time.monotonic() + 10
        while (await Reservation.objects.aget()).expires_at == held.expires_at:
            assert time.monotonic() < deadline
        assert (await Reservation.objects.aget()).alive_until is None
    assert not await Reservation.objects.aexists()


async def test_a_long_answer_keeps_its_place_and_gives_it_back(
    rights: Rights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "RENEW_S", 0.05)
    monkeypatch.setattr(concurrency, "LEASE_S", 0.5)
    async with billed(rights, "small", is_run=True):
        before = (await Reservation.objects.aget()).alive_until
        deadline = time.monotonic() + 10
        while (await Reservation.objects.aget()).alive_until == before:
            assert time.monotonic() < deadline
        with pytest.raises(TooManyRuns):
            async with billed(rights, "small", is_run=True):
                pass
        async with billed(rights, "small"):  # no answer: embeddings
            pass
    assert not await Reservation.objects.aexists()
    assert await Usage.objects.aexists()

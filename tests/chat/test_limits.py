"""What limits let through, over REST and the socket, in one process and in two."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from typing import Any

import httpx2
import pytest

from tests.chat.conftest import chat_environment
from tests.chat.reader import Reader
from tests.chat.test_external_servers import database_url, redis_url
from tests.sites import Site, SiteMaker, email_of

__all__ = ["database_url", "redis_url"]

_numbers = count(1)
ASK: dict[str, Any] = {
    "model": "short",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 1,
}


def a_tier(site: Site, **limits: Any) -> str:
    """A tier of the test's own, without limits but these."""
    slug = f"test{next(_numbers)}"
    usual = {"concurrent_runs": 100, "model_names": ["*"], "features": ["tools", "api_keys"]}
    fixed = {"slug": slug, "name": slug, "weight": 1.0, "api_priority": "api"}
    fields = fixed | usual | limits
    marks = ", ".join(["%s"] * len(fields))
    site.execute(
        f"INSERT INTO webapp_tier ({', '.join(fields)}) VALUES ({marks})", *fields.values()
    )
    return slug


def a_key(site: Site, *, name: str = "", **limits: Any) -> str:
    """Of a new user in a tier with these limits."""
    name = name or f"limited{next(_numbers)}"
    site.sign_up(name).close()
    place(site, email_of(name), a_tier(site, **limits))
    return site.create_api_key(email_of(name))


def place(site: Site, email: str, tier: str) -> None:
    site.execute("UPDATE webapp_user SET tier_id = %s WHERE email = %s", tier, email)


class Caller:
    """A program with a key, which may ask many times at once, each from an address of its own."""

    def __init__(self, *sites: Site, key: str) -> None:
        self.urls = [site.url for site in sites]
        self.client = httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60)

    def ask(self, number: int = 0, **more: Any) -> httpx2.Response:
        url = self.urls[number % len(self.urls)]
        forged = {"X-Forwarded-For": f"203.0.113.{number % 250}, 198.51.100.{number % 250}"}
        return self.client.post(f"{url}/v1/chat/completions", json=ASK | more, headers=forged)

    def ask_at_once(self, num_requests: int) -> list[httpx2.Response]:
        with ThreadPoolExecutor(40) as pool:
            return list(pool.map(self.ask, range(num_requests)))

    def close(self) -> None:
        self.client.close()


def check_refusals(responses: list[httpx2.Response], limit: int) -> None:
    assert Counter(r.status_code for r in responses) == {200: limit, 429: len(responses) - limit}
    for response in responses:
        assert response.headers["x-ratelimit-limit-requests"] == str(limit)
        if response.status_code == 429:
            assert response.json()["error"]["code"] == "rate_limit_exceeded"
            assert 1 <= int(response.headers["retry-after"]) <= 60
            assert response.headers["x-ratelimit-remaining-requests"] == "0"


def test_of_two_hundred_at_once_the_allowed_number_is_answered(chat_site: Site) -> None:
    key = a_key(chat_site, requests_per_minute=10)
    with closing(Caller(chat_site, key=key)) as caller:
        check_refusals(caller.ask_at_once(200), limit=10)


@pytest.fixture
def two_sites(
    make_site: SiteMaker, small_models: str, redis_url: str, database_url: str
) -> Iterator[tuple[Site, Site]]:
    """Two processes that share a database and a Redis."""
    environment = chat_environment(small_models)
    with ExitStack() as stack:
        sites = [make_site(**environment, DATABASE_URL=database_url, REDIS_URL=redis_url)]
        stack.enter_context(sites[0])
        sites[0].set_up().close()  # before the other starts, and prints another link
        sites.append(make_site(**environment, DATABASE_URL=database_url, REDIS_URL=redis_url))
        stack.enter_context(sites[1])
        yield sites[0], sites[1]


def test_two_processes_count_as_one(two_sites: tuple[Site, Site]) -> None:
    one, other = two_sites
    key = a_key(one, requests_per_minute=10)
    with closing(Caller(one, other, key=key)) as caller:
        check_refusals(caller.ask_at_once(200), limit=10)


def test_a_key_may_have_less_than_its_user(chat_site: Site) -> None:
    name = f"limited{next(_numbers)}"
    full = a_key(chat_site, name=name, requests_per_minute=8)
    narrow = chat_site.create_api_key(email_of(name))
    chat_site.execute(
        "UPDATE webapp_apikey SET requests_per_minute = 3 WHERE prefix = %s", narrow[:11]
    )
    with closing(Caller(chat_site, key=narrow)) as caller:
        check_refusals(caller.ask_at_once(20), limit=3)
    with closing(Caller(chat_site, key=full)) as caller:
        codes = Counter(response.status_code for response in caller.ask_at_once(20))
    assert codes == {200: 5, 429: 15}


def test_socket_messages_count_too(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "hasty")
    place(chat_site, reader.email, a_tier(chat_site, requests_per_minute=3))
    with closing(reader.client), reader:
        for number in range(5):
            frame = {"type": "message.send", "client_id": f"m{number}", "text": "Hi"}
            reader.say(frame | {"model": "short"})
        reader.say({"type": "ping"})
        reader.hear_until(type="pong")
        errors = [frame for frame in reader.frames if frame["type"] == "error"]
        accepted = [frame for frame in reader.frames if frame["type"] == "message.accepted"]
        assert [frame["client_id"] for frame in errors] == ["m3", "m4"]
        assert len(accepted) == 3
        assert all(frame["code"] == "rate_limit_exceeded" for frame in errors)
        assert all(1 <= frame["retry_after_s"] <= 60 for frame in errors)
        # By REST it is the same window.
        with closing(Caller(chat_site, key=chat_site.create_api_key(reader.email))) as caller:
            assert caller.ask().status_code == 429


def test_models_that_are_not_granted_are_not_there(chat_site: Site) -> None:
    tier = a_tier(chat_site, model_names=["short", "call*"])
    reader = Reader.signed_up(chat_site, "narrow")
    place(chat_site, reader.email, tier)
    key = chat_site.create_api_key(reader.email)
    with closing(Caller(chat_site, key=key)) as caller, closing(reader.client), reader:
        refused, unknown = caller.ask(model="endless"), caller.ask(model="unheard-of")
        assert refused.status_code == unknown.status_code == 404
        of_refused = refused.text.replace("endless", "unheard-of")
        assert of_refused == unknown.text
        assert caller.ask(model="short").status_code == 200
        listed = caller.client.get(f"{chat_site.url}/v1/models").json()["data"]
        assert {model["id"] for model in listed} == {"short", "caller"}
        assert caller.client.get(f"{chat_site.url}/v1/models/endless").status_code == 404
        shown = {model["name"] for model in reader.hear_until(type="hello")["models"]}
        assert shown == {"short", "caller"}
        reader.say({"type": "message.send", "client_id": "m", "text": "Hi", "model": "endless"})
        assert reader.hear_until(type="error")["code"] == "model_not_found"
        assert "endless" not in reader.client.get("/settings/").text


def test_budgets_end_answers_and_say_so(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "spender")
    place(chat_site, reader.email, a_tier(chat_site, tokens_per_day=20))
    with closing(reader.client), reader:
        first = reader.send("Hello", model="short")
        reader.hear_end(first["run"])
        reader.say({"type": "message.send", "client_id": "m", "text": "Hi", "model": "short"})
        error = reader.hear_until(type="error")
        assert error["code"] == "insufficient_quota"
        used = reader.client.get("/api/usage").json()
        (by_day,) = used["items"]
        assert by_day["num_requests"] == 1
        (gauge,) = [each for each in used["budgets"] if each["name"] == "tokens_per_day"]
        spent = by_day["prompt_tokens"] + by_day["completion_tokens"]
        assert (gauge["used"], gauge["limit"]) == (spent, 20)
        assert "This is used up" in reader.client.get("/settings/usage").text
        with closing(Caller(chat_site, key=chat_site.create_api_key(reader.email))) as caller:
            refused = caller.ask()
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "insufficient_quota"

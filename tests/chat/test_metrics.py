"""/metrics: who may read it, and that it counts what was answered, by the model and from the cache."""

from collections.abc import Iterator
from contextlib import closing

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.chat.reader import Reader, a_reader
from tests.chat.test_answer_cache import QUESTION, a_cached_collection, ask
from tests.chat.test_answers_from_documents import BUILTIN
from tests.sites import ADMIN_EMAIL, Site, email_of

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""(name, its labels) -> value."""


@pytest.fixture
def alice(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "alice")


@pytest.fixture(scope="module")
def key(chat_site: Site) -> str:
    return chat_site.create_api_key(ADMIN_EMAIL, "admin:read")


def scraped(site: Site, key: str) -> Samples:
    response = asked(site, key)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.text)
    samples = [sample for family in families for sample in family.samples]
    values = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(values) == len(samples), "once each"
    return values


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0)


def asked(site: Site, key: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.get(f"{site.url}/metrics", headers=headers, timeout=60)


def test_answers_are_counted_by_model_and_by_the_cache(
    chat_site: Site, alice: Reader, key: str
) -> None:
    sources = {"collections": [a_cached_collection(alice)]}
    before = scraped(chat_site, key)
    first = ask(alice, QUESTION, sources=sources)
    ask(alice, QUESTION, sources=sources)
    after = scraped(chat_site, key)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    asked_here = {"model": BUILTIN, "priority": "interactive"}
    assert grown("vitrine_answer_cache_lookups_total", outcome="miss") == 1
    assert grown("vitrine_answer_cache_lookups_total", outcome="same") == 1
    assert grown("vitrine_answers_total", **asked_here, outcome="stop") == 2
    usage = first["usage"]
    for kind in ("prompt", "cached", "completion"):
        assert grown("vitrine_tokens_total", **asked_here, kind=kind) == usage[f"{kind}_tokens"]
    assert grown("vitrine_ttft_seconds_count", **asked_here) == 2
    assert grown("vitrine_queued_seconds_count", **asked_here) == 1
    assert value(after, "vitrine_model_state", model=BUILTIN, state="ready") == 1
    assert value(after, "vitrine_kv_tokens", model=BUILTIN, state="total") > 0
    assert value(after, "vitrine_worker_ready", model=BUILTIN, worker="1") == 1
    assert value(after, "vitrine_worker_straggling", model=BUILTIN, worker="1") == 0
    assert ("vitrine_documents_unfinished", frozenset({("state", "embedding")})) in after
    free, total = (value(after, "vitrine_disk_bytes", state=state) for state in ("free", "total"))
    assert 0 < free < total
    assert value(after, "process_resident_memory_bytes") > 2**20


def test_a_name_that_a_caller_makes_up_is_no_label(chat_site: Site, key: str) -> None:
    chat_site.sign_up("metrics-dora").close()
    own = chat_site.create_api_key(email_of("metrics-dora"))
    body = {"model": "made-up-model", "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"Authorization": f"Bearer {own}"}
    httpx2.post(f"{chat_site.url}/v1/chat/completions", json=body, headers=headers)
    assert "made-up-model" not in asked(chat_site, key).text


def test_only_administrators_read_it(chat_site: Site, alice: Reader, key: str) -> None:
    assert asked(chat_site, "").status_code == 302
    assert alice.client.get("/metrics").status_code == 403
    narrow = chat_site.create_api_key(ADMIN_EMAIL)
    hers = chat_site.create_api_key(alice.email)
    assert [asked(chat_site, each).status_code for each in (narrow, hers)] == [403, 403]
    post = httpx2.post(f"{chat_site.url}/metrics", headers={"Authorization": f"Bearer {key}"})
    assert post.status_code == 403
    with closing(chat_site.set_up()) as admin:
        assert admin.get("/metrics").status_code == 200

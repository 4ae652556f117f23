"""A batch outlives the process that works on it: nothing lost, nothing twice."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest

from tests.chat.batch_client import begin, chat_body, ended, line, results
from tests.chat.conftest import chat_environment
from tests.openai_description import needs_description
from tests.sites import ADMIN_EMAIL, Site, SiteMaker, wait_until
from tests.upstream_server import UpstreamServer, events, texts

pytestmark = needs_description

NUM_LINES = 40


@pytest.fixture(scope="module")
def breakable_site(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    with make_site(DRAIN_TIMEOUT_S="1", **chat_environment(small_models)) as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def admins_key(breakable_site: Site) -> str:
    return breakable_site.create_api_key(ADMIN_EMAIL)


@contextmanager
def _under_way(site: Site, key: str) -> Iterator[tuple[openai.OpenAI, str]]:
    """A batch with something done, and much that is not."""
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=9) as client:
        lines = [
            line(str(n), chat_body(f"Say {n}", seed=n, max_tokens=30)) for n in range(NUM_LINES)
        ]
        batch_id: str = begin(client, lines).id
        wait_until(
            lambda: client.batches.retrieve(batch_id).request_counts.completed >= 3,  # type: ignore[union-attr]
            timeout_s=60,
            what="the first results",
        )
        yield client, batch_id


def _assert_whole(client: openai.OpenAI, batch_id: str) -> None:
    batch = ended(client, batch_id, timeout_s=120)
    assert batch.status == "completed"
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (NUM_LINES, NUM_LINES, 0)
    assert batch.error_file_id is None
    found = results(client, batch.output_file_id)
    assert list(found) == [str(n) for n in range(NUM_LINES)]
    tokens = [r["response"]["body"]["usage"]["total_tokens"] for r in found.values()]
    assert batch.usage.total_tokens == sum(tokens)


def test_the_web_process_is_killed(breakable_site: Site, admins_key: str) -> None:
    with _under_way(breakable_site, admins_key) as (client, batch_id):
        web = breakable_site.child("web")
        web.kill()
        web.wait()
        _assert_whole(client, batch_id)


def test_everything_is_killed(breakable_site: Site, admins_key: str) -> None:
    with _under_way(breakable_site, admins_key) as (client, batch_id):
        breakable_site.kill()
        breakable_site.start()
        _assert_whole(client, batch_id)


def test_a_restart_leaves_it_to_the_next_process(breakable_site: Site, admins_key: str) -> None:
    with _under_way(breakable_site, admins_key) as (client, batch_id):
        breakable_site.stop()
        breakable_site.start()
        _assert_whole(client, batch_id)


def test_the_database_is_killed(breakable_site: Site, admins_key: str) -> None:
    with _under_way(breakable_site, admins_key) as (client, batch_id):
        breakable_site.child("postgres").kill()
        _assert_whole(client, batch_id)


def test_a_process_that_was_frozen_does_not_answer_beside_the_other(
    breakable_site: Site, admins_key: str
) -> None:
    """A lease that ran out while its owner slept: it goes on, or another does, and never both."""
    with _under_way(breakable_site, admins_key) as (client, batch_id):
        web = breakable_site.child("web")
        web.suspend()
        taken = "UPDATE chat_batch SET lease_owner = 'another', lease_until = now() + %s::interval"
        breakable_site.execute(f"{taken} WHERE id = %s", "4 seconds", batch_id[6:])
        web.resume()
        _assert_whole(client, batch_id)


def test_the_far_server_is_asked_again_for_no_line_that_is_kept(make_site: SiteMaker) -> None:
    """Counted where it costs: of the lines that were kept when the process died, none is run twice."""
    with UpstreamServer() as far:
        far.answers = [events(*texts("Hello ", "from far."))]
        slow = {"VITRINE_BATCH_LINES": "2"}
        with make_site(
            VITRINE_MODELS=f"far={far.url}", VITRINE_DEFAULT_MODEL="far", **slow
        ) as site:
            site.set_up().close()
            key = site.create_api_key(ADMIN_EMAIL)
            with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=9) as client:
                lines = [line(str(n), chat_body(f"Say {n}", model="far")) for n in range(200)]
                batch_id = begin(client, lines).id
                wait_until(
                    lambda: client.batches.retrieve(batch_id).request_counts.completed >= 10,  # type: ignore[union-attr]
                    timeout_s=60,
                    what="the first results",
                )
                web = site.child("web")
                web.kill()
                web.wait()
                batch = ended(client, batch_id, timeout_s=120)
                assert len(results(client, batch.output_file_id)) == 200
        asked = Counter(one.body["messages"][-1]["content"] for one in far.asked)
        assert len(asked) == 200
        # Only the two that were on their way can have been asked for once more.
        assert sum(asked.values()) <= 202

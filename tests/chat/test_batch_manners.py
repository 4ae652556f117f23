"""Whoever waits for an answer does not wait for a batch. Told by what comes first, not by clocks."""

from collections.abc import Iterator

import openai
import pytest

from tests.chat.batch_client import begin, chat_body, ended, line
from tests.chat.conftest import chat_environment
from tests.chat.reader import Reader
from tests.openai_description import needs_description
from tests.sites import ADMIN_EMAIL, Site, SiteMaker, wait_until

pytestmark = needs_description

LINES_AT_ONCE = 60
LONG = "Tell me all of it. " * 24


@pytest.fixture
def busy_site(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    """So many lines at once that a queue in the order of arrival would be long."""
    environment = chat_environment(small_models)
    with make_site(VITRINE_BATCH_LINES=str(LINES_AT_ONCE), **environment) as site:
        yield site


def test_a_chat_and_a_program_go_before_a_batch(busy_site: Site) -> None:
    visitor = busy_site.set_up()
    key = busy_site.create_api_key(ADMIN_EMAIL)
    busy_site.execute("UPDATE webapp_tier SET concurrent_runs = 1")
    with openai.OpenAI(base_url=f"{busy_site.url}/v1", api_key=key, max_retries=0) as client:
        lines = [line(str(n), chat_body(f"{n} {LONG}", max_tokens=40)) for n in range(300)]
        batch_id = begin(client, lines).id

        def num_done() -> int:
            counts = client.batches.retrieve(batch_id).request_counts
            assert counts is not None
            return counts.completed

        wait_until(lambda: num_done() >= 4, timeout_s=120, what="the first results")
        # The batch takes none of the places: with the tier's only one there is an answer at once.
        before = num_done()
        stream = client.chat.completions.create(**chat_body("Now", max_tokens=8), stream=True)
        assert any(chunk.choices[0].delta.content for chunk in stream if chunk.choices)
        assert num_done() - before < LINES_AT_ONCE // 2
        assert list(stream)  # to its end, which is when its place is free again

        with Reader(busy_site, visitor) as reader:
            before = num_done()
            accepted = reader.send("And now")
            reader.hear_events(accepted["run"], 2)
            assert num_done() - before < LINES_AT_ONCE // 2
            reader.say({"type": "run.stop", "run": accepted["run"], "chars": 0})
            reader.hear_end(accepted["run"])
        client.batches.cancel(batch_id)
        assert ended(client, batch_id).status == "cancelled"

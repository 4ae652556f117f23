"""What dies comes back, and the answer with it: nothing lost, nothing twice, nothing else."""

import signal
import time
from collections.abc import Iterator
from contextlib import closing

import openai
import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from tests.chat.conftest import chat_environment
from tests.chat.reader import Frame, Reader, assert_gapless
from tests.chat.test_traces import assert_adds_up, kinds, trace_of
from tests.engine_workers import engine_workers
from tests.sites import ADMIN_EMAIL, Site, SiteMaker, wait_until


@pytest.fixture(scope="module")
def breakable_site(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    with make_site(DRAIN_TIMEOUT_S="1", **chat_environment(small_models)) as site:
        site.set_up().close()
        yield site


@pytest.fixture
def reader(breakable_site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(breakable_site, "alice")
    with closing(reader.client), reader:
        yield reader


def engine_worker(site: Site) -> psutil.Process:
    def find() -> psutil.Process | None:
        return next(iter(engine_workers(site.process.pid)), None)

    process: psutil.Process = wait_until(find, what="an engine worker")
    return process


def _begin(reader: Reader) -> tuple[Frame, str]:
    """An answer that has been under way for a while."""
    accepted = reader.send("Say something long")
    reader.hear_events(accepted["run"], 4)
    return accepted, accepted["run"]


def come_back(reader: Reader, run: str) -> None:
    """Reconnect as a browser does: with the last seq, as often as it takes."""
    reader.close()

    def opened() -> bool:
        try:
            reader.open()
        except (OSError, ConnectionClosed, TimeoutError):
            return False
        return True

    wait_until(opened, timeout_s=60, what="a connection")
    reader.follow(run, after=reader.numbered(run)[-1][0])


def _assert_whole(reader: Reader, accepted: Frame, run: str) -> None:
    end = reader.hear_end(run)
    assert end["kind"] == "finished", end
    assert_gapless(reader.numbered(run))
    saved = reader.saved(accepted)
    assert saved["status"] == "complete"
    assert saved["text"] == reader.text(run)
    assert end["usage"]["completion_tokens"] > 300


def test_the_engine_worker_is_killed_and_the_answer_goes_on(
    reader: Reader, breakable_site: Site
) -> None:
    accepted, run = _begin(reader)
    engine_worker(breakable_site).kill()
    _assert_whole(reader, accepted, run)
    assert "resumed" not in [e["kind"] for e in reader.events(run)]


def test_the_web_process_is_killed_and_the_answer_goes_on(
    reader: Reader, breakable_site: Site
) -> None:
    accepted, run = _begin(reader)
    breakable_site.child("web").kill()
    with pytest.raises(ConnectionClosed):
        reader.hear_end(run, timeout_s=20)
    come_back(reader, run)
    _assert_whole(reader, accepted, run)
    assert [e["kind"] for e in reader.events(run)].count("resumed") == 1
    trace = trace_of(reader, accepted)
    assert_adds_up(trace)
    assert [k for k in kinds(trace) if k in ("decode", "interrupted", "saved")] == [
        *("decode", "interrupted", "decode", "saved")
    ]
    assert trace["attempts"] == 2


def test_everything_is_killed_and_the_answer_goes_on(reader: Reader, breakable_site: Site) -> None:
    accepted, run = _begin(reader)
    breakable_site.kill()
    breakable_site.start()
    come_back(reader, run)
    _assert_whole(reader, accepted, run)


def test_a_restart_leaves_a_long_answer_to_the_next_process(
    reader: Reader, breakable_site: Site
) -> None:
    """SIGTERM drains for a second; what takes longer goes on after the restart."""
    accepted, run = _begin(reader)
    breakable_site.stop()
    with pytest.raises(ConnectionClosed):
        while True:
            reader.hear()
    breakable_site.start()
    come_back(reader, run)
    _assert_whole(reader, accepted, run)


def test_the_database_is_killed_and_the_answer_goes_on(
    reader: Reader, breakable_site: Site
) -> None:
    accepted, run = _begin(reader)
    breakable_site.child("postgres").kill()
    _assert_whole(reader, accepted, run)


def test_redis_is_killed_and_the_answer_goes_on(reader: Reader, breakable_site: Site) -> None:
    accepted, run = _begin(reader)
    breakable_site.child("valkey").kill()
    end = reader.hear_end(run)
    assert end["kind"] == "finished"
    assert_gapless(reader.numbered(run))
    wait_until(
        lambda: reader.client.get("/readyz").status_code == 200, timeout_s=30, what="readiness"
    )
    assert reader.saved(accepted)["text"] == reader.text(run)


def test_a_stop_during_the_restart_is_honoured(reader: Reader, breakable_site: Site) -> None:
    accepted, run = _begin(reader)
    breakable_site.child("web").kill()
    with pytest.raises(ConnectionClosed):
        reader.hear_end(run, timeout_s=20)
    come_back(reader, run)
    reader.say({"type": "run.stop", "run": run, "chars": len(reader.text(run))})
    end = reader.hear_end(run)
    assert end["kind"] == "stopped"
    assert reader.saved(accepted)["text"] == reader.text(run)


def test_a_process_that_was_frozen_goes_on_with_what_it_wrote(
    reader: Reader, breakable_site: Site
) -> None:
    """A laptop that slept: the lease has run out, and nobody but its owner is there to take it."""
    accepted, run = _begin(reader)
    web = breakable_site.child("web")
    web.suspend()
    time.sleep(8)
    web.resume()
    _assert_whole(reader, accepted, run)


def test_a_stream_of_v1_is_drained_as_well(make_site: SiteMaker, small_models: str) -> None:
    with make_site(DRAIN_TIMEOUT_S="30", **chat_environment(small_models)) as site:
        site.set_up().close()
        key = site.create_api_key(ADMIN_EMAIL)
        with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
            stream = client.chat.completions.create(
                model="endless",
                messages=[{"role": "user", "content": "Hello"}],
                max_tokens=200,
                stream=True,
            )
            next(stream)
            site.process.send_signal(signal.SIGTERM)
            reasons = [c.choices[0].finish_reason for c in stream if c.choices]
        assert reasons[-1] == "length"
        assert site.wait_end() == 0

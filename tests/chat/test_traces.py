"""Every answer opens: what its trace tells is what happened, and adds up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.prices import Price, parse_prices
from chat.spans import Clock, Span, Stopwatch, Trace, trace_id_of
from tests.chat.reader import Frame, Reader
from tests.sites import Site

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def trace_of(reader: Reader, accepted: Frame) -> Any:
    response = reader.client.get(f"/api/messages/{accepted['answer']['id']}/trace")
    assert response.status_code == 200, response.text
    return response.json()


def kinds(trace: Any) -> list[str]:
    return [span["kind"] for span in trace["spans"]]


def assert_adds_up(trace: Any) -> None:
    """Spans follow each other and fill no more than the whole; their tokens are those of the usage."""
    spans, end_ms = trace["spans"], 0.0
    for span in spans:
        assert end_ms <= span["start_ms"] + 0.02, spans
        assert span["start_ms"] <= span["end_ms"] + 0.02, spans
        end_ms = span["end_ms"]
    assert sum(s["end_ms"] - s["start_ms"] for s in spans) <= trace["total_ms"] + 0.1
    usage = trace["usage"] or {}
    written = sum(s["facts"].get("tokens", 0) for s in spans if s["kind"] == "decode")
    assert written == usage.get("completion_tokens", written)


def test_an_answer_opens(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Hello there")
    end = alices_tab.hear_end(accepted["run"])
    trace = trace_of(alices_tab, accepted)
    assert_adds_up(trace)
    assert [k for k in kinds(trace) if k != "loading"] == [
        *("accepted", "prompt", "queued", "prefill", "decode", "saved")
    ]
    assert trace["usage"] == end["usage"]
    assert trace["timings"] == end["timings"]
    (prefill,) = [s for s in trace["spans"] if s["kind"] == "prefill"]
    assert prefill["facts"]["tokens"] == end["usage"]["prompt_tokens"]
    assert prefill["facts"]["cached"] == end["usage"]["cached_tokens"]
    assert 0 < trace["engine_ms"] <= trace["total_ms"]
    (turn,) = trace["turns"]
    assert turn["prompt_tokens"] == end["usage"]["prompt_tokens"]
    assert turn["params"]["seed"] == str(alices_tab.events(accepted["run"])[0]["seed"])
    assert trace["revision"]
    assert (trace["finish_reason"], trace["cost"], trace["attempts"]) == ("length", None, 1)


def test_a_stopped_answer_opens(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Long, please")
    alices_tab.hear_events(accepted["run"], 4)
    alices_tab.say({"type": "run.stop", "run": accepted["run"], "chars": 3})
    end = alices_tab.hear_end(accepted["run"])
    trace = trace_of(alices_tab, accepted)
    assert_adds_up(trace)
    assert trace["status"] == "stopped"
    assert kinds(trace)[-2:] == ["decode", "saved"]
    assert trace["usage"]["completion_tokens"] == end["usage"]["completion_tokens"] > 0
    assert trace["engine_ms"] > 0


def test_an_answer_that_fails_opens(alices_tab: Reader) -> None:
    accepted = alices_tab.send("word " * 4000, model="short")
    end = alices_tab.hear_end(accepted["run"])
    assert end["kind"] == "failed"
    trace = trace_of(alices_tab, accepted)
    assert_adds_up(trace)
    assert kinds(trace)[-1] == "saved"
    assert trace["error"]["code"] == end["code"]
    assert trace["error"]["trace_id"] == end["trace_id"] == trace["trace_id"]
    assert (trace["usage"], trace["engine_ms"]) == (None, None)


def test_an_answer_with_tools_opens(alices_tab: Reader) -> None:
    accepted = alices_tab.send("What is 17 * 23?", model="vitrine-small")
    alices_tab.hear_end(accepted["run"])
    trace = trace_of(alices_tab, accepted)
    assert_adds_up(trace)
    assert "tool" in kinds(trace)
    (tool,) = [s for s in trace["spans"] if s["kind"] == "tool"]
    assert tool["facts"] == {"name": "calculator", "is_error": False}
    assert [turn["index"] for turn in trace["turns"]] == [0, 1]
    prefills = [s["facts"] for s in trace["spans"] if s["kind"] == "prefill"]
    assert sum(f["tokens"] for f in prefills) == trace["usage"]["prompt_tokens"]
    assert prefills[1]["cached"] > prefills[0]["tokens"] // 2, "the first turn is still warm"


def test_one_id_leads_from_the_browser_to_the_log(alices_tab: Reader, chat_site: Site) -> None:
    traceparent = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
    accepted = alices_tab.send("Hello", model="short", traceparent=traceparent)
    alices_tab.hear_end(accepted["run"])
    assert trace_of(alices_tab, accepted)["trace_id"] == TRACE_ID
    lines = (chat_site.data_dir / "logs" / "vitrine.log").read_text().splitlines()
    ended = [line for line in map(json.loads, lines) if line.get("run") == accepted["run"]]
    assert [line["request_id"] for line in ended if line["event"] == "run ended"] == [TRACE_ID]


def test_a_message_that_no_model_wrote_has_no_trace(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Hello", model="short")
    alices_tab.hear_end(accepted["run"])
    path = f"/api/messages/{accepted['message']['id']}/trace"
    assert alices_tab.client.get(path).status_code == 404


# --- the parts --------------------------------------------------------------------------------


class Steps(Clock):
    """A clock that goes on by as much as it is told."""

    def __init__(self) -> None:
        self.at_ms = 0.0

    def now_ms(self) -> float:
        return self.at_ms


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["queued", "prefill", "decode", None]),
            st.floats(0, 50),
            st.floats(0, 90),
        )
    )
)
def test_spans_never_overlap_whatever_is_begun(
    steps: list[tuple[str | None, float, float]],
) -> None:
    clock = Steps()
    watch = Stopwatch(clock)
    for kind, passed_ms, ago_ms in steps:
        clock.at_ms += passed_ms
        if kind is None:
            watch.end()
        else:
            watch.begin(kind, ago_ms=ago_ms)
    watch.end()
    spans = watch.take()
    ends = [0.0, *(span.end_ms for span in spans)]
    for span, end_before in zip(spans, ends, strict=False):
        assert end_before <= span.start_ms <= span.end_ms <= clock.at_ms
    assert watch.take() == []


def test_a_trace_survives_the_database() -> None:
    trace = Trace(Clock(), TRACE_ID, [Span("tool", 1.0, 2.5, {"name": "clock"})])
    again = Trace.from_json(json.loads(json.dumps(trace.to_json())), Clock())
    assert (again.id, again.spans) == (TRACE_ID, trace.spans)


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        7,
        TRACE_ID,
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"ff-{TRACE_ID}-00f067aa0ba902b7-01",
    ],
)
def test_a_traceparent_that_is_none(text: object) -> None:
    assert trace_id_of(text) is None


def test_prices() -> None:
    prices = parse_prices(["a/b=prompt:2+completion:10+cached:0.5", "mine=engine_s:0.001"])
    used = {"prompt_tokens": 3000, "cached_tokens": 1000, "completion_tokens": 500}
    assert float(prices["a/b"].of(**used, engine_ms=9.0)) == pytest.approx(0.0095)
    assert float(prices["mine"].of(**used, engine_ms=2500.0)) == pytest.approx(0.0025)
    assert Price().of(**used, engine_ms=1.0) == 0


@pytest.mark.parametrize("entry", ["model", "=prompt:1", "m=tokens:1", "m=prompt:x", "m=prompt:-1"])
def test_a_price_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_prices([entry])

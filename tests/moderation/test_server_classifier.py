"""A moderation endpoint elsewhere: what it is asked, and what its answers and failures mean."""

import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from inference import Caller, EngineError, Overloaded
from moderation.classifiers.by_server import AT_ONCE, ServerClassifier
from moderation.classifiers.spec import ModerationServer
from tests.upstream_server import Answer, UpstreamServer, status

CALLER = Caller("alice")


def _answer(*results: Any) -> Answer:
    return status(200, {"id": "modr-1", "model": "m", "results": list(results)})


def _result(**scores: float) -> dict[str, Any]:
    return {"flagged": False, "categories": {}, "category_scores": scores}


@pytest.fixture
async def asked() -> AsyncIterator[tuple[ServerClassifier, UpstreamServer]]:
    with UpstreamServer([_answer(_result(hate=0.5))]) as server:
        classifier = ServerClassifier(ModerationServer(server.url, "omni", "sk-1", 2.0))
        yield classifier, server
        await classifier.close()


Asked = tuple[ServerClassifier, UpstreamServer]


async def test_it_is_asked_as_openai_is(asked: Asked) -> None:
    classifier, server = asked
    results = [_result(hate=0.25, **{"self-harm/intent": 0.5, "unheard of": 1.0}), _result(hate=1)]
    server.answers[:] = [_answer(*results)]
    found = await classifier.score(["one", "two", "one"], CALLER)
    assert found == [{"hate": 0.25, "self-harm/intent": 0.5}, {"hate": 1.0}, found[0]]
    (request,) = server.asked
    assert request.path == "/v1/moderations"
    assert request.body == {"model": "omni", "input": ["one", "two"]}
    assert request.header("authorization") == "Bearer sk-1"
    assert classifier.name == f"server:{server.host}"


async def test_without_a_model_or_a_key_none_is_named() -> None:
    with UpstreamServer([_answer(_result(hate=0.5))]) as server:
        classifier = ServerClassifier(ModerationServer(server.url))
        await classifier.score(["one"], CALLER)
        await classifier.close()
        assert server.asked[0].body == {"input": ["one"]}
        assert "authorization" not in {name.lower() for name in server.asked[0].headers}


async def test_yes_and_no_are_probabilities_where_there_are_no_others(asked: Asked) -> None:
    classifier, server = asked
    server.answers[:] = [_answer({"flagged": True, "categories": {"hate": True, "sexual": False}})]
    assert await classifier.score(["one"], CALLER) == [{"hate": 1.0, "sexual": 0.0}]


async def test_many_texts_go_in_several_requests(asked: Asked) -> None:
    classifier, server = asked
    texts = [f"text {at}" for at in range(AT_ONCE + 3)]
    own = [_result(hate=at / 100) for at in range(len(texts))]
    server.answers[:] = [_answer(*own[:AT_ONCE]), _answer(*own[AT_ONCE:])]
    found = await classifier.score(texts, CALLER)
    assert [scores["hate"] for scores in found] == [at / 100 for at in range(len(texts))]
    assert [len(one.body["input"]) for one in server.asked] == [AT_ONCE, 3]


async def test_the_worst_part_of_a_long_text_counts(asked: Asked) -> None:
    classifier, server = asked
    long = " ".join(f"The harbour number {at} was built in the year {at}." for at in range(60))
    server.answers[:] = [_answer(_result(hate=0.1), _result(hate=0.9), _result(hate=0.2))]
    assert await classifier.score([long], CALLER) == [{"hate": 0.9}]


async def test_nothing_to_read_is_not_sent(asked: Asked) -> None:
    classifier, server = asked
    assert await classifier.score(["", " \u200b"], CALLER) == [{}, {}]
    assert not server.asked


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"results": []},
        {"results": [_result(hate=0.5), _result(hate=0.5)]},
        {"results": [{"flagged": True}]},
        {"results": [_result(hate=2.0)]},
        {"results": [{"category_scores": {"hate": "much"}}]},
        {"results": ["hate"]},
        {"results": [{"category_scores": [1, 2]}]},
    ],
)
async def test_what_is_not_understood_is_a_failure(asked: Asked, body: Any) -> None:
    classifier, server = asked
    server.answers[:] = [status(200, body)]
    with pytest.raises(EngineError, match="not understood"):
        await classifier.score(["one"], CALLER)


async def test_html_is_not_understood_either(asked: Asked) -> None:
    classifier, server = asked

    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "6")
        handler.end_headers()
        handler.wfile.write(b"<html>")

    server.answers[:] = [page]
    with pytest.raises(EngineError, match="not understood"):
        await classifier.score(["one"], CALLER)


@pytest.mark.parametrize(
    ("code", "says"), [(500, "HTTP 500"), (401, "refuses Vitrine's key"), (404, "no such model")]
)
async def test_a_refusal_quotes_no_key(asked: Asked, code: int, says: str) -> None:
    classifier, server = asked
    server.answers[:] = [status(code, {"error": {"message": "not with sk-1"}})]
    with pytest.raises(EngineError, match=says) as raised:
        await classifier.score(["one"], CALLER)
    assert "sk-1" not in str(raised.value)


async def test_a_busy_server_says_when_to_come_back(asked: Asked) -> None:
    classifier, server = asked
    server.answers[:] = [status(429, None, Retry_After="7")]
    with pytest.raises(EngineError) as raised:
        await classifier.score(["one"], CALLER)
    assert raised.value.retry_after_s == 7
    assert not isinstance(raised.value, Overloaded)  # it is not our queue that is full


async def test_who_does_not_answer_in_time_has_failed() -> None:
    def slowly(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(100):  # never silent for long
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    with UpstreamServer([slowly]) as server:
        classifier = ServerClassifier(ModerationServer(server.url, timeout_s=0.3))
        with pytest.raises(EngineError, match=r"did not answer in 0\.3 s"):
            await classifier.score(["one"], CALLER)
        await classifier.close()


async def test_who_is_not_there_has_failed() -> None:
    classifier = ServerClassifier(ModerationServer("http://127.0.0.1:9/v1"))
    with pytest.raises(EngineError, match="cannot be reached"):
        await classifier.score(["one"], CALLER)
    await classifier.close()

"""/v1/embeddings with OpenAI's own client, unmodified, and what raw callers may do wrong."""

import base64
import json
from array import array
from typing import Any

import httpx2
import openai
import pytest

from inference import BUILTIN_EMBEDDING
from moderation.heads_adapter import HEADS_ADAPTER
from tests.chat.reader import Reader
from tests.sites import Site

CAT = "A cat sits on the mat."
TEXTS = [CAT, "A kitten is resting on a rug.", "The stock market fell sharply today."]


def _post(site: Site, key: str, body: Any) -> httpx2.Response:
    text = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return httpx2.post(f"{site.url}/v1/embeddings", content=text, headers=headers, timeout=60)


def _embed(client: openai.OpenAI, given: Any, **settings: Any) -> list[list[float]]:
    found = client.embeddings.create(model=BUILTIN_EMBEDDING, input=given, **settings)
    assert [item.index for item in found.data] == list(range(len(found.data)))
    return [item.embedding for item in found.data]


def _dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_client_gets_a_vector_for_each_text(client: openai.OpenAI) -> None:
    found = client.embeddings.create(model=BUILTIN_EMBEDDING, input=TEXTS)
    assert (found.object, found.model) == ("list", BUILTIN_EMBEDDING)
    assert found.usage.prompt_tokens == found.usage.total_tokens > 3 * 5
    cat, kitten, market = (item.embedding for item in found.data)
    assert len(cat) == 384
    assert _dot(cat, cat) == pytest.approx(1, abs=1e-5)
    assert _dot(cat, kitten) > _dot(cat, market) + 0.3


def test_both_formats_are_the_same_numbers(chat_site: Site, key: str, client: Any) -> None:
    body = {"model": BUILTIN_EMBEDDING, "input": CAT}
    (floats,) = _post(chat_site, key, body).json()["data"]
    (coded,) = _post(chat_site, key, {**body, "encoding_format": "base64"}).json()["data"]
    assert floats["object"] == coded["object"] == "embedding"
    assert array("f", base64.b64decode(coded["embedding"])).tolist() == floats["embedding"]
    assert _embed(client, CAT) == [floats["embedding"]], "base64 is the client's default"
    assert _embed(client, CAT, encoding_format="float") == [floats["embedding"]]


def test_every_shape_of_input_is_understood(client: openai.OpenAI) -> None:
    ids = [101, 1037, 4937, 102]  # [CLS] a cat [SEP]
    (by_text,) = _embed(client, "a cat")
    for given in (["a cat"], ids, [ids]):
        (found,) = _embed(client, given)
        assert found == pytest.approx(by_text, abs=1e-5)
    assert len(_embed(client, [ids, ids])) == 2
    assert len(_embed(client, CAT, dimensions=384)[0]) == 384


def test_as_many_texts_as_openai_takes(client: openai.OpenAI) -> None:
    assert len(_embed(client, [f"text {i}" for i in range(2048)])) == 2048


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", "model"),
        ({"model": HEADS_ADAPTER.name}, 404, "model_not_found", "model"),
        ({"model": "short"}, 400, "wrong_model_kind", "model"),
        ({"input": ""}, 400, "invalid_value", "input"),
        ({"input": []}, 400, "invalid_value", "input"),
        ({"input": ["fine", ""]}, 400, "invalid_value", "input"),
        ({"input": "\ud800"}, 400, "invalid_value", "input"),
        ({"input": ["fine", "fox \udfff"]}, 400, "invalid_value", "input"),
        ({"input": [[]]}, 400, "invalid_value", "input"),
        ({"input": None}, 400, "invalid_value", "input"),
        ({"input": [1, "two"]}, 400, "invalid_value", "input"),
        ({"input": [True]}, 400, "invalid_value", "input"),
        ({"input": ["text"] * 2049}, 400, "invalid_value", "input"),
        ({"input": [10**9]}, 400, "invalid_parameter", "input"),
        ({"input": [-1]}, 400, "invalid_parameter", "input"),
        ({"input": ["fine", "word " * 5000]}, 400, "context_length_exceeded", "input"),
        ({"dimensions": 0}, 400, "invalid_value", "dimensions"),
        ({"dimensions": 100}, 400, "invalid_parameter", "dimensions"),
        ({"encoding_format": "hex"}, 400, "invalid_value", "encoding_format"),
        ({"prompt_name": "query"}, 400, "invalid_parameter", "prompt_name"),
        ({"task": "retrieval"}, 400, "invalid_value", "task"),
    ],
)
def test_bad_requests_name_what_is_wrong(
    chat_site: Site, key: str, changes: dict[str, Any], status: int, code: str, param: str
) -> None:
    response = _post(chat_site, key, {"model": BUILTIN_EMBEDDING, "input": CAT, **changes})
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert (error["param"] or "").split(".")[0] == param
    assert error["message"]


def test_a_wrong_key_and_too_large_a_body_are_refused(chat_site: Site, key: str) -> None:
    assert _post(chat_site, "vt_wrong", {}).status_code == 401
    body = {"model": BUILTIN_EMBEDDING, "input": "x" * 11_000_000}
    assert _post(chat_site, key, body).status_code == 413


def test_an_embedding_model_is_listed_and_does_not_chat(
    chat_site: Site, key: str, client: openai.OpenAI
) -> None:
    listed = {model.id: model.model_dump() for model in client.models.list()}
    assert listed[BUILTIN_EMBEDDING]["kind"] == "embedding"
    assert listed["short"]["kind"] == "chat"
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=BUILTIN_EMBEDDING, messages=[{"role": "user", "content": "Hello"}]
        )
    assert caught.value.code == "wrong_model_kind"
    assert caught.value.param == "model"


def test_the_picker_shows_models_that_chat(alices_tab: Reader) -> None:
    frame = alices_tab.hear_until(type="hello")
    assert {model["kind"] for model in frame["models"]} == {"chat"}

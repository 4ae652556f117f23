"""Models of our own engine that see: programs' images and pictures in chats, through all of it."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.chat.api_caller import Caller
from tests.chat.reader import Frame, Reader
from tests.chat.test_crashes import come_back, engine_worker
from tests.chat.test_images_in_chats import attached, picked
from tests.chat.test_images_to_models import asked
from tests.chat.test_second_looks import rated, replayed
from tests.images import data_url, png
from tests.inference.tiny_vision import make_seeing_model, noise
from tests.sites import Site, SiteMaker

NUM_ROWS = 16  # of each image


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that writes the likeliest tokens, until its context is full."""
    path = tmp_path_factory.mktemp("eyes") / "eyes"
    make_seeing_model(path, eos_token_id=None, num_hidden_layers=16, max_position_embeddings=700)
    (path / "generation_config.json").write_text(json.dumps({"do_sample": False}))
    return path


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, model: Path) -> Iterator[Site]:
    settings = {"VITRINE_DEFAULT_MODEL": "eyes", "VITRINE_DTYPE": "float32"}
    with make_site(VITRINE_MODELS=f"eyes={model}", **settings) as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def caller(site: Site) -> Caller:
    return Caller.signed_up(site)


@pytest.fixture
def reader(site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


def answer(caller: Caller, *parts: Any, **more: Any) -> Any:
    body = {**asked(*parts, model="eyes"), "max_tokens": 12, "ignore_eos": True, **more}
    response = caller.post("/chat/completions", body)
    assert response.status_code == 200, response.text
    return response.json()


def test_the_list_of_models_says_that_it_sees(caller: Caller) -> None:
    listed = {one["id"]: one["images"] for one in caller.get("/models").json()["data"]}
    assert listed["eyes"] is True
    assert listed["vitrine-small"] is False


def test_what_it_says_depends_on_what_it_is_shown(caller: Caller) -> None:
    one, other = data_url(noise(1)), data_url(noise(2))
    first, again, another = (answer(caller, "What is ", url, "?") for url in (one, one, other))
    texts = [one["choices"][0]["message"]["content"] for one in (first, again, another)]
    assert texts[0] == texts[1] != texts[2]
    usage, warm, cold = (one["usage"] for one in (first, again, another))
    plain = answer(caller, "What is ", "?")["usage"]
    assert usage["prompt_tokens"] == warm["prompt_tokens"] == cold["prompt_tokens"]
    assert usage["prompt_tokens"] - plain["prompt_tokens"] == NUM_ROWS
    assert warm["prompt_tokens_details"]["cached_tokens"] > NUM_ROWS
    # Up to the image, and not into it: another one stands there.
    num_before = warm["prompt_tokens_details"]["cached_tokens"] - NUM_ROWS
    assert cold["prompt_tokens_details"]["cached_tokens"] < num_before


def test_tokens_are_counted_with_those_of_images(caller: Caller) -> None:
    body = asked("What is ", data_url(noise(3)), "?", model="eyes")
    told = caller.post("/tokenize", body).json()
    usage = answer(caller, "What is ", data_url(noise(3)), "?")["usage"]
    assert told["count"] == usage["prompt_tokens"]
    counted = caller.post(
        "/responses/input_tokens", {"model": "eyes", "input": _as_items(noise(3))}
    )
    assert counted.json()["input_tokens"] == usage["prompt_tokens"]


def _as_items(picture: bytes) -> list[Any]:
    parts = [
        {"type": "input_text", "text": "What is "},
        {"type": "input_image", "image_url": data_url(picture)},
        {"type": "input_text", "text": "?"},
    ]
    return [{"role": "user", "content": parts}]


def test_every_shape_of_request_may_have_them(caller: Caller) -> None:
    body = {"model": "eyes", "input": _as_items(noise(4)), "max_output_tokens": 5}
    response = caller.post("/responses", body)
    assert response.status_code == 200, response.text
    num_tokens = response.json()["usage"]["input_tokens"]
    on = {"model": "eyes", "input": "And now?", "max_output_tokens": 5}
    later = caller.post("/responses", {**on, "previous_response_id": response.json()["id"]}).json()
    assert later["usage"]["input_tokens_details"]["cached_tokens"] >= num_tokens - 16
    source = {"type": "base64", "media_type": "image/png"}
    source["data"] = data_url(noise(4)).partition(",")[2]
    content = [{"type": "text", "text": "Look: "}, {"type": "image", "source": source}]
    message = {"model": "eyes", "max_tokens": 5, "messages": [{"role": "user", "content": content}]}
    said = caller.post("/messages", message)
    assert said.status_code == 200, said.text
    frames = caller.stream("/chat/completions", asked("Look ", data_url(noise(4)), model="eyes"))
    assert frames[-1][1] == "[DONE]"


def test_what_is_transparent_or_large_is_drawn(caller: Caller) -> None:
    for picture in (png("green", (1, 1)), png("blue", (3000, 70))):
        answer(caller, data_url(picture), "?")


@pytest.mark.parametrize(
    ("urls", "problem"),
    [
        ([data_url(png()[:50])], "an image cannot be read"),
        ([data_url(b"\xff\xd8\xff nothing")], "an image cannot be read"),
        ([data_url(png("red", (1, 9000)))], "more than 50 times as long"),
        ([data_url(png("red", (n, 1))) for n in range(1, 22)], "at most 20 images"),
    ],
)
def test_what_cannot_be_seen_is_the_callers_fault(
    caller: Caller, urls: list[str], problem: str
) -> None:
    response = caller.post("/chat/completions", asked(*urls, "?", model="eyes"))
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "messages"
    assert problem in error["message"]


def test_too_many_for_the_context_are_told_with_both_counts(caller: Caller) -> None:
    urls = [data_url(png("red", (n, 1))) for n in range(1, 20)]
    text = "word " * 500
    response = caller.post("/chat/completions", asked(*urls, text, model="eyes"))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


# --- in chats ---------------------------------------------------------------------------------


def begun(reader: Reader, picture: bytes) -> tuple[Frame, str]:
    """An answer about a picture that has been under way for a while."""
    document = attached(reader, "noise.png", picture)
    accepted = reader.send("What is this?", **picked(document))
    reader.hear_events(accepted["run"], 4)
    return accepted, accepted["run"]


def test_a_picture_in_a_chat_is_seen_and_stays_in_its_turn(reader: Reader) -> None:
    document = attached(reader, "noise.png", noise(1))
    short = {"parameters": {"max_tokens": 8}}
    first = reader.send("What is this?", **picked(document), **short)
    one = reader.hear_end(first["run"])["usage"]
    behind = {"conversation": first["conversation"]["id"], "parent": first["answer"]["id"]}
    second = reader.send("Sure?", **behind)
    two = reader.hear_end(second["run"])["usage"]
    assert two["cached_tokens"] >= one["prompt_tokens"] - 16
    spans = reader.client.get(f"/api/messages/{second['answer']['id']}/trace").json()
    assert [s["facts"] for s in spans["spans"] if s["kind"] == "images"] == [{"images": 1}]
    assert "images" not in spans["turns"][0]["params"]
    warm = reader.client.get("/api/warmth").json()["conversations"]
    assert warm[first["conversation"]["id"]]["cached"] >= two["prompt_tokens"]
    other = reader.send("What is this?", **picked(attached(reader, "b.png", noise(2))), **short)
    reader.hear_end(other["run"])
    assert reader.text(other["run"]) != reader.text(first["run"])


def test_a_strip_is_not_seen_and_the_chat_goes_on(reader: Reader) -> None:
    documents = (
        attached(reader, "strip.png", png("red", (1, 1568))),
        attached(reader, "b.png", png()),
    )
    accepted = reader.send("What is this?", **picked(*documents), parameters={"max_tokens": 5})
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    spans = reader.client.get(f"/api/messages/{accepted['answer']['id']}/trace").json()["spans"]
    assert [s["facts"] for s in spans if s["kind"] == "images"] == [{"images": 1}]


def test_the_meter_counts_a_picture(reader: Reader) -> None:
    document = attached(reader, "noise.png", noise(5))
    draft = {"text": "What is this?", "model": "eyes", **picked(document)}
    meter = reader.change("POST", "/api/meter", **draft).json()
    accepted = reader.send("What is this?", **picked(document), parameters={"max_tokens": 5})
    usage = reader.hear_end(accepted["run"])["usage"]
    assert meter["prompt_tokens"] == usage["prompt_tokens"]
    assert not [one for one in meter["segments"] if one["name"] == "looked_up"]


def test_an_answer_about_a_picture_comes_again_and_is_rated(reader: Reader) -> None:
    document = attached(reader, "noise.png", noise(6))
    accepted = reader.send("What?", **picked(document), parameters={"max_tokens": 8})
    reader.hear_end(accepted["run"])
    assert replayed(reader, accepted)["kind"] == "same"
    tokens = rated(reader, accepted).json()["turns"][0]["tokens"]
    assert [one["top"][0]["id"] for one in tokens] == [one["id"] for one in tokens]  # the likeliest
    assert reader.change("DELETE", f"/api/documents/{document}").is_success
    assert replayed(reader, accepted)["code"] == "no_second_look"


def test_the_worker_is_killed_and_sees_it_again(reader: Reader, site: Site) -> None:
    accepted, run = begun(reader, noise(7))
    engine_worker(site).kill()
    assert reader.hear_end(run)["kind"] == "finished"
    assert replayed(reader, accepted)["kind"] == "same"


def test_the_web_process_is_killed_and_the_answer_goes_on(reader: Reader, site: Site) -> None:
    accepted, run = begun(reader, noise(8))
    site.child("web").kill()
    with pytest.raises(ConnectionClosed):
        reader.hear_end(run, timeout_s=20)
    come_back(reader, run)
    assert reader.hear_end(run)["kind"] == "finished"
    assert "resumed" in [event["kind"] for event in reader.events(run)]
    assert replayed(reader, accepted)["kind"] == "same"


def test_a_picture_that_went_meanwhile_ends_the_answer(reader: Reader, site: Site) -> None:
    document = attached(reader, "noise.png", noise(9))
    accepted = reader.send("What is this?", **picked(document))
    reader.hear_events(accepted["run"], 4)
    assert reader.change("DELETE", f"/api/documents/{document}").is_success
    site.child("web").kill()
    with pytest.raises(ConnectionClosed):
        reader.hear_end(accepted["run"], timeout_s=20)
    come_back(reader, accepted["run"])
    end = reader.hear_end(accepted["run"])
    assert (end["kind"], end["code"]) == ("failed", "interrupted")

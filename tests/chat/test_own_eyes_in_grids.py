"""A model of our own engine whose images are grids: their form is kept with an answer's turn."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.chat.api_caller import Caller
from tests.chat.reader import Reader
from tests.chat.test_crashes import come_back
from tests.chat.test_images_in_chats import attached, picked
from tests.chat.test_images_to_models import asked
from tests.chat.test_second_looks import rated, replayed
from tests.images import data_url
from tests.inference.tiny_vision import make_seeing_model, noise
from tests.sites import Site, SiteMaker


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """It writes the likeliest tokens, until its context is full."""
    path = tmp_path_factory.mktemp("grids") / "grids"
    long = {"num_hidden_layers": 16, "max_position_embeddings": 700}
    make_seeing_model(path, "qwen3_vl", eos_token_id=None, **long)
    (path / "generation_config.json").write_text(json.dumps({"do_sample": False}))
    settings = {"VITRINE_DEFAULT_MODEL": "grids", "VITRINE_DTYPE": "float32"}
    with make_site(VITRINE_MODELS=f"grids={path}", **settings) as site:
        site.set_up().close()
        yield site


@pytest.fixture
def reader(site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


def test_programs_show_it_images(site: Site) -> None:
    caller = Caller.signed_up(site)

    def answer(*parts: str) -> Any:
        body = {**asked(*parts, model="grids"), "max_tokens": 12, "ignore_eos": True}
        response = caller.post("/chat/completions", body)
        assert response.status_code == 200, response.text
        return response.json()

    one, other = (data_url(noise(seed, 70, 42)) for seed in (1, 2))
    first, again, another = (answer("What is ", url, "?") for url in (one, one, other))
    texts = [each["choices"][0]["message"]["content"] for each in (first, again, another)]
    assert texts[0] == texts[1] != texts[2]
    usages = [each["usage"] for each in (first, again, another)]
    num_plain = answer("What is ", "?")["usage"]["prompt_tokens"]
    assert {usage["prompt_tokens"] - num_plain for usage in usages} == {3 * 5 + 2}  # and two marks
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached[1] > 3 * 5
    assert cached[2] <= cached[1] - 3 * 5  # up to the other image, and not into it


def test_the_web_process_is_killed_and_the_answer_goes_on(reader: Reader, site: Site) -> None:
    document = attached(reader, "noise.png", noise(8, 28, 98))
    accepted = reader.send("What is this?", **picked(document))
    run = accepted["run"]
    reader.hear_events(run, 4)
    site.child("web").kill()
    with pytest.raises(ConnectionClosed):
        reader.hear_end(run, timeout_s=20)
    come_back(reader, run)
    assert reader.hear_end(run)["kind"] == "finished"
    assert "resumed" in [event["kind"] for event in reader.events(run)]
    assert replayed(reader, accepted)["kind"] == "same"


def test_an_answer_about_a_picture_is_rated(reader: Reader) -> None:
    document = attached(reader, "noise.png", noise(6, 42, 70))
    accepted = reader.send("What?", **picked(document), parameters={"max_tokens": 8})
    reader.hear_end(accepted["run"])
    tokens = rated(reader, accepted).json()["turns"][0]["tokens"]
    assert [one["top"][0]["id"] for one in tokens] == [one["id"] for one in tokens]  # the likeliest

"""Images and models that see which are refused, and what a damaged image does to others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from inference.errors import InvalidParameter, ModelRefused
from inference.loader import load_model
from inference.messages import Failed
from inference.tokenizer import ChatTokenizer
from inference.vision.eyes import Eyes, Seen
from tests.inference.loops import answers, ids, make_loop, run
from tests.inference.seeing import request
from tests.inference.tiny_vision import asked, make_seeing_model, noise


def test_a_damaged_image_fails_alone(llava: Path, tokenizer: ChatTokenizer) -> None:
    broken = request(tokenizer, [asked("Broken:", noise(1))], "broken")
    (image,) = broken.images
    broken = replace(broken, images=(replace(image, data=image.data[:60], digest="cut"),))
    sound = request(tokenizer, [asked("Sound:", noise(2))], "sound")
    told = run(make_loop(llava), broken, sound)
    failed = told["broken"][-1]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.param) == ("invalid_parameter", "messages")
    assert ids(told["sound"]) == answers(make_loop(llava), sound)[0]


def test_a_damaged_image_fails_with_nothing_beside_it(
    llava: Path, tokenizer: ChatTokenizer
) -> None:
    """The step that meets it computes nothing."""
    sound = request(tokenizer, [asked("Sound:", noise(2))], "sound")
    loop, expected = make_loop(llava), answers(make_loop(llava), sound)
    broken = request(tokenizer, [asked("Broken:", noise(1))], "broken")
    (image,) = broken.images
    broken = replace(broken, images=(replace(image, data=image.data[:60], digest="cut"),))
    ran = Mock(wraps=loop.runner.run)
    loop.runner.run = ran  # type: ignore[method-assign]
    told = run(loop, broken)["broken"]
    assert isinstance(told[-1], Failed)
    assert told[-1].message == "messages: an image is damaged"
    assert all(call.args[0] for call in ran.call_args_list)
    assert loop.is_idle
    loop.check()
    assert answers(loop, sound) == expected


def test_a_worker_refuses_a_strip_as_well(llava: Path, tokenizer: ChatTokenizer) -> None:
    """Whoever asks it: the web process has not let it through."""
    one = request(tokenizer, [asked("Narrow:", noise(1))])
    strip = replace(one.images[0], data=noise(1, 1, 1568), digest="strip")
    loop = make_loop(llava)
    failed = run(loop, replace(one, images=(strip,)))["a"][-1]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.param) == ("invalid_parameter", "messages")
    assert "more than 50 times" in failed.message
    assert loop.runner.eyes is not None
    assert not loop.runner.eyes.num_looks


@pytest.mark.parametrize("change", [{"offset": 0}, {"num_ids": 3}, {"num_ids": 10_000}])
def test_an_image_has_the_place_that_it_takes(
    llava: Path, tokenizer: ChatTokenizer, change: dict[str, int]
) -> None:
    one = request(tokenizer, [asked("Here:", noise(1))])
    moved = replace(one, images=(replace(one.images[0], **change),))
    failed = run(make_loop(llava), moved)["a"][-1]
    assert isinstance(failed, Failed)


def test_a_model_of_texts_refuses_images(tiny_model: Path, tokenizer: ChatTokenizer) -> None:
    one = request(tokenizer, [asked("Here:", noise(1))])
    known = replace(one, prompt_ids=(5,) * len(one.prompt_ids))
    failed = run(make_loop(tiny_model), known)["a"][-1]
    assert isinstance(failed, Failed)
    assert "texts only" in failed.message
    with pytest.raises(InvalidParameter, match="texts only"):
        ChatTokenizer.load(tiny_model).encode_chat([asked("Here:", noise(1))])


def test_who_would_see_something_else_is_refused(
    llava: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a model would whose rows came in another order than its prompt says."""
    between = Eyes.between

    def upside_down(self: Eyes, *asked: Any) -> list[Seen]:
        return [Seen(places, rows.flip(0)) for places, rows in between(self, *asked)]

    monkeypatch.setattr(Eyes, "between", upside_down)
    with pytest.raises(ModelRefused, match="computes something else of an image"):
        make_loop(llava)


def test_who_makes_other_rows_than_its_files_say_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_seeing_model(tmp_path / "idefics3", "idefics3")
    file = path / "preprocessor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_image_splitting": False}))
    make_loop(path)
    in_tiles = {"max_image_size": {"longest_edge": 28}, "size": {"longest_edge": 84}}
    monkeypatch.setattr("inference.vision.layout.read_processor", lambda path: in_tiles)
    with pytest.raises(ModelRefused, match="does not see"):
        make_loop(path)


def test_it_is_not_split_over_processes(llava: Path) -> None:
    with pytest.raises(ModelRefused, match="not split"):
        load_model("tiny", llava, lambda *_: None, torch.float32, num_ranks=2)


@pytest.mark.parametrize("model_type", ["glm4v", "mistral3"])
def test_other_ways_to_see_are_refused_with_those_that_are_served(
    llava: Path, tmp_path: Path, model_type: str
) -> None:
    for file in llava.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    config = {"model_type": model_type, "architectures": ["OneForConditionalGeneration"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelRefused, match=r"in a way that is not served\..* llava_onevision,"):
        make_loop(tmp_path)

"""What looking at images, and what was seen, takes of memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest
import torch

from inference.boarding import Boarding
from inference.flights import Generation
from inference.messages import Failed
from inference.tokenizer import ChatTokenizer
from inference.vision.room import MOST_TILES
from tests.inference.loops import answers, make_loop, run
from tests.inference.seeing import TALK, request
from tests.inference.tiny_vision import TILE_FAMILIES, asked, noise


@pytest.mark.parametrize("family", TILE_FAMILIES)
def test_no_more_than_a_few_tiles_are_looked_at_together(
    seeing_models: dict[str, Path], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = make_loop(seeing_models[family])
    eyes = loop.runner.eyes
    assert eyes is not None
    module: Any = eyes.module
    tower = getattr(module, "vision_tower", None) or module.vision_model
    (image,) = request(
        ChatTokenizer.load(seeing_models[family]), [asked("", noise(1, 84, 80))]
    ).images
    nums: list[int] = []
    embeddings = tower.get_input_embeddings()
    embeddings.register_forward_hook(
        lambda _, given, made: nums.append(len(made[0] if isinstance(made, tuple) else made))
    )
    rows = eyes._looked(image).rows
    assert max(nums) <= MOST_TILES
    num_tiles = sum(nums)
    assert (num_tiles > MOST_TILES) == (family != "llava")
    monkeypatch.setattr("inference.vision.tiles.MOST_TILES", 100)
    nums.clear()
    assert torch.allclose(rows, eyes._looked(image).rows, atol=1e-4)
    assert nums == [num_tiles]


def test_a_look_for_which_there_was_no_memory_is_tried_again(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, loop = request(tokenizer, TALK), make_loop(llava)
    expected = answers(make_loop(llava), one)
    eyes = loop.runner.eyes
    assert eyes is not None
    module: Any = eyes.module
    look = Mock(wraps=module.get_image_features)
    monkeypatch.setattr(module, "get_image_features", look)
    look.side_effect = [torch.OutOfMemoryError("full"), *[DEFAULT] * 3]
    gave_back = Mock()
    monkeypatch.setattr("inference.vision.eyes.give_back", gave_back)
    assert answers(loop, one) == expected
    assert gave_back.call_count == 1
    look.side_effect = torch.OutOfMemoryError("full")
    failed = run(loop, request(tokenizer, [asked("Another:", noise(9))]))["a"][-1]
    assert isinstance(failed, Failed)


def test_an_image_is_looked_at_once_while_there_is_room(
    llava: Path, tokenizer: ChatTokenizer
) -> None:
    loop = make_loop(llava)
    eyes = loop.runner.eyes
    assert eyes is not None
    first = request(tokenizer, [asked("One: \ufffc", noise(1))], "a")
    other = request(tokenizer, [asked("Another: \ufffc", noise(1))], "b")
    answers(loop, first, other)
    assert eyes.num_looks == 1
    stranger = request(tokenizer, [asked("One: \ufffc", noise(1))], "c", cache_salt="else")
    answers(loop, stranger)
    assert eyes.num_looks == 2  # or it would be told that somebody has shown this image
    eyes._kept_bytes = 1
    cramped = [request(tokenizer, TALK, name, cache_salt=name) for name in "cd"]
    assert answers(loop, *cramped) == answers(make_loop(llava), *cramped)


def test_images_that_wait_take_no_more_than_so_many_bytes(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(tokenizer, [asked("Here:", noise(1))])
    monkeypatch.setattr("inference.priority.MOST_IMAGE_BYTES", 3 * wanted.image_bytes)
    loop = make_loop(llava, max_num_sequences=1)
    text = request(tokenizer, [asked("Text.")], "text")
    chore = replace(wanted, request_id="chore", priority="background")
    crowd = [replace(wanted, request_id=str(number)) for number in range(5)]
    told = run(loop, *crowd, text, replace(crowd[0], request_id="replay", is_replay=True), chore)
    refused = {name for name, heard in told.items() if isinstance(heard[-1], Failed)}
    assert refused == {"3", "4", "chore"}


async def test_images_that_wait_for_a_model_that_loads_are_counted(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(tokenizer, [asked("Here:", noise(1))])
    monkeypatch.setattr("inference.priority.MOST_IMAGE_BYTES", 3 * wanted.image_bytes)
    boarding = Boarding([], max_waiting_tokens=100_000)
    flights = [Generation(wanted) for _ in range(4)]
    for flight in flights:
        boarding.add(flight)
    assert not boarding.has_room(flights[-1])
    boarding.remove(flights[0])
    assert boarding.has_room(flights[-1])

"""Positions of prompts with images in grids are transformers', whole and in any piece."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForImageTextToText

from inference.messages import GenerateRequest, SamplingParams
from inference.sequence import Sequence
from inference.step_positions import StepPositions
from inference.vision.grid_positions import GridPositions
from inference.vision.prompt_images import PromptImage
from tests.inference.tiny_vision import GRID_FAMILIES

_TEXT_ID, _IMAGE_ID = 5, 7
# Of text in front, lines and columns.
LAYOUTS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=4
)


@pytest.fixture(scope="module", params=GRID_FAMILIES)
def whole(request: pytest.FixtureRequest, seeing_models: dict[str, Path]) -> Any:
    """transformers' model, without weights."""
    config = AutoConfig.from_pretrained(seeing_models[request.param])
    config.image_token_id = _IMAGE_ID
    with torch.device("meta"):
        return AutoModelForImageTextToText.from_config(config).model


def placed(layout: list[tuple[int, int, int]]) -> tuple[list[int], tuple[PromptImage, ...]]:
    """The ids of a prompt, but for what is behind its last image; and its images."""
    ids: list[int] = []
    images = []
    for num_text, lines, columns in layout:
        ids += [_TEXT_ID] * num_text
        images.append(PromptImage(len(ids), lines * columns, "digest", b"", columns))
        ids += [_IMAGE_ID] * (lines * columns)
    return ids, tuple(images)


@settings(max_examples=60, deadline=None)
@given(layout=LAYOUTS, num_behind=st.integers(1, 9))
def test_they_are_those_of_transformers(
    whole: Any, layout: list[tuple[int, int, int]], num_behind: int
) -> None:
    ids, images = placed(layout)
    ids += [_TEXT_ID] * num_behind
    grids = torch.tensor([(1, 2 * lines, 2 * columns) for _, lines, columns in layout])
    given_ids = torch.tensor([ids])
    expected, delta = whole.get_rope_index(
        input_ids=given_ids,
        mm_token_type_ids=(given_ids == _IMAGE_ID).int(),
        image_grid_thw=grids,
    )
    found = GridPositions(images)
    assert torch.tensor([[*each] for each in found.between(0, len(ids))]).equal(expected[:, 0])
    assert found.shift == int(delta)


@settings(max_examples=200, deadline=None)
@given(layout=LAYOUTS, data=st.data())
def test_a_piece_is_a_piece_of_the_whole(
    layout: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    ids, images = placed(layout)
    num_tokens = len(ids) + 20
    positions = GridPositions(images)
    whole = [[*each] for each in positions.between(0, num_tokens)]
    start = data.draw(st.integers(0, num_tokens - 1))
    end = data.draw(st.integers(start + 1, num_tokens))
    piece = positions.between(start, end)
    assert [[*each] for each in piece] == [each[start:end] for each in whole]
    has_rows = any(image.offset < end and start < image.end for image in images)
    assert (piece.lines is not piece.times) == has_rows  # else a step takes the way of text


def test_behind_images_positions_are_those_of_tokens_but_for_a_shift() -> None:
    images = placed([(3, 2, 5), (1, 4, 4)])[1]
    positions = GridPositions(images)
    assert positions.shift == 5 - 10 + 4 - 16
    assert [*positions.between(100, 103).times] == [83, 84, 85]
    assert GridPositions.of([PromptImage(3, 9, "tiles", b"")]) is None


def sequence(name: str, *images: PromptImage) -> Sequence:
    params = SamplingParams(max_tokens=1)
    return Sequence(GenerateRequest(name, "", (_TEXT_ID,) * 40, params, images=images))


def test_a_step_has_planes_only_where_rows_of_an_image_are_in_it() -> None:
    text, seeing = sequence("text"), sequence("seeing", PromptImage(4, 6, "digest", b"", 3))
    step = StepPositions()
    step.add(text, 7, 9)
    step.add(seeing, 10, 12)
    step.add(seeing, 0, 2)
    assert step.times == [7, 8, 7, 8, 0, 1]
    assert step.planes == ()
    step.add(seeing, 6, 11)
    step.add(text, 20, 21)
    assert step.times == [7, 8, 7, 8, 0, 1, 4, 4, 4, 4, 7, 20]
    lines, columns = step.planes
    assert lines == [7, 8, 7, 8, 0, 1, 4, 5, 5, 5, 7, 20]
    assert columns == [7, 8, 7, 8, 0, 1, 6, 4, 5, 6, 7, 20]

"""How many rows an image takes in Qwen-VL's grids is told without the model, as its processor says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture
from transformers import AutoConfig
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from inference.errors import ModelRefused
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.small_config import shrink
from inference.tokenizer import ChatTokenizer
from inference.vision.layout import layout_at, read_layout
from inference.vision.reading import reading_config
from inference.vision.room import KEPT_BYTES, seeing_bytes
from inference.vision.rules import MOST_ROWS, Grid
from inference.vision.selftest import seeing_error
from inference.vision.sizes import MOST_TIMES_LONGER
from tests.images import data_url
from tests.inference.hub_grids import HUB, HUB_TEMPLATE
from tests.inference.tiny_vision import GRID_FAMILIES, asked, noise


@pytest.fixture(params=GRID_FAMILIES)
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    config, processor = HUB[request.param]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": request.param, **config}))
    prepared = {"image_processor_type": "Qwen2VLImageProcessor", **processor}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(prepared))
    return tmp_path


@settings(max_examples=500, deadline=None)
@given(
    square_px=st.sampled_from([14, 28, 32]),
    size_px=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    pixels=st.tuples(st.sampled_from([1, 784, 3136, 65536]), st.integers(1, 1280)),
)
def test_an_image_has_as_many_rows_as_the_processor_makes(
    square_px: int, size_px: tuple[int, int], pixels: tuple[int, int]
) -> None:
    height, width = size_px
    if max(size_px) > MOST_TIMES_LONGER * min(size_px):
        return  # opened nowhere
    most_pixels = pixels[1] * square_px**2
    rule = Grid(square_px, min(pixels[0], most_pixels), most_pixels)
    lines, columns = rule.grid(height, width)
    size = {"shortest_edge": rule.least_pixels, "longest_edge": rule.most_pixels}
    processor = Qwen2VLImageProcessorPil(size=size, patch_size=square_px // 2, merge_size=2)
    assert 4 * lines * columns == processor.get_number_of_image_patches(height, width)
    assert rule.text("i", height, width) == "i" * lines * columns


@pytest.mark.parametrize(
    "size_px", [(1, 1), (1, 50), (50, 1), (14, 14), (27, 29), (100, 33), (640, 480), (13, 200)]
)
def test_the_processor_of_a_model_cuts_it_so(
    seeing_models: dict[str, Path], size_px: tuple[int, int]
) -> None:
    path = seeing_models["qwen2_vl"]
    layout = read_layout(path)
    assert layout is not None
    assert isinstance(layout.rule, Grid)
    processor = Qwen2VLImageProcessorPil.from_pretrained(path)
    given_with = dict(layout.prepared_with)
    prepared = processor(images=[Picture.new("RGB", size_px)], return_tensors="pt", **given_with)
    _, height, width = prepared["image_grid_thw"][0].tolist()
    assert layout.rule.grid(size_px[1], size_px[0]) == (height // 2, width // 2)


@pytest.mark.parametrize("family", GRID_FAMILIES)
def test_a_place_says_how_many_rows_stand_beside_each_other(
    seeing_models: dict[str, Path], family: str
) -> None:
    tokenizer = ChatTokenizer.load(seeing_models[family])
    chat = [asked("Look: \ufffc!", noise(0, 70, 42))]
    ids = tokenizer.encode_chat(chat)
    (placed,) = tokenizer.place_images(ids, chat[0]["images"])
    assert (placed.num_ids, placed.num_columns) == (3 * 5, 5)
    before = "<|im_start|>user\nLook: <|vision_start|>"
    assert ids[: placed.offset] == tokenizer.encode_marks(before)
    assert data_url(placed.data) == chat[0]["images"][0].url


def test_the_template_of_the_hub_shows_images(
    seeing_models: dict[str, Path], tmp_path: Path
) -> None:
    for file in seeing_models["qwen2_vl"].iterdir():
        (tmp_path / file.name).symlink_to(file)
    template = tmp_path / "chat_template.jinja"
    template.unlink()
    template.write_text(HUB_TEMPLATE)
    tokenizer = ChatTokenizer.load(tmp_path)
    chat = [asked("Look: \ufffc and \ufffc!", noise(0, 70, 42), noise(1, 28, 28))]
    ids = tokenizer.encode_chat(chat)
    images = tokenizer.place_images(ids, chat[0]["images"])
    assert [(one.num_ids, one.num_columns) for one in images] == [(15, 5), (4, 2)]
    told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert tokenizer.decode(list(tokenizer.encode_chat(told))).count("Be brief.") == 1


def test_an_image_takes_no_more_than_so_many_rows(hub: Path) -> None:
    """The hub's files allow 16,384."""
    layout = layout_at(hub)
    assert layout is not None
    assert isinstance(layout.rule, Grid)
    lines, columns = layout.rule.grid(4000, 3000)
    assert 0.9 * MOST_ROWS < lines * columns <= MOST_ROWS
    assert lines / columns == pytest.approx(4 / 3, rel=0.05)
    assert layout.rule.grid(1, 50)[0] >= 1


def test_what_looking_takes_is_counted(hub: Path) -> None:
    """Two layers of such towers took so many bytes for each patch in float32."""
    measured = {"qwen2_vl": 105_246, "qwen2_5_vl": 79_891, "qwen3_vl": 60_441}
    model_type = json.loads((hub / "config.json").read_text())["model_type"]
    num_patches = 4 * MOST_ROWS
    counted = seeing_bytes(hub, 4, on_gpu=True) / num_patches
    assert measured[model_type] < counted < 2 * measured[model_type]
    assert seeing_bytes(hub, 4, on_gpu=False) == counted * num_patches + KEPT_BYTES


def test_files_may_allow_less(hub: Path) -> None:
    file = hub / "preprocessor_config.json"
    prepared = json.loads(file.read_text())
    file.write_text(json.dumps({**prepared, "min_pixels": 1, "max_pixels": 100 * 32**2}))
    layout = read_layout(hub)
    assert layout is not None
    assert isinstance(layout.rule, Grid)
    lines, columns = layout.rule.grid(4000, 3000)
    assert lines * columns <= 100 * 32**2 // layout.rule.square_px**2


@pytest.mark.parametrize("change", [{"patch_size": 0}, {"max_pixels": "many"}, {"size": [1]}])
def test_odd_files_are_refused(hub: Path, change: dict[str, Any]) -> None:
    file = hub / "preprocessor_config.json"
    prepared = json.loads(file.read_text())
    if "size" in change:
        prepared.pop("max_pixels", None)
    file.write_text(json.dumps({**prepared, **change}))
    with pytest.raises(ModelRefused):
        read_layout(hub)
    assert layout_at(hub) is None


@pytest.mark.parametrize("is_stretched", [False, True])
def test_models_as_on_the_hub_see_what_transformers_sees(hub: Path, is_stretched: bool) -> None:
    """Small copies of them, with their own kinds of layers, frequencies and least images. For long
    contexts they are told to stretch their frequencies."""
    if is_stretched:
        values = json.loads((hub / "config.json").read_text())
        rope = values.get("text_config", values)["rope_scaling"]
        rope |= {"type": "yarn", "rope_type": "yarn", "factor": 4.0}
        rope |= {"original_max_position_embeddings": 32768}
        (hub / "config.json").write_text(json.dumps(values))
    config = AutoConfig.from_pretrained(hub)
    layout = read_layout(hub)
    assert layout is not None
    assert seeing_error(config, hub, layout) <= MAX_RELATIVE_ERROR
    reading = reading_config(config)
    assert packed_error(shrink(reading)) <= MAX_RELATIVE_ERROR
    text = config.get_text_config()
    assert reading.rope_parameters["rope_theta"] == text.rope_parameters["rope_theta"]
    assert reading.rope_parameters["rope_type"] == ("yarn" if is_stretched else "default")
    assert reading.num_hidden_layers == text.num_hidden_layers

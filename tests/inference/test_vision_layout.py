"""How many rows an image takes is told without the model, as transformers' own processors say it."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture
from PIL import ImageOps

from inference.errors import InvalidParameter, ModelRefused
from inference.images import Image
from inference.kinds import LOOK_EVERY_S
from inference.tokenizer import ChatTokenizer
from inference.vision import layout
from inference.vision.layout import layout_at, read_layout
from inference.vision.rules import AnyResolution, Canvas, MarkedTiles
from inference.vision.sizes import BadImage, opened, size_of, upright
from tests.images import data_url, jpeg, png
from tests.inference.tiny_vision import FAMILIES, asked, make_seeing_model, noise

SIZES_PX = [
    *((1, 1), (2, 90), (90, 2), (28, 28), (27, 29), (56, 28), (57, 28), (84, 84), (85, 84)),
    *((100, 33), (33, 100), (300, 299), (299, 300), (640, 480), (13, 200), (1000, 21)),
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("layouts")
    return {family: make_seeing_model(folder / family, family) for family in FAMILIES}


def processor_of(path: Path, family: str) -> Any:
    """transformers' own, but for SmolVLM's, which is Idefics 3's and asks for a package more."""
    from transformers import (
        AutoImageProcessor,
        AutoTokenizer,
        Idefics3Processor,
        LlavaNextProcessor,
        LlavaProcessor,
    )

    images = AutoImageProcessor.from_pretrained(path, backend="pil")
    tokens = AutoTokenizer.from_pretrained(path)
    if family in ("idefics3", "smolvlm"):
        return Idefics3Processor(images, tokens, image_seq_len=4)
    kind = LlavaProcessor if family == "llava" else LlavaNextProcessor
    return kind(
        images,
        tokens,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )


# That of LLaVA-OneVision reads films as well, for which a package is missing.
@pytest.mark.parametrize("family", ["llava", "llava_next", "idefics3", "smolvlm"])
def test_ids_are_those_of_the_processor(paths: dict[str, Path], family: str) -> None:
    processor, tokenizer = processor_of(paths[family], family), ChatTokenizer.load(paths[family])
    for height, width in SIZES_PX:
        picture = noise(0, width, height)
        ids = tokenizer.encode_chat([asked("Look: \ufffc!", picture)])
        text = "<|im_start|>user\nLook: <image>!<|im_end|>\n<|im_start|>assistant\n"
        image = Picture.open(io.BytesIO(picture)).convert("RGB")
        expected = processor(images=[image], text=text, add_special_tokens=False)
        assert list(ids) == list(expected["input_ids"][0]), (height, width)
        (placed,) = tokenizer.place_images(ids, asked("", picture)["images"])
        assert placed.data == picture
        assert ids[: placed.offset] == tokenizer.encode_marks("<|im_start|>user\nLook: ")


@pytest.mark.parametrize("most_tiles", [1, 4, 12])
def test_a_canvas_has_as_many_tiles_as_the_processor_makes(most_tiles: int) -> None:
    """InternVL's; its processor as a whole reads films as well, for which a package is missing."""
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    size = {"height": 28, "width": 28}
    processor = GotOcr2ImageProcessorPil(size=size, max_patches=most_tiles, crop_to_patches=True)
    rule = Canvas(4, 28, 1, most_tiles)
    for height, width in SIZES_PX:
        image = Picture.new("RGB", (width, height))
        (num_tiles,) = processor(images=[image])["num_patches"]
        assert rule.num_tiles(height, width) == num_tiles, (height, width)
        assert rule.text("i", height, width) == f"<img>{'i' * 4 * num_tiles}</img>"


@pytest.mark.parametrize(("height", "width"), SIZES_PX)
def test_real_tiles_are_counted_as_transformers_does(height: int, width: int) -> None:
    """LLaVA-NeXT's, LLaVA-OneVision's and SmolVLM's own sizes; nothing is computed of pixels."""
    import torch
    from transformers import LlavaOnevisionConfig
    from transformers.models.llava_onevision import modeling_llava_onevision as modeling

    height, width = 7 * height, 7 * width
    rule = AnyResolution(729, 384, 27, layout._ONE_RESOLUTIONS, most_tiles=9)
    config = LlavaOnevisionConfig()
    whole = type("Whole", (), {"config": config})
    num_tiles = modeling.image_size_to_num_patches(
        (height, width), config.image_grid_pinpoints, 384
    )
    features = torch.zeros(num_tiles, 729, 1)
    packed, _ = modeling.LlavaOnevisionModel.pack_image_features(
        whole, [features], [(height, width)], image_newline=torch.zeros(1)
    )
    assert rule.num_rows(height, width) == len(packed[0])


def test_a_smolvlm_of_the_hub_makes_such_tiles() -> None:
    """512 pixels, at most four in a line: an image of 1,568 by 1,176 is four by three and the whole."""
    rule = MarkedTiles(64, 512, 2048)
    assert rule.tiles(1176, 1568) == (3, 4)
    text = rule.text("i", 1176, 1568)
    assert text.count("i" * 64) == 13
    assert text.endswith(
        "\n\n<fake_token_around_image><global-img>" + "i" * 64 + "<fake_token_around_image>"
    )
    assert MarkedTiles(64, 512, 2048, is_split=False).tiles(1176, 1568) == (0, 0)


def test_where_a_text_spells_the_mark_there_is_no_image(paths: dict[str, Path]) -> None:
    for family in FAMILIES:
        tokenizer = ChatTokenizer.load(paths[family])
        ids = tokenizer.encode_chat(
            [asked("An <image> here? And <global-img>? <|image_pad|>?\ufffc")]
        )
        assert tokenizer.place_images(ids, ()) == ()
        assert "An <image> here?" in tokenizer.decode(list(ids))


def test_a_template_of_parts_gets_texts_as_parts(paths: dict[str, Path]) -> None:
    tokenizer = ChatTokenizer.load(paths["llava"])
    talk = [
        {"role": "system", "content": "Be brief."},
        asked("Hello"),
        {"role": "assistant", "content": ""},
    ]
    text = tokenizer.decode(list(tokenizer.encode_chat(talk)))
    assert "Be brief." in text
    assert "Hello" in text


def test_the_template_may_lie_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = make_seeing_model(tmp_path / "old")
    template = (path / "chat_template.jinja").read_text()
    (path / "chat_template.jinja").unlink()
    (path / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    assert ChatTokenizer.load(path).chat_template == template


@pytest.mark.parametrize(
    "content", [b"", b"no image", png()[:20], b"GIF89a" + bytes(40), jpeg()[:40]]
)
def test_what_is_no_image_is_told(paths: dict[str, Path], content: bytes) -> None:
    with pytest.raises(BadImage):
        size_of(content)
    with pytest.raises(InvalidParameter, match="messages: an image cannot be read"):
        ChatTokenizer.load(paths["llava"]).encode_chat([asked("Look", content)])


def test_too_many_pixels_are_not_unpacked() -> None:
    file = io.BytesIO()
    Picture.new("1", (10_000, 4_001)).save(file, "PNG")
    with pytest.raises(BadImage, match="million pixels"):
        size_of(file.getvalue())


@pytest.mark.parametrize("size_px", [(1568, 1), (1, 1568), (51, 1), (1, 51)])
def test_a_strip_is_refused(paths: dict[str, Path], size_px: tuple[int, int]) -> None:
    """CLIP's processor would make it 336 pixels wide first, and 526,848 long."""
    for encode in (png, jpeg):
        strip = encode("red", size_px)
        with pytest.raises(BadImage, match="more than 50 times as long"):
            size_of(strip)
        with pytest.raises(InvalidParameter, match="messages: an image is more than 50 times"):
            ChatTokenizer.load(paths["llava"]).encode_chat([asked("Look", strip)])
    assert size_of(png("red", (50, 1))) == (1, 50)


def test_who_looks_at_no_image_loads_no_reader_of_images() -> None:
    code = "import sys, inference; assert 'PIL' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(10))
def test_an_image_is_seen_upright_by_both_processes(kind: str, orientation: int) -> None:
    """As transformers loads images."""
    picture, file = Picture.open(io.BytesIO(noise(1, 40, 24))), io.BytesIO()
    exif = Picture.Exif()
    exif[0x0112] = orientation
    picture.save(file, kind, exif=exif)
    expected = ImageOps.exif_transpose(Picture.open(file)).convert("RGB")
    with opened(file.getvalue()) as found:
        seen = upright(found)
    assert size_of(file.getvalue()) == (seen.height, seen.width)
    assert (seen.size, seen.tobytes()) == (expected.size, expected.tobytes())


def test_a_damaged_note_turns_nothing() -> None:
    file = io.BytesIO()
    Picture.new("RGB", (9, 8)).save(file, "JPEG", exif=b"Exif\0\0damaged")
    assert size_of(file.getvalue()) == (8, 9)


def test_a_long_head_is_read_to_its_end(paths: dict[str, Path]) -> None:
    file = io.BytesIO()
    Picture.new("RGB", (9, 8)).save(
        file, "JPEG", exif=b"Exif\0\0" + bytes(60_000), comment=b"x" * 60_000
    )
    tokenizer = ChatTokenizer.load(paths["llava"])
    (placed,) = tokenizer.place_images(
        tokenizer.encode_chat([asked("", file.getvalue())]), [Image(data_url(file.getvalue()))]
    )
    assert placed.data == file.getvalue()


def test_both_ways_at_once_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps(
            {"model_type": "paligemma", "architectures": ["PaliGemmaForConditionalGeneration"]}
        )
    )
    with pytest.raises(ModelRefused, match="both directions"):
        read_layout(tmp_path)
    assert layout_at(tmp_path) is None


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]},
        {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]},
        {"model_type": "llava", "architectures": ["LlavaModel"]},
        {"model_type": ["llava"]},
    ],
)
def test_others_read_texts_only(tmp_path: Path, config: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_layout(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"vision_config": {"model_type": "pixtral"}},
        {"vision_config": {"model_type": "clip_vision_model", "patch_size": 0}},
        {"vision_config": [1]},
        {"image_token_index": "many"},
    ],
)
def test_odd_files_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    config = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], **change}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelRefused):
        read_layout(tmp_path)
    assert layout_at(tmp_path) is None


def test_a_model_that_was_changed_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(layout, "monotonic", lambda: now_s)
    assert layout_at(tmp_path) is None
    config = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert layout_at(tmp_path) is None
    now_s += LOOK_EVERY_S
    assert layout_at(tmp_path) is not None

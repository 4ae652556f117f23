"""Small models that see, with random weights; and what transformers says by them of a chat."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture

from inference.images import IMAGE_PLACE, Image
from tests.images import data_url
from tests.inference.tiny_models import make_tokenizer

GRID_FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
TILE_FAMILIES = ("llava", "llava_next", "llava_onevision", "idefics3", "smolvlm", "internvl")
FAMILIES = (*TILE_FAMILIES, *GRID_FAMILIES)
PATCH_PX, TILE_PX = 7, 28
_MARKS = [
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    *("<img>", "</img>"),
    *(f"<row_{line}_col_{column}>" for line in range(1, 4) for column in range(1, 4)),
]
_GRID_MARKS = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
# As those of models that see often are: it takes parts only, and drops a text.
TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{%- for part in m.content -%}{%- if part.type == 'image' -%}{{ '<image>' }}"
    "{%- elif part.type == 'text' -%}{{ part.text }}{%- endif -%}{%- endfor -%}"
    "{{ '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
_QWEN_TEMPLATE = TEMPLATE.replace("<image>", "".join(_GRID_MARKS))
_TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "bos_token_id": None,
}
_TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": TILE_PX,
    "patch_size": PATCH_PX,
}
_RESOLUTIONS = [[28, 56], [56, 28], [56, 56], [84, 28]]
_PREPARED: dict[str, Any] = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "rescale_factor": 1 / 255,
    "image_mean": [0.5, 0.4, 0.5],
    "image_std": [0.3, 0.2, 0.3],
    "resample": 3,
}
_SQUARE = {"height": TILE_PX, "width": TILE_PX}
_CROPPED = {"size": {"shortest_edge": TILE_PX}, "crop_size": _SQUARE, "do_center_crop": True}
_IN_TILES = {"size": {"longest_edge": 3 * TILE_PX}, "max_image_size": {"longest_edge": TILE_PX}}
_IN_GRIDS: dict[str, Any] = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "patch_size": PATCH_PX,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "min_pixels": 4 * (2 * PATCH_PX) ** 2,
    "max_pixels": 20 * (2 * PATCH_PX) ** 2,
}
_PROCESSORS: dict[str, dict[str, Any]] = {
    "llava": {"image_processor_type": "CLIPImageProcessor", **_CROPPED},
    "llava_next": {
        "image_processor_type": "LlavaNextImageProcessor",
        "image_grid_pinpoints": _RESOLUTIONS,
        **_CROPPED,
    },
    "llava_onevision": {
        "image_processor_type": "LlavaOnevisionImageProcessor",
        "image_grid_pinpoints": _RESOLUTIONS,
        "size": _SQUARE,
    },
    "idefics3": {"image_processor_type": "Idefics3ImageProcessor", **_IN_TILES},
    "smolvlm": {"image_processor_type": "SmolVLMImageProcessor", **_IN_TILES},
    **dict.fromkeys(GRID_FAMILIES, _IN_GRIDS),
    "internvl": {
        "image_processor_type": "GotOcr2ImageProcessorFast",  # as the hub's files have it
        "size": _SQUARE,
        "max_patches": 4,
    },
}


def make_seeing_model(path: Path, family: str = "llava", seed: int = 0, **text: Any) -> Path:
    """Write a small float32 model that sees, with weights from a seed. `text` are of its text layers."""
    import torch
    from transformers import AutoModelForImageTextToText

    image_token_id, vocab_size = _make_tokenizer(path, family)
    config = _config(family, image_token_id, {**_TEXT, "vocab_size": vocab_size, **text})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:  # wide enough that what is seen changes what is said
                is_last = "projector" in name or "merger" in name
                # Where heads look at little else than positions, a wrong one is heard.
                is_where = family in GRID_FAMILIES and ("q_proj" in name or "k_proj" in name)
                torch.nn.init.normal_(parameter, std=0.6 if is_last or is_where else 0.2)
    model.save_pretrained(path)
    prepared = {**_PREPARED, **_PROCESSORS[family]}
    (path / "preprocessor_config.json").write_text(json.dumps(prepared))
    return path


def _make_tokenizer(path: Path, family: str) -> tuple[int, int]:
    """The id of its image token, and how many tokens it has."""
    from tokenizers import AddedToken, Tokenizer

    make_tokenizer(path)
    is_grid = family in GRID_FAMILIES
    marks = _GRID_MARKS if is_grid else _MARKS
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.add_special_tokens(
        [AddedToken(mark, normalized=False, special=True) for mark in marks]
    )
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "chat_template.jinja").write_text(_QWEN_TEMPLATE if is_grid else TEMPLATE)
    image_token_id = tokenizer.token_to_id("<|image_pad|>" if is_grid else "<image>")
    assert image_token_id is not None
    return image_token_id, tokenizer.get_vocab_size()


def _config(family: str, image_token_id: int, text: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    if family in GRID_FAMILIES:
        return _grid_config(family, image_token_id, text)
    if family in ("idefics3", "smolvlm"):
        return AutoConfig.for_model(
            family,
            vision_config=dict(_TOWER),
            text_config={"model_type": "llama", **text},
            image_token_id=image_token_id,
            scale_factor=2,
        )
    kind = "siglip_vision_model" if family == "llava_onevision" else "clip_vision_model"
    if family == "internvl":
        tower = {**_TOWER, "image_size": [TILE_PX] * 2, "patch_size": [PATCH_PX] * 2}
        return AutoConfig.for_model(
            family,
            vision_config=tower,
            text_config={"model_type": "qwen2", **text},
            image_token_id=image_token_id,
            image_seq_length=4,
        )
    of_tower: dict[str, Any] = {"projection_dim": 32}
    more: dict[str, Any] = {} if family == "llava" else {"image_grid_pinpoints": _RESOLUTIONS}
    if family == "llava_onevision":
        of_tower = {"vision_use_head": False}
        more |= {"vision_aspect_ratio": "anyres_max_2"}
    return AutoConfig.for_model(
        family,
        vision_config={"model_type": kind, **_TOWER, **of_tower},
        text_config={"model_type": "qwen2" if family == "llava_onevision" else "llama", **text},
        image_token_index=image_token_id,
        **more,
    )


def _grid_config(family: str, image_token_id: int, text: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    tower: dict[str, Any] = {"depth": 3, "num_heads": 2, "patch_size": PATCH_PX}
    if family == "qwen2_vl":
        tower |= {"embed_dim": 32, "mlp_ratio": 2, "hidden_size": text["hidden_size"]}
    else:
        tower |= {"hidden_size": 32, "intermediate_size": 64}
        tower |= {"out_hidden_size": text["hidden_size"]}
    if family == "qwen2_5_vl":
        tower |= {"window_size": 4 * PATCH_PX, "fullatt_block_indexes": [1]}
    if family == "qwen3_vl":
        tower |= {"deepstack_visual_indexes": [0, 2], "num_position_embeddings": 36}
        text = {**text, "head_dim": 16}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    if family == "qwen3_vl":
        rope["mrope_section"] = [4, 2, 2]
    return AutoConfig.for_model(
        family,
        vision_config=tower,
        text_config={**text, "rope_parameters": rope},
        image_token_id=image_token_id,
    )


def noise(seed: int, width: int = 40, height: int = 30) -> bytes:
    """A PNG of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def asked(text: str, *pictures: bytes) -> dict[str, Any]:
    """A question; \ufffc in the text are the places of pictures."""
    images = tuple(Image(data_url(picture)) for picture in pictures)
    places = IMAGE_PLACE * (len(images) - text.count(IMAGE_PLACE))
    return {"role": "user", "content": places + text, "images": images}


class Whole:
    """The model as transformers has it."""

    def __init__(self, path: Path) -> None:
        from transformers import AutoImageProcessor, AutoModelForImageTextToText

        self.model: Any = AutoModelForImageTextToText.from_pretrained(path).eval()
        self._processor: Any = AutoImageProcessor.from_pretrained(path, backend="pil")

    def greedy(self, ids: Sequence[int], pictures: Sequence[bytes], num_tokens: int) -> list[int]:
        """What it says behind a prompt in which images have their rows; ends of turns are tokens."""
        import torch

        inputs = self.inputs_of(pictures) if pictures else {}
        said: list[int] = []
        with torch.inference_mode():
            for _ in range(num_tokens):
                read = torch.tensor([[*ids, *said]])
                if "image_grid_thw" in inputs:
                    image_token_id = self.model.config.image_token_id
                    inputs["mm_token_type_ids"] = (read == image_token_id).int()
                output = self.model(input_ids=read, use_cache=False, **inputs)
                said.append(int(output.logits[0, -1].argmax()))
        return said

    def inputs_of(self, pictures: Sequence[bytes]) -> dict[str, Any]:
        """What its processor makes of them."""
        images = [Picture.open(io.BytesIO(one)).convert("RGB") for one in pictures]
        more = {"crop_to_patches": True} if self.model.config.model_type == "internvl" else {}
        # It reads one by itself in another way than one of several.
        given = [images] if self.model.config.model_type == "llava_onevision" else images
        inputs = dict(self._processor(images=given, return_tensors="pt", **more))
        inputs.pop("num_patches", None)
        return inputs

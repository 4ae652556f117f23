"""Checkpoints of AWQ, GPTQ, FP8, MXFP4 and compressed-tensors are the models that they stand for."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from inference import ModelRefused
from inference.loader import load_model
from inference.quantized import read_quantization
from inference.weights import read_weights
from tests.inference.loops import answers, make_loop, request
from tests.inference.quantized_files import (
    Written,
    awq,
    fp8_blocks,
    fp8_rows,
    gptq,
    int8_rows,
    packed_groups,
    requantize,
)
from tests.inference.tiny_models import make_model


def groups(bits: int, kind: str) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int"}
    return {
        "quant_method": "compressed-tensors",
        "format": kind,
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
    }


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32}
FORMATS: dict[str, tuple[dict[str, Any], Callable[[Tensor], Written]]] = {
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}, awq),
    "gptq": (GPTQ, gptq),
    "gptq, 8 bits": ({**GPTQ, "bits": 8}, partial(gptq, bits=8)),
    "gptq, 2 bits": ({**GPTQ, "bits": 2}, partial(gptq, bits=2)),
    "gptq, in no order": ({**GPTQ, "desc_act": True}, partial(gptq, is_shuffled=True)),
    "gptq_v2": ({**GPTQ, "checkpoint_format": "gptq_v2"}, partial(gptq, is_v2=True)),
    "fp8 in blocks": ({"quant_method": "fp8", "weight_block_size": [48, 48]}, fp8_blocks),
    "fp8 by rows": (groups(8, "float-quantized"), fp8_rows),
    "fp8, one scale": ({"quant_method": "fp8"}, partial(fp8_rows, has_one=True)),
    "int8 by rows": (groups(8, "int-quantized"), int8_rows),
    "packed": (groups(4, "pack-quantized"), packed_groups),
    "packed, with zeros": (groups(4, "pack-quantized"), partial(packed_groups, has_zeros=True)),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "model"
    return make_model(path, hidden_size=64, intermediate_size=96)


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_the_model_that_it_stands_for(name: str, source: Path, tmp_path: Path) -> None:
    torch.manual_seed(len(name))
    config, write = FORMATS[name]
    path = tmp_path / "quantized"
    plain = requantize(source, path, config, write)
    told: list[str] = []
    loaded = load_model("tiny", path, lambda phase, _: told.append(phase), torch.float32)
    assert "dequantizing" in told
    assert f"(from {config['quant_method']}" in loaded.info.dtype
    found = loaded.model.state_dict()
    for one, weight in plain.items():
        torch.testing.assert_close(found[one], weight, rtol=1e-3, atol=1e-5)
    # What lies packed on disk counts with the memory that it takes.
    assert read_weights(path).num_parameters == read_weights(source).num_parameters


def test_its_answers_are_those_of_the_model_that_it_stands_for(
    source: Path, tmp_path: Path
) -> None:
    path, whole = tmp_path / "quantized", tmp_path / "whole"
    plain = requantize(source, path, FORMATS["gptq"][0], gptq)
    model = AutoModelForCausalLM.from_pretrained(source)
    model.load_state_dict(plain, strict=False)
    model.save_pretrained(whole)
    (whole / "tokenizer.json").write_text((source / "tokenizer.json").read_text())
    asked = [request(f"r{n}", (5, 6, 7 + n), max_tokens=12, ignore_eos=True) for n in range(3)]
    assert answers(make_loop(path), *asked) == answers(make_loop(whole), *asked)


def test_whole_numbers_may_become_whole_numbers_again(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "quantized"
    requantize(source, path, FORMATS["awq"][0], awq)
    loaded = load_model("tiny", path, lambda *_: None, torch.float32, bits=8)
    assert loaded.info.dtype in ("int8 (from awq, 4 bits)", "float32 (from awq, 4 bits)")


def test_mxfp4_is_what_gpt_oss_comes_in(tmp_path: Path) -> None:
    """Experts in blocks of 32 values of 4 bits, with a power of two for each."""
    whole = make_model(tmp_path / "whole", "gpt_oss", intermediate_size=64, num_local_experts=4)
    path = tmp_path / "quantized"
    before = load_file(whole / "model.safetensors")
    tensors: dict[str, Tensor] = {}
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    wanted: dict[str, Tensor] = {}
    for name, tensor in before.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[name] = tensor
            continue
        experts, inputs, outputs = tensor.shape
        numbers = torch.randint(0, 16, (experts, outputs, inputs // 32, 16, 2))
        exponents = torch.randint(120, 128, (experts, outputs, inputs // 32))
        tensors[f"{name}_blocks"] = (numbers[..., 0] | numbers[..., 1] << 4).to(torch.uint8)
        tensors[f"{name}_scales"] = exponents.to(torch.uint8)
        scaled = values[numbers.flatten(3)] * torch.pow(2.0, exponents - 127)[..., None]
        wanted[name] = scaled.flatten(2).transpose(1, 2)
    path.mkdir()
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    config = json.loads((whole / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
    (path / "config.json").write_text(json.dumps(config))
    loaded = load_model("tiny", path, lambda *_: None, torch.float32)
    assert loaded.info.dtype == "float32 (from mxfp4, 4 bits)"
    assert read_weights(path).num_parameters == read_weights(whole).num_parameters
    for name, weight in wanted.items():
        torch.testing.assert_close(loaded.model.state_dict()[name], weight)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"quant_method": "bitsandbytes"}, "'bitsandbytes'"),
        ({"quant_method": "awq", "version": "gemv"}, "'gemv'"),
        ({"quant_method": "gptq", "bits": 3}, "with 3 bits"),
        (groups(8, "marlin-24"), "'marlin-24'"),
        (groups(3, "pack-quantized"), r"weights of \[3\] bits"),
        ({"quant_method": "gptq", "bits": "many"}, "cannot be read"),
        ({**groups(4, "pack-quantized"), "config_groups": {"group_0": None}}, "cannot be read"),
        ("awq", "cannot be read"),
    ],
)
def test_what_is_not_known_is_said(config: Any, why: str) -> None:
    with pytest.raises(ModelRefused, match=why):
        read_quantization({"quantization_config": config})


def test_parts_that_do_not_fit_are_refused(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    requantize(source, path, FORMATS["awq"][0], awq)
    tensors = load_file(path / "model.safetensors")
    del tensors["model.layers.0.self_attn.q_proj.scales"]
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelRefused, match=r"awq weights of model\.layers\.0\.self_attn\.q_proj"):
        load_model("tiny", path, lambda *_: None, torch.float32)

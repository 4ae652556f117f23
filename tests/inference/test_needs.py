"""What a model's worker will take, by its files; and what all of them may take."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from inference import ModelRefused, int8, memory
from inference.assembly import assemble
from inference.config import DTYPES
from inference.few_bits_size import few_bits_bytes
from inference.int8_linear import weights_bytes
from inference.loader import best_dtype
from inference.needs import WORKER_BYTES, Needs, bytes_of_weight, estimate_needs, measure_budget
from inference.vision.layout import read_layout
from inference.vision.loading import parted
from inference.vision.room import KEPT_BYTES
from inference.whole_linear import WholeLinear
from tests.inference.conftest import engine_config
from tests.inference.tiny_models import make_encoder, make_model
from tests.inference.tiny_vision import make_seeing_model

GIB = 2**30


def test_the_estimate_of_the_weights_is_what_they_take_when_loaded(tiny_model: Path) -> None:
    config = engine_config(tiny_model)
    _, info = assemble("tiny", tiny_model, config, lambda *_: None)
    needs = estimate_needs("tiny", tiny_model, config, budget_bytes=GIB)
    assert needs.kv_bytes == config.kv_bytes
    # A head that is tied to the embeddings is stored once; small buffers are in no file.
    assert info.weights_bytes <= needs.weights_bytes * 1.15
    assert needs.weights_bytes <= info.weights_bytes


def test_the_dtype_is_the_one_that_torch_will_choose() -> None:
    found = {dtype: bytes_of_weight(dtype) for dtype in DTYPES}
    own = best_dtype().itemsize
    few = {"int8": own, "int4": own, "fp8": own}
    assert found == {"auto": own, "float32": 4, "bfloat16": 2, **few}


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_gpu_holds_few_bits_only(bits: int, is_tied: bool, tmp_path: Path) -> None:
    """The host had all of the weights in 16 bits before."""
    path = make_model(tmp_path / "small", tie_word_embeddings=is_tied)
    config = engine_config(path, dtype=f"int{bits}")
    needs = estimate_needs("small", path, config, GIB, on_gpu=True)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16)
    head = partial(WholeLinear, bits=8)
    int8.quantize(model, make=partial(WholeLinear, bits=bits), make_head=head)
    assert 0.9 < needs.weights_bytes / weights_bytes(model) < 1.1
    whole = estimate_needs("small", path, replace(config, dtype="bfloat16"), GIB, on_gpu=True)
    assert is_tied or needs.weights_bytes < whole.weights_bytes
    assert estimate_needs("small", path, config, GIB).weights_bytes >= whole.weights_bytes


def test_what_stays_in_16_bits_on_a_gpu_is_told_by_its_name(tmp_path: Path) -> None:
    """Experts are no linear layers when they are loaded, whatever their files say."""
    sizes = {
        "model.embed_tokens.weight": (40, 64),
        "model.norm.weight": (64,),
        "model.layers.0.mlp.gate.weight": (4, 64),
        "model.layers.0.mlp.experts.0.up_proj.weight": (32, 64),
        "model.layers.0.mlp.shared_expert.up_proj.weight": (96, 64),
    }
    (tmp_path / "config.json").write_text("{}")
    save_file(
        {name: torch.zeros(size) for name, size in sizes.items()}, tmp_path / "model.safetensors"
    )
    others = 40 * 64 + 64 + 4 * 64 + 32 * 64
    tied_head = 40 * 64
    bits = 16 * others + 8.25 * tied_head + 4.5 * 96 * 64
    assert few_bits_bytes(tmp_path, "int4") == int(bits / 8)
    assert few_bits_bytes(tmp_path, "bfloat16") is None


@pytest.mark.parametrize("family", ["llava", "idefics3", "internvl", "qwen2_vl", "qwen3_vl"])
def test_what_a_model_sees_with_is_counted(family: str, tmp_path: Path) -> None:
    """In 16 bits on a GPU, whatever its text layers have; and what looking takes, and its rows."""
    path = make_seeing_model(tmp_path / family, family)
    config = engine_config(path, dtype="int8")
    needs = estimate_needs("tiny", path, config, GIB, on_gpu=True)
    whole = AutoModelForImageTextToText.from_pretrained(path, dtype=torch.bfloat16)
    writer, eyes = parted(whole, read_layout(path), path)
    eyes_bytes = weights_bytes(eyes.module)
    int8.quantize(writer, make=partial(WholeLinear, bits=8), make_head=partial(WholeLinear, bits=8))
    assert 0.95 < needs.weights_bytes / (weights_bytes(writer) + eyes_bytes) < 1.05
    assert 0 < needs.seeing_bytes < 16 * 2**20
    on_host = estimate_needs("tiny", path, config, GIB)
    assert on_host.seeing_bytes > KEPT_BYTES
    without = replace(on_host, seeing_bytes=0)
    assert on_host.size_bytes - without.size_bytes == on_host.seeing_bytes
    sized = replace(config, kv_bytes=None)
    seen = estimate_needs("tiny", path, sized, GIB)
    left_bytes = GIB - seen.size_bytes + seen.kv_bytes
    assert seen.kv_bytes == left_bytes // 4  # of what is left, it is not


def test_a_cache_gets_a_quarter_of_what_the_weights_leave(tiny_model: Path) -> None:
    config = replace(engine_config(tiny_model), kv_bytes=None)
    for budget_bytes in (GIB, 4 * GIB, 200 * GIB):
        needs = estimate_needs("tiny", tiny_model, config, budget_bytes)
        without = Needs(needs.weights_bytes, 0).size_bytes
        assert needs.kv_bytes == min((budget_bytes - without) // 4, 4 * GIB)
        assert needs.size_bytes <= budget_bytes
    assert estimate_needs("tiny", tiny_model, config, WORKER_BYTES).size_bytes > WORKER_BYTES


def test_a_draft_model_needs_memory_as_well(tiny_model: Path, tmp_path: Path) -> None:
    small = make_model(tmp_path / "small", tokenizer=tiny_model, num_hidden_layers=1)
    config = engine_config(tiny_model)
    _, alone = assemble("small", small, config, lambda *_: None)
    _, without = assemble("tiny", tiny_model, config, lambda *_: None)
    drafting = replace(
        config,
        extra_models=(*config.extra_models, f"small={small}"),
        draft_models=(("tiny", "small"),),
    )
    _, info = assemble("tiny", tiny_model, drafting, lambda *_: None)
    assert info.draft_model == "small"
    assert info.weights_bytes == without.weights_bytes + alone.weights_bytes
    needs = estimate_needs("tiny", tiny_model, drafting, GIB)
    assert info.weights_bytes <= needs.weights_bytes * 1.15
    least = estimate_needs("tiny", tiny_model, config, GIB)
    assert needs.weights_bytes > least.weights_bytes
    for others in ({"max_num_drafting": 0}, {"draft_models": (("tiny", "unknown"),)}):
        assert estimate_needs("tiny", tiny_model, replace(drafting, **others), GIB) == least  # type: ignore[arg-type]
    tight = estimate_needs("tiny", tiny_model, drafting, needs.size_bytes - 1)
    assert tight.weights_bytes == least.weights_bytes
    assert "no memory for both" in tight.draft_problem
    assert not needs.draft_problem
    on_gpu = [estimate_needs("tiny", tiny_model, c, GIB, on_gpu=True) for c in (config, drafting)]
    assert on_gpu[0] == on_gpu[1], "there it takes nothing"


def test_an_encoder_needs_no_cache(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "encoder", pooling="mean")
    assert estimate_needs("tiny", path, engine_config(path), GIB).kv_bytes == 0


def test_files_that_cannot_be_served_are_refused_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"config\.json"):
        estimate_needs("tiny", tmp_path, engine_config(tmp_path), GIB)


@pytest.mark.parametrize(("free", "budget"), [(2 * GIB, 2 * GIB * 19 / 20), (64 * GIB, 63 * GIB)])
def test_the_budget_leaves_something_to_the_rest_of_the_machine(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, free: int, budget: float
) -> None:
    monkeypatch.setattr(memory, "own_loadable_bytes", lambda: free)
    config = engine_config(tiny_model)
    assert measure_budget(config) == pytest.approx(budget, abs=1)
    assert measure_budget(replace(config, memory_bytes=5)) == 5

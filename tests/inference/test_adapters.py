"""Rows with LoRA adapters say what a model with the adapter in its weights says, beside any others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP

from inference import ModelRefused
from inference.adapter_loader import Base, load_adapters
from inference.adapters_selftest import check_adapters, kinds_of
from inference.assembly import make_kv
from inference.config import Adapter, EngineConfig
from inference.hybrid_runner import make_runner
from inference.int8 import Lead
from inference.loader import LoadedModel, load_model
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.native.kernels import kernels
from inference.selftest import run_packed
from inference.sequence import Sequence
from tests.inference.conftest import engine_config
from tests.inference.loops import PROMPTS
from tests.inference.tiny_adapters import ALL, make_adapter, merged
from tests.inference.tiny_models import make_model

ONE = {"seed": 1}
TWO = {"seed": 2, "rank": 3, "use_rslora": True, "targets": ("q_proj", "v_proj", "up_proj")}
MOE = {"moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2}
GPT2 = ("c_attn", "c_proj", "c_fc")
ATTENTION = ALL[:4]


@dataclass(frozen=True, slots=True)
class Case:
    model_type: str
    one: dict[str, Any]
    two: dict[str, Any]
    settings: dict[str, Any]


CASES = {
    "llama": Case("llama", ONE, TWO, {}),
    "qwen3 with patterns": Case(
        "qwen3",
        {"rank_pattern": {"q_proj": 7, r"layers\.1\..*": 2}, "alpha_pattern": {"mlp.up_proj": 1}},
        TWO,
        {},
    ),
    "gpt2": Case("gpt2", {"targets": GPT2}, {"targets": GPT2[:1], "seed": 2}, {}),
    "qwen3_moe": Case("qwen3_moe", {"targets": ATTENTION}, {"targets": ("o_proj",), "seed": 2}, MOE),
    "lfm2, with states": Case(
        "lfm2",
        {"targets": ("q_proj", "in_proj", "w2")},
        {"targets": ("out_proj", "w1"), "seed": 2},
        {"layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """A model, two adapters of it, and the models with these in their weights."""

    base: Path
    adapters: dict[str, Path]
    merged: dict[str, Path]

    def config(self, **settings: Any) -> EngineConfig:
        adapters = tuple(Adapter(name, "tiny", path) for name, path in self.adapters.items())
        return engine_config(self.base, adapters=adapters, **settings)


def make(folder: Path, case: Case) -> Made:
    base = make_model(folder / "base", case.model_type, **case.settings)
    adapters = {
        name: make_adapter(folder / name, base, **settings)
        for name, settings in (("one", case.one), ("two", case.two))
    }
    with_ = {name: merged(folder / f"with {name}", base, path) for name, path in adapters.items()}
    return Made(base, adapters, {"": base, **with_})


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """As in a worker here: small products on many threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=CASES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("adapters"), CASES[request.param])


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("qwen3"), Case("qwen3", ONE, TWO, {}))


def load(path: Path, bits: int | None = None, dtype: torch.dtype = torch.float32) -> LoadedModel:
    return load_model("tiny", path, lambda *_: None, dtype, bits=bits)


def runner_of(made: Made, **settings: Any) -> ModelRunner:
    loaded = load(made.base, **settings)
    config = made.config()
    dtype = settings.get("dtype", torch.float32)
    adapters = load_adapters(Base.of_chat(loaded), config, lambda *_: None, dtype)
    assert not [info.problem for info in adapters.infos.values() if info.problem]
    return make_runner(loaded.model, make_kv(loaded, config), adapters)


def packed(runner: ModelRunner, names: Iterable[str], *prompts: tuple[int, ...]) -> list[Tensor]:
    """The logits behind each prompt's chunks, (chunks, vocab), as they came in mixed steps."""
    found: list[list[Tensor]] = [[] for _ in prompts]
    for which, _, logits in run_packed(runner, [list(p) for p in prompts], names):
        found[which].append(logits)
    for number in range(len(prompts)):
        runner.kv.release(str(number))
    return [torch.stack(rows) for rows in found]


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def test_each_row_says_what_a_model_with_its_adapter_in_the_weights_says(made: Made) -> None:
    runner = runner_of(made)
    names = ("", "one", "two", "one")
    together = packed(runner, names, *PROMPTS)
    of = {name: make_runner(load(p).model, runner.kv) for name, p in made.merged.items()}
    for name, prompt, found in zip(names, PROMPTS, together, strict=True):
        (expected,) = packed(of[name], (), prompt)
        assert error(found, expected) < 1e-5
        assert error(packed(runner, (name,), prompt)[0], expected) < 1e-5
        for other in of.keys() - {name}:
            assert error(packed(of[other], (), prompt)[0], expected) > 0.05


def test_rows_of_the_base_are_untouched(qwen3: Made) -> None:
    runner = runner_of(qwen3)
    beside = packed(runner, ("", "one", "two"), *PROMPTS[1:])
    plain = packed(runner, ("", "", ""), *PROMPTS[1:])
    assert torch.equal(beside[0], plain[0])
    assert not torch.equal(beside[1], plain[1])


def test_a_step_without_adapters_runs_the_layers_of_the_model(qwen3: Made) -> None:
    runner = runner_of(qwen3)
    layers = [m for name, m in runner.model.named_modules() if name.endswith(ALL)]
    packed(runner, ("one",), PROMPTS[1])
    assert all("forward" in vars(layer) for layer in layers)
    packed(runner, ("",), PROMPTS[1])
    assert len(layers) == 7 * 3
    assert not any("forward" in vars(layer) for layer in layers)


def test_the_order_of_a_step_is_irrelevant(qwen3: Made) -> None:
    runner = runner_of(qwen3)
    names = {10: "one", 11: "", 12: "two", 13: "one"}
    found: dict[int, list[Tensor]] = {number: [] for number in names}
    for order in list(permutations(names))[::5]:
        for number, logits in logits_of(runner, order, names).items():
            found[number].append(logits)
    for logits in found.values():
        assert len(logits) == 5
        assert max(error(each, logits[0]) for each in logits) < 1e-5


def logits_of(
    runner: ModelRunner, order: Iterable[int], names: Mapping[int, str]
) -> dict[int, Tensor]:
    """The last logits of prompts of so many tokens, read in one step in this order."""
    plan = []
    for number in order:
        prompt = tuple(range(5, 5 + number))
        params = SamplingParams(max_tokens=1)
        request = GenerateRequest(str(number), "", prompt, params, adapter=names[number])
        runner.kv.reserve(request.request_id, number + 1)
        plan.append((Sequence(request), number))
    result = runner.run(plan)
    for sequence, _ in plan:
        runner.kv.release(sequence.id)
    return {int(s.id): row for s, row in zip(result.due, result.logits, strict=True)}


@pytest.mark.parametrize(("bits", "most"), [(8, 0.05), (4, 0.35)])
def test_adapters_lie_beside_weights_of_few_bits(qwen3: Made, bits: int, most: float) -> None:
    """Where queries, keys and values are one product, and gate and up are fused with what follows. The
    products of few bits are exact for each row, so only the adapters' may round otherwise together."""
    runner = runner_of(qwen3, bits=bits)
    names = ("", "one", "two", "one")
    together = packed(runner, names, *PROMPTS)
    for name, prompt, found in zip(names, PROMPTS, together, strict=True):
        assert error(packed(runner, (name,), prompt)[0], found) < 0.02
        exact = make_runner(load(qwen3.merged[name]).model, runner.kv)
        assert error(found, packed(exact, (), prompt)[0]) < most
    of_base = packed(runner, (), PROMPTS[3])[0]
    assert error(of_base, together[3]) > 2 * most
    if kernels() is not None:
        mlp = runner.model.get_submodule("model.layers.0.mlp")
        assert isinstance(mlp.gate_proj, Lead)
        assert "forward" in vars(mlp)


def test_adapters_in_bfloat16(qwen3: Made) -> None:
    runner = runner_of(qwen3, dtype=torch.bfloat16)
    exact = make_runner(load(qwen3.merged["two"]).model, runner_of(qwen3).kv)
    found = packed(runner, ("one", "two"), PROMPTS[1], PROMPTS[2])[1]
    assert error(found, packed(exact, (), PROMPTS[2])[0]) < 0.05


def test_an_architecture_that_takes_adapters_wrong_is_refused(
    qwen3: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here one whose layers are given the rows of a step in another order."""
    plain = Qwen3MLP.forward

    def shuffled(self: Qwen3MLP, x: Tensor) -> Tensor:
        return plain(self, x.flip(-2)).flip(-2)

    monkeypatch.setattr(Qwen3MLP, "forward", shuffled)
    config = load(qwen3.base).config
    check_adapters(config, kinds_of(["model.layers.2.self_attn.q_proj"]))
    with pytest.raises(ModelRefused, match="computes something else with such an adapter"):
        check_adapters(config, kinds_of(["model.layers.2.mlp.down_proj"]))
    with pytest.raises(ModelRefused, match="no layer like tower"):
        check_adapters(config, kinds_of(["tower.0.mlp"]))

"""A decode step on the device is used where it is right, and left out with a sentence elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from inference import attention
from inference.assembly import assemble
from inference.config import GPU_STEP, Adapter, EngineConfig, parse_gpu_step
from inference.engine_loop import EngineLoop
from inference.gpu import plain, step_buffers, step_selftest
from inference.gpu.decode_step import DecodeStep
from inference.gpu.graphs import Graphs, buckets_up_to
from inference.gpu.overlap import OverlappedLoop
from inference.gpu.step_selftest import checked_step, make_decode_step, problem_of
from inference.model_runner import ModelRunner
from inference.paged_kv import PagedKV
from inference.spans import Span
from tests.inference.conftest import engine_config
from tests.inference.device_stand_ins import RecordedCalls
from tests.inference.loops import answers, make_loop, request
from tests.inference.tiny_adapters import make_adapter
from tests.inference.tiny_models import make_model

# With windows and softcaps; with sinks.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "gemma2": {"sliding_window": 24, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16},
    "gpt_oss": {"sliding_window": 24, "num_local_experts": 4, "num_experts_per_tok": 2},
}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelRunner:
    path = tmp_path_factory.mktemp("steps") / request.param
    make_model(path, request.param, **ARCHITECTURES[request.param])
    return runner_of(path)


@pytest.fixture
def small(tiny_model: Path) -> ModelRunner:
    return runner_of(tiny_model)


def runner_of(path: Path) -> ModelRunner:
    """In double precision, which no kernel for processors is for: `RecordedCalls` knows torch's only."""
    runner = make_loop(path, kv_layout="paged").runner
    model: Any = runner.model
    model.double()
    if model.config.model_type == "gpt_oss":
        model.set_experts_implementation("batched_mm")  # grouped_mm knows no float64
    return runner


def test_a_step_computes_what_the_runner_computes(runner: ModelRunner) -> None:
    assert problem_of(DecodeStep(runner, 4), runner) == ""
    assert isinstance(runner.kv, PagedKV)
    runner.kv.check()
    assert runner.kv.used_tokens == runner.kv.cached_tokens == 0


def test_its_graphs_read_nothing_but_what_stays(runner: ModelRunner) -> None:
    """Recorded over rows that are nobody's, and replayed for others without any of the code."""
    step = checked_step("tiny", runner, 4, RecordedCalls())
    assert step is not None
    assert len(step.graphs) == 3 * (1 + 3)  # of 1, 2 and 4 rows, with as many ways to draw


def test_graphs_may_be_of_some_batches_alone(small: ModelRunner) -> None:
    step = checked_step("tiny", small, 4, RecordedCalls(), (1, 4))
    assert step is not None
    assert step.buckets == [1, 4]
    assert len(step.graphs) == 2 * (1 + 3)


def test_a_step_that_is_wrong_is_not_used(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attend = plain.attend

    def wrong(*args: Any, **options: Any) -> Tensor:
        return attend(*args, **{**options, "window": 4})

    monkeypatch.setattr(plain, "attend", wrong)
    assert checked_step("tiny", small, 4, None) is None
    assert (
        "tiny decodes step by step, and draws apart from that: it computes something" in caplog.text
    )


def test_what_nobody_has_written_is_not_read(runner: ModelRunner) -> None:
    """Pages are made of whatever lay there."""
    step = DecodeStep(runner, 4)  # which has them made
    assert isinstance(runner.kv, PagedKV)
    assert runner.kv.layers
    with torch.inference_mode():
        for pages in runner.kv.layers.values():
            for one in pages:
                one[1:] = torch.nan
    assert problem_of(step, runner) == ""


def test_keys_and_values_of_8_bits_are_read(tiny_model: Path) -> None:
    model = runner_of(tiny_model).model.float()
    runner = ModelRunner(model, PagedKV(64, 256, kept_as=torch.float8_e4m3fn))
    assert problem_of(DecodeStep(runner, 4), runner) == ""


def test_a_step_that_gives_no_numbers_is_not_used(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plain, "attend", lambda step, pages, query, *_, **__: query * torch.nan)
    assert checked_step("tiny", small, 4, None) is None
    assert "relative error nan" in caplog.text


def test_a_step_that_draws_otherwise_is_not_used(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = DecodeStep(small, 4)
    monkeypatch.setattr(step.buffers, "knobs_and_positions", _one_behind(step))
    assert "it draws other tokens" in problem_of(step, small)


def _one_behind(step: DecodeStep) -> Any:
    found = step.buffers.knobs_and_positions

    def behind(bucket: int) -> Any:
        knobs, positions = found(bucket)
        return knobs, positions - 1

    return behind


def test_graphs_that_hold_what_changes_are_left_out(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here a length that Python code has read while the graph was recorded."""
    step_of = step_buffers.StepBuffers.step

    def held(self: step_buffers.StepBuffers, bucket: int) -> Any:
        ids, _, paged = step_of(self, bucket)
        return (
            ids,
            torch.tensor([int(p) for p in self.rows[:bucket, 1].numpy()]).clamp_min(0),
            paged,
        )

    monkeypatch.setattr(step_buffers.StepBuffers, "step", held)
    step = checked_step("tiny", small, 4, RecordedCalls())
    assert step is not None
    assert len(step.graphs) == 0
    assert "tiny runs without CUDA graphs: it computes something else" in caplog.text


def test_what_cannot_be_captured_is_left_out(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    draw = DecodeStep._draw

    def looking(self: DecodeStep, tier: Any, bucket: int) -> None:
        draw(self, tier, bucket)
        assert self.buffers.drawn[0].item() >= 0

    monkeypatch.setattr(DecodeStep, "_draw", looking)
    step = checked_step("tiny", small, 4, RecordedCalls())
    assert step is not None
    assert len(step.graphs) == 0
    assert "looks at a value while a graph is captured" in caplog.text


@pytest.mark.parametrize("method", ["_compute", "capture"])
def test_a_fault_of_the_device_ends_the_load(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def faulty(*args: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(DecodeStep, method, faulty)
    with pytest.raises(torch.AcceleratorError):
        checked_step("tiny", small, 4, RecordedCalls())


def test_on_a_processor_there_is_none(small: ModelRunner) -> None:
    assert make_decode_step("tiny", small, 4, EngineConfig(Path("models"))) is None


def test_without_kernels_there_is_one_while_it_reads_little(
    small: ModelRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain operations read the whole context of every seat."""
    read_bytes = step_selftest._plain_bytes(small, 4)
    config = small.model.config
    heads, dim = config.num_key_value_heads, config.head_dim
    assert read_bytes == 4 * small.kv.max_context_tokens * 2 * heads * dim * 4
    small.kv.check()

    def made() -> Any:
        return make_decode_step("tiny", small, 4, EngineConfig(Path("models")))

    monkeypatch.setattr(small, "device", torch.device("cuda"))
    monkeypatch.setattr(step_selftest, "CudaCapture", RecordedCalls)
    monkeypatch.setattr(step_selftest, "checked_step", lambda *_: "a step")
    assert made() == "a step"
    monkeypatch.setattr(step_selftest, "_MOST_PLAIN_BYTES", read_bytes - 1)
    assert made() is None
    assert "a layer would read 0.0 GiB for 4" in caplog.text
    monkeypatch.setattr(attention, "uses_kernels", lambda: True)
    assert made() == "a step"


@pytest.mark.parametrize("gpu_step", [GPU_STEP, ("overlap",), ()])
def test_an_engine_is_put_together_with_it(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, gpu_step: tuple[str, ...]
) -> None:
    """As on a GPU, with one's stand-ins."""

    def made(name: str, runner: ModelRunner, num: int, config: EngineConfig) -> DecodeStep | None:
        runner.model.double()
        capture = RecordedCalls() if "graphs" in config.gpu_step else None
        return checked_step(name, runner, num, capture) if config.gpu_step else None

    monkeypatch.setattr("inference.assembly.make_decode_step", made)
    config = engine_config(
        tiny_model, kv_layout="paged", max_num_sequences=6, max_num_drafting=2, gpu_step=gpu_step
    )
    loop, _ = assemble("tiny", tiny_model, config, lambda *_: None)
    assert isinstance(loop, OverlappedLoop if gpu_step else EngineLoop)
    if isinstance(loop, OverlappedLoop):
        assert bool(len(loop.decode.graphs)) == ("graphs" in gpu_step)
        assert bool(loop.scheduler.max_num_drafting) != ("graphs" in gpu_step)
    loop.canary()
    asked = [request(f"r{n}", tuple(range(3, 9 + n)), seed=n, temperature=0.8) for n in range(5)]
    assert answers(loop, *asked) == answers(make_loop(tiny_model), *asked)
    loop.check()


def test_buckets() -> None:
    assert buckets_up_to(1) == [1]
    assert buckets_up_to(6) == [1, 2, 4, 6]
    assert buckets_up_to(32) == [1, 2, 4, 8, 16, 24, 32]
    for most in range(1, 300):
        assert buckets_up_to(most)[-1] == most


def test_what_a_step_uses_is_set() -> None:
    assert parse_gpu_step(["graphs"]) == ("graphs",)
    assert parse_gpu_step(["none"]) == ()
    with pytest.raises(ValueError, match="'grahps' is none of fusing, graphs, overlap, none"):
        parse_gpu_step(["overlap", "grahps"])


def test_a_graph_is_dropped_with_what_it_reads(small: ModelRunner) -> None:
    step = DecodeStep(small, 2, graphs=Graphs(RecordedCalls()))
    step.capture()
    assert len(step.graphs)
    step.graphs.drop()
    assert len(step.graphs) == 0
    assert problem_of(step, small) == "", "the work itself is called again"


def test_graphs_hold_no_adapter_of_the_step_before(tiny_model: Path, tmp_path: Path) -> None:
    make_adapter(tmp_path / "one", tiny_model, seed=1)
    adapters = (Adapter("one", "tiny", tmp_path / "one"),)
    runner = make_loop(tiny_model, kv_layout="paged", adapters=adapters).runner
    assert "one" in runner.adapters.infos
    step = DecodeStep(runner, 2, graphs=Graphs(RecordedCalls()))
    # What a step of a request with an adapter leaves behind; a model goes to sleep after it.
    runner.adapters.enter([Span("last", 0, 3, adapter="one")])
    step.come_back()
    assert len(step.graphs) == 2 * (1 + 3)

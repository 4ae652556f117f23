"""Graphs of CUDA are captured, dropped and captured again; what fails in it leaves nothing behind."""

from pathlib import Path

import pytest
import torch

from inference.gpu.decode_step import DecodeStep
from inference.gpu.graphs import CudaCapture, Graphs
from tests.inference.fake_cuda import FakeCuda
from tests.inference.loops import make_loop


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    return fake


def assert_tidy(cuda: FakeCuda) -> None:
    assert cuda.current.name == "default"
    assert cuda.mode == 0
    assert not cuda.allocating


def test_what_is_captured_has_run_on_its_stream_before(cuda: FakeCuda) -> None:
    graphs = Graphs(CudaCapture())
    for key in "ab":
        graphs.capture(key, cuda.launch)
    assert cuda.launches == 2 * [("default", False), ("own", False), ("own", True)]
    graphs.run("a", cuda.launch)
    assert len(cuda.launches) == 6
    assert list(cuda.users.values()) == [2], "of one pool for all"
    assert_tidy(cuda)


def test_graphs_are_captured_again_where_those_before_are_gone(cuda: FakeCuda) -> None:
    graphs = Graphs(CudaCapture())
    for _ in range(3):
        graphs.capture("a", cuda.launch)
        graphs.drop()
    assert list(cuda.users.values()) == [0, 0, 0]


def test_what_waits_is_found_without_a_capture(cuda: FakeCuda) -> None:
    graphs = Graphs(CudaCapture())
    with pytest.raises(RuntimeError, match="a synchronizing CUDA operation"):
        graphs.capture("a", cuda.wait)
    assert cuda.num_begun == 0
    assert_tidy(cuda)


@pytest.mark.parametrize("is_fault_of_cuda", [True, False])
def test_a_capture_that_fails_leaves_nothing_behind(cuda: FakeCuda, is_fault_of_cuda: bool) -> None:
    def fail() -> None:
        if is_fault_of_cuda:
            cuda.wait(is_seen=False)
        elif cuda.allocating:
            raise ValueError("a mistake")

    graphs = Graphs(CudaCapture())
    graphs.capture("a", cuda.launch)
    with pytest.raises(torch.AcceleratorError if is_fault_of_cuda else ValueError):
        graphs.capture("b", fail)
    assert_tidy(cuda)
    graphs.capture("c", cuda.launch)
    graphs.drop()
    assert set(cuda.users.values()) == {0}


def test_a_torch_without_those_functions_has_its_stream_back(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C, "_cuda_endAllocateToPool")
    with pytest.raises(torch.AcceleratorError, match="during capture"):
        CudaCapture()(lambda: cuda.wait(is_seen=False))
    assert cuda.current.name == "default"


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_model_wakes_without_graphs_unless_its_device_is_lost(
    tiny_model: Path, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    runner = make_loop(tiny_model, kv_layout="paged").runner
    step = DecodeStep(runner, 2, graphs=Graphs(CudaCapture()))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)

    def fail(bucket: int) -> None:
        cuda.is_lost = is_lost and bool(cuda.allocating)
        cuda.wait(is_seen=False)

    monkeypatch.setattr(step, "_forward", fail)
    if is_lost:
        with pytest.raises(torch.AcceleratorError):
            step.come_back()
    else:
        step.come_back()
        assert len(step.graphs) == 0

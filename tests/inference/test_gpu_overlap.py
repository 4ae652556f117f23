"""Steps that are launched ahead, replayed from graphs and drawn on the device tell everybody alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference import attention
from inference.gpu import attention as kernels
from inference.gpu.decode_step import DecodeStep, Flight
from inference.gpu.graphs import Graphs
from inference.gpu.overlap import OverlappedLoop
from inference.messages import Failed, Finished, GenerateRequest, Update
from inference.model_runner import ModelRunner, StepResult
from inference.paged_kv import PagedKV
from inference.scheduler import Scheduler
from tests.inference.device_stand_ins import LateStream, RecordedCalls
from tests.inference.loops import PROMPTS, ids, request, step
from tests.inference.test_traffic import CAPACITY_TOKENS, CONTEXT_TOKENS, play
from tests.inference.tiny_models import make_model
from tests.inference.traffic import MAX_NUM_SEQUENCES, Clock, LoopMaker, Traffic


@dataclass(frozen=True, slots=True)
class OverlappedMaker(LoopMaker):
    is_ahead: bool = True
    has_graphs: bool = False

    def make(
        self, capacity_tokens: int, *, max_num_drafting: int = 0, max_waiting_tokens: int = 100_000
    ) -> OverlappedLoop:
        kv = PagedKV(capacity_tokens // 16, self.max_context_tokens)
        scheduler = Scheduler(
            kv,
            max_num_sequences=MAX_NUM_SEQUENCES,
            step_budget_tokens=32,
            max_waiting_tokens=max_waiting_tokens,
            max_num_drafting=max_num_drafting,
        )
        runner = ModelRunner(self.whole.runner.model, kv)
        graphs = Graphs(RecordedCalls() if self.has_graphs else None)
        decode = DecodeStep(runner, MAX_NUM_SEQUENCES, graphs=graphs, stream=LateStream())
        decode.capture()
        return OverlappedLoop(
            runner,
            kv,
            scheduler,
            self.whole.tokenizer,
            self.whole.grammars,
            eos_ids=self.whole.eos_ids,
            vocab_size=self.whole.vocab_size,
            decode=decode,
            is_ahead=self.is_ahead,
        )


class PlainTraffic(Traffic):
    """Of four requests three ask for nothing that only the host can do."""

    def ask(self, request: GenerateRequest) -> None:
        if len(self.asked) % 4:
            params = replace(
                request.params, grammar="", num_logprobs=None, frequency_penalty=0.0, logit_bias=()
            )
            request = replace(request, params=params)
        super().ask(request)


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> LoopMaker:
    path = tmp_path_factory.mktemp("overlap") / "qwen3"
    small = {"num_hidden_layers": 2, "max_position_embeddings": CONTEXT_TOKENS}
    return LoopMaker.load(make_model(path, "qwen3", **small))


@pytest.mark.parametrize("has_graphs", [False, True])
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_everybody_is_told_what_they_are_told_alone(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch, has_graphs: bool, data: st.DataObject
) -> None:
    clock = Clock(data.draw(st.integers(0, 999)))
    for module in ("engine_loop", "gpu.overlap", "gpu.decode_step"):
        monkeypatch.setattr(f"inference.{module}.monotonic", clock)
    is_ahead = data.draw(st.sampled_from((True, True, False)))
    traffic = PlainTraffic(
        OverlappedMaker(maker.whole, is_ahead, has_graphs),
        capacity_tokens=CAPACITY_TOKENS,
        max_waiting_tokens=100_000,
    )
    traffic.loop.scheduler.max_num_drafting = data.draw(st.sampled_from((0, 0, 2)))
    traffic.expect_answers_of(data.draw(st.sampled_from((8.0, 256.0))))
    play(traffic, data)
    traffic.check_answers()
    traffic.check_books()


# --- what may happen while a step is under way ----------------------------------------------------


def overlapped(maker: LoopMaker, capacity_tokens: int = 640, **options: Any) -> OverlappedLoop:
    return OverlappedMaker(maker.whole, **options).make(capacity_tokens)


def told_by(loop: OverlappedLoop, asked: list[GenerateRequest]) -> dict[str, list[Update]]:
    told: dict[str, list[Update]] = {}
    for one in asked:
        loop.submit(one)
    while not loop.is_idle:
        step(loop, told)
    loop.check()
    return told


def three(**params: Any) -> list[GenerateRequest]:
    return [request(f"r{n}", PROMPTS[n], max_tokens=30 + n, seed=n, **params) for n in range(3)]


def alone(maker: LoopMaker, one: GenerateRequest) -> list[int]:
    return ids(told_by(maker.make_alone(), [one])[one.request_id])


@pytest.mark.parametrize("has_graphs", [False, True])
@pytest.mark.parametrize("knobs", [{}, {"temperature": 0.9}, {"temperature": 0.9, "top_k": 20}])
def test_most_steps_are_launched_ahead(
    maker: LoopMaker, knobs: dict[str, Any], has_graphs: bool
) -> None:
    loop = overlapped(maker, has_graphs=has_graphs)
    told = told_by(loop, three(**knobs))
    assert [ids(told[f"r{n}"]) for n in range(3)] == [alone(maker, one) for one in three(**knobs)]
    assert loop.num_ahead >= 25
    assert isinstance(loop.decode.stream, LateStream)
    assert loop.decode.stream.most_queued == 2, "one step ahead, and no more"
    assert bool(len(loop.decode.graphs)) == has_graphs


@dataclass
class LaggingDevice:
    """Is told a step in 20 ms, and computes it for 60. As a runner's stream it has one mark."""

    runner: ModelRunner
    now_s: float = 0.0
    free_s: float = 0.0  # when it has computed all

    def run(self, plan: Any) -> StepResult:
        result = ModelRunner.run(self.runner, plan)
        self.now_s += 0.02
        self.free_s = max(self.free_s, self.now_s) + 0.06
        if result.due:
            self.wait()  # their tokens are read
        return result

    def submit(self, work: Callable[[], None]) -> None:
        work()

    def mark(self) -> "LaggingDevice":
        return self

    def wait(self) -> None:
        self.now_s = max(self.now_s, self.free_s)


def test_no_step_of_a_prompt_is_left_behind(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before the last draw nothing that anybody would wait for."""
    loop = overlapped(maker)
    device = LaggingDevice(loop.runner)
    monkeypatch.setattr(loop.runner, "run", device.run)
    monkeypatch.setattr(loop.runner, "stream", device)
    monkeypatch.setattr("inference.engine_loop.monotonic", lambda: device.now_s)
    told_by(loop, [request("long", (5,) * 128, max_tokens=1)])
    assert loop.scheduler.estimates.reading_s == pytest.approx(0.08 / 32)


def test_who_is_aborted_is_told_nothing_more_and_gives_room_at_once(maker: LoopMaker) -> None:
    loop = overlapped(maker)
    asked = three()
    told: dict[str, list[Update]] = {}
    for one in asked:
        loop.submit(one)
    while len(ids(told.get("r2", []))) < 5:
        step(loop, told)
    assert loop._flight is not None
    used_tokens = loop.kv.used_tokens
    loop.abort("r2")
    assert loop.kv.used_tokens < used_tokens
    loop.submit(request("late", PROMPTS[3], max_tokens=9))  # takes the room of what is under way
    while not loop.is_idle:
        step(loop, told)
    loop.check()
    end = told["r2"][-1]
    assert isinstance(end, Finished)
    assert end.reason == "abort"
    assert end.usage.completion_tokens == len(ids(told["r2"]))
    assert ids(told["r2"]) == alone(maker, asked[2])[: len(ids(told["r2"]))]
    assert ids(told["late"]) == alone(maker, request("late", PROMPTS[3], max_tokens=9))
    assert ids(told["r1"]) == alone(maker, asked[1])


def test_an_end_that_is_known_late_is_the_same_end(maker: LoopMaker) -> None:
    for one in three():
        answer = alone(maker, one)
        params = replace(one.params, stop_token_ids=(answer[7],))
        stopping = replace(one, params=params)
        told = told_by(overlapped(maker), [stopping])[one.request_id]
        assert ids(told) == answer[: answer.index(answer[7])]


def test_the_context_is_filled_to_its_end_and_not_beyond(maker: LoopMaker) -> None:
    loop = overlapped(maker)
    long = request("long", PROMPTS[3], max_tokens=10**6)
    told = told_by(loop, [long, request("other", PROMPTS[0], max_tokens=50)])
    assert len(PROMPTS[3]) + len(ids(told["long"])) == CONTEXT_TOKENS
    assert ids(told["long"]) == alone(maker, long)


def test_a_row_without_numbers_fails_alone(maker: LoopMaker) -> None:
    loop = overlapped(maker)
    loop.decode.capture()
    told: dict[str, list[Update]] = {}
    for one in three():
        loop.submit(one)
    while len(ids(told.get("r2", []))) < 3:
        step(loop, told)
    seat = loop.decode.buffers._seats["r1"].number
    draw = loop.decode._draw

    def broken(tier: Any, bucket: int) -> None:
        loop.decode._logits[:bucket][loop.decode.buffers.rows[:bucket, 0] == seat] = torch.nan
        draw(tier, bucket)

    loop.decode._draw = broken  # type: ignore[method-assign]
    while not loop.is_idle:
        step(loop, told)
    loop.check()
    assert isinstance(told["r1"][-1], Failed)
    assert "no numbers" in told["r1"][-1].message
    assert [ids(told[f"r{n}"]) for n in (0, 2)] == [alone(maker, three()[n]) for n in (0, 2)]


def test_what_was_staged_for_a_step_that_failed_is_told_again(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New blocks and seats among it, or others' keys would be read."""
    calls = iter(range(10**6))
    submit = LateStream.submit

    def failing(self: LateStream, work: Any) -> None:
        if next(calls) % 5 == 4:
            raise RuntimeError("out of memory")
        submit(self, work)

    loop = overlapped(maker)
    monkeypatch.setattr(LateStream, "submit", failing)
    told = told_by(loop, three(temperature=0.7))
    monkeypatch.undo()
    expected = [alone(maker, one) for one in three(temperature=0.7)]
    assert [ids(told[f"r{n}"]) for n in range(3)] == expected
    assert loop.num_ahead
    assert next(calls) > 20


@pytest.mark.parametrize("method", ["launch", "read"])
def test_what_fails_is_computed_by_the_way_without(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """In the middle of a flight, now and then."""
    calls = iter(range(10**6))
    owner: type = DecodeStep if method == "launch" else Flight
    works = getattr(owner, method)

    def failing(*args: Any) -> Any:
        if next(calls) % 7 == 5:
            raise RuntimeError("out of memory")
        return works(*args)

    monkeypatch.setattr(owner, method, failing)
    told = told_by(overlapped(maker), three(temperature=0.7))
    monkeypatch.undo()
    expected = [alone(maker, one) for one in three(temperature=0.7)]
    assert [ids(told[f"r{n}"]) for n in range(3)] == expected
    assert next(calls) > 14


def test_graphs_are_made_anew_behind_a_sleep(maker: LoopMaker) -> None:
    """Weights and pages are elsewhere then, and what was cached is forgotten."""
    loop = overlapped(maker, has_graphs=True)
    first = told_by(loop, three())
    num_graphs = len(loop.decode.graphs)
    assert loop.sleep() > 0
    assert len(loop.decode.graphs) == 0
    loop.wake()
    assert len(loop.decode.graphs) == num_graphs
    second = told_by(loop, [replace(one, request_id=f"again {one.request_id}") for one in three()])
    assert [ids(second[f"again r{n}"]) for n in range(3)] == [ids(first[f"r{n}"]) for n in range(3)]


def test_it_may_go_to_sleep_as_soon_as_its_last_reader_has_left(maker: LoopMaker) -> None:
    """The abort and the order to sleep come together, while a step is under way."""
    loop = overlapped(maker)
    told: dict[str, list[Update]] = {}
    one = request("r", PROMPTS[0], max_tokens=30)
    loop.submit(one)
    while len(ids(told.get("r", []))) < 5:
        step(loop, told)
    assert not loop.is_idle
    loop.abort("r")
    assert loop.sleep() > 0
    loop.wake()
    again = replace(one, request_id="again")
    assert ids(told_by(loop, [again])["again"]) == alone(maker, one)


def test_without_memory_for_graphs_it_wakes_without_them(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = overlapped(maker, has_graphs=True)
    before = told_by(loop, three())
    loop.sleep()

    def fails(*args: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(RecordedCalls, "__call__", fails)
    loop.wake()
    assert not len(loop.decode.graphs)
    after = told_by(loop, three())
    assert [ids(after[name]) for name in before] == [ids(before[name]) for name in before]


@pytest.mark.parametrize("method", ["launch", "read"])
def test_a_fault_of_the_device_ends_the_worker(
    maker: LoopMaker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def faulty(*args: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    loop = overlapped(maker)
    monkeypatch.setattr(DecodeStep if method == "launch" else Flight, method, faulty)
    with pytest.raises(torch.AcceleratorError):
        told_by(loop, three())


# --- by the kernels -------------------------------------------------------------------------------


@pytest.fixture
def in_use() -> Iterator[None]:
    attention.use_kernels(kernels)
    yield
    attention.use_kernels(None)


def test_the_kernels_read_the_tables_that_stay(tmp_path: Any, in_use: None) -> None:
    small = {"num_hidden_layers": 1, "max_position_embeddings": CONTEXT_TOKENS}
    maker = LoopMaker.load(make_model(tmp_path / "qwen3", "qwen3", **small))
    maker.whole.runner.model.float()  # the kernels know no float64
    loop = overlapped(maker)
    asked = [replace(one, params=replace(one.params, max_tokens=6)) for one in three()]
    told = told_by(loop, asked)
    assert loop.num_ahead
    attention.use_kernels(None)
    assert [ids(told[one.request_id]) for one in asked] == [alone(maker, one) for one in asked]

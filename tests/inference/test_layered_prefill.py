"""A long prompt beside those who write passes some layers in each step, and says the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import layered_plan, layering
from inference.engine_loop import EngineLoop
from inference.kv_cache import SlabKV
from inference.layered_chunk import LEAST_TOKENS, MOST_TOKENS, LayeredChunk, tokens_of_chunk
from inference.layered_rows import LayeredRows
from inference.layering import layer_chunks
from inference.messages import Failed, Finished, Prefill
from inference.model_runner import ModelRunner
from inference.sequence import Sequence
from tests.inference.loops import answers, ids, make_loop, request, step
from tests.inference.planning import Books, a_scheduler, a_sequence, run_plan, run_step
from tests.inference.tiny_models import make_model

NUM_LAYERS = 5
CONTEXT_TOKENS = 512
LONG = tuple((j * 13) % 300 + 3 for j in range(300))
SHORT = tuple((j * 7) % 300 + 3 for j in range(20))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = {"num_hidden_layers": NUM_LAYERS, "max_position_embeddings": CONTEXT_TOKENS}
    return make_model(tmp_path_factory.mktemp("layered") / "qwen3", "qwen3", **small)


@pytest.fixture
def loop(path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineLoop:
    """On a machine that could read two tokens beside those who write; in double precision, so that no
    batch decides between two tokens."""
    monkeypatch.setattr(layered_plan, "_BEHIND_TOKENS", 16)
    loop = make_loop(path, kv_bytes=2**24)
    loop.runner.model.double()
    slow_down(loop, monkeypatch)
    return loop


def slow_down(loop: EngineLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    estimates = loop.scheduler.estimates
    monkeypatch.setattr(type(estimates), "learn_step", lambda *_: None)
    estimates.calm_step_s, estimates.calm_rows, estimates.reading_s = 1.0, 1, 0.2


def begin(loop: EngineLoop, told: dict[str, list[Any]]) -> None:
    """One writes, and another's long prompt is on its way."""
    loop.submit(request("writer", SHORT, max_tokens=400))
    step(loop, told)
    loop.submit(request("reader", LONG, max_tokens=8))
    for _ in range(400):
        step(loop, told)
        if chunk_of(loop) is not None:
            return
    raise AssertionError("no chunk went through some of the layers")


def chunk_of(loop: EngineLoop) -> LayeredChunk | None:
    return next((s.chunk for s in loop.scheduler.running.values() if s.chunk), None)


def run_to_the_end(loop: EngineLoop, told: dict[str, list[Any]]) -> None:
    while not loop.is_idle:
        step(loop, told)
    loop.check()


def test_it_says_the_same_as_alone_and_nobody_misses_a_step(loop: EngineLoop) -> None:
    expected = answers(loop, request("one", LONG, max_tokens=8))[0]
    loop.kv.forget_all()
    told: dict[str, list[Any]] = {}
    begin(loop, told)
    passed = []
    while chunk := chunk_of(loop):
        num_written = len(ids(told["writer"]))
        passed.append((chunk.begin, chunk.num_tokens))
        step(loop, told)
        assert len(ids(told["writer"])) == num_written + 1
    told_tokens = [u.num_done for u in told["reader"] if isinstance(u, Prefill)]
    assert told_tokens == sorted(told_tokens), "and it is told how far it is"
    assert len(set(told_tokens[-len(passed) :])) >= 3
    assert [begin for begin, _ in passed] == sorted(begin for begin, _ in passed)
    assert len(passed) >= 3, "a layer or two in each step"
    assert passed[0][1] >= LEAST_TOKENS
    loop.abort("writer")
    run_to_the_end(loop, told)
    assert ids(told["reader"]) == expected


def test_a_step_between_two_layers_is_none_of_those_that_only_write(loop: EngineLoop) -> None:
    """Else a worker that reads would be taken for a slow one."""
    begin(loop, {})
    frames = [frame for _ in range(3) for frame in loop.step() if frame.stats.forward_ms]
    assert chunk_of(loop) is not None
    assert all(frame.stats.is_reading for frame in frames)
    assert sum(frame.stats.num_read_tokens for frame in frames) == 0
    loop.abort("reader")
    for frame in loop.step():
        assert not frame.stats.is_reading


def test_where_nobody_writes_any_more_the_rest_of_the_layers_is_one_step(loop: EngineLoop) -> None:
    expected = answers(loop, request("one", LONG, max_tokens=8))[0]
    loop.kv.forget_all()
    told: dict[str, list[Any]] = {}
    begin(loop, told)
    loop.abort("writer")
    step(loop, told)
    assert chunk_of(loop) is None
    run_to_the_end(loop, told)
    assert ids(told["reader"]) == expected


@pytest.mark.parametrize("what", ["fails", "has no memory"])
def test_a_step_that_fails_on_the_way_has_moved_nothing(
    loop: EngineLoop, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    expected = answers(loop, request("one", LONG, max_tokens=8))[0]
    loop.kv.forget_all()
    told: dict[str, list[Any]] = {}
    begin(loop, told)
    error = RuntimeError("once") if what == "fails" else torch.OutOfMemoryError("once")
    compute, failures = loop.runner._compute, [error]

    def once(*given: Any) -> torch.Tensor:
        logits = compute(*given)
        if failures:
            raise failures.pop()
        return logits

    monkeypatch.setattr(loop.runner, "_compute", once)
    step(loop, told)
    assert not failures
    loop.abort("writer")
    run_to_the_end(loop, told)
    assert ids(told["reader"]) == expected


def test_who_comes_with_an_adapter_is_not_kept_waiting(
    loop: EngineLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an adapter adds is told of all rows: the chunk begins anew, and passes all layers."""
    told: dict[str, list[Any]] = {}
    begin(loop, told)
    plan = loop.scheduler.plan()
    writer = loop.scheduler.running["writer"]
    monkeypatch.setattr(layered_plan, "_has_adapters", lambda plan, reader: True)
    again = loop.scheduler.plan()
    assert chunk_of(loop) is None
    assert dict(plan)[writer] == dict(again)[writer] == 1
    loop.abort("reader")
    loop.abort("writer")
    run_to_the_end(loop, told)


def test_an_abort_on_the_way_leaves_what_was_read_to_the_end(loop: EngineLoop) -> None:
    told: dict[str, list[Any]] = {}
    begin(loop, told)
    while loop.scheduler.running["reader"].num_computed < 100 or chunk_of(loop) is None:
        step(loop, told)
    num_computed = loop.scheduler.running["reader"].num_computed
    loop.abort("reader")
    loop.abort("writer")
    run_to_the_end(loop, told)
    assert isinstance(told["reader"][-1], Finished | Failed)
    assert loop.kv.count_cached(LONG, request("one", LONG).kv_salt) == num_computed


@pytest.mark.parametrize(
    "kind", ["llama", "qwen2", "gemma2", "qwen3_moe", "olmo2", "phi3", "granite", "cohere"]
)
def test_models_of_other_kinds_give_the_same_logits(tmp_path: Path, kind: str) -> None:
    """As at load: a chunk through all layers in one step, and in three."""
    small = {"num_hidden_layers": NUM_LAYERS, "max_position_embeddings": CONTEXT_TOKENS}
    loop = make_loop(make_model(tmp_path / kind, kind, **small))
    assert loop.scheduler.num_layers == NUM_LAYERS
    assert isinstance(loop.kv, SlabKV)
    with torch.inference_mode():
        one, three = (
            layering._tried(loop.runner.model, NUM_LAYERS, in_steps=steps)
            for steps in (False, True)
        )
    torch.testing.assert_close(one, three, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("num_layers", [2, 3, 4])
def test_few_layers_are_enough(tmp_path: Path, num_layers: int) -> None:
    small = {"num_hidden_layers": num_layers, "max_position_embeddings": CONTEXT_TOKENS}
    loop = make_loop(make_model(tmp_path / "qwen3", "qwen3", **small))
    assert loop.scheduler.num_layers == num_layers


def test_layers_that_share_keys_stay_together(path: Path) -> None:
    """As gemma3n's and gemma4's last ones do."""
    model = unlayered(path)
    model.model.layers[-1].self_attn.is_kv_shared_layer = True
    assert layer_chunks(ModelRunner(model, SlabKV(256, 128))) == 0


def unlayered(path: Path) -> Any:
    """A loaded model, as before it was found out whether chunks may pass its layers."""
    model: Any = make_loop(path).runner.model
    for layer in model.model.layers:
        layer.forward = layer.forward._forward
    return model


def test_a_model_that_looks_at_all_rows_behind_its_layers_stays_as_it_is(path: Path) -> None:
    model = unlayered(path)
    norm, seen = model.model.norm, []

    class AddsEmbeddings(torch.nn.Module):
        """As a model would that goes around its layers."""

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            embedded = seen[-1]
            result: torch.Tensor = norm(hidden + embedded)
            return result

    model.model.embed_tokens.register_forward_hook(lambda *given: seen.append(given[2]))
    model.model.norm = AddsEmbeddings()
    assert layer_chunks(ModelRunner(model, SlabKV(256, 128))) == 0
    assert not any(isinstance(layer.forward, layering._Layer) for layer in model.model.layers)


def test_a_chunk_that_goes_astray_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = unlayered(path)
    enter = LayeredRows.enter

    def astray(self: Any, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        result = enter(self, layer, hidden)
        return result.flip(1) if layer == self.chunk.begin > 0 else result

    monkeypatch.setattr(LayeredRows, "enter", astray)
    assert layer_chunks(ModelRunner(model, SlabKV(256, 128))) == 0


# --- the plan, on integers ------------------------------------------------------------------------


@given(
    calm_s=st.floats(0.01, 1.0),
    token_s=st.floats(1e-4, 1.0),
    num_layers=st.integers(2, 80),
    num_prompt=st.integers(520, 1500),
)
@settings(max_examples=30, deadline=None)
def test_a_step_does_no_more_than_it_has_to_spare(
    calm_s: float, token_s: float, num_layers: int, num_prompt: int
) -> None:
    """Or than a layer of the fewest tokens; and the prompt comes to its end."""
    scheduler = a_scheduler(Books(capacity_tokens=10**6), step_budget_tokens=256)
    scheduler.num_layers = num_layers
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = calm_s, token_s
    scheduler.add(a_sequence("writer", 4, max_tokens=10**6))
    run_step(scheduler)
    scheduler.add(reader := a_sequence("reader", num_prompt))
    spare = scheduler.estimates.chunk_tokens(1)
    assert spare is not None
    num_steps = 0
    while not reader.num_output:
        chunk = reader.chunk
        behind = reader.num_computed
        plan = dict(scheduler.plan())
        planned = reader.worth_tokens(plan.get(reader, 0))
        if behind >= 512 and reader.num_pending >= MOST_TOKENS:
            least = LEAST_TOKENS / num_layers
            one_layer = reader.chunk.num_tokens / num_layers if reader.chunk else 0.0
            assert planned <= max(spare + 1e-6 + 0.2 * one_layer, least)
        assert chunk is None or reader.chunk is chunk, "one that has begun goes on"
        run_plan(plan.items())
        num_steps += 1
        assert num_steps < 200 * num_prompt
    assert reader.num_computed == num_prompt


def test_of_several_long_prompts_one_has_its_turn_in_a_step() -> None:
    """Each step would else read the keys of all of them; and none waits for another's end."""
    scheduler = a_scheduler(Books(capacity_tokens=10**6), step_budget_tokens=256)
    scheduler.num_layers = 24
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.03, 0.01
    scheduler.add(a_sequence("writer", 4, max_tokens=10**6))
    run_step(scheduler)
    requests = [a_sequence(f"reader{n}", 20_000, user=str(n)).request for n in range(2)]
    readers = [
        Sequence(replace(request, prompt_ids=(number, *request.prompt_ids)))
        for number, request in enumerate(requests)
    ]
    for reader in readers:
        scheduler.add(reader)
    while min(reader.num_computed for reader in readers) < 600:
        run_step(scheduler)
    began = [reader.num_computed for reader in readers]
    for _ in range(1000):
        plan = dict(scheduler.plan())
        read = [reader for reader in readers if reader in plan]
        assert len(read) <= 1
        assert sum(reader.worth_tokens(plan[reader]) for reader in read) <= 4
        run_plan(plan.items())
    gained = [reader.num_computed - num for reader, num in zip(readers, began, strict=True)]
    assert min(gained) > 0.8 * max(gained) > 0


def test_where_more_write_by_now_than_a_chunk_leaves_room_for_it_is_dropped() -> None:
    scheduler = a_scheduler(
        Books(capacity_tokens=10**6), step_budget_tokens=64, max_num_sequences=40
    )
    scheduler.num_layers = 24
    scheduler.estimates.calm_step_s, scheduler.estimates.reading_s = 0.03, 0.01
    scheduler.add(a_sequence("writer", 4, max_tokens=10**6))
    run_step(scheduler)
    scheduler.add(reader := a_sequence("reader", 5000, user="reader"))
    while not (reader.chunk and reader.chunk.num_tokens > 24):
        run_step(scheduler)
        scheduler.estimates.reading_s = 0.005
    for number in range(39):
        scheduler.add(a_sequence(f"another{number}", 1, max_tokens=10**6, user=str(number)))
    for _ in range(300):
        assert sum(num for _, num in run_step(scheduler)) <= 64


@given(num_tokens=st.integers(1, 5000), most=st.floats(0.01, 300), num_layers=st.integers(2, 100))
def test_a_layer_of_a_chunk_is_no_more_than_a_step_may_do(
    num_tokens: int, most: float, num_layers: int
) -> None:
    found = tokens_of_chunk(num_tokens, most, num_layers)
    assert 0 < found <= min(num_tokens, MOST_TOKENS)
    assert found <= LEAST_TOKENS or found / num_layers <= most

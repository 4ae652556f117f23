"""Vectors, labels and scores from real worker processes: alone, together, killed, aborted, overfull."""

import asyncio
import os
import signal
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
import pytest_asyncio
import torch
from transformers import AutoModelForSequenceClassification

from inference import (
    Caller,
    ContextTooLong,
    Embeddings,
    EncodingFailed,
    Engine,
    EngineError,
    Failed,
    GenerateRequest,
    InvalidParameter,
    ModelRefused,
    Overloaded,
    SamplingParams,
    UnknownModel,
    WrongKind,
)
from inference.encode_messages import EncodeRequest, EncoderInput
from inference.encoder_layout import read_encoder_layout
from inference.encoder_tokenizer import EncoderTokenizer
from tests.inference.conftest import engine_config
from tests.inference.tiny_models import make_encoder

LABELS = ("good", "bad", "ugly")
TEXTS = [f"The quick brown fox {'jumps over the lazy dog ' * (i % 7)}{i}" for i in range(40)]
MANY = [text * 3 for text in TEXTS] * 8  # a second of work for the slow model

pytestmark = pytest.mark.asyncio(loop_scope="module")  # workers take seconds to start: one of each


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("encoders")
    prompts = {"query": "query: ", "document": ""}
    return {
        "tiny": make_encoder(folder / "tiny", pooling="mean", prompts=prompts, is_matryoshka=True),
        "slow": make_encoder(
            folder / "slow", pooling="cls", is_normalized=False, num_hidden_layers=24
        ),
        "labels": make_encoder(folder / "labels", labels=LABELS),
        "ranks": make_encoder(folder / "ranks", labels=("relevant",)),
    }


def _engine(models: dict[str, Path], chat: Path, **settings: object) -> Engine:
    config = engine_config(models["tiny"], **settings)
    entries = tuple(f"{name}={path}" for name, path in {**models, "chat": chat}.items())
    return Engine(replace(config, extra_models=entries, default_model="chat"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(models: dict[str, Path], tiny_model: Path) -> AsyncIterator[Engine]:
    running = _engine(models, tiny_model, max_restarts_per_minute=100)
    yield running
    await running.close()


async def test_the_revision_is_known_before_the_model_is_loaded(
    models: dict[str, Path], tiny_model: Path
) -> None:
    engine = _engine(models, tiny_model)
    try:
        by_files = await engine.encoder_revision("tiny")
        assert engine.state("tiny").state == "cold"
        await engine.embed("tiny", ["x"])
        assert engine.state("tiny").revision == by_files == await engine.encoder_revision("tiny")
        assert by_files != await engine.encoder_revision("slow")
        with pytest.raises(UnknownModel):
            await engine.encoder_revision("nobody")
    finally:
        await engine.close()


def _kill(engine: Engine, model: str) -> None:
    pid = engine.worker_pid(model)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


async def _until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = monotonic() + timeout_s
    while not condition():
        assert monotonic() < deadline_s, "it did not happen"
        await asyncio.sleep(0.001)


def _assert_close(found: Embeddings, expected: Embeddings) -> None:
    torch.testing.assert_close(
        torch.tensor([v.tolist() for v in found.vectors]),
        torch.tensor([v.tolist() for v in expected.vectors]),
        rtol=1e-4,  # who is in a batch with whom differs, and so the rounding
        atol=1e-4,
    )


# --- results -------------------------------------------------------------------------------------


async def test_together_is_one_by_one(engine: Engine) -> None:
    alone = [await engine.embed("tiny", [text]) for text in TEXTS]
    whole = await engine.embed("tiny", TEXTS)
    crowd = await asyncio.gather(*(engine.embed("tiny", [text]) for text in TEXTS))
    for each in (alone, crowd):
        joined = Embeddings(tuple(v for one in each for v in one.vectors), 0)
        _assert_close(joined, whole)
        assert sum(one.num_tokens for one in each) == whole.num_tokens
    assert {len(vector) for vector in whole.vectors} == {64}


async def test_nothing_to_embed_is_nothing(engine: Engine) -> None:
    assert await engine.embed("tiny", []) == Embeddings((), 0)


async def test_a_prompt_goes_in_front_by_its_name(engine: Engine) -> None:
    by_name = await engine.embed("tiny", ["fox"], prompt_name="query")
    written = await engine.embed("tiny", ["query: fox"])
    assert by_name == written
    assert by_name != await engine.embed("tiny", ["fox"])
    with pytest.raises(InvalidParameter, match="no prompt 'poem'; it has query, document"):
        await engine.embed("tiny", ["fox"], prompt_name="poem")


async def test_vectors_may_be_cut_where_the_model_is_made_for_it(engine: Engine) -> None:
    whole = (await engine.embed("tiny", ["fox"])).vectors[0]
    cut = (await engine.embed("tiny", ["fox"], dimensions=16)).vectors[0]
    length = sum(x * x for x in whole[:16]) ** 0.5
    assert cut.tolist() == pytest.approx([x / length for x in whole[:16]], abs=1e-6)
    plain = await engine.embed("slow", ["fox"])  # of another length than 1
    assert await engine.embed("slow", ["fox"], dimensions=64) == plain
    for model, dimensions in (("slow", 16), ("tiny", 65), ("tiny", 0)):
        with pytest.raises(InvalidParameter, match="dimensions"):
            await engine.embed(model, ["fox"], dimensions=dimensions)


async def test_labels_come_with_probabilities_the_likeliest_first(
    engine: Engine, models: dict[str, Path]
) -> None:
    found = await engine.classify("labels", [*TEXTS[:5], ("a fox", "a dog")])
    expected = _logits(models["labels"], [*TEXTS[:5], ("a fox", "a dog")]).softmax(-1)
    for scores, row in zip(found.labels, expected, strict=True):
        by_label = {label.label: label.score for label in scores}
        assert by_label == pytest.approx(dict(zip(LABELS, row.tolist(), strict=True)), abs=1e-5)
        assert [s.score for s in scores] == sorted((s.score for s in scores), reverse=True)


async def test_documents_are_ranked_by_their_logits(
    engine: Engine, models: dict[str, Path]
) -> None:
    found = await engine.rerank("ranks", "Which fox?", TEXTS[:9])
    expected = _logits(models["ranks"], [("Which fox?", text) for text in TEXTS[:9]])
    assert [d.logit for d in found.documents] == pytest.approx(expected[:, 0].tolist(), abs=1e-5)
    assert [d.score for d in found.documents] == pytest.approx(
        expected[:, 0].sigmoid().tolist(), abs=1e-5
    )
    assert found.num_tokens > 9 * 5


def _logits(path: Path, texts: Sequence[str | tuple[str, str]]) -> torch.Tensor:
    """transformers' own, one by one."""
    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    rows = []
    for each in EncoderTokenizer.load(path, read_encoder_layout(path)).encode(
        texts, truncate=False
    ):
        types = list(each.type_ids) or [0] * len(each)
        with torch.inference_mode():
            rows.append(
                model(
                    input_ids=torch.tensor([each.ids]), token_type_ids=torch.tensor([types])
                ).logits
            )
    return torch.cat(rows)


# --- the wrong model, the wrong text ---------------------------------------------------------------


async def test_every_kind_does_its_own_work_only(engine: Engine) -> None:
    kinds = {state.spec.name: state.spec.kind for state in engine.models()}
    assert kinds["chat"] == "chat"
    assert {kinds[n] for n in ("labels", "ranks", "tiny")} == {
        "classifier",
        "reranker",
        "embedding",
    }
    assert {s.spec.kind for s in engine.models("chat")} == {"chat"}
    request = GenerateRequest("r", "tiny", (1, 2), SamplingParams(max_tokens=1))
    with pytest.raises(WrongKind, match="'tiny' is an embedding model; this needs a chat model"):
        engine.generate(request)
    for wrong in (
        engine.tokenizer("tiny"),
        engine.embed("chat", ["fox"]),
        engine.embed("labels", ["fox"]),
        engine.classify("ranks", ["fox"]),
        engine.rerank("labels", "fox", ["fox"]),
    ):
        with pytest.raises(WrongKind) as caught:
            await wrong
        assert caught.value.param == "model"
    with pytest.raises(UnknownModel):
        await engine.embed("absent", ["fox"])


@pytest.mark.parametrize("model", ["chat", "tiny"])
async def test_a_worker_that_is_asked_for_the_wrong_thing_says_so(
    engine: Engine, model: str
) -> None:
    """What the engine's own check would have stopped."""
    host = engine._host(model)
    if model == "chat":
        text = EncoderInput(array("i", [1, 2, 3]))
        with pytest.raises(EngineError, match="writes answers"):
            await host.encode(EncodeRequest("r", (text,)))
    else:
        request = GenerateRequest("r", model, (1, 2), SamplingParams(max_tokens=1))
        *_, last = [update async for update in host.generate(request)]
        assert isinstance(last, Failed)
        assert "writes no answers" in last.message


async def test_a_text_that_is_too_long_is_named_and_others_go_on(engine: Engine) -> None:
    fine = asyncio.create_task(engine.embed("tiny", TEXTS))
    with pytest.raises(ContextTooLong, match="text 300 takes"):
        await engine.embed("tiny", ["fox"] * 300 + ["fox " * 600])
    with pytest.raises(ContextTooLong, match="text 0 is far longer"):
        await engine.embed("tiny", ["x" * 10_000_000])
    cut = await engine.embed("tiny", ["fox " * 600, "x" * 10_000_000], truncate=True)
    assert cut.num_tokens == 2 * 512
    assert len((await fine).vectors) == len(TEXTS)


async def test_hostile_texts_get_their_vectors(engine: Engine) -> None:
    hostile = ["", "\0", "\ud800", "\ud83e\udd8a", "[SEP]" * 9, "\u202e\u0000\uffff", "é" * 200]
    found = await engine.embed("tiny", hostile)
    for vector in found.vectors:
        assert sum(x * x for x in vector) == pytest.approx(1, abs=1e-5)


async def test_ten_thousand_texts_stop_nobody(engine: Engine) -> None:
    await engine.embed("tiny", ["warm"])
    texts = [f"text {i}" for i in range(10_000)]
    job = asyncio.create_task(engine.embed("tiny", texts, caller=Caller("index")))
    await _until(lambda: bool(engine._host("tiny").flights))
    num_answered = 0
    while not job.done():
        await engine.embed("tiny", ["a query"], caller=Caller("reader"))
        num_answered += 1
    assert num_answered > 3
    found = await job
    assert len(found.vectors) == 10_000
    (last,) = (await engine.embed("tiny", texts[-1:])).vectors
    assert last.tolist() == pytest.approx(found.vectors[-1].tolist(), abs=1e-5)


# --- deaths --------------------------------------------------------------------------------------


async def test_a_killed_worker_costs_a_pause(engine: Engine) -> None:
    calm = await engine.embed("slow", MANY)
    num_restarts = engine._host("slow").num_restarts
    shaken = asyncio.create_task(engine.embed("slow", MANY))
    await _until(lambda: engine.stats("slow").num_waiting > 0 and not shaken.done())
    _kill(engine, "slow")
    _assert_close(await shaken, calm)
    assert engine._host("slow").num_restarts == num_restarts + 1


async def test_who_sees_two_workers_die_fails_alone(engine: Engine) -> None:
    """Whoever shared the first death with the culprit is tried again without it."""
    await engine.embed("slow", ["warm"])
    host = engine._host("slow")
    num_restarts = host.num_restarts
    poison = asyncio.create_task(engine.embed("slow", MANY[:200], caller=Caller("first")))
    await _until(lambda: len(host.flights) == 1)
    (flight,) = host.flights.values()
    others = [
        asyncio.create_task(engine.embed("slow", MANY[:100], caller=Caller(str(i))))
        for i in range(3)
    ]
    await _until(lambda: len(host.flights) == 4)
    assert all(each.is_on_board for each in host.flights.values())
    _kill(engine, "slow")
    await _until(lambda: not flight.is_on_board or flight.num_deaths == 1)
    await _until(lambda: host.state == "ready" and flight.is_on_board)
    late = asyncio.create_task(engine.embed("slow", MANY[:50]))
    await _until(lambda: len(host.flights) == 5)
    assert not poison.done()
    _kill(engine, "slow")
    with pytest.raises(EncodingFailed, match="died 2 times on this request"):
        await poison
    for task in (*others, late):
        assert (await task).vectors
    assert host.num_restarts == num_restarts + 2


async def test_a_model_that_does_not_load_says_why_to_everybody(
    models: dict[str, Path], tiny_model: Path, tmp_path: Path
) -> None:
    broken = make_encoder(tmp_path / "broken", pooling="mean")
    (broken / "model.safetensors").write_bytes(b"no weights")
    engine = _engine({**models, "broken": broken}, tiny_model)
    try:
        both = await asyncio.gather(
            *(engine.embed("broken", ["fox"]) for _ in range(2)), return_exceptions=True
        )
        for error in both:
            assert isinstance(error, ModelRefused)
            assert "no sound safetensors file" in str(error)
        assert engine.state("broken").state == "failed"
    finally:
        await engine.close()


async def test_unloading_fails_what_is_on_board(engine: Engine) -> None:
    await engine.embed("slow", ["warm"])
    task = asyncio.create_task(engine.embed("slow", MANY))
    await _until(lambda: engine.stats("slow").num_waiting > 0)
    await engine.unload("slow")
    with pytest.raises(EngineError, match="shut down") as caught:
        await task
    assert caught.value.code == "engine_closed"


# --- leaving and waiting -------------------------------------------------------------------------


async def test_cancelling_frees_the_worker(engine: Engine) -> None:
    await engine.embed("slow", ["warm"])
    task = asyncio.create_task(engine.embed("slow", MANY * 20))
    await _until(lambda: engine.stats("slow").num_waiting > 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: not engine._host("slow").flights)
    await engine.embed("slow", ["after"])
    await engine.embed("slow", ["and after"])
    assert engine.stats("slow").num_waiting == 0, "nothing of it is computed any more"


async def test_cancelling_before_the_model_is_ready_leaves_nothing(engine: Engine) -> None:
    await engine.unload("slow")
    task = asyncio.create_task(engine.embed("slow", ["fox"]))
    await _until(lambda: engine.worker_pid("slow") is not None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not engine._host("slow").flights
    assert len((await engine.embed("slow", ["fox"])).vectors) == 1


async def test_a_query_overtakes_a_chore(engine: Engine) -> None:
    await engine.embed("slow", ["warm"])
    chore = asyncio.create_task(
        engine.embed("slow", MANY, caller=Caller("same", priority="background"))
    )
    await _until(lambda: engine.stats("slow").num_waiting > 0)
    await engine.embed("slow", ["a query"], caller=Caller("same"))
    assert not chore.done()
    assert len((await chore).vectors) == len(MANY)


async def test_an_overfull_queue_says_when_to_come_back(
    models: dict[str, Path], tiny_model: Path
) -> None:
    """A large set that was begun waits for room instead."""
    engine = _engine(models, tiny_model, max_waiting_tokens=20_000)
    try:
        await engine.embed("slow", ["warm"])
        large = asyncio.create_task(engine.embed("slow", MANY * 2))
        await _until(lambda: engine.stats("slow").num_waiting > 0)
        with pytest.raises(Overloaded) as caught:
            for _ in range(20):
                await engine.embed("slow", MANY[:200])
        assert caught.value.retry_after_s is not None
        assert 0 < caught.value.retry_after_s <= 120
        assert len((await large).vectors) == 2 * len(MANY)
    finally:
        await engine.close()


async def test_an_encoder_that_is_slow_is_told(engine: Engine) -> None:
    """A real worker's steps are what the pace is told by; made-up ones are then slower."""
    (worker,) = engine._host("tiny").workers
    await engine.embed("tiny", TEXTS)
    await _until(lambda: worker.stats.num_encoded_tokens > 0)
    told = worker.stats
    assert 0 < told.forward_ms <= told.step_ms
    assert 0 < told.num_longest <= told.num_encoded_tokens
    calm = replace(told, forward_ms=20.0)
    for _ in range(50):
        worker._note_pace(calm)
    for _ in range(100):
        worker._note_pace(replace(calm, forward_ms=120.0))
    assert engine.state("tiny").is_straggling
    for _ in range(300):
        worker._note_pace(calm)
    assert not engine.state("tiny").is_straggling

"""Models whose images are grids: wherever a step takes positions from, it says what it says alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import attention, layered_plan
from inference.config import Adapter
from inference.engine_loop import EngineLoop
from inference.errors import ModelRefused
from inference.gpu import attention as kernels
from inference.gpu.fusing import fuse_on_device
from inference.gpu.layer import has_fused_all
from inference.messages import Failed, GenerateRequest, SamplingParams, Update
from inference.tokenizer import ChatTokenizer
from inference.vision import deep_rows
from inference.vision.eyes import Eyes
from inference.vision.grid_positions import GridPositions, Positions
from inference.vision.grid_rotary import GridRotary
from tests.inference.conftest import needs_kernels
from tests.inference.loops import answers, ids, make_drafting_loop, make_loop, run, step
from tests.inference.seeing import NUM_TOKENS, TALK, request
from tests.inference.test_gpu_overlap import OverlappedMaker
from tests.inference.test_layered_prefill import chunk_of, slow_down
from tests.inference.tiny_adapters import make_adapter, merged
from tests.inference.tiny_vision import GRID_FAMILIES, Whole, asked, make_seeing_model, noise

_LONG = SamplingParams(max_tokens=90, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module", params=GRID_FAMILIES)
def path(request: pytest.FixtureRequest, seeing_models: dict[str, Path]) -> Path:
    return seeing_models[request.param]


@pytest.fixture(scope="module")
def tokenizer(path: Path) -> ChatTokenizer:
    return ChatTokenizer.load(path)


def test_it_writes_what_generate_of_transformers_writes(
    path: Path, tokenizer: ChatTokenizer
) -> None:
    """Whose positions behind a prompt are those of its cache and a shift."""
    one = request(tokenizer, TALK)
    whole = Whole(path)
    inputs = whole.inputs_of([image.data for image in one.images])
    read = torch.tensor([one.prompt_ids])
    is_image = read == whole.model.config.image_token_id
    written = whole.model.generate(
        input_ids=read,
        mm_token_type_ids=is_image.int(),
        max_new_tokens=NUM_TOKENS,
        min_new_tokens=NUM_TOKENS,
        do_sample=False,
        eos_token_id=None,
        **inputs,
    )
    assert answers(make_loop(path), one) == [written[0, len(one.prompt_ids) :].tolist()]


def test_two_forms_of_as_many_rows_are_told_apart(
    path: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By positions alone: the same ids, and rows that are all the same."""
    wide, high = (
        replace(request(tokenizer, [asked("A \ufffc here.", noise(1, *size))]), params=_LONG)
        for size in ((70, 42), (42, 70))
    )
    assert wide.prompt_ids == high.prompt_ids
    images = [one.images[0] for one in (wide, high)]
    assert [image.num_columns for image in images] == [5, 3]
    loop = make_loop(path)
    eyes = loop.runner.eyes
    assert eyes is not None
    rows = torch.rand(15, eyes._row_bytes // 4)
    monkeypatch.setattr(Eyes, "_rows_of", lambda *_: rows)
    assert answers(loop, wide) != answers(loop, high)


@pytest.mark.parametrize("num_drafting", [0, 4])
def test_guesses_change_nothing(path: Path, tokenizer: ChatTokenizer, num_drafting: int) -> None:
    one = replace(request(tokenizer, TALK), params=_LONG)
    text = replace(request(tokenizer, [asked("A word. " * 9)], "text"), params=_LONG)
    expected = [answers(make_loop(path, max_num_drafting=0), each)[0] for each in (one, text)]
    loop = make_loop(path, max_num_drafting=num_drafting)
    assert answers(loop, one, text) == expected


def test_a_draft_model_reads_ids_where_it_sees_nothing(
    path: Path, tokenizer: ChatTokenizer
) -> None:
    one = replace(request(tokenizer, TALK), params=_LONG)
    expected = answers(make_loop(path, max_num_drafting=0), one)
    loop, _ = make_drafting_loop(path, path)
    assert answers(loop, one) == expected
    assert loop.scheduler.speculation.num_asked


@pytest.mark.parametrize("family", GRID_FAMILIES)
def test_a_chunk_with_an_image_passes_layer_by_layer(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside one that writes behind an image. In double precision, as no batch decides there."""
    monkeypatch.setattr(layered_plan, "_BEHIND_TOKENS", 16)
    path = make_seeing_model(
        tmp_path / family, family, num_hidden_layers=5, max_position_embeddings=1024
    )
    tokenizer = ChatTokenizer.load(path)
    loop = make_loop(path)
    loop.runner.model.double()
    slow_down(loop, monkeypatch)
    pictures = [noise(n, 70, 56) for n in range(5)]
    chat = [asked("So far \ufffc and \ufffc, then \ufffc, \ufffc. \ufffc", *pictures)]
    reader = request(tokenizer, chat, "reader")
    writer = replace(request(tokenizer, TALK, "writer"), params=replace(_LONG, max_tokens=350))
    expected = [answers(loop, each)[0] for each in (reader, writer)]
    loop.kv.forget_all()
    told: dict[str, list[Update]] = {}
    loop.submit(writer)
    while len(ids(told.get("writer", []))) < 3:
        step(loop, told)
    loop.submit(reader)
    begun: list[int] = []
    while not loop.is_idle:
        step(loop, told)
        if (chunk := chunk_of(loop)) is not None:
            begun.append(chunk.begin)
    assert {1, 2} & {*begun}
    assert [ids(told[name]) for name in ("reader", "writer")] == expected


@pytest.mark.parametrize("has_graphs", [False, True])
def test_steps_on_a_device_decode_behind_images(
    path: Path, tokenizer: ChatTokenizer, has_graphs: bool
) -> None:
    maker = OverlappedMaker.load(path)
    talks = [TALK, [asked("What is this?", noise(5, 84, 28))], [asked("Text.")]]
    requests = [
        replace(request(tokenizer, talk, f"r{n}"), params=replace(_LONG, max_tokens=20 + n))
        for n, talk in enumerate(talks)
    ]
    expected = [answers(maker.whole, one)[0] for one in requests]
    loop = replace(maker, has_graphs=has_graphs).make(800)
    loop.runner.eyes = maker.whole.runner.eyes
    assert bool(len(loop.decode.graphs)) == has_graphs
    assert answers(loop, *requests) == expected


def test_kernels_for_a_device_read_and_write_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers that are called as one, too, behind which rows of images are added."""
    path = make_seeing_model(tmp_path / "qwen3_vl", "qwen3_vl", num_hidden_layers=2)
    monkeypatch.setattr("inference.gpu.layer._SIZES", (1.0,))
    monkeypatch.setattr("inference.gpu.layer._TRIED", ([2, 1], [1, 1]))
    one = request(ChatTokenizer.load(path), [asked("", noise(1))])
    one = replace(one, params=replace(one.params, max_tokens=3))
    expected = answers(make_loop(path), one)
    loop = make_loop(path, kv_layout="paged")
    monkeypatch.setattr(attention, "_kernels", kernels)
    fuse_on_device("tiny", loop.runner.model)
    assert has_fused_all(loop.runner.model)
    assert answers(loop, one) == expected


def test_rows_take_what_is_reckoned_for_them(path: Path, tokenizer: ChatTokenizer) -> None:
    loop = make_loop(path)
    answers(loop, request(tokenizer, TALK))
    eyes = loop.runner.eyes
    assert eyes is not None
    assert len(eyes._rows) == 3
    for key, rows in eyes._rows.items():
        assert eyes._size_bytes(key) == rows.nbytes


@needs_kernels
def test_it_has_the_layers_of_a_plain_model(path: Path) -> None:
    """In int8 they are called as one, as those of a Qwen that reads texts only."""
    model: Any = make_loop(path, dtype="int8").runner.model
    assert type(model).__name__ in ("Qwen2ForCausalLM", "Qwen3ForCausalLM")
    assert isinstance(model.model.rotary_emb, GridRotary)


def test_an_adapter_changes_what_reads(seeing_models: dict[str, Path], tmp_path: Path) -> None:
    path = seeing_models["qwen3_vl"]
    adapter = make_adapter(tmp_path / "one", path)
    one = request(ChatTokenizer.load(path), TALK)
    (expected,) = answers(make_loop(merged(tmp_path / "merged", path, adapter)), one)
    loop = make_loop(path, adapters=(Adapter("one", "tiny", adapter),))
    other = replace(one, request_id="other", adapter="one")
    assert answers(loop, one, other) == [answers(make_loop(path), one)[0], expected]


def failed(loop: EngineLoop, one: GenerateRequest) -> Failed:
    update = run(loop, one)[one.request_id][-1]
    assert isinstance(update, Failed)
    return update


@pytest.mark.parametrize("num_columns", [0, 3, 4, 99])
def test_a_place_of_another_form_is_refused(
    path: Path, tokenizer: ChatTokenizer, num_columns: int
) -> None:
    one = request(tokenizer, [asked("Here:", noise(1, 70, 42))])
    turned = replace(one, images=(replace(one.images[0], num_columns=num_columns),))
    update = failed(make_loop(path), turned)
    assert (update.code, update.param) == ("invalid_parameter", "messages")
    assert "another form" in update.message


def test_who_would_read_them_elsewhere_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = GridPositions.between

    def in_a_line(self: GridPositions, start: int, end: int) -> Positions:
        return Positions(*[between(self, start, end).times] * 3)

    monkeypatch.setattr(GridPositions, "between", in_a_line)
    with pytest.raises(ModelRefused, match="computes something else of an image"):
        make_loop(path)


def test_who_would_lack_what_goes_into_deeper_layers_is_refused(
    seeing_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep_rows.DeepRows, "add_to", lambda *_: None)
    with pytest.raises(ModelRefused, match="computes something else of an image"):
        make_loop(seeing_models["qwen3_vl"])
    make_loop(seeing_models["qwen2_vl"])

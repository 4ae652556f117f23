"""Models that see: what they say of images over our cache is what transformers says."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from inference import Engine
from inference.loader import best_dtype
from inference.messages import Finished, GenerateRequest, SamplingParams, Tokens
from inference.tokenizer import ChatTokenizer
from tests.inference.conftest import engine_config
from tests.inference.loops import answers, ids, make_loop, run
from tests.inference.seeing import NUM_TOKENS, TALK, request
from tests.inference.tiny_vision import FAMILIES, GRID_FAMILIES, Whole, asked, noise

_LONG = SamplingParams(max_tokens=150, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module", params=["llava", *GRID_FAMILIES])
def path(request: pytest.FixtureRequest, seeing_models: dict[str, Path]) -> Path:
    """In whose prompts images stand in a line, and those in which they stand in grids."""
    return seeing_models[request.param]


@pytest.fixture(scope="module")
def tokenizer(path: Path) -> ChatTokenizer:
    return ChatTokenizer.load(path)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_transformers_says(seeing_models: dict[str, Path], family: str) -> None:
    tokenizer = ChatTokenizer.load(seeing_models[family])
    one = request(tokenizer, TALK)
    pictures = [image.data for image in one.images]
    assert len(pictures) == 3
    expected = Whole(seeing_models[family]).greedy(one.prompt_ids, pictures, NUM_TOKENS)
    assert answers(make_loop(seeing_models[family]), one) == [expected]
    other = request(tokenizer, [TALK[0], TALK[1], asked("And this?", noise(4, 64, 64))])
    assert answers(make_loop(seeing_models[family]), other) != [expected]  # it looks, indeed


def test_an_image_of_llava_onevision_is_in_tiles_where_it_is_alone(
    seeing_models: dict[str, Path],
) -> None:
    path = seeing_models["llava_onevision"]
    tokenizer = ChatTokenizer.load(path)
    alone = request(tokenizer, [asked("Here:", noise(1, 60, 60))])
    both = request(tokenizer, [asked("Here:", noise(1, 60, 60), noise(2, 60, 60))])
    assert [image.num_ids for image in alone.images] == [16 + 5 * 6]
    assert [image.num_ids for image in both.images] == [16 + 1] * 2
    loop, whole = make_loop(path), Whole(path)
    for one in (alone, both):  # what was seen of an image alone is not taken for it
        pictures = [image.data for image in one.images]
        assert answers(loop, one) == [whole.greedy(one.prompt_ids, pictures, NUM_TOKENS)]


@pytest.mark.parametrize("budget_tokens", [1, 2, 3, 5, 16, 64])
def test_chunks_may_cut_an_image_anywhere(
    path: Path, tokenizer: ChatTokenizer, budget_tokens: int
) -> None:
    one = request(tokenizer, TALK)
    expected = answers(make_loop(path), one)
    loop = make_loop(path)
    loop.scheduler.relief.budget_tokens = budget_tokens
    assert answers(loop, one) == expected


@pytest.mark.parametrize("layout", ["slabs", "paged"])
def test_beside_others_it_says_the_same(path: Path, tokenizer: ChatTokenizer, layout: str) -> None:
    """Images in two prompts at once, and texts."""
    talks = [
        TALK,
        [asked("What is this?", noise(5))],
        [asked("A word about Cologne.")],
        [asked("Two of them:", noise(6), noise(6))],
    ]
    requests = [request(tokenizer, talk, f"r{number}") for number, talk in enumerate(talks)]
    alone = [answers(make_loop(path), one)[0] for one in requests]
    assert answers(make_loop(path, kv_layout=layout), *requests) == alone


@pytest.mark.parametrize("layout", ["slabs", "paged"])
def test_the_same_image_is_found_in_the_cache_and_no_other(
    path: Path, tokenizer: ChatTokenizer, layout: str
) -> None:
    def question(seed: int, name: str) -> GenerateRequest:
        return request(tokenizer, [asked("\ufffcWhat is this?" + " Well?" * 20, noise(seed))], name)

    first, again, other = question(1, "a"), question(1, "b"), question(2, "c")
    assert first.prompt_ids == other.prompt_ids  # the ids do not tell them apart
    expected = [answers(make_loop(path), one)[0] for one in (first, other)]
    assert expected[0] != expected[1]
    loop = make_loop(path, kv_layout=layout)
    assert answers(loop, first) == expected[:1]
    offset = first.images[0].offset
    cold, warm = (run(loop, one)[one.request_id] for one in (other, again))
    assert [ids(cold), ids(warm)] == [expected[1], expected[0]]
    assert isinstance(cold[-1], Finished)
    assert isinstance(warm[-1], Finished)
    assert cold[-1].usage.cached_tokens <= offset
    assert warm[-1].usage.cached_tokens >= len(first.prompt_ids) - 16
    assert warm[-1].usage.prompt_tokens == len(first.prompt_ids)


def test_preempted_it_looks_again_and_goes_on(path: Path, tokenizer: ChatTokenizer) -> None:
    """There is room for two of the three, which need it at once."""
    talks = [[asked(f"Number {seed}.", noise(seed))] for seed in range(3)]
    requests = [request(tokenizer, talk, f"r{n}") for n, talk in enumerate(talks)]
    alone = [answers(make_loop(path), one)[0] for one in requests]
    loop = make_loop(path)
    eyes = loop.runner.eyes
    assert eyes is not None
    loop.kv.capacity_tokens = 2 * len(requests[0].prompt_ids) + 20  # type: ignore[misc]
    eyes._kept_bytes = 1
    assert answers(loop, *requests) == alone


def test_a_resumed_answer_goes_on_as_it_would_have(path: Path, tokenizer: ChatTokenizer) -> None:
    one = request(tokenizer, TALK)
    (whole,) = answers(make_loop(path), one)
    cut = request(tokenizer, TALK, output_ids=tuple(whole[:5]))
    assert answers(make_loop(path), cut) == [whole[5:]]


def test_a_prompt_of_text_goes_the_way_of_text(path: Path, tokenizer: ChatTokenizer) -> None:
    loop = make_loop(path)
    one = request(tokenizer, [asked("No picture at all.")])
    assert not one.images
    whole = Whole(path).greedy(one.prompt_ids, [], NUM_TOKENS)
    read = Mock(wraps=loop.runner.model.forward)
    loop.runner.model.forward = read
    assert answers(loop, one) == [whole]
    assert all("input_ids" in call.kwargs for call in read.call_args_list)


def test_quantized_it_sees_as_well(path: Path, tokenizer: ChatTokenizer) -> None:
    """Its text layers are, as any model's; what it sees with is not."""
    loop = make_loop(path, dtype="int8")
    eyes = loop.runner.eyes
    assert eyes is not None
    assert {p.dtype for p in eyes.module.parameters()} == {best_dtype()}
    told = run(loop, request(tokenizer, TALK))["a"]
    assert isinstance(told[-1], Finished)
    assert len(ids(told)) == NUM_TOKENS


def test_asleep_its_eyes_are_on_the_host(path: Path, tokenizer: ChatTokenizer) -> None:
    loop = make_loop(path)
    one = request(tokenizer, TALK)
    expected = answers(loop, one)
    eyes = loop.runner.eyes
    assert eyes is not None
    assert loop.sleep() > sum(p.nbytes for p in eyes.module.parameters())
    assert not any(p.numel() for p in eyes.module.parameters())
    loop.wake()
    assert answers(loop, one) == expected


async def test_a_killed_worker_is_followed_by_one_that_sees_the_same(
    path: Path, tokenizer: ChatTokenizer
) -> None:
    one = replace(request(tokenizer, TALK), params=_LONG)
    (expected,) = answers(make_loop(path), one)
    engine = Engine(engine_config(path))
    try:
        said: list[int] = []
        async for update in engine.generate(one):
            if isinstance(update, Tokens):
                if len(said) < 10 <= len(said) + len(update.ids):
                    pid = engine.worker_pid("tiny")
                    assert pid is not None
                    os.kill(pid, signal.SIGKILL)
                said += update.ids
        assert isinstance(update, Finished)
        assert said == expected
    finally:
        await engine.close()

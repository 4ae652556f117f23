"""Models that see: what they say of images over our cache is what transformers says."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest
import torch

from inference import Engine, engine_loop
from inference.boarding import Boarding
from inference.engine_loop import EngineLoop
from inference.errors import InvalidParameter, ModelRefused
from inference.flights import Generation
from inference.images import images_of
from inference.loader import best_dtype, load_model
from inference.messages import (
    Failed,
    Finished,
    GenerateRequest,
    Prefill,
    SamplingParams,
    Tokens,
    Update,
)
from inference.tokenizer import ChatTokenizer
from inference.vision.eyes import Eyes, Seen
from inference.vision.prompt_images import PromptImage
from inference.vision.room import MOST_TILES
from inference.waiting import Estimates
from tests.inference.conftest import engine_config
from tests.inference.loops import answers, ids, make_loop, run, step
from tests.inference.tiny_vision import FAMILIES, Whole, asked, make_seeing_model, noise

NUM_TOKENS = 12
_LONG = SamplingParams(max_tokens=150, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("seeing")
    return {family: make_seeing_model(folder / family, family) for family in FAMILIES}


@pytest.fixture(scope="module")
def llava(paths: dict[str, Path]) -> Path:
    return paths["llava"]


@pytest.fixture(scope="module")
def tokenizer(llava: Path) -> ChatTokenizer:
    return ChatTokenizer.load(llava)


def request(
    tokenizer: ChatTokenizer, messages: Sequence[dict[str, Any]], name: str = "a", **more: Any
) -> GenerateRequest:
    prompt = tokenizer.encode_chat([*messages])
    params = SamplingParams(max_tokens=NUM_TOKENS, temperature=0.0, ignore_eos=True)
    images = tokenizer.place_images(prompt, images_of(messages))
    return GenerateRequest(name, "tiny", prompt, params, images=images, **more)


TALK = [
    asked("Look at \ufffc and then \ufffc, please.", noise(1), noise(2, 30, 70)),
    {"role": "assistant", "content": "Two pictures."},
    asked("And this?", noise(3, 64, 64)),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_transformers_says(paths: dict[str, Path], family: str) -> None:
    tokenizer = ChatTokenizer.load(paths[family])
    one = request(tokenizer, TALK)
    pictures = [image.data for image in one.images]
    assert len(pictures) == 3
    expected = Whole(paths[family]).greedy(one.prompt_ids, pictures, NUM_TOKENS)
    assert answers(make_loop(paths[family]), one) == [expected]
    other = request(tokenizer, [TALK[0], TALK[1], asked("And this?", noise(4, 64, 64))])
    assert answers(make_loop(paths[family]), other) != [expected]  # it looks, indeed


def test_an_image_of_llava_onevision_is_in_tiles_where_it_is_alone(paths: dict[str, Path]) -> None:
    path = paths["llava_onevision"]
    tokenizer = ChatTokenizer.load(path)
    alone = request(tokenizer, [asked("Here:", noise(1, 60, 60))])
    both = request(tokenizer, [asked("Here:", noise(1, 60, 60), noise(2, 60, 60))])
    assert [image.num_ids for image in alone.images] == [16 + 5 * 6]
    assert [image.num_ids for image in both.images] == [16 + 1] * 2
    loop, whole = make_loop(path), Whole(path)
    for one in (alone, both):  # what was seen of an image alone is not taken for it
        pictures = [image.data for image in one.images]
        assert answers(loop, one) == [whole.greedy(one.prompt_ids, pictures, NUM_TOKENS)]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_more_than_a_few_tiles_are_looked_at_together(
    paths: dict[str, Path], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = make_loop(paths[family])
    eyes = loop.runner.eyes
    assert eyes is not None
    module: Any = eyes.module
    tower = getattr(module, "vision_tower", None) or module.vision_model
    (image,) = request(ChatTokenizer.load(paths[family]), [asked("", noise(1, 84, 80))]).images
    nums: list[int] = []
    embeddings = tower.get_input_embeddings()
    embeddings.register_forward_hook(
        lambda _, given, made: nums.append(len(made[0] if isinstance(made, tuple) else made))
    )
    rows = eyes._looked(image).rows
    assert max(nums) <= MOST_TILES
    num_tiles = sum(nums)
    assert (num_tiles > MOST_TILES) == (family != "llava")
    monkeypatch.setattr("inference.vision.tiles.MOST_TILES", 100)
    nums.clear()
    assert torch.allclose(rows, eyes._looked(image).rows, atol=1e-4)
    assert nums == [num_tiles]


def test_a_look_for_which_there_was_no_memory_is_tried_again(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, loop = request(tokenizer, TALK), make_loop(llava)
    expected = answers(make_loop(llava), one)
    eyes = loop.runner.eyes
    assert eyes is not None
    module: Any = eyes.module
    look = Mock(wraps=module.get_image_features)
    monkeypatch.setattr(module, "get_image_features", look)
    look.side_effect = [torch.OutOfMemoryError("full"), *[DEFAULT] * 3]
    gave_back = Mock()
    monkeypatch.setattr("inference.vision.eyes.give_back", gave_back)
    assert answers(loop, one) == expected
    assert gave_back.call_count == 1
    look.side_effect = torch.OutOfMemoryError("full")
    failed = run(loop, request(tokenizer, [asked("Another:", noise(9))]))["a"][-1]
    assert isinstance(failed, Failed)


@pytest.mark.parametrize("budget_tokens", [1, 2, 3, 5, 16, 64])
def test_chunks_may_cut_an_image_anywhere(
    llava: Path, tokenizer: ChatTokenizer, budget_tokens: int
) -> None:
    one = request(tokenizer, TALK)
    expected = answers(make_loop(llava), one)
    loop = make_loop(llava)
    loop.scheduler.relief.budget_tokens = budget_tokens
    assert answers(loop, one) == expected


@pytest.mark.parametrize("layout", ["slabs", "paged"])
def test_beside_others_it_says_the_same(llava: Path, tokenizer: ChatTokenizer, layout: str) -> None:
    """Images in two prompts at once, and texts."""
    talks = [
        TALK,
        [asked("What is this?", noise(5))],
        [asked("A word about Cologne.")],
        [asked("Two of them:", noise(6), noise(6))],
    ]
    requests = [request(tokenizer, talk, f"r{number}") for number, talk in enumerate(talks)]
    alone = [answers(make_loop(llava), one)[0] for one in requests]
    assert answers(make_loop(llava, kv_layout=layout), *requests) == alone


@pytest.mark.parametrize("layout", ["slabs", "paged"])
def test_the_same_image_is_found_in_the_cache_and_no_other(
    llava: Path, tokenizer: ChatTokenizer, layout: str
) -> None:
    def question(seed: int, name: str) -> GenerateRequest:
        return request(tokenizer, [asked("\ufffcWhat is this?" + " Well?" * 20, noise(seed))], name)

    first, again, other = question(1, "a"), question(1, "b"), question(2, "c")
    assert first.prompt_ids == other.prompt_ids  # the ids do not tell them apart
    expected = [answers(make_loop(llava), one)[0] for one in (first, other)]
    assert expected[0] != expected[1]
    loop = make_loop(llava, kv_layout=layout)
    assert answers(loop, first) == expected[:1]
    offset = first.images[0].offset
    cold, warm = (run(loop, one)[one.request_id] for one in (other, again))
    assert [ids(cold), ids(warm)] == [expected[1], expected[0]]
    assert isinstance(cold[-1], Finished)
    assert isinstance(warm[-1], Finished)
    assert cold[-1].usage.cached_tokens <= offset
    assert warm[-1].usage.cached_tokens >= len(first.prompt_ids) - 16
    assert warm[-1].usage.prompt_tokens == len(first.prompt_ids)


def test_an_image_is_looked_at_once_while_there_is_room(
    llava: Path, tokenizer: ChatTokenizer
) -> None:
    loop = make_loop(llava)
    eyes = loop.runner.eyes
    assert eyes is not None
    first = request(tokenizer, [asked("One: \ufffc", noise(1))], "a")
    other = request(tokenizer, [asked("Another: \ufffc", noise(1))], "b")
    answers(loop, first, other)
    assert eyes.num_looks == 1
    stranger = request(tokenizer, [asked("One: \ufffc", noise(1))], "c", cache_salt="else")
    answers(loop, stranger)
    assert eyes.num_looks == 2  # or it would be told that somebody has shown this image
    eyes._kept_bytes = 1
    cramped = [request(tokenizer, TALK, name, cache_salt=name) for name in "cd"]
    assert answers(loop, *cramped) == answers(make_loop(llava), *cramped)


def test_preempted_it_looks_again_and_goes_on(llava: Path, tokenizer: ChatTokenizer) -> None:
    """There is room for two of the three, which need it at once."""
    talks = [[asked(f"Number {seed}.", noise(seed))] for seed in range(3)]
    requests = [request(tokenizer, talk, f"r{n}") for n, talk in enumerate(talks)]
    alone = [answers(make_loop(llava), one)[0] for one in requests]
    loop = make_loop(llava)
    eyes = loop.runner.eyes
    assert eyes is not None
    loop.kv.capacity_tokens = 2 * len(requests[0].prompt_ids) + 20  # type: ignore[misc]
    eyes._kept_bytes = 1
    assert answers(loop, *requests) == alone


def test_a_resumed_answer_goes_on_as_it_would_have(llava: Path, tokenizer: ChatTokenizer) -> None:
    one = request(tokenizer, TALK)
    (whole,) = answers(make_loop(llava), one)
    cut = request(tokenizer, TALK, output_ids=tuple(whole[:5]))
    assert answers(make_loop(llava), cut) == [whole[5:]]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Looks last until it is opened."""
    opened, looked = Event(), Eyes._looked

    def slowly(self: Eyes, image: PromptImage) -> Any:
        assert opened.wait(60)
        return looked(self, image)

    opened.set()
    monkeypatch.setattr(Eyes, "_looked", slowly)
    yield opened
    opened.set()


def test_others_write_while_it_looks(llava: Path, tokenizer: ChatTokenizer, gate: Event) -> None:
    loop = make_loop(llava)
    one, text = request(tokenizer, TALK), request(tokenizer, [asked("Text.")], "text")
    expected = [answers(make_loop(llava), each)[0] for each in (one, text)]
    gate.clear()
    told: dict[str, list[Update]] = {}
    loop.submit(one)
    loop.submit(text)
    while not (told.get("text") and isinstance(told["text"][-1], Finished)):
        step(loop, told)
    assert ids(told["text"]) == expected[1]
    assert not ids(told.get("a", []))
    charged = loop.scheduler.share.of(one.user)
    for _ in range(3):  # steps in which there is nothing to do
        step(loop, told)
    assert loop.scheduler.share.of(one.user) == charged
    gate.set()
    while not loop.is_idle:
        step(loop, told)
    assert ids(told["a"]) == expected[0]
    assert not loop.scheduler.running


def test_a_long_look_gives_signs_of_life(
    llava: Path, tokenizer: ChatTokenizer, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_loop, "_TELL_LOOKING_S", 0.0)
    loop = make_loop(llava)
    gate.clear()
    loop.submit(request(tokenizer, TALK))
    told: dict[str, list[Update]] = {}
    for _ in range(5):
        step(loop, told)
    assert sum(isinstance(update, Prefill) for update in told["a"]) >= 4
    loop.abort("a")
    step(loop, told)
    assert isinstance(told["a"][-1], Finished)
    assert loop.is_idle
    gate.set()
    other = request(tokenizer, [asked("Number 2.", noise(2))], "b")
    assert answers(loop, other) == answers(make_loop(llava), other)
    loop.check()


@pytest.mark.parametrize("has_room", [False, True])
def test_rows_are_kept_until_they_are_read(
    llava: Path, tokenizer: ChatTokenizer, has_room: bool
) -> None:
    """Five users read at once, with room for one of their images, or for none."""
    loop = make_loop(llava)
    eyes = loop.runner.eyes
    assert eyes is not None
    talks = [[asked("See \ufffc and \ufffc.", noise(n), noise(n + 5))] for n in range(5)]
    requests = [request(tokenizer, talk, f"r{n}", user=f"u{n}") for n, talk in enumerate(talks)]
    alone = [answers(make_loop(llava), one)[0] for one in requests]
    row_bytes = loop.runner.model.get_input_embeddings().embedding_dim * best_dtype().itemsize
    image_bytes = requests[0].images[0].num_ids * row_bytes
    eyes._kept_bytes = image_bytes if has_room else 1
    loop.scheduler.relief.budget_tokens = 10
    told: dict[str, list[Update]] = {}
    for one in requests:
        loop.submit(one)
    most_bytes = 0
    while not loop.is_idle:
        step(loop, told)
        most_bytes = max(most_bytes, sum(rows.nbytes for rows in eyes._rows.values()))
    assert [ids(told[one.request_id]) for one in requests] == alone
    assert eyes.num_looks == 10
    assert most_bytes <= 2 * image_bytes  # the one that is read, and one that was just seen


class Glances:
    """Looks that wait to be let go on, and what was looked at so far."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.has_begun = Event()
        self.may_end = Event()
        self.may_end.set()

    def watch(self) -> None:
        """Nothing ends any more, and nothing was seen."""
        self.may_end.clear()
        self.has_begun.clear()
        self.seen.clear()

    def of(self, looked: Callable[[Eyes, PromptImage], Any]) -> Callable[[Eyes, PromptImage], Any]:
        def slowly(eyes: Eyes, image: PromptImage) -> Any:
            self.seen.append(image.data)
            self.has_begun.set()
            assert self.may_end.wait(60)
            return looked(eyes, image)

        return slowly


@pytest.fixture
def glances(monkeypatch: pytest.MonkeyPatch) -> Iterator[Glances]:
    made = Glances()
    monkeypatch.setattr(Eyes, "_looked", made.of(Eyes._looked))
    yield made
    made.may_end.set()


def test_what_is_computed_is_charged_and_each_look_once(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Eyes._looked
    monkeypatch.setattr(Eyes, "_looked", lambda *of: looked(*of)._replace(took_s=1.0))
    monkeypatch.setattr(Estimates, "tokens_in", lambda self, took_s: 1000.0 * took_s)
    loop = make_loop(llava)
    charged: list[float] = []
    monkeypatch.setattr(loop.scheduler.share, "charge", lambda user, cost, _: charged.append(cost))
    one = request(tokenizer, [asked("All of them.", *map(noise, range(16)))], user="long")
    run(loop, replace(one, params=replace(one.params, max_tokens=1)))
    assert sum(charged) == pytest.approx(len(one.prompt_ids) + 16 * 1000, abs=0.1)


def begun(tokenizer: ChatTokenizer, loop: EngineLoop, glances: Glances, **more: Any) -> list[bytes]:
    """Four images of one user's, the first of which is looked at without end."""
    pictures = [noise(number) for number in range(4)]
    loop.submit(request(tokenizer, [asked("All of them.", *pictures)], "long", user="long", **more))
    step(loop, {})
    assert glances.has_begun.wait(60)
    return pictures


def test_nobody_waits_for_looks_that_nobody_wants(
    llava: Path, tokenizer: ChatTokenizer, glances: Glances
) -> None:
    other = request(tokenizer, [asked("Mine.", noise(9))], "other", user="other")
    loop, expected = make_loop(llava), answers(make_loop(llava), other)
    glances.watch()
    pictures = begun(tokenizer, loop, glances)
    loop.abort("long")
    step(loop, {})
    assert loop.is_idle
    told: dict[str, list[Update]] = {}
    loop.submit(other)
    step(loop, told)
    glances.may_end.set()
    while not loop.is_idle:
        step(loop, told)
    assert [ids(told["other"])] == expected
    assert glances.seen == [pictures[0], noise(9)]
    assert loop.runner.eyes is not None
    assert [key.digest for key in loop.runner.eyes._rows] == [other.images[0].digest]  # it was left


@pytest.mark.parametrize("why", ["class", "share", "order"])
def test_whose_turn_it_is_looks_next(
    llava: Path, tokenizer: ChatTokenizer, glances: Glances, why: str
) -> None:
    loop = make_loop(llava)
    glances.watch()
    pictures = begun(tokenizer, loop, glances, priority="api")
    for name, seed in (("one", 8), ("other", 9)):
        priority = "interactive" if (why, name) == ("class", "other") else "api"
        asking = request(
            tokenizer, [asked("Mine.", noise(seed))], name, user=name, priority=priority
        )
        loop.submit(asking)
        step(loop, {})
        if why == "share" and name == "one":
            loop.scheduler.share.charge(name, 1000, 1.0)
    if why != "order":
        loop.scheduler.share.charge("long", 500, 1.0)
    else:
        for name in ("one", "other", "long"):
            loop.scheduler.share.charge(name, 1000 - loop.scheduler.share.of(name), 1.0)
    step(loop, {})
    glances.may_end.set()
    while not loop.is_idle:
        step(loop, {})
    following = {"class": noise(9), "share": noise(9), "order": noise(8)}
    assert glances.seen[:2] == [pictures[0], following[why]]
    assert len(glances.seen) == 6


def test_a_damaged_image_fails_alone(llava: Path, tokenizer: ChatTokenizer) -> None:
    broken = request(tokenizer, [asked("Broken:", noise(1))], "broken")
    (image,) = broken.images
    broken = replace(broken, images=(replace(image, data=image.data[:60], digest="cut"),))
    sound = request(tokenizer, [asked("Sound:", noise(2))], "sound")
    told = run(make_loop(llava), broken, sound)
    failed = told["broken"][-1]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.param) == ("invalid_parameter", "messages")
    assert ids(told["sound"]) == answers(make_loop(llava), sound)[0]


def test_a_damaged_image_fails_with_nothing_beside_it(
    llava: Path, tokenizer: ChatTokenizer
) -> None:
    """The step that meets it computes nothing."""
    sound = request(tokenizer, [asked("Sound:", noise(2))], "sound")
    loop, expected = make_loop(llava), answers(make_loop(llava), sound)
    broken = request(tokenizer, [asked("Broken:", noise(1))], "broken")
    (image,) = broken.images
    broken = replace(broken, images=(replace(image, data=image.data[:60], digest="cut"),))
    ran = Mock(wraps=loop.runner.run)
    loop.runner.run = ran  # type: ignore[method-assign]
    told = run(loop, broken)["broken"]
    assert isinstance(told[-1], Failed)
    assert told[-1].message == "messages: an image is damaged"
    assert all(call.args[0] for call in ran.call_args_list)
    assert loop.is_idle
    loop.check()
    assert answers(loop, sound) == expected


def test_a_worker_refuses_a_strip_as_well(llava: Path, tokenizer: ChatTokenizer) -> None:
    """Whoever asks it: the web process has not let it through."""
    one = request(tokenizer, [asked("Narrow:", noise(1))])
    strip = replace(one.images[0], data=noise(1, 1, 1568), digest="strip")
    loop = make_loop(llava)
    failed = run(loop, replace(one, images=(strip,)))["a"][-1]
    assert isinstance(failed, Failed)
    assert (failed.code, failed.param) == ("invalid_parameter", "messages")
    assert "more than 50 times" in failed.message
    assert loop.runner.eyes is not None
    assert not loop.runner.eyes.num_looks


@pytest.mark.parametrize("change", [{"offset": 0}, {"num_ids": 3}, {"num_ids": 10_000}])
def test_an_image_has_the_place_that_it_takes(
    llava: Path, tokenizer: ChatTokenizer, change: dict[str, int]
) -> None:
    one = request(tokenizer, [asked("Here:", noise(1))])
    moved = replace(one, images=(replace(one.images[0], **change),))
    failed = run(make_loop(llava), moved)["a"][-1]
    assert isinstance(failed, Failed)


def test_a_prompt_of_text_goes_the_way_of_text(llava: Path, tokenizer: ChatTokenizer) -> None:
    loop = make_loop(llava)
    one = request(tokenizer, [asked("No picture at all.")])
    assert not one.images
    whole = Whole(llava).greedy(one.prompt_ids, [], NUM_TOKENS)
    read = Mock(wraps=loop.runner.model.forward)
    loop.runner.model.forward = read
    assert answers(loop, one) == [whole]
    assert all("input_ids" in call.kwargs for call in read.call_args_list)


def test_a_model_of_texts_refuses_images(tiny_model: Path, tokenizer: ChatTokenizer) -> None:
    one = request(tokenizer, [asked("Here:", noise(1))])
    known = replace(one, prompt_ids=(5,) * len(one.prompt_ids))
    failed = run(make_loop(tiny_model), known)["a"][-1]
    assert isinstance(failed, Failed)
    assert "texts only" in failed.message
    with pytest.raises(InvalidParameter, match="texts only"):
        ChatTokenizer.load(tiny_model).encode_chat([asked("Here:", noise(1))])


def test_who_would_see_something_else_is_refused(
    llava: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a model would whose rows came in another order than its prompt says."""
    between = Eyes.between

    def upside_down(self: Eyes, *asked: Any) -> list[Seen]:
        return [Seen(places, rows.flip(0)) for places, rows in between(self, *asked)]

    monkeypatch.setattr(Eyes, "between", upside_down)
    with pytest.raises(ModelRefused, match="computes something else of an image"):
        make_loop(llava)


def test_who_makes_other_rows_than_its_files_say_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_seeing_model(tmp_path / "idefics3", "idefics3")
    file = path / "preprocessor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_image_splitting": False}))
    make_loop(path)
    in_tiles = {"max_image_size": {"longest_edge": 28}, "size": {"longest_edge": 84}}
    monkeypatch.setattr("inference.vision.layout.read_processor", lambda path: in_tiles)
    with pytest.raises(ModelRefused, match="does not see"):
        make_loop(path)


def test_it_is_not_split_over_processes(llava: Path) -> None:
    with pytest.raises(ModelRefused, match="not split"):
        load_model("tiny", llava, lambda *_: None, torch.float32, num_ranks=2)


def test_quantized_it_sees_as_well(llava: Path, tokenizer: ChatTokenizer) -> None:
    """Its text layers are, as any model's; what it sees with is not."""
    loop = make_loop(llava, dtype="int8")
    eyes = loop.runner.eyes
    assert eyes is not None
    assert {p.dtype for p in eyes.module.parameters()} == {best_dtype()}
    told = run(loop, request(tokenizer, TALK))["a"]
    assert isinstance(told[-1], Finished)
    assert len(ids(told)) == NUM_TOKENS


def test_asleep_its_eyes_are_on_the_host(llava: Path, tokenizer: ChatTokenizer) -> None:
    loop = make_loop(llava)
    one = request(tokenizer, TALK)
    expected = answers(loop, one)
    eyes = loop.runner.eyes
    assert eyes is not None
    assert loop.sleep() > sum(p.nbytes for p in eyes.module.parameters())
    assert not any(p.numel() for p in eyes.module.parameters())
    loop.wake()
    assert answers(loop, one) == expected


def test_images_that_wait_take_no_more_than_so_many_bytes(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(tokenizer, [asked("Here:", noise(1))])
    monkeypatch.setattr("inference.priority.MOST_IMAGE_BYTES", 3 * wanted.image_bytes)
    loop = make_loop(llava, max_num_sequences=1)
    text = request(tokenizer, [asked("Text.")], "text")
    chore = replace(wanted, request_id="chore", priority="background")
    crowd = [replace(wanted, request_id=str(number)) for number in range(5)]
    told = run(loop, *crowd, text, replace(crowd[0], request_id="replay", is_replay=True), chore)
    refused = {name for name, heard in told.items() if isinstance(heard[-1], Failed)}
    assert refused == {"3", "4", "chore"}


async def test_images_that_wait_for_a_model_that_loads_are_counted(
    llava: Path, tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(tokenizer, [asked("Here:", noise(1))])
    monkeypatch.setattr("inference.priority.MOST_IMAGE_BYTES", 3 * wanted.image_bytes)
    boarding = Boarding([], max_waiting_tokens=100_000)
    flights = [Generation(wanted) for _ in range(4)]
    for flight in flights:
        boarding.add(flight)
    assert not boarding.has_room(flights[-1])
    boarding.remove(flights[0])
    assert boarding.has_room(flights[-1])


async def test_a_killed_worker_is_followed_by_one_that_sees_the_same(
    llava: Path, tokenizer: ChatTokenizer
) -> None:
    one = replace(request(tokenizer, TALK), params=_LONG)
    (expected,) = answers(make_loop(llava), one)
    engine = Engine(engine_config(llava))
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


@pytest.mark.parametrize("model_type", ["qwen2_5_vl", "mistral3"])
def test_other_ways_to_see_are_refused_with_those_that_are_served(
    llava: Path, tmp_path: Path, model_type: str
) -> None:
    for file in llava.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    config = {"model_type": model_type, "architectures": ["OneForConditionalGeneration"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelRefused, match=r"in a way that is not served\..* llava_onevision,"):
        make_loop(tmp_path)

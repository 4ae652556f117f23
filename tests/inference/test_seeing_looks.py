"""Who looks at images when, and who waits for it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from inference import engine_loop
from inference.engine_loop import EngineLoop
from inference.loader import best_dtype
from inference.messages import Finished, Prefill, Update
from inference.tokenizer import ChatTokenizer
from inference.vision.eyes import Eyes
from inference.vision.prompt_images import PromptImage
from inference.waiting import Estimates
from tests.inference.loops import answers, ids, make_loop, run, step
from tests.inference.seeing import TALK, request
from tests.inference.tiny_vision import asked, noise


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

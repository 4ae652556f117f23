"""Who goes next, in how large a step, and what lies together in a batch; by lengths alone."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import Caller, Priority
from inference.encode_messages import EncodeRequest, EncoderInput
from inference.encoder_queue import Due, EncoderQueue, EncoderTask, batches_by_length


def _request(
    name: str,
    *lengths: int,
    user: str | None = None,
    priority: Priority = "api",
    weight: float = 1.0,
) -> EncodeRequest:
    inputs = tuple(EncoderInput(array("i", [3] * length)) for length in lengths)
    caller = Caller(name if user is None else user, weight, priority)
    return EncodeRequest(name, inputs, None, caller)


def _queue(*requests: EncodeRequest, max_tokens: int = 100_000) -> EncoderQueue:
    queue = EncoderQueue(max_tokens)
    for request in requests:
        assert queue.add(request)
    return queue


def _names(due: list[Due]) -> list[str]:
    return [task.request.request_id for task, _ in due]


def test_a_step_takes_what_its_budget_allows() -> None:
    queue = _queue(_request("a", *[10] * 10))
    assert len(queue.take(45)) == 4
    assert len(queue.take(1000)) == 6
    assert queue.take(1000) == []


def test_an_input_longer_than_the_budget_goes_alone() -> None:
    queue = _queue(_request("a", 500, 3))
    assert [task.length(i) for task, i in queue.take(100)] == [500]
    assert [task.length(i) for task, i in queue.take(100)] == [3]


def test_a_query_goes_before_all_chores_and_alone() -> None:
    queue = _queue(_request("index", *[200] * 50, priority="background"))
    queue.take(400)
    assert queue.add(_request("query", 8, priority="interactive"))
    assert _names(queue.take(400)) == ["query"]
    assert _names(queue.take(400)) == ["index"] * 2
    assert _names(queue.take(400, 200)) == ["index"], "who comes next waits for a short step"


def test_within_a_class_nobody_waits_for_a_heavy_user() -> None:
    queue = _queue(_request("heavy", *[100] * 100))
    for _ in range(5):
        queue.take(400)
    assert queue.add(_request("light", 100, 100, user="light"))
    assert queue.add(_request("lighter", 50, user="lighter"))
    assert sorted(_names(queue.take(400))) == ["heavy", "light", "light", "lighter"]


def test_of_two_heavy_users_the_weightier_gets_twice_as_much() -> None:
    queue = _queue(_request("one", *[10] * 100), _request("two", *[10] * 100, weight=2.0))
    names = _names(queue.take(600))
    assert abs(names.count("two") - 2 * names.count("one")) <= 2


def test_of_one_user_the_request_that_ends_first_goes_first() -> None:
    queue = _queue(_request("long", *[10] * 50, user="u"), _request("short", 10, user="u"))
    assert _names(queue.take(20))[0] == "short"


def test_the_queue_is_bounded_in_tokens() -> None:
    queue = _queue(_request("a", 60), max_tokens=100)
    assert not queue.add(_request("b", 50))
    assert queue.add(_request("c", 40))
    queue.take(100)
    assert queue.add(_request("d", 50)), "what is computed waits no more"
    assert _queue(max_tokens=10).add(_request("alone", 500)), "nothing better is there to do"


def test_a_queue_full_of_chores_takes_questions_in() -> None:
    """They go before them: what stands behind takes no room."""
    queue = _queue(_request("index", *[10] * 10, priority="background"), max_tokens=100)
    assert not queue.add(_request("chore", 10, priority="background"))
    assert queue.add(_request("question", 90, priority="interactive"))
    assert queue.add(_request("other", 10, priority="interactive"))
    assert not queue.add(_request("last", 10, priority="interactive"))
    assert not queue.add(_request("program", 10, priority="api"))
    assert _names(queue.take(100)) == ["other", "question"]


def test_a_full_queue_takes_in_what_another_worker_had_accepted() -> None:
    queue = _queue(_request("a", 90), max_tokens=100)
    assert not queue.add(_request("b", 20))
    assert queue.add(replace(_request("b", 20), is_replay=True))


def test_what_was_removed_is_not_computed() -> None:
    queue = _queue(_request("a", 10, 10), _request("b", 10))
    removed = queue.remove("a")
    assert removed is not None
    assert not queue.has(removed)
    assert _names(queue.take(100)) == ["b"]
    assert queue.remove("a") is None


@given(st.lists(st.integers(1, 512), min_size=1, max_size=60))
def test_batches_hold_every_input_once_and_little_padding(lengths: list[int]) -> None:
    task = EncoderTask(_request("a", *lengths), 1)
    batches = list(batches_by_length([(task, i) for i in range(len(lengths))]))
    assert sorted(i for batch in batches for _, i in batch) == list(range(len(lengths)))
    for batch in batches:
        sizes = [task.length(i) for _, i in batch]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) - min(sizes) <= max(16, max(sizes) // 4)


@pytest.mark.parametrize(
    ("lengths", "batches"), [([256, 250, 8, 9], 2), ([3, 8, 19], 1), ([256, 100, 20], 3)]
)
def test_short_inputs_are_not_padded_to_long_ones(lengths: list[int], batches: int) -> None:
    task = EncoderTask(_request("a", *lengths), 1)
    assert len(list(batches_by_length([(task, i) for i in range(len(lengths))]))) == batches

"""How long a model thought, as the answer's end tells it."""

import time

from chat.answer_state import AnswerState
from chat.asking import AnswerRequest
from chat.policies_in_force import NOTHING
from chat.screen import Screen


def state() -> AnswerState:
    request = AnswerRequest("run", "model", [], "user")
    return AnswerState(request, Screen(request, NOTHING))


def test_only_the_time_of_reasoning_counts() -> None:
    answer = state()
    time.sleep(0.5)
    answer.wrote("reasoning")
    time.sleep(0.03)
    answer.wrote("reasoning")
    answer.wrote("text")
    time.sleep(0.5)
    answer.wrote("text")
    timings = answer.finished("stop").timings
    assert 30 <= timings.thinking_ms <= timings.total_ms - 1000


def test_thoughts_between_tools_add_up_and_a_stop_ends_one() -> None:
    answer = state()
    for _ in range(2):
        answer.wrote("reasoning")
        time.sleep(0.03)
        answer.end_thought()
        time.sleep(0.2)
    answer.wrote("reasoning")
    time.sleep(0.03)
    timings = answer.stopped().timings
    assert 90 <= timings.thinking_ms <= timings.total_ms - 400


def test_without_reasoning_there_is_none() -> None:
    answer = state()
    answer.wrote("text")
    assert answer.finished("stop").timings.thinking_ms == 0

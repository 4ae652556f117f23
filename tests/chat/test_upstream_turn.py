"""What another server is asked for in a turn that goes on."""

import pytest

from chat.answer_state import AnswerState
from chat.asking import AnswerRequest, Control, Sampling
from chat.events import Delta, LogEvent, Resumed, Started
from chat.policies_in_force import NOTHING
from chat.screen import Screen
from chat.upstream_turn import UpstreamTurn
from inference import about_tokens

BEFORE: list[LogEvent] = [Started("far", "", 0, 0), Delta("Another turn. ", 0)]
BEGUN: list[LogEvent] = [Started("far", "", 0, 1), Delta("long " * 40, 0)]
OWN: list[LogEvent] = [Delta("and more", 200), Delta(" of it", 208), Resumed()]


@pytest.mark.parametrize(
    ("earlier", "num_brought", "said"),
    [
        ([], 0, ""),
        (BEGUN, 4, ""),  # somebody goes on with an answer that was cut
        ([*BEGUN, *OWN], 4, "and more of it"),
        ([*BEGUN, *OWN], 0, "long " * 40 + "and more of it"),
    ],
)
def test_max_tokens_are_less_what_this_answer_said_before_a_crash(
    earlier: list[LogEvent], num_brought: int, said: str
) -> None:
    events = (*BEFORE, *earlier) if earlier else ()
    request = AnswerRequest(
        *("run", "far", [], "1"),
        sampling=Sampling(max_tokens=100),
        events=events,
        num_brought=num_brought,
    )
    turn = UpstreamTurn(AnswerState(request, Screen(request, NOTHING)), Control(), earlier)
    turn.log(Delta("new words", 300))
    assert turn._options()["max_tokens"] == 100 - about_tokens(said)

"""What crosses between processes arrives as it was sent."""

import pickle
from array import array
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass, is_dataclass, replace

import pytest

from inference import encode_messages, messages
from inference.encode_messages import Caller, Encoded, EncodeRequest, EncoderInput
from inference.messages import (
    EngineStats,
    Finished,
    GenerateRequest,
    Prefill,
    Queued,
    SamplingParams,
    StepFrame,
    Submit,
    Timings,
    TokenLogprob,
    Tokens,
    Usage,
)
from inference.pickling import pickled_by_fields

PARAMS = SamplingParams(max_tokens=5, stop=("\n",), logit_bias=((3, -1.5),), grammar="{}")
REQUEST = GenerateRequest("r.0", "small", (1, 2), PARAMS, user="7", priority="api")
LOGPROB = TokenLogprob(3, -0.25, ((3, -0.25), (4, -2.0)))
SENT = [
    PARAMS,
    Submit(REQUEST),
    Queued(3, 1.5),
    Prefill(1, 8, 4),
    LOGPROB,
    StepFrame(
        (
            ("r.0", Tokens("né", (3, 4), 2, 50.0, (LOGPROB,))),
            ("r.0", Finished("stop", Usage(2, 0, 2), Timings())),
        ),
        EngineStats(num_running=2, step_ms=1.25),
    ),
    Caller("7"),
    EncodeRequest("e", (EncoderInput((5, 6)),)),
    Encoded(array("f", [0.5, 0.25]), 2),
]


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: type(sent).__name__)
def test_a_value_arrives_as_it_was_sent(sent: object) -> None:
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        found = pickle.loads(pickle.dumps(sent, protocol))
        assert type(found) is type(sent)
        assert found == sent
    assert deepcopy(sent) == sent


def test_what_comes_with_every_token_is_pickled_by_its_fields() -> None:
    for one in (Tokens, TokenLogprob, StepFrame, EngineStats, SamplingParams, GenerateRequest):
        assert is_dataclass(one)
        assert one.__reduce__ is not object.__reduce__
    assert {Tokens.__module__, Encoded.__module__} == {
        messages.__name__,
        encode_messages.__name__,
    }


def test_a_single_field_and_a_frozen_one() -> None:
    assert pickle.loads(pickle.dumps(One((1, 2)))) == One((1, 2))
    with pytest.raises(FrozenInstanceError):
        pickle.loads(pickle.dumps(One((1,)))).values = ()
    assert replace(One((1,)), values=(2,)) == One((2,))


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class One:
    values: tuple[int, ...]

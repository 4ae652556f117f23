"""Which request is blamed for the deaths of workers."""

from dataclasses import replace

from inference import Caller, Finished, GenerateRequest, SamplingParams, Tokens
from inference.encode_messages import EncodeRequest, EncoderInput
from inference.flights import Encoding, Flight, Generation, lose_worker
from inference.vision.prompt_images import PromptImage, digest_of


def generation(name: str) -> Generation:
    return Generation(GenerateRequest(name, "tiny", (5, 6, 7), SamplingParams(max_tokens=100)))


def encoding(name: str) -> Encoding:
    return Encoding(EncodeRequest(name, (EncoderInput((5, 6), b""),), None, Caller()))


def test_prompts_with_two_images_are_no_siblings() -> None:
    """Nor is one sent to where the other was read."""
    images = [PromptImage(1, 2, digest_of(data), data) for data in (b"one", b"other", b"one")]
    one, other, same = (
        Generation(replace(generation("a").request, images=(image,))) for image in images
    )
    assert one.prompt == same.prompt != other.prompt
    assert one.prompt[-1][0] == 5
    assert min(one.prompt[-1]) < 0  # no token of any model
    assert one.token_ids == one.prompt[-1]
    assert one.as_sent().prompt_ids == (5, 6, 7)


def deaths(*flights: Flight) -> list[int]:
    return [flight.num_deaths for flight in flights]


def test_all_that_were_on_board_may_be_the_cause_once() -> None:
    flights = generation("a"), generation("b"), encoding("c")
    lose_worker(flights)
    assert deaths(*flights) == [1, 1, 1]
    assert all(flight.is_suspect for flight in flights)


def test_who_has_gone_on_since_is_not_blamed_beside_a_suspect() -> None:
    cause, other, newcomer = generation("cause"), generation("other"), generation("newcomer")
    lose_worker([cause, other])
    other.hear(Tokens("x", (9,), 1, 0.0))
    assert not other.is_suspect
    lose_worker([other, cause, newcomer])
    assert deaths(cause, other, newcomer) == [2, 1, 1]
    assert other.is_suspect, "it comes alone among suspects once more"
    lose_worker([other])
    assert other.num_deaths == 2


def test_the_next_worker_is_told_that_one_had_accepted_it() -> None:
    for flight in (generation("a"), encoding("b")):
        assert not flight.as_sent().is_replay
        lose_worker([flight])
        assert flight.as_sent().is_replay


def test_an_abort_between_two_workers_counts_what_was_written_before_a_restart_too() -> None:
    request = GenerateRequest("a", "tiny", (5, 6, 7), SamplingParams(max_tokens=9), (1, 2))
    flight = Generation(request)
    flight.hear(Tokens("x", (9,), 1, 0.0))
    lose_worker([flight])
    flight.hear_aborted()
    (*_, end) = [flight._updates.get_nowait() for _ in range(flight._updates.qsize())]
    assert isinstance(end, Finished)
    assert end.usage.completion_tokens == 3


def test_who_has_gone_on_starts_without_blame() -> None:
    """A cause was found beside it; hours later another worker dies, and nobody is suspected."""
    cause, other = generation("cause"), generation("other")
    lose_worker([cause, other])
    other.hear(Tokens("x", (9,), 1, 0.0))
    lose_worker([cause, other])
    assert cause.is_lost
    other.hear(Tokens("x", (9,), 1, 0.0))
    lose_worker([other])
    assert not other.is_lost
    lose_worker([other])
    assert other.is_lost, "it did not go on"


def test_who_goes_on_and_kills_each_time_is_failed_at_last() -> None:
    flight = generation("a")
    for num_deaths in range(1, 7):
        assert not flight.is_lost
        flight.hear(Tokens("x", (9,), 1, 0.0))
        lose_worker([flight])
        assert flight.num_deaths == num_deaths
    assert flight.is_lost


def test_an_encoding_is_failed_at_the_second_death() -> None:
    flight = encoding("a")
    lose_worker([flight])
    assert not flight.is_lost
    lose_worker([flight])
    assert flight.is_lost

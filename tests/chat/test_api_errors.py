"""Every kind of engine error has the status that tells a client whose turn it is."""

from collections.abc import Iterator

import pytest

from chat.api_errors import error_body, status_of
from inference import EngineError, Overloaded, RequestError, SoundTooLong, UnknownSound


def _kinds(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for smaller in kind.__subclasses__():
        yield from _kinds(smaller)


@pytest.mark.parametrize("kind", list(_kinds(RequestError)))
def test_a_wrong_request_is_the_clients_to_mend(kind: type[EngineError]) -> None:
    own = {UnknownSound.code: 415, SoundTooLong.code: 413}
    assert status_of(kind.code) == own.get(kind.code, 400)
    assert error_body(400, kind.code, "No.")["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("code", [Overloaded.code, "engine_closed", "worker_died"])
def test_what_passes_is_worth_another_try(code: str) -> None:
    assert status_of(code) == 503  # OpenAI's client tries these again by itself


def test_what_nobody_foresaw_is_the_servers_fault() -> None:
    assert status_of("never heard of") == 500

"""OpenAI's /audio/speech: text there, sound back, as it comes."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx2

from inference.sound import SpeechRequest
from inference.upstreams import openai_chat, problems
from inference.upstreams.client import beginning_of
from inference.upstreams.one_answer import one_answer
from inference.upstreams.problems import Problem
from inference.upstreams.replicas import Replica
from inference.upstreams.upstream import Upstream

MAX_SOUND_BYTES = 64 * 2**20


@dataclass(slots=True)
class _Begun:
    """An answer that has begun: its first piece is there. `stack` closes it."""

    replica: Replica
    stack: AsyncExitStack
    first: bytes
    rest: AsyncGenerator[bytes, None]


async def speak(upstream: Upstream, request: SpeechRequest) -> AsyncGenerator[bytes, None]:
    """The sound in pieces. Raises EngineError: until the first piece is there nothing has been said, so
    that others may be asked; behind it what breaks off has broken off. Leaving it early hangs up."""
    spec = upstream.upstream

    async def send(replica: Replica, client: httpx2.AsyncClient) -> _Begun:
        async with AsyncExitStack() as stack:
            address, headers = f"{replica.url}/audio/speech", openai_chat.headers(spec)
            body = _body(spec.model, request, spec.voice)
            sending = client.stream("POST", address, headers=headers, json=body)
            response = await stack.enter_async_context(sending)
            if response.status_code != 200:
                said = await beginning_of(response)
                told = (replica.host, response.status_code, response.headers.get("retry-after"))
                raise problems.of_response(*told, said, spec.api_key)
            pieces = _pieces(response)
            first = await anext(pieces, b"")
            kind = response.headers.get("content-type", "")
            if not first or kind.startswith(("text/", "application/json")):
                raise problems.not_understood(replica.host)
            return _Begun(replica, stack.pop_all(), first, pieces)

    begun = await one_answer(upstream, send)
    begun.replica.num_running += 1
    try:
        async with begun.stack:
            num_bytes = len(begun.first)
            yield begun.first
            async for piece in begun.rest:
                num_bytes += len(piece)
                if num_bytes > MAX_SOUND_BYTES:
                    raise problems.down(begun.replica.host, "does not stop").failed.as_error()
                yield piece
    except (TimeoutError, httpx2.HTTPError) as error:
        begun.replica.failed()
        broken = problems.down(begun.replica.host, f"broke off ({type(error).__name__})")
        raise broken.failed.as_error() from None
    except Problem as problem:
        raise problem.failed.as_error() from None
    finally:
        begun.replica.num_running -= 1
        upstream.tell_if_changed()


async def _pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    async for piece in response.aiter_bytes():
        if piece:
            yield piece


def _body(model: str, request: SpeechRequest, usual_voice: str) -> dict[str, object]:
    """Only what was asked for: not every server knows all."""
    body: dict[str, object] = {
        "model": model,
        "input": request.text,
        "voice": request.voice or usual_voice,
        "response_format": request.form,
    }
    if request.speed != 1.0:
        body["speed"] = request.speed
    if request.instructions:
        body["instructions"] = request.instructions
    return body

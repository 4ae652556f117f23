"""Streams whose first token is long in coming: another server thinks, or a model is loaded."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from chat import openai_stream
from chat.anthropic_messages import Message
from chat.asking import AnswerRequest
from chat.errors import TooManyRuns
from chat.events import Delta, Event, Failed, Finished, Phase, RunUsage
from chat.openai_asking import Asked
from chat.openai_completion import ChatCompletion
from chat.openai_responses import Response
from chat.openai_schemas import ChatCompletionIn
from chat.openai_stream import Numbered, opened
from chat.openai_text import TextCompletion, TextCompletionIn
from chat.responses_schemas import ResponseIn
from chat.rights import Rights
from chat.streaming import ClosingStream
from inference import ChatTokenizer
from inference.builtin import MODEL_DIR
from webapp import keep_alive
from webapp.keep_alive import COMMENT, KeepAlive

SILENCE_S = 0.1
ASKED = Phase("asking", detail="far", done=5, total=5)
SAID = [Delta("Hello", 0), Finished("stop", RunUsage(5, 0, 1))]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep_alive, "SILENCE_S", SILENCE_S)
    monkeypatch.setattr(openai_stream, "PATIENCE_S", SILENCE_S)


class Answers:
    """What comes of an answer, behind a silence."""

    def __init__(self, *events: Event | BaseException, silence_s: float = 3 * SILENCE_S) -> None:
        self.coming, self.silence_s = events, silence_s
        self.is_closed = False

    async def events(self) -> AsyncGenerator[Numbered, None]:
        try:
            yield 0, ASKED
            await asyncio.sleep(self.silence_s)
            for event in self.coming:
                if isinstance(event, BaseException):
                    raise event
                yield 0, event
        finally:
            self.is_closed = True


HELLO: Any = {"role": "user", "content": "Hello"}
RIGHTS = cast(Rights, None)  # nothing is asked for


def _asked() -> Asked:
    return Asked(RIGHTS, AnswerRequest("a1", "far", [], "1"), None)


def _chat() -> Any:
    return ChatCompletion(ChatCompletionIn(model="far", messages=[HELLO]), _asked())


def _text(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(TextCompletion, "_request", lambda *_: AnswerRequest("a1", "far", [], "1"))
    data = TextCompletionIn(model="far", prompt="Hello")
    return TextCompletion(RIGHTS, data, ChatTokenizer.load(MODEL_DIR), [(1,)])


def _response() -> Any:
    data = ResponseIn(model="far", input="Hello", store=False)
    return Response(data, None, _asked())


def _message() -> Any:
    return Message(_asked())


DIALECTS = ["chat", "text", "response", "message"]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """One call whose events are those of the answers."""

    def made(dialect: str, answers: Answers) -> Any:
        kinds: dict[str, Callable[[], Any]] = {
            "chat": _chat,
            "text": lambda: _text(monkeypatch),
            "response": _response,
            "message": _message,
        }
        call = kinds[dialect]()
        name = "events" if dialect in ("chat", "text") else "_events"
        monkeypatch.setattr(call, name, answers.events)
        return call

    return made


async def sent(call: Any) -> list[bytes]:
    """What goes out to its reader."""
    bodies: list[bytes] = []

    async def send(message: Any) -> None:
        bodies.append(message.get("body", b"begun"))

    async def application(scope: Any, receive: Any, send: Any) -> None:
        response: ClosingStream = await call.streamed()
        headers = [(b"content-type", response["Content-Type"].encode())]
        status = response.status_code
        await send({"type": "http.response.start", "status": status, "headers": headers})
        async for piece in response:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await KeepAlive(application)({"type": "http"}, cast(Any, None), send)
    return bodies


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_reader_hears_of_a_stream_before_its_first_token(
    make: Callable[..., Any], dialect: str
) -> None:
    answers = Answers(*SAID)
    bodies = await sent(make(dialect, answers))
    whole = [b"Hello" in body for body in bodies]
    assert bodies[0] == b"begun"
    assert COMMENT in bodies[: whole.index(True)]
    assert answers.is_closed


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_fails_early_is_a_status_and_what_fails_late_an_event(
    make: Callable[..., Any], dialect: str
) -> None:
    gone = Failed("upstream_unavailable", "It is gone.", 5.0)
    soon = make(dialect, Answers(gone, silence_s=0))
    assert (await soon.streamed()).status_code == 503
    late = make(dialect, Answers(gone))
    response = await late.streamed()
    assert response.status_code == 200
    assert "It is gone." in b"".join([piece async for piece in response]).decode()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_raised_late_is_an_event_as_well(
    make: Callable[..., Any], dialect: str
) -> None:
    response = await make(dialect, Answers(TooManyRuns(2))).streamed()
    assert str(TooManyRuns(2)) in b"".join([piece async for piece in response]).decode()
    with pytest.raises(TooManyRuns):
        await make(dialect, Answers(TooManyRuns(2), silence_s=0)).streamed()


async def test_a_caller_who_leaves_while_nothing_comes_ends_the_answer() -> None:
    answers = Answers(*SAID, silence_s=60)
    waiting = asyncio.create_task(opened(answers.events()))
    await asyncio.sleep(SILENCE_S / 2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert answers.is_closed


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_reader_who_leaves_before_the_first_token_ends_the_answer(
    make: Callable[..., Any], dialect: str
) -> None:
    answers = Answers(*SAID, silence_s=60)
    response = await make(dialect, answers).streamed()

    async def read() -> None:
        async for _ in response:
            pass

    reading = asyncio.create_task(read())
    await asyncio.sleep(SILENCE_S / 2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert answers.is_closed


READ = Phase("prefill", done=5, total=5)


async def test_what_is_said_at_once_goes_with_the_beginning(make: Callable[..., Any]) -> None:
    response = await make(DIALECTS[0], Answers(READ, *SAID, silence_s=0)).streamed()
    first = await anext(aiter(response))
    assert first.count(b"data: ") == 2
    assert b'"role"' in first
    assert b"Hello" in first


async def test_nor_does_a_beginning_wait_for_what_is_said(make: Callable[..., Any]) -> None:
    class Slowly(Answers):
        async def events(self) -> AsyncGenerator[Numbered, None]:
            yield 0, READ
            async for event in super().events():
                yield event

    response = await make(DIALECTS[0], Slowly(*SAID)).streamed()
    pieces = [piece async for piece in response]
    assert pieces[0].count(b"data: ") == 1
    assert b'"role"' in pieces[0]
    assert sum(piece.count(b"Hello") for piece in pieces) == 1


async def test_a_cancelled_answer_keeps_nobody_waiting(make: Callable[..., Any]) -> None:
    """Whatever it was within that has been cancelled."""
    response = await make(DIALECTS[0], Answers(asyncio.CancelledError())).streamed()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            [piece async for piece in response]


async def test_what_fails_behind_a_beginning_fails(make: Callable[..., Any]) -> None:
    response = await make(DIALECTS[0], Answers(READ, TooManyRuns(2), silence_s=0)).streamed()
    with pytest.raises(TooManyRuns):
        [piece async for piece in response]

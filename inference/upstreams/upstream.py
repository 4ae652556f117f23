"""One model that other servers run: asked, heard, asked again elsewhere, stopped."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from random import uniform
from time import monotonic
from typing import Any

import httpx2

from inference.catalog import ModelSpec, ModelState
from inference.errors import EngineError
from inference.messages import Failed, Finished, Timings, Usage
from inference.parsing import Text
from inference.upstreams import anthropic_messages, openai_chat, problems
from inference.upstreams.client import beginning_of, new_client
from inference.upstreams.estimates import about_prompt_tokens, about_tokens, text_of
from inference.upstreams.events import MAX_ANSWER_BYTES, events_of
from inference.upstreams.messages import Asked, ChatRequest, Said, UpstreamUpdate
from inference.upstreams.problems import Problem
from inference.upstreams.replicas import NoneLeft, Replica, Replicas
from inference.upstreams.spec import UpstreamSpec
from inference.upstreams.together import Together
from inference.upstreams.wire import Continued, Reader

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 4
MAX_WAIT_S = 5.0  # for servers that rest; who would wait longer hears when to come back
MAX_PINGED = 5  # silences: so long a server that only says that it lives is waited for
# What reading an answer raises that is not as it should be: deep, of other types, without a field.
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
_READERS: dict[str, Callable[[str, str], Reader]] = {
    "openai": openai_chat.OpenAIReader,
    "anthropic": anthropic_messages.AnthropicReader,
}
_PROTOCOLS = {"openai": openai_chat, "anthropic": anthropic_messages}


@dataclass(slots=True, eq=False)
class _Flight:
    """A request on its way. `text` is what it has said for the reader, `written` all that it has, by
    whichever server, and `said` whether anything. `reader` hears the server that was asked last; None:
    nothing has been sent to any. `is_heard`: that server has answered, and its replica knows.
    `asks_for_usage`: it was asked to count."""

    request: ChatRequest
    reader: Reader | None = None
    is_heard: bool = False
    asks_for_usage: bool = False
    updates: "asyncio.Queue[UpstreamUpdate]" = field(default_factory=asyncio.Queue)
    since_s: float = field(default_factory=monotonic)
    first_s: float | None = None
    aborted_s: float | None = None
    text: str = ""
    written: list[str] = field(default_factory=list)
    said: bool = False
    said_only_text: bool = True
    ended: bool = False

    def hear(self, update: UpstreamUpdate) -> None:
        self.ended = self.ended or isinstance(update, Finished | Failed)
        if isinstance(update, Said):
            self.first_s = self.first_s or monotonic()
            self.said = True
            for segment in update.segments:
                self.written.append(text_of(segment))
                if isinstance(segment, Text):
                    self.text += segment.text
                else:
                    self.said_only_text = False
        self.updates.put_nowait(update)

    def hear_from(self, replica: Replica) -> None:
        """The server speaks: who waits for its trial need not wait for the end. Once an answer, for
        what others have heard of the server since is newer."""
        if not self.is_heard:
            self.is_heard = True
            replica.succeeded()

    def hear_end_of(self, task: "asyncio.Task[None]") -> None:
        """The task is over, in whatever way, and somebody may wait for a word: a callback, because a
        task that is cancelled before its first step runs none of its own code."""
        if self.ended:
            return
        if task.cancelled():
            self.hear(Finished("abort", self.usage(), self.timings()))
            return
        match task.exception():
            case EngineError() as error:
                self.hear(Failed.of(error))
            case error:
                logger.error("asking another server failed", exc_info=error)
                self.hear(Failed(problems.REFUSED, "The request to another server failed."))

    def usage(self) -> Usage:
        """As the server has told so far; what it has not told, about."""
        if self.reader is None:
            return Usage()
        told = self.reader.usage
        completion = told.completion_tokens
        if self.reader.reason is None or not completion:
            # Before its end a server tells of the first token at most.
            completion = max(completion, about_tokens(*self.written))
        prompt = told.prompt_tokens or about_prompt_tokens(self.request)
        return Usage(prompt, told.cached_tokens, completion)

    def timings(self) -> Timings:
        now_s = monotonic()
        first_s = self.first_s or now_s
        return Timings(
            ttft_ms=(first_s - self.since_s) * 1e3,
            decode_ms=(now_s - first_s) * 1e3,
            stop_ms=0.0 if self.aborted_s is None else (now_s - self.aborted_s) * 1e3,
        )


def _left(options: dict[str, Any], num_said: int) -> dict[str, Any]:
    """The options for the rest of an answer that has so many tokens."""
    if "max_tokens" not in options:
        return options
    return {**options, "max_tokens": max(0, options["max_tokens"] - num_said)}


def _has_written(reader: Reader) -> bool:
    """Whether the model has, though nothing is to be seen: hidden thoughts, or a stop string at once."""
    is_cut = reader.reason in ("length", "content_filter") or reader.stop is not None
    return is_cut or reader.usage.completion_tokens > 0


class Upstream:
    """Lives on one event loop. Neither loads nor starts anything until it is asked.

    `takes_response_format`: no server has refused to be told how pictures are to come.
    """

    revision = ""  # no server tells which weights answer

    def __init__(
        self, spec: ModelSpec, upstream: UpstreamSpec, changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.upstream = upstream
        self.replicas = Replicas(upstream.urls)
        self._changed = changed
        self._was_resting = False
        self._asks_for_usage = True
        self.takes_response_format = True
        self._rest_timer: asyncio.TimerHandle | None = None
        self._client: httpx2.AsyncClient | None = None
        self._flights: dict[_Flight, asyncio.Task[None]] = {}

    @property
    def max_context_tokens(self) -> int | None:
        """As it was configured, or the server has told."""
        return self.upstream.context_tokens

    def as_state(self, *, is_default: bool) -> ModelState:
        """Ready, as far as is known; failed while all its servers rest."""
        is_failed = self.replicas.are_resting
        return ModelState(
            spec=self.spec,
            state="failed" if is_failed else "ready",
            is_default=is_default,
            detail=f"{self.upstream.hosts} does not answer." if is_failed else "",
            progress=0.0 if is_failed else 1.0,
            max_context_tokens=self.max_context_tokens,
            has_tools=self.upstream.has_tools,
            sees_images=self.upstream.sees_images,
        )

    def try_again(self) -> None:
        self.replicas.try_again()
        self.tell_if_changed()

    async def close(self) -> None:
        tasks = list(self._flights.values())
        for flight, task in self._flights.items():
            flight.hear(Failed("engine_closed", "The engine was shut down."))
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._cancel_rest_timer()
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[UpstreamUpdate, None]:
        """The updates of one request; ends after `Finished` or `Failed`. Leaving it early hangs up."""
        flight = _Flight(request)
        task = asyncio.create_task(
            self._ask_until_answered(flight), name=f"upstream {self.spec.name}"
        )
        task.add_done_callback(flight.hear_end_of)
        self._flights[flight] = task
        try:
            while True:
                update = await flight.updates.get()
                yield update
                if isinstance(update, Finished | Failed):
                    return
        finally:
            del self._flights[flight]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def abort(self, request_id: str) -> None:
        """Hang up; `Finished("abort")` comes once the connection is closed."""
        for flight, task in self._flights.items():
            if flight.request.request_id == request_id and flight.aborted_s is None:
                flight.aborted_s = monotonic()
                task.cancel()

    # --- one request ----------------------------------------------------------------------------

    async def _ask_until_answered(self, flight: _Flight) -> None:
        """Ask one server after the other, as long as that may help and nothing is said twice."""
        message = f"{self.upstream.hosts} does not answer."
        failed = Failed(problems.UNAVAILABLE, message)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                with self.replicas.chosen() as replica:
                    flight.hear(Asked(replica.host))
                    await self._ask(replica, flight)
                return
            except NoneLeft as none_left:
                wait_s = none_left.retry_after_s
                failed = replace(failed, retry_after_s=wait_s)
                can_help = wait_s <= MAX_WAIT_S
                must_wait = True
            except Problem as problem:
                wait_s = uniform(0.5, 1.0) * 0.25 * 2**attempt  # noqa: S311  spreads the retries
                failed = problem.failed
                can_help = problem.kind != "refused"
                must_wait = len(self.replicas.all) == 1 or self.replicas.are_resting
                if self._can_do_without_usage(flight, problem):
                    can_help, must_wait = True, False
            finally:
                self.tell_if_changed()
            if attempt == MAX_ATTEMPTS or not can_help or not self._may_go_on(flight):
                flight.hear(failed)
                return
            if must_wait:
                await asyncio.sleep(wait_s)

    def _may_go_on(self, flight: _Flight) -> bool:
        """Whether asking again repeats nothing that was shown."""
        return not flight.said or (bool(self.upstream.continues) and flight.said_only_text)

    def _can_do_without_usage(self, flight: _Flight, problem: Problem) -> bool:
        """Whether a request was refused for what asks for its counts, which none does from then on:
        Mistral's API takes nothing that it does not know."""
        if problem.kind != "refused" or "stream_options" not in problem.failed.message:
            return False
        self._asks_for_usage = False
        return flight.asks_for_usage  # others may have been on their way

    async def _ask(self, replica: Replica, flight: _Flight) -> None:
        """One server's answer. Raises Problem, and has told the replica of it."""
        flight.is_heard = False
        try:
            await self._hear_out(replica, flight)
        except httpx2.SSEError:
            problem = problems.not_understood(replica.host)
        except (TimeoutError, httpx2.TimeoutException):
            problem = problems.down(replica.host, "was silent for too long")
        except httpx2.HTTPError as error:
            how = "broke off" if flight.said else "cannot be reached"
            problem = problems.down(replica.host, f"{how} ({type(error).__name__})")
        except Problem as known:
            problem = known
        except MALFORMED:
            problem = problems.not_understood(replica.host)
        else:
            return  # it has succeeded with its first word
        match problem.kind:
            case "down":
                replica.failed()
            case "busy":
                replica.is_busy_for(problem.failed.retry_after_s or 1.0)
            case "refused":
                flight.hear_from(replica)
        if not flight.said:
            flight.reader = None  # it has read nothing
        raise problem

    async def _hear_out(self, replica: Replica, flight: _Flight) -> None:
        protocol = _PROTOCOLS[self.upstream.protocol]
        reader = _READERS[self.upstream.protocol](replica.host, self.upstream.api_key)
        request = flight.request
        begun = request.begun + flight.text
        if begun:
            num_said = about_tokens(flight.text)
            request = replace(request, begun=begun, options=_left(request.options, num_said))
            reader = Continued(reader, begun, num_said)
        flight.reader = reader
        if begun and request.options.get("max_tokens") == 0:
            flight.hear(Finished("length", flight.usage(), flight.timings()))
            return
        body = protocol.body(self.upstream, replica.url, request)
        if not self._asks_for_usage:
            body.pop("stream_options", None)
        flight.asks_for_usage = "stream_options" in body
        async with self.http().stream(
            "POST",
            protocol.address(replica.url),
            headers=protocol.headers(self.upstream),
            json=body,
        ) as response:
            if response.status_code != 200:
                error = await beginning_of(response)
                retry_after = response.headers.get("retry-after")
                raise problems.of_response(
                    *(replica.host, response.status_code, retry_after, error),
                    self.upstream.api_key,
                )
            await self._read(response, reader, flight, replica)

    async def _read_events(
        self,
        response: httpx2.Response,
        reader: Reader,
        flight: _Flight,
        replica: Replica,
        together: Together,
    ) -> None:
        num_bytes = 0
        events = events_of(response)
        # The client's own limit starts anew at each byte, so comments alone would hold for ever.
        most_s = MAX_PINGED * self.upstream.timeout_s
        silence = asyncio.timeout(most_s)
        async with silence, aclosing(events):
            async for event in events:
                if not event.data.strip():
                    continue  # `retry: 3000`, `id: 1` or a ping: for clients that connect again
                silence.reschedule(asyncio.get_running_loop().time() + most_s)
                segments = reader.read(event.event, event.data)
                flight.hear_from(replica)
                together.say(segments)
                num_bytes += len(event.data)
                if num_bytes > MAX_ANSWER_BYTES:
                    message = f"{replica.host} does not stop."
                    raise Problem("refused", Failed(problems.REFUSED, message))
                if reader.is_over:
                    return

    async def _read(
        self, response: httpx2.Response, reader: Reader, flight: _Flight, replica: Replica
    ) -> None:
        host = replica.host
        try:
            with Together(flight.hear, lambda: len(self._flights)) as together:
                await self._read_events(response, reader, flight, replica, together)
        except (TimeoutError, httpx2.HTTPError, *MALFORMED):
            if reader.reason is None:
                raise  # else it only hung up without a goodbye, or with one that nobody understands
        if reader.reason is None:
            raise problems.down(host, "broke off")
        if segments := reader.finish():
            flight.hear(Said(tuple(segments)))
        if not (flight.said or flight.request.begun or _has_written(reader)):
            raise Problem("refused", Failed(problems.REFUSED, f"{host} ended without an answer."))
        asked = flight.request.options.get("stop") or ()
        stop = reader.stop if reader.stop in asked else None
        flight.hear(Finished(reader.reason, flight.usage(), flight.timings(), stop))

    def http(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = new_client(self.upstream.timeout_s)
        return self._client

    def tell_if_changed(self) -> None:
        is_resting = self.replicas.are_resting
        self._cancel_rest_timer()
        if is_resting:
            rest_s = self.replicas.rest_s + 0.01
            loop = asyncio.get_running_loop()
            self._rest_timer = loop.call_later(rest_s, self.tell_if_changed)
        if is_resting != self._was_resting:
            self._was_resting = is_resting
            self._changed()

    def _cancel_rest_timer(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

"""What another server answers at once, and not as a chat: asked again where that may help."""

import asyncio
from collections.abc import Awaitable, Callable
from random import uniform
from typing import TypeVar

import httpx2

from inference.messages import Failed
from inference.upstreams import problems
from inference.upstreams.problems import Problem
from inference.upstreams.replicas import NoneLeft, Replica
from inference.upstreams.upstream import MALFORMED, MAX_ATTEMPTS, MAX_WAIT_S, Upstream

T = TypeVar("T")
Send = Callable[[Replica, httpx2.AsyncClient], Awaitable[T]]


async def one_answer(upstream: Upstream, send: Send[T]) -> T:
    """What `send` brings of a server, by the rules of chats (`Upstream.chat`): nothing has been said
    until all has. Raises EngineError, whose words quote no key."""
    failed = Failed(problems.UNAVAILABLE, f"{upstream.upstream.hosts} does not answer.")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with upstream.replicas.chosen() as replica:
                return await _ask(replica, upstream, send)
        except NoneLeft as none_left:
            wait_s, can_help, must_wait = none_left.retry_after_s, True, True
            failed = Failed(failed.code, failed.message, retry_after_s=wait_s)
            can_help = wait_s <= MAX_WAIT_S
        except Problem as problem:
            wait_s = uniform(0.5, 1.0) * 0.25 * 2**attempt  # noqa: S311  spreads the retries
            failed, can_help = problem.failed, problem.kind != "refused" and not problem.is_final
            must_wait = len(upstream.replicas.all) == 1 or upstream.replicas.are_resting
        finally:
            upstream.tell_if_changed()
        if attempt == MAX_ATTEMPTS or not can_help:
            break
        if must_wait:
            await asyncio.sleep(wait_s)
    raise failed.as_error()


async def _ask(replica: Replica, upstream: Upstream, send: Send[T]) -> T:
    """Raises Problem, and has told the replica of it."""
    try:
        answer = await send(replica, upstream.http())
    except (TimeoutError, httpx2.TimeoutException):
        problem = problems.down(replica.host, "was silent for too long")
    except httpx2.HTTPError as error:
        problem = problems.down(replica.host, f"cannot be reached ({type(error).__name__})")
    except Problem as known:
        problem = known
    except MALFORMED:
        problem = problems.not_understood(replica.host)
    else:
        replica.succeeded()
        return answer
    match problem.kind:
        case "down":
            replica.failed()
        case "busy":
            replica.is_busy_for(problem.failed.retry_after_s or 1.0)
        case "refused":
            replica.succeeded()
    raise problem

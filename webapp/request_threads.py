"""The thread of a request, in which its synchronous code runs: borrowed when it is first needed.

asgiref starts a thread for each request that needs one, which each does at its end to be closed, and
another that waits for the first to end. A start stops the event loop until the new thread has got
Python's lock: one millisecond on a quick machine, and nobody's token moves meanwhile.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

P = ParamSpec("P")
T = TypeVar("T")

MAX_IDLE = 16
_idle: list[ThreadPoolExecutor] = []  # of one thread each; the event loop alone takes and gives


class RequestThread(ThreadSensitiveContext):
    """Within, thread-sensitive code has one thread for itself, which nobody else has meanwhile.

    asgiref's own way to bring an executor is closed to tasks that outlive their request; here they get
    a thread of their own, as they would without us.
    """

    async def __aenter__(self) -> "RequestThread":
        await super().__aenter__()  # type: ignore[no-untyped-call]
        if self.token is not None:
            SyncToAsync.context_to_thread_executor[self] = _Borrowed()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: Any) -> None:
        if self.token is None:
            return
        borrowed = cast(_Borrowed, SyncToAsync.context_to_thread_executor.pop(self))
        SyncToAsync.thread_sensitive_context.reset(self.token)
        self.token = None
        # What ends by an exception may not have closed what it had open in its thread.
        await borrowed.give_back(is_clean=kind is None)


def has_thread() -> bool:
    """Whether anything of this request has run in its thread, or we are outside of a request."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is None:
        return True
    executor = SyncToAsync.context_to_thread_executor.get(context)
    return executor is not None and getattr(executor, "is_used", True)


def end_without_thread() -> None:
    """The response is sent. What a request needs a thread for then is to close it, which for one that
    needed none before is no work at all: sixty threads would be started to find that out."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    executor = SyncToAsync.context_to_thread_executor.get(context) if context else None
    if isinstance(executor, _Borrowed):
        executor.needs_no_thread()


def _done_here(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(fn(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    # asgiref tells its threads so which loop has sent them; the loop's own thread is none of them.
    vars(SyncToAsync.threadlocal).clear()
    return future


class _Borrowed(Executor):
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._unfinished: list[Future[Any]] = []
        self._is_clean = True
        self._is_ending = False
        self._task = asyncio.current_task()  # which sees to the end of the request

    @property
    def is_used(self) -> bool:
        return self._thread is not None

    def needs_no_thread(self) -> None:
        """What comes is the end of a request that had none: nothing is open that a thread holds."""
        self._is_ending = True

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._thread is None and self._is_ending and asyncio.current_task() is self._task:
            return _done_here(fn, *args, **kwargs)
        if self._thread is None:
            # The one that was used last: its stack is still in the cache.
            self._thread = _idle.pop() if _idle else ThreadPoolExecutor(1, "request")
        future = self._thread.submit(fn, *args, **kwargs)
        self._look()
        self._unfinished.append(future)
        return future

    def _look(self) -> None:
        """What was cancelled in the queue never ran: its request's connections may still be open."""
        self._is_clean &= not any(future.cancelled() for future in self._unfinished)
        self._unfinished = [future for future in self._unfinished if not future.done()]

    async def give_back(self, *, is_clean: bool) -> None:
        """When it is free: a request that is cancelled ends no code that runs for it. It is nobody's
        afterwards unless all that was to run there has run."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_clean &= is_clean
        self._look()
        try:
            if self._unfinished:
                await asyncio.wait(list(map(asyncio.wrap_future, self._unfinished)))
                self._look()
        finally:
            if self._is_clean and not self._unfinished and len(_idle) < MAX_IDLE:
                _idle.append(thread)
            else:
                thread.shutdown(wait=False)

"""Letters, sent beside the request that caused them."""

import atexit
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from time import monotonic

from django.core.mail import EmailMessage
from prometheus_client import Counter

logger = logging.getLogger(__name__)

_PAUSES_S = (10.0, 60.0, 300.0)
"""Before each further try: a server may restart, or want to see whether somebody comes again."""

_letters = Counter("vitrine_letters", "Tries to send a letter.", ["outcome"])
for _outcome in ("sent", "put_off", "lost"):
    _letters.labels(_outcome)  # so that a rate has something to begin with

# Not Celery: a letter's link would lie in the queue.
_senders = ThreadPoolExecutor(2, thread_name_prefix="mail")
_sender_to_many = ThreadPoolExecutor(1, thread_name_prefix="mail-to-many")


@dataclass(frozen=True, slots=True)
class _Letter:
    message: EmailMessage
    senders: ThreadPoolExecutor
    pauses_s: tuple[float, ...]


def send_soon(message: EmailMessage, *, is_one_of_many: bool = False) -> None:
    """One of many keeps no other letter waiting."""
    _outbox.take(_Letter(message, _sender_to_many if is_one_of_many else _senders, _PAUSES_S))


def hurry_letters() -> None:
    """The process ends: what waits for its next try has it now, and it is the last."""
    _outbox.hurry()


def finish_letters(timeout_s: float) -> None:
    """The process ends now: what is not sent by then is told as lost."""
    _outbox.finish(timeout_s)


class _Outbox:
    """Counts each letter until it is sent or lost; one thread is there for all that wait."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._num_open = 0
        self._waiting: list[tuple[float, int, _Letter]] = []  # a heap, by when they are due
        self._numbers = count()
        self._waiter: Thread | None = None
        self._is_ending = False

    def take(self, letter: _Letter) -> None:
        with self._changed:
            if self._waiter is None:
                waiter = Thread(target=self._wait, name="mail-again", daemon=True)
                waiter.start()
                self._waiter = waiter
            self._num_open += 1
        self._submit(letter)

    def hurry(self) -> None:
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()

    def finish(self, timeout_s: float) -> None:
        self.hurry()
        with self._changed:
            self._changed.wait_for(lambda: self._num_open < 1, timeout_s)
            num_lost, self._num_open = self._num_open, 0
        if num_lost > 0:
            _letters.labels("lost").inc(num_lost)
            logger.error("%d letters could not be sent before the end", num_lost)

    def _submit(self, letter: _Letter) -> None:
        try:
            letter.senders.submit(self._send, letter)
        except RuntimeError:  # no thread is to be had any more
            self._lose()

    def _send(self, letter: _Letter) -> None:
        try:
            letter.message.send()
        except Exception as error:
            if not self._put_off(letter, error):
                self._lose()
        else:
            _letters.labels("sent").inc()
            self._end_of_one()

    def _put_off(self, letter: _Letter, error: Exception) -> bool:
        """Meanwhile the senders send others. False where there is no further try."""
        with self._changed:
            if self._is_ending or not letter.pauses_s:
                return False
            _letters.labels("put_off").inc()
            words = "a letter could not be sent (%s), and is tried again in %g s"
            logger.warning(words, type(error).__name__, letter.pauses_s[0])
            due_s = monotonic() + letter.pauses_s[0]
            later = replace(letter, pauses_s=letter.pauses_s[1:])
            heappush(self._waiting, (due_s, next(self._numbers), later))
            self._changed.notify_all()
        return True

    def _lose(self) -> None:
        _letters.labels("lost").inc()
        logger.exception("a letter could not be sent")
        self._end_of_one()

    def _end_of_one(self) -> None:
        with self._changed:
            self._num_open -= 1
            self._changed.notify_all()

    def _wait(self) -> None:
        while True:
            with self._changed:
                while (pause_s := self._seconds_to_next()) != 0.0:
                    self._changed.wait(pause_s)
                _due_s, _number, letter = heappop(self._waiting)
            self._submit(letter)

    def _seconds_to_next(self) -> float | None:
        """None where nothing waits."""
        if not self._waiting:
            return None
        return 0.0 if self._is_ending else max(0.0, self._waiting[0][0] - monotonic())


_outbox = _Outbox()
# Of commands; the web process ends without it.
atexit.register(finish_letters, 0.0)

"""Letters, sent beside the request that caused them."""

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

from django.core.mail import EmailMessage
from prometheus_client import Counter

logger = logging.getLogger(__name__)

_PAUSES_S = (10.0, 60.0, 300.0)
"""Before each further try: a server may restart, or want to see whether somebody comes again."""

_letters = Counter("vitrine_letters", "Tries to send a letter.", ["outcome"])
for _outcome in ("sent", "put_off", "lost"):
    _letters.labels(_outcome)  # so that a rate has something to begin with

# Not Celery: a letter's link would lie in the queue. What waits here is still sent at a shutdown.
_senders = ThreadPoolExecutor(2, thread_name_prefix="mail")


def send_soon(message: EmailMessage) -> None:
    _senders.submit(_send, message, _PAUSES_S)


def _send(message: EmailMessage, pauses_s: tuple[float, ...]) -> None:
    try:
        message.send()
    except Exception as error:
        if not pauses_s:
            _letters.labels("lost").inc()
            logger.exception("a letter could not be sent")
            return
        _letters.labels("put_off").inc()
        words = "a letter could not be sent (%s), and is tried again in %g s"
        logger.warning(words, type(error).__name__, pauses_s[0])
        _put_off(message, pauses_s)
    else:
        _letters.labels("sent").inc()


def _put_off(message: EmailMessage, pauses_s: tuple[float, ...]) -> None:
    """Meanwhile the senders send others. A shutdown does not wait for it."""
    timer = Timer(pauses_s[0], _senders.submit, (_send, message, pauses_s[1:]))
    timer.daemon = True
    timer.start()

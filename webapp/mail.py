"""Letters, sent beside the request that caused them."""

import logging
from concurrent.futures import ThreadPoolExecutor

from django.core.mail import EmailMessage

logger = logging.getLogger(__name__)

# Not Celery: a letter's link would lie in the queue. What waits here is still sent at a shutdown.
_senders = ThreadPoolExecutor(2, thread_name_prefix="mail")


def send_soon(message: EmailMessage) -> None:
    _senders.submit(_send, message)


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except Exception:
        logger.exception("a letter could not be sent")

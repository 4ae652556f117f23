"""When the web process looks for cyclic garbage: while nobody waits for an answer.

Python looks through everything that it holds whenever enough has been made, which is in the middle of a
burst of requests: 50 ms in which nothing is answered, a fifth of what 64 first words took. So the large
collection is done here, and what was loaded at the start is left out of it.
"""

import asyncio
import gc
import logging
from collections.abc import Callable
from time import monotonic

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
COLLECT_EVERY_S = 60.0
LONGEST_S = 600.0  # a process that is never idle
MANY_YOUNG = 5_000
# Objects before the smallest collection, smallest ones before a middle one, middle ones before a large
# one: 700, 10 and 10 are Python's own. Sixty-four answers that begin at once make some 40,000 that live
# on: looked through four times on the way, they cost a tenth of what they cost in all. The last is a
# bound for when this task should not run.
_THRESHOLDS = (100_000, 10, 1_000)


async def collect_when_idle(is_idle: Callable[[], bool]) -> None:
    """Endless. What is there at the first idle look is taken to stay; it is not looked through again.

    Of that what becomes garbage in a cycle later is not freed: once, and not more than was there.
    """
    gc.set_threshold(*_THRESHOLDS)
    is_frozen, collected_s = False, monotonic()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        since_s = monotonic() - collected_s
        is_due = since_s >= COLLECT_EVERY_S or not is_frozen
        if (is_due and is_idle()) or since_s >= LONGEST_S:
            collect()
            if not is_frozen:
                gc.freeze()
                is_frozen = True
            collected_s = monotonic()
        elif gc.get_count()[0] > MANY_YOUNG and is_idle():
            gc.collect(0)  # or it is done among those who come next: forty milliseconds for 100,000


def collect() -> None:
    """All generations, and how long everything stood still for it to the log."""
    began_s = monotonic()
    num_freed = gc.collect()
    taken_ms = (monotonic() - began_s) * 1e3
    logger.debug("collected garbage", extra={"objects": num_freed, "ms": round(taken_ms, 1)})

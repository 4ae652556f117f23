"""The worker process: one model on one device, spoken to over one socket.

It is a process of its own because a fault of a device or a kernel must never poison the web process,
and it ends when the web process does: with the zygote that forked it, which ends with that. Three
threads: the loop below, one that reads requests, and one that writes frames, so that the model never
waits for the web process.
"""

import gc
import logging
import os
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from inference.channel import BlockingChannel
from inference.errors import ModelError
from inference.gathering import MOST_ON_GPU_S, Gathering
from inference.messages import (
    Abort,
    Asleep,
    FromWorker,
    GenerateRequest,
    GiveWay,
    LoadFailed,
    Loading,
    Probe,
    Ready,
    Shutdown,
    Sleep,
    StepFrame,
    Submit,
    Wake,
    WorkerSetup,
)

if TYPE_CHECKING:
    from inference.encoder_loop import EncoderLoop
    from inference.engine_loop import EngineLoop
    from inference.hearing_loop import HearingLoop

logger = logging.getLogger("inference.worker")


def import_all() -> None:
    """Import what a worker needs, so that its forks need not; the built-in model's file, too."""
    import transformers.models.qwen3.modeling_qwen3  # noqa: F401


def main(descriptor: int) -> None:
    """Serve the socket that was inherited, until it is closed."""
    # What stands here becomes warnings in the web process's log (worker_process.py).
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    channel = BlockingChannel(socket.socket(fileno=descriptor))
    outbox: queue.SimpleQueue[FromWorker | None] = queue.SimpleQueue()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        setup: WorkerSetup = channel.receive()
    except EOFError:
        return
    gathering = Gathering(setup.config.gather_s)
    threading.Thread(target=_read, args=(channel, inbox, gathering), daemon=True).start()
    writer = threading.Thread(target=_write, args=(channel, outbox, gathering), daemon=True)
    writer.start()
    try:
        _serve(setup, inbox, outbox, gathering)
    finally:
        outbox.put(None)
        writer.join(timeout=5)


def _read(channel: BlockingChannel, inbox: "queue.SimpleQueue[Any]", gathering: Gathering) -> None:
    while True:
        try:
            value = channel.receive()
        except (EOFError, OSError):
            os._exit(0)  # the web process is gone: nobody is left to answer
        if isinstance(value, Submit) and isinstance(value.request, GenerateRequest):
            gathering.expect(value.request, monotonic())
        inbox.put(value)


def _write(
    channel: BlockingChannel, outbox: "queue.SimpleQueue[FromWorker | None]", gathering: Gathering
) -> None:
    try:
        for value in _when_due(outbox, gathering):
            channel.send(value)
    except OSError:
        os._exit(0)


def _when_due(
    outbox: "queue.SimpleQueue[FromWorker | None]", gathering: Gathering
) -> Iterator[FromWorker]:
    """What is to be sent, when it is to be; ends when the outbox does."""
    while True:
        wait_s = None if gathering.due_s is None else gathering.due_s - monotonic()
        if wait_s is not None and wait_s <= 0:
            yield gathering.take(monotonic())
            continue
        try:
            value = outbox.get(timeout=wait_s)
        except queue.Empty:
            continue
        if isinstance(value, StepFrame):
            gathering.add(value)
            continue
        if gathering.due_s is not None:
            yield gathering.take(monotonic(), everything=True)
        if value is None:
            return
        yield value


def _serve(
    setup: WorkerSetup,
    inbox: "queue.SimpleQueue[Any]",
    outbox: "queue.SimpleQueue[FromWorker | None]",
    gathering: Gathering,
) -> None:
    started_s = monotonic()
    outbox.put(Loading("starting", 0.0))
    try:
        # torch is imported here, with the socket already up
        from inference.assembly import assemble
        from inference.encoder_loop import EncoderLoop
        from inference.hearing_loop import HearingLoop

        loop, info = assemble(
            setup.model, setup.path, setup.config, lambda p, f: outbox.put(Loading(p, f))
        )
        loop.canary()
        if info.device == "cuda":
            gathering.most_s = MOST_ON_GPU_S
    except ModelError as error:
        outbox.put(LoadFailed(error.code, str(error)))
        return
    except Exception as error:
        logger.exception("loading %s failed", setup.model)
        outbox.put(LoadFailed("model_error", f"{type(error).__name__}: {error}"))
        return
    gc.collect()
    gc.freeze()  # the model's objects are never garbage; do not walk them again
    ready = Ready(info, monotonic() - started_s)
    outbox.put(ready)
    if isinstance(loop, EncoderLoop | HearingLoop):
        loop.interrupt_by(partial(_listen, loop, inbox, outbox, ready), outbox.put)
    while _take_requests(loop, inbox, outbox, ready):
        for frame in loop.step():
            outbox.put(frame)


def _take_requests(
    loop: "EngineLoop | EncoderLoop | HearingLoop",
    inbox: "queue.SimpleQueue[Any]",
    outbox: "queue.SimpleQueue[FromWorker | None]",
    ready: Ready,
    *,
    between_s: float | None = None,
) -> bool:
    """Move what has arrived into the loop; waits when there is nothing to run. False: shut down.

    `between_s`: in the midst of a step, where so long is waited for something to arrive.
    """
    if loop.is_idle and between_s is None:
        loop.check()
    while True:
        try:
            if between_s:
                value, between_s = inbox.get(timeout=between_s), 0.0
            else:
                value = inbox.get(block=loop.is_idle and between_s is None)
        except queue.Empty:
            return True
        match value:
            case Submit(request):
                loop.submit(request)
            case Abort(request_id):
                loop.abort(request_id)
            case Probe():
                loop.probe(value)
            case GiveWay(for_s):
                cast("EncoderLoop", loop).give_way(for_s)  # no other is told to
            case Sleep():
                _sleep(cast("EngineLoop", loop), inbox, outbox)  # no encoder is told to
                outbox.put(ready)
            case Shutdown():
                return False


def _listen(
    loop: "EncoderLoop | HearingLoop",
    inbox: "queue.SimpleQueue[Any]",
    outbox: "queue.SimpleQueue[FromWorker | None]",
    ready: Ready,
    wait_s: float,
) -> None:
    """In the midst of a step. A shutdown waits for its end."""
    if not _take_requests(loop, inbox, outbox, ready, between_s=wait_s):
        inbox.put(Shutdown())


def _sleep(
    loop: "EngineLoop",
    inbox: "queue.SimpleQueue[Any]",
    outbox: "queue.SimpleQueue[FromWorker | None]",
) -> None:
    """Lie on the host until woken. What fails in it ends the process: the next one loads anew."""
    outbox.put(Asleep(loop.sleep()))
    while not isinstance(value := inbox.get(), Wake):
        if isinstance(value, Shutdown):
            os._exit(0)  # others came too late
    outbox.put(Loading("waking", 0.5))
    loop.wake()

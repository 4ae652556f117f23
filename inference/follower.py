"""A rank behind rank 0: loads its part of the model and computes what it is told, until rank 0 ends.

Run as `python -m inference.follower DESCRIPTOR`, by `tensor_parallel`.
"""

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING

from inference.channel import BlockingChannel
from inference.errors import ModelError

if TYPE_CHECKING:
    from inference.ranks import RankSetup

logger = logging.getLogger("inference.follower")


def main(descriptor: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    channel = BlockingChannel(socket.socket(fileno=descriptor))
    try:
        setup = channel.receive()
    except EOFError:
        return
    try:
        _follow(channel, setup)
    except EOFError:
        pass  # rank 0 has ended
    except ModelError:
        os._exit(1)  # rank 0 has found the same, and says so
    except Exception:
        logger.exception("rank %d failed", setup.rank)
        os._exit(1)
    os._exit(0)  # what waits for the others in a collective would not end


def _follow(channel: BlockingChannel, setup: "RankSetup") -> None:
    import torch
    from transformers.utils.logging import disable_progress_bar

    from inference import ranks
    from inference.assembly import kept_as_of, load_part
    from inference.model_runner import ModelRunner

    disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(ranks.num_threads(setup.config, setup.num_ranks))
    ranks.join(setup)
    loaded = load_part(setup.model, setup.path, setup.config, lambda phase, fraction: None)
    kv = ranks.MirroredKV(channel.receive(), kept_as_of(setup.config))
    runner = ModelRunner(loaded.model, kv)
    while True:
        step = channel.receive()
        kv.tables = step.tables
        with torch.inference_mode():
            runner.forward(step.ids, step.positions, step.spans, step.rows)


if __name__ == "__main__":
    main(int(sys.argv[1]))

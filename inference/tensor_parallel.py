"""Rank 0 of a model that is split over several processes: it starts the others and leads them.

Where one rank fails, all end: a collective that not all take part in would wait for ever. The host sees
the worker end, starts another and goes on with the answers, as after any crash. Imports torch.
"""

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from torch import Tensor, nn

from inference import ranks
from inference.channel import BlockingChannel
from inference.config import EngineConfig
from inference.model_runner import ModelRunner
from inference.paged_kv import PagedKV
from inference.ranks import ForwardStep, RankSetup
from inference.spans import Span

logger = logging.getLogger(__name__)
_GRACE_S = 2.0  # in which rank 0 says for itself what was wrong, where all ranks found the same
_FAILED = 70


class Followers:
    """The ranks from 1 on, each a process that ends with this one."""

    def __init__(self, model: str, path: Path, config: EngineConfig) -> None:
        """Starts them and meets them."""
        num_ranks = config.num_ranks(model)
        self._folder = Path(tempfile.mkdtemp(prefix="vitrine-ranks-"))
        self._channels: list[BlockingChannel] = []
        self._is_closing = False
        for rank in range(1, num_ranks):
            setup = RankSetup(rank, num_ranks, self._folder / "meeting", model, path, config)
            self._start(setup)
        ranks.join(RankSetup(0, num_ranks, self._folder / "meeting", model, path, config))

    def _start(self, setup: RankSetup) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  ourselves
                [sys.executable, "-m", "inference.follower", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        channel = BlockingChannel(ours)
        channel.send(setup)
        self._channels.append(channel)
        threading.Thread(target=self._watch, args=(process, setup.rank), daemon=True).start()

    def _watch(self, process: "subprocess.Popen[bytes]", rank: int) -> None:
        code = process.wait()
        if self._is_closing:
            return
        time.sleep(_GRACE_S)
        logger.error("rank %d has ended with code %d, and so do the others", rank, code)
        os._exit(_FAILED)

    def begin(self, num_blocks: int) -> None:
        """All parts are loaded: from now on the ranks run what they are told, over so many blocks."""
        self.tell(num_blocks)
        self._forget_folder()

    def tell(self, value: object) -> None:
        for channel in self._channels:
            channel.send(value)

    def close(self) -> None:
        """They end when their channels do."""
        self._is_closing = True
        self._channels.clear()
        self._forget_folder()

    def _forget_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class LeadingRunner(ModelRunner):
    """Runs rank 0's part of a model, while the others run theirs."""

    def __init__(self, model: nn.Module, kv: PagedKV, followers: Followers) -> None:
        super().__init__(model, kv)
        self._pages = kv
        self._followers = followers

    def forward(
        self, ids: list[int], positions: list[int], spans: list[Span], rows: list[int]
    ) -> Tensor:
        tables = {span.sequence_id: list(self._pages.blocks(span.sequence_id)) for span in spans}
        try:
            self._followers.tell(ForwardStep(ids, positions, spans, rows, tables))
            return super().forward(ids, positions, spans, rows)
        except Exception:
            logger.exception("a step failed on rank 0, and so all ranks end")
            os._exit(_FAILED)

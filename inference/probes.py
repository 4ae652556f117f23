"""Questions what a worker has cached, and their answers."""

import asyncio
from collections.abc import Sequence
from itertools import count

from inference.channel import AsyncChannel
from inference.messages import Cached, Probe

_numbers = count(1)


class Probes:
    """Those of one worker that have no answer yet."""

    def __init__(self) -> None:
        self._answers: dict[str, asyncio.Future[tuple[int, ...]]] = {}

    async def ask(
        self,
        channel: AsyncChannel,
        prompts: Sequence[Sequence[int]],
        kv_salt: str,
        timeout_s: float,
    ) -> tuple[int, ...] | None:
        """How many tokens of each prompt are in the KV cache; None where no answer came in time."""
        wire_id = f"probe#{next(_numbers)}"
        answer = self._answers[wire_id] = asyncio.get_running_loop().create_future()
        try:
            channel.send(Probe(wire_id, tuple(map(tuple, prompts)), kv_salt))
            return await asyncio.wait_for(answer, timeout_s)
        except TimeoutError:
            return None
        finally:
            del self._answers[wire_id]

    def hear(self, wire_id: str, update: Cached) -> None:
        answer = self._answers.get(wire_id)
        if answer is not None and not answer.done():  # it may just have come too late
            answer.set_result(update.num_tokens)

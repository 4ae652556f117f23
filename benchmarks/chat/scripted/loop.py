"""Writes numbered words at a steady pace, one frame a step for all streams, as the engine does.

Everything around it is the real thing: the worker process, its socket, the pool, the web process.
In the place of an embedding model it gives every text the same vector, at once: a default installation
judges each question by one. With SCRIPTED_JUDGING=real the model itself does.
"""

import os
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.config import EngineConfig
from inference.encode_messages import Encoded, EncodeRequest
from inference.encoder_layout import read_encoder_layout
from inference.kinds import read_kind
from inference.messages import (
    Cached,
    EngineStats,
    Finished,
    FinishReason,
    GenerateRequest,
    ModelInfo,
    Prefill,
    Probe,
    Reply,
    StepFrame,
    Timings,
    Tokens,
    Usage,
)

TOKENS_PER_S = float(os.environ.get("SCRIPTED_PACE", "50"))
NUM_TOKENS = int(os.environ.get("SCRIPTED_LENGTH", "500"))
IS_JUDGING_REAL = os.environ.get("SCRIPTED_JUDGING", "") == "real"


def text_of(num_tokens: int) -> str:
    """What a stream of so many tokens says."""
    return "".join(_word(number) for number in range(num_tokens))


def _word(number: int) -> str:
    return f"w{number} "


@dataclass(slots=True)
class _Stream:
    request: GenerateRequest
    num_done: int = 0

    @property
    def num_wanted(self) -> int:
        return min(NUM_TOKENS, self.request.params.max_tokens)


class ScriptedLoop:
    """Stands where inference.engine_loop.EngineLoop does, or an EncoderLoop of `width`."""

    def __init__(self, width: int = 0) -> None:
        self._vector = array("f", [width**-0.5] * width) if width else array("f")
        self._streams: dict[str, _Stream] = {}
        self._updates: list[tuple[str, Reply]] = []
        self._due_s = 0.0

    @property
    def is_idle(self) -> bool:
        return not self._streams and not self._updates

    def canary(self) -> None: ...

    def check(self) -> None: ...

    def submit(self, request: GenerateRequest | EncodeRequest) -> None:
        if isinstance(request, EncodeRequest):
            vectors = self._vector * len(request.inputs)
            self._updates.append((request.request_id, Encoded(vectors, len(self._vector))))
            return
        num_prompt = len(request.prompt_ids)
        self._streams[request.request_id] = _Stream(request, len(request.output_ids))
        self._updates.append((request.request_id, Prefill(num_prompt, num_prompt)))

    def abort(self, request_id: str) -> None:
        if stream := self._streams.pop(request_id, None):
            self._updates.append((request_id, _finished(stream, "abort")))

    def give_way(self, for_s: float) -> None: ...

    def probe(self, probe: Probe) -> None:
        self._updates.append((probe.request_id, Cached((0,) * len(probe.prompts))))

    def step(self) -> Iterator[StepFrame]:
        """One token of every stream, when it is time."""
        if self._streams:
            self._due_s = max(self._due_s + 1 / TOKENS_PER_S, time.monotonic() - 1 / TOKENS_PER_S)
            time.sleep(max(0.0, self._due_s - time.monotonic()))
        updates, self._updates = self._updates, []
        for request_id, stream in list(self._streams.items()):
            if stream.num_done < stream.num_wanted:
                word = _word(stream.num_done)
                stream.num_done += 1
                updates.append((request_id, Tokens(word, (0,), stream.num_done, TOKENS_PER_S)))
            if stream.num_done >= stream.num_wanted:
                del self._streams[request_id]
                updates.append((request_id, _finished(stream, "stop")))
        yield StepFrame(tuple(updates), EngineStats(num_running=len(self._streams)))


Progress = Callable[[str, float], None]
Assemble = Callable[[str, Path, EngineConfig, Progress], tuple[Any, ModelInfo]]


def scripted(real: Assemble) -> Assemble:
    """In the place of inference.assembly.assemble, which is `real`, for any model."""

    def assemble(
        name: str, path: Path, config: EngineConfig, progress: Progress
    ) -> tuple[Any, ModelInfo]:
        is_chat = read_kind(path) == "chat"
        if IS_JUDGING_REAL and not is_chat:
            return real(name, path, config, progress)
        width = 0 if is_chat else read_encoder_layout(path).dimensions
        info = ModelInfo(name, "scripted", "Scripted", 0, 0, 8192, "none", "none")
        return ScriptedLoop(width), info

    return assemble


def _finished(stream: _Stream, reason: FinishReason) -> Finished:
    usage = Usage(len(stream.request.prompt_ids), 0, stream.num_done)
    return Finished(reason, usage, Timings())

"""What an answer knows of itself while it is written, over all of its engine turns."""

from dataclasses import replace
from time import monotonic
from typing import Literal

from chat.asking import AnswerRequest
from chat.events import Finished, RunTimings, RunUsage, Stopped
from inference import Finished as EngineFinished


class AnswerState:
    """`messages` grow by every turn; `seed` is drawn by the first; the counts go into the end."""

    def __init__(self, request: AnswerRequest) -> None:
        self.request = request
        self.messages = list(request.messages)
        self.seed = request.sampling.seed
        self.turn_index = 0
        self.num_chars = {"text": 0, "reasoning": 0}
        self._usage = RunUsage()
        self._timings = RunTimings()
        self._started_s = monotonic()

    def wrote_text(self) -> None:
        """The first call is the answer's time to first token."""
        if not self._timings.ttft_ms:
            self._timings = replace(self._timings, ttft_ms=self._elapsed_ms())

    def add_tool_time(self, took_ms: float) -> None:
        self._timings = replace(self._timings, tools_ms=self._timings.tools_ms + took_ms)

    def account(self, end: EngineFinished) -> None:
        """Add the counts of an engine turn."""
        usage, timings = end.usage, end.timings
        self._usage = RunUsage(
            self._usage.prompt_tokens + usage.prompt_tokens,
            self._usage.cached_tokens + usage.cached_tokens,
            self._usage.completion_tokens + usage.completion_tokens,
        )
        self._timings = replace(
            self._timings,
            queued_ms=self._timings.queued_ms + timings.queued_ms,
            prefill_ms=self._timings.prefill_ms + timings.prefill_ms,
            decode_ms=self._timings.decode_ms + timings.decode_ms,
            stop_ms=timings.stop_ms,
        )

    def finished(self, reason: Literal["stop", "length", "tool_calls"]) -> Finished:
        return Finished(reason, self._usage, self._final_timings())

    def stopped(self) -> Stopped:
        return Stopped(self.num_chars["text"], self._usage, self._final_timings())

    def _final_timings(self) -> RunTimings:
        return replace(self._timings, total_ms=self._elapsed_ms())

    def _elapsed_ms(self) -> float:
        return (monotonic() - self._started_s) * 1e3

"""What a request under /v1 took: tokens, and where the time went."""

from typing import Any

from chat.events import Delta, Event, Finished, RunTimings, RunUsage


class Tally:
    """Hears the events of all answers to one request and adds up what they took.

    Answers to the same prompt, `prompt` of several, share it: its tokens count once.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[int, Finished]] = []
        self.reasoning_tokens = 0

    def hear(self, event: Event, prompt: int = 0) -> None:
        match event:
            case Delta(part="reasoning", ids=ids):
                self.reasoning_tokens += len(ids)
            case Finished():
                self._ends.append((prompt, event))

    @property
    def prompt_tokens(self) -> int:
        return self._of_prompts("prompt_tokens")

    @property
    def cached_tokens(self) -> int:
        """A part of the prompt tokens."""
        return self._of_prompts("cached_tokens")

    @property
    def completion_tokens(self) -> int:
        return sum(end.usage.completion_tokens for _, end in self._ends)

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def timings(self) -> dict[str, float]:
        """Milliseconds, of several answers those of the one that took longest."""
        ends = (end.timings for _, end in self._ends)
        longest = max(ends, key=lambda timings: timings.total_ms, default=RunTimings())
        names = ("queued_ms", "prefill_ms", "ttft_ms", "decode_ms", "total_ms")
        return {name: round(getattr(longest, name), 3) for name in names}

    def _of_prompts(self, name: str) -> int:
        usages: dict[int, list[RunUsage]] = {}
        for prompt, end in self._ends:
            usages.setdefault(prompt, []).append(end.usage)
        return sum(max(getattr(usage, name) for usage in of_one) for of_one in usages.values())


def completion_usage(tally: Tally) -> dict[str, Any]:
    """As chat completions and completions tell it."""
    return {
        "prompt_tokens": tally.prompt_tokens,
        "completion_tokens": tally.completion_tokens,
        "total_tokens": tally.total_tokens,
        "prompt_tokens_details": {"cached_tokens": tally.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": tally.reasoning_tokens},
    }

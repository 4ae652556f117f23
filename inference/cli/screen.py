"""What a person sees: answers on standard output, everything else on standard error."""

import os
import re
import sys
from typing import TextIO

from inference.catalog import ModelState
from inference.messages import Loading, Prefill, Queued, Timings, Update, Usage

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DIM, _PLAIN, _ERASE_LINE = "\x1b[2m", "\x1b[0m", "\r\x1b[K"


class Screen:
    """Writes to two streams that may be the same terminal."""

    def __init__(self, answers: TextIO = sys.stdout, notes: TextIO = sys.stderr) -> None:
        self._answers, self._notes = answers, notes
        self.is_terminal = answers.isatty()
        self._shows_progress = notes.isatty()
        self._is_styled = not os.environ.get("NO_COLOR")
        self._progress = ""

    def show_progress(self, text: str) -> None:
        """Rewrite the line of progress; only a terminal has one."""
        if self._shows_progress and text != self._progress:
            self._progress = text
            self._notes.write(_ERASE_LINE + self._dim(text))
            self._notes.flush()

    def clear_progress(self) -> None:
        if self._progress:
            self._progress = ""
            self._notes.write(_ERASE_LINE)
            self._notes.flush()

    def write(self, text: str, *, is_dim: bool = False) -> None:
        """More of an answer. On a terminal, a model's control characters move nothing."""
        self.clear_progress()
        if self.is_terminal:
            text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
        self._answers.write(self._dim(text) if is_dim and self.is_terminal else text)
        self._answers.flush()

    def note(self, text: str) -> None:
        """A line for the person at the keyboard."""
        self.clear_progress()
        self._notes.write((self._dim(text) if self._shows_progress else text) + "\n")
        self._notes.flush()

    def _dim(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self._is_styled else text


def phase(update: Update | ModelState) -> str:
    """What happens before the first token, in words; empty for what is no such news."""
    match update:
        case ModelState(state="loading", detail=detail, progress=fraction):
            return f"Loading {100 * fraction:.0f} %: {detail}"
        case Loading(detail, fraction):
            return f"Loading {100 * fraction:.0f} %: {detail}"
        case Queued(position, None):
            return f"Queued, number {position}"
        case Queued(position, wait_s):
            return f"Queued, number {position}, about {wait_s:.0f} s"
        case Prefill(num_done, num_total, num_cached):
            cached = f", {num_cached} from the cache" if num_cached else ""
            return f"Reading {num_done} of {num_total} tokens{cached}"
    return ""


def figures(usage: Usage, timings: Timings) -> str:
    """One line about an answer that has ended."""
    num_later = usage.completion_tokens - 1
    speed = f"{num_later / timings.decode_ms * 1e3:.1f} tok/s" if timings.decode_ms else "-"
    return (
        f"TTFT {timings.ttft_ms / 1e3:.2f} s, {usage.completion_tokens} tokens, {speed},"
        f" {usage.cached_tokens} of {usage.prompt_tokens} prompt tokens from the cache"
    )

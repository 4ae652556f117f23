"""Sound of any length to text, by a Whisper model of our own: window after window, to its worker.

As Whisper's own code does it: each window begins where the last whole piece of the one before has
ended, by the model's times. What is held meanwhile is a window and a piece of the file. Source: Radford
et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision", section 4.5; `split` follows
transformers' `_retrieve_segment`.
"""

import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tokenizers import Tokenizer

from inference.errors import InvalidParameter, ModelRefused
from inference.hearing_layout import HearingLayout, read_hearing_layout
from inference.hearing_messages import RATE_HZ, WINDOW_SAMPLES, Heard, HearRequest
from inference.messages import Usage
from inference.sound import (
    SECOND_TOKENS,
    BadSound,
    SoundSegment,
    SoundTooLong,
    Transcript,
    TranscriptionRequest,
)
from inference.wav import known_duration_s

Send = Callable[[HearRequest], Awaitable[Heard]]
MAX_S = 2 * 3600
_TIME_S = 0.02
_LEAST_S = 0.1  # OpenAI's own bound
_LEAST_STEP_S = 1.0  # or a model that tells nonsense would hear the same for ever
_SILENT, _UNSURE = 0.6, -1.0  # Whisper's own: nobody speaks, and the text is improbable
_PREVIOUS = "<|startofprev|>"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens between two times, which are seconds from the window's beginning."""

    ids: tuple[int, ...]
    start_s: float
    end_s: float


def split(ids: Sequence[int], first_time_id: int, window_s: float) -> tuple[list[Piece], float]:
    """The pieces of a window's tokens, without those of times, and where the next window begins.

    A pair of times ends a piece. What follows the last pair is cut off in its midst, and heard again.
    """
    is_time = [one >= first_time_id for one in ids]
    ends = [at + 1 for at in range(len(ids) - 1) if is_time[at] and is_time[at + 1]]
    if not ends:
        times = [one for one in ids if one > first_time_id]
        end_s = (times[-1] - first_time_id) * _TIME_S if times else window_s
        return [Piece(_words(ids, first_time_id), 0.0, end_s)], window_s
    is_whole = is_time[-2:] == [False, True]  # one time alone: nobody speaks behind it
    next_s = window_s if is_whole else (ids[ends[-1] - 1] - first_time_id) * _TIME_S
    pieces, begin = [], 0
    for end in [*ends, len(ids)] if is_whole else ends:
        part = ids[begin:end]
        start_s, end_s = ((one - first_time_id) * _TIME_S for one in (part[0], part[-1]))
        pieces.append(Piece(_words(part, first_time_id), max(0.0, start_s), end_s))
        begin = end
    return pieces, next_s


def _words(ids: Sequence[int], first_time_id: int) -> tuple[int, ...]:
    return tuple(one for one in ids if one < first_time_id)


class Hearing:
    """A transcription model by its files, and the way to its worker."""

    def __init__(self, layout: HearingLayout, tokenizer: Tokenizer, send: Send) -> None:
        self.layout = layout
        self._tokenizer = tokenizer
        self._send = send

    @classmethod
    def load(cls, path: Path, send: Send) -> "Hearing":
        """Raises ModelRefused."""
        layout = read_hearing_layout(path)
        try:
            tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        except Exception as error:  # its errors are bare
            raise ModelRefused(f"tokenizer.json is not to be read: {error}") from error
        return cls(layout, tokenizer, send)

    async def transcribe(self, request: TranscriptionRequest) -> Transcript:
        """Raises EngineError, BadSound among them."""
        from inference.pcm import opened  # with numpy: no web process waits for it, or keeps it

        self._check(request)
        _check_length(known_duration_s(request.sound))
        told = _Told(self._prompt_ids(request.prompt))
        async with opened(request.sound) as pcm:
            window = await pcm.read(WINDOW_SAMPLES)
            if len(window) < 2 * _LEAST_S * RATE_HZ:
                raise BadSound("file: the sound is too short; at least 0.1 seconds are heard.")
            rest = await pcm.read(1)
            while True:
                asked = self._asked(
                    request, window, told, is_all=not rest and not told.seek_samples
                )
                step = told.note(asked, await self._send(asked), self.layout)
                window = window[2 * step :] + rest
                window += await pcm.read(WINDOW_SAMPLES - len(window) // 2)
                rest = await pcm.read(1)
                _check_length(told.seek_samples / RATE_HZ)
                if len(window) < 2 * _LEAST_S * RATE_HZ:
                    break
        return self._transcript(told, request)

    def _check(self, request: TranscriptionRequest) -> None:
        languages = self.layout.languages
        if not languages and request.task == "translate":
            raise InvalidParameter("model", "it knows English only, and translates nothing")
        known = languages or {"en": 0}
        if request.language and request.language not in known:
            raise InvalidParameter("language", f"the model knows {', '.join(sorted(known))}")
        if request.has_words:
            raise InvalidParameter(
                "timestamp_granularities", "the model tells times of segments, and not of words"
            )

    def _prompt_ids(self, prompt: str) -> tuple[int, ...]:
        """As many tokens of its end as the model reads, half of all but one."""
        if not prompt.strip():
            return ()
        previous_id = self._tokenizer.token_to_id(_PREVIOUS)
        if previous_id is None:
            raise InvalidParameter("prompt", "the model reads none")
        encoded = self._tokenizer.encode(f" {prompt.strip()}", add_special_tokens=False).ids
        ids = [one for one in encoded if one < self.layout.end_id]
        most = self.layout.max_tokens // 2 - 1
        return (previous_id, *ids[-(most - 1) :])

    def _asked(
        self, request: TranscriptionRequest, window: bytes, told: "_Told", *, is_all: bool
    ) -> HearRequest:
        """Times are told where they are wanted, and where the sound is longer than a window."""
        languages = self.layout.languages
        language_id = languages.get(request.language) if request.language else told.language_id
        return HearRequest(
            f"hear-{next(_numbers)}",
            window,
            language_id if languages else None,
            self.layout.tasks.get(request.task),
            has_times=request.has_segments or not is_all,
            temperature=request.temperature,
            prompt_ids=told.prompt_ids if not told.seek_samples else (),
            caller=request.caller,
        )

    def _transcript(self, told: "_Told", request: TranscriptionRequest) -> Transcript:
        duration_s = told.seek_samples / RATE_HZ
        segments = tuple(
            self._segment(piece, seek_s, heard, request.temperature, duration_s)
            for piece, seek_s, heard in told.pieces
            if piece.ids
        )
        codes = {one: code for code, one in self.layout.languages.items()}
        num_read = round(duration_s * SECOND_TOKENS) + len(told.prompt_ids)
        return Transcript(
            text="".join(segment.text for segment in segments).strip(),
            language=codes.get(told.language_id, "en") if told.language_id is not None else "en",
            duration_s=duration_s,
            segments=segments if request.has_segments else (),
            usage=Usage(num_read, 0, told.num_written),
        )

    def _segment(
        self, piece: Piece, seek_s: float, heard: Heard, temperature: float, duration_s: float
    ) -> SoundSegment:
        text = self._tokenizer.decode(list(piece.ids), skip_special_tokens=True)
        data = text.encode(errors="replace")
        return SoundSegment(
            text=text,
            start_s=min(seek_s + piece.start_s, duration_s),
            end_s=min(seek_s + piece.end_s, duration_s),
            token_ids=piece.ids,
            seek_s=seek_s,
            temperature=temperature,
            avg_logprob=heard.avg_logprob,
            compression_ratio=len(data) / len(zlib.compress(data)) if data else 0.0,
            no_speech=heard.no_speech,
        )


def _check_length(duration_s: float) -> None:
    """Raises SoundTooLong."""
    if duration_s > MAX_S:
        raise SoundTooLong(f"file: at most {MAX_S // 3600} hours are heard at once.")


class _Told:
    """What the windows so far have told; `seek_samples` is where the next begins."""

    def __init__(self, prompt_ids: tuple[int, ...]) -> None:
        self.prompt_ids = prompt_ids
        self.pieces: list[tuple[Piece, float, Heard]] = []
        self.language_id: int | None = None
        self.num_written = 0
        self.seek_samples = 0

    def note(self, asked: HearRequest, heard: Heard, layout: HearingLayout) -> int:
        """By how many samples the next window begins later."""
        num_samples = len(asked.samples) // 2
        window_s = num_samples / RATE_HZ
        ids = heard.ids if asked.has_times else _words(heard.ids, layout.first_time_id)
        pieces, next_s = split(ids, layout.first_time_id, window_s)
        self.num_written += len(heard.ids)
        if self.language_id is None:
            self.language_id = heard.language_id
        is_silent = heard.no_speech > _SILENT and heard.avg_logprob < _UNSURE
        if is_silent or next_s < _LEAST_STEP_S:
            next_s = window_s
        if not is_silent:
            seek_s = self.seek_samples / RATE_HZ
            self.pieces += [(piece, seek_s, heard) for piece in pieces]
        step = min(round(next_s * RATE_HZ), num_samples)
        self.seek_samples += step
        return step

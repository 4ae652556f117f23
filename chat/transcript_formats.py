"""A transcript as OpenAI's API writes it: JSON short and long, plain text, and subtitles."""

from typing import Any

from django.http import HttpResponse

from chat.wire import dumps
from inference import SoundSegment, Task, Transcript

_FRAMES_PER_S = 100  # in which Whisper tells where a window begins


def written(
    transcript: Transcript, how: str, task: Task, *, has_segments: bool, has_words: bool
) -> HttpResponse:
    """`how` is one of json, verbose_json, text, srt and vtt."""
    match how:
        case "text":
            return _text(f"{transcript.text}\n", "text/plain")
        case "srt":
            return _text(_srt(transcript), "text/plain")
        case "vtt":
            return _text(_vtt(transcript), "text/vtt")
        case "verbose_json":
            value = _long(transcript, task, has_segments=has_segments, has_words=has_words)
        case _:
            value = _short(transcript)
    return HttpResponse(dumps(value), content_type="application/json")


def _text(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8")


def _short(transcript: Transcript) -> dict[str, Any]:
    read, said = transcript.usage.prompt_tokens, transcript.usage.completion_tokens
    usage = {
        "type": "tokens",
        "input_tokens": read,
        "output_tokens": said,
        "total_tokens": read + said,
    }
    return {"text": transcript.text, "usage": usage}


def _long(
    transcript: Transcript, task: Task, *, has_segments: bool, has_words: bool
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "task": task,
        "language": "english" if task == "translate" else transcript.language,
        "duration": transcript.duration_s,
        "text": transcript.text,
    }
    if has_segments:
        pairs = enumerate(transcript.segments)
        value["segments"] = [_segment(number, segment) for number, segment in pairs]
    if has_words:
        value["words"] = [
            {"word": word.text, "start": word.start_s, "end": word.end_s}
            for word in transcript.words
        ]
    return value | {"usage": {"type": "duration", "seconds": transcript.duration_s}}


def _segment(number: int, segment: SoundSegment) -> dict[str, Any]:
    return {
        "id": number,
        "seek": round(segment.seek_s * _FRAMES_PER_S),
        "start": segment.start_s,
        "end": segment.end_s,
        "text": segment.text,
        "tokens": list(segment.token_ids),
        "temperature": segment.temperature,
        "avg_logprob": segment.avg_logprob,
        "compression_ratio": segment.compression_ratio,
        "no_speech_prob": segment.no_speech,
    }


def _pieces(transcript: Transcript) -> tuple[SoundSegment, ...]:
    """Those that are shown; all as one where no times were told."""
    whole = SoundSegment(transcript.text, 0.0, transcript.duration_s)
    return transcript.segments or ((whole,) if transcript.text else ())


def _srt(transcript: Transcript) -> str:
    return "".join(
        f"{number}\n{_time(piece.start_s, ',')} --> {_time(piece.end_s, ',')}\n{_line(piece)}\n\n"
        for number, piece in enumerate(_pieces(transcript), start=1)
    )


def _vtt(transcript: Transcript) -> str:
    pieces = "".join(
        f"{_time(piece.start_s, '.')} --> {_time(piece.end_s, '.')}\n{_line(piece)}\n\n"
        for piece in _pieces(transcript)
    )
    return f"WEBVTT\n\n{pieces}"


def _line(piece: SoundSegment) -> str:
    """An arrow would be read as times, and an empty line as the piece's end."""
    return " ".join(piece.text.split()).replace("-->", "->")


def _time(seconds: float, point: str) -> str:
    whole_ms = round(seconds * 1000)
    minutes, ms = divmod(whole_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{ms // 1000:02}{point}{ms % 1000:03}"

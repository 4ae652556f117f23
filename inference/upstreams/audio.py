"""OpenAI's /audio/transcriptions and /audio/translations, as vLLM, Speaches, LocalAI and others speak
them."""

import json
from typing import Any

import httpx2

from inference.messages import Usage
from inference.sound import (
    SECOND_TOKENS,
    SoundSegment,
    SoundWord,
    Transcript,
    TranscriptionRequest,
)
from inference.upstreams import openai_chat, problems
from inference.upstreams.client import MAX_JSON_BYTES, beginning_of
from inference.upstreams.estimates import about_tokens
from inference.upstreams.one_answer import one_answer
from inference.upstreams.replicas import Replica
from inference.upstreams.upstream import Upstream
from inference.upstreams.wire import count_of, whole
from inference.wav import known_duration_s

_PATHS = {"transcribe": "transcriptions", "translate": "translations"}


async def transcribe(upstream: Upstream, request: TranscriptionRequest) -> Transcript:
    """The file goes there as it is. Raises EngineError."""
    spec = upstream.upstream

    async def send(replica: Replica, client: httpx2.AsyncClient) -> Transcript:
        address = f"{replica.url}/audio/{_PATHS[request.task]}"
        headers = openai_chat.headers(spec)
        with request.sound.path.open("rb") as file:
            files = {"file": (request.sound.name, file, request.sound.media_type)}
            fields = _fields(spec.model, request)
            sending = client.stream("POST", address, headers=headers, data=fields, files=files)
            async with sending as response:
                if response.status_code != 200:
                    said = await beginning_of(response)
                    retry_after = response.headers.get("retry-after")
                    told = (replica.host, response.status_code, retry_after, said)
                    raise problems.of_response(*told, spec.api_key)
                body = await beginning_of(response, MAX_JSON_BYTES)
        return _transcript(json.loads(body), request)

    return await one_answer(upstream, send)


def _fields(model: str, request: TranscriptionRequest) -> dict[str, Any]:
    """Only what was asked for: not every server knows all. Subtitles are made here of the segments, and
    `verbose_json` is not what every model can."""
    is_long = request.has_segments or request.has_words
    fields: dict[str, Any] = {"model": model, "response_format": "json"}
    if is_long:
        fields["response_format"] = "verbose_json"
    if request.has_words:
        kinds = ["segment", "word"] if request.has_segments else ["word"]
        fields["timestamp_granularities[]"] = kinds
    if request.language and request.task == "transcribe":
        fields["language"] = request.language
    if request.prompt:
        fields["prompt"] = request.prompt
    if request.temperature:
        fields["temperature"] = str(request.temperature)
    return fields


def _transcript(value: dict[str, Any], request: TranscriptionRequest) -> Transcript:
    text = whole(str(value["text"]))
    duration_s = _number(value.get("duration")) or known_duration_s(request.sound)
    usage = value.get("usage")
    seconds = _number(usage.get("seconds")) if isinstance(usage, dict) else 0.0
    duration_s = duration_s or seconds
    told = Usage(count_of(usage, "input_tokens"), 0, count_of(usage, "output_tokens"))
    prompt_tokens = told.prompt_tokens or round(duration_s * SECOND_TOKENS)
    return Transcript(
        text=text,
        language=str(value.get("language") or request.language),
        duration_s=duration_s,
        segments=tuple(map(_segment, value.get("segments") or ())),
        words=tuple(map(_word, value.get("words") or ())),
        usage=Usage(prompt_tokens, 0, told.completion_tokens or about_tokens(text)),
    )


def _segment(value: dict[str, Any]) -> SoundSegment:
    ids = value.get("tokens") or ()
    return SoundSegment(
        text=whole(str(value["text"])),
        start_s=_number(value["start"]),
        end_s=_number(value["end"]),
        token_ids=tuple(one for one in ids if isinstance(one, int)),
        seek_s=_number(value.get("seek")) / 100,  # in frames of 10 ms
        temperature=_number(value.get("temperature")),
        avg_logprob=_number(value.get("avg_logprob")),
        compression_ratio=_number(value.get("compression_ratio")),
        no_speech=_number(value.get("no_speech_prob")),
    )


def _word(value: dict[str, Any]) -> SoundWord:
    return SoundWord(whole(str(value["word"])), _number(value["start"]), _number(value["end"]))


def _number(value: Any) -> float:
    """A finite one; 0 for what is none, or was not told."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return number if abs(number) < float("inf") else 0.0

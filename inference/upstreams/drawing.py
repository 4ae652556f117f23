"""OpenAI's /images/generations and /images/edits, as LocalAI, SGLang, LiteLLM and others speak them."""

import asyncio
import base64
import json
from contextlib import ExitStack
from typing import Any, BinaryIO

import httpx2

from inference.errors import RequestError
from inference.messages import Failed, Usage
from inference.pictures import (
    MADE_KINDS,
    Picture,
    PictureRequest,
    Pictures,
    ToldTokens,
    picture_kind,
)
from inference.upstreams import openai_chat, problems
from inference.upstreams.client import beginning_of
from inference.upstreams.one_answer import one_answer
from inference.upstreams.picture_tokens import about_picture_usage
from inference.upstreams.problems import Problem
from inference.upstreams.replicas import Replica
from inference.upstreams.upstream import MAX_PINGED, Upstream
from inference.upstreams.wire import count_of, whole

_Part = tuple[str, tuple[str, BinaryIO, str]]
MAX_ANSWER_BYTES = 64 * 2**20  # of JSON, which a picture takes a third more room in
MAX_REVISED_CHARS = 32_000
# It has not been asked; who has been, and is not heard of, may draw, and be paid for it.
_UNASKED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_GIVEN_UP = (504, 524)  # by a proxy before it
# What the published description has: what else a server says of these tells a client nothing.
_SIZES = ("1024x1024", "1024x1536", "1536x1024")
_QUALITIES = ("low", "medium", "high")
_BACKGROUNDS = ("transparent", "opaque")


async def draw(upstream: Upstream, request: PictureRequest) -> Pictures:
    """All pictures at once. Raises EngineError."""
    asking = _Asking(upstream, request)
    return await one_answer(upstream, asking.send)


class _Asking:
    """One request, of whichever server."""

    def __init__(self, upstream: Upstream, request: PictureRequest) -> None:
        self._upstream = upstream
        self._request = request

    async def send(self, replica: Replica, client: httpx2.AsyncClient) -> Pictures:
        """Raises Problem, and what malformed data raises."""
        # OpenAI's newer models refuse the parameter and need none; most others answer with addresses
        # without it. The name tells most often, and else the refusal, from then on.
        says_how = self._upstream.takes_response_format
        says_how = says_how and "gpt-image" not in self._upstream.upstream.model
        try:
            return await self._ask_once(replica, client, says_how)
        except Problem as problem:
            if not says_how or not _is_about_format(problem):
                raise
        found = await self._ask_once(replica, client, says_how=False)
        # Not before: a refusal may quote the prompt, which anybody may write the word into.
        self._upstream.takes_response_format = False
        return found

    async def _ask_once(
        self, replica: Replica, client: httpx2.AsyncClient, says_how: bool
    ) -> Pictures:
        """Raises Problem, a final one where it may have been drawn: clients ask again by themselves."""
        try:
            return await self._ask(replica, client, says_how)
        except _UNASKED:
            raise
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise _unheard(replica.host, "was silent for too long") from error
        except httpx2.HTTPError as error:
            raise _unheard(replica.host, f"broke off ({type(error).__name__})") from error

    async def _ask(self, replica: Replica, client: httpx2.AsyncClient, says_how: bool) -> Pictures:
        spec = self._upstream.upstream
        fields = _fields(spec.model, self._request)
        if says_how:
            fields["response_format"] = "b64_json"
        with ExitStack() as opened:
            headers = openai_chat.headers(spec)
            if self._request.given:
                address, files = f"{replica.url}/images/edits", _files(self._request, opened)
                data = {name: str(value) for name, value in fields.items()}
                sending = client.stream("POST", address, headers=headers, data=data, files=files)
            else:
                address = f"{replica.url}/images/generations"
                sending = client.stream("POST", address, headers=headers, json=fields)
            # The client's own limit starts anew at each byte.
            async with asyncio.timeout(MAX_PINGED * spec.timeout_s), sending as response:
                if response.status_code == 413:
                    message = f"{replica.host} takes no pictures of this size."
                    raise Problem("refused", Failed(RequestError.code, message))
                if response.status_code in _GIVEN_UP:
                    raise _unheard(replica.host, f"failed with HTTP {response.status_code}")
                if response.status_code != 200:
                    said = await beginning_of(response)
                    told = (replica.host, response.status_code, response.headers.get("retry-after"))
                    raise problems.of_response(*told, said, spec.api_key)
                body = await beginning_of(response, MAX_ANSWER_BYTES)
        if len(body) >= MAX_ANSWER_BYTES:
            raise _refused(
                f"{replica.host} answers with more than {MAX_ANSWER_BYTES // 2**20} MiB."
            )
        # In a thread: it may be megabytes of numbers in letters.
        return await asyncio.to_thread(_read, body, replica.host, self._request)


def _is_about_format(problem: Problem) -> bool:
    return problem.kind == "refused" and "response_format" in problem.failed.message


def _unheard(host: str, how: str) -> Problem:
    message = f"{host} {how}. It may have drawn, so it is not asked again."
    return Problem("down", Failed(problems.UNAVAILABLE, message), is_final=True)


def _refused(message: str) -> Problem:
    return Problem("refused", Failed(problems.REFUSED, message))


def _fields(model: str, request: PictureRequest) -> dict[str, Any]:
    """Only what was asked for: not every server knows all."""
    wishes = {
        "size": request.size,
        "quality": request.quality,
        "style": request.style,
        "background": request.background,
        "output_format": request.form,
        "moderation": request.moderation,
        "input_fidelity": request.fidelity,
    }
    fields: dict[str, Any] = {"model": model, "prompt": request.prompt}
    if request.num_pictures > 1:
        fields["n"] = request.num_pictures
    if request.compression is not None:
        fields["output_compression"] = request.compression
    return fields | {name: wish for name, wish in wishes.items() if wish}


def _files(request: PictureRequest, opened: ExitStack) -> list[_Part]:
    """What files are called at home is nothing to other servers."""
    name = "image" if len(request.given) == 1 else "image[]"
    parts = [(name, f"image-{n}", picture) for n, picture in enumerate(request.given, 1)]
    if request.mask is not None:
        parts.append(("mask", "mask", request.mask))
    files: list[_Part] = []
    for field, stem, picture in parts:
        file = opened.enter_context(picture.path.open("rb"))
        form = picture.media_type.removeprefix("image/")
        files.append((field, (f"{stem}.{form}", file, picture.media_type)))
    return files


def _read(body: bytes, host: str, request: PictureRequest) -> Pictures:
    value = json.loads(body)
    pictures = [_picture(entry, host) for entry in value["data"][: request.num_pictures]]
    if not pictures:
        raise _refused(f"{host} has made no picture.")
    usage = value.get("usage")
    about = about_picture_usage(request, len(pictures))
    prompt = count_of(usage, "input_tokens") or about.prompt_tokens
    cached = min(prompt, count_of(usage, "input_tokens_details", "cached_tokens"))
    written = count_of(usage, "output_tokens") or about.completion_tokens
    return Pictures(
        tuple(pictures),
        Usage(prompt, cached, written),
        told=_told(usage),
        size=_one_of(_SIZES, value.get("size")),
        quality=_one_of(_QUALITIES, value.get("quality")),
        background=_one_of(_BACKGROUNDS, value.get("background")),
    )


def _picture(entry: dict[str, Any], host: str) -> Picture:
    if not entry.get("b64_json") and entry.get("url"):
        # Another server's words would send us to whatever address they name.
        raise _refused(f"{host} answers with the address of a picture, which is not fetched.")
    text: str = entry["b64_json"]
    if text.startswith("data:"):
        text = text.partition(",")[2]
    content = base64.b64decode(text, validate=True)
    kind = picture_kind(content)
    if kind not in MADE_KINDS:
        raise _refused(f"{host} answers with something that is no PNG, JPEG or WebP.")
    revised = entry.get("revised_prompt")
    revised = whole(revised)[:MAX_REVISED_CHARS] if isinstance(revised, str) else ""
    return Picture(content, kind, revised)


def _told(usage: Any) -> ToldTokens | None:
    """None where not all of it is there."""
    prompt, written = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
    of_prompt = usage.get("input_tokens_details") if isinstance(usage, dict) else None
    if not prompt or not written or not isinstance(of_prompt, dict):
        return None
    text, images = count_of(of_prompt, "text_tokens"), count_of(of_prompt, "image_tokens")
    return ToldTokens(prompt, text, images, written)


def _one_of(known: tuple[str, ...], value: Any) -> str:
    return value if value in known else ""

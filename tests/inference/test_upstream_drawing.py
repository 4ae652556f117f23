"""Pictures of models on other servers: what is asked, what comes back, and what is not believed."""

import base64
import json
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from inference import (
    EngineError,
    GivenPicture,
    PictureRequest,
    ToldTokens,
    Usage,
    WrongKind,
    about_picture_usage,
    parse_upstream,
)
from inference.upstreams import drawing
from tests.images import jpeg, png
from tests.inference.far import Far, spec_of
from tests.upstream_server import Answer, UpstreamServer, status, stream

USAGE = {
    "total_tokens": 300,
    "input_tokens": 28,
    "output_tokens": 272,
    "input_tokens_details": {"text_tokens": 20, "image_tokens": 8, "cached_tokens": 4},
}
HUGE = {"input_tokens": 10**30, "output_tokens": 10**30, "input_tokens_details": {}}
ASKED = PictureRequest("far", "A lamp")


def made(*contents: bytes, **more: Any) -> Answer:
    data = [{"b64_json": base64.b64encode(content).decode()} for content in contents]
    return status(200, {"created": 1, "data": data, **more})


@pytest.fixture
async def painter(server: UpstreamServer, tmp_path: Path) -> AsyncIterator[Far]:
    server.answers = [made(png(), usage=USAGE)]
    painter = Far(spec_of(server, options="&kind=image"), tmp_path)
    yield painter
    await painter.engine.close()


@pytest.fixture
def two_pictures(tmp_path: Path) -> tuple[GivenPicture, GivenPicture]:
    (tmp_path / "secret name.png").write_bytes(png("green"))
    (tmp_path / "b").write_bytes(jpeg())
    return (
        GivenPicture(tmp_path / "secret name.png", "image/png"),
        GivenPicture(tmp_path / "b", "image/jpeg"),
    )


async def test_a_prompt_becomes_a_picture(server: UpstreamServer, painter: Far) -> None:
    server.answers = [made(png(), usage=USAGE, size="1024x1024", quality="low", background="odd")]
    found = await painter.engine.draw(ASKED)
    (picture,) = found.pictures
    assert (picture.content, picture.media_type) == (png(), "image/png")
    assert found.usage == Usage(28, 4, 272)
    assert found.told == ToldTokens(prompt=28, text=20, images=8, written=272)
    assert (found.size, found.quality, found.background) == ("1024x1024", "low", "")
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.header("authorization") == "Bearer sk-1"
    # Nothing but what was asked for, and that it is to come here and not lie somewhere.
    assert asked.body == {
        "model": "their-model", "prompt": "A lamp", "response_format": "b64_json",
    }  # fmt: skip


async def test_all_that_was_asked_for_goes_there(server: UpstreamServer, painter: Far) -> None:
    server.answers = [made(jpeg(), jpeg("red"), png())]
    request = PictureRequest(
        "far", "A lamp", num_pictures=2, size="1536x1024", quality="high", style="natural",
        background="opaque", form="jpeg", compression=0, moderation="low",
    )  # fmt: skip
    found = await painter.engine.draw(request)
    assert [one.media_type for one in found.pictures] == ["image/jpeg"] * 2, (
        "no more than asked for"
    )
    assert server.asked[0].body == {
        "model": "their-model", "prompt": "A lamp", "n": 2, "size": "1536x1024", "quality": "high",
        "style": "natural", "background": "opaque", "output_format": "jpeg",
        "output_compression": 0, "moderation": "low", "response_format": "b64_json",
    }  # fmt: skip
    assert found.told is None
    assert found.usage.completion_tokens == 2 * 6_208


async def test_a_picture_is_changed(
    server: UpstreamServer, painter: Far, two_pictures: tuple[GivenPicture, GivenPicture]
) -> None:
    first, second = two_pictures
    request = PictureRequest(
        "far", "Make it blüe", given=(first, second), mask=first, fidelity="high", num_pictures=3
    )
    await painter.engine.draw(request)
    (asked,) = server.asked
    assert asked.path == "/v1/images/edits"
    raw = asked.raw
    assert raw.count(b'name="image[]"; filename="image-1.png"\r\nContent-Type: image/png') == 1
    assert raw.count(b'name="image[]"; filename="image-2.jpeg"\r\nContent-Type: image/jpeg') == 1
    assert raw.count(b'name="mask"; filename="mask.png"\r\nContent-Type: image/png') == 1
    assert raw.count(png("green")) == 2
    assert jpeg() in raw
    assert b'name="input_fidelity"\r\n\r\nhigh\r\n' in raw
    assert b'name="n"\r\n\r\n3\r\n' in raw
    assert "Make it blüe".encode() in raw
    assert b"secret" not in raw
    await painter.engine.draw(PictureRequest("far", "x", given=(second,)))
    assert b'name="image"; filename="image-1.jpeg"' in server.asked[1].raw


@pytest.mark.parametrize("model", ["gpt-image-1.5", "openai/gpt-image-2", "chatgpt-image-latest"])
async def test_openais_models_are_not_told_how_pictures_are_to_come(
    server: UpstreamServer, tmp_path: Path, model: str
) -> None:
    server.answers = [made(png())]
    spec = parse_upstream(f"far={server.url}?kind=image#{model}", lambda _: None)
    painter = Far(spec, tmp_path)
    assert painter.engine.state("far").spec.kind == "image"
    await painter.engine.draw(ASKED)
    assert server.asked[0].body == {"model": model, "prompt": "A lamp"}
    await painter.engine.close()


async def test_who_refuses_to_be_told_is_asked_without_from_then_on(
    server: UpstreamServer, painter: Far
) -> None:
    error = {"message": "Unknown parameter: 'response_format'.", "param": "response_format"}
    server.answers = [status(400, {"error": error}), made(png())]
    assert len((await painter.engine.draw(ASKED)).pictures) == 1
    await painter.engine.draw(ASKED)
    assert ["response_format" in asked.body for asked in server.asked] == [True, False, False]


async def test_a_refusal_that_quotes_the_prompt_changes_nothing_for_others(
    server: UpstreamServer, painter: Far
) -> None:
    refused = status(400, {"error": {"message": "I do not draw 'response_format'."}})
    server.answers = [refused, refused, made(png())]
    with pytest.raises(EngineError, match="refuses the request"):
        await painter.engine.draw(PictureRequest("far", "response_format"))
    await painter.engine.draw(ASKED)
    assert server.asked[-1].body["response_format"] == "b64_json"


async def test_pictures_that_are_too_large_there_are_no_context(
    server: UpstreamServer, painter: Far, two_pictures: tuple[GivenPicture, ...]
) -> None:
    server.answers = [status(413, {"error": {"message": "Request Entity Too Large"}})]
    with pytest.raises(EngineError, match="takes no pictures of this size") as caught:
        await painter.engine.draw(PictureRequest("far", "x", given=two_pictures))
    assert caught.value.code == "invalid_request"


async def test_a_server_that_failed_is_asked_again(
    server: UpstreamServer, painter: Far, two_pictures: tuple[GivenPicture, ...]
) -> None:
    server.answers = [status(500), made(png())]
    await painter.engine.draw(PictureRequest("far", "x", given=two_pictures))
    assert len(server.asked) == 2
    assert all(png("green") in asked.raw for asked in server.asked), "files are read anew"


def cut_in_the_body(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def cut_before_the_head(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (cut_in_the_body, "broke off"),
        (cut_before_the_head, "broke off"),
        (stream(hangs_s=5.0), "was silent for too long"),
        (stream(*[" "] * 50, pause_s=0.1), "was silent for too long"),
        (status(504), "HTTP 504"),
        (status(524), "HTTP 524"),
    ],
)
async def test_who_may_have_drawn_is_not_asked_again(
    server: UpstreamServer,
    other: UpstreamServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    words: str,
) -> None:
    """Nor is anybody else: each might be paid for. The next request goes to who has not failed."""
    monkeypatch.setattr(drawing, "MAX_PINGED", 2)
    server.answers, other.answers = [answer], [made(png())]
    painter = Far(spec_of(server, other, options="&kind=image&timeout=1"), tmp_path)
    with pytest.raises(EngineError, match=f"{words}.*not asked again") as caught:
        await painter.engine.draw(ASKED)
    assert caught.value.code == "upstream_unavailable"
    assert (len(server.asked), len(other.asked)) == (1, 0)
    assert (await painter.engine.draw(ASKED)).pictures
    assert (len(server.asked), len(other.asked)) == (1, 1)
    await painter.engine.close()


async def test_who_cannot_be_reached_has_not_drawn(other: UpstreamServer, tmp_path: Path) -> None:
    with UpstreamServer() as gone:
        pass
    other.answers = [made(png())]
    painter = Far(spec_of(gone, other, options="&kind=image"), tmp_path)
    assert (await painter.engine.draw(ASKED)).pictures
    await painter.engine.close()


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(200, {"data": [{"url": "http://169.254.169.254/latest/"}]}), "not fetched"),
        (status(200, {"data": []}), "no picture"),
        (status(200, {"data": [{}]}), "not understood"),
        (status(200, {"data": None}), "not understood"),
        (status(200, {"data": "pictures"}), "not understood"),
        (status(200, {"data": [{"b64_json": 5}]}), "not understood"),
        (status(200, {"data": [{"b64_json": "@@@"}]}), "not understood"),
        (status(200, {"data": [{"b64_json": "AAA"}]}), "not understood"),
        (status(200, {"data": [{"b64_json": base64_of(b"<svg/>" * 9)}]}), "no PNG"),
        (status(200, {"data": [{"b64_json": base64_of(b"GIF89a" * 9)}]}), "no PNG"),
        (status(200, ["pictures"]), "not understood"),
        (stream("<html>Bad gateway</html>", kind="text/html"), "not understood"),
        (stream("[" * 100_000, kind="application/json"), "not understood"),
        (status(401, {"error": {"message": "Incorrect key sk-1"}}), "refuses Vitrine's key"),
        (status(302, None, Location="http://169.254.169.254/"), "HTTP 302"),
    ],
)
async def test_what_is_no_picture_is_refused_and_not_asked_again(
    server: UpstreamServer, painter: Far, answer: Answer, words: str
) -> None:
    server.answers = [answer]
    with pytest.raises(EngineError, match=words) as caught:
        await painter.engine.draw(ASKED)
    assert caught.value.code == "upstream_error"
    assert "sk-1" not in str(caught.value)
    assert "169.254" not in str(caught.value)
    assert len(server.asked) == 1


async def test_more_than_fits_is_not_read(
    server: UpstreamServer, painter: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MAX_ANSWER_BYTES", 2**20)
    sent = 0

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"data": [{"b64_json": "')
        for _ in range(1000):
            handler.wfile.write(b"A" * 2**16)
            sent += 2**16

    server.answers = [endless]
    with pytest.raises(EngineError, match="more than 1 MiB"):
        await painter.engine.draw(ASKED)
    assert sent < 32 * 2**20
    assert len(server.asked) == 1


async def test_a_data_url_and_a_prompt_that_was_rewritten_are_understood(
    server: UpstreamServer, painter: Far
) -> None:
    entry = {"b64_json": f"data:image/webp;base64,{base64_of(png())}", "revised_prompt": "A \ud800"}
    server.answers = [status(200, {"data": [entry]})]
    (picture,) = (await painter.engine.draw(ASKED)).pictures
    assert picture.media_type == "image/png", "by its bytes"
    assert picture.revised_prompt == "A \ufffd"


async def test_another_server_is_asked_where_one_is_down(
    server: UpstreamServer, other: UpstreamServer, tmp_path: Path
) -> None:
    server.answers, other.answers = [status(500)], [made(png())]
    painter = Far(spec_of(server, other, options="&kind=image"), tmp_path)
    for _ in range(4):
        assert (await painter.engine.draw(ASKED)).pictures
    assert len(server.asked) == 1, "who failed last comes last"
    assert len(other.asked) == 4
    await painter.engine.close()


async def test_who_is_full_says_when_to_come_back(server: UpstreamServer, painter: Far) -> None:
    server.answers = [status(429, {"error": {"message": "full"}}, Retry_After="30")]
    with pytest.raises(EngineError) as caught:
        await painter.engine.draw(ASKED)
    assert caught.value.code == "upstream_busy"
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s > 20


async def test_it_draws_and_nothing_else(painter: Far) -> None:
    with pytest.raises(WrongKind, match="'far' is an image model"):
        await painter.ask()
    assert painter.engine.models("chat")[0].spec.name != "far"
    with pytest.raises(WrongKind, match="this needs an image model"):
        await painter.engine.draw(PictureRequest("vitrine-small", "A lamp"))


@pytest.mark.parametrize(
    ("size", "quality", "num_tokens"),
    [
        ("1024x1024", "low", 272),
        ("1536x1024", "medium", 1_568),
        ("1024x1536", "high", 6_240),
        ("1024x1024", "standard", 1_056),
        ("1024x1024", "hd", 4_160),
        ("512x512", "low", 68),
        ("2048x1024", "low", 544),
        ("auto", "auto", 6_240),
        ("", "", 6_240),
        ("16x16", "low", 1),
    ],
)
def test_what_nobody_tells_is_taken_from_the_table(
    size: str, quality: str, num_tokens: int
) -> None:
    request = PictureRequest("far", "x" * 30, size=size, quality=quality)
    assert about_picture_usage(request, 3) == Usage(10, 0, 3 * num_tokens)


def test_pictures_that_are_given_count_too(two_pictures: tuple[GivenPicture, ...]) -> None:
    request = PictureRequest("far", "x" * 30, given=two_pictures, mask=two_pictures[0])
    assert about_picture_usage(request, 1).prompt_tokens == 10 + 3 * 581
    request = PictureRequest("far", "x" * 30, given=two_pictures, fidelity="high")
    assert about_picture_usage(request, 1).prompt_tokens == 10 + 2 * (581 + 6_240)


async def test_counts_that_are_none_are_not_believed(server: UpstreamServer, painter: Far) -> None:
    for usage in (
        {"input_tokens": "5", "output_tokens": -1},
        [],
        "many",
        HUGE,
        {"output_tokens": True},
    ):
        server.answers = [made(png(), usage=json.loads(json.dumps(usage)))]
        found = await painter.engine.draw(ASKED)
        assert found.usage == about_picture_usage(ASKED, 1)
        assert found.told is None

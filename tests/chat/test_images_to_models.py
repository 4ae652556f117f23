"""Images that programs send: models that see read them where they stand, and others refuse them."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.chat.api_caller import Caller
from tests.images import data_url, jpeg, png
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, events, texts

RED, BLUE = data_url(png("red")), data_url(jpeg("blue"), "image/jpeg")
CHAT = "/chat/completions"
_SERVED = {"/blue": jpeg("blue"), "/words": b"no image at all", "/large": b"\x89PNG" * 6 * 2**20}


@pytest.fixture(scope="module")
def pictures() -> Iterator[str]:
    """The address of a server of images."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = _SERVED.get(self.path)
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "image/png")  # of all, which is a lie
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer, pictures: str) -> Iterator[Site]:
    seeing = f"far={server.url}?images=on,claude=anthropic+{server.url}?images=on"
    with make_site(
        VITRINE_MODELS=f"vitrine-small,{seeing},blind={server.url}",
        VITRINE_EGRESS_ALLOW=pictures.removeprefix("http://"),
    ) as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def caller(site: Site) -> Caller:
    return Caller.signed_up(site)


@pytest.fixture(autouse=True)
def _forget(server: UpstreamServer) -> None:
    server.asked.clear()
    server.answers = [events(*texts("A red ", "square."))]


def asked(*parts: Any, model: str = "far", role: str = "user") -> dict[str, Any]:
    """A part that is a text, or the address of an image."""
    return {"model": model, "messages": [{"role": role, "content": [*map(_part, parts)]}]}


def _part(part: Any) -> Any:
    if not isinstance(part, str):
        return part
    if part.startswith(("data:", "http")):
        return {"type": "image_url", "image_url": {"url": part}}
    return {"type": "text", "text": part}


def test_a_model_reads_them_where_they_stand(caller: Caller, server: UpstreamServer) -> None:
    body = asked("First: ", RED, "Second: ", BLUE, "Which is \ufffcwarmer?")
    body["messages"][0]["content"][1]["image_url"]["detail"] = "low"
    answer = caller.post(CHAT, body)
    assert answer.json()["choices"][0]["message"]["content"] == "A red square."
    (message,) = server.asked[0].body["messages"]
    assert message == {
        "role": "user",
        "content": [
            {"type": "text", "text": "First: "},
            {"type": "image_url", "image_url": {"url": RED, "detail": "low"}},
            {"type": "text", "text": "Second: "},
            {"type": "image_url", "image_url": {"url": BLUE}},
            {"type": "text", "text": "Which is warmer?"},
        ],
    }


def test_an_image_is_enough_and_its_kind_is_what_it_is(
    caller: Caller, server: UpstreamServer
) -> None:
    mistaken = data_url(jpeg("blue"), "image/png")
    assert caller.post(CHAT, asked(mistaken)).status_code == 200
    assert server.asked[0].body["messages"][0]["content"] == [_part(BLUE)]


def test_anthropics_servers_are_sent_blocks(caller: Caller, server: UpstreamServer) -> None:
    caller.post(CHAT, asked("What is this?", RED, model="claude"))
    text, image = server.asked[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    source = {"type": "base64", "media_type": "image/png", "data": RED.partition(",")[2]}
    assert image == {"type": "image", "source": source}


def test_responses_and_what_follows_them(caller: Caller, server: UpstreamServer) -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": RED, "detail": "auto"},
    ]
    body = {"model": "far", "input": [{"role": "user", "content": parts}]}
    first = caller.post("/responses", body).json()
    assert first["output"][0]["content"][0]["text"] == "A red square."
    caller.post(
        "/responses", {"model": "far", "input": "Sure?", "previous_response_id": first["id"]}
    )
    for request in server.asked:
        text, image = request.body["messages"][0]["content"]
        assert text == {"type": "text", "text": "What is this?"}
        assert image["image_url"]["url"] == RED
    assert server.asked[1].body["messages"][-1] == {"role": "user", "content": "Sure?"}
    kept = caller.get(f"/responses/{first['id']}/input_items").json()["data"]
    assert kept[0]["content"][1]["image_url"] == RED


def test_messages(caller: Caller, server: UpstreamServer) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": RED.partition(",")[2]}
    blocks = [{"type": "image", "source": source}, {"type": "text", "text": "What is this?"}]
    body = {
        "model": "far",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": blocks}],
    }
    assert caller.post("/messages", body).json()["content"][0]["text"] == "A red square."
    assert server.asked[0].body["messages"][0]["content"] == [_part(RED), _part("What is this?")]


def test_what_is_at_an_address_is_fetched_here(
    caller: Caller, server: UpstreamServer, pictures: str
) -> None:
    assert caller.post(CHAT, asked(f"{pictures}/blue", "?")).status_code == 200
    assert server.asked[0].body["messages"][0]["content"][0] == _part(BLUE)


@pytest.mark.parametrize(
    ("path", "told"), [("/words", "no image"), ("/none", "not_found"), ("/large", "too_large")]
)
def test_what_no_image_is_at_its_address_is_told(
    caller: Caller, server: UpstreamServer, pictures: str, path: str, told: str
) -> None:
    error = caller.post(CHAT, asked(f"{pictures}{path}")).json()["error"]
    assert error["param"] == "messages"
    assert told in error["message"]
    parts = [{"type": "input_image", "image_url": f"{pictures}{path}"}]
    body = {"model": "far", "input": [{"role": "user", "content": parts}]}
    error = caller.post("/responses", body).json()["error"]
    assert error["param"] == "input"
    assert told in error["message"]
    assert not server.asked


def test_nothing_is_fetched_from_where_callers_may_not_look(
    caller: Caller, server: UpstreamServer, site: Site
) -> None:
    answer = caller.post(CHAT, asked(f"{site.url}/healthz"))
    assert answer.status_code == 400
    assert "unreachable" in answer.json()["error"]["message"]
    assert not server.asked


def test_a_response_keeps_what_was_at_the_address(
    caller: Caller, server: UpstreamServer, pictures: str
) -> None:
    parts = [{"type": "input_image", "image_url": f"{pictures}/blue"}]
    body = {"model": "far", "input": [{"role": "user", "content": parts}]}
    first = caller.post("/responses", body).json()
    kept = caller.get(f"/responses/{first['id']}/input_items").json()["data"]
    assert kept[0]["content"][0]["image_url"] == BLUE


@pytest.mark.parametrize(
    "url",
    [
        RED.replace("data:image/png", "DATA:IMAGE/PNG"),
        RED.replace("image/png", "image/png;charset=utf-8"),
        RED.replace("image/png", "application/octet-stream"),
        RED[:80] + "\n" + RED[80:] + "\n",
        RED.rstrip("="),
    ],
)
def test_data_urls_are_taken_as_others_take_them(
    caller: Caller, server: UpstreamServer, url: str
) -> None:
    part = {"type": "image_url", "image_url": url}  # without its object, as some clients
    assert caller.post(CHAT, asked(part)).status_code == 200
    assert server.asked[0].body["messages"][0]["content"] == [_part(RED)]


@pytest.mark.parametrize("model", ["blind", "vitrine-small"])
def test_models_that_do_not_see_refuse_them(
    caller: Caller, server: UpstreamServer, model: str
) -> None:
    answer = caller.post(CHAT, asked("What is this?", RED, model=model))
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "messages")
    assert f"{model} reads texts only" in error["message"]
    assert not server.asked


@pytest.mark.parametrize(
    "body",
    [
        asked("data:image/png;base64,aGVsbG8="),
        asked("data:image/png;base64,?!"),
        asked(RED + "!"),
        asked("data:text/html;base64,aGVsbG8="),
        asked("http://"),
        asked(*[RED] * 501),
        asked(*[f"http://127.0.0.1/{n}" for n in range(9)]),
        asked(RED, role="system"),
        asked({"type": "image_url", "image_url": {"url": RED, "detail": "closely"}}),
        asked({"type": "input_audio", "input_audio": {}}),
    ],
)
def test_bad_ones_are_told(caller: Caller, server: UpstreamServer, body: Any) -> None:
    answer = caller.post(CHAT, body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert not server.asked


def test_which_models_see_is_told(site: Site, caller: Caller) -> None:
    listed = caller.get("/models").json()["data"]
    assert {one["id"] for one in listed if one["images"]} == {"far", "claude"}
    with closing(site.sign_up("reader")) as reader:
        found = {one["name"]: one["images"] for one in reader.get("/api/models").json()["models"]}
    assert {name for name, sees in found.items() if sees} == {"far", "claude"}
    assert {"blind", "vitrine-small"} <= found.keys()

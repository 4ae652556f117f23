"""/v1/images with OpenAI's own client, unmodified, by models on other servers; and what raw callers may
do wrong."""

import base64
import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import openai
import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, judged_site, set_policy
from tests.images import jpeg, png
from tests.openai_description import check, needs_description
from tests.sites import ROOT, Site, SiteMaker, email_of
from tests.upstream_server import Answer, Asked, UpstreamServer, status, stream

LAMP = "A lamp on a shore"
DATA = [{"b64_json": base64.b64encode(png()).decode()}]
USAGE = {
    "total_tokens": 300,
    "input_tokens": 28,
    "output_tokens": 272,
    "input_tokens_details": {"text_tokens": 20, "image_tokens": 8},
}
MADE: dict[str, Any] = {"created": 1, "data": DATA, "usage": USAGE, "quality": "low"}
BLOCKED: dict[str, Any] = {"input": {"illicit": {"block": 0.9}}, "output": {}}
NOWHERE = "http://127.0.0.1:9/v1"  # a port at which nothing listens


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url},painter={server.url}?kind=image&key=FAR_KEY#gpt-image-1.5"
    models += f",weak={server.url}?kind=image&key=FAR_KEY,two={NOWHERE}|{server.url}?kind=image"
    models += f",full={server.url}?kind=image,down={server.url}?kind=image"
    with judged_site(make_site, models, FAR_KEY="sk-far") as site:
        yield site


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    site.sign_up("developer").close()
    return site.create_api_key(email_of("developer"))


@pytest.fixture
def caller(site: Site, key: str, server: UpstreamServer) -> Caller:
    site.execute("DELETE FROM moderation_moderationpolicy")
    server.answers = [status(200, MADE)]
    server.asked.clear()
    return Caller(site, key)


@pytest.fixture
def client(site: Site, key: str, caller: Caller) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        yield client


def body(**more: Any) -> dict[str, Any]:
    return {"model": "painter", "prompt": LAMP, **more}


def edit(site: Site, key: str, *files: tuple[str, bytes], **fields: Any) -> httpx2.Response:
    """`files` are the names of fields, and what is in them."""
    parts = [(name, ("a.png", content, "image/png")) for name, content in files]
    return httpx2.post(
        f"{site.url}/v1/images/edits",
        data={"model": "painter", "prompt": LAMP, **fields},
        files=parts or [("", ("", b""))],
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )


def spent_by(site: Site, name: str) -> list[tuple[Any, ...]]:
    with site.connection() as connection:
        return connection.execute(
            "SELECT model, num_requests, prompt_tokens, completion_tokens FROM chat_usage"
            " JOIN webapp_user ON webapp_user.id = owner_id WHERE email = %s",
            [email_of(name)],
        ).fetchall()


def test_a_prompt_becomes_a_picture(client: openai.OpenAI, server: UpstreamServer) -> None:
    found = client.images.generate(
        model="painter", prompt=LAMP, n=2, size="1536x1024", quality="low", background="opaque",
        output_format="png", moderation="low", user="user-7",
    )  # fmt: skip
    assert found.data is not None
    assert found.usage is not None
    assert base64.b64decode(str(found.data[0].b64_json)) == png()
    assert (found.quality, found.output_format, found.size) == ("low", "png", None)
    assert found.usage.total_tokens == 300
    assert found.usage.input_tokens_details.image_tokens == 8
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.header("authorization") == "Bearer sk-far"
    assert asked.body == {
        "model": "gpt-image-1.5", "prompt": LAMP, "n": 2, "size": "1536x1024", "quality": "low",
        "background": "opaque", "output_format": "png", "moderation": "low",
    }  # fmt: skip


def test_pictures_are_changed(client: openai.OpenAI, server: UpstreamServer) -> None:
    found = client.images.edit(
        model="painter", prompt="Make it night", image=[("my house.png", png()), ("b.jpg", jpeg())],
        mask=("m.png", png("white")), input_fidelity="high", n=3, size="1024x1024",
    )  # fmt: skip
    assert found.data is not None
    (asked,) = server.asked
    assert asked.path == "/v1/images/edits"
    fields, files = parts_of(asked)
    assert fields == {
        "model": "gpt-image-1.5", "prompt": "Make it night", "n": "3", "size": "1024x1024",
        "input_fidelity": "high",
    }  # fmt: skip
    assert files == [("image[]", png()), ("image[]", jpeg()), ("mask", png("white"))]
    assert b"my house" not in asked.raw
    client.images.edit(model="painter", prompt="Make it day", image=png())
    assert parts_of(server.asked[1])[1] == [("image", png())]


def parts_of(asked: Asked) -> tuple[dict[str, str], list[tuple[str, bytes]]]:
    """The fields of a form, and its files."""
    boundary = asked.header("content-type").partition("boundary=")[2].encode()
    fields, files = {}, []
    for part in asked.raw.split(b"--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = re.findall(rb'name="([^"]+)"', head)[0].decode()
        content = value.removesuffix(b"\r\n")
        if b"filename=" in head:
            files.append((name, content))
        else:
            fields[name] = content.decode()
    return fields, files


@needs_description
def test_answers_are_as_published(site: Site, caller: Caller, server: UpstreamServer) -> None:
    odd = {"size": "9x9", "quality": "superb", "background": 5, "output_format": "tiff"}
    for extra in ({}, odd, {"usage": {"total_tokens": 5}}, {"usage": None, "size": "1024x1024"}):
        server.answers = [status(200, MADE | extra)]
        found = caller.post("/images/generations", body()).json()
        check(found, "ImagesResponse")
        assert found["output_format"] == "png"
        assert ("usage" in found) == (extra in ({}, odd))
    check(
        edit(site, caller.headers["Authorization"][7:], ("image", png())).json(), "ImagesResponse"
    )


def test_the_first_model_draws_where_none_is_named(
    client: openai.OpenAI, server: UpstreamServer
) -> None:
    assert client.images.generate(prompt=LAMP, response_format="b64_json").data
    assert server.asked[0].body["model"] == "gpt-image-1.5"


def test_the_example_in_the_documents_works(site: Site, client: openai.OpenAI, tmp_path: Any,
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    text = (ROOT / "docs" / "api.md").read_text().partition("\n## Images\n")[2]
    (example,) = re.findall(r"```py\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(example.replace("PAINTER", "painter"), {"client": client})
    assert [(tmp_path / name).read_bytes() for name in ("day.png", "night.png")] == [png()] * 2


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"model": "gpt-9"}, "model_not_found", "model"),
        ({"model": "far"}, "wrong_model_kind", "model"),
        ({"prompt": ""}, "invalid_value", "prompt"),
        ({"prompt": " \n"}, "invalid_value", "prompt"),
        ({"prompt": "x" * 32_001}, "invalid_value", "prompt"),
        ({"prompt": "half \ud800"}, "invalid_value", "prompt"),
        ({"n": 0}, "invalid_value", "n"),
        ({"n": 11}, "invalid_value", "n"),
        ({"size": "huge"}, "invalid_value", "size"),
        ({"size": "99999x99999"}, "invalid_value", "size"),
        ({"quality": "best"}, "invalid_value", "quality"),
        ({"style": "odd"}, "invalid_value", "style"),
        ({"background": "blue"}, "invalid_value", "background"),
        ({"output_format": "gif"}, "invalid_value", "output_format"),
        ({"output_compression": 101}, "invalid_value", "output_compression"),
        ({"moderation": "none"}, "invalid_value", "moderation"),
        ({"response_format": "url"}, "invalid_value", "response_format"),
        ({"stream": True}, "invalid_value", "stream"),
        ({"partial_images": 1}, "invalid_value", "partial_images"),
        ({"input_fidelity": "high"}, "invalid_value", "input_fidelity"),
        ({"seed": 7}, "invalid_value", "seed"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(
    caller: Caller, server: UpstreamServer, changes: dict[str, Any], code: str, param: str
) -> None:
    response = caller.post("/images/generations", body(**changes))
    assert response.status_code == (404 if code == "model_not_found" else 400), response.text
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert not server.asked


def test_what_cannot_be_had_is_said_in_words(caller: Caller) -> None:
    for changes, words in (({"response_format": "url"}, "b64_json"), ({"stream": True}, "whole")):
        error = caller.post("/images/generations", body(**changes)).json()["error"]
        assert words in error["message"]
    nothing: dict[str, Any] = dict.fromkeys(
        ("n", "size", "quality", "style", "background", "stream")
    )
    asked = body(**nothing, response_format=None, partial_images=0, output_compression=None)
    assert caller.post("/images/generations", asked).status_code == 200


PNG = ("image", png())


@pytest.mark.parametrize(
    ("files", "fields", "http_status", "code", "param"),
    [
        ([], {}, 400, "missing_file", "image"),
        ([("mask", png())], {}, 400, "missing_file", "image"),
        ([("image", b"")], {}, 400, "invalid_image", "image"),
        ([("image", b"<svg></svg>")], {}, 400, "invalid_image", "image"),
        ([("image", b"GIF89a" + bytes(9))], {}, 400, "invalid_image", "image"),
        ([PNG, ("image[]", b"MZ" + bytes(99))], {}, 400, "invalid_image", "image"),
        ([PNG, ("mask", jpeg())], {}, 400, "invalid_image", "mask"),
        ([PNG, ("mask", png()), ("mask", png())], {}, 400, "invalid_value", "mask"),
        ([PNG] * 17, {}, 400, "invalid_value", "image"),
        ([PNG, ("file", png())], {}, 400, "invalid_multipart", "image"),
        ([PNG, ("mask", png() + bytes(50 * 2**20))], {}, 413, "content_too_large", "mask"),
        ([PNG], {"prompt": ""}, 400, "invalid_value", "prompt"),
        ([PNG], {"n": "many"}, 400, "invalid_value", "n"),
        ([PNG], {"stream": "true"}, 400, "invalid_value", "stream"),
        ([PNG], {"response_format": "url"}, 400, "invalid_value", "response_format"),
        ([PNG], {"input_fidelity": "odd"}, 400, "invalid_value", "input_fidelity"),
        ([PNG], {"style": "vivid"}, 400, "invalid_value", "style"),
        ([PNG], {"model": "far"}, 400, "wrong_model_kind", "model"),
        ([PNG], {"model": "gpt-9"}, 404, "model_not_found", "model"),
    ],
)
def test_what_is_wrong_with_a_form_is_named(
    site: Site, key: str, caller: Caller, server: UpstreamServer, files: list[tuple[str, bytes]],
    fields: dict[str, str], http_status: int, code: str, param: str,
) -> None:  # fmt: skip
    response = edit(site, key, *files, **fields)
    assert response.status_code == http_status, response.text
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert not server.asked


def test_what_is_no_form_is_refused(caller: Caller, server: UpstreamServer) -> None:
    response = caller.post("/images/edits", body(images=[{"image_url": "http://169.254.169.254/"}]))
    assert response.status_code == 415
    assert "multipart/form-data" in response.json()["error"]["message"]
    assert not server.asked


@pytest.mark.parametrize(
    ("answer", "raised", "code"),
    [
        (status(400, {"error": {"message": "Your request was rejected.",
                                "code": "moderation_blocked"}}),
         openai.BadRequestError, "invalid_request"),
        (status(401, {"error": {"message": "sk-far"}}), openai.InternalServerError,
         "upstream_error"),
        (status(200, {"data": [{"url": "http://169.254.169.254/latest/meta-data"}]}),
         openai.InternalServerError, "upstream_error"),
        (status(200, {"data": []}), openai.InternalServerError, "upstream_error"),
        (status(200, {"data": [{"b64_json": "no base64"}]}), openai.InternalServerError,
         "upstream_error"),
        (stream("<html></html>", kind="text/html"), openai.InternalServerError, "upstream_error"),
    ],
)  # fmt: skip
def test_what_goes_wrong_there_is_told(
    client: openai.OpenAI, server: UpstreamServer, answer: Answer, raised: Any, code: str
) -> None:
    server.answers = [answer]
    with pytest.raises(raised) as caught:
        client.images.generate(model="weak", prompt=LAMP)
    assert caught.value.code == code
    assert "sk-far" not in str(caught.value)
    assert "169.254" not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("model", "answer", "code", "told"),
    [
        ("down", status(500, {"error": "sk-far"}), 503, "upstream_unavailable"),
        ("full", status(429, Retry_After="7"), 429, "upstream_busy"),
    ],
)
def test_who_is_away_or_full_says_when_to_come_back(
    caller: Caller, server: UpstreamServer, model: str, answer: Answer, code: int, told: str
) -> None:
    server.answers = [answer]
    response = caller.post("/images/generations", body(model=model))
    assert (response.status_code, response.json()["error"]["code"]) == (code, told)
    assert int(response.headers["retry-after"]) > 0


def test_of_two_servers_one_may_be_down(caller: Caller, server: UpstreamServer) -> None:
    for _ in range(3):
        assert caller.post("/images/generations", body(model="two")).status_code == 200
    assert len(server.asked) == 3
    assert server.asked[0].body["response_format"] == "b64_json"


def test_what_it_took_is_in_the_ledger(site: Site, caller: Caller, server: UpstreamServer) -> None:
    own = Caller.signed_up(site, "spender")
    assert own.post("/images/generations", body()).status_code == 200
    assert spent_by(site, "spender") == [("painter", 1, 28, 272)]
    server.answers = [status(200, {"data": DATA * 2})]  # which tells nothing
    asked = body(n=2, quality="medium", size="1024x1024", prompt="x" * 30)
    assert own.post("/images/generations", asked).status_code == 200
    assert spent_by(site, "spender") == [("painter", 2, 38, 272 + 2 * 1_056)]
    server.answers = [status(400, {"error": {"message": "no"}})]
    assert own.post("/images/generations", body()).status_code == 400
    assert spent_by(site, "spender") == [("painter", 3, 38, 272 + 2 * 1_056)]


def test_a_count_that_no_ledger_holds_is_not_believed(
    site: Site, caller: Caller, server: UpstreamServer
) -> None:
    own = Caller.signed_up(site, "trusting")
    usage = {"input_tokens": 10**30, "output_tokens": 10**30, "input_tokens_details": {}}
    server.answers = [status(200, MADE | {"usage": usage})]
    asked = body(quality="low", size="1024x1024", prompt="x" * 30)
    assert "usage" not in own.post("/images/generations", asked).json()
    assert spent_by(site, "trusting") == [("painter", 1, 10, 272)]


def test_who_leaves_pays_for_what_is_drawn(
    site: Site, caller: Caller, server: UpstreamServer
) -> None:
    own = Caller.signed_up(site, "leaver")
    server.answers = [stream(" ", hangs_s=3.0, kind="application/json")]
    asked = body(quality="low", size="1024x1024", prompt="x" * 30)
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{own.url}/images/generations", headers=own.headers, json=asked, timeout=1.0)
    until_s = time.monotonic() + 10
    while not (spent := spent_by(site, "leaver")) and time.monotonic() < until_s:
        time.sleep(0.1)
    assert spent == [("painter", 1, 10, 272)]


def test_a_budget_that_is_spent_stops_it(
    site: Site, caller: Caller, server: UpstreamServer
) -> None:
    site.sign_up("poor").close()
    secret = site.create_api_key(email_of("poor"))
    site.execute("UPDATE webapp_apikey SET tokens_per_day = 300 WHERE prefix = %s", secret[:11])
    own = Caller(site, secret)
    assert own.post("/images/generations", body()).status_code == 200
    response = own.post("/images/generations", body())
    assert (response.status_code, response.json()["error"]["code"]) == (429, "insufficient_quota")
    assert edit(site, secret, PNG).status_code == 429
    assert len(server.asked) == 1


def test_requests_of_a_minute_are_counted(site: Site, caller: Caller) -> None:
    site.sign_up("eager").close()
    secret = site.create_api_key(email_of("eager"))
    site.execute("UPDATE webapp_apikey SET requests_per_minute = 2 WHERE prefix = %s", secret[:11])
    codes = [edit(site, secret, PNG).status_code]
    codes += [Caller(site, secret).post("/images/generations", body()).status_code for _ in "12"]
    assert codes == [200, 200, 429]


def test_what_a_policy_stops_does_not_leave_the_house(
    site: Site, key: str, caller: Caller, server: UpstreamServer
) -> None:
    set_policy(site, BLOCKED)
    asked = body(prompt=f"Draw the {PHRASE}")
    response = caller.post("/images/generations", asked)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "content_filter")
    assert error["param"] == "prompt"
    response = edit(site, key, PNG, prompt=f"Add a {PHRASE}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "content_filter")
    assert not server.asked
    assert caller.post("/images/generations", body()).status_code == 200
    set_policy(site, {"input": {"illicit": {"redact": 0.9}}, "output": {}})
    assert caller.post("/images/generations", asked).status_code == 200
    assert PHRASE not in server.asked[-1].body["prompt"]
    assert server.asked[-1].body["prompt"].startswith("Draw the")


def test_a_prompt_that_was_written_anew_is_judged_as_an_answer(
    site: Site, caller: Caller, server: UpstreamServer
) -> None:
    revised = {**DATA[0], "revised_prompt": f"A lamp beside the {PHRASE}"}
    server.answers = [status(200, {"data": [DATA[0], revised]})]
    found = caller.post("/images/generations", body(n=2)).json()["data"]
    assert [item.get("revised_prompt") for item in found] == [None, revised["revised_prompt"]]
    set_policy(site, {"input": {}, "output": {"illicit": {"block": 0.9}}})
    response = caller.post("/images/generations", body(n=2))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "content_filter")
    assert PHRASE not in response.text
    set_policy(site, {"input": {}, "output": {"illicit": {"redact": 0.9}}})
    found = caller.post("/images/generations", body(n=2)).json()["data"]
    assert found[1]["revised_prompt"].startswith("A lamp beside the")
    assert PHRASE not in found[1]["revised_prompt"]


def test_charlie_tries_each_door(site: Site, caller: Caller, server: UpstreamServer) -> None:
    site.sign_up("charlie").close()
    chat_only = site.create_api_key(email_of("charlie"), "chat")
    assert Caller(site, chat_only).post("/images/generations", body()).status_code == 403
    assert edit(site, chat_only, PNG).status_code == 403
    assert Caller(site, "vt_nothing").post("/images/generations", body()).status_code == 401
    assert edit(site, "vt_nothing", PNG).status_code == 401
    other = site.create_api_key(email_of("charlie"))
    site.execute("UPDATE webapp_apikey SET model_names = '{far}' WHERE prefix = %s", other[:11])
    for asked in (body(), {"prompt": LAMP}):
        found = Caller(site, other).post("/images/generations", asked)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "model_not_found")
    assert edit(site, other, PNG).json()["error"]["code"] == "model_not_found"
    kinds = {one["id"] for one in Caller(site, other).get("/models").json()["data"]}
    assert "painter" not in kinds
    with closing(site.sign_in(email_of("charlie"))) as browser:
        assert browser.post("/v1/images/generations", json=body()).status_code == 403
        token = browser.get("/").text.partition('"csrf": "')[2].partition('"')[0]
        headers = {"X-CSRFToken": token}
        form = {"data": {"prompt": LAMP}, "files": {"image": ("a.png", png())}}
        refused = browser.post("/v1/images/edits", headers=headers, **form)
        assert refused.json()["error"]["code"] == "api_key_required"
    assert not server.asked


def test_it_is_a_model_of_its_own_kind(client: openai.OpenAI, caller: Caller) -> None:
    kinds = {model.id: model.to_dict()["kind"] for model in client.models.list()}
    assert (kinds["painter"], kinds["far"]) == ("image", "chat")
    for path in ("/chat/completions", "/responses"):
        asked = {"model": "painter", "messages": [{"role": "user", "content": "Hi"}]}
        asked = asked if path == "/chat/completions" else {"model": "painter", "input": "Hi"}
        assert caller.post(path, asked).json()["error"]["code"] == "wrong_model_kind"

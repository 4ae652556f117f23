"""Pictures that are attached to a question: models that see are shown them, others what was read."""

import base64
import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from PIL import Image

from tests.chat.reader import Frame, Reader
from tests.images import jpeg, png
from tests.sites import Site, SiteMaker
from tests.upstream_server import Asked, UpstreamServer, events, texts


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url}?images=on,blind={server.url}"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far") as site:
        site.set_up().close()
        yield site


@pytest.fixture
def reader(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    server.answers = [events(*texts("A red ", "square."))]
    server.asked.clear()
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


def attached(reader: Reader, name: str, content: bytes) -> str:
    """The id of the document."""
    headers = {"X-CSRFToken": reader.client.cookies.get("vitrine_csrf") or ""}
    headers["Content-Type"] = "application/octet-stream"
    address = f"/api/documents/attach?name={name}"
    answer = reader.client.post(address, content=content, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def picked(*documents: str) -> Frame:
    return {"sources": {"documents": list(documents)}}


def questions(asked: list[Asked]) -> list[list[Any]]:
    """The contents of users' messages of each request, those for titles left out."""
    found = [[m["content"] for m in one.body["messages"] if m["role"] == "user"] for one in asked]
    return [one for one in found if "short title" not in str(one[-1])]


def sizes(content: Any) -> list[tuple[int, int]]:
    """Of the images in a message's content, all of them JPEGs."""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    images = [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls]
    assert {image.format for image in images} <= {"JPEG"}
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)
    return [image.size for image in images]


def go_on(reader: Reader, first: Frame, text: str, model: str = "far") -> None:
    """Another question in the same chat, and its answer."""
    behind = {"conversation": first["conversation"]["id"], "parent": first["answer"]["id"]}
    reader.hear_end(reader.send(text, model=model, **behind)["run"])


def test_a_model_that_sees_is_shown_it_in_this_turn_and_the_next(
    reader: Reader, server: UpstreamServer
) -> None:
    picture = attached(reader, "square.png", png("red", (40, 30)))
    first = reader.send("What is this?", model="far", **picked(picture))
    reader.hear_end(first["run"])
    go_on(reader, first, "Sure?")
    one, two = questions(server.asked)
    assert sizes(one[0]) == [(40, 30)]
    assert one[0][-1] == {"type": "text", "text": "What is this?"}
    assert two[0] == one[0]  # the same bytes, so that the server's cache knows them
    assert two[1] == "Sure?"
    assert "<documents>" not in str(server.asked[0].body)


def test_what_is_large_is_made_smaller(reader: Reader, server: UpstreamServer) -> None:
    pictures = [attached(reader, "wide.jpg", jpeg("blue", (4000, 1000)))]
    pictures.append(attached(reader, "high.png", png("green", (500, 4000))))
    reader.hear_end(reader.send("Compare", model="far", **picked(*pictures))["run"])
    assert sizes(questions(server.asked)[0][0]) == [(1568, 392), (196, 1568)]


def test_the_trace_tells_how_many_it_was_shown(reader: Reader, server: UpstreamServer) -> None:
    pictures = [attached(reader, "a.png", png("red")), attached(reader, "b.png", png("blue"))]
    accepted = reader.send("Compare", model="far", **picked(*pictures))
    reader.hear_end(accepted["run"])
    address = f"/api/messages/{accepted['answer']['id']}/trace"
    spans = reader.client.get(address).json()["spans"]
    (span,) = [one for one in spans if one["kind"] == "images"]
    assert span["facts"] == {"images": 2}
    assert not [one for one in spans if one["kind"] == "retrieval"]


def test_a_model_that_does_not_see_is_sent_texts_only(
    reader: Reader, server: UpstreamServer
) -> None:
    picture = attached(reader, "square.png", png())
    first = reader.send("What is this?", model="far", **picked(picture))
    reader.hear_end(first["run"])
    go_on(reader, first, "And now?", model="blind")
    for content in questions(server.asked)[-1]:
        assert isinstance(content, str)


def test_a_damaged_picture_leaves_the_question(reader: Reader, server: UpstreamServer) -> None:
    broken = attached(reader, "broken.png", png()[:40])
    accepted = reader.send("What is this?", model="far", **picked(broken))
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    (content,) = questions(server.asked)[0]
    assert "What is this?" in str(content)
    assert "image_url" not in str(content)


def test_nobody_elses_picture_is_shown(site: Site, reader: Reader, server: UpstreamServer) -> None:
    picture = attached(reader, "square.png", png())
    charlie = Reader.signed_up(site, "charlie")
    with closing(charlie.client), charlie:
        frame = {"type": "message.send", "client_id": "c1", "text": "?", "model": "far"}
        charlie.say({**frame, **picked(picture)})
        assert charlie.hear_until(type="error", client_id="c1")["code"] == "not_found"
    assert not questions(server.asked)


def test_a_picture_that_was_deleted_is_shown_no_more(
    reader: Reader, server: UpstreamServer
) -> None:
    picture = attached(reader, "square.png", png())
    first = reader.send("What is this?", model="far", **picked(picture))
    reader.hear_end(first["run"])
    assert reader.change("DELETE", f"/api/documents/{picture}").is_success
    go_on(reader, first, "And now?")
    assert "image_url" not in str(questions(server.asked)[-1])

"""Doors of documents: what comes through them, and what is refused; a stream ends with its reader's
right."""

import asyncio
import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from chat import document_uploads, documents_api, windows
from chat.db import in_db
from chat.errors import BadRequest
from retrieval.egress import Fetched
from retrieval.egress_network import Unfetchable
from webapp.api_keys import create_api_key, revoke_api_key
from webapp.models import ApiKey, SignIn, User
from webapp.scopes import SCOPES
from webapp.sign_ins import end_sign_ins
from webapp.tenancy import as_system

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_redis")]


def a_collection(client: Client) -> str:
    made = client.post("/api/collections", {"name": "Notes"}, content_type="application/json")
    assert made.status_code == 201, made.content
    return str(made.json()["id"])


def sign_out(user: User) -> None:
    with as_system():
        end_sign_ins(SignIn.objects.filter(user=user))


def new_password(user: User) -> None:
    user.set_password("another horse 42")
    user.save()


def suspend(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def revoke(user: User) -> None:
    revoke_api_key(ApiKey.objects.get(user=user))


async def _ends_with(response: Any, end: Callable[[User], None], user: User) -> None:
    """It goes on as long as nothing has ended, and no longer."""
    pieces = aiter(response.streaming_content)
    for _ in range(3):
        assert await anext(pieces) == b": still\n\n"
    await in_db(end)(user)
    async for _ in pieces:
        pass


@pytest.mark.parametrize(
    ("end", "by_key"),
    [(sign_out, False), (new_password, False), (suspend, False), (suspend, True), (revoke, True)],
)
def test_the_stream_of_documents_ends_with_what_its_reader_is_here_by(
    end: Callable[[User], None], by_key: bool, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_api, "_ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(documents_api, "_LOOK_S", 0.01)
    client = Client()
    client.force_login(alice)
    collection = a_collection(client)
    path = f"/api/collections/{collection}/events"
    if by_key:
        _, secret = create_api_key(alice, scopes=list(SCOPES))
        client = Client(headers={"Authorization": f"Bearer {secret}"})
    response: Any = client.get(path)
    assert response.status_code == 200, response.content
    async_to_sync(asyncio.wait_for)(_ends_with(response, end, alice), 60)
    assert client.get(path).status_code in (401, 403)


async def test_slow_links_of_one_user_are_few_and_leave_room_for_others(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def slow(*_: object) -> None:
        is_over.wait(60)
        raise BadRequest("slow")

    monkeypatch.setattr(documents_api, "fetch_link", slow)
    clients = {user.pk: AsyncClient() for user in (alice, bob)}
    for user in (alice, bob):
        await clients[user.pk].aforce_login(user)

    def add(user: User) -> "asyncio.Task[Any]":
        path, link = "/api/collections/x/links", {"url": "http://example.org/"}
        post = clients[user.pk].post(path, link, content_type="application/json")
        return asyncio.ensure_future(post)

    waiting = [add(alice) for _ in range(documents_api.MAX_LINKS_AT_ONCE)]
    while documents_api._fetching[alice.pk] < len(waiting):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    refused = await add(alice)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    waiting.append(add(bob))
    waiting[0].cancel()  # its thread still works
    await asyncio.sleep(0.1)
    assert (await add(alice)).status_code == 429
    is_over.set()
    assert [one.status_code for one in await asyncio.gather(*waiting[1:])] == [400, 400]
    assert (await add(alice)).status_code == 400
    await windows.close()


def test_a_link_is_known_by_the_address_that_was_given(
    alice: User, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    """Behind it is one that is signed for some minutes."""
    settings.DATA_DIR = tmp_path
    signatures = iter("ab")

    def fetched(url: str, path: Path, **_: object) -> Fetched:
        signature = next(signatures)
        path.write_text(f"The emu runs {signature}.")
        return Fetched(f"https://store.example/x?signed={signature}", "text/plain", "emu.txt", 15)

    monkeypatch.setattr(document_uploads, "fetch", fetched)
    client = Client()
    client.force_login(alice)
    link = {"url": "https://birds.example/emu.txt#legs"}
    path = f"/api/collections/{a_collection(client)}/links"
    first, second = (client.post(path, link, "application/json").json() for _ in range(2))
    assert first["source_url"] == "https://birds.example/emu.txt"
    assert (second["id"], second["version"]["number"]) == (first["id"], 2)


def test_what_the_disk_or_the_quota_has_no_room_for_is_told(
    alice: User, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    client = Client()
    client.force_login(alice)
    path = f"/api/collections/{a_collection(client)}"

    def upload(name: str, size_bytes: int) -> Any:
        address = f"{path}/documents?name={name}"
        return client.post(address, b"a" * size_bytes, "application/octet-stream")

    settings.MAX_DOCUMENTS_BYTES = 1000
    assert upload("first.txt", 600).status_code == 201
    refused = upload("second.txt", 600)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_quota_exceeded")

    assert upload("first.txt", 600).json()["version"]["number"] == 1, "the same again"
    settings.MAX_DOCUMENTS_BYTES = 600
    assert upload("first.txt", 600).status_code == 201
    assert upload("first.txt", 601).status_code == 413

    def too_large(url: str, path: Path, **_: object) -> Fetched:
        raise Unfetchable("too_large", "It is too large.")

    monkeypatch.setattr(document_uploads, "fetch", too_large)
    link = {"url": "https://birds.example/emu.txt"}
    refused = client.post(f"{path}/links", link, "application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_quota_exceeded")
    settings.MAX_DOCUMENTS_BYTES = 10**9
    refused = client.post(f"{path}/links", link, "application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")

    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(document_uploads, "fetch", full)
    monkeypatch.setattr(document_uploads.document_files, "make_safe", full)
    for refused in (upload("third.txt", 9), client.post(f"{path}/links", link, "application/json")):
        assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage_full")
    assert len(list((tmp_path / "documents").iterdir())) == 1

"""Export and import of our own format: the same tree again, by every door, for its owner only."""

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given, settings

from chat import delete_all, history, library, tree
from chat.models import ChatImport, ChatOrigin, Conversation, Message
from chat.transfer import api, export, portable, reading
from chat.transfer.plant import plant
from tests.chat.portable_chats import save, trees
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

ONE_USER_MANY_TREES = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def tree_of(conversation: Conversation) -> list[dict[str, Any]]:
    """Every field that travels, with places instead of ids."""
    rows = history.all_messages(conversation)
    places = {row.pk: place for place, row in enumerate(rows)}
    names = portable.portable_fields(Message)
    return [
        {name: getattr(row, name) for name in names}
        | {"text": row.text, "parent": places.get(row.parent_id)}  # type: ignore[call-overload]
        for row in rows
    ]


def head_of(conversation: Conversation) -> dict[str, Any]:
    names = portable.portable_fields(Conversation)
    head = {name: getattr(conversation, name) for name in names}
    chosen = [getattr(row, "chosen", 0) for row in history.all_messages(conversation)]
    return head | {"version": max(head["version"], *chosen)}


def exported(conversation: Conversation) -> bytes:
    rows = history.all_messages(conversation)
    return export.json_of([(conversation, rows)], conversation.created_at)


def read(path: Path, data: bytes) -> list[Any]:
    path.write_bytes(data)
    return list(reading.read_chats(path))


@pytest.mark.django_db
@ONE_USER_MANY_TREES
@given(tree=trees())
def test_export_and_import_give_the_same_tree(
    alice: "User", bob: "User", tmp_path_factory: pytest.TempPathFactory, tree: Any
) -> None:
    with as_system():
        original = save(alice, tree)
        (chat,) = read(tmp_path_factory.mktemp("round") / "chats.json", exported(original))
        assert isinstance(chat, portable.Chat), chat
        assert not chat.notes
        copy = plant(bob.pk, chat)
        copy.refresh_from_db()
        assert copy.owner_id == bob.pk
        assert copy.pk != original.pk
        assert head_of(copy) == head_of(original)
        assert tree_of(copy) == tree_of(original)
        assert all(row.brought for row in history.all_messages(copy)), "a file may say anything"
        again = portable.checked(portable.chat_of(copy, history.all_messages(copy)))
        assert portable.content_hash(again) == portable.content_hash(chat)


@pytest.mark.django_db
def test_siblings_of_one_moment_keep_their_order(alice: "User", tmp_path: Path) -> None:
    moment = "2026-01-01T00:00:00+00:00"
    parts = [[{"type": "text", "text": str(number)}] for number in range(60)]
    messages = [
        {"id": str(n), "parent": None, "role": "user", "parts": p, "created_at": moment}
        for n, p in enumerate(parts)
    ]
    value = {"schema": "vitrine.chats", "version": 1, "chats": [{"id": "a", "messages": messages}]}
    (chat,) = read(tmp_path / "chats.json", json.dumps(value).encode())
    with as_user(alice.pk):
        rows = history.all_messages(plant(alice.pk, chat))
    assert [row.parts for row in rows] == parts


@pytest.mark.django_db
def test_a_message_that_another_names_is_named_by_its_new_id(alice: "User", tmp_path: Path) -> None:
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice)
        first = Message.objects.create(conversation=chat, role="user", text="a")
        told = {"before": str(first.pk), "num_messages": 1}
        Message.objects.create(conversation=chat, role="assistant", parent=first, left_out=told)
        (read_chat,) = read(tmp_path / "chat.json", exported(chat))
        question, answer = history.all_messages(plant(alice.pk, read_chat))
        assert answer.left_out == {"before": str(question.pk), "num_messages": 1}
        read_chat.messages[1].fields["left_out"] = {"before": "elsewhere"}
        assert history.all_messages(plant(alice.pk, read_chat))[1].left_out is None


MESSAGE = {
    "id": "1",
    "parent": None,
    "role": "user",
    "parts": [],
    "created_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        ({"messages": []}, "no messages"),
        ({}, "no list of messages"),
        ({"messages": [{}]}, "Message 1 has no id"),
        ({"messages": [MESSAGE, MESSAGE]}, "same id"),
        ({"messages": [{**MESSAGE, "parent": "2"}]}, "one that is not there"),
        ({"messages": [{**MESSAGE, "parent": "1"}]}, "circle"),
        ({"messages": [{**MESSAGE, "role": "root"}]}, "role of a message makes no sense"),
        ({"messages": [{**MESSAGE, "created_at": "soon"}]}, "created_at of a message"),
        ({"messages": [{**MESSAGE, "parts": "text"}]}, "no list"),
        ({"messages": [{**MESSAGE, "parts": [{"type": "new"}]}]}, "not known here"),
        ({"messages": [{**MESSAGE, "parts": [{"type": "text"}]}]}, "not complete"),
        ({"title": "x" * 201, "messages": [MESSAGE]}, "title of the chat"),
        ({"title": 5, "messages": [MESSAGE]}, "title of the chat"),
        ({"parameters": {"temperature": "hot"}, "messages": [MESSAGE]}, "parameters of the chat"),
        ({"parameters": {"tools": []}, "messages": [MESSAGE]}, "parameters of the chat"),
        ({"parameters": [], "messages": [MESSAGE]}, "parameters of the chat"),
        ({"assistant": {"name": "A"}, "messages": [MESSAGE]}, "assistant of the chat"),
        ({"messages": [{"id": "1", "role": "user"}]}, "has no parts"),
        ({"messages": [{**MESSAGE, "sources": {"collections": ["x"]}}]}, "sources of a message"),
        ({"messages": [{**MESSAGE, "sources": "all"}]}, "sources of a message"),
        (
            {"messages": [{**MESSAGE, "found": {"excerpts": [{"version": "x"}]}}]},
            "found of a message",
        ),
        ({"messages": [{**MESSAGE, "found": {"query": "?"}}]}, "found of a message"),
        ({"messages": [{**MESSAGE, "parent": ["1"]}]}, "not shaped"),
        (
            {"updated_at": "9999-12-31T23:59:59-14:00", "messages": [MESSAGE]},
            "updated_at of the chat",
        ),
        (
            {"created_at": "0001-01-01T00:00:00+14:00", "messages": [MESSAGE]},
            "created_at of the chat",
        ),
        (
            {"messages": [{**MESSAGE, "created_at": "9999-01-01T00:00:00Z"}]},
            "created_at of a message",
        ),
        ({"messages": [{**MESSAGE, "left_out": "abc"}]}, "left_out of a message"),
        ({"messages": [{**MESSAGE, "left_out": {"before": "1"}}]}, "left_out of a message"),
        (
            {"messages": [{**MESSAGE, "left_out": {"before": "1", "num_messages": "2"}}]},
            "left_out of a message",
        ),
        ({"messages": [{**MESSAGE, "error": "text"}]}, "error of a message"),
        ({"messages": [{**MESSAGE, "error": {"stage": 1}}]}, "error of a message"),
        ({"messages": [{**MESSAGE, "from_cache": {"asked_at": "2026-01-01"}}]}, "from_cache"),
        (
            {
                "messages": [
                    {
                        **MESSAGE,
                        "from_cache": {"asked_at": "once", "question": "", "similarity": 1},
                    }
                ]
            },
            "from_cache",
        ),
        ({"messages": [{**MESSAGE, "usage": [1]}]}, "usage of a message"),
        ({"messages": [{**MESSAGE, "usage": {"prompt_tokens": True}}]}, "usage of a message"),
        ({"messages": [{**MESSAGE, "timings": {"total_ms": "long"}}]}, "timings of a message"),
        ({"messages": [{**MESSAGE, "timings": {"total_ms": 10**400}}]}, "timings of a message"),
        ({"messages": [{**MESSAGE, "chosen": 2**31 - 1}]}, "chosen of a message"),
        ({"version": 2**31 - 1, "messages": [MESSAGE]}, "version of the chat"),
        (5, "no chat"),
    ],
)
def test_a_bad_chat_is_skipped_with_its_reason(tmp_path: Path, chat: Any, reason: str) -> None:
    good = {"messages": [MESSAGE]}
    value = {"schema": "vitrine.chats", "version": 1, "chats": [chat, good]}
    skipped, kept = read(tmp_path / "chats.json", json.dumps(value).encode())
    assert isinstance(skipped, reading.Skipped)
    assert reason in skipped.reason
    assert isinstance(kept, portable.Chat)


def test_what_cannot_be_stored_is_replaced_and_told(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a\x00b\ud800"}]
    chat = {"messages": [{**MESSAGE, "parts": parts, "status": "running"}], "colour": "red"}
    value = {"schema": "vitrine.chats", "version": 1, "chats": [chat]}
    (read_chat,) = read(tmp_path / "chats.json", json.dumps(value).encode())
    fields = read_chat.messages[0].fields
    assert fields["parts"] == [{"type": "text", "text": "a\ufffdb\ufffd"}]
    assert fields["status"] == "stopped", "nobody would ever finish it"
    assert read_chat.notes == {"characters that cannot be stored": 1, "the field colour": 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"schema": "vitrine.chats", "version": 2, "chats": [{}]}', "newer Vitrine"),
        (b'{"schema": "other", "version": 1, "chats": [{}]}', "not one that Vitrine"),
        (b"", "no JSON"),
        (b"%PDF-1.7", "no JSON"),
        (b"[", "ends in the middle"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    try:
        found = read(tmp_path / "file", data)
    except reading.BadFile as error:
        assert reason in str(error)
    else:
        assert [reason in item.reason for item in found] == [True]


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading._Budget.__init__, "__defaults__", (2**20,))
    bomb = zip_of({"conversations.json": b"[" + b" " * 2**24 + b"]"})
    assert len(bomb) < 2**16
    with pytest.raises(reading.BadFile, match="Unpacked"):
        read(tmp_path / "bomb.zip", bomb)


def test_damaged_and_foreign_zips_are_told(tmp_path: Path) -> None:
    with pytest.raises(reading.BadFile, match="no JSON file"):
        read(tmp_path / "a.zip", zip_of({"photo.png": b"PNG"}))
    good = {"schema": "vitrine.chats", "version": 1, "chats": [{"messages": [MESSAGE]}]}
    data = bytearray(
        zip_of({"chats-1.json": b"[" * 200, "chats-2.json": json.dumps(good).encode()})
    )
    broken, kept = read(tmp_path / "b.zip", bytes(data))
    assert "ends in the middle" in broken.reason
    assert isinstance(kept, portable.Chat)
    data[40:50] = b"\xff" * 10
    damaged, kept = read(tmp_path / "c.zip", bytes(data))
    assert "damaged" in damaged.reason


# --- doors -----------------------------------------------------------------------------------------


@pytest.fixture
def chat(alice: "User") -> Conversation:
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice, title="A/B: a <title>?")
        question = Message.objects.create(
            conversation=chat, role="user", text="Hi", parts=[{"type": "text", "text": "Hi"}]
        )
        for text in ("first", "a ```` fence"):
            call = {"type": "tool_call", "id": "1", "name": "clock", "arguments": text}
            Message.objects.create(
                conversation=chat,
                parent=question,
                role="assistant",
                text=text,
                parts=[call, {"type": "text", "text": text}],
            )
    return chat


def client_of(user: "User") -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.django_db(transaction=True)
def test_one_chat_as_a_file(
    alice: "User", chat: Conversation, clean_redis: None, tmp_path: Path
) -> None:
    client = client_of(alice)
    response = client.get(f"/api/conversations/{chat.pk}/export")
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert "/" not in response["Content-Disposition"]
    (found,) = read(tmp_path / "chat.json", response.content)
    assert [turn.fields["parts"][-1]["text"] for turn in found.messages] == [
        "Hi",
        "first",
        "a ```` fence",
    ]
    markdown = client.get(f"/api/conversations/{chat.pk}/export?format=markdown").content.decode()
    assert "# A/B: a <title>?" in markdown
    assert "first" not in markdown, "only the shown branch"
    assert "\n`````\na ```` fence\n`````\n" in markdown
    url = f"/api/conversations/{chat.pk}/export?format=markdown&branches=all"
    both = client.get(url).content.decode()
    assert "first" in both
    assert "*Another branch, behind message 1:*" in both
    assert client.get(f"/api/conversations/{chat.pk}/export?format=exe").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_message_that_left_its_place_is_in_no_file(
    alice: "User", chat: Conversation, clean_redis: None
) -> None:
    with as_user(alice.pk):
        question = Message.objects.get(role="user")
        tree.delete(alice, question.pk, "d", with_replies=False, version=None)
    client = client_of(alice)
    for query in ("format=json", "format=markdown", "format=markdown&branches=all"):
        data = client.get(f"/api/conversations/{chat.pk}/export?{query}").content.decode()
        assert "a ```` fence" in data
        assert "Hi" not in data
        assert ("(This message was deleted.)" in data) == ("markdown" in query)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["json", "markdown"])
def test_all_chats_as_a_zip(
    alice: "User", bob: "User", chat: Conversation, monkeypatch: pytest.MonkeyPatch, kind: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(export, "PORTION", 3)
    with as_user(bob.pk):
        plant_many(bob, 1, "Bob's")
    progress = export.Progress()

    async def collect() -> bytes:
        return b"".join([piece async for piece in export.zipped(alice, kind, progress)])

    with as_user(alice.pk):
        plant_many(alice, 7, "Alice's")
        data = async_to_sync(collect)()
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    assert (progress.done, progress.total) == (8, 8)
    if kind == "markdown":
        assert len(set(archive.namelist())) == 8
        assert all(b"Bob" not in archive.read(name) for name in archive.namelist())
    else:
        assert len(archive.namelist()) == 3
        chats = read(tmp_path / "all.zip", data)
        assert sorted(c.title for c in chats) == ["A/B: a <title>?", *["Alice's"] * 7]


def plant_many(owner: "User", number: int, title: str) -> None:
    for _ in range(number):
        conversation = Conversation.objects.create(owner=owner, title=title)
        Message.objects.create(conversation=conversation, role="user", text="x", parts=[])


@pytest.mark.django_db(transaction=True)
def test_no_chats_are_an_empty_file_that_can_be_read(alice: "User", tmp_path: Path) -> None:
    async def collect() -> bytes:
        return b"".join([p async for p in export.zipped(alice, "json", export.Progress())])

    with as_user(alice.pk):
        assert read(tmp_path / "none.zip", async_to_sync(collect)()) == []


@pytest.mark.django_db(transaction=True)
def test_charlie_at_every_door(
    alice: "User", charlie: "User", chat: Conversation, clean_redis: None
) -> None:
    with as_user(alice.pk):
        theirs = ChatImport.objects.create(
            owner=alice, file_name="secret.zip", size_bytes=1, status="checked"
        ).pk
        ChatOrigin.objects.create(conversation=chat, owner=alice, origin="a:b", content_hash="c")
    client = client_of(charlie)
    for found, missing in ((theirs, uuid4()), (chat.pk, uuid4())):
        for method, path in (
            ("get", "/api/conversations/{}/export"),
            ("get", "/api/imports/{}"),
            ("get", "/api/imports/{}/events"),
            ("post", "/api/imports/{}/start"),
            ("delete", "/api/imports/{}"),
            ("get", "/c/{}/print"),
        ):
            response = getattr(client, method)(path.format(found))
            unknown = getattr(client, method)(path.format(missing))
            assert response.status_code == unknown.status_code == 404, path
            assert response.content == unknown.content
    assert client.get("/api/imports").json() == {"items": []}
    with as_user(charlie.pk), connection.cursor() as cursor:
        for table in ("chat_chatimport", "chat_chatorigin"):
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() == (0,)
            cursor.execute(f"DELETE FROM {table}")
            assert cursor.rowcount == 0
    with as_user(alice.pk):
        assert ChatImport.objects.filter(pk=theirs, status="checked").exists()


@pytest.mark.django_db(transaction=True)
def test_all_chats_are_deleted_by_portions_and_only_ones_own(
    alice: "User", bob: "User", chat: Conversation, clean_redis: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(delete_all, "PORTION", 3)
    with as_user(alice.pk):
        plant_many(alice, 6, "Alice's")
        library.change_all(alice, [library.Change(chat.pk, {"deleted": True})])
    with as_user(bob.pk):
        plant_many(bob, 2, "Bob's")

    def delete(words: str = "delete all chats") -> Any:
        body = json.dumps({"confirm": words})
        return client.delete("/api/conversations", body, content_type="application/json")

    client = client_of(alice)
    assert delete("yes").status_code == 400
    assert [delete().json() for _ in range(4)] == [
        {"deleted": 3, "remaining": 4},
        {"deleted": 3, "remaining": 1},
        {"deleted": 1, "remaining": 0},
        {"deleted": 0, "remaining": 0},
    ]
    with as_user(alice.pk):
        brought_back = library.change_all(alice, [library.Change(chat.pk, {"deleted": False})])
        assert not brought_back.changed
    with as_user(bob.pk):
        assert Conversation.objects.count() == 2


@pytest.mark.django_db
def test_nobody_waits_for_an_export_that_does_not_begin(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_NOT_BEGUN_S", 0.0)
    client = Client()
    client.force_login(alice)
    response: Any = client.get(f"/api/export/progress/{uuid4()}")
    events = async_to_sync(_all_of)(response)
    assert b'"is_over":false' in events


async def _all_of(response: Any) -> bytes:
    return b"".join([piece async for piece in response])

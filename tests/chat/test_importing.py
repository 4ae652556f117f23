"""Imports: checked first, each chat wholly or not at all, never twice, whatever dies in between."""

import json
import os
import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from chat import actions, answers, history, library, tasks
from chat.actions import Draft
from chat.ids import uuid7
from chat.models import ChatImport, ChatOrigin, Conversation, Message
from chat.rights import Rights
from chat.transfer import export, importing
from tests.chat.test_import_formats import TRIP, WEBUI
from webapp.celery import app
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)
FILE = [{**TRIP, "conversation_id": f"c-{n}", "title": f"Chat {n}"} for n in range(6)]


def upload(user: "User", value: Any) -> UUID:
    import_id = uuid7()
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    importing.path_of(import_id).write_bytes(data)
    with as_user(user.pk):
        importing.begin(user, import_id, "file.json", len(data))
    return import_id


def work(import_id: UUID) -> ChatImport:
    """As the Celery worker does it: in the system's scope."""
    with as_system():
        importing.work(import_id)
        return ChatImport.objects.get(pk=import_id)


def started(user: "User", import_id: UUID) -> UUID:
    with as_user(user.pk):
        importing.start(user, import_id)
    return import_id


def imported(user: "User", value: Any) -> dict[str, Any]:
    """The report of a whole import."""
    import_id = upload(user, value)
    assert work(import_id).status == "checked"
    row = work(started(user, import_id))
    assert row.status == "done"
    assert not importing.path_of(import_id).exists()
    return row.report


def num_chats(user: "User") -> int:
    with as_user(user.pk):
        return Conversation.objects.count()


def test_a_check_imports_nothing_and_says_what_would_be(alice: "User") -> None:
    row = work(upload(alice, [*FILE, {"title": "Strange"}, WEBUI]))
    assert row.status == "checked"
    report = row.report
    assert (report["num_chats"], report["num_new"], report["num_skipped"]) == (7, 7, 1)
    assert report["num_messages"] == 6 * 5 + 3
    assert report["skipped"][0]["title"] == "Strange"
    assert report["notes"] == {"images": 7}
    assert num_chats(alice) == 0


def test_an_import_and_the_same_again(alice: "User", bob: "User") -> None:
    assert imported(alice, FILE)["num_new"] == 6
    again = imported(alice, FILE)
    assert (again["num_new"], again["num_known"]) == (0, 6)
    changed = json.loads(json.dumps(FILE))
    changed[2]["mapping"]["a3"]["message"]["content"]["parts"] = ["At noon."]
    assert imported(alice, changed)["num_new"] == 1, "a chat that has gone on is another one"
    assert num_chats(alice) == 7
    assert imported(bob, FILE)["num_new"] == 6, "Bob knows nothing of Alice's chats"
    with as_user(alice.pk):
        Conversation.objects.filter(title="Chat 3").delete()
    assert imported(alice, FILE)["num_new"] == 1, "what was deleted may come back"


def test_imported_chats_keep_their_times(alice: "User") -> None:
    imported(alice, FILE[:1])
    with as_user(alice.pk):
        chat = Conversation.objects.get()
        first = Message.objects.filter(conversation=chat).order_by("created_at", "id")[0]
    assert chat.created_at.timestamp() == 1_700_000_000.25
    assert chat.updated_at.timestamp() == 1_700_000_900.5
    assert first.created_at.timestamp() == 1_700_000_001.0
    assert first.text == "When does the train leave?"


def test_ones_own_export_is_known_while_the_chats_are_there(alice: "User") -> None:
    imported(alice, FILE[:1])
    with as_user(alice.pk):
        chat = Conversation.objects.get()
        data = export.json_of([(chat, history.all_messages(chat))], timezone.now())
    assert imported(alice, data)["num_known"] == 1
    with as_user(alice.pk):
        chat.delete()
    assert imported(alice, data)["num_new"] == 1
    assert imported(alice, data)["num_known"] == 1


def test_what_was_deleted_a_moment_ago_is_imported_again(alice: "User") -> None:
    """It is in the system's sight until it is purged, and then it would be gone with the only copy."""
    imported(alice, FILE)
    with as_user(alice.pk):
        chats = list(Conversation.objects.order_by("pk"))
        data = export.json_of(
            [(chat, history.all_messages(chat)) for chat in chats], timezone.now()
        )
        library.change_all(alice, [library.Change(chat.pk, {"deleted": True}) for chat in chats])
    for value in (data, FILE):
        report = imported(alice, value)
        assert (report["num_new"], report["num_known"]) == (6, 0)
        report = imported(alice, value)
        assert (report["num_new"], report["num_known"]) == (0, 6)
    with as_user(alice.pk):
        restored = [library.Change(chat.pk, {"deleted": False}) for chat in chats]
        assert len(library.change_all(alice, restored).changed) == 6
    assert num_chats(alice) == 18
    assert imported(alice, FILE)["num_known"] == 6


def test_a_worker_that_dies_leaves_nothing_half_and_nothing_twice(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of the fourth chat's transaction, as kill -9 would do it."""
    import_id = upload(alice, FILE)
    work(import_id)
    started(alice, import_id)
    real = importing.plant
    planted: list[str] = []

    class Killed(BaseException):
        pass

    def plant(owner_id: Any, chat: Any, conversation_id: Any) -> Any:
        row = real(owner_id, chat, conversation_id)
        planted.append(chat.title)
        if len(planted) == 4:
            raise Killed
        return row

    monkeypatch.setattr(importing, "plant", plant)
    with pytest.raises(Killed):
        work(import_id)
    assert num_chats(alice) == 3
    row = work(import_id)
    assert row.status == "importing", "the dead worker's lease still runs"
    with as_system():
        assert list(importing.lost()) == []
        past = timezone.now() - timedelta(seconds=1)
        ChatImport.objects.filter(pk=import_id).update(lease_until=past)
        assert list(importing.lost()) == [import_id]
    row = work(import_id)
    assert row.status == "done"
    assert row.report["num_new"] == 6, "the three that were there are this import's too"
    assert row.report["num_known"] == 0
    assert num_chats(alice) == 6
    with as_user(alice.pk):
        assert Message.objects.count() == 30


def test_a_file_that_ends_every_worker_is_given_up(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(path: Any) -> Any:
        raise Killed

    def lose_lease() -> None:
        with as_system():
            ChatImport.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    def work_in_vain(import_id: UUID, times: int) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(importing, "read_chats", killed)
            for _ in range(times):
                with pytest.raises(Killed):
                    work(import_id)
                lose_lease()

    import_id = upload(alice, FILE)
    work_in_vain(import_id, importing.MAX_ATTEMPTS - 1)
    assert work(import_id).status == "checked", "the last attempt was not in vain"
    started(alice, import_id)
    work_in_vain(import_id, importing.MAX_ATTEMPTS)
    row = work(import_id)
    assert (row.status, row.error) == ("failed", "It was begun 3 times, and came to no end.")
    assert not importing.path_of(import_id).exists()
    with as_system():
        assert list(importing.lost()) == []


def test_one_file_imported_twice_at_once(alice: "User") -> None:
    ids = [upload(alice, FILE) for _ in range(2)]
    for import_id in ids:
        work(import_id)
        started(alice, import_id)
    barrier = threading.Barrier(2)

    def run(import_id: UUID) -> None:
        try:
            barrier.wait(20)
            work(import_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[import_id]) for import_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with as_system():
        reports = [ChatImport.objects.get(pk=import_id).report for import_id in ids]
        assert ChatOrigin.objects.count() == 6
    assert sum(report["num_new"] for report in reports) == 6
    assert sum(report["num_known"] for report in reports) == 6
    assert num_chats(alice) == 6


def test_an_import_that_is_removed_stops(alice: "User", monkeypatch: pytest.MonkeyPatch) -> None:
    import_id = upload(alice, FILE)
    work(import_id)
    started(alice, import_id)
    monkeypatch.setattr(importing, "PROGRESS_S", -1.0)
    real = importing.plant

    def plant(*args: Any) -> Any:
        with as_user(alice.pk):
            if ChatOrigin.objects.count() == 2:
                importing.remove(alice, import_id)
        return real(*args)

    monkeypatch.setattr(importing, "plant", plant)
    with as_system():
        importing.work(import_id)
    assert num_chats(alice) <= 2
    assert not importing.path_of(import_id).exists()


def test_a_bad_file_fails_with_its_reason(alice: "User") -> None:
    row = work(upload(alice, b"%PDF"))
    assert (row.status, row.error) == ("failed", "The file is no JSON.")
    import_id = upload(alice, FILE)
    importing.path_of(import_id).unlink()
    assert work(import_id).error == "The file is no longer there."


def test_what_the_database_refuses_is_one_chat(alice: "User") -> None:
    bad = json.loads(json.dumps(WEBUI))
    value = {
        "schema": "vitrine.chats",
        "version": 1,
        "chats": [
            {
                "messages": [
                    {
                        "id": "1",
                        "role": "user",
                        "parts": [{"type": "text", "text": "x", "number": 0}],
                        "created_at": "2026-01-01T00:00:00Z",
                    }
                ]
            }
        ],
    }
    data = json.dumps(value).replace('"number": 0', '"number": 1e999').encode()
    report = imported(alice, data + b"\n" + json.dumps([bad]).encode())
    assert report["skipped"] == [{"title": "", "reason": "The database cannot store it."}]
    assert num_chats(alice) == 1


def test_what_is_imported_can_be_read_and_gone_on_with(alice: "User", clean_redis: None) -> None:
    """Whatever a file has said: at the ends of what is let in, and with more than anybody knows."""
    said = {"parts": [{"type": "text", "text": "x"}], "created_at": "0002-01-01T00:00:00Z"}
    answer = {
        **said,
        **{"id": "2", "parent": "1", "role": "assistant", "status": "refused", "chosen": 2**30},
        "error": {"stage": "output", "kind": "refused", "more": [1]},
        "left_out": {"before": "1", "num_messages": 0, "kind": "left_out", "more": 1},
        "usage": {"prompt_tokens": 1, "more": {}},
        "timings": {},
    }
    chat = {
        "title": "Kept",
        "updated_at": "9998-12-31T23:59:59Z",
        "messages": [{**said, "id": "1", "parent": None, "role": "user"}, answer],
    }
    late = {**chat, "title": "Late", "updated_at": "9999-12-31T23:59:59-14:00"}
    report = imported(alice, {"schema": "vitrine.chats", "version": 1, "chats": [chat, late]})
    assert [one["title"] for one in report["skipped"]] == ["Late"]
    client = Client()
    client.force_login(alice)
    assert client.get("/api/sidebar").status_code == 200
    with as_user(alice.pk):
        made = Conversation.objects.get()
        last = Message.objects.get(conversation=made, role="assistant")
        assert last.left_out == {"before": str(last.parent_id), "num_messages": 0}
        assert (last.error, last.usage) == ({"stage": "output"}, {"prompt_tokens": 1})
        assert client.get(f"/api/conversations/{made.pk}").status_code == 200
        draft = Draft("next", "And then?", "vitrine-small", made.pk, last.pk)
        _, (asked,) = answers._with_plans(
            partial(actions.send_message, Rights(alice), draft, lease_owner="me")
        )
    assert [one.question for one in asked.plan.exchanges] == ["x\n\nAnd then?"]


async def _all_of(response: Any) -> bytes:
    return b"".join([piece async for piece in response])


def test_the_doors_of_an_import(alice: "User", clean_redis: None) -> None:
    assert app.conf.broker_url
    before = set(importing.folder().iterdir())
    client = Client()
    client.force_login(alice)

    def post(path: str, body: bytes = b"") -> Any:
        return client.post(path, body, content_type="application/octet-stream")

    made = post("/api/imports?name=my.json", json.dumps(FILE).encode())
    assert made.status_code == 201
    value = made.json()
    assert (value["status"], value["file_name"]) == ("checking", "my.json")
    path = f"/api/imports/{value['id']}"
    assert post(f"{path}/start").status_code == 400, "it is not checked yet"
    work(UUID(value["id"]))
    assert client.get(path).json()["report"]["num_new"] == 6
    assert post(f"{path}/start").json()["status"] == "importing"
    assert post(f"{path}/start").status_code == 200, "twice is once"
    work(UUID(value["id"]))
    events = async_to_sync(_all_of)(client.get(f"{path}/events"))
    assert b'"status":"done"' in events
    assert [item["status"] for item in client.get("/api/imports").json()["items"]] == ["done"]
    assert client.delete(path).status_code == 204
    assert num_chats(alice) == 6, "chats that are imported stay"
    with override_settings(MAX_IMPORT_BYTES=10):
        refused = post("/api/imports", b"x" * 11)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    for _ in range(importing.MAX_WAITING):
        assert post("/api/imports", b"[]").status_code == 201
    assert post("/api/imports", b"[]").status_code == 409
    with as_user(alice.pk):
        waiting = {row.pk.hex for row in ChatImport.objects.all()}
    assert {path.name for path in set(importing.folder().iterdir()) - before} == waiting


def test_files_that_nobody_starts_take_no_more_room(alice: "User", clean_redis: None) -> None:
    waiting = [upload(alice, FILE) for _ in range(importing.MAX_WAITING)]
    for import_id in waiting:
        assert work(import_id).status == "checked"
    client = Client()
    client.force_login(alice)
    before = set(importing.folder().iterdir())

    def post() -> int:
        kind = "application/octet-stream"
        return client.post("/api/imports", b"[]", content_type=kind).status_code

    assert post() == 409
    assert set(importing.folder().iterdir()) == before
    with as_user(alice.pk):
        importing.remove(alice, waiting[0])
    assert post() == 201


def test_old_files_are_forgotten(alice: "User") -> None:
    import_id = upload(alice, FILE)
    work(import_id)
    stray = importing.folder() / "stray"
    stray.write_bytes(b"")
    long_ago = (timezone.now() - timedelta(days=2)).timestamp()
    for path in (stray, importing.path_of(import_id)):
        os.utime(path, (long_ago, long_ago))
    with as_system():
        importing.forget_old()
        assert importing.path_of(import_id).exists(), "its owner may still start it"
        ChatImport.objects.update(created_at=timezone.now() - timedelta(days=2))
        tasks.forget_old_imports()
        assert ChatImport.objects.get(pk=import_id).status == "failed"
    assert not importing.path_of(import_id).exists()
    assert not stray.exists()

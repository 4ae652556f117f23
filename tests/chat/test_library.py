"""Keeping chats in order: each change by itself, undone by another, and nothing of anybody else's."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from chat import access, library, tasks
from chat.errors import BadChange, Conflict, NotFound
from chat.library import Change
from chat.models import Conversation, Folder, Generation, Message, Role
from chat.values import conversation_summaries
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User


@pytest.fixture
def mine(alice: "User") -> Iterator["User"]:
    with as_user(alice.pk):
        yield alice


def chat(owner: "User", title: str = "it", **fields: Any) -> Conversation:
    made = Conversation.objects.create(owner=owner, title=title, **fields)
    Message.objects.create(conversation=made, role=Role.USER, text="hello")
    return made


def test_a_change_changes_what_it_names_and_the_version(mine: "User") -> None:
    folder = library.create_folder(mine, "  My   trips ")
    made = chat(mine)
    changes: list[dict[str, Any]] = [
        {"title": " A  title "}, {"folder": folder.pk}, {"tags": ["Work", "work", " two  words "]},
        {"pinned": True}, {"archived": True}, {"pinned": False}, {"folder": None}, {"tags": []},
    ]  # fmt: skip
    for number, values in enumerate(changes, start=2):
        row = library.change(mine, made.pk, values, number - 1)
        assert row.version == number
        assert row.updated_at == made.updated_at
    row.refresh_from_db()
    assert folder.name == "My trips"
    assert (row.title, row.title_by_hand, row.tags, row.folder) == ("A title", True, [], None)
    assert row.pinned_at is None
    assert row.archived_at is not None


def test_a_summary_says_how_the_newest_answer_stands(mine: "User") -> None:
    asked, failed, writing = chat(mine), chat(mine), chat(mine)
    for made, statuses in ((failed, ["complete", "failed"]), (writing, ["complete", "running"])):
        for status in statuses:
            answer = Message.objects.create(
                conversation=made, role=Role.ASSISTANT, text="hi", status=status
            )
    Generation.objects.create(conversation=writing, message=answer, model="m")
    told = conversation_summaries([asked, failed, writing])
    assert [value["last_answer"] for value in told] == [None, "failed", "running"]


def test_tags_are_small_letters_each_once(mine: "User") -> None:
    row = library.change(mine, chat(mine).pk, {"tags": ["Work", "WORK", " two  words "]}, None)
    assert row.tags == ["work", "two words"]
    chat(mine, tags=["zoo"])
    assert library.tags_of(mine) == ["two words", "work", "zoo"]


@pytest.mark.parametrize(
    "values",
    [
        {"title": "  "}, {"title": "x" * 201}, {"title": "a\x00b"}, {"tags": [""]}, {"tags": ['"']},
        {"tags": ["x" * 41]}, {"tags": [str(n) for n in range(21)]}, {"owner_id": 1},
    ],
)  # fmt: skip
def test_a_bad_change_changes_nothing(mine: "User", values: dict[str, Any]) -> None:
    made = chat(mine)
    with pytest.raises(BadChange):
        library.change(mine, made.pk, values | {"pinned": True}, None)
    with pytest.raises(BadChange):
        library.change(mine, made.pk, {"pinned": True} | values, None)
    made.refresh_from_db()
    assert (made.version, made.pinned_at) == (1, None)


def test_two_tabs_never_overwrite_each_other(mine: "User") -> None:
    made = chat(mine)
    library.change(mine, made.pk, {"tags": ["one"]}, made.version)
    with pytest.raises(Conflict):
        library.change(mine, made.pk, {"tags": ["two"]}, made.version)


def test_of_many_changes_each_counts_by_itself(mine: "User", charlie: "User") -> None:
    with as_user(charlie.pk):
        theirs = chat(charlie)
    good, stale = chat(mine), chat(mine)
    outcome = library.change_all(
        mine,
        [
            Change(good.pk, {"archived": True}),
            Change(stale.pk, {"archived": True}, version=7),
            Change(theirs.pk, {"archived": True}),
            Change(uuid4(), {"archived": True}),
        ],
    )
    assert [row.pk for row in outcome.changed] == [good.pk]
    reasons = {id: type(error) for id, error in outcome.refused.items()}
    assert reasons.pop(stale.pk) is Conflict
    assert set(reasons.values()) == {NotFound}
    with pytest.raises(BadChange):
        library.change_all(mine, [Change(good.pk, {})] * (library.MAX_CHANGES + 1))


def test_what_is_deleted_is_gone_from_every_query_and_comes_back_whole(mine: "User") -> None:
    made = chat(mine, tags=["a"])
    outcome = library.change_all(mine, [Change(made.pk, {"deleted": True})])
    assert outcome.deleted == [made.pk]
    assert not Conversation.objects.filter(pk=made.pk).exists()
    assert not Message.objects.filter(conversation_id=made.pk).exists()
    with pytest.raises(NotFound):
        access.conversation_for(mine, made.pk)
    with pytest.raises(NotFound):
        library.change(mine, made.pk, {"pinned": True}, None)
    assert library.change_all(mine, [Change(made.pk, {"deleted": True})]).deleted == []
    outcome = library.change_all(mine, [Change(made.pk, {"deleted": False})])
    assert [row.tags for row in outcome.changed] == [["a"]]
    assert Message.objects.filter(conversation_id=made.pk).count() == 1


def test_deleted_chats_are_let_go_after_a_while(mine: "User") -> None:
    long_gone, just_gone, kept = chat(mine), chat(mine), chat(mine)
    library.change_all(mine, [Change(c.pk, {"deleted": True}) for c in (long_gone, just_gone)])
    with as_system():
        before = timezone.now() - tasks.KEEP_DELETED - timedelta(minutes=1)
        Conversation.objects.filter(pk=long_gone.pk).update(deleted_at=before)
        tasks.purge_deleted()
        assert set(Conversation.objects.values_list("pk", flat=True)) == {just_gone.pk, kept.pk}
        assert Message.objects.count() == 2
    outcome = library.change_all(mine, [Change(long_gone.pk, {"deleted": False})])
    assert list(outcome.refused) == [long_gone.pk]


def test_folders(mine: "User", charlie: "User") -> None:
    folder = library.create_folder(mine, "Work")
    with pytest.raises(Conflict):
        library.create_folder(mine, "WORK")
    other = library.create_folder(mine, "art")
    with pytest.raises(Conflict):
        library.rename_folder(mine, other.pk, "work", None)
    assert [f.name for f in library.folders_of(mine)] == ["art", "Work"]
    assert library.rename_folder(mine, other.pk, "Music", 1).version == 2
    with pytest.raises(Conflict):
        library.rename_folder(mine, other.pk, "Film", 1)
    for name in ("", "x" * 81, 'say "no"', "\x00"):
        with pytest.raises(BadChange):
            library.create_folder(mine, name)
    inside, deleted = chat(mine, folder=folder), chat(mine, folder=folder)
    library.change_all(mine, [Change(deleted.pk, {"deleted": True})])
    library.delete_folder(mine, folder.pk)
    inside.refresh_from_db()
    assert inside.folder is None
    outcome = library.change_all(mine, [Change(deleted.pk, {"deleted": False})])
    assert outcome.changed[0].folder is None
    with as_user(charlie.pk):
        assert library.folders_of(charlie) == []
        library.create_folder(charlie, "Music")  # names are each owner's own
        for door in (library.delete_folder, lambda u, id: library.rename_folder(u, id, "x", None)):
            with pytest.raises(NotFound):
                door(charlie, other.pk)
        theirs = chat(charlie)
        with pytest.raises(NotFound):
            library.change(charlie, theirs.pk, {"folder": other.pk}, None)


def test_no_query_sees_another_users_folders_or_deleted_chats(
    mine: "User", charlie: "User"
) -> None:
    library.create_folder(mine, "canary")
    made = chat(mine)
    library.change_all(mine, [Change(made.pk, {"deleted": True})])

    def count(table: str) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('vitrine.deleted', 'shown', true)")
            cursor.execute(f"SELECT count(*) FROM {table}")
            (number,) = cursor.fetchone()
            cursor.execute("SELECT set_config('vitrine.deleted', '', true)")
        return int(number)

    for scope in (as_nobody(), as_user(charlie.pk)):
        with scope:
            assert count("chat_folder") == count("chat_conversation") == count("chat_message") == 0
            assert Folder.objects.update(name="mine now") == 0
    assert count("chat_folder") == count("chat_conversation") == 1


# --- the doors ----------------------------------------------------------------------------------


def signed_in(user: "User") -> Client:
    client = Client()
    client.force_login(user)
    return client


def ids(page: dict[str, Any], name: str = "items") -> set[str]:
    return {item["id"] for item in page[name]}


@pytest.mark.django_db(transaction=True)
def test_lists_hold_each_chat_where_it_belongs(mine: "User") -> None:
    now = timezone.now()
    folder = library.create_folder(mine, "Work")
    loose, pinned = chat(mine), chat(mine, pinned_at=now, folder=folder)
    filed, archived = chat(mine, folder=folder), chat(mine, archived_at=now, pinned_at=now)
    client = signed_in(mine)
    sidebar = client.get("/api/sidebar").json()
    assert ids(sidebar) == {str(loose.pk)}
    assert ids(sidebar, "pinned") == {str(pinned.pk)}
    assert [f["name"] for f in sidebar["folders"]] == ["Work"]
    for query, expected in {
        "": {loose, pinned, filed, archived},
        f"folder={folder.pk}": {filed, pinned},
        f"folder={folder.pk}&pinned=false": {filed},
        "folder=none": {loose, archived},
        "archived=true": {archived},
        f"folder={uuid4()}": set(),
    }.items():
        page = client.get(f"/api/conversations?{query}").json()
        assert ids(page) == {str(row.pk) for row in expected}, query


@pytest.mark.django_db(transaction=True)
def test_charlie_at_every_door(alice: "User", charlie: "User") -> None:
    with as_user(alice.pk):
        made = chat(alice, "canary", tags=["canary"])
        folder = library.create_folder(alice, "canary")
    client = signed_in(charlie)
    as_json = {"content_type": "application/json"}
    missing = uuid4()
    for door in (
        lambda id, f: client.patch(f"/api/conversations/{id}", {"pinned": True}, **as_json),
        lambda id, f: client.patch(f"/api/conversations/{id}", {"title": "x"}, **as_json),
        lambda id, f: client.delete(f"/api/conversations/{id}"),
        lambda id, f: client.patch(f"/api/folders/{f}", {"name": "x"}, **as_json),
        lambda id, f: client.delete(f"/api/folders/{f}"),
    ):
        theirs, unknown = door(made.pk, folder.pk), door(missing, missing)
        assert theirs.status_code == unknown.status_code == 404
        assert theirs.json() == unknown.json()
    changes = [{"id": str(id), "deleted": True} for id in (made.pk, missing)]
    answer = client.patch("/api/conversations", {"changes": changes}, **as_json).json()
    first, second = (dict(item, id="") for item in answer["refused"])
    assert first == second
    assert answer["conversations"] == answer["deleted"] == []
    for path in (
        "/api/sidebar", "/api/conversations", f"/api/conversations?folder={folder.pk}", "/api/tags",
        "/api/folders", "/api/search?q=canary", "/api/search?q=tag:canary",
        "/api/search?q=folder:canary",
    ):  # fmt: skip
        response = client.get(path)
        assert response.status_code == 200
        assert "canary" not in response.content.decode(), path
    with as_user(alice.pk):
        made.refresh_from_db()
        assert (made.version, made.title) == (1, "canary")


@pytest.mark.django_db(transaction=True)
def test_null_takes_out_of_a_folder_and_leaves_the_rest(mine: "User") -> None:
    folder = library.create_folder(mine, "Work")
    made = chat(mine, "kept", folder=folder, tags=["kept"])
    body = {"folder": None, "title": None, "tags": None, "pinned": None}
    client = signed_in(mine)
    url = f"/api/conversations/{made.pk}"
    answer = client.patch(url, body, content_type="application/json").json()["conversation"]
    assert (answer["folder"], answer["title"], answer["tags"]) == (None, "kept", ["kept"])
    bad = client.patch(url, {"folder": "nonsense"}, content_type="application/json")
    assert bad.status_code == 400
    assert bad.json()["error"]["param"] == "folder"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_a_body_with_numbers_that_json_does_not_know_is_refused(mine: "User", number: str) -> None:
    """Nothing of ours could store it, or tell it to a browser."""
    url = f"/api/conversations/{chat(mine).pk}"
    body = f'{{"title": "new", "more": {number}}}'
    assert signed_in(mine).patch(url, body, content_type="application/json").status_code == 400

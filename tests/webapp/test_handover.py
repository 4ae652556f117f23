"""What somebody has shared goes to somebody else before their account ends, and nothing else does."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.test import Client

from chat.models import Conversation
from chat.personal_models import Assistant
from retrieval import collections, documents, sharing
from retrieval.documents import Brought
from retrieval.errors import NoRoom, NotAllowed, NotFound
from retrieval.ids import uuid7
from retrieval.models import Access, Collection
from tests.webapp.scim_client import Directory
from webapp.handover import CannotTake, hand_over
from webapp.models import ScimChange, User
from webapp.tenancy import as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]


def collection_of(owner: User, name: str, *readers: User) -> Collection:
    with as_user(owner.pk):
        row = collections.create(owner, name)
        for reader in readers:
            sharing.share(owner, row.pk, email=reader.email, may_write=True)
    return row


def assistant_of(owner: User, *, is_shared: bool) -> Assistant:
    with as_user(owner.pk):
        return Assistant.objects.create(owner=owner, name="Helper", is_shared=is_shared)


def owner_of(row: Any) -> Any:
    with as_system():
        return type(row).objects.get(pk=row.pk).owner


def test_what_is_shared_goes_with_all_rights_and_the_rest_stays(
    alice: User, bob: User, charlie: User, admin: User
) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.refresh_from_db()
    shared = collection_of(alice, "Shared", bob, charlie)
    private = collection_of(alice, "Private")
    helper, own = assistant_of(alice, is_shared=True), assistant_of(alice, is_shared=False)
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice, title="private")
    out = StringIO()
    call_command("handover", "Alice@example.org", bob.email, stdout=out)
    assert "collections: 1, assistants: 1" in out.getvalue()
    assert [owner_of(row) for row in (shared, helper)] == [bob, bob]
    assert [owner_of(row) for row in (private, own, chat)] == [alice] * 3
    with as_user(charlie.pk):
        assert collections.may_write_in(charlie, shared.pk)
        assert set(collections.collections_for(charlie)) == {shared}
        with pytest.raises(NotAllowed):
            collections.delete(charlie, shared.pk)
    with as_user(alice.pk), pytest.raises(NotFound):
        collections.collection_for(alice, shared.pk)
    with as_user(bob.pk):
        collections.change(bob, shared.pk, name="Mine now")
        accesses = list(sharing.accesses(bob, shared.pk))
        assert [(one.user, one.owner_id) for one in accesses] == [(charlie, bob.pk)]


def test_what_does_not_fit_stays_and_it_is_told(
    alice: User, bob: User, charlie: User, settings: Any, tmp_path: Any
) -> None:
    settings.DATA_DIR, settings.MAX_DOCUMENTS_BYTES = tmp_path, 1000
    large, small = (collection_of(alice, name, charlie) for name in ("Large", "Small"))
    full = collection_of(bob, "Full")
    for owner, row, size in ((alice, large, 600), (alice, small, 100), (bob, full, 500)):
        with as_user(owner.pk):
            documents.bring(owner, row.pk, Brought(uuid7(), "a.txt", size))
    helper = assistant_of(alice, is_shared=True)
    with pytest.raises(CommandError) as refused:
        call_command("handover", alice.email, bob.email, stdout=StringIO())
    assert f"collection {large.pk}" in str(refused.value)
    assert "Only operators" in str(refused.value)
    assert [owner_of(row) for row in (large, small, helper)] == [alice, bob, alice]


def hand_over_behind(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, taker: User) -> None:
    """Just after the collection has been looked up."""
    look_up = getattr(module, name)

    def looked_up(*args: Any, **kwargs: Any) -> Collection:
        row: Collection = look_up(*args, **kwargs)
        with as_system():
            sharing.hand_over(row, taker)
        return row

    monkeypatch.setattr(module, name, looked_up)


def test_who_has_given_a_collection_away_meanwhile_deletes_nothing(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = collection_of(alice, "Notes")
    hand_over_behind(monkeypatch, collections, "own_collection_for", bob)
    with as_user(alice.pk), pytest.raises(NotFound):
        collections.delete(alice, row.pk)
    assert owner_of(row) == bob


def test_a_file_needs_room_of_whoever_owns_the_collection_by_now(
    alice: User, bob: User, charlie: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_DOCUMENTS_BYTES = 10
    full, row = collection_of(bob, "Full"), collection_of(alice, "Notes", charlie)
    with as_user(bob.pk):
        documents.bring(bob, full.pk, Brought(uuid7(), "a.txt", 8))
    hand_over_behind(monkeypatch, documents, "collection_for", bob)
    with as_user(charlie.pk), pytest.raises(NoRoom):
        documents.bring(charlie, row.pk, Brought(uuid7(), "b.txt", 4))


def test_nobody_takes_from_themselves_and_no_suspended_account_takes(
    alice: User, bob: User
) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    bob.refresh_from_db()
    for taker in (alice, bob):
        with pytest.raises(CannotTake):
            hand_over(alice, taker)
    with pytest.raises(CommandError, match="no user"):
        call_command("handover", alice.email, "nobody@example.org")


def test_a_superuser_does_it_in_the_console_and_nobody_else(
    client: Client, admin: User, alice: User, bob: User, charlie: User
) -> None:
    row = collection_of(alice, "Shared", charlie)

    def act(taker: str) -> str:
        form = {"action": "hand_over", "_selected_action": [str(alice.pk)], "taker": taker}
        return client.post("/admin/webapp/user/", form, follow=True).content.decode()

    charlie.is_staff = True
    charlie.save()
    charlie.user_permissions.set(Permission.objects.filter(codename__endswith="_user"))
    for user in (bob, charlie):
        client.force_login(user)
        act(charlie.email)
        assert owner_of(row) == alice
    client.force_login(admin)
    for wrong in ("", "nobody@example.org"):
        assert "Who takes over?" in act(wrong)
    assert "1 account handed over." in act(bob.email)
    assert owner_of(row) == bob
    note = LogEntry.objects.get(object_id=str(alice.pk))
    told = "Handed over to bob@example.org: collections: 1, assistants: 0."
    assert note.get_change_message() == told


# --- when the directory deletes -------------------------------------------------------------------


def test_whoever_shares_something_is_only_suspended_by_the_directory(
    scim: Directory, client: Client, admin: User, alice: User, charlie: User
) -> None:
    told = scim.person("dora")
    dora = User.objects.get(email="dora@example.org")
    group = scim.group("Writers", told["id"])
    row = collection_of(dora, "Shared", charlie)
    path = f"/Users/{told['id']}"
    scim.ask("DELETE", path, status=204)
    dora.refresh_from_db()
    assert not dora.is_active
    assert owner_of(row) == dora
    with as_user(charlie.pk):
        assert set(collections.collections_for(charlie)) == {row}
    change = ScimChange.objects.get(action="deleted")
    assert "hand them over" in change.change
    for method, body in (("GET", None), ("DELETE", None)):
        scim.ask(method, path, body, status=404)
    assert scim.found("/Users", 'userName eq "dora@example.org"') == []
    assert not scim.ask("GET", f"/Groups/{group['id']}").get("members")
    again = {"schemas": told["schemas"], "userName": "dora@example.org"}
    scim.ask("POST", "/Users", again, status=409)
    client.force_login(admin)
    waiting = client.get("/admin/webapp/user/?scim__deleted_at__isempty=0").content.decode()
    assert "dora@example.org" in waiting
    assert "alice@example.org" not in waiting
    hand_over(dora, charlie)
    assert client.post(f"/admin/webapp/user/{dora.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=dora.pk).exists()
    assert owner_of(row) == charlie
    with as_system():
        assert not Access.objects.exists()
    scim.ask("POST", "/Users", again, status=201)


def test_whoever_is_let_in_again_is_found_by_the_directory(
    scim: Directory, client: Client, admin: User, charlie: User
) -> None:
    told = scim.person("dora")
    dora = User.objects.get(email="dora@example.org")
    collection_of(dora, "Shared", charlie)
    scim.ask("DELETE", f"/Users/{told['id']}", status=204)
    client.force_login(admin)
    form = {"action": "let_in", "_selected_action": [str(dora.pk)]}
    client.post("/admin/webapp/user/", form)
    assert scim.ask("GET", f"/Users/{told['id']}")["active"] is True


def test_whoever_shares_nothing_ends_as_before(scim: Directory) -> None:
    told = scim.person("dora")
    collection_of(User.objects.get(), "Private")
    scim.ask("DELETE", f"/Users/{told['id']}", status=204)
    assert not User.objects.exists()

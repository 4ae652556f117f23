"""Share links in the console: whose there are is seen, what they show is not, and any can be revoked."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from chat import sharing
from chat.models import Conversation, Message, Share
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

LIST = "/admin/chat/share/"


def link_of(owner: User, **wish: Any) -> tuple[Share, str]:
    """The row, and the token that opens it."""
    with as_user(owner.pk):
        chat = Conversation.objects.create(owner=owner, title="a private title")
        answer = Message.objects.create(conversation=chat, role="assistant", text="secret")
        row = sharing.create(owner, sharing.ShareWish(chat.pk, answer.pk, with_name=True, **wish))
        url = str(sharing.share_value(row)["url"])
    return row, url.removeprefix("/s/")


def revoke(client: Client, *rows: Share) -> None:
    client.post(LIST, {"action": "revoke", "_selected_action": [str(row.pk) for row in rows]})


def are_left() -> int:
    with as_system():
        return Share.objects.count()


def test_links_are_listed_without_what_they_show(console: Client, alice: User, bob: User) -> None:
    row, token = link_of(alice, kind="live", expires_in_days=7)
    link_of(bob)
    page = console.get(f"{LIST}?q=alice").content.decode()
    assert "Alice" in page
    assert "Bob" not in page
    assert "Live" in page
    detail = console.get(f"{LIST}{row.pk}/change/").content.decode()
    for hidden in ("private title", "secret", token, row.token_hash, str(row.conversation_id)):
        assert hidden not in page + detail


def test_those_that_are_chosen_are_revoked_and_it_is_noted(
    console: Client, admin: User, alice: User, bob: User
) -> None:
    (gone, token), (kept, _) = link_of(alice), link_of(bob)
    revoke(console, gone)
    with pytest.raises(sharing.NotFound):
        sharing.read(token)
    with as_system():
        assert [row.pk for row in Share.objects.all()] == [kept.pk]
    note = LogEntry.objects.get(user=admin)
    assert note.get_change_message() == "Revoked a link of alice@example.org."


def test_nobody_makes_or_changes_one(console: Client, alice: User) -> None:
    row, _ = link_of(alice)
    assert console.get(f"{LIST}add/").status_code == 403
    assert console.post(f"{LIST}{row.pk}/change/", {"kind": "live"}).status_code == 403
    assert console.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert are_left() == 1


def test_who_may_only_look_revokes_none_and_charlie_does_not_look(
    client: Client, alice: User, bob: User, charlie: User
) -> None:
    row, _ = link_of(alice)
    bob.is_staff = True
    bob.save(update_fields=["is_staff"])
    bob.user_permissions.add(Permission.objects.get(codename="view_share"))
    client.force_login(bob)
    assert "Alice" in client.get(LIST).content.decode()
    revoke(client, row)
    client.force_login(charlie)
    assert client.get(LIST, follow=True).status_code == 403
    revoke(client, row)
    assert are_left() == 1

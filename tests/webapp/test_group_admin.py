"""Groups in the console: permissions to choose from, and what a group grants."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def offered(page: str) -> set[str]:
    """The permissions of which the page has an option."""
    rows = Permission.objects.all()
    return {row.codename for row in rows if f'<option value="{row.pk}"' in page}


def test_permissions_are_those_of_what_the_console_shows(console: Client, alice: User) -> None:
    for path in ("auth/group/add", f"webapp/user/{alice.pk}/change"):
        page = console.get(f"/admin/{path}/").content.decode()
        found = offered(page)
        assert {"change_tier", "view_usage", "delete_signin"} <= found
        assert not {"view_session", "change_message", "add_contenttype"} & found
        assert "selectfilter" in page, "two boxes and a search, not one box of hundreds"


def test_what_a_group_may_already_is_shown_and_kept(console: Client) -> None:
    group = Group.objects.create(name="strong")
    group.permissions.add(Permission.objects.get(codename="view_session"))
    path = f"/admin/auth/group/{group.pk}/change/"
    assert "view_session" in offered(console.get(path).content.decode())
    form = {"name": "strong", "permissions": [str(row.pk) for row in group.permissions.all()]}
    form |= {"grant-TOTAL_FORMS": "0", "grant-INITIAL_FORMS": "0"}
    assert console.post(path, form).status_code == 302
    assert group.permissions.filter(codename="view_session").exists()


def test_what_a_group_grants_has_a_title_in_words(console: Client) -> None:
    page = console.get("/admin/auth/group/add/").content.decode()
    assert "Models of this group" in page
    assert "Group grant" not in page

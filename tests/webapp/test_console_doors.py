"""The admin console beside the site: one door for passwords."""

import pytest
from django.test import Client

from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
CHANGE = "/accounts/password/change/"


def test_a_password_is_changed_where_everybody_changes_it(console: Client, admin: User) -> None:
    form = {
        "old_password": "test-password",
        "new_password1": "a-new-password-too",
        "new_password2": "a-new-password-too",
    }
    for path in ("/admin/password_change/", "/admin/password_change/done/"):
        assert console.get(path).headers["Location"] == CHANGE
        assert console.post(path, form).headers["Location"] == CHANGE
    assert User.objects.get(pk=admin.pk).password == admin.password
    page = console.get("/admin/").content.decode()
    assert f'href="{CHANGE}"' in page
    assert "/admin/password_change/" not in page

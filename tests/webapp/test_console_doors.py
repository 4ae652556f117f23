"""The admin console beside the site: one door for passwords, one language, its own times."""

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


@pytest.mark.parametrize("wish", ["de", "ar", "en"])
def test_the_console_speaks_english_alone(console: Client, admin: User, wish: str) -> None:
    User.objects.filter(pk=admin.pk).update(language=wish)
    response = console.get("/admin/webapp/user/", headers={"Accept-Language": wish})
    page = response.content.decode()
    assert response["Content-Language"] == "en-gb"
    assert '<html lang="en-gb" dir="ltr"' in page
    assert "Log out" in page
    assert console.get("/settings/").headers["Content-Language"] == wish


def test_times_in_the_console_are_short_and_said_to_be_utc(
    console: Client, alice: User, admin: User
) -> None:
    page = console.get(f"/admin/webapp/user/{alice.pk}/change/").content.decode()
    assert f"{alice.date_joined:%Y-%m-%d %H:%M}" in page
    assert page.count("Times are UTC") == 1

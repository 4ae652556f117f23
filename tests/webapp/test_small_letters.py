"""Addresses in small letters, however they were typed."""

from importlib import import_module

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.test import Client

from tests.conftest import PASSWORD
from tests.webapp.test_accounts import sign_in
from tests.webapp.test_user_admin import form_of, page_of
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def test_who_is_made_with_capitals_signs_in(console: Client, alice: User) -> None:
    words = {"password1": PASSWORD, "password2": PASSWORD}
    form = {"email": " Dora@Example.org ", "name": "Dora", **words}
    assert console.post("/admin/webapp/user/add/", form).status_code == 302
    assert User.objects.get(name="Dora").email == "dora@example.org"
    for typed in ("Dora@Example.org", "dora@example.org"):
        assert sign_in(Client(), typed) == 302
    console.post(page_of(alice), form_of(alice, email="Alice@New.Example"))
    assert sign_in(Client(), "Alice@New.Example") == 302
    User(email="A@Example.org").save()
    assert User.objects.filter(email="a@example.org").exists()


def test_accounts_with_capitals_of_before_are_written_small(alice: User, bob: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="Alice@Example.ORG")
    for email, is_verified in (("Alice@Example.ORG", True), ("alice@example.org", False)):
        EmailAddress.objects.create(
            user=alice, email=email, verified=is_verified, primary=is_verified
        )
    EmailAddress.objects.create(user=bob, email="Bob@Example.org", verified=True, primary=True)
    EmailAddress.objects.create(user=bob, email="ALICE@example.org", verified=True)
    import_module("webapp.migrations.0016_small_letters").write_small(apps, None)
    assert sign_in(Client(), alice.email) == 302
    rows = EmailAddress.objects.order_by("user", "email")
    assert list(rows.values_list("user", "email", "verified", "primary")) == [
        (alice.pk, "alice@example.org", True, True),
        (bob.pk, "alice@example.org", False, False),
        (bob.pk, "bob@example.org", True, True),
    ]

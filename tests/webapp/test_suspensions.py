"""Who has suspended somebody ends it: console, LDAP and SCIM open nothing that another has closed."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from tests.webapp.directory_visits import SECRET, sign_in, synced
from tests.webapp.scim_client import Directory
from tests.webapp.slapd import PEOPLE, Slapd
from webapp.models import ScimChange, ScimPerson, User

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]


class Person:
    """Dora, who is in LDAP and known by SCIM, and what each of the three does with her."""

    def __init__(self, pk: int, directory: Slapd, scim: Directory, settings: Any, admin: User):
        self.pk, self.slapd, self.directory, self.settings = pk, directory, scim, settings
        self.console = Client()
        self.console.force_login(admin)

    @property
    def is_active(self) -> bool:
        return User.objects.get(pk=self.pk).is_active

    def set_in_console(self, is_active: bool, **more: str) -> None:
        user = User.objects.get(pk=self.pk)
        form = {"email": user.email, "name": user.name, "tier": user.tier_id, **more}
        form |= {"is_active": "on"} if is_active else {}
        page = self.console.post(f"/admin/webapp/user/{self.pk}/change/", form)
        assert page.status_code == 302, page.content.decode()

    def set_by_scim(self, is_active: bool) -> Any:
        change = {"op": "replace", "path": "active", "value": is_active}
        return self.directory.patch(f"/Users/u{self.pk}", change)["active"]

    def leave_ldap(self) -> None:
        self.slapd.delete(f"uid=dora,{PEOPLE}")
        synced(self.settings)

    def return_to_ldap(self) -> None:
        self.slapd.add_person("dora", SECRET, employeeNumber="7")
        synced(self.settings)


@pytest.fixture
def person(directory: Slapd, scim: Directory, settings: Any, admin: User) -> Person:
    settings.DIRECTORY = directory.settings(unique_id="employeeNumber")
    directory.add_person("dora", SECRET, employeeNumber="7")
    sign_in(Client())
    pk = User.objects.get(email="dora@example.org").pk
    return Person(pk, directory, scim, settings, admin)


def test_scim_does_not_end_a_suspension_of_the_consoles(person: Person) -> None:
    assert person.set_by_scim(False) is False
    person.set_in_console(True)
    person.set_in_console(False)
    assert person.set_by_scim(True) is False
    assert not person.is_active
    person.set_in_console(True)
    assert person.is_active


def test_ldap_does_not_end_a_suspension_of_the_consoles(person: Person) -> None:
    person.leave_ldap()
    person.set_in_console(True)
    person.set_in_console(False)
    person.return_to_ldap()
    assert not person.is_active
    sign_in(Client())
    assert not person.is_active


def test_another_change_in_the_console_ends_nobodys_say(person: Person) -> None:
    person.set_by_scim(False)
    person.set_in_console(False, name="New name")
    assert person.set_by_scim(True) is True
    person.leave_ldap()
    person.set_in_console(False, name="Newer name")
    person.return_to_ldap()
    assert person.is_active


def test_what_scim_says_of_who_has_left_ldap_is_remembered(person: Person) -> None:
    person.leave_ldap()
    person.set_by_scim(False)
    person.set_by_scim(False)
    assert ScimChange.objects.filter(action="disabled").count() == 1
    person.return_to_ldap()
    assert not person.is_active
    assert person.set_by_scim(True) is True


def test_scim_lets_nobody_in_who_has_left_ldap(person: Person) -> None:
    person.leave_ldap()
    person.set_by_scim(False)
    assert person.set_by_scim(True) is False
    assert not ScimPerson.objects.get().is_disabled
    person.return_to_ldap()
    assert person.is_active


def test_without_ldap_its_suspensions_hold_nobody_whom_scim_lets_in(person: Person) -> None:
    person.leave_ldap()
    person.set_by_scim(False)
    person.settings.DIRECTORY = None
    assert person.set_by_scim(True) is True


def test_marks_of_before_mean_nothing(person: Person) -> None:
    """Somebody was enabled without the console, by a program of the administrator's."""
    person.set_by_scim(False)
    User.objects.update(is_active=True)
    person.leave_ldap()
    person.return_to_ldap()
    assert person.is_active
    person.leave_ldap()
    User.objects.update(is_active=True)
    person.set_by_scim(False)
    assert "left_at" not in SocialAccount.objects.get().extra_data
    person.return_to_ldap()
    assert not person.is_active

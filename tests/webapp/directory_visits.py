"""What people of a directory do in tests, by the form that everybody uses."""

from typing import Any

from django.test import Client

from webapp.directory_sync import sync
from webapp.tenancy import as_system

LOGIN, CONNECT = "/accounts/login/", "/accounts/directory/"
SECRET = "dora's own secret"


def sign_in(client: Client, login: str = "dora", password: str = SECRET) -> Any:
    return client.post(LOGIN, {"login": login, "password": password})


def who(client: Client) -> str:
    """The address of who is signed in, or "" ."""
    page = client.get("/settings/security/")
    return page.context["user"].email if page.status_code == 200 else ""


def is_in(client: Client) -> bool:
    return bool(who(client))


def synced(settings: Any, **more: bool) -> tuple[int, int]:
    """How many are there, and how many were suspended."""
    with as_system():
        result = sync(settings.DIRECTORY, **more)
    return result.num_there, result.num_suspended

"""What people read when a request ends badly."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
TOO_MUCH = {"about_you": "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)}


def sent(client: Client, language: str = "en") -> Any:
    headers = {"Accept-Language": language}
    return client.post("/settings/personalisation", TOO_MUCH, headers=headers)


def test_a_form_that_is_too_large_is_told_so_with_the_limit(alice: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    response = sent(client)
    assert response.status_code == 413
    assert "larger than 10 MiB" in response.content.decode()
    assert "<h1>Too much at once</h1>" in response.content.decode()


def test_titles_speak_the_readers_language(alice: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    html = sent(client, "de").content.decode()
    assert "<title>Zu viel auf einmal · Vitrine</title>" in html
    assert "größer als 10 MiB" in html


def test_a_form_that_has_expired_leads_back_to_what_was_written() -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/accounts/login/", {"login": "a@example.org"})
    assert response.status_code == 403
    html = response.content.decode()
    assert "what you wrote is still there" in html
    assert "data-way-back" in html
    assert "data-way-back" not in client.get("/accounts/nothing").content.decode()

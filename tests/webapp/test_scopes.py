"""Every address of the two APIs is opened by some scope, and by no other."""

import re
from uuid import UUID

import pytest
from django.test import Client

from tests.routes import addresses
from webapp.api_keys import create_api_key
from webapp.models import User
from webapp.scopes import ENTRANCES, SCOPES, USUAL, opens, scopes_for

API_ADDRESSES = sorted({a for a in addresses() if a.startswith(("/v1/", "/api/"))})


def test_there_are_addresses() -> None:
    assert "/v1/chat/completions" in API_ADDRESSES
    assert "/api/conversations" in API_ADDRESSES


@pytest.mark.parametrize("address", API_ADDRESSES)
def test_no_address_is_forgotten(address: str) -> None:
    if address in ("/v1/", "/api/"):  # ninja's own roots, without a page
        return
    assert scopes_for("GET", address), "a scope has to open it: webapp/scopes.py"


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_pages_and_what_is_unknown_are_closed(method: str) -> None:
    for path in ("/", "/admin/", "/accounts/login/", "/v1", "/v1/other", "/v1/chatter", "/apiary"):
        assert not opens(SCOPES, method, path), path


@pytest.mark.parametrize(
    ("scope", "method", "path", "is_open"),
    [
        ("chat", "POST", "/v1/chat/completions", True),
        ("chat", "POST", "/v1/embeddings", False),
        ("chat", "GET", "/v1/models", True),
        ("chat", "GET", "/v1/models/some/name", True),
        ("embeddings", "POST", "/v1/embeddings", True),
        ("embeddings", "POST", "/v1/chat/completions", False),
        ("embeddings", "GET", "/v1/models", True),
        ("chat", "POST", "/v1/audio/transcriptions", False),
        ("audio", "POST", "/v1/audio/transcriptions", True),
        ("audio", "GET", "/v1/models", True),
        ("audio", "POST", "/v1/tokenize", False),
        ("chat", "POST", "/v1/images/generations", False),
        ("images", "POST", "/v1/images/edits", True),
        ("images", "GET", "/v1/models", True),
        ("files", "POST", "/v1/files", True),
        ("files", "GET", "/v1/vector_stores/vs_1", False),
        ("knowledge", "POST", "/v1/vector_stores/vs_1/search", True),
        ("api", "POST", "/api/folders", True),
        ("api", "POST", "/v1/chat/completions", False),
        ("api", "GET", "/api/admin/usage", False),
        ("api:read", "GET", "/api/conversations", True),
        ("api:read", "POST", "/api/folders", False),
        ("api:read", "DELETE", "/api/conversations/1", False),
        ("admin:read", "GET", "/api/admin/usage", True),
        ("admin:read", "POST", "/api/admin/usage", False),
        ("admin:read", "GET", "/api/conversations", False),
    ],
)
def test_a_scope_opens_what_it_says(scope: str, method: str, path: str, is_open: bool) -> None:
    assert opens([scope], method, path) is is_open


def test_nobody_gets_the_administrators_scope_unasked() -> None:
    assert "admin:read" not in USUAL
    assert set(USUAL) < set(SCOPES)


PAGES = sorted(a for a in addresses() if a.startswith(("/c/", "/settings/", "/documents/")))
METHODS = ("GET", "POST", "PATCH", "DELETE")


def _filled(address: str) -> str:
    """With something in the place of each parameter."""
    address = re.sub(r"<uuid:[^>]*>", str(UUID(int=0)), address)
    return re.sub(r"<[^>]*>", "1", address)


@pytest.mark.django_db(transaction=True)  # keys are read in threads of their own
@pytest.mark.usefixtures("clean_redis")
@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_of_one_scope_is_refused_at_every_other_door(
    client: Client, admin: User, scope: str
) -> None:
    """At each by one method, and by another with the next scope: whether it opens is decided before
    any view, and `opens` is tested above."""
    _, secret = create_api_key(admin, scopes=[scope])
    first = [*SCOPES].index(scope)
    doors = [
        (METHODS[number % len(METHODS)], _filled(address))
        for number, address in enumerate(sorted({*API_ADDRESSES, *PAGES}), start=first)
    ]
    closed = [
        (method, path)
        for method, path in doors
        if path not in ENTRANCES and not opens([scope], method, path)
    ]
    assert len(closed) > 100
    for method, path in closed:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = client.generic(method, path, "{}", "application/json", headers=headers)
        assert answer.status_code == 403, (method, path)
        assert b"This API key does not open this address" in answer.content, (method, path)

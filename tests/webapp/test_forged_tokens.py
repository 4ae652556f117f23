"""Tokens that nobody here has signed, or not for this."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings as site_settings
from django.test import Client

from chat.sealing import derived_key
from tests.webapp.token_client import (
    COOKIE,
    REFRESH,
    WHOAMI,
    bearer,
    error_of,
    opens,
    token_of,
    with_cookie,
)
from webapp.models import User

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.webapp.urls"),
    pytest.mark.usefixtures("clean_redis"),
]

RSA = rsa.generate_private_key(65537, 2048)
PUBLIC_PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def payload_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def own_key(use: str = "access") -> bytes:
    return derived_key(site_settings.SECRET_KEY, f"vitrine {use} tokens 1".encode())


def signed(payload: dict[str, Any], key: bytes | None = None, **header: Any) -> str:
    headers = {"typ": "at+jwt"} | header
    return jwt.encode(payload, own_key() if key is None else key, "HS256", headers=headers)


def raw(header: dict[str, Any], payload: dict[str, Any]) -> str:
    """Signed with our own key, whatever the header says."""
    text = f"{part(header)}.{part(payload)}"
    return f"{text}.{part(hmac.new(own_key(), text.encode(), hashlib.sha256).digest())}"


def without(payload: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != name}


FORGED = {
    "alg none": lambda t, p: f"{part({'alg': 'none', 'typ': 'at+jwt'})}.{part(p)}.",
    "alg None, with a signature": lambda t, p: raw({"alg": "None", "typ": "at+jwt"}, p),
    "no signature": lambda t, p: t.rpartition(".")[0] + ".",
    "another key": lambda t, p: signed(p, b"k" * 32),
    "SECRET_KEY itself": lambda t, p: signed(p, _secret_key()),
    "an empty key": lambda t, p: _hmac_with(b"", p),
    "HS256 with a public key": lambda t, p: _hmac_with(PUBLIC_PEM, p),
    "HS512 with our key": lambda t, p: jwt.encode(
        p, own_key() * 2, "HS512", headers={"typ": "at+jwt"}
    ),
    "RS256": lambda t, p: jwt.encode(p, RSA, "RS256", headers={"typ": "at+jwt"}),
    "RS256 in the header of ours": lambda t, p: raw({"alg": "RS256", "typ": "at+jwt"}, p),
    "unknown crit": lambda t, p: raw({"alg": "HS256", "typ": "at+jwt", "crit": ["x"], "x": 1}, p),
    "crit b64": lambda t, p: raw(
        {"alg": "HS256", "typ": "at+jwt", "crit": ["b64"], "b64": False}, p
    ),
    "kid that is a path": lambda t, p: signed(p, kid="../../../../dev/null"),
    "kid that is SQL": lambda t, p: signed(p, kid="' OR 1=1 --"),
    "jku": lambda t, p: signed(p, jku="https://evil.example/keys"),
    "jwk of its own": lambda t, p: signed(p, b"k" * 32, jwk={"kty": "oct", "k": part(b"k" * 32)}),
    "typ JWT": lambda t, p: signed(p, typ="JWT"),
    "no typ": lambda t, p: raw({"alg": "HS256"}, p),
    "the refresh key": lambda t, p: signed(p, own_key("refresh")),
    "another audience": lambda t, p: signed(p | {"aud": "vitrine/refresh"}),
    "several audiences, none ours": lambda t, p: signed(p | {"aud": ["x", "y"]}),
    "another issuer": lambda t, p: signed(p | {"iss": "https://evil.example"}),
    "expired": lambda t, p: signed(p | {"exp": int(time.time()) - 31}),
    "not valid yet": lambda t, p: signed(p | {"nbf": int(time.time()) + 60}),
    "issued in the future": lambda t, p: signed(p | {"iat": int(time.time()) + 60}),
    "exp as a text": lambda t, p: signed(p | {"exp": "for ever"}),
    "no exp": lambda t, p: signed(without(p, "exp")),
    "no nbf": lambda t, p: signed(without(p, "nbf")),
    "no iat": lambda t, p: signed(without(p, "iat")),
    "no aud": lambda t, p: signed(without(p, "aud")),
    "no iss": lambda t, p: signed(without(p, "iss")),
    "no sub": lambda t, p: signed(without(p, "sub")),
    "no sid": lambda t, p: signed(without(p, "sid")),
    "sub that is no number": lambda t, p: signed(p | {"sub": "alice"}),
    "another user": lambda t, p: signed(p | {"sub": str(int(p["sub"]) + 1)}),
    "an unknown family": lambda t, p: signed(p | {"sid": str(uuid4())}),
    "sid that is no id": lambda t, p: signed(p | {"sid": "x"}),
    "two parts": lambda t, p: t.rpartition(".")[0],
    "four parts": lambda t, p: t + ".x",
    "padding": lambda t, p: t + "=",
    "a header of nested lists": lambda t, p: f"{part(b'[' * 300)}.x.x",
    "a megabyte": lambda t, p: t + "a" * 1_000_000,
    "dots": lambda t, p: "..",
    "not ASCII": lambda t, p: t[:-1] + "é",
}


def _secret_key() -> bytes:
    return str(site_settings.SECRET_KEY).encode()


def _hmac_with(key: bytes, payload: dict[str, Any]) -> str:
    """What jwt.encode refuses to make."""
    text = f"{part({'alg': 'HS256', 'typ': 'at+jwt'})}.{part(payload)}"
    return f"{text}.{part(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_token_opens_nothing(client: Client, alice: User, bob: User, how: str) -> None:
    token = token_of(client, alice)
    payload = payload_of(token)
    assert opens(signed(payload)), "the test signs as Vitrine does"
    forged = FORGED[how](token, payload)  # type: ignore[no-untyped-call]
    response = Client().get(WHOAMI, headers=bearer(forged))
    assert error_of(response) == (401, "invalid_token")
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_refresh_token_is_no_access_token_nor_the_other_way_round(
    client: Client, alice: User
) -> None:
    token = token_of(client, alice)
    refresh = client.cookies[COOKIE].value
    assert not opens(refresh)
    assert error_of(with_cookie(token).post(REFRESH)) == (401, "invalid_refresh_token")
    assert opens(token), "a wrong token ends nothing"

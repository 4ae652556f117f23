"""What stands before the chat's socket: origin and user."""

from typing import Any

import pytest
from channels.testing import ApplicationCommunicator
from django.test import Client

from webapp.models import User
from webapp.sockets import SameOrigin, SocketUser, is_same_origin
from webapp.tenancy import current_scope


def scope(origin: str | None, host: str = "localhost:8000", **more: Any) -> dict[str, Any]:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return {"type": "websocket", "path": "/", "headers": headers, **more}


@pytest.mark.parametrize(
    ("origin", "host", "scheme", "allowed"),
    [
        ("http://localhost:8000", "localhost:8000", "ws", True),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", "ws", True),
        ("http://[::1]:8000", "[::1]:8000", "ws", True),
        ("https://localhost", "localhost", "wss", True),
        ("http://localhost:9000", "localhost:8000", "ws", False),
        ("http://localhost", "localhost:8000", "ws", False),
        ("https://localhost:8000", "localhost:8000", "ws", False),
        ("http://localhost:8000", "localhost:8000", "wss", False),
        ("http://127.0.0.1:8000", "localhost:8000", "ws", False),
        ("http://localhost:8000.evil.example", "localhost:8000", "ws", False),
        ("http://evil.example", "evil.example", "ws", False),
        ("http://evil.example", "localhost:8000", "ws", False),
        ("null", "localhost:8000", "ws", False),
        ("", "localhost:8000", "ws", False),
        (None, "localhost:8000", "ws", False),
    ],
)
def test_only_pages_of_our_own_origin_may_open_a_socket(
    origin: str | None, host: str, scheme: str, allowed: bool
) -> None:
    assert is_same_origin(scope(origin, host, scheme=scheme)) is allowed


def test_repeated_headers_are_refused() -> None:
    twice = scope("http://localhost:8000")
    twice["headers"] *= 2
    assert not is_same_origin(twice)


async def show_user(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    text = f"{scope['user'].pk} {current_scope()}"
    await send({"type": "websocket.accept", "text": text})


async def first_answer(application: Any, scope: dict[str, Any]) -> dict[str, Any]:
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "websocket.connect"})
    answer: dict[str, Any] = await communicator.receive_output()
    await communicator.wait()
    return answer


async def test_a_foreign_page_is_refused_before_the_application(servers: None) -> None:
    answer = await first_answer(SameOrigin(show_user), scope("http://evil.example"))
    assert answer["type"] == "websocket.close"


@pytest.mark.django_db(transaction=True)
async def test_a_socket_works_in_the_scope_of_its_user_by_cookie_only(
    alice: User, clean_redis: None
) -> None:
    browser = Client()
    await browser.aforce_login(alice)
    cookie = f"vitrine_session={browser.cookies['vitrine_session'].value}"
    signed_in = scope("http://localhost:8000")
    signed_in["headers"].append((b"cookie", cookie.encode()))
    assert (await first_answer(SocketUser(show_user), signed_in))["text"] == (
        f"{alice.pk} user:{alice.pk}"
    )
    for cookie in ("", "vitrine_session=nonsense"):
        stranger = scope("http://localhost:8000")
        stranger["headers"].append((b"cookie", cookie.encode()))
        assert (await first_answer(SocketUser(show_user), stranger))["text"] == "None "
    assert current_scope() == ""

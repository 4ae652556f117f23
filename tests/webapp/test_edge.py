"""The ASGI layers around Django: request ids, logs, addresses, headers, static files."""

import asyncio
import json
import logging
import logging.config
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as django_settings
from django.core.checks import Tags, run_checks
from django.core.handlers.asgi import ASGIHandler
from django.db import connection
from django.test import Client, RequestFactory

from chat import draining
from retrieval.db import NUM_THREADS
from tests.conftest import PASSWORD
from webapp import chores, keep_alive, lifecycle, second_step_rule
from webapp.api_keys import create_api_key
from webapp.asgi import build_application
from webapp.checks import proxies_are_named
from webapp.error_pages import server_error
from webapp.hosts import trusted_networks
from webapp.logs import logging_settings
from webapp.models import User
from webapp.proxies import TrustedProxies, client_address
from webapp.request_context import trace_id

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.webapp.urls"),
    pytest.mark.usefixtures("clean_redis"),
]

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def visitor(address: str = "127.0.0.1", **options: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(
        app=build_application(), client=(address, 5), raise_app_exceptions=False
    )
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", **options)


@pytest.fixture
async def anyone() -> AsyncIterator[httpx2.AsyncClient]:
    async with visitor() as client:
        yield client


@pytest.fixture
def log_lines(tmp_path: Path) -> Any:
    """The JSON lines that are written from now on."""
    file = tmp_path / "log"
    configured = logging_settings(file, "INFO")
    logging.config.dictConfig(configured)
    yield lambda: [json.loads(line) for line in file.read_text().splitlines()]
    logging.config.dictConfig(django_settings.LOGGING)


# --- request ids and logs ----------------------------------------------------------------------


async def test_every_response_has_a_request_id(anyone: httpx2.AsyncClient) -> None:
    paths = ["/public", "/page", "/nothing", "/fail/x", "/deny", "/static/nothing.js"]
    ids = [(await anyone.get(path)).headers["x-request-id"] for path in paths]
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert len(set(ids)) == len(ids)


async def test_a_trace_that_comes_from_outside_goes_on(anyone: httpx2.AsyncClient) -> None:
    response = await anyone.get("/public", headers={"traceparent": f"00-{TRACE}-{'b' * 16}-01"})
    assert response.headers["x-request-id"] == TRACE


@pytest.mark.parametrize(
    "value",
    [
        f"00-{'0' * 32}-{'b' * 16}-01",
        f"ff-{TRACE}-{'b' * 16}-01",
        f"00-{TRACE.upper()}-{'b' * 16}-01",
        f"00-{TRACE}-{'b' * 16}",
        "evil\nline",
        "",
    ],
)
def test_a_trace_that_is_none_is_replaced(value: str) -> None:
    found = trace_id([(b"traceparent", value.encode())])
    assert re.fullmatch("[0-9a-f]{32}", found)
    assert found not in (TRACE, "0" * 32)


async def test_log_lines_of_lower_floors_carry_the_request_id(
    anyone: httpx2.AsyncClient, log_lines: Any
) -> None:
    request_id = (await anyone.get("/public")).headers["x-request-id"]
    work, request = log_lines()
    assert (work["event"], work["logger"]) == ("work on a lower floor", "chat.somewhere")
    assert work["request_id"] == request["request_id"] == request_id
    assert (request["route"], request["status"], request["method"]) == ("public", 200, "GET")
    assert request["total_ms"] >= request["first_byte_ms"] > 0


async def test_secrets_and_addresses_stay_out_of_the_log(
    anyone: httpx2.AsyncClient, log_lines: Any, alice: User
) -> None:
    form = {"login": alice.email, "password": PASSWORD}
    await anyone.post("/accounts/login/?q=needle-1", data=form)
    await anyone.get("/fail/needle-2")
    await anyone.get("/nothing/needle-3")
    await anyone.get("/api/x", headers={"Authorization": "Bearer needle-4"})
    text = json.dumps(log_lines())
    assert "a bug" in text
    for secret in ("needle", alice.email, PASSWORD):
        assert secret not in text


async def test_a_database_error_is_logged_without_the_row(log_lines: Any) -> None:
    row = "(" + "private" + "\n\n" + "private" + ")"
    try:
        raise ValueError(f"constraint\nDETAIL:  Failing row contains {row}.")
    except ValueError:
        logging.getLogger("chat").exception("could not be saved")
    (line,) = log_lines()
    assert "constraint" in line["exception"]
    assert "private" not in line["exception"].partition("ValueError: ")[2]


# --- addresses ---------------------------------------------------------------------------------


async def test_a_forwarded_address_is_believed_from_a_trusted_proxy_only(settings: Any) -> None:
    settings.TRUSTED_PROXIES = trusted_networks(["10.0.0.0/8"])
    headers = {"X-Forwarded-For": "1.1.1.1, 203.0.113.9, 10.0.0.5"}

    async def seen_from(address: str) -> str:
        async with visitor(address) as client:
            found: str = (await client.get("/public", headers=headers)).json()["address"]
            return found

    assert await seen_from("10.0.0.1") == "203.0.113.9"
    assert await seen_from("192.0.2.1") == "192.0.2.1"


async def test_a_peer_of_ipv4_is_one_on_a_socket_of_ipv6_too(settings: Any) -> None:
    """By their mapped addresses, all of IPv4 would share a /64, and so a limit of attempts."""
    headers = {"X-Forwarded-For": "::ffff:203.0.113.9"}

    async def seen_from(address: str) -> str:
        async with visitor(address) as client:
            found: str = (await client.get("/public", headers=headers)).json()["address"]
            return found

    assert await seen_from("::ffff:192.0.2.1") == "192.0.2.1"
    assert await seen_from("2001:db8::1") == "2001:db8::1"
    settings.TRUSTED_PROXIES = trusted_networks(["10.0.0.0/8"])
    assert await seen_from("::ffff:10.0.0.1") == "203.0.113.9"


async def test_a_proxy_that_nobody_has_named_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        pass

    trusting: Any = TrustedProxies(application, trusted_networks(["10.0.0.0/8"]), https=True)
    forwarded = [(b"x-forwarded-for", b"203.0.113.9")]

    async def come(address: str, headers: list[tuple[bytes, bytes]]) -> None:
        await trusting({"type": "http", "client": [address, 1], "headers": headers}, None, None)

    await come("10.0.0.1", forwarded)
    await come("192.0.2.1", [])
    assert not caplog.records
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        await come(address, forwarded)
    (warning,) = caplog.records
    assert warning.getMessage().startswith("192.0.2.1 sends X-Forwarded-For")
    assert "TRUSTED_PROXIES" in warning.getMessage()


def test_a_site_behind_https_that_names_no_proxy_is_warned_of(settings: Any) -> None:
    for https, trusted, is_warned in ((True, [], True), (True, ["10.0.0.1"], False)):
        settings.HTTPS, settings.TRUSTED_PROXIES = https, trusted_networks(trusted)
        found = [one.id for one in run_checks(tags=[Tags.security])]
        assert ("vitrine.W001" in found) is is_warned
    settings.HTTPS, settings.TRUSTED_PROXIES = False, []
    assert proxies_are_named() == []


def test_the_address_is_taken_from_the_right() -> None:
    trusted = trusted_networks(["10.0.0.0/8", "2001:db8::/32"])
    assert client_address(["6.6.6.6", "7.7.7.7", "10.1.1.1"], trusted) == "7.7.7.7"
    assert client_address(["7.7.7.7", "2001:db8::1"], trusted) == "7.7.7.7"
    assert client_address(["10.9.9.9"], trusted) == "10.9.9.9"
    assert client_address(["nonsense"], trusted) is None


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("203.0.113.9, 10.0.0.5:80", "203.0.113.9"),
        ("unknown", "10.0.0.7"),
        ("203.0.113.9, unknown", "10.0.0.7"),
        ("_hidden, \xff", "10.0.0.7"),
        ("[", "10.0.0.7"),
        (":", "10.0.0.7"),
    ],
)
async def test_what_proxies_write_of_an_address_is_understood_or_left(
    told: str, address: str
) -> None:
    """A direct peer that we trust is believed to be who asks, where it names nobody."""
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    trusting: Any = TrustedProxies(application, trusted_networks(["10.0.0.0/8"]), https=False)
    headers = [(b"x-forwarded-for", told.encode("latin1"))]
    await trusting({"type": "http", "client": ["10.0.0.7", 1], "headers": headers}, None, None)
    assert seen == [address]


# --- headers -----------------------------------------------------------------------------------


def test_the_content_security_policy_is_strict_and_names_a_nonce_only_if_one_is_printed(
    client: Client,
) -> None:
    plain = client.get("/public").headers["Content-Security-Policy"]
    assert plain == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
        " font-src 'self'; frame-src 'self'; connect-src 'self'; manifest-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    first, second = client.get("/nonce"), client.get("/nonce")
    nonce = first.content.decode()
    assert f"script-src 'self' 'nonce-{nonce}';" in first.headers["Content-Security-Policy"]
    assert nonce != second.content.decode()


def test_a_view_may_bring_its_own_policy(client: Client) -> None:
    assert client.get("/own-policy").headers["Content-Security-Policy"] == "sandbox"


def test_every_page_has_the_other_security_headers(client: Client, settings: Any) -> None:
    for path in ("/public", "/nothing", "/page"):
        headers = client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "Strict-Transport-Security" not in headers
    settings.HTTPS = True
    assert "Strict-Transport-Security" in client.get("/public").headers


def test_cookies_are_out_of_reach_for_scripts_and_other_sites(client: Client, alice: User) -> None:
    client.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    for name in ("vitrine_session", "vitrine_csrf"):
        assert client.cookies[name]["httponly"]
        assert client.cookies[name]["samesite"] == "Lax"


async def test_the_host_header_must_be_ours(anyone: httpx2.AsyncClient) -> None:
    response = await anyone.get("/accounts/login/", headers={"Host": "evil.example"})
    assert response.status_code == 400


async def test_a_probe_need_not_know_our_name(anyone: httpx2.AsyncClient, settings: Any) -> None:
    settings.PRELOAD_MODEL = False
    host = {"Host": "10.1.2.3:8000"}
    assert (await anyone.get("/healthz", headers=host)).status_code == 200
    # What else this process has loaded may not be ready.
    assert (await anyone.get("/readyz", headers=host)).json()["status"] in ("ready", "unready")


# --- streams -----------------------------------------------------------------------------------


@pytest.fixture
async def alices(alice: User) -> AsyncIterator[httpx2.AsyncClient]:
    browser = Client()
    await browser.aforce_login(alice)
    cookie = browser.cookies["vitrine_session"].value
    async with visitor(cookies={"vitrine_session": cookie}, timeout=30) as client:
        yield client


# Both with more requests at the same time than the pool has connections.


async def test_a_stream_keeps_its_users_scope_and_holds_no_database_connection(
    alices: httpx2.AsyncClient, alice: User
) -> None:
    answers = await asyncio.gather(*(alices.get("/stream") for _ in range(25)))
    assert {answer.text for answer in answers} == {f"user:{alice.pk}\n" * 20}
    assert answers[0].headers["X-Accel-Buffering"] == "no"


async def test_a_stream_of_events_that_says_nothing_gives_signs_of_life(
    alices: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_alive, "SILENCE_S", 0.05)
    first, *comments, last = (await alices.get("/silent")).text.strip().split("\n\n")
    assert (first, last) == ("data: 1", "data: 2")
    assert set(comments) == {": keep-alive"}


async def test_an_answer_that_takes_long_holds_no_database_connection(
    alices: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_step_rule, "_ASKED_EVERY_S", 0.0)  # asked in front of each view
    second_step_rule.forget_rule()
    # Held, the pool's connections would serve them in five turns, longer than its patience.
    num_at_once = 5 * (NUM_THREADS + 10)
    answers = await asyncio.gather(*(alices.get("/slow") for _ in range(num_at_once)))
    assert {answer.text for answer in answers} == {"1"}


def test_no_middleware_leaves_the_event_loop(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.DEBUG = True  # Django then says which hooks it wraps in threads
    with caplog.at_level(logging.DEBUG, "django.request"):
        ASGIHandler()
    adapted = [record.getMessage() for record in caplog.records if "adapted" in record.getMessage()]
    assert adapted == []


async def test_any_asgi_server_can_start_and_end_it(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRELOAD_MODEL = False
    for module, name in ((lifecycle, "_draining"), (draining, "_is_draining")):
        monkeypatch.setattr(module, name, False)  # the next test's server has not ended
    communicator = ApplicationCommunicator(build_application(), {"type": "lifespan"})
    await communicator.send_input({"type": "lifespan.startup"})
    assert (await communicator.receive_output(10))["type"] == "lifespan.startup.complete"
    assert not lifecycle.is_draining()
    await communicator.send_input({"type": "lifespan.shutdown"})
    assert (await communicator.receive_output(20))["type"] == "lifespan.shutdown.complete"
    assert lifecycle.is_draining()


@pytest.mark.parametrize("chore", [chores.recover_lost, chores.take_up_batches])
async def test_a_chore_gives_its_connection_back(chore: Callable[[], Awaitable[None]]) -> None:
    """But for those that the database threads keep: others would leave nothing for anybody else."""
    pool: Any = connection.pool  # type: ignore[attr-defined]

    def num_taken() -> int:
        facts = pool.get_stats()
        return int(facts["pool_size"] - facts["pool_available"])

    before = num_taken()
    await asyncio.gather(*(chore() for _ in range(5)))
    assert num_taken() - before <= NUM_THREADS


# --- static files ------------------------------------------------------------------------------


async def test_hashed_static_files_are_immutable(anyone: httpx2.AsyncClient) -> None:
    from django.templatetags.static import static

    url = static("admin/css/base.css")
    assert re.search(r"base\.[0-9a-f]{12}\.css$", url)
    response = await anyone.get(url)
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in response.headers
    unhashed = await anyone.get("/static/admin/css/base.css")
    assert "immutable" not in unhashed.headers["Cache-Control"]
    assert (await anyone.get("/static/../settings.py")).status_code == 404


def test_the_import_map_leads_from_plain_names_to_hashed_files(client: Client) -> None:
    page = client.get("/modules")
    match = re.search(
        r'<script type="importmap" nonce="([^"]+)">(.*?)</script>', page.content.decode()
    )
    assert match
    assert f"'nonce-{match[1]}'" in page.headers["Content-Security-Policy"]
    imports = json.loads(match[2])["imports"]
    own = {name: url for name, url in imports.items() if name.startswith("/static/js/")}
    vendored = {name: url for name, url in imports.items() if name.startswith("#vendor/")}
    assert own
    assert vendored
    assert len(own) + len(vendored) == len(imports)
    for name, url in imports.items():
        stem = Path(name).stem
        assert re.search(rf"/{re.escape(stem)}\.[0-9a-f]{{12}}\.(?:m?js|css)$", url), (name, url)


# --- errors before a view ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"]
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_anthropics_clients_can_read_what_no_view_has_said(
    path: str, method: str, alice: User
) -> None:
    _, secret = create_api_key(alice)
    response = Client().generic(method, path, headers={"Authorization": f"Bearer {secret}"})
    told = response.json()
    assert response.status_code in (404, 405)
    assert told["type"] == "error"
    assert told["error"]["code"] in ("not_found", "method_not_allowed")


def test_so_they_can_where_a_host_a_form_or_the_site_is_wrong(alice: User) -> None:
    tab = Client(enforce_csrf_checks=True)
    tab.force_login(alice)
    wrong_host = Client().get("/v1/messages", headers={"Host": "evil.example"})
    for response, status in ((tab.post("/v1/messages"), 403), (wrong_host, 400)):
        assert (response.status_code, response.json()["type"]) == (status, "error")
    request = RequestFactory().post("/v1/messages")
    assert json.loads(server_error(request).content)["type"] == "error"
    request = RequestFactory().post("/v1/chat/completions")
    assert "type" not in json.loads(server_error(request).content), "OpenAI's has none there"


@pytest.mark.parametrize("kind", ["x*=nonsense''y", "charset*=utf-7''+2AA-", "boundary*=no''B"])
async def test_a_header_that_django_cannot_read_is_a_400(
    anyone: httpx2.AsyncClient, kind: str
) -> None:
    headers = {"Content-Type": f"application/json; {kind}"}
    for path in ("/v1/chat/completions", "/api/auth/token", "/accounts/login/", "/healthz"):
        response = await anyone.post(path, content=b"{}", headers=headers)
        assert response.status_code == 400
        if path.startswith(("/v1/", "/api/")):
            assert response.json()["error"]["code"] == "bad_request"

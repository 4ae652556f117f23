"""The content security policy as a real browser applies it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.sites import SiteMaker, running

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
    event => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
OPEN_SOCKET = """
url => new Promise(resolve => {
    try {
        const socket = new WebSocket(url);
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("error");
    } catch (error) { resolve("blocked"); }
})
"""
ADMIN_PAGES = [
    "",
    "webapp/user/",
    "webapp/user/1/change/",
    "webapp/user/1/delete/",
    "webapp/user/add/",
    "webapp/tier/free/change/",
    "webapp/apikey/",
]


@pytest.fixture(scope="module")
def session_cookie(make_site: SiteMaker) -> Iterator[dict[str, str]]:
    with running(make_site()) as site:
        value = site.set_up().cookies["vitrine_session"]
        yield {"name": "vitrine_session", "value": value, "url": site.url}


@pytest.fixture
def url(session_cookie: dict[str, str]) -> str:
    return session_cookie["url"]


@pytest.fixture
def admin_page(page: Page, session_cookie: dict[str, str]) -> Page:
    page.set_default_timeout(15_000)
    page.add_init_script(WATCH)
    page.context.add_cookies([session_cookie])  # type: ignore[list-item]
    return page


def test_our_own_socket_is_covered_by_self_and_a_foreign_one_is_not(
    admin_page: Page, url: str
) -> None:
    admin_page.goto(f"{url}/accounts/password/change/")
    assert admin_page.evaluate("violations") == []
    own = url.replace("http", "ws") + "/ws/chat/"
    assert admin_page.evaluate(OPEN_SOCKET, own) == "open"
    admin_page.evaluate(OPEN_SOCKET, "ws://127.0.0.1:1/")
    assert admin_page.evaluate("violations") == ["connect-src ws://127.0.0.1:1/"]


def test_the_admin_console_works_under_the_policy(admin_page: Page, url: str) -> None:
    failed: list[str] = []
    admin_page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    admin_page.on("pageerror", lambda error: failed.append(str(error)))
    for path in ADMIN_PAGES:
        admin_page.goto(f"{url}/admin/{path}")
        admin_page.wait_for_load_state("networkidle")
        assert admin_page.locator("#site-name").count() == 1
        assert admin_page.evaluate("violations") == [], path
    assert failed == []


def test_a_script_without_the_nonce_does_not_run(admin_page: Page, url: str) -> None:
    admin_page.goto(f"{url}/accounts/password/change/")
    admin_page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = true";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.injected=1'>");
        }"""
    )
    admin_page.wait_for_timeout(300)
    assert admin_page.evaluate("window.injected") is None
    assert len(admin_page.evaluate("violations")) >= 1

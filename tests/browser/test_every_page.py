"""Every page of the site, as strangers and members see it, in both themes: axe finds no fault, and no
help text is pressed into a column of letters.

A page that is added has to be added here: the addresses are compared with those of the site, and the
dialogs and menus of the chat with those that were opened.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import told, violations
from tests.browser.library import add_chats
from tests.browser.pages import cookies_of
from tests.browser.scripted import ScriptedChat, meter_of
from tests.browser.test_accessibility import END_OF_TRANSITIONS, RULES, fill
from tests.browser.test_passkeys import add_authenticator, confirm
from tests.sites import ADMIN_EMAIL, PASSWORD, Site, SiteMaker, post_form
from tests.webapp.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.webapp.slapd import PEOPLE, SERVICE_DN, SERVICE_PASSWORD, Slapd
from tests.webapp.test_two_step import code_of

pytestmark = pytest.mark.timeout(600)
COLOURS = {
    **RULES,
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
MAIL = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": "9"}
PROVIDER = {
    "VITRINE_OIDC_WORK_CLIENT_ID": CLIENT_ID,
    "VITRINE_OIDC_WORK_CLIENT_SECRET": CLIENT_SECRET,
}
# Route -> address. {chat}, {share}, {assistant}, {document} and the like are the administrator's.
OF_STRANGERS = {
    "accounts/login/": "/accounts/login/",
    "accounts/signup/": "/accounts/signup/",
    "accounts/inactive/": "/accounts/inactive/",
    "accounts/confirm-email/": "/accounts/confirm-email/",
    "accounts/confirm-email/<str:key>/": "/accounts/confirm-email/wrong/",
    "accounts/cancelled/": "/accounts/cancelled/",
    "accounts/password/reset/": "/accounts/password/reset/",
    "accounts/password/reset/done/": "/accounts/password/reset/done/",
    r"accounts/^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)/$": (
        "/accounts/password/reset/key/1-wrong/"
    ),
    "accounts/password/reset/key/done/": "/accounts/password/reset/key/done/",
    "offline": "/offline",
    "s/<str:token>": "{share}",
}
OF_MEMBERS = {
    "": "/",
    "c/<uuid:conversation_id>": "/c/{chat}",
    "c/<uuid:conversation_id>/print": "/c/{chat}/print",
    "s/<str:token>": "{share}",
    "documents/": "/documents/",
    "documents/collections/<uuid:collection_id>": "/documents/collections/{collection}",
    "documents/<uuid:document_id>": "/documents/{document}",
    "settings/": "/settings/",
    "settings/security/": "/settings/security/",
    "settings/sessions": "/settings/sessions",
    "accounts/email/": "/accounts/email/",
    "accounts/connections/": "/accounts/connections/",
    "settings/personalisation": "/settings/personalisation",
    "settings/memory": "/settings/memory",
    "settings/assistants": "/settings/assistants",
    "settings/assistants/new": "/settings/assistants/new",
    "settings/assistants/<uuid:assistant_id>": "/settings/assistants/{assistant}",
    "settings/prompts": "/settings/prompts",
    "settings/prompts/new": "/settings/prompts/new",
    "settings/prompts/<uuid:prompt_id>": "/settings/prompts/{prompt}",
    "settings/schedules": "/settings/schedules",
    "settings/schedules/new": "/settings/schedules/new",
    "settings/schedules/<uuid:schedule_id>": "/settings/schedules/{schedule}",
    "settings/keys": "/settings/keys",
    "settings/keys/new": "/settings/keys/new",
    "settings/keys/<int:key_id>": "/settings/keys/{key}",
    "settings/keys/<int:key_id>/rotate": "/settings/keys/{key}/rotate",
    "settings/keys/<int:key_id>/revoke": "/settings/keys/{key}/revoke",
    "settings/name": "/settings/name",
    "settings/usage": "/settings/usage",
    "settings/moderation": "/settings/moderation",
    "settings/api": "/settings/api",
    "accounts/logout/": "/accounts/logout/",
    "accounts/signed-in": "/accounts/signed-in",
    "accounts/password/change/": "/accounts/password/change/",
    "accounts/reauthenticate/": "/accounts/reauthenticate/",
}
# Of somebody who has a passkey and an authenticator app, and has just proved who it is.
OF_THE_CAREFUL = {
    "accounts/directory/": "/accounts/directory/",
    "settings/delete-account": "/settings/delete-account",
    "settings/security/codes": "/settings/security/codes",
    "settings/security/codes/new": "/settings/security/codes/new",
    "settings/security/app/remove": "/settings/security/app/remove",
    "settings/security/passkeys/<int:pk>": "/settings/security/passkeys/{key}",
    "settings/security/passkeys/<int:pk>/remove": "/settings/security/passkeys/{key}/remove",
    "accounts/reauthenticate/code/": "/accounts/reauthenticate/code/",
    "accounts/reauthenticate/passkey/": "/accounts/reauthenticate/passkey/",
}
ELSEWHERE = {
    "settings/security/app": "test_second_steps",
    "settings/security/passkeys/add": "test_second_steps",
    "accounts/second-step/": "test_second_steps",
    "accounts/provider-error/": "test_what_strangers_see",
    "accounts/invitation/<str:token>": "test_what_strangers_see",
    "accounts/suspended/": "test_who_is_suspended",
    "accounts/oidc/<str:provider_id>/login/": "test_sign_up_with_a_provider",
    "accounts/provider-signup/": "test_sign_up_with_a_provider",
    "setup/<str:token>": "test_before_the_set_up",
    "admin/": "test_the_administration",
}
NO_PAGES = {
    "healthz", "readyz", "metrics", "api/", "v1/", "api/docs",
    "manifest.webmanifest", "service-worker.js",
    "s/<str:token>/continue", "settings/language",  # forms only
    "s/<str:token>/pictures/<uuid:picture_id>",  # a picture
    "accounts/login/passkey/", "settings/security/passkeys",  # lead elsewhere
    "accounts/oidc/<str:provider_id>/login/callback/",
    "settings/schedules/<uuid:schedule_id>/send",  # leads to a chat
    "settings/export", "settings/security/codes/download",  # files
    "accounts/who",
    "accounts/password/set/",  # leads elsewhere: every account has a password
    "sandbox/diagram", "sandbox/image", "sandbox/preview",  # frames in what people see
}  # fmt: skip
_ROUTES = """
from django.urls import get_resolver
def routes(resolver, before=""):
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns") and route not in ("admin/", "api/", "v1/"):
            routes(pattern, route)
        else:
            print("route:" + route)
routes(get_resolver())
"""
_SUSPENDED = """
WITH dora AS (
    INSERT INTO webapp_user (email, name, language, tier_id, password, is_active, is_staff,
        is_superuser, date_joined)
    SELECT 'dora@example.org', 'Dora', '', 'free', password, false, false, false, now()
    FROM webapp_user WHERE email = %s RETURNING id
)
INSERT INTO moderation_suspension (owner_id, points, created_at, appeal, notes)
SELECT id, 10, now(), '', '' FROM dora
"""
_USAGE = """
INSERT INTO chat_usage (owner_id, day, model, api_key_id, num_requests, prompt_tokens, cached_tokens,
    completion_tokens, engine_ms, cost)
SELECT id, (now() AT TIME ZONE 'UTC')::date - n, 'vitrine-small', NULL, 3 * n + 1, 4000 * n + 12,
    900 * n, 700 * n + 5, 60.5 * n, 0 FROM webapp_user, generate_series(0, 20) AS n
"""
_CAREFUL = f"""
from allauth.account.models import EmailAddress
from webapp.models import User
user = User.objects.create_user("careful@example.org", "{PASSWORD}", name="Careful")
EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
"""
_NARROW = """() => [...document.querySelectorAll(".helptext")]
    .filter((text) => text.checkVisibility() && text.getBoundingClientRect().width < 96)
    .map((text) => text.textContent)"""
_NO_ICONS = """() => [...document.querySelectorAll("use")].map((use) => use.getAttribute("href"))
    .filter((href) => !document.querySelector(href))"""
CHATS: dict[str, Any] = {
    "<b>Bold</b> title": ["eight with a walrus", "8"],
    "A chat with a list": [
        "Which three?",
        "1. **One**\n2. `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    ],
}


_OPEN = "dialog[open], [popover]:popover-open"


class Seen(NamedTuple):
    site: Site
    ids: dict[str, str]
    cookies: list[Any]


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def directory() -> Iterator[Slapd]:
    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder, Slapd(Path(folder)) as slapd:
        yield slapd


@pytest.fixture(scope="session")
def environment(provider: IdentityProvider, directory: Slapd) -> dict[str, str]:
    ldap = {
        "URL": f"ldap://127.0.0.1:{directory.port}",
        "STARTTLS": "true",
        "CA_FILE": str(directory.ca_file),
        "BIND_DN": SERVICE_DN,
        "BIND_PASSWORD": SERVICE_PASSWORD,
        "USER_BASE": PEOPLE,
    }
    of_ldap = {f"VITRINE_LDAP_{name}": value for name, value in ldap.items()}
    return {**MAIL, **PROVIDER, "VITRINE_OIDC_WORK_URL": provider.url, **of_ldap}


@pytest.fixture(scope="module")
def seen(make_site: SiteMaker, browser: Browser, environment: dict[str, str]) -> Iterator[Seen]:
    """A site with mail, and with something of everything, all of it the administrator's."""
    with make_site(VITRINE_PUBLIC_SHARES="true", **environment) as site:
        with closing(browser.new_context(base_url=site.url)) as context:
            look = Look(context.new_page())
            look.at("closed sign-up", "/accounts/signup/")
            assert site.setup_url
            look.at("set-up", site.setup_url)
            look.expect_nothing()
        with closing(site.set_up()) as admin:
            add_chats(site, ADMIN_EMAIL, CHATS)
            site.execute(_USAGE)
            yield Seen(site, _something_of_everything(admin), cookies_of(admin, site.url))


def _something_of_everything(admin: Any) -> dict[str, str]:
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', admin.get("/settings/").text)
    assert token

    def make(path: str, **values: Any) -> Any:
        response = admin.post(f"/api/{path}", json=values, headers={"X-CSRFToken": token[1]})
        assert response.status_code == 201, response.text
        return response.json()

    folder = make("folders", name="Work")["folder"]
    chats = admin.get("/api/conversations").json()["items"]
    messages = admin.get(f"/api/conversations/{chats[0]['id']}").json()["messages"]
    values = {"conversation": chats[0]["id"], "message": messages[-1]["id"]}
    assistant = make("assistants", name="Nina", description="A pirate", starters=["Ahoy!"])
    prompt = make("prompts", name="translate", text="Translate {{text}} into {{language}}")
    rhythm = {"repeats": "weekly", "weekdays": [1, 3], "at": "08:00", "zone": "Europe/Berlin"}
    schedule = make("schedules", name="News", text="What is new?", **rhythm)
    make("memories", text="I cook without meat.", conversation=chats[0]["id"])
    again = post_form(admin, "/accounts/reauthenticate/", {"password": PASSWORD})
    assert again.status_code == 302
    key = make("keys", name="A script", scopes=["chat", "embeddings"])
    collection = make("collections", name="Glass", description="All that is known of it")
    document = admin.post(
        f"/api/collections/{collection['id']}/documents",
        params={"name": "glass.md"},
        content=b"# Glass\n\nIt is clear, and old.",
        headers={"X-CSRFToken": token[1], "Content-Type": "application/octet-stream"},
    )
    return {
        "collection": collection["id"],
        "document": document.json()["id"],
        "key": str(key["id"]),
        "folder": folder["id"],
        "chat": chats[0]["id"],
        "share": make("shares", **values)["share"]["url"],
        "assistant": assistant["id"],
        "prompt": prompt["id"],
        "schedule": schedule["id"],
    }


class Look:
    """Goes over pages and keeps what axe finds on each, without motion; in an open box if there is one.

    The second theme has the same elements in other colours.
    """

    def __init__(self, page: Page, rules: dict[str, Any] = RULES) -> None:
        self.page = page
        self.rules = rules
        self.faults: list[str] = []
        self.opened: set[str] = set()
        page.emulate_media(reduced_motion="reduce")
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))

    def at(self, name: str, path: str, status: int = 200) -> None:
        response = self.page.goto(path)
        if response is None or response.status != status:
            self.faults.append(f"{name}: {response and response.status} instead of {status}")
        self.check(name)

    def check(self, name: str) -> None:
        is_open = set(self.page.eval_on_selector_all(_OPEN, "boxes => boxes.map(({ id }) => id)"))
        self.opened |= is_open
        self.faults += [f"{name}: narrow: {text}" for text in self.page.evaluate(_NARROW)]
        self.faults += [f"{name}: no icon: {href}" for href in self.page.evaluate(_NO_ICONS)]
        for theme, rules in (("light", self.rules), ("dark", COLOURS)):
            self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            self.page.evaluate(END_OF_TRANSITIONS)
            found = violations(self.page, rules, _OPEN if is_open else None)
            self.faults += [f"{name}, {theme}: {told([fault])}" for fault in found]

    def expect_nothing(self) -> None:
        assert not self.faults, "\n".join(self.faults)


@pytest.fixture
def stranger(seen: Seen, browser: Browser) -> Iterator[Look]:
    context = browser.new_context(base_url=seen.site.url, service_workers="block")
    with closing(context):
        yield Look(context.new_page())


@pytest.fixture
def member(seen: Seen, stranger: Look) -> Look:
    stranger.page.context.add_cookies(seen.cookies)
    return stranger


def test_no_address_is_left_out(seen: Seen, environment: dict[str, str]) -> None:
    done = seen.site.manage("shell", "-v0", "-c", _ROUTES, **environment)
    routes = {line[6:] for line in done.stdout.splitlines() if line.startswith("route:")}
    walked = OF_STRANGERS.keys() | OF_MEMBERS.keys() | OF_THE_CAREFUL.keys()
    assert routes == walked | ELSEWHERE.keys() | NO_PAGES


def test_what_strangers_see(seen: Seen, stranger: Look) -> None:
    for route, address in OF_STRANGERS.items():
        stranger.at(route, address.format(**seen.ids))
    stranger.at("missing", "/s/nothing", 404)
    stranger.at("spent invitation", "/accounts/invitation/spent", 404)
    stranger.at("provider's failure", "/accounts/provider-error/", 401)
    stranger.page.goto("/accounts/login/")
    stranger.page.fill("[name=login]", "nobody@example.org")
    stranger.page.fill("[name=password]", "wrong")
    stranger.page.click("main button")
    expect(stranger.page.locator("main [role=alert], main .errorlist").first).to_be_visible()
    stranger.check("refused sign-in")
    stranger.page.goto("/accounts/login/")
    stranger.page.fill("[name=login]", "nobody@example.org")
    stranger.page.fill("[name=password]", "wrong")
    stranger.page.evaluate("document.querySelector('[name=csrfmiddlewaretoken]').value = 'x'")
    stranger.page.click("main button")
    expect(stranger.page.locator("h1")).to_have_text("Not allowed")
    stranger.check("expired form")
    stranger.page.get_by_role("button", name="Back").click()
    expect(stranger.page.locator("[name=login]")).to_have_value("nobody@example.org")
    stranger.expect_nothing()


def test_what_members_see(seen: Seen, member: Look) -> None:
    for route, address in OF_MEMBERS.items():
        member.at(route or "empty chat", address.format(**seen.ids))
    member.at("missing chat", "/c/0199a1b2-0000-7000-8000-00000000dead", 404)
    member.page.goto("/settings/")
    member.page.click("[data-delete-all] button")
    member.check("deletion of everything")
    member.page.goto("/settings/prompts/new")
    member.page.locator("form").last.evaluate("form => form.noValidate = true")
    member.page.click("main form button >> nth=-1")
    member.check("refused form")
    member.expect_nothing()


def test_sign_up_with_a_provider(stranger: Look, provider: IdentityProvider) -> None:
    """One that tells no address, so that a form asks for it."""
    provider.person = {"sub": "1", "name": "Dora"}
    page = stranger.page
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Sign in with Work").click()
    page.wait_for_url("**/accounts/provider-signup/")
    stranger.check("sign-up with a provider")
    expect(page.locator("[name=name]")).to_have_value("Dora")
    stranger.expect_nothing()


def test_sign_in_with_the_directory(stranger: Look, directory: Slapd) -> None:
    directory.add_person("leo", "leo's own secret")
    page = stranger.page
    page.goto("/accounts/login/")
    page.get_by_label("E-mail address or user name").fill("leo")
    page.get_by_label("Password").fill("leo's own secret")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: url.endswith("/"))
    stranger.at("security", "/settings/security/")
    expect(page.get_by_text("kept in the directory of your organisation")).to_be_visible()
    stranger.at("kept elsewhere", "/accounts/password/set/", 403)
    stranger.expect_nothing()


def test_second_steps(seen: Seen, browser: Browser) -> None:
    done = seen.site.manage("shell", "-v0", "-c", _CAREFUL, **MAIL)
    assert done.returncode == 0, done.stderr
    origin = f"http://localhost:{seen.site.port}"
    with closing(browser.new_context(base_url=origin, service_workers="block")) as context:
        look = Look(context.new_page())
        page = look.page
        devtools = context.new_cdp_session(page)
        devtools.send("WebAuthn.enable")
        add_authenticator(devtools)
        sign_in(page, "careful@example.org")
        page.wait_for_url(f"{origin}/")
        page.goto("/settings/security/app")
        confirm(page)
        look.at("new app", "/settings/security/app")
        secret = page.locator(".enrol__key").inner_text()
        page.fill("[name=code]", code_of(secret))
        page.click("main .button--primary")
        page.wait_for_url("**/codes")
        look.at("new passkey", "/settings/security/passkeys/add")
        page.fill("[name=name]", "Laptop")
        page.click("main .button--primary")
        page.wait_for_url("**/security/")
        look.check("second steps")
        key = page.get_by_role("link", name="Rename Laptop").get_attribute("href")
        assert key
        for route, address in OF_THE_CAREFUL.items():
            look.at(route, address.format(key=key.rsplit("/", 1)[1]))
        context.clear_cookies()
        sign_in(page, "careful@example.org")
        page.wait_for_url("**/second-step/")
        look.check("second step")
        page.fill("[name=code]", "000000")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".errorlist").first).to_be_visible()
        look.check("wrong code")
        look.expect_nothing()


def sign_in(page: Page, email: str) -> None:
    page.goto("/accounts/login/")
    page.fill("[name=login]", email)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_the_administration(member: Look) -> None:
    """Django's own pages: nothing that is serious."""
    for path in (
        "/admin/",
        "/admin/webapp/user/",
        "/admin/webapp/user/add/",
        "/admin/webapp/tier/",
        "/admin/webapp/tier/free/change/",
        "/admin/auth/group/add/",
        "/admin/webapp/apikey/",
        "/admin/chat/usage/",
        "/admin/retrieval/evaluation/",
        "/admin/retrieval/embeddingmodel/",
        "/admin/chat/servertool/",
        "/admin/chat/modelprice/",
        "/admin/chat/modelprice/add/",
        "/admin/chat/announcement/add/",
        "/admin/admin/logentry/",
        "/admin/webapp/invitation/add/",
        "/admin/webapp/signin/",
        "/admin/webapp/signuprule/add/",
        "/admin/webapp/secondsteprule/add/",
        "/admin/moderation/decision/",
        "/admin/moderation/moderationpolicy/",
        "/admin/moderation/suspension/",
        "/admin/mfa/authenticator/",
        "/admin/account/emailaddress/",
        "/admin/socialaccount/socialaccount/",
    ):
        member.at(path, path)
    member.faults = [f for f in member.faults if "(serious)" in f or "(critical)" in f]
    member.expect_nothing()


def test_who_is_suspended(seen: Seen, stranger: Look) -> None:
    seen.site.execute(_SUSPENDED, ADMIN_EMAIL)
    page = stranger.page
    page.goto("/accounts/login/")
    page.fill("[name=login]", "dora@example.org")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    expect(page.get_by_role("heading", name="Account suspended")).to_be_visible()
    stranger.check("suspended")
    page.get_by_role("textbox", name="Why was it wrong?").fill("It was a poem.")
    page.get_by_role("button", name="Ask for a review").click()
    expect(page.get_by_text("You asked for a review.")).to_be_visible()
    stranger.check("appealed")
    stranger.expect_nothing()


def test_dialogs_and_menus_of_the_chat(seen: Seen, member: Look) -> None:
    page = member.page
    page.goto("/c/{chat}".format(**seen.ids))
    page.locator("status-bar:defined").wait_for(state="attached")
    for name, keys in {
        "shortcuts": "Control+/",
        "deletion": "Control+Shift+Backspace",
        "recent chats": "Control+k",
    }.items():
        page.keyboard.press(keys)
        page.locator("dialog[open]").wait_for()
        if keys == "Control+k":
            page.get_by_role("option").first.wait_for()
        member.check(name)
        page.keyboard.press("Escape")
    for words, kind in (
        ("walrus", "found"),
        ("nothingatall", "not found"),
        ("before:x", "problem"),
    ):
        page.keyboard.press("Control+k")
        page.keyboard.insert_text(words)
        page.locator("search-palette:not([aria-busy])").wait_for()
        page.wait_for_timeout(400)
        member.check(f"search, {kind}")
        page.keyboard.press("Escape")
    for name in ("Share this chat", "Export this chat", "Set up this chat"):
        page.get_by_role("button", name=name).click()
        page.locator("dialog[open]").wait_for()
        member.check(name)
        page.keyboard.press("Escape")
    question, answer = page.locator(".message--user"), page.locator(".message--assistant")
    question.hover()
    question.locator("[data-act=edit]").click()
    page.locator(".editor").wait_for()
    member.check("editing")
    page.keyboard.press("Escape")
    answer.hover()
    answer.locator("[data-act=regenerate]").click()
    page.locator("#again-menu:popover-open").wait_for()
    member.check("answer again")
    page.keyboard.press("Escape")
    answer.hover()
    answer.locator("[data-act=bad]").click()
    page.locator("#bad-answer[open]").wait_for()
    member.check("what was wrong with an answer")
    page.keyboard.press("Escape")
    question.hover()
    question.locator("[data-act=more]").click()
    page.locator("#message-menu:popover-open").wait_for()
    member.check("message menu")
    page.locator("[data-menu-act=delete]").click()
    page.locator("#delete-message[open]").wait_for()
    member.check("deletion of a message")
    page.keyboard.press("Escape")
    row = page.locator(".chat-link[data-conversation]").first
    for name, item, box in (
        ("chat menu", "", "#chat-menu:popover-open"),
        ("tags", "Tags", "#tags-dialog[open]"),
        ("move", "Move", "#move-dialog[open]"),
    ):
        row.hover()
        row.get_by_role("button").click()
        if item:
            page.locator("#chat-menu").get_by_role("menuitem", name=item).click()
        page.locator(box).wait_for()
        member.check(name)
        page.keyboard.press("Escape")
    folder = page.locator(".folder").first
    folder.hover()
    folder.get_by_role("button", name="More for").click()
    member.check("folder menu")
    page.locator("#folder-menu").get_by_role("menuitem", name="Rename").click()
    page.locator("#name-dialog[open]").wait_for()
    member.check("folder's name")
    page.keyboard.press("Escape")
    page.click(".person")
    member.check("account menu")
    page.keyboard.press("Escape")
    row.locator("a").click(modifiers=["Shift"])
    page.get_by_role("toolbar", name="The chosen chats").wait_for()
    member.check("choosing")
    page.keyboard.press("Escape")
    page.click("model-picker .picker")
    member.check("models")
    page.keyboard.press("Escape")
    page.click(".composer__tools")
    page.locator("#tool-card fieldset:enabled").wait_for()
    member.check("tools")
    page.keyboard.press("Escape")
    page.locator("#composer-input").press_sequentially("/tr")
    page.get_by_role("option").first.wait_for()
    member.check("saved prompts")
    page.keyboard.press("Enter")
    page.locator("#prompt-variables[open]").wait_for()
    member.check("a prompt's variables")
    page.keyboard.press("Escape")
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.locator("[data-temporary]").click()
    page.locator(".temporary:not([hidden])").wait_for()
    member.check("temporary chat")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".bar [data-toggle-sidebar]").click()
    page.wait_for_timeout(200)
    member.check("sidebar on a phone")
    boxes = page.eval_on_selector_all("dialog, [popover]", "boxes => boxes.map(({ id }) => id)")
    assert set(boxes) - member.opened == {"meter-card"}, "the next test opens it"
    member.expect_nothing()


def test_answers_being_written_and_what_is_told_of_them(member: Look) -> None:
    page = member.page
    chat = ScriptedChat(page)
    chat.meter = meter_of(2400, 260, left_out={"num_messages": 4, "is_new": True})
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    fill(chat, page)
    member.check("failed answer")
    page.fill("#composer-input", "And then")
    page.locator("token-meter:not([hidden])").wait_for()
    page.locator(".meter").click()
    member.check("context")
    page.keyboard.press("Escape")
    page.locator(".message__took[data-trace]:visible").first.click()
    page.wait_for_selector(".waterfall")
    # A button that the message box half covers is too small for axe.
    page.evaluate("document.querySelector('#scroller').scrollTo(0, 1e6)")
    member.check("trace")
    page.click("[data-show-tokens]")
    page.locator(".tokens__text .token").first.wait_for()
    member.check("tokens")
    page.keyboard.press("Escape")
    page.locator(".message--assistant [data-open-beside]").last.dispatch_event("click")
    page.wait_for_selector("side-panel .artifact .code, side-panel iframe")
    member.check("code beside the chat")
    page.keyboard.press("Escape")
    page.fill("#composer-input", "One more")
    page.press("#composer-input", "Enter")
    chat.phase("r3", "prefill", done=6210, total=8900, cached=5100)
    member.check("reading")
    chat.event("r3", "started", model="vitrine-small", revision="1", seed=1, turn=0)
    chat.write("r3", "Some words")
    chat.phase("r3", "decode", tokens=2, tokens_per_s=61.3)
    member.check("writing")
    page.fill("#composer-input", "Later")
    page.press("#composer-input", "Enter")
    page.locator("message-queue li").first.wait_for()
    member.check("waiting messages")
    chat.go_away()
    expect(page.locator("status-bar")).to_contain_text("No connection")
    member.check("offline")
    member.expect_nothing()

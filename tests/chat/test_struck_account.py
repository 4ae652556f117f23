"""From a blocked question to a closed account, on a real site with its task worker."""

from collections.abc import Iterator

import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, plant_rule, set_policy
from tests.conftest import PASSWORD
from tests.sites import Site, SiteMaker, email_of, post_form, wait_until
from tests.upstream_server import UpstreamServer, events, texts


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with UpstreamServer() as server:
        server.answers = [events(*texts("Nothing to see."))]
        with make_site(
            VITRINE_MODELS=f"far={server.url}",
            VITRINE_DEFAULT_MODEL="far",
            VITRINE_MODERATION="builtin",
            VITRINE_STRIKES_COOL_DOWN="0",
            VITRINE_STRIKES_SUSPEND="4",
        ) as site:
            site.set_up().close()
            plant_rule(site)
            yield site


def test_too_many_strikes_close_every_door(site: Site) -> None:
    set_policy(site, {"input": {"illicit": {"block": 0.9}}, "strikes": {"illicit": 2}})
    browser = site.sign_up("dora")
    caller = Caller(site, site.create_api_key(email_of("dora")))

    def asked(text: str) -> int:
        messages = [{"role": "user", "content": text}]
        return caller.post("/chat/completions", {"model": "far", "messages": messages}).status_code

    assert asked("And how are you?") == 200
    assert asked(f"One {PHRASE}.") == 400
    assert asked("And how are you?") == 200
    assert asked(f"Two of the {PHRASE}.") == 400
    wait_until(lambda: asked("And how are you?") == 403, what="the suspension")
    assert browser.get("/settings/").status_code == 302
    form = {"login": email_of("dora"), "password": PASSWORD}
    browser.cookies.clear()  # its session is just being ended, perhaps under the next request
    page = post_form(browser, "/accounts/login/", form)
    assert page.status_code == 403, page.text
    assert "help with crime" in page.text
    browser.close()

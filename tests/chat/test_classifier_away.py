"""A classifier that cannot be asked: the policy says what follows, and who should know is told.

The whole site runs; the classifier is another company's server, which fails and comes back.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, judged_site, set_policy
from tests.chat.reader import Reader
from tests.sites import ADMIN_EMAIL, Site, SiteMaker, email_of, post_form, wait_until
from tests.upstream_server import UpstreamServer, events, status, texts

JUDGED = {"input": {"illicit": {"block": 0.9}}}
SAFE = status(200, {"results": [{"category_scores": {"illicit": 0.01}}]})  # of a single text
AWAY = status(500, {"error": {"message": "no judge today"}})


@pytest.fixture(scope="module")
def judge() -> Iterator[UpstreamServer]:
    with UpstreamServer([SAFE]) as judge:
        yield judge


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer, judge: UpstreamServer) -> Iterator[Site]:
    asked = f"builtin,server:{judge.url}"
    with judged_site(make_site, f"far={server.url}", VITRINE_MODERATION=asked) as site:
        yield site


@pytest.fixture
def alice(site: Site, server: UpstreamServer, judge: UpstreamServer) -> Iterator[Reader]:
    judge.answers = [AWAY]
    server.answers = [events(*texts("Here ", "you are."))]
    server.asked.clear()
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


@pytest.fixture(scope="module")
def program(site: Site) -> Caller:
    site.sign_up("program").close()
    return Caller(site, site.create_api_key(email_of("program")))


def policy(on_failure: str) -> dict[str, Any]:
    return {**JUDGED, "on_failure": {"input": on_failure}}


def save_in_console(site: Site, content: dict[str, Any]) -> None:
    """The only policy there is."""
    administrator = site.sign_in(ADMIN_EMAIL)
    policies = "/admin/moderation/moderationpolicy/"
    (path,) = set(
        re.findall(rf"{policies}[0-9a-f-]{{36}}/change/", administrator.get(policies).text)
    )
    form = {"name": "House rules", "order": "1", "is_enabled": "on", "model_names": "*"}
    response = post_form(administrator, path, form | {"content": json.dumps(content), "note": ""})
    assert response.status_code == 302, response.text


def ask(program: Caller, text: str) -> Any:
    messages = [{"role": "user", "content": text}]
    return program.post("/chat/completions", {"model": "far", "messages": messages})


def test_closed_nothing_goes_on_until_it_is_back(
    site: Site, server: UpstreamServer, judge: UpstreamServer, alice: Reader, program: Caller
) -> None:
    set_policy(site, policy("block"))
    end = alice.hear_end(alice.send("Is anybody there?")["run"])
    assert (end["kind"], end["code"]) == ("refused", "moderation_unavailable")
    response = ask(program, "Is anybody there?")
    assert response.status_code == 503, response.text
    assert response.json()["error"]["code"] == "moderation_unavailable"
    assert "anybody" not in json.dumps([asked.body for asked in server.asked])
    judge.answers = [SAFE]
    assert alice.hear_end(alice.send("Is anybody there?")["run"])["kind"] == "finished"
    assert ask(program, "Is anybody there?").status_code == 200


def test_open_the_others_still_judge_and_the_trace_tells(
    site: Site, server: UpstreamServer, alice: Reader, program: Caller
) -> None:
    set_policy(site, policy("allow"))
    accepted = alice.send("Good morning.")
    assert alice.hear_end(accepted["run"])["kind"] == "finished"
    trace = alice.client.get(f"/api/messages/{accepted['answer']['id']}/trace").json()
    (span,) = [span for span in trace["spans"] if span["kind"] == "moderation"]
    assert span["facts"]["has_failed"]
    assert ask(program, "Good morning.").status_code == 200
    # The rules of the house need no server.
    end = alice.hear_end(alice.send(f"Where is the {PHRASE}?")["run"])
    assert (end["kind"], end["code"]) == ("refused", "content_filter")
    assert ask(program, f"Where is the {PHRASE}?").status_code == 400


def test_its_operator_reads_which_one_and_why(
    site: Site, alice: Reader, judge: UpstreamServer
) -> None:
    set_policy(site, policy("allow"))
    administrator = site.sign_in(ADMIN_EMAIL)
    site.execute("DELETE FROM moderation_decision")
    alice.hear_end(alice.send("Good evening.")["run"])

    def page() -> str:
        return administrator.get("/admin/").text

    wait_until(lambda: "could not be asked in the last hour" in page())
    assert f"server:{judge.host}" in page()
    assert "HTTP 500" in page()
    metrics = administrator.get("/metrics").text
    assert 'vitrine_classifier_failures_total{classifier="server:' in metrics
    assert "vitrine_verdicts_total{" in metrics
    assert alice.client.get("/admin/").status_code in (302, 403)
    assert alice.client.get("/metrics").status_code in (401, 403)


def test_a_policy_that_is_saved_in_the_console_decides_from_the_next_answer_on(
    site: Site, alice: Reader, judge: UpstreamServer
) -> None:
    judge.answers = [SAFE]
    set_policy(site, {})
    run = alice.send(f"Where is the {PHRASE}?")["run"]
    assert alice.hear_end(run)["kind"] == "finished"
    save_in_console(site, JUDGED)
    run = alice.send(f"Where is the {PHRASE}?")["run"]
    assert alice.hear_end(run)["kind"] == "refused"
    save_in_console(site, {})
    run = alice.send(f"Where is the {PHRASE}?")["run"]
    assert alice.hear_end(run)["kind"] == "finished"

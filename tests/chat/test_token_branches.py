"""Another answer from one token on: what stood before it stays, the chosen one comes, and it goes on."""

import re
from contextlib import closing
from typing import Any

import pytest

from tests.chat.conftest import chat_environment
from tests.chat.policies import plant_rule, set_policy
from tests.chat.reader import Frame, Reader
from tests.chat.test_second_looks import rated, replayed
from tests.sites import SiteMaker


@pytest.fixture
def answered(alices_tab: Reader) -> Frame:
    accepted = alices_tab.send("Who are you?", model="vitrine-small")
    alices_tab.hear_end(accepted["run"])
    return accepted


def branched(reader: Reader, accepted: Frame, **fork: Any) -> Any:
    path = f"/api/messages/{accepted['answer']['id']}/branch"
    return reader.change("POST", path, **fork)


def test_an_answer_branches_at_a_token(alices_tab: Reader, answered: Frame) -> None:
    (turn,) = rated(alices_tab, answered).json()["turns"]
    tokens = turn["tokens"]
    number, other = next(
        (number, other)
        for number, token in enumerate(tokens)
        for other in token["top"]
        if number >= 2 and other["id"] != token["id"] and not other["is_mark"] and other["text"]
    )
    fork = {"token": number, "choice": other["id"], "client_id": "fork"}
    response = branched(alices_tab, answered, **fork)
    assert response.status_code == 200, response.text
    run = response.json()["run"]
    alices_tab.follow(run)
    end = alices_tab.hear_end(run)
    assert end["kind"] == "finished"
    messages = alices_tab.conversation(answered["conversation"]["id"])["messages"]
    by_id = {message["id"]: message for message in messages}
    old, new = by_id[answered["answer"]["id"]], by_id[response.json()["answer"]]
    assert new["parent"] == old["parent"]
    before = "".join(token["text"] for token in tokens[:number])
    assert new["text"].startswith(before + other["text"].rstrip("\ufffd"))
    assert new["text"] == alices_tab.text(run)
    assert old["text"] == "".join(token["text"] for token in tokens), "the old one stays"
    branch = {"answer": {"id": new["id"]}}
    (again,) = rated(alices_tab, branch).json()["turns"]
    assert [t["id"] for t in again["tokens"][: number + 1]] == [
        *(t["id"] for t in tokens[:number]),
        other["id"],
    ]
    assert replayed(alices_tab, branch)["kind"] == "same", "what was chosen is given, not drawn"
    assert branched(alices_tab, answered, **fork).json()["run"] == run, "one click, one answer"


@pytest.mark.parametrize(
    "fork",
    [
        {"token": 10_000, "choice": 300},
        {"token": -1, "choice": 300},
        {"token": 0, "choice": 10**9},
        {"token": 0, "choice": -5},
        {"token": 0, "choice": 300, "turn": 3},
        {"token": 0, "choice": 300, "client_id": ""},
    ],
)
def test_what_is_no_token_is_refused(alices_tab: Reader, answered: Frame, fork: Any) -> None:
    response = branched(alices_tab, answered, **{"client_id": "bad", **fork})
    assert response.status_code == 400, response.text
    assert len(alices_tab.conversation(answered["conversation"]["id"])["messages"]) == 2


def test_what_a_branch_begins_with_is_judged(make_site: SiteMaker, small_models: str) -> None:
    """A person chooses the token: with what stands before it, it may be what a policy stops."""
    environment = {**chat_environment(small_models), "VITRINE_MODERATION": "builtin"}
    with make_site(**environment) as site:
        site.set_up().close()
        set_policy(site, {})
        reader = Reader.signed_up(site, "alice")
        with closing(reader.client), reader:
            accepted = reader.send("Who are you?", model="vitrine-small")
            reader.hear_end(accepted["run"])
            (turn,) = rated(reader, accepted).json()["turns"]
            number, other, before = fork_of(turn["tokens"])
            plant_rule(site, pattern=re.escape(before[-20:] + other["text"]))
            set_policy(site, {"output": {"illicit": {"block": 0.9}}})
            fork = {"token": number, "choice": other["id"], "client_id": "fork"}
            response = branched(reader, accepted, **fork)
            assert response.status_code == 400, response.text
            assert response.json()["error"]["code"] == "content_filter"
            assert "House rules" in response.json()["error"]["message"]
            messages = reader.conversation(accepted["conversation"]["id"])["messages"]
            assert len(messages) == 2
            set_policy(site, {"output": {"illicit": {"note": 0.9}}})
            assert branched(reader, accepted, **fork).status_code == 200


def fork_of(tokens: list[Any]) -> tuple[int, Any, str]:
    """A place behind some words with another word that might have come, and what stands before it."""
    for number, token in enumerate(tokens):
        before = "".join(one["text"] for one in tokens[:number])
        for other in token["top"]:
            is_other = other["id"] != token["id"] and not other["is_mark"]
            if is_other and other["text"].strip().isalpha() and len(before.strip()) > 3:
                return number, other, before
    raise AssertionError("no token had another one beside it")

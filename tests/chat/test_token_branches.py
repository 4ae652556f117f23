"""Another answer from one token on: what stood before it stays, the chosen one comes, and it goes on."""

from typing import Any

import pytest

from tests.chat.reader import Frame, Reader
from tests.chat.test_second_looks import rated, replayed


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

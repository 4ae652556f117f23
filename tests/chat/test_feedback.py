"""What readers think of answers: kept on the answer, gone with it, and nobody else's."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from tests.chat.reader import Frame, Reader
from tests.sites import Site

BAD = {"rating": "bad", "reasons": ["too_long", "incorrect"], "comment": " Canary 7c1 sings. "}


@pytest.fixture(scope="module")
def site(vitrine_server: Site) -> Site:
    """One with the built-in model."""
    vitrine_server.set_up().close()
    return vitrine_server


@pytest.fixture(scope="module")
def tab(site: Site) -> Iterator[Reader]:
    """Alice's."""
    reader = Reader.signed_up(site, "alice-rates")
    with closing(reader.client), reader:
        reader.client.get("/")
        yield reader


@pytest.fixture(scope="module")
def charlie(site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(site, "charlie-rates")
    with closing(reader.client), reader:
        reader.client.get("/")
        yield reader


@pytest.fixture(scope="module")
def answered(tab: Reader) -> Frame:
    accepted = tab.send("Hello")
    assert tab.hear_end(accepted["run"])["kind"] == "finished"
    return accepted


def path_of(accepted: Frame, which: str = "answer") -> str:
    return f"/api/messages/{accepted[which]['id']}/feedback"


def kept(tab: Reader, accepted: Frame) -> Any:
    return tab.saved(accepted)["feedback"]


def test_the_last_word_counts_and_can_be_taken_back(tab: Reader, answered: Frame) -> None:
    assert tab.change("PUT", path_of(answered), rating="good").status_code == 204
    assert kept(tab, answered)["rating"] == "good"
    for _ in range(2):  # twice does no harm
        assert tab.change("PUT", path_of(answered), **BAD).status_code == 204
    found = kept(tab, answered)
    assert found.pop("at") > answered["message"]["created_at"]
    assert found == {
        "rating": "bad",
        "reasons": ["incorrect", "too_long"],
        "comment": "Canary 7c1 sings.",
    }
    for _ in range(2):
        assert tab.change("DELETE", path_of(answered)).status_code == 204
    assert kept(tab, answered) is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rating": "fine"},
        {"rating": "good", "reasons": ["incorrect"]},
        {"rating": "bad", "reasons": ["because"]},
        {"rating": "bad", "reasons": ["other"] * 9},
        {"rating": "bad", "comment": "x" * 2001},
        {"rating": "bad", "comment": "a\x00b"},
        {"rating": "bad", "stars": 5},
    ],
)
def test_nonsense_is_refused_and_changes_nothing(
    tab: Reader, answered: Frame, body: dict[str, Any]
) -> None:
    tab.change("PUT", path_of(answered), rating="good")
    response = tab.change("PUT", path_of(answered), **body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"]
    assert kept(tab, answered)["rating"] == "good"


def test_questions_are_not_rated(tab: Reader, answered: Frame) -> None:
    response = tab.change("PUT", path_of(answered, "message"), rating="good")
    assert response.status_code == 400


def test_charlie_rates_nothing_of_alices(tab: Reader, charlie: Reader, answered: Frame) -> None:
    tab.change("PUT", path_of(answered), **BAD)
    missing = f"/api/messages/{uuid4()}/feedback"
    for method, body in [("PUT", {"rating": "good"}), ("DELETE", {})]:
        theirs = charlie.change(method, path_of(answered), **body)
        unknown = charlie.change(method, missing, **body)
        assert theirs.status_code == unknown.status_code == 404
        assert theirs.json() == unknown.json()
    assert kept(tab, answered)["comment"] == "Canary 7c1 sings."


def test_it_goes_along_in_an_export_and_is_checked_in_an_import(
    tab: Reader, answered: Frame
) -> None:
    from chat.transfer.portable import BadChat, checked, from_json

    tab.change("PUT", path_of(answered), **BAD)
    chat = answered["conversation"]["id"]
    exported = tab.client.get(f"/api/conversations/{chat}/export?format=json").json()["chats"][0]
    again = checked(from_json(exported))
    fields = [turn.fields for turn in again.messages if turn.fields["role"] == "assistant"]
    assert fields[0]["feedback"] == kept(tab, answered)
    for wrong in ({"rating": "bad"}, "bad", {**fields[0]["feedback"], "rating": "x" * 9999}):
        message = next(m for m in exported["messages"] if m["role"] == "assistant")
        message["feedback"] = wrong
        with pytest.raises(BadChat, match="feedback"):
            checked(from_json(exported))


def test_a_branch_and_a_deleted_answer_do_not_show_it(tab: Reader) -> None:
    accepted = tab.send("Hello again")
    tab.hear_end(accepted["run"])
    tab.change("PUT", path_of(accepted), **BAD)
    path = f"/api/messages/{accepted['answer']['id']}"
    branch = tab.change("POST", f"{path}/branch-off", client_id=str(uuid4())).json()
    copied = tab.conversation(branch["conversation"]["id"])["messages"]
    assert [message["feedback"] for message in copied] == [None, None]
    tab.change("DELETE", f"{path}?deletion=d1&replies=false")
    assert "Canary 7c1" not in str(tab.conversation(accepted["conversation"]["id"]))

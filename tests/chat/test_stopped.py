"""Of what was stopped people see their own, and appeal it once; nobody sees another's."""

from typing import Any

import pytest
from django.test import Client

from chat.transfer.records import records_of
from moderation.models import Decision
from webapp.models import User
from webapp.tenancy import as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]
PAGE = "/settings/moderation"


@pytest.fixture
def client() -> Client:
    """Django's own, not OpenAI's."""
    return Client()


def stopped(owner: User, **fields: Any) -> Decision:
    reasons = [{"category": "hate", "probability": 0.7, "threshold": 0.5, "action": "block"}]
    values = {"stage": "input", "source": "chat", "action": "block", "text": "a canary sings"}
    with as_system():
        return Decision.objects.create(owner=owner, reasons=reasons, **{**values, **fields})


def again(row: Decision) -> Decision:
    with as_system():
        row.refresh_from_db()
    return row


def test_alice_sees_what_was_stopped_and_what_for(client: Client, alice: User) -> None:
    stopped(alice, policy_name="House rules")
    stopped(alice, action="note", text="only noted")
    stopped(alice, is_dry_run=True, text="only tried")
    for source in ("title", "summary", "question"):
        stopped(alice, source=source, text="only asked by the site")
    client.force_login(alice)
    page = client.get(PAGE).content.decode()
    assert "Hate of people for what they are" in page
    assert "by the policy “House rules”" in page
    assert "a canary sings" in page
    assert "only " not in page
    (told,) = client.get("/api/moderation/decisions").json()["decisions"]
    assert (told["categories"], told["review"], told["notes"]) == (["hate"], None, "")
    assert "scores" not in told


def test_what_a_model_has_written_and_was_stopped_is_not_shown_here_either(
    client: Client, alice: User
) -> None:
    stopped(alice, stage="output", text="a crimson heron")
    client.force_login(alice)
    assert "crimson" not in client.get(PAGE).content.decode()
    assert "crimson" not in client.get("/api/moderation/decisions").content.decode()
    with as_user(alice.pk):
        assert [row["text"] for row in dict(records_of(alice))["moderation"]] == [""]


def test_an_appeal_is_heard_once(client: Client, alice: User) -> None:
    row = stopped(alice)
    client.force_login(alice)
    response = client.post(PAGE, {"decision": str(row.pk), "text": "It was a song."})
    assert response.status_code == 302
    assert (again(row).appeal, row.review) == ("It was a song.", "open")
    path = f"/api/moderation/decisions/{row.pk}/appeal"
    body = {"text": "And again."}
    response = client.post(path, body, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (409, "cannot_appeal")
    assert again(row).appeal == "It was a song."
    assert client.get(PAGE).content.decode().count("It was a song.") == 1


@pytest.mark.parametrize("text", ["", "  ", "x" * 2_001])
def test_nonsense_is_no_appeal(client: Client, alice: User, text: str) -> None:
    row = stopped(alice)
    client.force_login(alice)
    client.post(PAGE, {"decision": str(row.pk), "text": text})
    path = f"/api/moderation/decisions/{row.pk}/appeal"
    response = client.post(path, {"text": text}, content_type="application/json")
    assert response.status_code in (400, 409, 422)
    assert again(row).appealed_at is None


def test_charlie_finds_nothing(client: Client, alice: User, charlie: User) -> None:
    row = stopped(alice)
    client.force_login(charlie)
    assert "canary" not in client.get(PAGE).content.decode()
    assert client.get("/api/moderation/decisions").json() == {"decisions": []}
    own = f"/api/moderation/decisions/{row.pk}/appeal"
    nobodys = "/api/moderation/decisions/00000000-0000-4000-8000-000000000000/appeal"
    told = [
        client.post(p, {"text": "mine"}, content_type="application/json") for p in (own, nobodys)
    ]
    assert [response.status_code for response in told] == [404, 404]
    assert told[0].json() == told[1].json()
    client.post(PAGE, {"decision": str(row.pk), "text": "mine"})
    assert again(row).appealed_at is None

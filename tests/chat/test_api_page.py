"""What the APIs' page shows of their descriptions."""

import pytest
from django.test import Client

from chat.api_page import _groups, _marked
from webapp.models import User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_redis")]


def test_everything_described_is_on_the_page(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    page = client.get("/settings/api").content.decode()
    shown = [
        each
        for prefix in ("/v1/", "/api/")
        for group in _groups(prefix)
        for each in group["operations"]
    ]
    assert len(shown) > 70
    for each in shown:
        assert f">{each['path']}<" in page
        assert each["title"] in page
        assert "Raises" not in each["more"]
    assert client.get("/api/docs").headers["Location"] == "/settings/api"


def test_strangers_are_asked_to_sign_in() -> None:
    assert (
        Client().get("/api/docs", follow=True).redirect_chain[-1][0].startswith("/accounts/login/")
    )


def test_only_backticks_make_markup() -> None:
    assert _marked("`a` <b> `c<d`") == "<code>a</code> &lt;b&gt; <code>c&lt;d</code>"

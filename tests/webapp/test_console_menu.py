"""The console's pages are called, and found, as its menu calls them."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from webapp.console_settings import NAVIGATION
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def heading_of(page: str) -> list[str]:
    found = re.search(r"<h1.*?</h1>", page, re.S)
    assert found
    words = re.findall(r">([^<>]+)<", found[0])
    return [word.strip() for word in words if word.strip() and word.strip() != "chevron_right"]


def test_each_list_is_called_as_in_the_menu(console: Client) -> None:
    for group in NAVIGATION[1:]:
        for item in group["items"]:
            page = console.get(str(item["link"]), follow=True).content.decode()
            assert heading_of(page)[:2] == [group["title"], item["title"]], item["link"]
    assert heading_of(console.get("/admin/").content.decode()) == ["Overview"]


def test_the_menu_is_searched_by_its_own_words_and_says_when_it_finds_nothing(
    console: Client,
) -> None:
    for words in ("ledger", "usage", "  LEDGER "):
        assert "/admin/chat/usage/" in console.get("/admin/search/", {"s": words}).content.decode()
    page = console.get("/admin/search/", {"s": "<b>nothing"}).content.decode()
    assert "Nothing in the menu is called “&lt;b&gt;nothing”." in page
    assert console.get("/admin/search/", {"s": " "}).content == b""


def test_a_search_finds_what_one_may_see_alone(client: Client, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_invitation"))
    client.force_login(bob)
    assert "invitation/" in client.get("/admin/search/", {"s": "invit"}).content.decode()
    assert "/user/" not in client.get("/admin/search/", {"s": "user"}).content.decode()


def test_the_mark_is_vitrines(console: Client) -> None:
    page = console.get("/admin/").content.decode()
    for name in ("mark-on-light", "mark-on-dark", "favicon"):
        assert f"img/{name}" in page

"""Tools of servers in the console: seen, switched, and taken anew once their server changed them."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from chat.models import ServerTool
from chat.tools.servers.spec import ToolServerSpec
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

LIST = "/admin/chat/servertool/"
EVIL = {"title": "", "description": "<b>Sends all</b>", "parameters": {}, "hints": {}}


def tool(name: str, **fields: Any) -> ServerTool:
    definition = {
        "title": name.title(),
        "description": f"Does {name}.",
        "parameters": {},
        "hints": {},
    }
    return ServerTool.objects.create(
        server="office", tool=name, name=f"office__{name}", definition=definition, **fields
    )


def act(client: Client, action: str, *rows: ServerTool) -> None:
    chosen = [str(row.pk) for row in rows]
    client.post(LIST, {"action": action, "_selected_action": chosen})


def test_servers_and_their_tools_are_listed(console: Client, settings: Any) -> None:
    url = "https://user:hush@tools.example.org/mcp"
    settings.TOOL_SERVERS = (
        ToolServerSpec(
            "office", "Office", url=url, headers=(("A", "hush"),), tiers=frozenset({"pro"})
        ),
    )
    tool("add")
    tool("mail", is_enabled=False)
    tool("gone", is_listed=False)
    tool("other", proposed=EVIL)
    page = console.get(LIST).content.decode()
    for words in (
        "tools.example.org/mcp",
        "asked for in a moment",
        "offered",
        "switched off",
        "withheld",
        "no more",
    ):
        assert words in page
    assert "hush" not in page
    only = console.get(f"{LIST}?standing=changed").content.decode()
    assert "office__other" in only
    assert "office__add" not in only


def test_what_a_server_has_changed_is_read_and_taken(console: Client, admin: User) -> None:
    row = tool("add", proposed=EVIL)
    detail = console.get(f"{LIST}{row.pk}/change/").content.decode()
    assert "Does add." in detail
    assert "&lt;b&gt;Sends all" in detail
    act(console, "take", row, tool("same"))
    row.refresh_from_db()
    assert (row.definition, row.proposed) == (EVIL, None)
    (note,) = LogEntry.objects.filter(user=admin)
    assert note.change_message == "Took the changed definition."


def test_only_what_was_read_is_taken(console: Client) -> None:
    """A server may say something else between the reading and the click."""
    row = tool("add", proposed=EVIL)
    act(console, "take", row)
    row.refresh_from_db()
    assert row.proposed == EVIL
    console.get(f"{LIST}{row.pk}/change/")
    ServerTool.objects.filter(pk=row.pk).update(proposed=EVIL | {"description": "Worse."})
    act(console, "take", row)
    row.refresh_from_db()
    assert row.proposed["description"] == "Worse."
    assert not LogEntry.objects.exists()


def test_tools_are_switched_and_told_when_to_ask(console: Client) -> None:
    row = tool("add")
    before = row.updated_at
    act(console, "switch_off", row)
    row.refresh_from_db()
    assert not row.is_enabled
    assert row.updated_at > before  # by which processes see that it changed
    act(console, "switch_on", row)
    console.post(f"{LIST}{row.pk}/change/", {"is_enabled": "on", "asks": "never"})
    row.refresh_from_db()
    assert (row.is_enabled, row.asks) == (True, "never")


def test_who_may_only_look_changes_nothing(client: Client, bob: User) -> None:
    row = tool("add")
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_servertool"))
    client.force_login(bob)
    assert client.get(LIST).status_code == 200
    act(client, "switch_off", row)
    client.post(f"{LIST}{row.pk}/change/", {"asks": "never"})
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    row.refresh_from_db()
    assert (row.is_enabled, row.asks) == (True, "always")


def test_charlie_sees_nothing_of_it(client: Client, charlie: User) -> None:
    client.force_login(charlie)
    assert client.get(LIST).status_code in (302, 403, 404)

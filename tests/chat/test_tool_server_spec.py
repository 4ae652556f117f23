"""The file that names tool servers: what it may say, and what is told of one that is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from chat.tools.servers.spec import ToolServerSpec, tool_servers

URL = "https://tools.example.org:8443/mcp?key=secret"


def read(folder: Path, servers: Any, **variables: str) -> tuple[ToolServerSpec, ...]:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return tool_servers(path, variables.get)


def test_both_kinds_of_server(tmp_path: Path) -> None:
    web, files = read(
        tmp_path,
        {
            "web": {
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${WEB_KEY}"},
                "timeout_s": 5,
                "tiers": ["pro"],
                "groups": ["Research"],
                "tools": ["find_*", "read"],
            },
            "files": {"command": "uvx", "args": ["server", "${env:ROOT}"], "env": {"A": "b"}},
            "old": {"url": URL, "disabled": True},
        },
        WEB_KEY="k1",
        ROOT="/srv",
    )
    assert web.headers == (("Authorization", "Bearer k1"),)
    assert (web.timeout_s, web.tiers, web.groups) == (5.0, {"pro"}, {"Research"})
    assert [web.offers(name) for name in ("find_pages", "read", "write")] == [True, True, False]
    assert (files.command, files.args, files.env) == ("uvx", ("server", "/srv"), (("A", "b"),))


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (web,) = read(tmp_path, {"web": {"url": URL, "headers": {"X": "hush"}}})
    assert "hush" not in repr(web)
    assert web.place == "https://tools.example.org:8443/mcp"
    assert repr(web) == "ToolServerSpec('web', 'https://tools.example.org:8443/mcp')"


@pytest.mark.parametrize(
    ("name", "entry", "problem"),
    [
        ("web", {}, "needs a 'url' or a 'command'"),
        ("web", {"url": URL, "command": "x"}, "not both"),
        ("web", {"url": "ftp://example.org"}, "no http:// or https:// address"),
        ("web", {"url": "http://:80/"}, "no http:// or https:// address"),
        ("web", {"url": URL, "args": ["x"]}, "go with a 'command'"),
        ("web", {"command": "x", "headers": {"a": "b"}}, "go with a 'url'"),
        ("web", {"type": "stdio", "url": URL}, "does not fit"),
        ("web", {"type": "sse", "url": URL}, "web.type"),
        ("web", {"url": URL, "timeout": 3}, "web.timeout: Extra inputs"),
        ("web", {"url": URL, "timeout_s": 0}, "web.timeout_s"),
        ("web", {"url": URL, "tools": []}, "web.tools"),
        ("web", {"url": URL, "headers": {"a": "${NOT_SET}"}}, "the variable NOT_SET is not set"),
        ("web", "x", "web: "),
        ("web", {"url": "${NOT_SET}"}, "the variable NOT_SET is not set"),
        ("web", {"url": "${HOST}"}, "web.url: is no http:// or https:// address"),
        ("web", {"url": URL, "headers": {"a": "x\ny secret"}}, "web.headers: 'a' cannot be sent"),
        ("web", {"url": URL, "headers": {"a b": "c"}}, "web.headers: 'a b' cannot be sent"),
        ("web", {"command": "x", "args": ["a\0b"]}, "no command can be given"),
        ("web_", {"url": URL}, "no name of a tool server"),
        ("we__b", {"url": URL}, "no name of a tool server"),
        ("", {"url": URL}, "no name of a tool server"),
        ("w" * 32, {"url": URL}, "no name of a tool server"),
    ],
)
def test_mistakes_are_told_by_name(tmp_path: Path, name: str, entry: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        read(tmp_path, {name: entry}, HOST="secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "no object"),
        ('{"mcpServers": []}', "no object"),
        ("\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
        (
            '{"mcpServers": {"a": {"command": "b", "tiers": []}, "a": {"command": "b"}}}',
            "'a' twice",
        ),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=problem):
        tool_servers(path, lambda _: None)
    with pytest.raises(ValueError, match="cannot be read"):
        tool_servers(tmp_path / "missing.json", lambda _: None)


def test_a_file_that_begins_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b'\xef\xbb\xbf{"mcpServers": {"web": {"url": "${AT}/mcp"}}}')
    (web,) = tool_servers(path, {"AT": "https://example.org"}.get)
    assert web.url == "https://example.org/mcp"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    for path in (tmp_path, loop):
        with pytest.raises(ValueError, match="cannot be read"):
            tool_servers(path, lambda _: None)


def test_what_a_text_quotes_of_secrets_is_left_out(tmp_path: Path) -> None:
    entry = {"url": "https://joe:hush-1@example.org/?k=${K}", "headers": {"A": "Bearer hush-3"}}
    (web,) = read(tmp_path, {"web": entry}, K="hush-2")
    told = web.without_secrets("joe hush-1 hush-2, b'Bearer hush-3\\n' at example.org")
    assert told == "joe … …, b'…\\n' at example.org"

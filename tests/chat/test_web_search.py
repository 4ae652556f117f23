"""The search in the web: three kinds of engines, what they say, and what a chat asks its user first."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured

from chat.tools import run_tool
from chat.tools.web_search import (
    MAX_ANSWER_BYTES,
    MAX_FOUND,
    WEB_SEARCH,
    Kind,
    SearchEngine,
    close,
)
from tests.chat.reader import Reader
from tests.sites import Site, SiteMaker
from tests.upstream_server import UpstreamServer, chunk, events, status, texts
from webapp.tool_server_settings import search_engine, tool_server_specs

HERON = {"title": "The <b>grey</b> heron", "url": "https://birds.example/heron"}
FOUND: dict[Kind, Any] = {
    "searxng": {"results": [HERON | {"content": "It  waits &amp; fishes."}]},
    "brave": {
        "web": {"results": [HERON | {"description": "It <strong>waits</strong> &amp; fishes."}]}
    },
    "tavily": {"results": [HERON | {"content": "It waits & fishes."}]},
}
SHOWN = "1. The grey heron\nhttps://birds.example/heron\nIt waits & fishes."


@pytest.fixture
async def engine(server: UpstreamServer, settings: Any) -> AsyncIterator[UpstreamServer]:
    server.asked.clear()
    settings.WEB_SEARCH = SearchEngine("searxng", server.url, "the-key")
    yield server
    await close()


async def searched(**arguments: Any) -> tuple[str, bool]:
    return await run_tool({"web_search": WEB_SEARCH}, "web_search", json.dumps(arguments))


@pytest.mark.parametrize("kind", FOUND)
async def test_each_kind_is_asked_in_its_own_way(
    engine: UpstreamServer, settings: Any, kind: Kind
) -> None:
    settings.WEB_SEARCH = SearchEngine(kind, engine.url, "the-key")
    engine.answers = [status(200, FOUND[kind])]
    assert await searched(query=" grey   heron ") == (SHOWN, False)
    [asked] = engine.asked
    given = {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}
    query = asked.body.get("query") if kind == "tavily" else given.get("q")
    assert query == "grey heron"
    key = asked.header("x-subscription-token" if kind == "brave" else "authorization")
    assert key.removeprefix("Bearer ") == "the-key"
    assert urlsplit(asked.path).path == ("/v1/search" if kind == "searxng" else "/v1")


async def test_only_so_much_is_taken_and_only_addresses_of_the_web(engine: UpstreamServer) -> None:
    rows = [
        {"title": "x" * 900, "url": f"https://a.example/{n}", "content": "y" * 5_000}
        for n in range(99)
    ]
    none = (
        "javascript:alert(1)",
        "file:///etc/passwd",
        "",
        "https://a.example/\nhttps://b.example/",
        "http://[",
        "https://a.example/\u202egnp.exe",
    )
    bad = [{"title": "No", "url": url} for url in none]
    engine.answers = [status(200, {"results": [*bad, rows[0], *rows]})]
    text, is_error = await searched(query="much")
    assert not is_error
    assert [line for line in text.splitlines() if line.startswith("http")] == [
        f"https://a.example/{n}" for n in range(MAX_FOUND)
    ]
    assert len(text) < MAX_FOUND * 900
    assert "No" not in text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(200, {"results": []}), "(nothing was found)"),
        (status(403, {"secret": "inner words"}), "format json"),
        (status(429), "too often"),
        (status(302, None, Location="http://127.0.0.1:1/"), "it answers 302"),
        (status(200, ["not", "an", "object"]), "not understood"),
        (status(200, {"results": [{"title": "no address"}]}), "not understood"),
        (status(200, {"results": "x" * (MAX_ANSWER_BYTES + 1)}), "too long"),
    ],
)
async def test_what_goes_wrong_is_told_without_the_engines_words(
    engine: UpstreamServer, answer: Any, words: str
) -> None:
    engine.answers = [answer]
    text, _ = await searched(query="heron")
    assert words in text
    assert "inner" not in text
    assert "the-key" not in text
    assert len(engine.asked) == 1, "redirects are not followed"


@pytest.mark.parametrize("query", ["", "  ", None, 7, "x" * 401])
async def test_what_is_no_question_asks_nobody(engine: UpstreamServer, query: object) -> None:
    text, is_error = await searched(query=query)
    assert is_error, text
    assert not engine.asked


async def test_an_engine_that_is_away_is_a_sentence(settings: Any) -> None:
    settings.WEB_SEARCH = SearchEngine("searxng", "http://127.0.0.1:1")
    text, is_error = await searched(query="heron")
    assert is_error
    assert "not reached" in text
    await close()


# --- how it is named ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "key", "words"),
    [
        ("google", "", "a kind is wanted"),
        ("searxng", "", "an address is wanted"),
        ("searxng:search.example", "", "an address is wanted"),
        ("brave", "", "wants a key"),
        ("tavily:ftp://x.example", "k", "an address is wanted"),
    ],
)
def test_a_name_that_means_no_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch, named: str, key: str, words: str
) -> None:
    monkeypatch.setenv("VITRINE_WEB_SEARCH_KEY", key)
    with pytest.raises(ImproperlyConfigured, match=words):
        search_engine(named)


def test_engines_and_who_is_offered_what(monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_engine("") is None
    monkeypatch.setenv("VITRINE_WEB_SEARCH_KEY", "the-key")
    found = search_engine("brave")
    assert found is not None
    assert found.url.startswith("https://api.search.brave.com/")
    assert "the-key" not in repr(found)
    named = [spec.name for spec in tool_server_specs("", has_python=True, has_search=True)]
    assert named == ["python", "search"]
    assert tool_server_specs("", has_python=False, has_search=False) == ()
    (images,) = tool_server_specs("", has_python=False, has_search=False, has_images=True)
    assert (images.name, images.is_own, images.tells_others) == ("images", True, True)


# --- a whole site ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> Iterator[UpstreamServer]:
    with UpstreamServer(title=events(*texts("Herons"))) as model:
        yield model


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer, model: UpstreamServer) -> Iterator[Site]:
    named = {"VITRINE_MODELS": f"far={model.url}", "VITRINE_DEFAULT_MODEL": "far"}
    with make_site(**named, VITRINE_WEB_SEARCH=f"searxng:{server.url}") as site:
        site.set_up().close()
        yield site


def _asks_for(query: str) -> Any:
    function = {"name": "web_search", "arguments": json.dumps({"query": query})}
    return events(chunk(tool_calls=[{"index": 0, "function": function}]), chunk("tool_calls"))


def test_a_chat_that_picks_it_searches_once_and_asks_before_it_does_again(
    site: Site, server: UpstreamServer, model: UpstreamServer
) -> None:
    server.asked.clear()
    server.answers = [status(200, FOUND["searxng"])]
    said = events(*texts("It waits, says https://birds.example/heron."))
    model.answers = [_asks_for("grey heron"), _asks_for("what I was told"), said]
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        offered = reader.client.get("/api/tools").json()["servers"]
        assert [(one["name"], one["tells_others"]) for one in offered] == [
            ("python", False), ("search", True),
        ]  # fmt: skip
        accepted = reader.send("What does a heron do?", tool_servers=["search"])
        asked = reader.hear_until(type="run.phase", run=accepted["run"])
        while asked["phase"]["phase"] != "approval":
            asked = reader.hear_until(type="run.phase", run=accepted["run"])
        assert len(server.asked) == 1, "the second one waits"
        call = asked["phase"]["detail"]
        reader.say({"type": "run.decide", "run": accepted["run"], "call": call, "allow": False})
        assert reader.hear_end(accepted["run"])["kind"] == "finished"
        parts = reader.saved(accepted)["parts"]
        assert "https://birds.example/heron" in json.dumps(parts[1])
        assert len(server.asked) == 1
        model.answers = [said]
        model.asked.clear()
        reader.hear_end(reader.send("Hello?")["run"])
        tools = [one["function"]["name"] for one in model.asked[0].body["tools"]]
        assert "web_search" not in tools, "who has not picked it"

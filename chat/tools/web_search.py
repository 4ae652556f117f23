"""Search in the web, by the search engine that `VITRINE_WEB_SEARCH` names.

What is looked for is told to that engine, and what comes back others have written: so from the first
results on, each further search in the chat waits for its user's word (chat/approvals.py). A page could
have told the model what to look for, and what else to say in the question.
"""

import asyncio
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from chat.tools.base import Tool, ToolFailed
from inference.upstreams.client import beginning_of, new_client

Kind = Literal["searxng", "brave", "tavily"]

ADDRESSES: dict[Kind, str] = {
    "searxng": "",  # everybody's own
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
}
MAX_FOUND = 8
MAX_QUERY_CHARS = 400
MAX_ANSWER_BYTES = 2**20
TIMEOUT_S = 15.0
_MAX_TITLE_CHARS, _MAX_TEXT_CHARS = 200, 600
_MAX_ADDRESS_CHARS = 2_000
_TAG = re.compile(r"<[^<>]{0,200}>")
_PROBLEMS = {
    401: "it does not take the key that it was given",
    403: "it refuses: a SearXNG has to allow the format json in its settings, others want a key",
    429: "it is asked too often",
}

_clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """`url` is of its API; for a SearXNG that of its start page."""

    kind: Kind
    url: str
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is what the engine shows of it, without marks."""

    title: str
    url: str
    text: str


async def search(engine: SearchEngine, query: str) -> list[Page]:
    """At most MAX_FOUND, the best first. Raises ToolFailed, whose words quote neither key nor engine."""
    try:
        async with _request(engine, query) as response:
            if response.status_code != 200:
                said = _PROBLEMS.get(response.status_code, f"it answers {response.status_code}")
                raise ToolFailed(f"the search engine did not search: {said}")
            body = await beginning_of(response, MAX_ANSWER_BYTES + 1)
            if len(body) > MAX_ANSWER_BYTES:
                raise ToolFailed("the search engine's answer is too long")
    except httpx2.HTTPError as error:
        raise ToolFailed(f"the search engine is not reached ({type(error).__name__})") from None
    try:
        return _pages(engine.kind, json.loads(body))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise ToolFailed("the search engine's answer is not understood") from None


def _request(engine: SearchEngine, query: str) -> Any:
    client, url, key = _client(), engine.url, engine.api_key
    bearer = {"Authorization": f"Bearer {key}"} if key else {}
    match engine.kind:
        case "searxng":
            params: dict[str, str | int] = {"q": query, "format": "json"}
            return client.stream("GET", f"{url.rstrip('/')}/search", params=params, headers=bearer)
        case "brave":
            params = {"q": query, "count": MAX_FOUND}
            return client.stream("GET", url, params=params, headers={"X-Subscription-Token": key})
        case "tavily":
            asked = {"query": query, "max_results": MAX_FOUND}
            return client.stream("POST", url, json=asked, headers=bearer)


def _pages(kind: Kind, answer: Any) -> list[Page]:
    """Brave puts its results below `web`, which is not there where nothing was found, and calls their
    texts descriptions: https://api-dashboard.search.brave.com/app/documentation/web-search/responses.
    SearXNG: https://docs.searxng.org/dev/search_api.html, Tavily: https://docs.tavily.com."""
    rows = answer.get("web", {"results": []}) if kind == "brave" else answer
    text = "description" if kind == "brave" else "content"
    found: dict[str, Page] = {}
    for row in rows["results"]:
        url = str(row["url"]).strip()
        if _is_address(url):
            page = Page(
                _plain(row.get("title"), _MAX_TITLE_CHARS),
                url,
                _plain(row.get(text), _MAX_TEXT_CHARS),
            )
            found.setdefault(url, page)
    return list(found.values())[:MAX_FOUND]


def _is_address(url: str) -> bool:
    """On one line, and seen as it is: the next line says what others have written."""
    if len(url) > _MAX_ADDRESS_CHARS or not url.isprintable() or " " in url:
        return False
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:
        return False  # "http://["


def addresses_in(result: str) -> frozenset[str]:
    """Those that a result of the tool lists: the second line of each page, whatever its text says."""
    found = (rows.split("\n") for rows in result.split("\n\n"))
    return frozenset(rows[1] for rows in found if len(rows) > 1)


def on_one_line(text: str) -> str:
    """Without what nobody sees, which could show a text as another one."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def _plain(text: object, max_chars: int) -> str:
    """On one line, without HTML's marks."""
    line = on_one_line(html.unescape(_TAG.sub("", str(text or ""))))
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def _client() -> httpx2.AsyncClient:
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = new_client(TIMEOUT_S)
    return _clients[loop]


async def close() -> None:
    """The process ends."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()


async def _run(arguments: dict[str, Any]) -> str:
    query = arguments.get("query") if isinstance(arguments, dict) else None
    if not isinstance(query, str) or not (query := " ".join(query.split())):
        raise ToolFailed("'query' is missing")
    if len(query) > MAX_QUERY_CHARS:
        raise ToolFailed(f"the query is longer than {MAX_QUERY_CHARS} characters")
    if settings.WEB_SEARCH is None:
        raise ToolFailed("there is no search engine")
    pages = await search(settings.WEB_SEARCH, query)
    return "\n\n".join(_written(pages)) or "(nothing was found)"


def _written(pages: list[Page]) -> Iterator[str]:
    for number, page in enumerate(pages, 1):
        yield "\n".join(filter(None, (f"{number}. {page.title or page.url}", page.url, page.text)))


WEB_SEARCH = Tool(
    name="web_search",
    description=(
        "Search the web for what is new, or not known. Returns titles, addresses and what pages say"
        " in short; name the addresses that an answer rests on."
    ),
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "A few words to look for"}},
        "required": ["query"],
    },
    run=_run,
    title="Web search",
    server="search",
    timeout_s=TIMEOUT_S,
)

"""Tools that chats may pick: ours, the search engine that `VITRINE_WEB_SEARCH` names, and those of the
servers in the file that `VITRINE_MCP` names."""

from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from chat.tools.servers.spec import IMAGES, PYTHON, SEARCH, ToolServerSpec, tool_servers
from chat.tools.web_search import ADDRESSES, SearchEngine
from webapp.env import env_secret


def tool_server_specs(
    file_name: str, *, has_python: bool, has_search: bool, has_images: bool = False
) -> tuple[ToolServerSpec, ...]:
    """Ours first, and without a file no others. Raises ImproperlyConfigured, which quotes no secrets."""
    there_are = ((PYTHON, has_python), (SEARCH, has_search), (IMAGES, has_images))
    own = tuple(spec for spec, is_there in there_are if is_there)
    if not file_name:
        return own
    try:
        found = tool_servers(Path(file_name).expanduser(), env_secret)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_MCP: {error}.") from None
    if taken := sorted({spec.name for spec in own} & {spec.name for spec in found}):
        without = {
            "python": "VITRINE_PYTHON=false",
            "search": "no VITRINE_WEB_SEARCH",
            "images": "no model of the kind image",
        }[taken[0]]
        raise ImproperlyConfigured(
            f"VITRINE_MCP: Vitrine's own is called {taken[0]}: take another name, or {without}."
        )
    return (*own, *found)


def search_engine(named: str) -> SearchEngine | None:
    """`KIND`, or `KIND:ADDRESS`; None for "". Raises ImproperlyConfigured, which quotes no secrets."""
    if not named:
        return None
    name, _, url = named.partition(":")
    kind = next((kind for kind in ADDRESSES if kind == name), None)
    if kind is None:
        raise ImproperlyConfigured(
            f"VITRINE_WEB_SEARCH: a kind is wanted, of {', '.join(ADDRESSES)}, as in"
            " searxng:https://search.example.org."
        )
    url = url or ADDRESSES[kind]
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImproperlyConfigured(
            f"VITRINE_WEB_SEARCH: an address is wanted behind {kind}:, with https:// in front."
        )
    api_key = env_secret("VITRINE_WEB_SEARCH_KEY") or ""
    if kind != "searxng" and not api_key:
        raise ImproperlyConfigured(f"VITRINE_WEB_SEARCH_KEY: {kind} wants a key.")
    return SearchEngine(kind, url, api_key)

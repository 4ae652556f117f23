"""What pages begin with, and which files are joined for it when static files are collected."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.conf import settings

from webapp.chunks import Joined

ENTRIES = (
    "announcement.js",
    "chat.js",
    "collection-page.js",
    "collections-page.js",
    "document-viewer.js",
    "passkeys.js",
    "prose-here.js",
    "reading.js",
    "settings-data.js",
    "settings-page.js",
    "sign-out.js",
    "signed-in.js",
    "signup-work.js",
    "way-back.js",
)
"""Modules that a page's HTML names, in static/js."""

_JOINED = {
    "base": ("reset", "tokens", "base", "components/button", "utilities"),
    "chat": (
        *("layout", "components/sidebar", "components/library", "components/palette"),
        *("components/message", "components/feedback", "components/editor", "components/phase"),
        *("components/prose", "components/code", "components/table", "components/math"),
        *("components/held-image", "components/made-picture", "components/composer"),
        "components/queue",
        *("components/temporary", "components/status-bar", "components/model-picker"),
        *("components/welcome", "components/overlay", "components/side-panel"),
        *("components/artifact", "components/trace", "components/token-view"),
        *("components/token-meter", "components/sharing", "components/form"),
        *("components/prompting", "components/sources", "components/document-text"),
    ),
}
SHEETS = {page: tuple(f"css/{name}.css" for name in names) for page, names in _JOINED.items()}
"""Style sheets that come as one. A later one may overrule an earlier one of its layer."""

_NEEDED = "needed.json"


def joined_sheet(name: str) -> str:
    """Beside the first ones, so that what they name lies where they say."""
    return f"css/_{name}.css"


def write_needed(joined: Joined, static_root: Path) -> None:
    """Note which files each entry waits for, for `needed_by`."""
    needed = {entry: joined.needed_by(entry) for entry in ENTRIES}
    (static_root / _NEEDED).write_text(json.dumps(needed))


def needed_by(entry: str) -> list[str]:
    """The files in static/js that are fetched before `entry` runs; none where nothing is joined."""
    return _needed().get(entry, [])


@cache
def _needed() -> Mapping[str, list[str]]:
    try:
        needed: dict[str, list[str]] = json.loads(
            (Path(settings.STATIC_ROOT) / _NEEDED).read_text()
        )
    except FileNotFoundError:  # tests without collected files
        return {}
    return needed

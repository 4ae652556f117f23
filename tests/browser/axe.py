"""What axe finds on a page (https://github.com/dequelabs/axe-core/blob/develop/doc/API.md)."""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page


def violations(page: Page, options: dict[str, Any], within: str | None = None) -> list[Any]:
    """Rules that are broken, each with its nodes. `within`: a selector of the parts that are looked at.

    Half a megabyte of script is brought once into each page, however often that is looked at.
    """
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(AXE_SCRIPT)
    found: list[Any] = page.evaluate(
        "([within, options]) => axe.run(within ?? document, options).then((told) => told.violations)",
        [within, options],
    )
    return found


def told(found: list[Any]) -> str:
    """A line for each rule, with the first of its nodes."""
    return "\n".join(
        f"{one['id']} ({one['impact']}) {one['help']}: "
        + "; ".join(" ".join(map(str, node["target"])) for node in one["nodes"][:5])
        for one in found
    )

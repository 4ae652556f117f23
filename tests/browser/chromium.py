"""How the tests start Chromium: Debian's, which may not ask the network for anything of its own."""

import os
from typing import Any

LAUNCH: dict[str, Any] = {
    "executable_path": os.environ.get("CHROMIUM", "/usr/bin/chromium"),
    "args": [
        "--no-sandbox",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # The last one counts: Playwright's own two, and a process less in the way of each of a page's
        # hundred files.
        "--enable-features=CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies,"
        "NetworkServiceInProcess2",
    ],
}

"""How the tests start Chromium: Debian's, which may not ask the network for anything of its own.

As its headless shell where that is installed, which draws the same pages with the same engine, and has
none of the windows around them: a page takes a quarter of the time.
"""

import os
import shutil
from typing import Any


def _has_room(folder: str) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 * 2**30


_EXECUTABLE = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"

LAUNCH: dict[str, Any] = {
    "executable_path": os.environ.get("CHROMIUM", _EXECUTABLE),
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
    # Playwright has each buffer that processes share, two for each of those files, made on the disk.
    "ignore_default_args": ["--disable-dev-shm-usage"] if _has_room("/dev/shm") else [],
}

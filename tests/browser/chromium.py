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
    ],
}

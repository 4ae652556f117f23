"""What Chromium takes for the chat's page: the first load, a chat of a thousand messages, its layout.

The long chat is one that the server has: opened by its address, until its last message is drawn.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.table import Row
from tests.browser.chromium import LAUNCH
from tests.sites import ADMIN_EMAIL, PASSWORD, Site

NUM_MESSAGES = 1_000
ROUNDS = 5
AWAY_MS = 40  # there and back, over a usual line
_TESTS = Path(__file__).resolve().parents[2] / "tests" / "browser"
_ANSWER = (_TESTS / "answer.md").read_text()[:1_500]
_SCRIPT_BYTES = """
  performance.getEntriesByType("resource").filter((entry) => entry.name.includes(".js"))
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0)
"""
_OPENED_MS = """
  async (count) => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    while (document.querySelectorAll(".message").length < count) await frame();
    await frame();
    return performance.now();
  }
"""
_RELAYOUT_MS = """
  () => {
    const app = document.querySelector(".app");
    const costs = [];
    for (let turn = 0; turn < 11; turn += 1) {
      app.style.width = `${innerWidth - 40 - (turn % 2) * 40}px`;
      const start = performance.now();
      document.querySelector("#scroller").scrollHeight;
      costs.push(performance.now() - start);
    }
    app.style.width = "";
    return costs.sort((a, b) => a - b)[5];
  }
"""


def measure() -> list[Row]:
    """Figures with their goals."""
    with (
        tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder,
        Site(Path(folder), None, VITRINE_PRELOAD="false") as site,
        sync_playwright() as playwright,
    ):
        site.set_up().close()
        _write_long_chat(site)
        browser = playwright.chromium.launch(**LAUNCH)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        _sign_in(page, site)
        kilobytes = page.evaluate(_SCRIPT_BYTES) / 1e3
        address = str(page.locator(".chat-link a").first.get_attribute("href"))
        opened = [_open(page, site.url + address) for _ in range(ROUNDS)]
        first = [_first_load(browser, site, page.context.cookies()) for _ in range(ROUNDS)]
        relayout_ms = page.evaluate(_RELAYOUT_MS)
        browser.close()
    return [
        {"what": "JavaScript of the first load, kB compressed", "figure": kilobytes, "goal": 90},
        {"what": "files of the first load", "figure": first[0][0], "goal": 30},
        {
            "what": f"first load with nothing kept, {AWAY_MS} ms away, ms",
            "figure": statistics.median(took_ms for _, took_ms in first),
            "goal": 1_000,
        },
        {
            "what": f"open a chat of {NUM_MESSAGES:,} messages, ms",
            "figure": statistics.median(opened),
            "goal": 1_000,
        },
        {"what": "lay it out anew, ms", "figure": relayout_ms, "goal": 16.7},
    ]


def _first_load(browser: Browser, site: Site, cookies: Any) -> tuple[int, float]:
    """How many files a browser fetches that has none, and when one can write, in milliseconds."""
    with browser.new_context(service_workers="block") as context:
        context.add_cookies(cookies)
        page = context.new_page()
        far = {
            "offline": False,
            "latency": AWAY_MS,
            "downloadThroughput": -1,
            "uploadThroughput": -1,
        }
        context.new_cdp_session(page).send("Network.emulateNetworkConditions", far)
        page.goto(f"{site.url}/", wait_until="commit")
        page.locator("status-bar:defined").wait_for(state="attached")
        took_ms = page.evaluate("performance.now()")
        return page.evaluate("performance.getEntriesByType('resource').length"), took_ms


def _open(page: Page, url: str) -> float:
    page.goto("about:blank")
    page.goto(url, wait_until="commit")
    return float(page.evaluate(_OPENED_MS, NUM_MESSAGES))


def _sign_in(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/accounts/login/")
    page.fill("input[name=login]", ADMIN_EMAIL)
    page.fill("input[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(f"{site.url}/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.locator(".chat-link a").first.wait_for()


def _write_long_chat(site: Site) -> None:
    code = f"""
from pathlib import Path
from chat.models import Conversation, Message, Role
from webapp.models import User
answer = {_ANSWER!r}
user = User.objects.get(email={ADMIN_EMAIL!r})
chat = Conversation.objects.create(owner=user, title="Long", model="vitrine-small")
parent, rows = None, []
for n in range({NUM_MESSAGES}):
    text = answer if n % 2 else f"Question {{n}}?"
    parent = Message(conversation=chat, parent=parent, text=text,
        role=Role.ASSISTANT if n % 2 else Role.USER, parts=[{{"type": "text", "text": text}}])
    rows.append(parent)
Message.objects.bulk_create(rows)
"""
    done = site.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr

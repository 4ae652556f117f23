"""The picture of the README, from a real conversation: `python -m tests.browser.picture OUT_DIR`.

A site of its own with the built-in model; what it answers is what stands in the picture. Writes
chat.png and chat-dark.png. Needs Chromium; CHROMIUM names its executable.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.chromium import LAUNCH
from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.sites import Site

HANDBOOK = """# Handbook of the harbour office

## Opening hours
The office of Port Alma opens at 8 in the morning. On Friday it closes at 14:30.

## Holidays
Employees of Port Alma get 30 days of holiday. Holidays are approved by Mila Brandt.

## Equipment
A lost key costs 12 euros. Bicycles may be borrowed for 14 days.
"""
EARLIER = ["My name is Ada. What is my name?", "Write a short poem about the sea"]
QUESTION = "When does the office of Port Alma open?"
NEXT = "What is 17 * 23?"
MOST_MS = 120_000


def main() -> None:
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="vitrine-picture-") as data:
        handbook = Path(data) / "handbook.md"
        handbook.write_text(HANDBOOK)
        with Site(Path(data) / "site", VITRINE_PRELOAD="true") as site, sync_playwright() as driver:
            site.set_up()
            browser = driver.chromium.launch(**LAUNCH)
            context = browser.new_context(
                base_url=site.url, viewport={"width": 1440, "height": 900}, locale="en-GB"
            )
            context.add_cookies(cookies_of(site.sign_up("Ada"), site.url))
            page = context.new_page()
            converse(page, handbook)
            for name, theme in (("chat.png", "light"), ("chat-dark.png", "dark")):
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.wait_for_timeout(500)
                page.screenshot(path=folder / name)
            browser.close()


def converse(page: Page, handbook: Path) -> None:
    for text in EARLIER:
        page.goto("/")
        answered(page, text)
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    page.locator(".composer__files").set_input_files(handbook)
    expect(page.locator(".picked__chip")).to_have_attribute("data-state", "ready", timeout=MOST_MS)
    answered(page, QUESTION)
    answered(page, NEXT)
    page.wait_for_timeout(3_000)  # for titles
    answer = page.locator(".message--assistant").first
    answer.hover()
    answer.locator(".message__took").click()
    page.wait_for_selector(".waterfall")
    page.mouse.move(700, 880)


def answered(page: Page, text: str) -> None:
    ask(page, text)
    expect(last_answer(page)).to_have_attribute("data-status", "complete", timeout=MOST_MS)
    expect(page.locator(INPUT)).to_be_editable()


if __name__ == "__main__":
    main()

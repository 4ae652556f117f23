"""Prompts that are sent by themselves, as people make them: from a message, and among the settings."""

import re
from contextlib import closing
from itertools import count
from uuid import uuid4

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import ask, cookies_of, last_answer
from tests.sites import Site

_numbers = count(1)


@pytest.fixture
def mine(vitrine_server: Site, context: BrowserContext, page: Page) -> Page:
    """Of somebody of whom nothing else is asked: a schedule waits for the plan to have room."""
    vitrine_server.set_up().close()
    with closing(vitrine_server.sign_up(f"Planner{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    return page


def choose(page: Page, how_often: str) -> None:
    page.get_by_label("How often").select_option(how_often)


def test_a_message_is_said_again_by_itself(mine: Page) -> None:
    mine.goto("/")
    ask(mine, "What is 17 * 23?")
    expect(last_answer(mine)).to_have_attribute("data-status", "complete")
    mine.wait_for_url("**/c/*")
    chat = mine.url
    mine.locator(".message--user").hover()
    mine.locator(".message--user [data-act=more]").click()
    mine.get_by_role("menuitem", name="Send this again by itself").click()
    expect(mine.get_by_label("Prompt")).to_have_value("What is 17 * 23?")
    zone = mine.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(mine.get_by_label("Time zone")).to_have_value(zone)
    mine.get_by_label("Name").fill("Sums")
    mine.get_by_role("button", name="Save").click()
    row = mine.locator(".setting", has_text="Sums")
    expect(row).to_contain_text("Every day, 8 a.m.")
    row.get_by_role("button", name="Send Sums now").click()
    mine.wait_for_url(chat)
    expect(mine.locator(".message--user")).to_have_count(2)
    expect(mine.locator(".message--assistant")).to_have_count(2)
    expect(last_answer(mine)).to_contain_text("391")


@pytest.mark.parametrize("address", ["/settings/schedules/new", "/#/settings/schedules/new"])
def test_only_what_the_rhythm_needs_is_asked(mine: Page, address: str) -> None:
    """At its own address, and over the chat."""
    mine.goto(address)
    days, day, date = mine.get_by_label("Friday"), mine.get_by_label("Day of the month"), "#id_on"
    for how_often, shown in (
        ("daily", (False, False, False)),
        ("weekly", (True, False, False)),
        ("monthly", (False, True, False)),
        ("once", (False, False, True)),
    ):
        choose(mine, how_often)
        for field, is_shown in zip((days, day, mine.locator(date)), shown, strict=True):
            expect(field).to_be_visible(visible=is_shown)
    choose(mine, "weekly")
    name = f"News {uuid4()}"
    mine.locator("#id_name").fill(name)
    mine.locator("#id_text").fill("What is new?")
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_text("Choose a day of the week.")).to_be_visible()
    days.check()
    mine.get_by_role("button", name="Save").click()
    expect(mine.locator(".setting", has_text=name)).to_contain_text("Fri, 8 a.m.")


def test_what_came_by_itself_is_marked_until_it_is_read(mine: Page, vitrine_server: Site) -> None:
    mine.goto("/")
    name = f"Overnight {uuid4()}"
    cookies = {one["name"]: one["value"] for one in mine.context.cookies()}
    rhythm = {"repeats": "daily", "at": "08:00", "zone": "UTC"}
    made = mine.request.post(
        "/api/schedules",
        data={"name": name, "text": "Hello", **rhythm},
        headers={"X-CSRFToken": cookies["vitrine_csrf"]},
    )
    assert made.status == 201, made.text()
    due = "UPDATE chat_schedule SET next_at = now() WHERE id = %s"
    vitrine_server.execute(due, made.json()["id"])
    row = mine.locator(".chat-link", has_text=name)
    expect(row).to_have_attribute("data-unread", "", timeout=60_000)
    named = re.compile(rf"^{name} \(not read yet\)( \((warm|cold)\))?$")
    expect(row.get_by_role("link")).to_have_accessible_name(named)
    mine.reload()
    expect(row).to_have_attribute("data-unread", "")
    row.get_by_role("link").click()
    expect(last_answer(mine)).to_have_attribute("data-status", "complete")
    expect(row).not_to_have_attribute("data-unread", "")
    row.get_by_role("button").click()
    expect(mine.get_by_role("menuitem", name="Archive")).to_be_visible()
    expect(mine.get_by_role("menuitem", name="Mark as unread")).to_be_hidden()
    mine.keyboard.press("Escape")
    expect(mine.get_by_role("menuitem", name="Archive")).to_be_hidden()
    mine.locator(".sidebar__new [data-new-chat]").click()
    row.hover()
    row.get_by_role("button").click()
    mine.get_by_role("menuitem", name="Mark as unread").click()
    expect(row).to_have_attribute("data-unread", "")
    mine.goto(str(row.get_by_role("link").get_attribute("href")))
    expect(last_answer(mine)).to_have_attribute("data-status", "complete")
    expect(row).not_to_have_attribute("data-unread", "")

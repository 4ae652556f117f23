"""A budget that is nearly used is told of above the composer, once a day, and its end in a sentence."""

import re
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, cookies_of
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.sites import Site, email_of

_numbers = count(1)
_USED = """
INSERT INTO chat_usage (owner_id, day, model, api_key_id, num_requests, prompt_tokens, cached_tokens,
    completion_tokens, engine_ms, cost)
SELECT id, (now() AT TIME ZONE 'UTC')::date, 'vitrine-small', NULL, 1, %s, 0, 0, 1, 0
FROM webapp_user WHERE email = %s
ON CONFLICT (owner_id, day, model, api_key_id) DO UPDATE SET prompt_tokens = excluded.prompt_tokens
"""
_TIER = """
INSERT INTO webapp_tier (slug, name, model_names, features, concurrent_runs, weight, api_priority,
    tokens_per_day) VALUES ('thousand', 'Thousand', '{*}', '{}', 2, 1, 'api', 1000)
ON CONFLICT DO NOTHING
"""
Use = Callable[[int], None]


@pytest.fixture
def use(vitrine_server: Site, context: BrowserContext) -> Use:
    """Somebody signed in who has a thousand tokens a day; sets how many are used."""
    vitrine_server.set_up()
    name = f"spender{next(_numbers)}"
    visitor = vitrine_server.sign_up(name)
    context.add_cookies(cookies_of(visitor, vitrine_server.url))
    vitrine_server.execute(_TIER)
    place = "UPDATE webapp_user SET tier_id = 'thousand' WHERE email = %s"
    vitrine_server.execute(place, email_of(name))
    return lambda tokens: vitrine_server.execute(_USED, tokens, email_of(name))


def test_the_line_comes_at_eighty_percent_and_goes_for_the_day(use: Use, page: Page) -> None:
    line = page.locator("budget-line[role=status]")
    use(799)
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    expect(line).to_be_empty()
    use(834)
    page.reload()
    expect(line).to_contain_text("83% of your tokens for today are used.")
    expect(line.get_by_role("link", name="Usage")).to_have_attribute("href", "/settings/usage")
    line.get_by_role("button", name="Not again today").click()
    expect(line).to_be_empty()
    use(900)
    page.reload()
    page.locator("chat-composer:defined").wait_for()
    expect(line).to_be_empty()
    page.evaluate("localStorage.setItem('vitrine.budget.tokens_per_day', '2020-01-01 low')")
    page.reload()
    expect(line).to_contain_text("90%")


def test_a_refusal_says_when_there_is_more_and_keeps_the_text(use: Use, page: Page) -> None:
    line = page.locator("budget-line[role=status]")
    use(500)
    page.goto("/")
    page.locator("chat-composer:defined").wait_for()
    expect(line).to_be_empty()
    use(1000)
    page.fill(INPUT, "One more thing")
    page.press(INPUT, "Enter")
    words = re.compile(r"Your tokens for today are used up\. There are new ones on \w+ .*\d:\d\d")
    expect(line).to_contain_text(words)
    expect(page.locator(INPUT)).to_have_value("One more thing")
    expect(page.locator("toast-region")).to_contain_text("Your 1,000 tokens for today are used up.")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.browser_context_args(locale="ar", viewport={"width": 1280, "height": 720})
def test_it_is_accessible_and_runs_from_right_to_left(use: Use, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    use(834)
    page.goto("/")
    line = page.locator("budget-line .status")
    expect(line).to_contain_text("استُهلك 83\u200e%\u200e من رموزك لليوم.")
    icon, close = line.locator(".icon").first.bounding_box(), line.locator("button").bounding_box()
    assert icon
    assert close
    assert icon["x"] > close["x"]
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)

"""From settings and documents back to the chat that one came from."""

import re

from playwright.sync_api import Page, expect

from tests.browser.pages import ask
from tests.browser.scripted import ScriptedChat


def test_settings_and_documents_lead_back_to_the_chat(chat: ScriptedChat, page: Page) -> None:
    page.goto("/settings/")
    back = page.get_by_role("link", name="Back to the chat")
    expect(back).to_have_attribute("href", "/")
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    ask(page, "What is glass?")
    chat.write("r1", "Cooled sand.")
    chat.finish("r1")
    expect(page).to_have_url(re.compile("/c/"))
    shown = "/c/0199a1b2-0000-7000-8000-000000000001"
    for place in ("/settings/", "/settings/prompts", "/documents/"):
        page.goto(place)
        expect(back).to_have_attribute("href", shown)


def test_a_new_chat_is_a_place_too(chat: ScriptedChat, page: Page) -> None:
    ask(page, "What is glass?")
    page.click(".sidebar__new [data-new-chat]")
    page.goto("/settings/")
    back = page.get_by_role("link", name="Back to the chat")
    expect(back).to_have_attribute("href", "/")

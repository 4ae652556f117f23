"""Shortcuts with keys of one's own, and where they are named."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, last_answer
from tests.browser.scripted import ScriptedChat
from tests.browser.test_accessibility import expect_no_faults

SIDEBAR = "Show or hide the sidebar"
OWN_KEYS = """
  localStorage.setItem("vitrine.shortcuts", JSON.stringify({
    escape: { key: "f2" }, "alt+enter": { key: "g", mod: true },
  }));
"""


def test_keys_that_do_the_same_stand_in_one_row(reader: BrowserContext, page: Page) -> None:
    page.goto("/settings/#keyboard")
    rows = page.locator("[data-shortcuts] > li")
    expect(rows.first).to_be_visible()
    words = rows.locator("> span:first-child").all_inner_texts()
    assert len(words) == len(set(words))
    help_keys = rows.filter(has_text="Keyboard shortcuts").get_by_role("button")
    expect(help_keys).to_have_text(["Ctrl + /", "?"])


def test_a_shortcut_gets_other_keys_and_its_usual_ones_back(
    reader: BrowserContext, page: Page
) -> None:
    page.goto("/settings/#keyboard")
    status = page.locator("[data-shortcuts-status]")
    keys = page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + S")
    keys.click()
    page.keyboard.press("Control+Shift+KeyO")
    expect(status).to_have_text("Ctrl + Shift + O: These keys are taken: New chat.")
    expect(keys).to_be_visible()
    keys.click()
    page.keyboard.press("Control+KeyC")
    expect(status).to_contain_text("The browser needs these keys itself.")
    keys.click()
    page.keyboard.press("Escape")
    expect(keys).to_be_visible()
    keys.click()
    page.keyboard.press("Control+Shift+KeyL")
    expect(page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + L")).to_be_focused()

    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    closed = page.locator("html[data-sidebar=closed]")
    page.keyboard.press("Control+Shift+KeyS")
    expect(closed).to_have_count(0)
    page.keyboard.press("Control+Shift+KeyL")
    expect(closed).to_have_count(1)
    hint = page.locator(".bar [data-toggle-sidebar]")
    expect(hint).to_have_attribute("aria-keyshortcuts", "Control+Shift+l Meta+Shift+l")
    page.keyboard.press("Control+/")
    expect(page.get_by_role("dialog")).to_contain_text("Ctrl + Shift + L")

    page.goto("/settings/")
    page.get_by_role("button", name="Usual keys for all").click()
    expect(page.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + S")).to_be_visible()
    expect(page.get_by_role("button", name="Usual keys for all")).to_be_hidden()


def test_the_help_names_the_keys_of_the_message_box_too(chat: ScriptedChat, page: Page) -> None:
    page.keyboard.press("Control+/")
    writing = page.get_by_role("dialog").locator("[data-writing] > div")
    expect(writing.filter(has_text="Send the message")).to_have_text("Send the messageEnter")
    expect(writing.filter(has_text="A new line")).to_contain_text("Shift + Enter")
    for sign in ("↑", "/", "#", "@"):
        expect(writing.locator("kbd", has_text=sign).first).to_be_visible()
    expect_no_faults(page)


def test_hints_name_the_keys_that_were_chosen(chat: ScriptedChat, page: Page) -> None:
    page.add_init_script(OWN_KEYS)
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    ask(page, "Hello")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_have_attribute("title", "Stop (F2)")
    hint = page.locator("#composer-hint")
    expect(hint).to_have_text("F2 stops the answer.")
    page.fill(INPUT, "And then?")
    expect(hint).to_have_text("Enter sends it after this answer. F2 stops the answer.")
    go_on = last_answer(page).locator("[data-act=continue]")
    expect(go_on).to_have_attribute("aria-keyshortcuts", "Control+g Meta+g")
    page.keyboard.press("F2")
    expect(last_answer(page).locator(".phase__words")).to_have_text("Stopping")
    assert len(chat.heard_of("run.stop")) == 1


def test_keys_that_are_chosen_over_the_chat_count_at_once(chat: ScriptedChat, page: Page) -> None:
    settings = page.locator("dialog.settings-dialog[open]")
    closed = page.locator("html[data-sidebar=closed]")
    hint = page.locator(".bar [data-toggle-sidebar]")
    usual = hint.get_attribute("aria-keyshortcuts") or ""
    ask(page, "Hello")
    page.keyboard.press("Control+,")
    settings.get_by_role("button", name=f"{SIDEBAR}: Ctrl + Shift + S").click()
    page.keyboard.press("Control+Shift+KeyL")
    expect(hint).to_have_attribute("aria-keyshortcuts", "Control+Shift+l Meta+Shift+l")
    settings.get_by_role("button", name="Stop the answer: Esc").click()
    page.keyboard.press("F2")
    expect(page.locator(".composer__send")).to_have_attribute("title", "Stop (F2)")
    page.keyboard.press("Escape")
    expect(settings).to_have_count(0)
    page.keyboard.press("Control+Shift+KeyS")
    expect(closed).to_have_count(0)
    page.keyboard.press("Control+Shift+KeyL")
    expect(closed).to_have_count(1)

    page.keyboard.press("Control+,")
    settings.get_by_role("button", name="Usual keys for all").click()
    expect(hint).to_have_attribute("aria-keyshortcuts", usual)
    expect(page.locator(".composer__send")).to_have_attribute("title", "Stop (Esc)")

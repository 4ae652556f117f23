"""What happens where nobody looks: in another chat, or while the tab is hidden."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import ask, last_answer, wait_for
from tests.browser.scripted import NOW, ScriptedChat

HIDE = """
  (isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }
"""

NOTIFICATIONS = """
  window.told = [];
  window.Notification = class extends EventTarget {
    static permission = "granted";
    static requestPermission = async () => "granted";
    constructor(title, { body }) { super(); window.told.push(body); }
    close() {}
  };
"""

# As Chrome for Android has it.
ONLY_BY_WORKER = """
  localStorage.setItem("vitrine.notify", "yes");
  window.Notification = class {
    static permission = "granted";
    constructor() { throw new TypeError("Illegal constructor"); }
  };
  const showNotification = async (title, { body }) => window.told.push(body);
  navigator.serviceWorker.getRegistration = async () => ({ showNotification });
"""


def other_chat(chat: ScriptedChat, running: list[str], last_answer: str) -> None:
    """News of a chat that is not shown."""
    id = "0199a1b2-0000-7000-8000-000000000002"
    values: dict[str, Any] = {"title": "Glass", "url": f"/c/{id}", "version": 1, "tags": []}
    values |= {"id": id, "model": "vitrine-small", "folder": None, "last_answer": last_answer}
    values |= {"created_at": NOW, "updated_at": NOW, "pinned": False, "archived": False}
    chat.say({"type": "conversation.changed", "conversation": values, "running": running})


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("complete", "“Glass” has been answered."),
        ("failed", "The answer in “Glass” could not be finished."),
        ("refused", "The answer in “Glass” was refused."),
    ],
)
def test_an_answer_elsewhere_is_told_as_it_ended(
    chat: ScriptedChat, page: Page, status: str, words: str
) -> None:
    other_chat(chat, ["r9"], "running")
    page.evaluate(HIDE, True)
    other_chat(chat, [], status)
    expect(page.locator(".toast")).to_contain_text(words)
    expect(page).to_have_title("● Vitrine")
    page.evaluate(HIDE, False)
    expect(page).to_have_title("Vitrine")


def test_a_hidden_tab_says_that_its_answer_is_there(chat: ScriptedChat, page: Page) -> None:
    ask(page, "What is glass?")
    chat.write("r1", "Cooled sand.")
    expect(last_answer(page)).to_contain_text("Cooled sand.")
    page.evaluate(HIDE, True)
    expect(page).to_have_title("What is glass? · Vitrine")
    chat.finish("r1")
    expect(page).to_have_title("● What is glass? · Vitrine")
    page.evaluate(HIDE, False)
    expect(page).to_have_title("What is glass? · Vitrine")


def test_the_system_tells_of_it_where_that_is_wanted(chat: ScriptedChat, page: Page) -> None:
    page.add_init_script(NOTIFICATIONS)
    page.goto("/settings/")
    told = page.get_by_role("radio", name="Is told by the system too")
    told.check(force=True)
    expect(told).to_be_checked()
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    other_chat(chat, ["r9"], "running")
    page.evaluate(HIDE, True)
    other_chat(chat, [], "complete")
    wait_for(page, "window.told.join() === '“Glass” has been answered.'")
    page.evaluate(HIDE, False)
    other_chat(chat, ["r9"], "running")
    other_chat(chat, [], "complete")
    expect(page.locator(".toast")).to_have_count(2)
    assert len(page.evaluate("window.told")) == 1
    page.goto("/settings/")
    page.evaluate("Notification.requestPermission = async () => 'denied'")
    page.get_by_role("radio", name="Marks the tab").check(force=True)
    told.click(force=True)
    expect(page.get_by_text("The browser does not allow it for this site.")).to_be_visible()
    expect(told).not_to_be_checked()


def test_where_a_page_cannot_tell_its_worker_does(chat: ScriptedChat, page: Page) -> None:
    page.add_init_script(NOTIFICATIONS + ONLY_BY_WORKER)
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    other_chat(chat, ["r9"], "running")
    page.evaluate(HIDE, True)
    other_chat(chat, [], "complete")
    wait_for(page, "window.told.join() === '“Glass” has been answered.'")


def test_one_that_looks_is_told_nothing(chat: ScriptedChat, page: Page) -> None:
    ask(page, "What is glass?")
    chat.write("r1", "Cooled sand.")
    chat.finish("r1")
    expect(last_answer(page).locator(".message__took")).to_be_visible()
    expect(page).to_have_title("What is glass? · Vitrine")

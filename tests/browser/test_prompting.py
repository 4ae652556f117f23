"""Saved prompts, assistants, system prompts and instructions, with the built-in model behind them."""

import re
from contextlib import closing
from itertools import count

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import INPUT, ask, cookies_of, last_answer
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.sites import Site

ANSWER_TIMEOUT_MS = 60_000
NINA = "You are Nina, a pirate. You live in Porto."
_numbers = count(1)


@pytest.fixture
def own(vitrine_server: Site, context: BrowserContext, page: Page) -> Page:
    """The chat page of somebody new."""
    vitrine_server.set_up().close()
    with closing(vitrine_server.sign_up(f"prompter{next(_numbers)}")) as visitor:
        context.add_cookies(cookies_of(visitor, vitrine_server.url))
    open_chat(page)
    return page


def open_chat(page: Page, path: str = "/") -> None:
    page.goto(path)
    page.locator("status-bar:defined").wait_for(state="attached")


def save_prompt(page: Page, name: str, text: str) -> None:
    page.goto("/settings/prompts/new")
    page.fill("[name=name]", name)
    page.fill("[name=text]", text)
    page.click("main button:has-text('Save')")
    expect(page.locator("main")).to_contain_text(f"/{name}")


def csrf(page: Page) -> dict[str, str]:
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    return {"X-CSRFToken": cookies["vitrine_csrf"]}


def says(page: Page, words: str) -> None:
    answer = last_answer(page)
    expect(answer).to_have_attribute("aria-busy", "false", timeout=ANSWER_TIMEOUT_MS)
    expect(answer.locator(".message__parts")).to_contain_text(words)


def test_a_prompt_is_put_in_by_the_keyboard_alone_and_taken_back(own: Page) -> None:
    save_prompt(own, "shorten", "Make it short.")
    save_prompt(own, "translate", "Translate into {{language}}, {{tone:formal|casual}}: {{text}}")
    open_chat(own)
    options = own.get_by_role("option")
    box = own.locator(INPUT)
    box.press_sequentially("Please /")
    expect(options).to_have_text([re.compile("/shorten"), re.compile("/translate")])
    first = box.get_attribute("aria-activedescendant")
    box.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") not in (None, first)
    box.press_sequentially("s")
    expect(options.first).to_contain_text("/shorten")
    box.press("Enter")
    expect(box).to_have_value("Please Make it short.")
    box.press("Control+z")
    expect(box).to_have_value("Please /s")

    box.fill("")
    box.press_sequentially("/tr")
    box.press("Tab")
    dialog = own.get_by_role("dialog", name="/translate")
    expect(dialog.get_by_label("language")).to_be_focused()
    own.keyboard.type("Dutch")
    dialog.get_by_label("tone").select_option("casual")
    dialog.get_by_label("text", exact=True).fill("{{language}} & <b>")
    own.keyboard.press("Enter")
    expect(box).to_have_value("Translate into Dutch, casual: {{language}} & <b>")
    expect(box).to_be_focused()


def test_escape_closes_the_list_and_the_slash_is_only_a_slash(own: Page) -> None:
    save_prompt(own, "shorten", "Make it short.")
    open_chat(own)
    box = own.locator(INPUT)
    box.press_sequentially("/sh")
    expect(own.get_by_role("listbox")).to_be_visible()
    box.press("Escape")
    expect(own.get_by_role("listbox")).to_be_hidden()
    box.press_sequentially("o")
    expect(own.get_by_role("listbox")).to_be_hidden()
    box.press("Enter")
    expect(own.locator(".message--user")).to_contain_text("/sho")
    box.press_sequentially("and/")
    expect(own.get_by_role("listbox")).to_be_hidden()


def test_an_assistant_is_made_chosen_and_answers_as_told(own: Page) -> None:
    own.goto("/settings/assistants")
    own.click("text=New assistant")
    own.fill("[name=name]", "Nina")
    own.fill("[name=description]", "A pirate who answers questions.")
    own.fill("[name=system_prompt]", NINA)
    own.fill("[name=starters]", "who are you?\nWhere do you live?")
    own.fill("[name=temperature]", "9")
    own.click("main button:has-text('Save')")
    expect(own.locator(".errorlist")).to_contain_text("less than or equal to 2")
    expect(own.locator("[name=system_prompt]")).to_have_value(NINA)
    own.fill("[name=temperature]", "0")
    own.click("main button:has-text('Save')")

    open_chat(own)
    own.click("model-picker .picker")
    own.get_by_role("menuitemradio", name="Nina").click()
    expect(own.locator("#greeting")).to_have_text("Nina")
    own.get_by_role("button", name="Where do you live?").click()
    expect(own.locator(INPUT)).to_have_value("Where do you live?")
    own.locator(INPUT).press("Enter")
    says(own, "I live in Porto")
    expect(own.locator(".picker__title")).to_contain_text("Nina ·")
    own.reload()
    expect(own.locator(".picker__title")).to_contain_text("Nina ·")

    own.goto("/settings/assistants")
    own.get_by_role("link", name="Start a chat with Nina").click()
    expect(own.locator("#greeting")).to_have_text("Nina")


def test_what_an_assistant_brings_is_not_kept_for_another(own: Page) -> None:
    def choose(name: str) -> None:
        own.click("model-picker .picker")
        own.get_by_role("menuitemradio", name=name).click()
        expect(own.locator("#greeting")).to_have_text(name)

    for name, prompt in (("Nina", NINA), ("Otto", "You are Otto, a baker from Oslo.")):
        own.goto("/settings/assistants/new")
        own.fill("[name=name]", name)
        own.fill("[name=system_prompt]", prompt)
        own.click("main button:has-text('Save')")
        expect(own.locator(".notice")).to_have_text("Saved.")
    open_chat(own)
    choose("Nina")
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-system-prompt")).to_have_value(NINA)
    own.click("#chat-setup button:has-text('Save')")
    expect(own.locator("#chat-setup")).to_be_hidden()
    choose("Otto")
    ask(own, "what is your name?")
    says(own, "Otto")


def test_an_assistant_brings_its_collections(own: Page) -> None:
    own.goto("/settings/assistants/new")
    expect(own.get_by_text("Answers from these collections")).to_have_count(0)
    for name in ("Ship's log", "Recipes"):
        response = own.request.post("/api/collections", data={"name": name}, headers=csrf(own))
        assert response.status == 201
    own.reload()
    own.fill("[name=name]", "Nina")
    own.get_by_label("Ship's log").check()
    expect_no_faults(own)
    own.click("main button:has-text('Save')")
    own.get_by_role("link", name="Nina", exact=True).click()
    expect(own.get_by_label("Ship's log")).to_be_checked()
    expect(own.get_by_label("Recipes")).not_to_be_checked()
    own.goto("/settings/assistants")
    own.get_by_role("link", name="Start a chat with Nina").click()
    chips = own.locator(".picked__chip")
    expect(chips).to_have_text(["Ship's log"])
    own.get_by_role("button", name="Remove Ship's log").click()
    expect(chips).to_have_count(0)


def test_a_chat_has_a_system_prompt_of_its_own_before_and_after_it_begins(own: Page) -> None:
    def set_up(text: str) -> None:
        own.click("[data-chat-setup]")
        own.fill("#chat-system-prompt", text)
        own.click("#chat-setup button:has-text('Save')")
        expect(own.locator("#chat-setup")).to_be_hidden()

    set_up(NINA)
    ask(own, "who are you?")
    says(own, "Nina")
    set_up("You are Otto, a baker from Oslo.")
    ask(own, "what is your name?")
    says(own, "Otto")
    own.reload()
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-system-prompt")).to_have_value("You are Otto, a baker from Oslo.")


def test_a_changed_set_up_is_not_left_by_mistake(own: Page) -> None:
    dialog, question = own.locator("#chat-setup"), own.locator("#confirm")
    own.click("[data-chat-setup]")
    expect(dialog).to_be_visible()
    own.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    own.click("[data-chat-setup]")
    own.fill("#chat-system-prompt", NINA)
    own.keyboard.press("Escape")
    expect(question).to_contain_text("not saved yet")
    expect_no_faults(own)
    question.get_by_role("button", name="Cancel").click()
    expect(own.locator("#chat-system-prompt")).to_have_value(NINA)
    own.keyboard.press("Escape")
    question.get_by_role("button", name="Leave").click()
    expect(dialog).to_be_hidden()
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-system-prompt")).to_have_value("")


def test_a_chat_has_parameters_of_its_own_before_and_after_it_begins(own: Page) -> None:
    dialog = own.locator("#chat-setup")
    longest = dialog.get_by_label("Longest answer")
    save = dialog.get_by_role("button", name="Save")
    own.click("[data-chat-setup]")
    expect(dialog.get_by_label("When the chat gets too long")).to_have_value("")
    dialog.get_by_label("When the chat gets too long").select_option("summary")
    dialog.get_by_label("Temperature").fill("9")
    save.click()
    expect(dialog).to_be_visible()  # the browser says what is wrong
    dialog.get_by_label("Temperature").fill("0")
    longest.fill("2")
    save.click()
    expect(dialog).to_be_hidden()
    ask(own, "who are you?")
    expect(last_answer(own)).to_contain_text("reached its length limit", timeout=ANSWER_TIMEOUT_MS)
    own.click("[data-chat-setup]")
    expect(dialog.get_by_label("Temperature")).to_have_value("0")
    expect(dialog.get_by_label("When the chat gets too long")).to_have_value("summary")
    expect(longest).to_have_value("2")
    longest.fill("")
    save.click()
    expect(own.locator(".toast")).to_contain_text("Saved.")
    own.reload()
    own.click("[data-chat-setup]")
    expect(longest).to_have_value("")
    expect(dialog.get_by_label("Temperature")).to_have_value("0")
    expect_no_faults(own)
    expect_no_sideways_scrolling(own)


def test_instructions_are_saved_and_told_to_the_next_chat(own: Page) -> None:
    own.goto("/settings/personalisation")
    own.fill("[name=about_you]", "Call me Zelda.")
    own.click("main button:has-text('Save')")
    expect(own.locator(".notice")).to_have_text("Saved.")
    expect(own.locator("[name=about_you]")).to_have_value("Call me Zelda.")
    other = own.context.new_page()
    other.goto("/settings/personalisation")
    own.fill("[name=how_to_answer]", "Briefly.")
    own.click("main button:has-text('Save')")
    other.fill("[name=how_to_answer]", "At length.")
    other.click("main button:has-text('Save')")
    expect(other.locator(".errorlist")).to_contain_text("changed elsewhere")
    expect(other.locator("[name=how_to_answer]")).to_have_value("At length.")
    open_chat(own)
    ask(own, "Hello")
    own.wait_for_url("**/c/*")
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-setup [data-instructions] blockquote")).to_have_text(
        "About the user: Call me Zelda.\n\nHow to answer: Briefly."
    )


def test_a_message_is_kept_in_the_models_view(own: Page) -> None:
    ask(own, "My name is Zoe.")
    expect(last_answer(own)).to_have_attribute("aria-busy", "false", timeout=ANSWER_TIMEOUT_MS)
    question = own.locator(".message--user")

    def choose(words: str) -> None:
        question.get_by_role("button", name="More").focus()
        own.keyboard.press("Enter")
        item = own.get_by_role("menuitem", name=words)
        item.focus()
        own.keyboard.press("Enter")

    choose("Keep in the model’s view")
    expect(question.get_by_text("Kept in view")).to_be_visible()
    expect(question.get_by_role("button", name="More")).to_be_focused()
    own.reload()
    expect(question.get_by_text("Kept in view")).to_be_visible()
    choose("No longer keep in view")
    expect(question.get_by_text("Kept in view")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_of_it_has_a_fault_that_axe_finds(own: Page, theme: str) -> None:
    own.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    save_prompt(own, "ask", "What is {{what}}?")
    for path in (
        "/settings/personalisation",
        "/settings/assistants",
        "/settings/assistants/new",
        "/settings/prompts",
        "/settings/prompts/new",
    ):
        own.goto(path)
        expect_no_faults(own)
        expect_no_sideways_scrolling(own)
    own.set_viewport_size({"width": 1280, "height": 720})
    open_chat(own)
    own.locator(INPUT).press_sequentially("/")
    expect(own.get_by_role("option")).to_have_count(1)
    expect_no_faults(own)
    own.locator(INPUT).press("Enter")
    expect(own.get_by_role("dialog", name="/ask")).to_be_visible()
    expect_no_faults(own)
    own.keyboard.press("Escape")
    own.click("[data-chat-setup]")
    expect(own.locator("#chat-setup")).to_be_visible()
    expect_no_faults(own)

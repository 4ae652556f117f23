"""The list of models: what is known of each, which stand first, and ways through a long one."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import INPUT, ask
from tests.browser.scripted import ScriptedChat, model
from tests.browser.test_accessibility import THEMES, expect_no_faults, expect_no_sideways_scrolling

PICKER = "model-picker .picker"
MANY = [
    model("vitrine-small", "Vitrine small", "The small built-in model.", default=True),
    model("org/slow", "Slow 70B", "Large.", straggling=True, tools=True, context_tokens=131072),
    model("org/broken", "Broken 1B", "Small.", "failed", detail="The weights do not fit."),
    *(model(f"org/model-{n}", f"Model {n}", f"Number {n}.", "cold") for n in range(8)),
]


def row(page: Page, name: str) -> Locator:
    return page.locator(f"[data-model='{name}']")


def open_many(chat: ScriptedChat, page: Page) -> None:
    chat.models = MANY
    chat.say({"type": "models.changed", "models": MANY})
    page.click(PICKER)


def test_what_is_known_of_each_is_told(chat: ScriptedChat, page: Page) -> None:
    open_many(chat, page)
    expect(row(page, "org/slow")).to_contain_text("Slower than usual")
    expect(row(page, "org/slow")).to_contain_text("131,072 tokens of context · Tools")
    expect(row(page, "vitrine-small")).to_contain_text("4,096 tokens of context")
    expect(row(page, "vitrine-small")).not_to_contain_text("Tools")


def test_one_that_has_failed_says_why_and_can_only_be_tried_again(
    chat: ScriptedChat, page: Page
) -> None:
    asked: list[Any] = []
    page.route(
        "**/api/models/load",
        lambda route: (asked.append(route.request.post_data_json), route.fulfill(json={})),
    )
    page.click(PICKER)
    broken = row(page, "org/broken")
    expect(broken).to_have_attribute("aria-disabled", "true")
    expect(broken).to_contain_text("The weights do not fit into memory.")
    broken.click(force=True)
    expect(page.locator(".picker__title")).to_have_text("Vitrine small")
    expect(broken).to_be_visible()
    page.get_by_role("menuitem", name="Try to load Broken 1B again").click()
    page.wait_for_timeout(100)
    assert asked == [{"model": "org/broken"}]


def test_pinned_ones_stand_first_and_the_choice_is_kept_with_the_account(
    chat: ScriptedChat, page: Page
) -> None:
    open_many(chat, page)
    page.locator("[data-pin='org/model-5']").click()
    expect(page.locator(".model").first).to_contain_text("Model 5")
    expect(page.get_by_role("group", name="Pinned")).to_be_visible()
    expect(page.locator("[data-pin='org/model-5']")).to_be_focused()
    row(page, "org/model-5").click()
    expect(page.locator(".picker__title")).to_have_text("Model 5")
    assert chat.saved == [{"pinned_models": ["org/model-5"]}, {"default_model": "org/model-5"}]


def test_a_long_list_is_filtered_by_typing(chat: ScriptedChat, page: Page) -> None:
    open_many(chat, page)
    expect(page.get_by_role("searchbox", name="Filter the models")).to_be_focused()
    page.keyboard.type("70b")
    expect(page.locator(".model")).to_have_count(1)
    page.keyboard.type(" none")
    expect(page.locator(".models__none")).to_have_text("No model is called that.")
    page.keyboard.press("Control+a")
    page.keyboard.type("model 7")
    page.keyboard.press("Enter")
    expect(page.locator(".picker__title")).to_have_text("Model 7")
    expect(page.locator(INPUT)).to_be_focused()


def test_keys_walk_a_long_list(chat: ScriptedChat, page: Page) -> None:
    open_many(chat, page)
    expect(page.locator(".models__filter")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row(page, "vitrine-small")).to_be_focused()
    page.keyboard.press("End")
    expect(row(page, "org/model-7")).to_be_focused()
    page.keyboard.press("Home")
    expect(row(page, "vitrine-small")).to_be_focused()
    page.keyboard.type("slo")
    expect(page.locator(".models__filter")).to_have_value("slo")
    expect(page.locator(".model")).to_have_count(1)


def test_letters_walk_a_short_one(chat: ScriptedChat, page: Page) -> None:
    page.click(PICKER)
    expect(row(page, "vitrine-small")).to_be_focused()
    expect(page.locator(".models__filter")).to_be_hidden()
    page.keyboard.type("b")
    expect(row(page, "org/broken")).to_be_focused()
    page.keyboard.type("a")
    expect(row(page, "org/assistant-8b")).to_be_focused()


def test_how_the_model_stands_is_said_and_not_how_far_it_is(chat: ScriptedChat, page: Page) -> None:
    said = page.locator("status-bar [role=status]")

    def stands(state: str, **more: Any) -> None:
        models = [{**chat.models[0], "state": state, **more}, *chat.models[1:]]
        chat.say({"type": "models.changed", "models": models})

    for progress in (0.1, 0.2):
        stands("loading", progress=progress)
        expect(page.locator("status-bar .status")).to_contain_text(f"{progress:.0%}")
        expect(said).to_have_text("Vitrine small is loading.")
    stands("failed", detail="The weights do not fit.")
    expect(said).to_have_text("Vitrine small cannot answer: The weights do not fit.")
    stands("ready")
    expect(page.locator("status-bar")).to_be_empty()


def test_who_answers_beside_outlives_a_reload(chat: ScriptedChat, page: Page) -> None:
    page.click(PICKER)
    page.click("[data-beside='org/assistant-8b']")
    page.keyboard.press("Escape")
    expect(page.locator(".picker__beside")).to_have_text("+ 1")
    page.reload()
    page.locator("status-bar:defined").wait_for(state="attached")
    expect(page.locator(".picker__beside")).to_have_text("+ 1")
    ask(page, "Who are you?")
    assert chat.heard_of("message.send")[0]["beside"] == ["org/assistant-8b"]


@THEMES
def test_a_long_list_is_accessible(chat: ScriptedChat, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    open_many(chat, page)
    expect(page.locator(".model")).to_have_count(len(MANY))
    expect_no_faults(page)
    page.locator("[data-pin='org/model-5']").click()
    expect_no_faults(page)
    expect_no_sideways_scrolling(page)

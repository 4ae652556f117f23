"""Finding and keeping: search and jump, pins, folders, tags, many chats at once, and the way back."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.browser.library import add_chats
from tests.browser.pages import cookies_of, wait_for
from tests.browser.test_accessibility import THEMES, expect_no_faults, expect_no_sideways_scrolling
from tests.sites import Site, email_of, wait_until

LONG = [
    f"{'question' if n % 2 == 0 else 'answer'} {n} " + "and more words " * 30 for n in range(40)
]
LONG[9] = "Here hides the zebra <img src=x onerror='window.__xss=1'> between other words."
CHATS: dict[str, Any] = {
    "Two branches": [
        (None, "the trunk"),
        (0, "grows"),
        (1, "an older twig with a woodpecker"),
        (2, "knocks"),
        (1, "the newer twig"),
        (4, "blooms"),
    ],
    "Long one": LONG,
    "東京の天気": ["明日の東京の天気は?", "明日の東京は晴れです。"],
    "Pin me": ["one", "1"],
    "File me": ["two", "2"],
    "Tag me": ["three", "3"],
    "First of many": ["four", "4"],
    "Second of many": ["five", "5"],
    "Third of many": ["six", "6"],
    "Archive me": ["seven", "7"],
    "Bar me": ["nine", "9", "ten", "10"],
    "<b>Bold</b> title": ["eight with a walrus", "8"],
}

MARKED = "CSS.highlights.get('found') && [...CSS.highlights.get('found')].map(String)"


@pytest.fixture(scope="module")
def librarian_cookies(vitrine_server: Site) -> list[Any]:
    vitrine_server.set_up()
    visitor = vitrine_server.sign_up("Librarian")
    add_chats(vitrine_server, email_of("Librarian"), CHATS)
    return cookies_of(visitor, vitrine_server.url)


@pytest.fixture
def library(context: BrowserContext, librarian_cookies: list[Any], page: Page) -> Page:
    context.add_cookies(librarian_cookies)
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    return page


def row(page: Page, title: str) -> Locator:
    return page.locator(".chat-link[data-conversation]", has_text=title)


def from_menu(page: Page, title: str, action: str) -> None:
    row(page, title).hover()
    row(page, title).get_by_role("button").click()
    page.locator("#chat-menu").get_by_role("menuitem", name=action).click()


def titles_under(page: Page, heading: str) -> list[str]:
    """What stands in the list between a heading and the next one."""
    script = """heading => {
      const rows = [...document.querySelectorAll(".chat-links > li")];
      const at = rows.findIndex((row) => row.textContent === heading);
      const behind = rows.slice(at + 1);
      const end = behind.findIndex((row) => row.matches(".sidebar__group, .folder"));
      return at < 0 ? [] : behind.slice(0, end < 0 ? undefined : end)
        .map((row) => row.querySelector("a")?.textContent);
    }"""
    found: list[str] = page.evaluate(script, heading)
    return found


def undo(page: Page) -> None:
    page.locator(".toast").last.get_by_role("button", name="Undo").click()


def test_search_opens_a_chat_at_the_message_by_keys_alone(library: Page) -> None:
    library.keyboard.press("Control+k")
    box = library.get_by_role("combobox", name="Search chats")
    expect(box).to_be_focused()
    expect(library.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    library.keyboard.type("zebra hides")
    option = library.get_by_role("option")
    expect(option).to_have_count(1)
    expect(option.locator("mark")).to_have_text(["hides", "zebra"])
    expect(option).to_contain_text("<img src=x")
    active = box.get_attribute("aria-activedescendant")
    assert active == option.get_attribute("id")
    library.keyboard.press("Enter")
    expect(library).to_have_url(re.compile(r"/c/[0-9a-f-]{36}\?m=[0-9a-f-]{36}$"))
    found = library.locator(".message[data-found]")
    expect(found).to_contain_text("Here hides the zebra")
    expect(found).to_be_in_viewport()
    expect(found).to_be_focused()
    wait_for(library, f"({MARKED})?.join(' ') === 'hides zebra'")
    library.reload()
    expect(library.locator(".message[data-found]")).to_be_in_viewport()
    library.go_back()
    expect(library).to_have_url("/")


def test_names_are_offered_for_a_filter_that_is_half_written(library: Page) -> None:
    library.route("**/api/tags", lambda route: route.fulfill(json={"tags": ["Sea glass", "work"]}))
    library.keyboard.press("Control+k")
    box = library.get_by_role("combobox", name="Search chats")
    library.keyboard.type("tag:gla")
    name = library.get_by_role("option", name="Sea glass")
    expect(name).to_have_attribute("aria-selected", "true")
    expect_no_faults(library)
    library.keyboard.press("Enter")
    expect(box).to_have_value('tag:"Sea glass" ')
    expect(box).to_be_focused()
    expect(name).to_have_count(0)
    library.keyboard.press("Control+a")
    library.get_by_role("button", name="folder:").click()
    expect(library.locator(".palette__state")).not_to_be_empty()


def test_search_opens_a_chat_on_the_branch_of_the_message(library: Page) -> None:
    row(library, "Two branches").locator("a").click()
    expect(library.locator(".message").last).to_contain_text("blooms")
    library.keyboard.press("Control+k")
    library.keyboard.type("woodpecker")
    marks = library.get_by_role("option").locator("mark")
    expect(marks).to_have_count(1)  # what fits the first letters alone has gone
    expect(marks).to_have_text("woodpecker")
    library.keyboard.press("Enter")
    expect(library.locator(".message[data-found]")).to_contain_text("woodpecker")
    expect(library.locator(".message").last).to_contain_text("knocks")
    expect(library.locator("message-list")).not_to_contain_text("the newer twig")


def test_other_scripts_other_results_and_none(library: Page) -> None:
    listed = library.locator(".chat-link[data-conversation]").count()  # one may be archived by now
    assert len(CHATS) - 1 <= listed <= len(CHATS)
    library.keyboard.press("Control+k")
    options = library.get_by_role("option")
    expect(options).to_have_count(listed)
    library.keyboard.type("京の天")
    expect(options).to_have_count(1)
    expect(options.locator("mark").first).to_have_text("京の天")
    library.keyboard.press("Control+a")
    library.keyboard.type("walrus")
    expect(options).to_have_count(1)
    expect(options).to_contain_text("<b>Bold</b> title")
    library.keyboard.type("es before:soon")
    expect(library.locator(".palette__problem")).to_contain_text("needs a date")
    said = library.locator("search-palette").get_by_role("status")
    expect(said).to_contain_text("needs a date")
    library.keyboard.press("Control+a")
    library.keyboard.type("nothingatall")
    expect(library.locator(".palette__state")).to_contain_text("Nothing was found")
    expect(said).to_contain_text("Nothing was found for “nothingatall”")
    expect(options).to_have_count(0)
    library.keyboard.press("Escape")
    expect(library.get_by_role("dialog")).to_have_count(0)


def test_a_search_that_fails_can_be_tried_again(library: Page) -> None:
    library.route("**/api/search*", lambda route: route.abort())  # of slow typing there are several
    library.get_by_role("button", name="Search chats").click()
    library.keyboard.type("walrus")
    state = library.locator(".palette__state")
    expect(state).to_contain_text("cannot be reached")
    expect(library.locator("search-palette").get_by_role("status")).to_contain_text("be reached")
    library.unroute("**/api/search*")
    state.get_by_role("button", name="Try again").click()
    expect(library.get_by_role("option")).to_have_count(1)


def test_what_is_typed_before_the_search_is_loaded_is_looked_for(library: Page) -> None:
    held: list[Route] = []
    script = re.compile(r"/search-palette\b.*\.js")
    library.route(script, lambda route: held.append(route))
    with library.expect_request(script):
        library.keyboard.press("Control+k")
    library.keyboard.type("walrus")
    expect(library.get_by_role("combobox", name="Search chats")).to_have_value("walrus")
    held[0].continue_()
    expect(library.get_by_role("option")).to_have_count(1)


def test_enter_before_the_answer_opens_what_is_found_and_not_what_was_listed(library: Page) -> None:
    library.keyboard.press("Control+k")
    options = library.get_by_role("option")
    expect(options).to_have_count(len(CHATS))
    held: list[Route] = []
    library.route(re.compile(r"/api/search\?q=zebra"), lambda route: held.append(route))
    with library.expect_request(re.compile(r"/api/search\?q=zebra")):
        library.keyboard.type("zebra")
        library.keyboard.press("Enter")
    expect(library).to_have_url("/")
    held[0].continue_()
    expect(library.locator(".message[data-found]")).to_contain_text("Here hides the zebra")


def test_enter_is_forgotten_where_something_else_is_typed(library: Page) -> None:
    library.route(re.compile(r"/api/search\?q=zebra"), lambda route: None)
    library.keyboard.press("Control+k")
    library.keyboard.type("zebra")
    library.keyboard.press("Enter")
    library.keyboard.press("Control+a")
    library.keyboard.type("walrus")
    expect(library.get_by_role("option")).to_contain_text(["walrus"])
    expect(library).to_have_url("/")


def test_a_late_answer_to_an_older_question_is_not_shown(library: Page) -> None:
    waiting: list[Any] = []
    library.route(re.compile(r"/api/search\?q=zeb&"), lambda route: waiting.append(route), times=1)
    library.keyboard.press("Control+k")
    library.keyboard.type("zeb")
    library.wait_for_timeout(600)
    library.keyboard.press("Control+a")
    library.keyboard.type("walrus")
    expect(library.get_by_role("option")).to_contain_text(["walrus"])
    assert len(waiting) == 1
    library.wait_for_timeout(300)
    expect(library.get_by_role("option")).to_contain_text(["walrus"])


def test_a_pinned_chat_is_on_top_in_every_tab(library: Page, context: BrowserContext) -> None:
    other = context.new_page()
    other.goto("/")
    other.locator("status-bar:defined").wait_for(state="attached")
    from_menu(library, "Pin me", "Pin")
    for tab in (library, other):
        expect(tab.locator(".chat-links > li").nth(1)).to_contain_text("Pin me")
        assert titles_under(tab, "Pinned") == ["Pin me"]
    library.reload()
    assert titles_under(library, "Pinned") == ["Pin me"]
    from_menu(library, "Pin me", "Unpin")
    expect(library.locator(".sidebar__group", has_text="Pinned")).to_have_count(0)
    other.close()


def test_a_chat_is_moved_to_a_new_folder_and_out_of_it(library: Page) -> None:
    from_menu(library, "File me", "Move to a folder")
    dialog = library.get_by_role("dialog", name="Move to a folder")
    dialog.get_by_role("textbox").fill("My folder")
    dialog.get_by_role("button", name="Create").click()
    folder = library.locator(".folder", has_text="My folder")
    expect(folder.get_by_role("button", expanded=True)).to_be_visible()
    expect(library.locator(".chat-link--inside")).to_contain_text("File me")
    folder.get_by_role("button", name="My folder", exact=True).click()
    expect(row(library, "File me")).to_have_count(0)
    library.reload()
    folder.get_by_role("button", name="My folder", exact=True).click()
    expect(library.locator(".chat-link--inside")).to_contain_text("File me")
    from_menu(library, "File me", "Move")
    library.get_by_role("dialog").get_by_role("button", name="Out of its folder").click()
    expect(library.locator(".chat-link--inside")).to_have_count(0)
    expect(row(library, "File me")).to_have_count(1)
    undo(library)
    expect(library.locator(".chat-link--inside")).to_contain_text("File me")
    folder.hover()
    folder.get_by_role("button", name="More for the folder").click()
    library.locator("#folder-menu").get_by_role("menuitem", name="Delete").click()
    library.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(folder).to_have_count(0)
    expect(row(library, "File me")).to_have_count(1)


def test_tags_are_given_and_found(library: Page) -> None:
    from_menu(library, "Tag me", "Tags")
    dialog = library.get_by_role("dialog", name="Tags")
    dialog.get_by_role("textbox").fill("Zoo animals")
    library.keyboard.press("Enter")
    expect(dialog.get_by_role("checkbox", name="zoo animals")).to_be_checked()
    dialog.get_by_role("button", name="Save").click()
    expect(library.locator(".toast")).to_contain_text("tagged")
    library.keyboard.press("Control+k")
    library.keyboard.type('tag:"zoo animals"')
    expect(library.get_by_role("option")).to_have_count(1)
    expect(library.get_by_role("option")).to_contain_text("Tag me")


def test_many_chats_are_chosen_with_shift_deleted_and_brought_back(library: Page) -> None:
    many = library.locator(".chat-link[data-conversation]", has_text="of many")
    row(library, "Third of many").locator("a").click(modifiers=["Shift"])
    row(library, "First of many").locator("a").click(modifiers=["Shift"])
    bar = library.get_by_role("toolbar", name="The chosen chats")
    expect(bar).to_contain_text("3 chats chosen")
    for action in ("Move to a folder", "Tag"):  # that is left without doing it
        bar.get_by_role("button", name=action).click()
        library.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(library.get_by_role("dialog")).to_have_count(0)
    with library.expect_download() as downloading:
        bar.get_by_role("button", name="Export").click()
    exported = json.loads(downloading.value.path().read_text())
    titles = {chat["title"] for chat in exported["chats"]}
    assert titles == {"First of many", "Second of many", "Third of many"}
    expect(bar).to_contain_text("3 chats chosen")
    library.route("**/api/conversations", lambda route: route.abort(), times=1)
    bar.get_by_role("button", name="Delete").click()
    expect(library.locator(".toast")).to_contain_text("cannot be reached")
    library.locator(".toast").get_by_role("button", name="Dismiss").click()
    expect(many.get_by_role("checkbox", checked=True)).to_have_count(3)
    bar.get_by_role("button", name="Delete").click()
    expect(many).to_have_count(0)
    expect(library.locator(".toast")).to_contain_text("3 chats are deleted")
    undo(library)
    expect(many).to_have_count(3)
    library.reload()
    expect(many).to_have_count(3)
    row(library, "Third of many").locator("a").click(modifiers=["Shift"])
    library.get_by_role("checkbox", name="Choose Second of many").focus()
    library.keyboard.press("Space")
    expect(bar).to_contain_text("2 chats chosen")
    bar.get_by_role("button", name="Choose all that are listed").click()
    expect(library.get_by_role("checkbox", checked=False)).to_have_count(0)
    library.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    expect(library.get_by_role("checkbox")).to_have_count(0)


def test_undo_shows_the_chat_that_was_shown_again_at_the_second_try(library: Page) -> None:
    row(library, "Pin me").locator("a").click()
    expect(library.locator(".message--user")).to_have_text(re.compile("one"))
    address = library.url
    library.keyboard.press("Control+Shift+Backspace")
    library.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(library).to_have_url("/")
    library.route("**/api/conversations", lambda route: route.abort(), times=1)
    undo(library)
    toast = library.locator(".toast")
    expect(toast).to_contain_text("cannot be reached")
    toast.get_by_role("button", name="Try again").click()
    expect(library).to_have_url(address)
    expect(library.locator(".message--user")).to_have_text(re.compile("one"))
    expect(toast).to_have_count(0)


def test_what_is_archived_leaves_the_list_and_is_still_found(library: Page) -> None:
    from_menu(library, "Archive me", "Archive")
    expect(row(library, "Archive me")).to_have_count(0)
    library.keyboard.press("Control+k")
    library.keyboard.type("archived:yes")
    expect(library.get_by_role("option")).to_contain_text(["Archive me"])
    expect(library.get_by_role("option")).to_contain_text(["Archived"])
    library.keyboard.press("Escape")
    undo(library)
    expect(row(library, "Archive me")).to_have_count(1)


def test_the_archive_is_in_the_settings(library: Page) -> None:
    from_menu(library, "Archive me", "Archive")
    expect(library.locator(".toast")).to_contain_text("archived")
    library.goto("/settings/#archived")
    entry = library.locator(".archived li", has_text="Archive me")
    expect(entry).to_have_count(1)
    expect_no_faults(library)
    entry.get_by_role("button", name="Delete").click()
    expect(entry).to_have_count(0)
    undo(library)
    entry.get_by_role("button", name="Unarchive").click()
    expect(library.locator("archived-chats")).to_contain_text("No chat is archived")
    library.goto("/")
    expect(row(library, "Archive me")).to_have_count(1)


@THEMES
def test_no_faults(library: Page, theme: str) -> None:
    library.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    row(library, "Third of many").locator("a").click(modifiers=["Shift"])
    expect_no_faults(library)
    library.keyboard.press("Control+k")
    library.keyboard.type("zebra")
    expect(library.get_by_role("option")).to_have_count(1)
    expect_no_faults(library)
    expect_no_sideways_scrolling(library)
    library.keyboard.press("Escape")
    library.evaluate("document.querySelector('#tags-dialog').showModal()")
    expect_no_faults(library)


def test_a_high_window_is_filled_and_what_is_out_of_view_is_not_laid_out(
    vitrine_server: Site, context: BrowserContext, page: Page
) -> None:
    vitrine_server.set_up()
    visitor = vitrine_server.sign_up("Hoarder")
    chats: dict[str, Any] = {f"Chat {n}": ["one"] for n in range(95)}
    add_chats(vitrine_server, email_of("Hoarder"), chats)
    context.add_cookies(cookies_of(visitor, vitrine_server.url))
    rows = page.locator(".chat-link[data-conversation]")
    page.set_viewport_size({"width": 1200, "height": 2400})
    page.goto("/")
    expect(rows).to_have_count(80)  # two pages: the first leaves room
    page.set_viewport_size({"width": 1200, "height": 700})
    is_painted = "row => row.checkVisibility({ contentVisibilityAuto: true })"
    links = [rows.nth(n).locator("a") for n in (0, 79)]
    wait_until(lambda: [link.evaluate(is_painted) for link in links] == [True, False])
    page.evaluate("document.querySelector('chat-sidebar').refresh()")  # as after each reconnect
    assert rows.count() == 80, "what was read stays"
    rows.nth(79).scroll_into_view_if_needed()
    expect(rows).to_have_count(95)
    assert rows.nth(79).locator("a").evaluate(is_painted)
    rows.nth(94).scroll_into_view_if_needed()
    rows.nth(94).locator("a").focus()
    expect(rows.nth(94).locator("a")).to_be_focused()


def test_the_open_chat_has_its_menu_in_the_bar(library: Page) -> None:
    row(library, "Bar me").get_by_role("link").click()
    library.set_viewport_size({"width": 390, "height": 844})
    bar, menu = library.locator(".bar"), library.get_by_role("menu", name="Chat")
    opener = bar.get_by_role("button", name="More for this chat")
    opener.click()
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(menu.get_by_role("menuitem")).to_have_text(
        ["Rename", "Pin", "Move to a folder…", "Tags…", "Share", "Export", "Archive", "Delete"]
    )
    expect(menu.get_by_role("menuitem", name="Rename")).to_be_focused()
    expect_no_faults(library)
    expect_no_sideways_scrolling(library)
    expect(bar.get_by_role("button", name="Share this chat")).to_be_hidden()
    library.keyboard.press("Enter")
    dialog = library.get_by_role("dialog", name="Rename this chat")
    dialog.get_by_role("textbox").fill("Bar me again")
    dialog.get_by_role("button", name="Save").click()
    expect(library).to_have_title("Bar me again · Vitrine")
    opener.click()
    menu.get_by_role("menuitem", name="Pin").click()
    expect(library.locator(".toast")).to_contain_text("pinned")
    opener.click()
    menu.get_by_role("menuitem", name="Unpin").click()  # as other tests expect to find it
    expect(library.locator(".toast").last).to_contain_text("no longer pinned")
    opener.click()
    menu.get_by_role("menuitem", name="Share").click()
    expect(library.get_by_role("dialog", name="Share this chat")).to_be_visible()
    library.keyboard.press("Escape")
    opener.click()
    menu.get_by_role("menuitem", name="Delete").click()
    expect(library).to_have_url(re.compile("/$"))
    expect(library.locator(".toast").last).to_contain_text("deleted")  # and no earlier one's "Undo"
    undo(library)
    expect(row(library, "Bar me")).to_have_count(1)  # as other tests expect it, too


def test_a_link_may_end_with_an_answer_before_the_last(library: Page) -> None:
    row(library, "Bar me").get_by_role("link").click()
    answer = library.locator(".message--assistant").first
    answer.hover()
    answer.get_by_role("button", name="More").click()
    library.get_by_role("menuitem", name="Share up to here").click()
    dialog = library.get_by_role("dialog", name="Share this chat")
    expect(dialog.get_by_label("Up to")).to_have_value(answer.get_attribute("data-message") or "")
    expect(dialog).to_contain_text("2 messages, from “nine”")
    library.keyboard.press("Escape")
    question = library.locator(".message--user").first
    question.hover()
    question.get_by_role("button", name="More").click()
    expect(library.get_by_role("menuitem", name="Delete")).to_be_visible()
    expect(library.get_by_role("menuitem", name="Share up to here")).to_be_hidden()

"""An answer while it is written: told truthfully, stopped exactly, never doubled."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import answer_text, ask, distance_to_end, last_answer
from tests.browser.scripted import ScriptedChat

LONG = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(80))


def test_the_phase_line_tells_what_happens(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    phase = last_answer(page).locator(".phase__words")
    chat.phase("r1", "queued", position=3, wait_s=4.0)
    expect(phase).to_have_text("Queued 3rd · about 4 s")
    chat.phase("r1", "prefill", done=6210, total=8900, cached=5100)
    expect(phase).to_have_text("Reading 6,210 of 8,900 tokens · 5,100 from cache")
    expect(last_answer(page)).to_have_attribute("aria-busy", "true")
    chat.write("r1", "Hello")
    chat.phase("r1", "decode", tokens=1, tokens_per_s=61.2)
    expect(phase).to_have_text("Writing · 61 tokens/s")
    chat.finish("r1")
    expect(phase).to_be_hidden()
    expect(last_answer(page).locator(".message__took")).to_contain_text("412 tokens")
    expect(last_answer(page)).to_have_attribute("aria-busy", "false")


def test_what_the_model_does_not_see_is_told_where_its_view_begins(
    chat: ScriptedChat, page: Page
) -> None:
    """The line comes with a module of its own, when it is first needed, and goes with what it tells."""
    ask(page, "First")
    chat.write("r1", "One.")
    chat.finish("r1")
    ask(page, "Second")
    line = page.locator(".left-out")
    expect(line).to_have_count(0)
    before = page.locator(".message--user").last.get_attribute("data-message")
    chat.event("r2", "left_out", before=before, num_messages=2, summary=None)
    chat.write("r2", "Two.")
    expect(line).to_contain_text("2 earlier messages are not in the model’s view")
    assert line.evaluate("(line) => line.nextElementSibling.dataset.message") == before


def test_a_tool_is_a_line_that_opens(chat: ScriptedChat, page: Page) -> None:
    ask(page, "What is 17 * 23?")
    chat.event("r1", "tool_call", id="1", name="calculator", arguments='{"expression": "17 * 23"}')
    line = last_answer(page).locator("summary")
    expect(line).to_have_text("Calculator · 17 * 23")
    chat.event("r1", "tool_result", id="1", content="391", is_error=False, took_ms=2.0)
    expect(line).to_have_text("Calculator · 17 * 23 → 391")
    chat.write("r1", "It is 391.")
    chat.finish("r1")
    expect(last_answer(page)).to_contain_text("It is 391.")


def test_stop_freezes_what_is_seen(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "one two three")
    expect(last_answer(page)).to_contain_text("one two three")
    page.keyboard.press("Escape")
    expect(last_answer(page).locator(".phase__words")).to_have_text("Stopping")
    chat.write("r1", " four five", offset=13)
    page.wait_for_timeout(100)
    assert answer_text(page) == "one two three"
    assert chat.heard_of("run.stop") == [{"type": "run.stop", "run": "r1", "chars": 13}]
    chat.event("r1", "stopped", chars=13, usage=None, timings=None)
    expect(last_answer(page)).to_contain_text("You stopped this answer.")
    assert answer_text(page) == "one two three"


def test_a_reload_in_the_middle_doubles_and_loses_nothing(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "The first half")
    page.wait_for_url("**/c/*")
    # The server would render the saved part; here the page reads it again instead.
    chat.messages[1].update(text="The first", parts=[{"type": "text", "text": "The first"}])
    page.locator(".sidebar__new [data-new-chat]").click()
    page.go_back()
    expect(last_answer(page)).to_contain_text("The first")
    assert chat.heard_of("run.follow")[-1] == {"type": "run.follow", "run": "r1", "after": 0}
    chat.replay("r1")
    chat.write("r1", " and the second.", offset=14)
    expect(last_answer(page)).to_contain_text("The first half and the second.")
    assert answer_text(page) == "The first half and the second."


def test_a_lost_line_is_taken_up_where_it_broke(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "one ")
    expect(last_answer(page)).to_contain_text("one")
    chat.go_away()
    chat.come_back()
    expect(page.locator("status-bar .status")).to_have_count(0)
    page.wait_for_timeout(100)
    assert chat.heard_of("run.follow")[-1]["after"] == 1
    chat.replay("r1")
    chat.write("r1", "two", offset=4)
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    assert answer_text(page) == "one two"


def test_an_answer_that_the_server_lost_is_written_anew_without_a_trace(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.write("r1", "# Old\n\nThe first words.\n\nMore of them.\n\nAnd")
    expect(last_answer(page)).to_contain_text("More of them.")
    chat.reset("r1")
    anew = "# New\n\nOther words, and more of them than before.\n\n- one\n- two\n\nThe end"
    chat.write("r1", anew)
    expect(last_answer(page)).to_contain_text("The end")
    assert answer_text(page) == (
        "New\n\nOther words, and more of them than before.\n\none\ntwo\n\nThe end"
    )
    page.keyboard.press("Escape")
    assert chat.heard_of("run.stop") == [{"type": "run.stop", "run": "r1", "chars": len(anew)}]


def test_an_answer_that_the_server_lost_leaves_the_screen_at_once(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.write("r1", "Lost words.\n\nAll of them")
    expect(last_answer(page)).to_contain_text("All of them")
    chat.reset("r1")
    expect(last_answer(page).locator(".prose")).to_have_count(0)
    page.keyboard.press("Escape")
    assert chat.heard_of("run.stop")[0]["chars"] == 0


def test_an_answer_whose_end_is_read_first_is_followed_no_more(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.write("r1", "one ")
    expect(last_answer(page)).to_contain_text("one")
    assert chat.conversation is not None
    parts = [{"type": "text", "text": "one two"}]
    chat.messages[1].update(status="complete", run=None, text="one two", parts=parts)
    chat.say({"type": "conversation.changed", "conversation": chat.conversation, "running": []})
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    chat.write("r1", "two", offset=4)
    chat.finish("r1")
    page.wait_for_timeout(100)
    assert answer_text(page) == "one two"
    assert chat.heard_of("run.unfollow") == [{"type": "run.unfollow", "run": "r1"}]
    chat.go_away()
    chat.come_back()
    expect(page.locator("status-bar .status")).to_have_count(0)
    page.wait_for_timeout(100)
    assert chat.heard_of("run.follow") == []


def test_an_answer_that_the_server_does_not_know_frees_the_composer(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "Hello")
    chat.write("r1", "one ")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    error = {"type": "error", "code": "not_found", "message": "There is no such run."}
    chat.say({**error, "run": "r1"})
    expect(last_answer(page)).to_contain_text("There is no such run. What was written is kept.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.get_by_role("button", name="Ask again")).to_be_visible()


def test_the_question_stands_at_the_top_and_the_answer_fills_downward(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    chat.write("r1", LONG)
    chat.finish("r1")
    ask(page, "Second")
    top = page.locator(".message--user").last.bounding_box()
    bar = page.locator(".bar").bounding_box()
    assert top is not None
    assert bar is not None
    assert 0 < top["y"] - (bar["y"] + bar["height"]) < 60


def place_at_rest(page: Page) -> float:
    """Where the text stands once the wheel has come to its end."""
    place: float = page.locator("#scroller").evaluate("""async (box) => {
      for (let before = NaN; before !== box.scrollTop; ) {
        before = box.scrollTop;
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      return box.scrollTop;
    }""")
    return place


def test_the_end_is_followed_until_the_reader_scrolls_up(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Long")
    chat.write("r1", LONG)
    expect(last_answer(page)).to_contain_text("Paragraph 79")
    assert "Paragraph 79" in answer_text(page)  # drawn
    assert distance_to_end(page) < 2
    page.mouse.move(700, 400)
    page.mouse.wheel(0, -300)
    expect(page.locator("#jump")).to_be_visible()
    before = place_at_rest(page)
    chat.write("r1", "\n\n" + LONG, offset=len(LONG))
    page.wait_for_timeout(200)
    assert page.locator("#scroller").evaluate("box => box.scrollTop") == before
    page.click("#jump")
    expect(page.locator("#jump")).to_be_hidden()
    page.wait_for_timeout(1500)  # it glides
    assert distance_to_end(page) < 2


def test_a_selection_in_the_growing_text_survives(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "Select these words")
    words = last_answer(page).locator(".prose p")
    expect(words).to_have_text("Select these words")
    assert answer_text(page) == "Select these words"  # and not the plain words before
    words.evaluate("p => getSelection().setBaseAndExtent(p.firstChild, 0, p.firstChild, 18)")
    chat.write("r1", " while more comes", offset=18)
    expect(words).to_have_text("Select these words while more comes")
    assert page.evaluate("getSelection().toString()") == "Select these words"


def test_sentences_are_announced_not_tokens(chat: ScriptedChat, page: Page) -> None:
    ask(page, "Hello")
    chat.write("r1", "This is whole. This is n")
    spoken = page.locator("#announcer p")
    expect(spoken).to_have_text(["Answering.", "This is whole."])
    chat.write("r1", "ot yet.", offset=24)
    chat.finish("r1")
    expect(spoken).to_have_text(["Answering.", "This is whole.", "This is not yet."])


def test_two_tabs_show_the_same_answer(reader: BrowserContext, page: Page) -> None:
    page.goto("/")
    ask(page, "Who are you?")
    page.wait_for_url("**/c/*")
    other = reader.new_page()
    other.goto(page.url)
    for tab in (page, other):
        expect(last_answer(tab)).to_have_attribute("data-status", "complete", timeout=90_000)
    ask(other, "What is 2 + 2?")
    expect(page.locator(".message--user")).to_have_count(2)
    for tab in (page, other):
        expect(last_answer(tab)).to_have_attribute("data-status", "complete", timeout=90_000)
    assert answer_text(page) == answer_text(other)

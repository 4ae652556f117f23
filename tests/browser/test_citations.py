"""Numbers of sources in an answer, while it is written and afterwards; what is picked, by a script."""

import re
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.pages import INPUT, ask, last_answer, wait_for
from tests.browser.scripted import ScriptedChat, meter_of
from tests.browser.test_accessibility import expect_no_faults

CARD = ".source-card"
DROP = """
  ([kind, name]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["words"], name, { type: "text/plain" }));
    const at = document.querySelector("#composer-input");
    const given = { bubbles: true, cancelable: true };
    const events = kind === "paste"
      ? [new ClipboardEvent("paste", { ...given, clipboardData: transfer })]
      : ["dragover", "drop"].map((type) => new DragEvent(type, { ...given, dataTransfer: transfer }));
    for (const event of events) at.dispatchEvent(event);
  }
"""
COUNT_SCROLLS = """
  document.addEventListener("scroll", () => window.__scrolls++, { capture: true })
"""


def excerpt(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "document": f"0199a1b2-0000-7000-8000-00000000000{number}",
        "version": "0199a1b2-0000-7000-8000-0000000000aa",
        "collection": "0199a1b2-0000-7000-8000-0000000000bb",
        "name": f"file {number}.pdf",
        "start": 10,
        "end": 90,
        "first_page": number,
        "last_page": number,
        "page_label": str(number),
        "context": "Rules\nOffice",
        "chunks": [number],
        **more,
    }


def find(chat: ScriptedChat, run: str, *numbers: int, **more: Any) -> None:
    excerpts = [excerpt(number) for number in numbers]
    chat.event(run, "found", query="?", excerpts=excerpts, **{"is_whole": False, **more})
    chat.event(run, "started", model="vitrine-small", revision="1", seed=1, turn=0)


def tell(page: Page, *texts: str | None) -> list[str]:
    """What the sources of answers say, from 1 on; the list grows with each time that it is asked."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        told = [{**excerpt(n), "text": text} for n, text in enumerate(texts, 1)]
        route.fulfill(json={"excerpts": told})

    page.route(re.compile(r"/api/messages/[^/]+/excerpts$"), answer)
    return asked


def test_a_number_is_a_link_from_its_last_bracket_on_and_stays_one(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "When?")
    chat.phase("r1", "searching")
    expect(page.locator(".phase__words").last).to_have_text("Searching the documents")
    find(chat, "r1", 1, 2)
    text = "At 8 [1], says `list[1]`.\n\nSo [2][9] it"
    chat.write("r1", "At 8 [1")
    prose = last_answer(page).locator(".prose")
    expect(prose).to_have_text("At 8")
    chat.write("r1", "], says", offset=7)
    link = prose.locator("a.citation")
    expect(link).to_have_count(1)
    link.evaluate("link => { link.isTheSame = true; link.focus(); }")
    chat.write("r1", text[14:], offset=14)
    expect(prose).to_contain_text("So [2][9] it")
    assert link.first.evaluate("link => link.isTheSame && link === document.activeElement")
    chat.finish("r1")
    expect(last_answer(page)).to_have_attribute("data-status", "complete")
    assert link.first.evaluate("link => link.isTheSame && link === document.activeElement")
    expect(link).to_have_text(["[1]", "[2]"])
    expect(prose.locator("code")).to_have_text("list[1]")
    wrong = prose.locator(".citation--wrong")
    expect(wrong).to_have_text("[9]")
    expect(wrong).to_have_attribute("title", "No such source")
    toast = page.locator(".toast", has_text="[9]: No such source")
    wrong.focus()
    page.keyboard.press("Enter")
    expect(toast).to_have_count(1)
    expect(page.locator("#source-card")).to_be_hidden()
    wrong.click()
    expect(toast).to_have_count(2)
    selected = "getSelection().selectAllChildren(prose), getSelection().toString()"
    assert "So [2][9] it" in prose.evaluate(f"prose => ({selected})")
    expect(last_answer(page).locator(".source__number")).to_have_text(["1", "2"])


def test_what_is_cited_stands_first_and_earlier_sources_can_be_cited(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "One")
    find(chat, "r1", 1, 2)
    chat.write("r1", "It is so [2].")
    chat.finish("r1")
    chips = last_answer(page).locator(".source")
    expect(chips).to_have_text([re.compile("2file 2.pdfp. 2"), re.compile("1file 1.pdfp. 1")])
    expect(chips.first).not_to_have_attribute("data-uncited", "")
    expect(chips.last).to_have_attribute("data-uncited", "")
    ask(page, "Two")
    find(chat, "r2", 3)
    chat.write("r2", "As said [1], and [3].")
    chat.finish("r2")
    expect(last_answer(page).locator("a.citation")).to_have_text(["[1]", "[3]"])
    expect(chips.locator(".source__number")).to_have_text(["1", "3"])
    ask(page, "Three")
    chat.write("r3", "Of an array, a[7]; and see [2].")
    chat.finish("r3")
    expect(last_answer(page).locator(".prose")).to_have_text("Of an array, a[7]; and see [2].")
    expect(last_answer(page).locator(".citation")).to_have_text("[2]")
    expect(last_answer(page).locator(".sources")).to_have_count(0)


def test_a_card_is_read_once_for_an_answer_and_says_what_is_gone(
    chat: ScriptedChat, page: Page
) -> None:
    asked = tell(page, "The office opens at 8.", None)
    ask(page, "When?")
    find(chat, "r1", 1, 2)
    chat.write("r1", "At 8 [1], or not [2].")
    chat.finish("r1")
    links = last_answer(page).locator("a.citation")
    links.first.hover()
    card = page.locator(CARD)
    expect(card).to_contain_text("The office opens at 8.")
    expect(card).to_contain_text("p. 1 · Office")
    card.hover()  # the card can be read and scrolled with the pointer in it
    page.wait_for_timeout(400)
    expect(card).to_be_visible()
    links.last.hover()
    expect(card).to_contain_text("This passage was deleted, or is no longer shared with you.")
    expect(card.get_by_role("link")).to_have_count(0)
    last_answer(page).locator(".source").first.focus()
    expect(card).to_contain_text("The office opens at 8.")
    assert len(asked) == 1
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_a_card_stays_when_the_page_scrolls_by_itself(chat: ScriptedChat, page: Page) -> None:
    """A moment after an answer the meter comes, and the foot grows: who has pointed at a number by then
    would have seen the card go, or, had it not been read yet, nothing but that it opens."""
    waiting: list[Route] = []
    page.route(re.compile(r"/api/messages/[^/]+/excerpts$"), lambda route: waiting.append(route))
    page.evaluate(COUNT_SCROLLS)
    ask(page, "When?")
    find(chat, "r1", 1)
    chat.write("r1", "At 8 [1].")
    chat.finish("r1")
    last_answer(page).locator("a.citation").hover()
    card = page.locator(CARD)
    expect(card).to_have_text("Opening")
    page.evaluate("window.__scrolls = 0")
    chat.meter = meter_of(0, 20)
    chat.say({"type": "models.changed", "models": chat.models})
    expect(page.locator("token-meter")).to_be_visible()
    wait_for(page, "window.__scrolls > 0")
    waiting[0].fulfill(json={"excerpts": [{**excerpt(1), "text": "The office opens at 8."}]})
    expect(card).to_contain_text("The office opens at 8.")
    expect(card).to_be_visible()


def test_a_card_goes_when_its_number_is_scrolled_away(chat: ScriptedChat, page: Page) -> None:
    tell(page, "The office opens at 8.")
    ask(page, "When?")
    find(chat, "r1", 1)
    chat.write("r1", "It opens.\n\n" * 60 + "At 8 [1].")
    chat.finish("r1")
    last_answer(page).locator("a.citation").focus()
    card = page.locator(CARD)
    expect(card).to_contain_text("The office opens at 8.")
    page.locator("#scroller").hover()
    page.mouse.wheel(0, -200)
    expect(card).to_be_hidden()


def test_a_card_that_cannot_be_read_says_so_and_is_read_anew(
    chat: ScriptedChat, page: Page
) -> None:
    page.route(re.compile(r"/api/messages/[^/]+/excerpts$"), lambda route: route.abort())
    ask(page, "When?")
    find(chat, "r1", 1)
    chat.write("r1", "At 8 [1].")
    chat.finish("r1")
    link = last_answer(page).locator("a.citation")
    link.focus()
    expect(page.locator(f"{CARD} [role=alert]")).to_contain_text("cannot be reached")
    page.keyboard.press("Escape")
    tell(page, "The office opens at 8.")
    link.blur()
    link.focus()
    expect(page.locator(CARD)).to_contain_text("The office opens at 8.")


WORDS = "Nothing of note. " * 400
FACT = "The office opens at 8."


def serve(page: Page, text: str = f"{WORDS}\n{FACT}\n{WORDS}", **more: Any) -> dict[str, Any]:
    """A document that stands behind each excerpt; its text as the server would tell it."""
    version = {"id": excerpt(1)["version"], "num_chars": len(text), "pages": [], **more}
    shown = {"id": excerpt(1)["document"], "name": "file 1.pdf", "media_type": "text/plain"}

    def read(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        start, end = int(query["start"][0]), int(query["end"][0])
        route.fulfill(json={"start": start, "text": text[start:end]})

    page.route(
        re.compile(r"/api/documents/[^/]+/view"),
        lambda route: route.fulfill(json={"document": shown, "version": version}),
    )
    page.route(re.compile(r"/api/documents/[^/]+/text"), read)
    return {"start": text.find(FACT), "end": text.find(FACT) + len(FACT)}


def cite(chat: ScriptedChat, page: Page, place: dict[str, Any]) -> Locator:
    """An answer that cites it; its number."""
    tell(page, FACT)
    ask(page, "When?")
    found = [{**excerpt(1), **place}]
    chat.event("r1", "found", query="?", excerpts=found, is_whole=False)
    chat.write("r1", "At 8 [1].")
    chat.finish("r1")
    return last_answer(page).locator("a.citation")


def test_a_citation_opens_the_passage_beside_the_answer(chat: ScriptedChat, page: Page) -> None:
    number = cite(chat, page, serve(page))
    number.click()
    panel = page.locator("side-panel")
    expect(panel.get_by_role("heading", name="file 1.pdf")).to_be_visible()
    mark = panel.locator("mark")
    expect(mark).to_have_text(FACT)
    expect(mark).to_be_in_viewport()
    expect(mark).to_be_focused()
    expect(page.locator(CARD)).to_be_hidden()
    expect_no_faults(page)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(number).to_be_focused()
    page.keyboard.press("Enter")
    expect(mark).to_be_in_viewport()


def test_so_do_its_chip_and_its_card(chat: ScriptedChat, page: Page) -> None:
    number = cite(chat, page, serve(page))
    panel = page.locator("side-panel")
    last_answer(page).locator(".source").click()
    expect(panel.locator("mark")).to_be_in_viewport()
    panel.locator("[data-close]").click()
    number.hover()
    expect(number).to_have_attribute("aria-describedby", "source-card")  # not the chip's any more
    page.locator(CARD).get_by_role("link", name="Open in the document").click()
    expect(panel.locator("mark")).to_be_in_viewport()
    expect(panel.get_by_role("heading", name="file 1.pdf")).to_be_visible()
    panel.locator("[data-close]").click()
    expect(number).to_be_focused()


def test_with_a_key_held_it_opens_its_page_in_another_tab(chat: ScriptedChat, page: Page) -> None:
    number = cite(chat, page, serve(page))
    with page.context.expect_page() as opened:
        number.click(modifiers=["ControlOrMeta"])
    opened.value.wait_for_url("**/documents/**")
    expect(page.locator("side-panel")).to_be_hidden()


def test_a_document_that_has_changed_or_is_gone_says_so(chat: ScriptedChat, page: Page) -> None:
    number = cite(chat, page, serve(page, id="0199a1b2-0000-7000-8000-0000000000ab"))
    panel = page.locator("side-panel")
    number.click()
    expect(panel).to_contain_text("The document has changed since.")
    expect(panel.locator("mark")).to_have_count(0)
    gone = {"error": {"code": "not_found", "message": "There is no such document."}}
    page.route(
        re.compile(r"/api/documents/[^/]+/view"),
        lambda route: route.fulfill(status=404, json=gone),
    )
    number.click()
    expect(panel.get_by_role("alert")).to_have_text("There is no such document.")


def test_the_trace_and_a_source_take_turns_in_the_panel(chat: ScriptedChat, page: Page) -> None:
    number = cite(chat, page, serve(page))
    panel = page.locator("side-panel")
    number.click()
    expect(panel.locator("mark")).to_be_visible()
    last_answer(page).locator(".message__took").click()
    expect(panel.get_by_role("heading", name="How this answer came about")).to_be_visible()
    number.click()
    expect(panel.locator("mark")).to_be_visible()
    last_answer(page).locator(".message__took").click()  # not: close it
    expect(panel.get_by_role("heading", name="How this answer came about")).to_be_visible()


def test_documents_that_were_read_whole_are_listed_once(chat: ScriptedChat, page: Page) -> None:
    ask(page, "When?")
    excerpts = [excerpt(n, document=excerpt(1)["document"], name="a.md") for n in (1, 2, 3)]
    chat.event("r1", "found", query="?", excerpts=excerpts, is_whole=True)
    chat.write("r1", "So [2].")
    chat.finish("r1")
    chips = last_answer(page).locator(".source")
    expect(chips).to_have_text([re.compile("2a.md"), re.compile("a.mdRead whole")])


@pytest.fixture
def library(page: Page) -> None:
    one = {"num_documents": 3, "is_mine": True, "owner": {"name": "Reader"}}
    collections = [{"id": excerpt(1)["collection"], "name": "Company notes", **one}]
    page.route(
        re.compile(r"/api/collections$"),
        lambda route: route.fulfill(json={"collections": collections}),
    )
    page.route(
        re.compile(r"/api/documents(\?|$)"), lambda route: route.fulfill(json={"documents": []})
    )


def pick(page: Page) -> None:
    page.locator(INPUT).press_sequentially("#comp")
    page.get_by_role("option").wait_for()
    page.locator(INPUT).press("Tab")
    expect(page.locator(".picked__chip")).to_have_text("Company notes")


@pytest.mark.usefixtures("library")
def test_what_waits_keeps_its_sources_and_what_is_refused_brings_them_back(
    chat: ScriptedChat, page: Page
) -> None:
    ask(page, "First")
    pick(page)
    page.locator(INPUT).press_sequentially("Second")
    page.press(INPUT, "Enter")
    page.click(".picked__remove")
    page.click(".queue__item [name=edit]")
    expect(page.locator(INPUT)).to_have_value("Second")
    expect(page.locator(".picked__chip")).to_have_text("Company notes")
    page.press(INPUT, "Enter")
    page.click(".picked__remove")
    chat.auto_accept = False
    chat.finish("r1")
    expect(page.locator(".message--user .source")).to_have_text("Company notes")
    sent = chat.heard_of("message.send")[-1]
    assert sent["sources"] == {"collections": [excerpt(1)["collection"]], "documents": []}
    error = {"type": "error", "code": "not_found", "message": "There is no such collection."}
    chat.say({**error, "client_id": sent["client_id"]})
    expect(page.locator(INPUT)).to_have_value("Second")
    expect(page.locator(".picked__chip")).to_have_text("Company notes")


PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
IS_GIVEN_BACK = """
  (src) => new Promise((tell) => {
    Object.assign(new Image(), { src, onerror: () => tell(true), onload: () => tell(false) });
  })
"""


def bring_picture(page: Page) -> Locator:
    """Attach one, which is ready at once; its chip."""
    document = {"id": excerpt(1)["document"], "name": "image.png", "version": {"state": "ready"}}
    page.route(
        re.compile(r"/api/documents/attach\?"),
        lambda route: route.fulfill(status=201, json=document),
    )
    page.locator(".composer__files").set_input_files(
        {"name": "image.png", "mimeType": "image/png", "buffer": PIXEL}
    )
    return page.locator(".picked__chip")


def test_a_picture_is_seen_before_it_is_sent_and_in_the_message(
    chat: ScriptedChat, page: Page
) -> None:
    page.route(
        re.compile(r"/api/documents/[^/]+/pages/1\?width=800"),
        lambda route: route.fulfill(body=PIXEL, content_type="image/png"),
    )
    chat.auto_accept = False  # the messages of the script have no sources
    small = bring_picture(page).locator("img")
    expect(small).to_have_js_property("naturalWidth", 1)
    address = small.get_attribute("src") or ""
    assert address.startswith("blob:")
    expect_no_faults(page)
    ask(page, "What is it?")
    assert page.evaluate(IS_GIVEN_BACK, address)
    picture = page.locator(".message--user .picture img")
    expect(picture).to_have_js_property("naturalWidth", 1)
    expect(picture).to_have_attribute("loading", "lazy")
    expect(picture).to_have_attribute("alt", "image.png")
    expect_no_faults(page)


def test_a_picture_that_is_gone_leaves_its_name(chat: ScriptedChat, page: Page) -> None:
    page.route(re.compile(r"/api/documents/[^/]+/pages/1"), lambda route: route.fulfill(status=404))
    chat.auto_accept = False
    expect(bring_picture(page).locator("img")).to_be_visible()
    ask(page, "What is it?")
    expect(page.locator(".message--user .source")).to_have_text("image.png")
    expect(page.locator(".message--user img")).to_have_count(0)


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_files_are_dropped_and_pasted_and_the_message_waits_for_them(
    chat: ScriptedChat, page: Page, kind: str
) -> None:
    state = {"now": "parsing"}

    def document() -> dict[str, Any]:
        version = {"state": state["now"], "reason": "", "num_chunks": 2, "num_embedded": 1}
        return {"id": excerpt(1)["document"], "name": "notes.txt", "version": version}

    page.route(
        re.compile(r"/api/documents/attach\?"),
        lambda route: route.fulfill(status=201, json=document()),
    )
    page.route(
        re.compile(r"/api/documents/0199[^/]+$"), lambda route: route.fulfill(json=document())
    )
    page.evaluate(DROP, [kind, "notes.txt"])
    chip = page.locator(".picked__chip")
    expect(chip).to_contain_text("reading…")
    page.fill(INPUT, "What is in it?")
    page.press(INPUT, "Enter")
    expect(page.locator("#composer-hint")).to_contain_text("as soon as its files are read")
    assert chat.heard_of("message.send") == []
    state["now"] = "ready"
    page.locator(".message--user").wait_for()
    (sent,) = chat.heard_of("message.send")
    assert sent["sources"] == {"collections": [], "documents": [excerpt(1)["document"]]}
    expect(chip).to_have_count(0)
    expect(page.locator(INPUT)).to_have_value("")

"""Documents in a browser: brought, followed until they are found, opened at a passage, shared."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.pages import cookies_of, wait_for
from tests.browser.test_accessibility import expect_no_faults, expect_no_sideways_scrolling
from tests.retrieval.office import make_xlsx
from tests.retrieval.pdfs import PdfPage, make_pdf
from tests.sites import Site, email_of

WORK_MS = 60_000
CANARY = "The zanzibar canary weighs ninety grams."
FILLER = "This line is about glass, which is clear and old and made of sand."
_numbers = count(1)
_SHOTS = os.environ.get("SHOTS", "")


def report(num_pages: int = 8, canary_page: int = 5) -> bytes:
    pages = []
    for number in range(1, num_pages + 1):
        lines = [(72.0, 720.0, 20.0, f"Chapter {number}")]
        lines += [(72.0, 680.0 - 16 * row, 11.0, FILLER) for row in range(36)]
        if number == canary_page:
            lines[20] = (72.0, lines[20][1], 11.0, CANARY)
        pages.append(PdfPage(lines))
    return make_pdf(pages, title="A Report on Glass")


def shoot(page: Page, name: str) -> None:
    """For people to look at, where SHOTS names a folder."""
    if not _SHOTS:
        return
    before = page.viewport_size
    for size, (width, height) in {"wide": (1440, 900), "phone": (390, 844)}.items():
        for theme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.wait_for_timeout(700)
            page.screenshot(path=Path(_SHOTS) / f"{name}-{size}-{theme}.png")
    page.emulate_media(color_scheme="light")
    if before:
        page.set_viewport_size(before)


class Person:
    def __init__(self, site: Site, name: str) -> None:
        self.email = email_of(name)
        self.visitor = site.sign_up(name)
        self.visitor.get("/")
        self.visitor.headers["X-CSRFToken"] = self.visitor.cookies["vitrine_csrf"]
        self.cookies = cookies_of(self.visitor, site.url)

    def post(self, path: str, **more: Any) -> Any:
        response: httpx2.Response = self.visitor.post(f"/api/{path}", **more)
        assert response.status_code == 201, response.text
        return response.json()

    def collection(self, name: str = "Glass") -> str:
        return str(self.post("collections", json={"name": name})["id"])

    def bring(self, collection: str, name: str, content: bytes) -> str:
        headers = {"Content-Type": "application/octet-stream"}
        place = f"collections/{collection}/documents"
        return str(self.post(place, params={"name": name}, content=content, headers=headers)["id"])


@pytest.fixture
def alice(vitrine_server: Site, context: BrowserContext) -> Iterator[Person]:
    """Signed in on the test's page; nobody else needs what she keeps."""
    vitrine_server.set_up()
    person = Person(vitrine_server, f"Docalice{next(_numbers)}")
    context.add_cookies(person.cookies)
    with closing(person.visitor):
        yield person


def row(page: Page, name: str) -> Locator:
    return page.locator(".document-row", has_text=name)


def wait_ready(page: Page, name: str) -> None:
    expect(row(page, name).locator(".badge")).to_have_text("Ready", timeout=WORK_MS)


def test_from_an_upload_to_the_passage_on_its_page(alice: Person, page: Page) -> None:
    page.goto("/documents/")
    expect(page.get_by_text("No documents yet")).to_be_visible()
    expect_no_faults(page)
    shoot(page, "collections-empty")
    page.get_by_role("button", name="New collection").first.click()
    page.get_by_label("Name", exact=True).fill("Glass")
    page.get_by_label("What is in it").fill("All that is known of it")
    expect_no_faults(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Glass")).to_be_visible()
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()
    expect_no_faults(page)
    shoot(page, "collection-empty")

    page.set_input_files(
        "[data-files]",
        {"name": "report.pdf", "mimeType": "application/pdf", "buffer": report()},
    )
    state = row(page, "report.pdf").locator(".badge")
    expect(state).to_be_visible()
    seen = {state.inner_text()}
    for _ in range(600):
        seen.add(state.inner_text())
        if "Ready" in seen:
            break
        page.wait_for_timeout(100)
    assert "Ready" in seen
    assert seen - {"Ready"}, "what went on before it was ready is shown"
    expect(page.locator("[data-voice]")).to_have_text("report.pdf is ready.")
    expect(row(page, "report.pdf")).to_contain_text("8 pages")

    page.get_by_role("searchbox").fill("zanzibar canary")
    hit = page.locator(".passage").first
    expect(hit).to_contain_text("zanzibar canary")
    expect_no_faults(page)
    shoot(page, "collection-search")
    hit.get_by_role("link").click()
    page.wait_for_url(re.compile(r"/documents/[0-9a-f-]{36}\?version=.*start=\d+&end=\d+"))
    mark = page.locator(".sheet__mark").first
    expect(mark).to_be_in_viewport()
    sheet = page.locator(".sheet", has=mark).first
    expect(sheet.locator("img")).to_be_visible(timeout=WORK_MS)
    # Pages that are far away are not drawn.
    assert page.locator(".sheet__picture").count() < 8
    expect(page.get_by_label("Page", exact=True)).not_to_have_value("1")
    expect_no_faults(page)
    shoot(page, "viewer-pdf")
    page.get_by_text("Text", exact=True).click()
    marked = page.locator(".viewer__words mark").first
    expect(marked).to_be_in_viewport()
    assert CANARY in "".join(page.locator(".viewer__words mark").all_inner_texts())
    expect_no_faults(page)
    shoot(page, "viewer-pdf-text")
    expect_no_sideways_scrolling(page)


def test_the_mark_lies_on_the_words(alice: Person, page: Page) -> None:
    """What is marked is where the letters are drawn: dark pixels, and only there."""
    collection = alice.collection()
    document = alice.bring(collection, "report.pdf", report(3, 2))
    page.goto(f"/documents/collections/{collection}")
    wait_ready(page, "report.pdf")
    text = alice.visitor.get(f"/api/documents/{document}/text").json()["text"]
    start = text.index(CANARY)
    page.goto(f"/documents/{document}?start={start}&end={start + len(CANARY)}")
    mark = page.locator(".sheet__mark")
    expect(mark).to_have_count(1)
    paper = page.locator(".sheet__paper", has=mark)
    expect(paper.locator("img")).to_be_visible(timeout=WORK_MS)
    box, whole = mark.bounding_box(), paper.bounding_box()
    assert box
    assert whole
    scale = whole["width"] / 612
    assert box["x"] - whole["x"] == pytest.approx(72 * scale, abs=4)
    line_pt = 792 - (680 - 16 * 19)
    assert box["y"] - whole["y"] < line_pt * scale < box["y"] + box["height"] - whole["y"] + 3
    expect(page.locator(".sheet:focus")).to_have_attribute("data-page", "2")


def test_bob_reads_and_charlie_finds_nothing(
    alice: Person, page: Page, vitrine_server: Site, browser: Browser
) -> None:
    collection = alice.collection()
    document = alice.bring(collection, "secret.md", f"# Birds\n\n{CANARY}\n".encode())
    others = [
        Person(vitrine_server, f"{name}{next(_numbers)}") for name in ("Docbob", "Doccharlie")
    ]
    page.goto(f"/documents/collections/{collection}")
    wait_ready(page, "secret.md")
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share this collection")
    expect(dialog.get_by_text("Only you.")).to_be_visible()
    dialog.get_by_label("E-mail address").fill("nobody-at-all@example.org")
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    dialog.get_by_label("E-mail address").fill(others[0].email)
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.locator("[data-accesses]")).to_contain_text(others[0].email)
    expect_no_faults(page)
    shoot(page, "share")
    for person, may_read in zip(others, (True, False), strict=True):
        with closing(browser.new_context(base_url=vitrine_server.url)) as theirs:
            theirs.add_cookies(person.cookies)
            tab = theirs.new_page()
            for path in (f"/documents/{document}", f"/documents/collections/{collection}"):
                response = tab.goto(path)
                assert response
                assert response.status == (200 if may_read else 404)
            if may_read:
                expect(row(tab, "secret.md")).to_be_visible()
                expect(tab.get_by_text("you may read it")).to_be_visible()
                expect(tab.get_by_text("Add files")).to_have_count(0)
                expect_no_faults(tab)
                tab.goto(f"/documents/{document}")
                expect(tab.locator(".viewer__words")).to_contain_text(CANARY)
            else:
                assert CANARY not in tab.content()
        person.visitor.close()


def test_a_file_that_cannot_be_read_says_why_and_a_new_version_heals_it(
    alice: Person, page: Page
) -> None:
    page.goto(f"/documents/collections/{alice.collection()}")
    broken = {"name": "report.pdf", "mimeType": "application/pdf", "buffer": report()[:900]}
    page.set_input_files("[data-files]", broken)
    failed = row(page, "report.pdf")
    expect(failed.locator(".badge")).to_contain_text("damaged", timeout=WORK_MS)
    expect(page.locator("[data-voice]")).to_contain_text("damaged")
    expect_no_faults(page)
    failed.get_by_role("button", name="Try again").click()
    expect(failed.locator(".badge")).to_contain_text("damaged", timeout=WORK_MS)
    failed.get_by_role("link", name="report.pdf").click()
    expect(page.get_by_text("Nothing of this file can be shown")).to_be_visible()
    expect_no_faults(page)
    shoot(page, "viewer-failed")
    page.go_back()
    failed.get_by_role("button", name="More for report.pdf").click()
    expect(page.get_by_role("menuitem", name="Open")).to_be_focused()
    expect_no_faults(page)
    with page.expect_file_chooser() as choosing:
        page.get_by_role("menuitem", name="New version").click()
    choosing.value.set_files({**broken, "buffer": report(2, 1)})
    wait_ready(page, "report.pdf")
    expect(failed).to_contain_text("version 2")


def test_a_folder_is_dropped_and_everything_in_it_comes(alice: Person, page: Page) -> None:
    page.goto(f"/documents/collections/{alice.collection()}")
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()
    page.evaluate(
        """() => {
          const file = (name, path) => ({
            isFile: true, name, fullPath: path,
            file: (found) => found(new File([`# ${name}\\n\\nWords of ${path}.`], name)),
          });
          const folder = (name, path, inside) => ({
            isFile: false, name, fullPath: path,
            createReader: () => {
              const left = [inside, []];
              return { readEntries: (found) => found(left.shift()) };
            },
          });
          const tree = folder("notes", "/notes", [
            file("a.md", "/notes/a.md"),
            file(".DS_Store", "/notes/.DS_Store"),
            folder("deep", "/notes/deep", [file("b.md", "/notes/deep/b.md")]),
          ]);
          const transfer = new DataTransfer();
          transfer.items.add(new File(["x"], "notes"));
          Object.defineProperty(transfer, "items", {
            value: [{ kind: "file", webkitGetAsEntry: () => tree }],
          });
          const { dataset } = document.documentElement;
          for (const kind of ["dragenter", "dragover", "drop"]) {
            const init = { dataTransfer: transfer, bubbles: true, cancelable: true };
            const event = new DragEvent(kind, init);
            document.body.dispatchEvent(event);
            if (kind === "dragover" && !("dragging" in dataset)) throw Error("not shown");
          }
        }"""
    )
    expect(page.locator(".document-row")).to_have_count(2, timeout=WORK_MS)
    for name in ("a.md", "b.md"):
        wait_ready(page, name)
    expect(page.locator("[data-uploads]")).to_be_hidden()
    expect(page.locator("html[data-dragging]")).to_have_count(0)


def paste(page: Page, place: str, name: str, text: str = "") -> bool:
    """A file, and perhaps a text, where the focus is; whether the browser is left to do it."""
    script = """([place, name, text]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["# Pasted\\n\\nWords."], name));
      if (text) transfer.setData("text/plain", text);
      const init = { clipboardData: transfer, bubbles: true, cancelable: true };
      return document.querySelector(place).dispatchEvent(new ClipboardEvent("paste", init));
    }"""
    left: bool = page.evaluate(script, [place, name, text])
    return left


def test_what_is_pasted_is_kept_renamed_tagged_and_deleted(alice: Person, page: Page) -> None:
    page.goto(f"/documents/collections/{alice.collection()}")
    page.locator(".document-search input").wait_for()
    assert paste(page, ".document-search input", "image.png"), "what is typed into is the browser's"
    assert paste(page, "body", "image.png", "a cell"), "a text and its picture are no file"
    assert not paste(page, "body", "pasted.md", "pasted.md"), "some systems give the name as text"
    wait_ready(page, "pasted.md")
    expect(page.locator(".document-row")).to_have_count(1)
    page.get_by_role("button", name="More for pasted.md").click()
    page.get_by_role("menuitem", name="Name and tags").click()
    dialog = page.get_by_role("dialog", name="Name and tags")
    dialog.get_by_label("Name", exact=True).fill("kept.md")
    dialog.get_by_label("Tags", exact=True).fill("old, glass, old")
    expect_no_faults(page)
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, "kept.md").locator(".tag")).to_have_text(["old", "glass"])
    shoot(page, "collection-one")
    page.get_by_role("button", name="More for kept.md").click()
    page.get_by_role("menuitem", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete this document?")
    question.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()


def test_a_long_text_is_read_from_the_middle_in_both_directions(alice: Person, page: Page) -> None:
    lines = [f"Line {number} is about 🏛 glass and not about sand." for number in range(4_000)]
    lines[2_000] = CANARY
    text = "\n".join(lines)
    collection = alice.collection()
    document = alice.bring(collection, "long.txt", text.encode())
    page.goto(f"/documents/collections/{collection}")
    # Its text is there before its passages are found.
    expect(row(page, "long.txt").locator(".badge")).to_contain_text("passages", timeout=WORK_MS)
    start = text.index(CANARY)
    page.goto(f"/documents/{document}?start={start}&end={start + len(CANARY)}")
    mark = page.locator(".viewer__words mark")
    expect(mark).to_have_text(CANARY)
    expect(mark).to_be_in_viewport()
    expect(page.locator("body")).not_to_contain_text("Line 0 is")
    for direction in (-1, 1):
        before = page.locator(".viewer__piece").count()
        # How far the end is depends on what was loaded on the way to the other one.
        for _ in range(100):
            page.mouse.wheel(0, 4000 * direction)
            page.wait_for_timeout(100)
            if page.locator(".viewer__piece").count() > before:
                break
        wait_for(page, f"document.querySelectorAll('.viewer__piece').length > {before}")
    shown = page.locator(".viewer__words").inner_text()
    numbers = [int(found) for found in re.findall(r"Line (\d+) is", shown)]
    expected = [n for n in range(numbers[0], numbers[-1] + 1) if n != 2_000]
    assert numbers == expected, "every line once, in order"
    assert numbers[0] < 1_700 < 2_500 < numbers[-1]
    expect_no_faults(page)


def test_the_server_goes_and_the_page_says_so(alice: Person, page: Page) -> None:
    collection = alice.collection()
    page.route("**/api/collections", lambda route: route.abort())
    page.goto("/documents/")
    expect(page.get_by_text("The collections could not be loaded")).to_be_visible()
    expect_no_faults(page)
    page.unroute("**/api/collections")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="Glass")).to_be_visible()
    page.goto(f"/documents/collections/{collection}")
    page.route("**/documents?name=*", lambda route: route.abort())
    file = {"name": "a.md", "mimeType": "text/markdown", "buffer": b"# Words\n\nMore words."}
    page.set_input_files("[data-files]", file)
    upload = page.locator(".upload")
    expect(upload).to_contain_text("The server cannot be reached.")
    expect_no_faults(page)
    shoot(page, "upload-failed")
    page.unroute("**/documents?name=*")
    upload.get_by_role("button", name="Try again").click()
    wait_ready(page, "a.md")
    expect(page.locator("[data-uploads]")).to_be_hidden()


def test_a_picture_is_shown_whether_its_words_could_be_read_or_not(
    alice: Person, page: Page
) -> None:
    data = io.BytesIO()
    Image.new("RGB", (640, 400), "teal").save(data, "PNG")
    document = alice.bring(alice.collection(), "teal.png", data.getvalue())
    page.goto(f"/documents/{document}")
    picture = page.locator(".sheet__picture")
    expect(picture).to_be_visible(timeout=WORK_MS)
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [640, 400]
    # There is no word in it, so it fails; the page comes to know it by itself.
    expect(page.locator(".notice--danger")).to_be_visible(timeout=WORK_MS)
    expect(picture).to_be_visible()
    expect_no_faults(page)
    shoot(page, "viewer-picture")


def test_the_sheets_of_a_workbook_are_gone_to_by_name(alice: Person, page: Page) -> None:
    collection = alice.collection()
    document = alice.bring(collection, "prices.xlsx", make_xlsx(400))
    page.goto(f"/documents/collections/{collection}")
    expect(row(page, "prices.xlsx").locator(".badge")).to_contain_text(
        re.compile("passages|Ready"), timeout=WORK_MS
    )
    page.goto(f"/documents/{document}")
    page.get_by_label("Go to").select_option("Dates")
    heading = page.get_by_role("heading", name="Dates")
    expect(heading).to_be_in_viewport()
    expect(page.get_by_label("Go to")).to_have_value("3")
    expect_no_faults(page)
    expect(page.get_by_role("cell", name="item 399")).to_be_visible()
    text = alice.visitor.get(f"/api/documents/{document}/text").json()["text"]
    start = text.index("| item 200")
    page.goto(f"/documents/{document}?start={start}&end={start + 60}")
    expect(page.locator("tr[data-marked]").first).to_contain_text("item 200")
    expect(page.locator("tr[data-marked]").first).to_be_in_viewport()
    expect_no_faults(page)
    shoot(page, "viewer-sheets")


def test_a_file_that_is_gone_says_so_and_its_text_is_still_there(
    alice: Person, page: Page, vitrine_server: Site
) -> None:
    collection = alice.collection()
    document = alice.bring(collection, "report.pdf", report(2, 1))
    page.goto(f"/documents/collections/{collection}")
    wait_ready(page, "report.pdf")
    version = alice.visitor.get(f"/api/documents/{document}").json()["live_version"]
    (vitrine_server.data_dir / "documents" / version.replace("-", "")).unlink()
    page.goto(f"/documents/{document}?start=10&end=40")
    problem = page.locator(".sheet__problem").first
    expect(problem).to_contain_text("The file of this document is gone.")
    expect_no_faults(page)
    shoot(page, "viewer-gone")
    page.get_by_text("Text", exact=True).click()
    expect(page.locator(".viewer__words")).to_contain_text(CANARY)
    expect(page.locator(".viewer__words mark")).to_be_in_viewport()


def test_an_upload_tells_how_far_it_is_and_is_stopped(alice: Person, page: Page) -> None:
    collection = alice.collection()
    page.goto(f"/documents/collections/{collection}")
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 400_000}
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.emulateNetworkConditions", slow)
    file = {"name": "long.txt", "mimeType": "text/plain", "buffer": b"Words. " * 500_000}
    page.set_input_files("[data-files]", file)
    upload = page.locator(".upload", has_text="long.txt")
    expect(upload).to_contain_text(re.compile(r"\d+ KiB of 3.3 MiB"))
    share = float(upload.get_by_role("progressbar").get_attribute("value") or 0)
    assert 0 < share < 1
    expect_no_faults(page)
    shoot(page, "uploading")
    upload.get_by_role("button", name="Leave out long.txt").click()
    expect(page.locator("[data-uploads]")).to_be_hidden()
    devtools.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    page.wait_for_timeout(500)
    answer = alice.visitor.get(f"/api/collections/{collection}/documents").json()
    assert answer["documents"] == []
    page.set_input_files("[data-files]", {**file, "buffer": b""})
    expect(upload).to_contain_text("The file is empty.")


def test_a_folder_is_chosen_with_the_keyboard(alice: Person, page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n\nWords.")
    (folder / ".hidden").write_text("nothing")
    (folder / "deep" / "b.md").write_text("# B\n\nWords.")
    # From now on: where it is only wanted with the key, the key may be there first.
    page.on("filechooser", lambda chooser: None)
    page.goto(f"/documents/collections/{alice.collection()}")
    page.get_by_label("Add files").focus()
    page.keyboard.press("Tab")
    with page.expect_file_chooser() as choosing:
        page.keyboard.press("Enter")
    choosing.value.set_files(folder)
    for name in ("a.md", "b.md"):
        wait_ready(page, name)
    expect(page.locator(".document-row")).to_have_count(2)
    shoot(page, "collection-two")


def test_an_address_that_is_ours_is_not_fetched(
    alice: Person, page: Page, vitrine_server: Site
) -> None:
    page.goto(f"/documents/collections/{alice.collection()}")
    page.get_by_role("button", name="Add by address").click()
    dialog = page.get_by_role("dialog", name="Add by address")
    dialog.get_by_label("Address of a page or file").fill(f"{vitrine_server.url}/healthz")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).not_to_be_empty(timeout=WORK_MS)
    expect(dialog).to_be_visible()
    expect_no_faults(page)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Nothing in here yet")).to_be_visible()

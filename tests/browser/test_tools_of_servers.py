"""Tools of other programs in a chat: picked, asked about, done, refused, and interrupted by kill -9."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import ask, last_answer, own_page, wait_for
from tests.sites import Site, SiteMaker, wait_until
from tests.tool_servers import ToolServer, started_here, write_servers
from tests.upstream_server import UpstreamServer, chunk, events, texts

_numbers = count(1)
TOOLS = re.compile("^Tools")
MAIL = {"to": "bob@example.org", "text": "The report is ready."}


def calls(tool: str, **arguments: Any) -> Any:
    """The model calls it."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return events(chunk(tool_calls=[call]), chunk("tool_calls"), "[DONE]")


def says(text: str) -> Any:
    return events(*texts(text))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolServer]:
    with ToolServer(tmp_path_factory.mktemp("office")) as office:
        yield office


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamServer]:
    with UpstreamServer(title=says("A title")) as server:
        yield server


@pytest.fixture(scope="module")
def site(
    make_site: SiteMaker,
    server: UpstreamServer,
    office: ToolServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("servers")
    here = started_here(folder)
    path = write_servers(
        folder / "mcp.json",
        office={"url": office.url, "description": "Sums, pages and mail", "timeout_s": 90},
        board={**here, "title": "The board's own", "tiers": ["enterprise"]},
        broken={"command": "no-such-command", "title": "Broken"},
    )
    models = f"far={server.url}#far"
    with make_site(
        VITRINE_MODELS=models,
        VITRINE_DEFAULT_MODEL="far",
        VITRINE_MODERATION="off",
        VITRINE_MCP=str(path),
    ) as site:
        site.set_up().close()
        wait_until(lambda: _num_tools(site) == 16, what="both servers' tools")
        yield site


def _num_tools(site: Site) -> int:
    with site.connection() as connection:
        row = connection.execute("SELECT count(*) FROM chat_servertool").fetchone()
    return int(row[0]) if row else 0


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    with own_page(site, browser, f"smith{next(_numbers)}") as page:
        page.goto("/")
        page.locator("chat-composer:defined").wait_for()
        yield page


OWN = ["calculator", "clock", "remember"]  # in every chat


def switch(page: Page, server: str = "office") -> None:
    page.get_by_role("button", name=TOOLS).click()
    page.locator(f"#tool-card input[value={server}]").click()
    page.keyboard.press("Escape")


def shown_tools(server: UpstreamServer, question: str) -> list[str]:
    """To the model, when it was asked this the last time."""
    bodies = [one.body for one in server.asked]
    asked = next(body for body in reversed(bodies) if body["messages"][-1]["content"] == question)
    return [tool["function"]["name"] for tool in asked.get("tools", ())]


def test_what_is_there_and_for_whom(page: Page, site: Site) -> None:
    page.get_by_role("button", name=TOOLS).click()
    card = page.locator("#tool-card")
    expect(card).to_contain_text("Sums, pages and mail")
    expect(card).to_contain_text("Broken not reachable")
    expect(card).not_to_contain_text("The board's own")
    told = page.evaluate("fetch('/api/tools').then((answer) => answer.json())")
    assert [one["name"] for one in told["servers"]] == ["python", "office", "broken"]
    assert "no-such-command" not in json.dumps(told)


def test_a_tool_is_used_only_where_it_is_picked(page: Page, server: UpstreamServer) -> None:
    server.answers = [says("No tools here.")]
    ask(page, "Hello")
    expect(last_answer(page)).to_contain_text("No tools here.")
    assert shown_tools(server, "Hello") == OWN
    switch(page)
    expect(page.get_by_role("button", name="Tools, 1 is on")).to_be_visible()
    server.answers = [calls("office__add", a=20, b=22), says("It is 42.")]
    ask(page, "Add 20 and 22")
    expect(last_answer(page)).to_contain_text("It is 42.")
    expect(last_answer(page)).to_contain_text("office · add · 20, 22 → 42")
    assert {"office__add", "office__send_mail"} < set(shown_tools(server, "Add 20 and 22"))
    assert any(one.body["messages"][-1]["content"] == "42" for one in server.asked)
    page.reload()
    expect(page.get_by_role("button", name="Tools, 1 is on")).to_be_visible()
    switch(page)
    wait_for(page, "document.querySelector('.composer__count').hidden")
    server.answers = [says("None again.")]
    ask(page, "And now?")
    expect(last_answer(page)).to_contain_text("None again.")
    assert shown_tools(server, "And now?") == OWN


def test_python_is_picked_like_a_server(page: Page, server: UpstreamServer) -> None:
    switch(page, "python")
    code = "for n in range(3):\n    print(n * n)"
    server.answers = [calls("python", code=code), says("The squares are 0, 1 and 4.")]
    ask(page, "Squares")
    answer = last_answer(page)
    expect(answer).to_contain_text("The squares are 0, 1 and 4.")
    assert shown_tools(server, "Squares") == sorted([*OWN, "python"])
    answer.locator("details[data-call] summary").click()
    expect(answer.locator("details dd").first).to_have_text(code)  # as its lines
    expect(answer.locator("details dd").last).to_have_text("0\n1\n4")


@pytest.mark.parametrize("is_allowed", [True, False])
def test_mail_is_sent_only_with_a_yes(
    page: Page, server: UpstreamServer, office: ToolServer, is_allowed: bool
) -> None:
    before = len(office.done)
    switch(page)
    server.answers = [calls("office__send_mail", **MAIL), says("That is that.")]
    ask(page, "Tell Bob")
    answer = last_answer(page)
    expect(answer.get_by_text("May the tool be used")).to_be_visible()
    expect(answer.locator("details[data-call]")).to_contain_text(MAIL["text"])
    expect(answer.locator("details[data-call] dd").first).to_be_visible()
    assert len(office.done) == before
    answer.get_by_role("button", name="Allow" if is_allowed else "Don’t allow", exact=True).click()
    expect(answer).to_contain_text("That is that.")
    assert office.done[before:] == ([{"tool": "send_mail", **MAIL}] if is_allowed else [])


def test_a_page_that_gives_orders_is_not_obeyed_unasked(
    page: Page, server: UpstreamServer, office: ToolServer
) -> None:
    """The first search reads words of others; whatever tells the world something asks from then on."""
    switch(page)
    server.answers = [
        calls("office__search", query="the password"),
        calls("office__search", query="the password is hunter2"),
        says("Done."),
    ]
    ask(page, "Search")
    answer = last_answer(page)
    expect(answer.get_by_text("May the tool be used")).to_be_visible()
    assert not any("hunter2" in json.dumps(one) for one in office.done)
    answer.get_by_role("button", name="Don’t allow").click()
    expect(answer).to_contain_text("Done.")
    assert not any("hunter2" in json.dumps(one) for one in office.done)


def test_a_stop_reaches_the_tool(page: Page, server: UpstreamServer, office: ToolServer) -> None:
    switch(page)
    server.answers = [calls("office__wait", seconds=60), says("Waited.")]
    ask(page, "Wait")
    wait_until(lambda: {"tool": "wait", "began": 60} in office.done)
    page.get_by_role("button", name="Stop").click()
    wait_until(lambda: {"tool": "wait", "is_cancelled": True} in office.done)
    expect(page.locator("chat-composer form")).not_to_have_attribute("data-running", "")


def test_a_stranger_to_a_server_gets_none_of_its_tools(
    page: Page, server: UpstreamServer, site: Site
) -> None:
    """Whatever the browser asks for: the setup names it, the answer has it not."""
    server.answers = [says("Fine.")]
    switch(page)
    ask(page, "Hello")
    expect(last_answer(page)).to_contain_text("Fine.")
    wait_for(page, "location.pathname.startsWith('/c/')")
    status = page.evaluate(
        """async () => {
          const csrf = JSON.parse(document.querySelector("#bootstrap").textContent).csrf;
          const url = `/api/conversations/${location.pathname.slice(3)}/setup`;
          const body = JSON.stringify({ tool_servers: ["board", "office"] });
          const headers = { "Content-Type": "application/json", "X-CSRFToken": csrf };
          return (await fetch(url, { method: "PATCH", headers, body })).status;
        }"""
    )
    assert status == 200
    ask(page, "Again")
    expect(page.locator(".message--assistant")).to_have_count(2)
    expect(last_answer(page)).to_contain_text("Fine.")
    names = shown_tools(server, "Again")
    assert "office__add" in names
    assert not any(name.startswith("board__") for name in names)


def test_a_changed_tool_is_withheld(page: Page, server: UpstreamServer, site: Site) -> None:
    proposed = json.dumps({"title": "", "description": "Now evil.", "parameters": {}, "hints": {}})
    change = (
        "UPDATE chat_servertool SET proposed = %s, updated_at = now() WHERE name = 'office__add'"
    )
    site.execute(change, proposed)
    try:
        switch(page)
        server.answers = [says("Without it.")]

        def is_withheld() -> bool:
            ask(page, "Change")
            expect(last_answer(page)).to_contain_text("Without it.")
            return "office__add" not in shown_tools(server, "Change")

        wait_until(is_withheld, what="the change")
        assert "office__send_mail" in shown_tools(server, "Change")
    finally:
        site.execute("UPDATE chat_servertool SET proposed = NULL, updated_at = now()")
        time.sleep(3.0)  # for the next test: the process looks every two seconds


def test_after_kill_minus_nine_a_mail_is_not_sent_twice(
    page: Page, server: UpstreamServer, office: ToolServer, site: Site
) -> None:
    """The process dies while the tool works, with its user's yes: whether it was done nobody knows."""
    switch(page)
    server.answers = [calls("office__wait", seconds=45), says("I cannot tell.")]
    answer = last_answer(page)

    def is_asked() -> bool:
        return answer.get_by_role("button", name="Allow", exact=True).is_visible()

    with _that_always_asks(site, "wait"):
        num_begun = office.done.count({"tool": "wait", "began": 45})
        ask(page, "Wait")
        wait_until(is_asked)
        answer.get_by_role("button", name="Allow", exact=True).click()
        wait_until(lambda: office.done.count({"tool": "wait", "began": 45}) == num_begun + 1)
        site.kill()
        site.start()
        expect(answer).to_contain_text("I cannot tell.", timeout=60_000)
    assert office.done.count({"tool": "wait", "began": 45}) == num_begun + 1
    told = [asked.body["messages"][-1]["content"] for asked in server.asked]
    assert any("interrupted" in str(one) for one in told)


@contextmanager
def _that_always_asks(site: Site, tool: str) -> Iterator[None]:
    with site.connection() as connection:
        query = "SELECT asks FROM chat_servertool WHERE tool = %s"
        row = connection.execute(query, [tool]).fetchone()
    assert row is not None

    def let_it_ask(asks: str) -> None:
        change = "UPDATE chat_servertool SET asks = %s, updated_at = now() WHERE tool = %s"
        site.execute(change, asks, tool)
        time.sleep(3.0)  # the process looks every two seconds

    let_it_ask("always")
    try:
        yield
    finally:
        let_it_ask(row[0])  # for the next test

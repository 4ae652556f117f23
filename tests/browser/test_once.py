"""Forms of whole pages are sent once, however often their button is pressed."""

from playwright.sync_api import BrowserContext, Page, Route

# Twice in half a second, while the server has not answered.
PRESS = """() => {
  const button = document.querySelector("main form button");
  for (const ms of [0, 400]) setTimeout(() => button.click(), ms);
}"""


def test_a_form_is_sent_once_while_the_server_is_slow(reader: BrowserContext, page: Page) -> None:
    sent: list[Route] = []

    def keep_waiting(route: Route) -> None:
        sent.append(route)

    page.goto("/settings/assistants/new")
    page.fill("main [name=name]", "Nina")
    page.route("**/settings/assistants/new", keep_waiting)
    page.evaluate(PRESS)
    page.wait_for_timeout(1000)
    assert len(sent) == 1
    sent[0].continue_()
    page.wait_for_url("**/settings/assistants")

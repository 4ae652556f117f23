"""However a text comes, in the end it looks as one that came whole; whatever a model may write."""

import random

from playwright.sync_api import Page

from tests.browser.pages import wait_for
from tests.browser.scripted import ScriptedChat

NUM_TEXTS = 80
# What begins, ends or breaks a construct, and what looks like a blank or cannot be seen.
PIECES = [
    *(
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\r",
        "\r\n",
        "word",
        " café",
        "こんにちは",
        "12",
        "1. ",
        "- ",
    ),
    *("*", "**", "_", "`", "```", "~~~", "#", "> ", "|", "|-|-|", "--", "==", "!", "\\", ":"),
    *(
        "[1]",
        "[1][2]",
        "[9, 1]",
        "[1](",
        "(",
        ")",
        "[",
        "]",
        "[a]: b",
        "<",
        "</",
        ">",
        "<b>",
        "&",
        "&amp;",
        "http://a.b",
        "$",
        "$$",
    ),
    *("\\(", "\\)", "x^2", "\x00", "\x07", "\x0b", "\x1b", "\x1f", "\x85", "\u2028", "\u202e"),
    "\ufffd",
]
STREAM_AND_WHOLE = """
  async ([text, cuts]) => {
    const { Prose } = await import("/static/js/prose.js");
    document.querySelector("#chat").removeAttribute("data-empty");
    const roots = [0, 1].map(() => document.createElement("div"));
    document.querySelector("message-list").append(...roots);
    const [streamed, whole] = roots.map((root) => new Prose(root));
    const source = { document: "d", version: "v", name: "a", page_label: "", context: "" };
    const numbers = [1, 2].map((number) => [number, { answer: "a", excerpt: { ...source, number } }]);
    const citing = { numbers: new Map(numbers), isChecked: true };
    for (const cut of cuts) {
      streamed.update(text.slice(0, cut), false, citing);
      if (cut % 3 === 0) await new Promise((done) => setTimeout(done));
    }
    streamed.update(text, true, citing);
    whole.update(text, true, citing);
    const shapes = roots.map((root) => (root.normalize(), root.innerHTML));
    for (const root of roots) root.remove();
    return shapes;
  }
"""


def test_whatever_a_model_writes(chat: ScriptedChat, page: Page) -> None:
    page.goto("/")
    page.locator("status-bar:defined").wait_for(state="attached")
    page.evaluate(STREAM_AND_WHOLE, ["$x$", []])
    wait_for(page, "[...document.styleSheets].some(s => s.href?.includes('katex'))")
    for seed in range(NUM_TEXTS):
        draw = random.Random(seed)
        text = "".join(draw.choices(PIECES, k=draw.randint(3, 80)))
        cuts = sorted(draw.choices(range(len(text)), k=draw.randint(0, 25)))
        streamed, whole = page.evaluate(STREAM_AND_WHOLE, [text, cuts])
        assert streamed == whole, (seed, text)

"""No text takes a time by the square of its length, whatever it is made of: all that reads what people,
pages and models write is given half the longest message that there may be."""

import base64
import random
import string
import time
from collections.abc import Callable

import pytest

from chat.document_prompt import row_text
from chat.events import Delta
from chat.holding_back import HoldBack, context_of
from chat.transfer.formats import openwebui
from inference import call_forms
from moderation.builtin_rules import BUILT_IN
from moderation.heads.features import n_grams
from moderation.normalising import judged
from moderation.rules import Rules
from moderation.windows import read
from retrieval.chunking import ChunkSettings, chunks
from retrieval.excerpts import Excerpt
from retrieval.parsing.formats.markdown import add_markdown
from retrieval.parsing.formats.plain import add_paragraphs
from retrieval.parsing.kinds import _HTML_TAG, _MARKUP
from retrieval.parsing.limits import Limits
from retrieval.parsing.writer import Writer

NUM_CHARS = 100_000  # half the longest message, which by the square takes half a minute and more
MAX_S = 5.0  # of the processor: half a second where it is slow

EXCERPT = Excerpt(1, "d", "v", "c", "name", 0, 1)
RULES = Rules(BUILT_IN)


def held_back(text: str) -> None:
    hold = HoldBack()
    pieces = hold.hear(Delta(text, 0)) + hold.rest()
    context_of("".join(piece.text for piece in pieces))


def chunked(text: str, add: Callable[[str, Writer], None]) -> None:
    writer = Writer(Limits())
    add(text + "\nwords", writer)
    chunks(writer.parsed("text/plain", "a.txt"), lambda part: len(part) // 4 + 2, ChunkSettings())


def imported(text: str) -> None:
    for said in (
        text,
        f'<details type="tool_calls" {text}></details>',
        f"{DETAILS}{text}</details>",
    ):
        message = {"role": "assistant", "content": said}
        openwebui.read({"chat": {"history": {"messages": {"a": message}}}})


DETAILS = '<details type="reasoning">'


def called(text: str) -> None:
    for family in (call_forms.HERMES, call_forms.LLAMA, call_forms.MISTRAL, call_forms.DEEPSEEK):
        family.read(f"<function=a>{text}", {})
        family.read(f"function<｜tool▁sep｜>{text}", {})


READERS: dict[str, Callable[[str], object]] = {
    "pieces for classifiers": lambda text: list(read(text)),
    "rules": RULES.find,
    "normalised": judged,
    "n-grams": lambda text: n_grams([text]),
    "held back": held_back,
    "prose": lambda text: chunked(text, add_paragraphs),
    "markdown": lambda text: chunked(text, add_markdown),
    "markdown's head": lambda text: chunked(f"---\ntitle:{text}\n---\n", add_markdown),
    "kind of file": lambda text: (_MARKUP.match(text[:65_536]), _HTML_TAG.search(text[:65_536])),
    "passage": lambda text: row_text(EXCERPT, text),
    "import": imported,
    "tool call": called,
}
_RANDOM = random.Random(7)
_MIXED = "".join(_RANDOM.choices(string.printable + "。！“”中é\u0301", k=NUM_CHARS))
RUNS = {
    **{
        f"runs of {run!r}": run
        for run in (*".!?…\"'”)](<[{|-_*#`=~:;,/\\&%+@", " ", "\n", "\t", "█")
    },
    **{
        f"runs of {run!r}": run
        for run in ("a", "b", "A", "Z", "7", "0", "中", "。", "\u0301", "\u200b")
    },
    **{
        f"runs of {run!r}": run
        for run in (" \n", "\n ", "a ", "a. ", "?)", "_ ", "1 ", "12 ", "01", "- ")
    },
    **{
        f"runs of {run!r}": run
        for run in ("| ", "|-", "-|", ".- ", "a=", '"+', "\\n", "%20", "&#1;")
    },
    **{
        f"runs of {run!r}": run
        for run in ("<a ", "</a", "<!---->", "[1", "<parameter=", "a@", "a.")
    },
}
TEXTS = {
    **{name: run * (NUM_CHARS // len(run)) for name, run in RUNS.items()},
    "a dotted line behind words": "The contents are as follows " + "." * NUM_CHARS,
    "pig Latin": "day bay kay " + "b" * NUM_CHARS + "aay",
    "base64": base64.b64encode(_RANDOM.randbytes(NUM_CHARS * 3 // 4)).decode(),
    "mixed": _MIXED,
    "spaces behind a mark": "<" + " " * NUM_CHARS + "documents",
    "spaces in a table's rule": "|a|\n" + " " * NUM_CHARS + "|-x",
    "a table's rule that is none": "|a|\n|" + "-" * NUM_CHARS + "x",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_reading_takes_a_time_linear_in_the_text(text: str) -> None:
    for name, reader in READERS.items():
        start_s = time.process_time()
        reader(text)
        took_s = time.process_time() - start_s
        assert took_s < MAX_S, f"{name}: {took_s:.1f} s"

"""Text becomes chunks: nothing is lost, nothing is too large, nothing is cut in two that is one."""

import re
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.chunking import Chunk, ChunkSettings, chunks
from retrieval.parsing.formats.markdown import blocks_of
from retrieval.parsing.pages import Block, Page, Parsed
from retrieval.parsing.writer import clean

SMALL = ChunkSettings(max_tokens=40, overlap_tokens=12, min_tokens=8, max_context_tokens=12)


def words_and_signs(text: str) -> int:
    """A tokenizer that is easily reckoned with: [CLS] and [SEP], a token for each word or sign, and
    one for each four letters of long words."""
    pieces = re.findall(r"\w+|[^\w\s]", text)
    return 2 + sum(-(-len(piece) // 4) for piece in pieces)


def unknown_words(text: str) -> int:
    """Words are one token, however long: what WordPiece says of those that it does not know."""
    return 2 + len(text.split())


def of_bytes(text: str) -> int:
    return len(text.encode())


def parsed_text(text: str, kind: str = "text") -> Parsed:
    text = clean(text)
    blocks = (Block(0, len(text), kind),) if text else ()
    return Parsed(text, (Page(1, 0, len(text)),), blocks, "", "text/plain", "")


def parsed_markdown(text: str) -> Parsed:
    blocks = tuple(Block(*block) for block in blocks_of(text))
    return Parsed(text, (Page(1, 0, len(text)),), blocks, "", "text/markdown", "")


def check(
    made: list[Chunk], parsed: Parsed, count: Callable[[str], int], size: ChunkSettings
) -> None:
    text = parsed.text
    covered = bytearray(len(text))
    for number, chunk in enumerate(made, 1):
        assert chunk.number == number
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.num_tokens == count(chunk.text) <= size.max_tokens
        assert len(chunk.text) <= size.max_chars
        assert 1 <= chunk.first_page <= chunk.last_page <= len(parsed.pages)
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    assert all(text[place].isspace() for place in range(len(text)) if not covered[place])
    for before, after in pairwise(made):
        assert before.start < after.start
        assert before.end < after.end
        if after.start < before.end:
            shared = text[after.start : before.end]
            assert count(shared) - count("") <= size.overlap_tokens + 2
    ends = {0, *(found.end() for found in regex.finditer(r"\X", text))}
    for chunk in made:
        for place in (chunk.start, chunk.end):
            assert place in ends or is_in_a_giant(text, place, size)


def is_in_a_giant(text: str, place: int, size: ChunkSettings) -> bool:
    """Of one character that is more than a chunk holds, there is no good place."""
    inside = next(f for f in regex.finditer(r"\X", text) if f.start() < place < f.end())
    return len(inside[0].encode()) > size.max_tokens // 2 - 2


ALPHABETS = st.sampled_from(
    [
        "ab .\n",
        "ab. !?\n\t\"')",
        "窓硝子は透明。！？、\n ",
        "กระจกใส่น้ำ ่\n",
        "नमस्ते दुनिया। क्षत्रिय\n",
        "e\u0301\u0308\u200d👩👨‍👧🇩🇪🇫🇷👍🏽 .\n",
        "각ᄀ\u1161\u11a8 \u0600\u06dd12.\n",
        "|- #`\nab1.",
        "\x1c\u2028\xa0\u3000\u200b ab.\n",
    ]
)
TEXTS = ALPHABETS.flatmap(lambda letters: st.text(st.sampled_from(letters), max_size=600))
SETTINGS = st.builds(
    lambda most, overlap, least, context, chars: ChunkSettings(
        max_tokens=most,
        overlap_tokens=most * overlap // 10,
        min_tokens=most * least // 10,
        max_context_tokens=most * context // 10,
        max_chars=chars,
    ),
    st.integers(24, 80),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 5),
    st.integers(60, 400),
)
COUNTERS = st.sampled_from([words_and_signs, unknown_words, of_bytes])


@settings(max_examples=150)
@given(TEXTS, st.sampled_from(["text", "code", "list", "table"]), COUNTERS, SETTINGS)
def test_nothing_is_lost_or_too_large_or_cut_in_two(
    text: str, kind: str, count: Callable[[str], int], size: ChunkSettings
) -> None:
    parsed = parsed_text(text, kind)
    check(chunks(parsed, count, size), parsed, count, size)


LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three",
        "Some words of a sentence. And others!",
        "- item",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 |",
        "```",
        "x = 1",
        "",
        "",
        "word " * 70,
    ]
)


@settings(max_examples=150)
@given(st.lists(LINES, max_size=40), COUNTERS, SETTINGS)
def test_it_holds_for_documents_of_every_structure(
    lines: list[str], count: Callable[[str], int], size: ChunkSettings
) -> None:
    parsed = parsed_markdown("\n".join(lines))
    check(chunks(parsed, count, size), parsed, count, size)


@given(TEXTS, st.lists(st.integers(0, 600), max_size=8))
def test_it_holds_where_blocks_and_pages_leave_gaps(text: str, cuts: list[int]) -> None:
    text = clean(text)
    places = sorted({min(cut, len(text)) for cut in cuts})
    pairs = [(start, end) for start, end in pairwise(places)][::2]
    blocks = tuple(Block(start, end, "text") for start, end in pairs)
    parsed = Parsed(text, (Page(1, 0, len(text)),), blocks, "", "text/plain", "")
    made = chunks(parsed, of_bytes, SMALL)
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in made)
    covered = {place for chunk in made for place in range(chunk.start, chunk.end)}
    assert all(text[place].isspace() for place in range(len(text)) if place not in covered)


@pytest.mark.parametrize("count", [unknown_words, of_bytes])
@pytest.mark.parametrize("letters", ["x", "ガ", "🇩🇪", "e\u0301\u0302"])
def test_a_megabyte_without_a_space_is_cut(count: Callable[[str], int], letters: str) -> None:
    parsed, size = parsed_text(letters * (1_000_000 // len(letters.encode()))), ChunkSettings()
    began = time.process_time()
    made = chunks(parsed, count, size)
    assert time.process_time() - began < 20  # a second on an idle machine
    assert made[0].start == 0
    assert made[-1].end == len(parsed.text)
    assert all(before.end >= after.start for before, after in pairwise(made))
    assert all(count(chunk.text) <= size.max_tokens for chunk in made)
    assert all(len(chunk.text) <= size.max_chars for chunk in made)
    parsed = parsed_text(letters * 1000)
    check(chunks(parsed, count, SMALL), parsed, count, SMALL)


def test_chunks_are_filled() -> None:
    text = " ".join(f"This is sentence number {number} of many." for number in range(400))
    made = chunks(parsed_text(text), words_and_signs, SMALL)
    assert min(chunk.num_tokens for chunk in made[:-1]) > 0.6 * SMALL.max_tokens


def test_sentences_stay_whole_and_are_what_chunks_share() -> None:
    text = " ".join(f"This is sentence number {number} of many." for number in range(50))
    made = chunks(parsed_text(text), words_and_signs, SMALL)
    assert all(re.fullmatch(r"This is .* of many\.", chunk.text) for chunk in made)
    for before, after in pairwise(made):
        assert after.start < before.end  # they share a sentence


@pytest.mark.parametrize(
    "text",
    [
        "She met Dr. Weber and J. S. Bach at 3.15 p.m. on the bridge.",
        "It cost 1.50 e.g. in Spain.",
        "„Wirklich?“, fragte sie.",
    ],
)
def test_not_every_full_stop_ends_a_sentence(text: str) -> None:
    from retrieval.chunking.pieces import pieces

    assert len(pieces(text, Block(0, len(text), "text"))) <= 2


def test_languages_without_spaces_end_sentences_too() -> None:
    text = "ガラスは透明です。光を通します！本当ですか？「はい。」そうです。" * 20
    made = chunks(parsed_text(text), of_bytes, ChunkSettings(max_tokens=200, overlap_tokens=0))
    assert all(chunk.text[-1] in "。！？」" for chunk in made)


def test_a_chunk_stays_under_its_headings() -> None:
    body = " ".join(f"Sentence number {number} is here." for number in range(12))
    parsed = parsed_markdown(f"# Top\n\n## One\n\n{body}\n\n## Two\n\n{body}\n\n# Next\n\n{body}")
    made = chunks(parsed, words_and_signs, SMALL)
    check(made, parsed, words_and_signs, SMALL)
    for chunk in made:
        assert chunk.text.count("## ") <= 1
        assert not re.search(r"\S\n\n# Next", chunk.text)
        assert not re.search(r"#+ \w+$", chunk.text)  # no heading without what it is of
    assert {chunk.headings for chunk in made} == {
        (),
        ("Top", "One"),
        ("Top",),
        ("Top", "Two"),
        ("Next",),
    }
    inner = next(chunk for chunk in made if chunk.headings == ("Top", "Two"))
    assert inner.context == "Top\nTwo"


def test_tiny_sections_go_together() -> None:
    parsed = parsed_markdown("\n\n".join(f"## Term {n}\n\nShort." for n in range(6)))
    made = chunks(parsed, words_and_signs, ChunkSettings(max_tokens=100, overlap_tokens=0))
    assert len(made) == 1


@pytest.mark.parametrize(("level", "expected"), [("#", 2), ("##", 2), ("###", 1)])
def test_a_tiny_section_is_not_lost_in_a_long_one_that_follows(level: str, expected: int) -> None:
    """What it says would be a sentence of many. Below it, the long one is what it introduces."""
    long = " ".join(f"Sentence number {number} is here." for number in range(30))
    parsed = parsed_markdown(f"## Office\n\nIt opens at eight.\n\n{level} Cranes\n\n{long}")
    made = chunks(parsed, words_and_signs, ChunkSettings())
    assert len(made) == expected
    assert made[0].text.startswith("## Office\n\nIt opens at eight.")


@pytest.mark.parametrize("levels", [("##", "###"), ("#", "##"), ("##", "###", "####")])
def test_a_tiny_section_is_not_lost_in_what_stands_below_the_next_heading(
    levels: tuple[str, ...],
) -> None:
    long = " ".join(f"Sentence number {number} is here." for number in range(30))
    headings = "\n\n".join(f"{level} Cranes {level}" for level in levels)
    parsed = parsed_markdown(f"## Office\n\nIt opens at eight.\n\n{headings}\n\n{long}")
    made = chunks(parsed, words_and_signs, ChunkSettings())
    assert made[0].text == "## Office\n\nIt opens at eight."
    assert len(made) == 2


@pytest.mark.parametrize("level", ["#", "##", "###"])
def test_the_end_of_a_long_section_stays_apart_from_the_next_one(level: str) -> None:
    """Its headings, and its table's, are not those of what follows."""
    rows = "\n".join(f"| item {number} | {number} |" for number in range(40))
    long = " ".join(f"Sentence number {number} is here." for number in range(22))
    parsed = parsed_markdown(
        f"## Prices\n\n| Item | Price |\n| --- | --- |\n{rows}\n\n{level} Cranes\n\n{long}"
    )
    *prices, cranes = chunks(parsed, words_and_signs, ChunkSettings(max_tokens=256))
    assert [chunk.text.count("| item") for chunk in prices] == [39, 1]
    assert cranes.text.startswith(f"{level} Cranes")
    assert "Item" not in cranes.context


def test_rows_of_a_table_know_their_header() -> None:
    rows = "\n".join(f"| item {number} | {number} |" for number in range(40))
    parsed = parsed_markdown(f"# Prices\n\n| Item | Price |\n| --- | --- |\n{rows}")
    size = ChunkSettings(max_tokens=80, overlap_tokens=20, max_context_tokens=30, min_tokens=8)
    made = chunks(parsed, words_and_signs, size)
    check(made, parsed, words_and_signs, size)
    assert made[0].context == ""
    for chunk in made[1:]:
        assert chunk.kind == "table"
        assert chunk.context == "Prices\n| Item | Price |"
        assert chunk.text.startswith("| item")
        assert chunk.text.endswith("|")
        assert chunk.num_tokens + words_and_signs(chunk.context) - 2 <= size.max_tokens


def test_code_is_cut_between_its_statements() -> None:
    code = "\n\n".join(f"def f{n}():\n    a = {n}\n\n    return a" for n in range(12))
    made = chunks(parsed_text(code, "code"), words_and_signs, SMALL)
    assert all(chunk.text.startswith("def f") and chunk.text.endswith("return a") for chunk in made)


def test_a_chunk_names_its_pages() -> None:
    text = "First page.\n\nSecond page.\n\nThird page."
    pages = (Page(1, 0, 11), Page(2, 13, 25), Page(3, 27, 38))
    parsed = Parsed(text, pages, (), "", "application/pdf", "")
    (whole,) = chunks(parsed, words_and_signs, ChunkSettings())
    assert (whole.first_page, whole.last_page) == (1, 3)
    each = chunks(parsed, of_bytes, ChunkSettings(14, 0, 0, 0))
    assert [(chunk.first_page, chunk.last_page) for chunk in each] == [(1, 1), (2, 2), (3, 3)]


def test_settings_that_cannot_be_met_are_refused() -> None:
    for wrong in ({"max_tokens": 4}, {"overlap_tokens": -1}, {"max_chars": 1}):
        with pytest.raises(ValueError):
            ChunkSettings(**wrong)


def test_a_long_text_is_cut_in_a_moment() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text) // 4 + 1

    sentence = "The glazier cut pane number {} with a steady hand, and looked at it. "
    text = "\n\n".join("".join(sentence.format(n * 10 + m) for m in range(6)) for n in range(950))
    assert len(text) > 400_000
    began = time.process_time()
    made = chunks(parsed_text(text), count, ChunkSettings())
    assert time.process_time() - began < 5  # 0.1 s on an idle machine
    assert calls < 2 * (6 * 950 + len(made))

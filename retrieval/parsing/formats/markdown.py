"""Markdown: kept to the character, with its headings, fences, tables and lists as blocks."""

import re
from collections.abc import Iterator

from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, clean

_HEADING = re.compile(r" {0,3}(#{1,6})(\s|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TABLE_RULE = re.compile(r"\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?$")
_ITEM = re.compile(r"\s{0,12}([-*+]|\d{1,9}[.)])\s+\S")
_RULE = re.compile(r"---[ \t]*")
_FRONT_LINE = re.compile(r"[ \t]|#|-(?:\s|$)|[^\s:][^:]*:(?:\s|$)|$")
_MAX_FRONT_LINES = 200
_FRONT_TITLE = re.compile(r"title:\s*(\S.*)")
_FRONT_LANGUAGE = re.compile(r"lang(?:uage)?:\s*[\"']?([\w-]+)")

_Span = tuple[int, int, str, int]  # start, end, kind, level


def read(source: Source, writer: Writer) -> None:
    add_markdown(source.text, writer)


def add_markdown(text: str, writer: Writer) -> None:
    """A page of it, if there is a word."""
    text = clean(text).strip("\n").rstrip()
    if not text.strip():
        return
    front = _front_matter(text)
    _take_front_matter(front.split("\n"), writer)
    writer.page()
    writer.add_laid_out(text, _all_blocks(text, len(front)))


def _all_blocks(text: str, front_chars: int) -> Iterator[_Span]:
    if front_chars:
        yield 0, front_chars, "code", 0
    for start, end, kind, level in blocks_of(text[front_chars:]):
        yield front_chars + start, front_chars + end, kind, level


def _front_matter(text: str) -> str:
    """What the text says of itself, as YAML between two rules at its beginning, with these; "" where it
    says nothing."""
    first, *rest = text.split("\n", _MAX_FRONT_LINES)
    if not _RULE.fullmatch(first) or not rest or not rest[0].strip(" \t-"):
        return ""
    for number, line in enumerate(rest, 1):
        if _RULE.fullmatch(line):
            return "\n".join([first, *rest[:number]])
        if not _FRONT_LINE.match(line):
            return ""
    return ""


def _take_front_matter(lines: list[str], writer: Writer) -> None:
    titles, languages = (
        [found[1].rstrip() for line in lines if (found := wanted.match(line))]
        for wanted in (_FRONT_TITLE, _FRONT_LANGUAGE)
    )
    if titles:
        writer.title = _unquoted(titles[0])
    if languages:
        writer.language = languages[0]


def _unquoted(value: str) -> str:
    start, end = value[0] in "\"'", value[-1] in "\"'"
    return value[start : len(value) - end] if len(value) > 2 else value


def blocks_of(text: str) -> Iterator[_Span]:
    """Its blocks in order, as (start, end, kind, level); between them are empty lines only."""
    lines, starts = text.split("\n"), [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    index = 0
    while index < len(lines):
        if not lines[index].strip():
            index += 1
            continue
        kind, level, after = _block_at(lines, index)
        last = after - 1
        while not lines[last].strip():  # an unclosed fence ends with the text
            last -= 1
        yield starts[index], starts[last] + len(lines[last]), kind, level
        index = after


def _block_at(lines: list[str], index: int) -> tuple[str, int, int]:
    """Kind and level of the block that begins with this line, and the line behind it."""
    line = lines[index]
    if heading := _HEADING.match(line):
        return "heading", len(heading[1]), index + 1
    if fence := _FENCE.match(line):
        return "code", 0, _behind_fence(lines, index, fence[1])
    if _is_table(lines, index):
        return "table", 0, _behind(lines, index, "table")
    if _ITEM.match(line):
        return "list", 0, _behind(lines, index, "list")
    after = _behind(lines, index, "text")
    if after - index == 1 and after < len(lines) and (rule := _UNDERLINE.match(lines[after])):
        return "heading", 1 if rule[1].startswith("=") else 2, after + 1
    return "text", 0, after


def _behind_fence(lines: list[str], index: int, fence: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    for after in range(index + 1, len(lines)):
        if closing.match(lines[after]):
            return after + 1
    return len(lines)


def _behind(lines: list[str], index: int, kind: str) -> int:
    """A block of this kind ends with an empty line, or where another kind begins."""
    for after in range(index + 1, len(lines)):
        line = lines[after]
        if not line.strip() or _HEADING.match(line) or _FENCE.match(line):
            return after
        if kind == "table" and "|" not in line:
            return after
        if kind == "text" and (_ITEM.match(line) or _is_table(lines, after)):
            return after
        if kind == "text" and _UNDERLINE.match(line) and after == index + 1:
            return after
    return len(lines)


def _is_table(lines: list[str], index: int) -> bool:
    has_rule = index + 1 < len(lines) and "|" in lines[index + 1] and "-" in lines[index + 1]
    return "|" in lines[index] and has_rule and bool(_TABLE_RULE.match(lines[index + 1]))

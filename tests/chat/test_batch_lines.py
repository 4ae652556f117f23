"""Files of batches, however large: every line is looked at, and none is read as a whole file."""

import json
from pathlib import Path
from typing import Any

import pytest

from chat import batch_lines
from chat.batch_lines import MAX_BLANK_LINES, MAX_ERRORS, MAX_LINE_BYTES, MAX_LINES
from tests.chat.batch_client import CHAT, jsonl, line


def checked(path: Path, content: bytes) -> batch_lines.Checked:
    path.write_bytes(content)
    return batch_lines.check(path, CHAT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "requests"


def test_so_many_lines_and_no_more(path: Path) -> None:
    lines = [json.dumps(line(str(n))).encode() for n in range(MAX_LINES + 1)]
    most = checked(path, b"\n".join(lines[:-1]))
    assert (most.num_lines, most.errors, most.model) == (MAX_LINES, [], "endless")
    assert [e["code"] for e in checked(path, b"\n".join(lines)).errors] == ["too_many_tasks"]


def test_a_line_that_is_too_long_is_told_and_the_next_is_read(path: Path) -> None:
    def of(size_bytes: int) -> bytes:
        rest = size_bytes - len(json.dumps(line("long", {"x": ""})))
        return json.dumps(line("long", {"x": "x" * rest})).encode()

    right, long = of(MAX_LINE_BYTES), of(MAX_LINE_BYTES + 1)
    assert len(right) == MAX_LINE_BYTES
    assert checked(path, right).errors == []
    for content in (long, long * 3):
        found = checked(path, content + b"\n" + json.dumps(line("next")).encode())
        assert [(e["line"], e["code"]) for e in found.errors] == [(1, "line_too_long")]
        assert found.num_lines == 2


def test_errors_are_told_up_to_a_number(path: Path) -> None:
    found = checked(path, b"x\n" * 500)
    assert [e["line"] for e in found.errors] == list(range(1, MAX_ERRORS + 1))


def test_lines_that_name_several_models_have_none_together(path: Path) -> None:
    two = [line("a", {"model": "one"}), line("b", {"model": "two"})]
    assert checked(path, jsonl(two)).model == ""
    assert checked(path, jsonl([line("a", {"model": ["x"]})])).model == "['x']"


def test_what_is_done_is_left_out(path: Path) -> None:
    lines: list[Any] = [line("a"), " ", line("b"), line("c")]
    path.write_bytes(jsonl(lines))
    assert [(one.number, one.custom_id) for one in batch_lines.read(path, CHAT, {3})] == [
        (1, "a"),
        (4, "c"),
    ]


def test_blank_lines_are_none_and_not_endless(path: Path) -> None:
    lines = b"\n" * 900 + json.dumps(line("a")).encode() + b"\n" * 900
    assert (checked(path, lines).num_lines, checked(path, lines).errors) == (1, [])
    assert [read.number for read in batch_lines.read(path, CHAT, ())] == [901]
    endless = checked(path, b"\n" * (MAX_LINES + MAX_BLANK_LINES + 1))
    assert [error["code"] for error in endless.errors] == ["too_many_tasks", "empty_file"]

"""What is said of files that cannot be read is said in the reader's language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import translation

from chat.reading_words import reading_words

_FOLDER = Path(settings.BASE_DIR) / "retrieval"
_PIECES = {
    "what": ("1 page holds", "7 pages hold", "1 page is", "7 pages are"),
    "why": (
        "the program that reads it (tesseract) is not installed",
        "and the program that reads pictures of text (tesseract) is not installed",
    ),
}

# Pieces that the source does not put together.
_NONSENSE = re.compile(r"(is|are) no text|holds? damaged|and and|no text, the program")


def said_by_the_source() -> set[str]:
    """Sentences of the readers, with something in the place of each value."""
    paths = [*(_FOLDER / "parsing").rglob("*.py"), _FOLDER / "staging.py"]
    return {
        sentence
        for path in [*paths, _FOLDER / "version_leases.py"]
        for node in _strings(ast.parse(path.read_text()))
        for sentence in _filled(node)
        if sentence.endswith(".") and " " in sentence
    }


def _strings(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in ("Unreadable", "note"):
            yield from node.args
        elif isinstance(node, ast.Assign):
            yield node.value


def _name(function: ast.expr) -> str:
    return getattr(function, "id", "") or getattr(function, "attr", "")


def _filled(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if not isinstance(node, ast.JoinedStr):
        return []
    filled = [""]
    for piece in node.values:
        ends = _ends(piece)
        filled = [start + end for start in filled for end in ends]
    return filled


def _ends(piece: ast.expr) -> tuple[str, ...]:
    if isinstance(piece, ast.Constant):
        return (str(piece.value),)
    assert isinstance(piece, ast.FormattedValue)
    return _PIECES.get(getattr(piece.value, "id", ""), ("1,024",))


@pytest.mark.parametrize("language", ["de", "ar"])
def test_every_sentence_of_the_readers_is_translated(language: str) -> None:
    sentences = {one for one in said_by_the_source() if not _NONSENSE.search(one)}
    assert len(sentences) > 50
    with translation.override(language):
        assert not {one for one in sentences if reading_words(one) == one}


def test_numbers_and_names_come_along() -> None:
    with translation.override("de"):
        said = reading_words("Of the sheet “100 %” only the first 20,000 rows were read.")
    assert "100 %" in said
    assert "20,000" in said


def test_what_nobody_has_translated_stays() -> None:
    with translation.override("de"):
        assert reading_words("Something new.") == "Something new."
        assert reading_words("") == ""

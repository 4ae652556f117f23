"""Snippets: a piece of the text itself, with the places that the search means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.search_query import Unit
from chat.snippets import SNIPPET_CHARS, Highlighter


def hits(text: str, *units: Unit) -> list[str]:
    return [piece.text for piece in Highlighter(units).pieces(text) if piece.is_hit]


@given(st.text(max_size=400), st.lists(st.text(max_size=6), max_size=4))
def test_pieces_are_the_text_and_snippets_a_part_of_it(text: str, words: list[str]) -> None:
    highlighter = Highlighter([Unit(word) for word in words])
    assert "".join(piece.text for piece in highlighter.pieces(text)) == text
    line = " ".join(text.split())
    snippet = "".join(piece.text for piece in highlighter.snippet(text))
    assert snippet.removeprefix("…").removesuffix("…") in line
    assert len(snippet) <= SNIPPET_CHARS + 2


@given(st.text("abc éß東京", max_size=600), st.text("abc東", min_size=1, max_size=3))
def test_the_first_place_is_in_the_snippet(text: str, word: str) -> None:
    highlighter = Highlighter([Unit(word)])
    line = " ".join(text.split())
    if highlighter.places(line):
        assert any(piece.is_hit for piece in highlighter.snippet(text))


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("A CAFÉ and a cafeteria", Unit("cafe"), ["CAFÉ", "cafeteria"]),
        ("A CAFÉ and a cafeteria", Unit("cafe", is_exact=True), ["CAFÉ"]),
        ("the cat, concatenated", Unit("cat"), ["cat"]),
        ("cafe\u0301 noir", Unit("café noir", is_exact=True), ["cafe\u0301 noir"]),
        ("東京都の天気", Unit("京都"), ["京都"]),
        ("วันนี้อากาศดี", Unit("อากาศ"), ["อากาศ"]),
        ("Straße", Unit("strasse"), ["Straße"]),
        ("snake_case_name", Unit("case"), ["case"]),
        ("key-value store", Unit("key value", is_exact=True), ["key-value"]),
        ("nothing", Unit("nothing", is_unwanted=True), []),
        ("हिन्दी में", Unit("हिन्दी"), ["हिन्दी"]),
        ("Good job 🎉!", Unit("🎉"), ["🎉"]),
    ],
)
def test_places(text: str, unit: Unit, expected: list[str]) -> None:
    assert hits(text, unit) == expected


def test_places_in_a_long_answer_are_shown_in_the_middle_of_words_around_them() -> None:
    text = "many words before " * 100 + "the needle here " + "and after " * 100
    pieces = Highlighter([Unit("needle")]).snippet(text)
    joined = "".join(piece.text for piece in pieces)
    assert joined.startswith("…")
    assert joined.endswith("…")
    assert [piece.text for piece in pieces if piece.is_hit] == ["needle"]

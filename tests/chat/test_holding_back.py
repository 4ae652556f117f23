"""Sentences are held until they are whole, and nothing is lost or doubled on the way."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.events import Delta
from chat.holding_back import MAX_HELD_CHARS, HoldBack, Piece, placed
from moderation.normalising import normalised


def deltas_of(text: str, cuts: list[int], *, has_ids: bool = True) -> list[Delta]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pairs = pairwise(places)
    return [
        Delta(text[start:end], start, ids=(number,) if has_ids else ())
        for number, (start, end) in enumerate(pairs)
    ]


def heard(deltas: list[Delta]) -> list[Piece]:
    hold = HoldBack()
    pieces = [piece for delta in deltas for piece in hold.hear(delta)]
    return pieces + hold.rest()


TEXTS = st.text(alphabet="abcdeF .!?\n。", max_size=600)


@given(TEXTS, st.lists(st.integers(0, 600), max_size=80), st.booleans())
def test_all_comes_back_in_order(text: str, cuts: list[int], has_ids: bool) -> None:
    given = deltas_of(text, cuts, has_ids=has_ids)
    shown: list[Delta] = []
    for piece in heard(given):
        shown += placed(piece, sum(len(delta.text) for delta in shown))
    assert "".join(delta.text for delta in shown) == text
    assert [id_ for delta in shown for id_ in delta.ids] == [i for d in given for i in d.ids]
    assert all(d.offset == len("".join(s.text for s in shown[:n])) for n, d in enumerate(shown))


@given(st.lists(st.integers(0, 600), max_size=80), st.booleans())
def test_a_phrase_in_a_sentence_is_judged_as_one(cuts: list[int], has_ids: bool) -> None:
    """Whatever the tokens: in one piece, or with what of it was shown before as context."""
    text = "All is well so far. Now the secret plan is a crimson heron! Nothing else follows here."
    pieces = heard(deltas_of(text, cuts, has_ids=has_ids))
    with_phrase = [n for n, piece in enumerate(pieces) if "crimson heron" in piece.text]
    assert len(with_phrase) == 1
    before = "".join(piece.text for piece in pieces[: with_phrase[0]])
    assert "crimson" not in before


def test_at_most_a_sentence_is_held() -> None:
    hold = HoldBack()
    assert hold.hear(Delta("One is here.", 0)) == []
    (piece,) = hold.hear(Delta(" Two", 12, ids=(2,)))
    assert piece.text == "One is here."
    (piece,) = hold.hear(Delta(" comes. Three", 16))
    assert (piece.text, piece.context) == (" Two comes.", "One is here.")


def test_titles_and_initials_end_nothing() -> None:
    hold = HoldBack()
    assert hold.hear(Delta("This is what Mr. X, e.g. by J. Doe, has said", 0)) == []


def test_what_has_no_sentences_is_let_go() -> None:
    hold = HoldBack()
    words = [Delta("word ", 5 * n) for n in range(200)]
    pieces = [piece for delta in words for piece in hold.hear(delta)]
    assert pieces
    assert all(len(piece.text) <= MAX_HELD_CHARS + 5 for piece in pieces)


def test_parts_are_held_apart() -> None:
    hold = HoldBack()
    assert hold.hear(Delta("I think", 0, "reasoning")) == []
    (piece,) = hold.hear(Delta("So", 0, "text"))
    assert piece.deltas[0].part == "reasoning"
    (rest,) = hold.rest()
    assert (rest.text, rest.context) == ("So", "")


def test_tokens_that_are_no_text_yet_cut_no_thought() -> None:
    hold = HoldBack()
    assert hold.hear(Delta("The crimson", 0, "reasoning")) == []
    assert hold.hear(Delta("", 0, "text", ids=(7,))) == []
    assert hold.hear(Delta(" heron", 11, "reasoning")) == []
    (piece,) = hold.rest()
    assert piece.text == "The crimson heron"
    assert [id_ for delta in piece.deltas for id_ in delta.ids] == [7]


def test_a_long_word_and_the_groups_of_a_number_are_whole() -> None:
    hold = HoldBack()
    assert hold.hear(Delta("x" * (MAX_HELD_CHARS + 50), 0)) == []
    hold = HoldBack()
    text = "word " * 78 + "4111 1111 1111 1111 and so on and on"
    (piece,) = hold.hear(Delta(text, 0))
    assert "4111 1111 1111 1111" in piece.text or "4111" not in piece.text


@pytest.mark.parametrize("between", [" " + "\u200b" * 9_000, " " * 900])
def test_what_nobody_sees_takes_nothing_out_of_sight(between: str) -> None:
    text = f"It is the crimson{between}heron of the lake. Bye."
    pieces = heard(deltas_of(text, list(range(0, len(text), 50))))
    judged = [normalised(one.context + one.text).text for one in pieces]
    assert any(re.search(r"crimson\s+heron", text) for text in judged)

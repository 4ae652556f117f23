"""Streamed text equals whole text, for any chunking, stop string and resume point."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from inference.detokenizer import Detokenizer, StopStrings
from tests.inference.tiny_models import make_tokenizer

TEXT = "Grüße 世界 👩‍👩‍👧 naïve — x = y ** 2; The quick fox\n\nEND of it."


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer(path)
    return Tokenizer.from_file(str(path / "tokenizer.json"))


@given(text=st.text(max_size=80))
@settings(max_examples=100, deadline=None)
def test_the_stream_joins_to_the_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids
    detokenizer = Detokenizer(tokenizer)
    streamed = [detokenizer.feed([i]) for i in ids]
    assert "".join(streamed) + detokenizer.finish() == text
    assert not any("\ufffd" in piece for piece in streamed if "\ufffd" not in text)


def test_an_answer_resumes_at_every_token(tokenizer: Tokenizer) -> None:
    """A new detokenizer fed the old ids goes on exactly where the old one was."""
    ids = tokenizer.encode(TEXT).ids
    whole = Detokenizer(tokenizer, ("END of",))
    pieces = [whole.feed([i]) for i in ids]
    for cut in range(len(ids) + 1):
        resumed = Detokenizer(tokenizer, ("END of",))
        assert resumed.feed(ids[:cut]) == "".join(pieces[:cut])
        assert "".join(resumed.feed([i]) for i in ids[cut:]) == "".join(pieces[cut:])


@given(
    text=st.text(alphabet="abc", max_size=60),
    stop=st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=3),
    cuts=st.lists(st.integers(1, 7), min_size=1, max_size=60),
)
@settings(max_examples=300, deadline=None)
def test_stop_strings_cut_the_same_for_any_chunking(
    text: str, stop: list[str], cuts: list[int]
) -> None:
    stops = StopStrings(tuple(stop))
    shown, rest = "", text
    for size in cuts * (len(text) // len(cuts) + 1):
        shown += stops.feed(rest[:size])
        rest = rest[size:]
    shown += stops.flush()
    assert not any(s in shown for s in stop)
    # Char by char is the reference: the first stop string to become complete wins.
    one_by_one = StopStrings(tuple(stop))
    expected = "".join(one_by_one.feed(c) for c in text) + one_by_one.flush()
    assert shown == expected
    assert (stops.matched is not None) == any(s in text for s in stop)


def test_only_what_could_become_a_stop_string_is_held_back() -> None:
    stops = StopStrings(("</answer>",))
    assert stops.feed("a < b and </") == "a < b and "
    assert stops.feed("b>") == "</b>"
    assert stops.feed("</answer> more") == ""
    assert stops.matched == "</answer>"

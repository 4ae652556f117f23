"""Streamed text equals whole text, for any chunking, stop string and resume point."""

from collections.abc import Iterator
from itertools import cycle
from os.path import commonprefix
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from inference.detokenizer import Detokenizer, StopStrings
from inference.messages import Finished, Tokens
from inference.token_bytes import TokenBytes
from tests.inference.loops import make_loop, request, run
from tests.inference.tiny_models import make_tokenizer

TEXT = "Grüße 世界 👩‍👩‍👧 naïve — x = y ** 2; The quick fox\n\nEND of it."


def _byte_level(path: Path) -> Tokenizer:
    make_tokenizer(path)
    return Tokenizer.from_file(str(path / "tokenizer.json"))


def _byte_fallback(path: Path) -> Tokenizer:
    """In the manner of Llama 2 and Gemma: words with their blank in front, and bytes for the rest."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["\u2581", *"abcdethgé世", "\u2581a", "th", "\u2581th", "\u2581the", "ab"]
    merges = [("\u2581", "a"), ("t", "h"), ("\u2581", "th"), ("\u2581th", "e"), ("a", "b")]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    bpe = models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    blanks, text = decoders.Replace("\u2581", " "), decoders.Fuse()
    tokenizer.decoder = decoders.Sequence([blanks, decoders.ByteFallback(), text])
    return tokenizer


def _first_blank_stripped(path: Path) -> Tokenizer:
    """In the manner of Llama 2, TinyLlama and Mistral 7B, whose decoder takes a text's first blank."""
    tokenizer = _byte_fallback(path)
    strip = decoders.Strip(" ", 1, 0)
    blanks, fallback, fuse = (
        decoders.Replace("\u2581", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
    )
    tokenizer.decoder = decoders.Sequence([blanks, fallback, fuse, strip])
    return tokenizer


def _metaspace(path: Path) -> Tokenizer:
    """In the manner of T5: the first token has no blank."""
    tokenizer = _byte_fallback(path)
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


FAMILIES = [_byte_level, _byte_fallback, _first_blank_stripped, _metaspace]


@pytest.fixture(scope="module", params=FAMILIES)
def any_family(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    return request.param(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module", params=[_byte_level, _byte_fallback])
def tokenizer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    return request.param(tmp_path_factory.mktemp("tokenizer"))


texts = st.lists(
    st.one_of(
        st.text(max_size=6), st.sampled_from(("the ab", "世界", "👩‍👩‍👧", "é", "\ufffd", " "))
    ),
    max_size=14,
).map("".join)


@given(text=texts, cuts=st.lists(st.integers(1, 7), min_size=1))
@settings(max_examples=100, deadline=None)
def test_the_stream_joins_to_the_text(tokenizer: Tokenizer, text: str, cuts: list[int]) -> None:
    ids = tokenizer.encode(text).ids
    detokenizer = Detokenizer(tokenizer)
    streamed = [detokenizer.feed(piece) for piece in _pieces(ids, cuts)]
    streamed.append(detokenizer.finish())
    assert "".join(streamed).rstrip("\ufffd") == text.rstrip("\ufffd")
    assert not any("\ufffd" in piece for piece in streamed if "\ufffd" not in text)


@given(text=texts, data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_answer_that_is_cut_loses_half_a_character_at_most(
    tokenizer: Tokenizer, text: str, data: st.DataObject
) -> None:
    ids = tokenizer.encode(text).ids
    ids = ids[: data.draw(st.integers(0, len(ids)))]
    detokenizer = Detokenizer(tokenizer)
    streamed = detokenizer.feed(ids) + detokenizer.finish()
    token_bytes = TokenBytes(PreTrainedTokenizerFast(tokenizer_object=tokenizer))
    whole = b"".join(map(token_bytes.of, ids)).decode(errors="ignore")
    assert streamed.rstrip("\ufffd") == whole.rstrip("\ufffd")


@given(ids=st.lists(st.integers(3, 361), max_size=20), cuts=st.lists(st.integers(1, 7), min_size=1))
@settings(max_examples=200, deadline=None)
def test_any_tokens_stream_as_they_are_decoded(
    byte_level: Tokenizer, ids: list[int], cuts: list[int]
) -> None:
    """Half characters as well, wherever they stand: a model may write anything."""
    detokenizer = Detokenizer(byte_level)
    streamed = "".join(detokenizer.feed(piece) for piece in _pieces(ids, cuts))
    whole = byte_level.decode(ids, skip_special_tokens=False)
    assert (streamed + detokenizer.finish()).rstrip("\ufffd") == whole.rstrip("\ufffd")


@given(data=st.data(), cuts=st.lists(st.integers(1, 7), min_size=1))
@settings(max_examples=300, deadline=None)
def test_half_characters_without_an_end_stream_as_they_are_decoded(
    byte_level: Tokenizer, data: st.DataObject, cuts: list[int]
) -> None:
    """Also where a character ends and the next one begins in each token, or one comes in the middle."""
    halves = st.sampled_from([i for i in range(361) if "\ufffd" in byte_level.decode([i])])
    runs = st.lists(
        st.one_of(halves, halves, data.draw(st.lists(halves, min_size=1).map(st.sampled_from)))
    )
    wholes = st.sampled_from(("€", "🙂", "x", "Kä", "\ufffd")).map(
        lambda t: byte_level.encode(t).ids
    )
    parts = data.draw(st.lists(st.one_of(runs, runs, wholes), max_size=8))
    ids = [token_id for part in parts for token_id in part]
    detokenizer = Detokenizer(byte_level)
    streamed = "".join(detokenizer.feed(piece) for piece in _pieces(ids, cuts))
    whole = byte_level.decode(ids, skip_special_tokens=False)
    assert len(whole) - len(streamed) <= 4 * 9, "little is held back"
    assert (streamed + detokenizer.finish()).rstrip("\ufffd") == whole.rstrip("\ufffd")


def test_a_cut_within_half_a_character_is_not_taken_for_the_end_of_one(
    byte_level: Tokenizer,
) -> None:
    """`à` begins what the first byte of `©âĢįðŁĳ` goes on with: together they are one that is none."""
    pieces = ["à", *["¡"] * 7, "à", "©âĢįðŁĳ", "â", "Ħ", "¬"]
    ids = [byte_level.token_to_id(piece) for piece in pieces]
    detokenizer = Detokenizer(byte_level)
    streamed = detokenizer.feed(ids) + detokenizer.finish()
    assert streamed == byte_level.decode(ids, skip_special_tokens=False)


def test_half_characters_take_no_longer_the_more_there_are(tokenizer: Tokenizer) -> None:
    (half,) = [i for i in range(361) if tokenizer.id_to_token(i) in ("<0x80>", "Ģ")]
    detokenizer = Detokenizer(tokenizer, ("END",))
    began_s = process_time()
    streamed = detokenizer.feed([half] * 20_000)
    assert process_time() - began_s < 5, "half a minute, were each decoded with all before it"
    assert set(streamed) == {"\ufffd"}
    assert len(streamed) > 20_000 - 9
    word = tokenizer.encode("the").ids
    streamed += detokenizer.feed(word) + detokenizer.finish()
    assert streamed == tokenizer.decode([half] * 20_000 + word, skip_special_tokens=False)


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return _byte_level(tmp_path_factory.mktemp("byte-level"))


def _pieces(ids: list[int], cuts: list[int]) -> Iterator[list[int]]:
    """The ids in pieces of these sizes, over and over."""
    rest = list(ids)
    for size in cycle(cuts):
        if not rest:
            return
        yield rest[:size]
        rest = rest[size:]


def test_a_stop_string_in_front_of_half_a_character_counts(byte_level: Tokenizer) -> None:
    """One token ends a word and begins a character that never comes."""
    (token_id,) = [i for i in range(361) if byte_level.id_to_token(i) == "KÃ"]
    for stop, min_tokens, text in (("K", 0, ""), ("K", 1, "K"), ("KL", 0, "K"), ("", 0, "K")):
        detokenizer = Detokenizer(byte_level, (stop,), min_tokens=min_tokens)
        assert detokenizer.feed([token_id]) + detokenizer.finish() == text
        assert detokenizer.matched_stop == ("K" if text == "" else None)


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
    text=st.one_of(texts, st.sampled_from((" the ab", "  a", "世" * 9, "ቃል ቃል", "a\n\n世"))).filter(
        lambda text: "\ufffd" not in text  # which decoders say of half a character as well
    ),
    data=st.data(),
    cuts=st.lists(st.integers(1, 7), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_a_prompt_and_what_streams_behind_it_join_to_the_text(
    any_family: Tokenizer, text: str, data: st.DataObject, cuts: list[int]
) -> None:
    """Wherever the prompt ends; of a character that it leaves unfinished, nothing was said."""
    ids = any_family.encode(text).ids
    at = data.draw(st.integers(0, len(ids)))
    detokenizer = Detokenizer(any_family, behind=ids[:at])
    streamed = "".join(detokenizer.feed(piece) for piece in _pieces(ids[at:], cuts))
    whole = any_family.decode(ids, skip_special_tokens=False)
    said = next(
        before
        for num in range(at, -1, -1)
        if whole.startswith(before := any_family.decode(ids[:num], skip_special_tokens=False))
    )
    streamed += detokenizer.finish()
    assert (said + streamed).rstrip("\ufffd") == whole.rstrip("\ufffd")


@given(
    ids=st.lists(st.integers(3, 361), max_size=20),
    at=st.integers(0, 20),
    cuts=st.lists(st.integers(1, 7), min_size=1),
)
@settings(max_examples=300, deadline=None)
def test_any_tokens_stream_behind_any_prompt(
    byte_level: Tokenizer, ids: list[int], at: int, cuts: list[int]
) -> None:
    """Both may hold half characters, at their ends as well."""
    detokenizer = Detokenizer(byte_level, behind=ids[:at])
    streamed = "".join(detokenizer.feed(piece) for piece in _pieces(ids[at:], cuts))
    streamed += detokenizer.finish()
    whole = byte_level.decode(ids, skip_special_tokens=False)
    before = byte_level.decode(ids[:at], skip_special_tokens=False)
    said = commonprefix((whole, before))  # noqa: RUF071 of characters
    assert (said + streamed).rstrip("\ufffd") == whole.rstrip("\ufffd")


def test_an_answer_behind_a_prompt_resumes_at_every_token(any_family: Tokenizer) -> None:
    ids = any_family.encode(TEXT).ids
    for start in range(0, len(ids), 5):
        prompt, output = ids[:start], ids[start:]
        whole = Detokenizer(any_family, ("END of",), behind=prompt)
        pieces = [whole.feed([i]) for i in output]
        for cut in range(0, len(output) + 1, 3):
            resumed = Detokenizer(any_family, ("END of",), behind=prompt)
            assert resumed.feed(output[:cut]) == "".join(pieces[:cut])
            assert "".join(resumed.feed([i]) for i in output[cut:]) == "".join(pieces[cut:])


def test_an_engine_goes_on_with_the_text_of_the_prompt(tiny_model: Path) -> None:
    loop = make_loop(tiny_model)
    loop.tokenizer.decoder = decoders.Sequence([loop.tokenizer.decoder, decoders.Strip(" ", 1, 0)])
    word = next(i for i in range(361) if (loop.tokenizer.id_to_token(i) or "").startswith("Ġf"))
    params = {"max_tokens": 2, "logit_bias": ((word, 100.0),)}
    prompt = tuple(loop.tokenizer.encode("The").ids)
    for output_ids in ((), (word,)):
        asked = request("r", prompt, output_ids=output_ids, **params)
        streamed = "".join(u.text for u in run(loop, asked)["r"] if isinstance(u, Tokens))
        said = loop.tokenizer.decode([*prompt, *output_ids])
        assert said + streamed == loop.tokenizer.decode([*prompt, word, word])


def test_an_answer_that_ends_by_length_may_end_by_such_a_stop_string(tiny_model: Path) -> None:
    loop = make_loop(tiny_model)
    token_id = loop.tokenizer.token_to_id("KÃ")
    params = {"max_tokens": 1, "logit_bias": ((token_id, 100.0),)}
    for stop, reason, text in (("K", "stop", ""), ("L", "length", "K")):
        told = run(loop, request("r", (5, 6, 7), **params, stop=(stop,)))["r"]
        assert "".join(u.text for u in told if isinstance(u, Tokens)) == text
        assert isinstance(told[-1], Finished)
        assert told[-1].reason == reason


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

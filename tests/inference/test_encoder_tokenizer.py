"""Texts, pairs and token ids as an encoder reads them, and what does not fit into its window."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, processors

from inference import ContextTooLong, InvalidParameter, ModelRefused, TextTooLong
from inference.encoder_layout import read_encoder_layout
from inference.encoder_tokenizer import EncoderTokenizer
from tests.inference.tiny_models import make_encoder

PAD, CLS, SEP = 0, 1, 2
WINDOW = 24


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    return make_encoder(folder, pooling="mean", max_seq_length=WINDOW)


@pytest.fixture
def tokenizer(path: Path) -> EncoderTokenizer:
    return _load(path)


def _load(path: Path) -> EncoderTokenizer:
    return EncoderTokenizer.load(path, read_encoder_layout(path))


def _plain(path: Path, text: str) -> list[int]:
    """The ids of a text by itself, with nothing of the file's settings."""
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def test_a_text_stands_between_its_special_tokens(tokenizer: EncoderTokenizer, path: Path) -> None:
    (found,) = tokenizer.encode(["The quick brown fox"], truncate=False)
    assert found.ids.tolist() == [CLS, *_plain(path, "The quick brown fox"), SEP]
    assert found.type_ids == b""


def test_a_prompt_goes_in_front(tokenizer: EncoderTokenizer) -> None:
    prompted, written, pair = tokenizer.encode(
        ["fox", "query: fox", ("fox", "dog")], prompt="query: ", truncate=True
    )
    assert prompted.ids == tokenizer.encode(["query: fox"], truncate=False)[0].ids
    assert len(written) > len(prompted)
    assert pair == tokenizer.encode([("fox", "dog")], truncate=False)[0]


def test_how_much_of_a_text_is_known(path: Path) -> None:
    """The built-in model knows few signs of Chinese; one that spells by bytes knows all."""
    from inference.catalog import _MINILM_PACKAGE, _packaged

    minilm = _packaged(_MINILM_PACKAGE)
    assert minilm is not None
    tokenizer = _load(minilm)
    texts = ["When does the office open?", "办公室几点开门?", "👩‍🚀", ""]
    shares = [tokenizer.known_share(one) for one in tokenizer.encode(texts, truncate=True)]
    assert shares[0] == shares[3] == 1.0
    assert 0.0 < shares[1] < 0.7
    assert shares[2] == 0.0
    assert _load(path).known_share(_load(path).encode(["办公室"], truncate=True)[0]) == 1.0


def test_a_pair_tells_its_texts_apart(tokenizer: EncoderTokenizer, path: Path) -> None:
    (found,) = tokenizer.encode([("quick", "brown fox")], truncate=False)
    first, second = _plain(path, "quick"), _plain(path, "brown fox")
    assert found.ids.tolist() == [CLS, *first, SEP, *second, SEP]
    assert list(found.type_ids) == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_no_text_can_forge_a_special_token(tokenizer: EncoderTokenizer) -> None:
    (text,) = tokenizer.encode(["a[SEP]b[PAD][CLS]"], truncate=False)
    assert [i for i in text.ids if i in (PAD, CLS, SEP)] == [CLS, SEP]
    (pair,) = tokenizer.encode([("a[SEP]", "b")], truncate=False)
    assert pair.ids.tolist().count(SEP) == 2


def test_a_text_that_fills_the_window_fits_and_one_more_token_does_not(
    tokenizer: EncoderTokenizer,
) -> None:
    def of_tokens(number: int) -> str:
        return "é" * (number - 2)  # a token each: of the training text, which doubles none

    (exact,) = tokenizer.encode([of_tokens(WINDOW)], truncate=False)
    assert len(exact) == WINDOW
    with pytest.raises(TextTooLong) as caught:
        tokenizer.encode(["fine", of_tokens(WINDOW + 1)], first_index=256, truncate=False)
    assert isinstance(caught.value, ContextTooLong)
    assert caught.value.index == 257
    assert caught.value.num_prompt_tokens == WINDOW + 1
    assert str(caught.value) == (
        "context_length_exceeded: the model reads 24 tokens at once; text 257 takes 25."
    )


def test_a_cut_text_keeps_its_beginning_and_its_end_mark(tokenizer: EncoderTokenizer) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 50
    (cut,) = tokenizer.encode([text], truncate=True)
    (start,) = tokenizer.encode([text[:40]], truncate=False)
    assert len(cut) == WINDOW
    assert cut.ids[: len(start) - 2] == start.ids[:-2]
    assert cut.ids[-1] == SEP


@pytest.mark.parametrize(
    ("num_first", "num_second", "expected"),
    [
        (5, 100, (5, WINDOW - 3 - 5)),
        (100, 5, (WINDOW - 3 - 5, 5)),
        (100, 100, ((WINDOW - 3) - (WINDOW - 3) // 2, (WINDOW - 3) // 2)),
        (4, 4, (4, 4)),
    ],
)
def test_of_a_pair_the_longer_text_is_cut_first(
    tokenizer: EncoderTokenizer, num_first: int, num_second: int, expected: tuple[int, int]
) -> None:
    (pair,) = tokenizer.encode([("é" * num_first, "é" * num_second)], truncate=True)
    marks = [i for i, token in enumerate(pair.ids) if token == SEP]
    assert (marks[0] - 1, marks[1] - marks[0] - 1) == expected


def test_a_text_far_beyond_the_window_is_not_tokenized_to_its_end(
    tokenizer: EncoderTokenizer,
) -> None:
    endless = " " * 10_000_000
    with pytest.raises(TextTooLong, match="text 0 is far longer"):
        tokenizer.encode([endless], truncate=False)
    (cut,) = tokenizer.encode(["fox" + endless], truncate=True)
    assert len(cut) == WINDOW


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("", ""),
        ("a \ud800 b", "a \ufffd b"),
        ("\ud83e\udd8a", "🦊"),
        ("\udfff\ud800", "\ufffd\ufffd"),
        ("a\0b", "a\0b"),
    ],
)
def test_what_is_no_text_is_read_as_well(
    tokenizer: EncoderTokenizer, path: Path, text: str, same_as: str
) -> None:
    (found,) = tokenizer.encode([text], truncate=False)
    assert found.ids.tolist() == [CLS, *_plain(path, same_as), SEP]


def test_token_ids_are_read_as_they_are(tokenizer: EncoderTokenizer) -> None:
    (found,) = tokenizer.encode([[7, 8, 9]], prompt="ignored", truncate=False)
    assert found.ids.tolist() == [7, 8, 9]
    (cut,) = tokenizer.encode([[7] * 100], truncate=True)
    assert len(cut) == WINDOW
    with pytest.raises(TextTooLong):
        tokenizer.encode([[7] * 100], truncate=False)


@pytest.mark.parametrize("ids", [[10**6], [-1], [3, 2**40], []])
def test_token_ids_that_the_model_does_not_know_are_named(
    tokenizer: EncoderTokenizer, ids: list[int]
) -> None:
    with pytest.raises(InvalidParameter, match=r"texts\[1\]"):
        tokenizer.encode(["fine", ids], truncate=True)


def _changed(path: Path, target: Path, *, post_processor: object, **settings: object) -> Path:
    """The same model with another end of its texts."""
    target.mkdir()
    for file in path.glob("*.*"):
        (target / file.name).write_bytes(file.read_bytes())
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.post_processor = post_processor
    tokenizer.save(str(target / "tokenizer.json"))
    (target / "tokenizer_config.json").write_text(json.dumps(settings))
    (target / "modules.json").unlink()
    return target


@pytest.mark.parametrize("is_in_tokenizer_json", [False, True])
def test_an_end_that_only_the_settings_name_is_added_once(
    path: Path, tmp_path: Path, is_in_tokenizer_json: bool
) -> None:
    single = "$A [SEP]" if is_in_tokenizer_json else "$A"
    ending = processors.TemplateProcessing(single=single, special_tokens=[("[SEP]", SEP)])
    changed = _changed(
        path,
        tmp_path / "changed",
        post_processor=ending,
        add_eos_token=True,
        eos_token={"content": "[SEP]"},
    )
    (found,) = _load(changed).encode(["fox"], truncate=False)
    assert found.ids.tolist() == [*_plain(path, "fox"), SEP]
    (cut,) = _load(changed).encode(["é" * 100], truncate=True)
    assert len(cut) == WINDOW


def test_a_text_of_no_token_is_named(path: Path, tmp_path: Path) -> None:
    nothing = processors.TemplateProcessing(single="$A")
    bare = _load(_changed(path, tmp_path / "bare", post_processor=nothing))
    with pytest.raises(InvalidParameter, match=r"texts\[1\]: it holds nothing"):
        bare.encode(["fox", ""], truncate=False)


@pytest.mark.parametrize("content", [None, "", "{}", "\0"])
def test_a_tokenizer_that_does_not_load_is_refused(
    path: Path, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelRefused, match="tokenizer"):
        EncoderTokenizer.load(tmp_path, read_encoder_layout(path))

"""The ranks of tokens that some models bring for tiktoken, which is six times as fast as tokenizers.

Nothing says that they fit the model's tokenizer.json but a comparison, so that there is one: of the
whole vocabulary, and of the ids of some hundred texts.
"""

import base64
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from inference.token_bytes import byte_alphabet

if TYPE_CHECKING:
    from tiktoken import Encoding

logger = logging.getLogger(__name__)
RANK_FILE = "vocab.tiktoken"
_NUM_TEXTS = 200
_NUM_CHATS = 50
_PIECES = (
    *("The quick brown fox", "naïve café", "Grüße aus Köln", "Zażółć gęślą jaźń", "İstanbul ǅ ß"),
    *(
        "世界",
        "こんにちは",
        "안녕하세요",
        "สวัสดี",
        "नमस्ते",
        "Здравствуй",
        "Γειά σου",
        "שלום",
        "مرحبا",
        "𐍈𝄞",
    ),
    *(" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u2028", "\u3000"),
    *("7", "42", "345", "2026", "1234567890", "3.14", "-1e-9", "١٢٣", "½", "Ⅷ", "१२"),
    *(
        "🙂",
        "👩‍👩‍👧",
        "🏳️‍🌈",
        "e\u0301",
        "ﬁ",
        "ａｂｃ",
        "\u200b",
        "\ufeff",
        "\ufffd",
        "\x00",
        "\x7f",
    ),
    *("I'm", "don't", "WE'LL", "they're", "o'clock", "’s", "“quotes”", "a—b", "…", "?!", "---"),
    *("def f(x):\n    return x ** 2", "<a href='#'>", '{"a": [1, null]}', "x+=1;//", "C:\\dir\\"),
    *(
        "snake_case",
        "camelCaseWord",
        "HTTPServer",
        "https://example.org/?q=1&r=%20",
        "a@b.c",
        "#!/",
    ),
)


def read_encoding(path: Path, tokenizer: Tokenizer) -> "Encoding | None":
    """Of the model in a directory, if it brings ranks that give the ids of its tokenizer.

    None otherwise, with a line in the log where it brings others. Takes a few hundredths of a second.
    """
    file = path / RANK_FILE
    if not file.exists():
        return None
    try:
        ranks = _read_ranks(file)
        _check_vocabulary(ranks, tokenizer)
        encoding = _encoding(path.name, ranks, tokenizer)
        _check_texts(encoding, tokenizer)
    except Exception as error:  # whatever such a file makes tiktoken and tokenizers say
        logger.warning("%s is not used, which makes reading texts slower: %s", file, error)
        return None
    return encoding


def _read_ranks(file: Path) -> dict[bytes, int]:
    """A tiktoken rank file: base64 token and rank per line. Raises ValueError.

    tiktoken's own reader keeps a copy per path in the system's temp directory, which would outlive
    a change of the file.
    """
    lines = (line.split() for line in file.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _check_vocabulary(ranks: dict[bytes, int], tokenizer: Tokenizer) -> None:
    """Both have the same tokens, but for those that stand apart from text. Raises ValueError."""
    as_written = {byte: char for char, byte in byte_alphabet().items()}
    named = {token.decode("latin-1").translate(as_written): rank for token, rank in ranks.items()}
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    if not as_written.keys() <= {token[0] for token in ranks if len(token) == 1}:
        raise ValueError("it lacks some of the 256 bytes")
    if not (named.items() <= vocabulary.items() and vocabulary.keys() - named.keys() <= added):
        raise ValueError("its tokens are not those of tokenizer.json")


def _encoding(name: str, ranks: dict[bytes, int], tokenizer: Tokenizer) -> "Encoding":
    from tiktoken import Encoding

    pattern, marks = _split_pattern(tokenizer), _marks(tokenizer)
    return Encoding(name=name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=marks)


def _marks(tokenizer: Tokenizer) -> dict[str, int]:
    """The tokens that stand apart from text, with their ids, where tiktoken finds them as tokenizers
    does: they take no blanks with them, and none begins with another. Else none of them."""
    added = tokenizer.get_added_tokens_decoder()
    marks = {token.content: number for number, token in added.items()}
    is_plain = not any(
        token.lstrip or token.rstrip or token.single_word or token.normalized
        for token in added.values()
    )
    starts = any(one != other and one.startswith(other) for one in marks for other in marks)
    return marks if is_plain and not starts else {}


def _split_pattern(tokenizer: Tokenizer) -> str:
    """The regular expression that cuts text into words before merging. Raises ValueError."""
    state = json.loads(tokenizer.to_str())["pre_tokenizer"] or {}
    for step in state.get("pretokenizers", [state]):
        if step.get("type") == "Split" and "Regex" in step["pattern"]:
            return str(step["pattern"]["Regex"])
    raise ValueError("tokenizer.json names no pattern that cuts text into words")


def _check_texts(encoding: "Encoding", tokenizer: Tokenizer) -> None:
    """Raises ValueError where one has other ids by the ranks: nothing else compares merges, patterns and
    what is done to a text before."""
    for text in _texts():
        if encoding.encode_ordinary(text) != tokenizer.encode(text, add_special_tokens=False).ids:
            raise ValueError(f"tokenizer.json gives other ids to {text!r}")
    for chat in _chats(sorted(encoding.special_tokens_set)):
        ids = encoding.encode(chat, allowed_special="all")
        if ids != tokenizer.encode(chat, add_special_tokens=False).ids:
            raise ValueError(f"tokenizer.json gives other ids to {chat!r}")


def _chats(marks: Sequence[str]) -> Iterator[str]:
    """Texts with marks between them, the same ones each time."""
    random = Random(0)  # noqa: S311 not for secrets
    for mark in marks:
        yield f"{mark}user\n{random.choice(_PIECES)}{mark}{mark}\n {random.choice(_PIECES)} {mark}"
    for _ in range(_NUM_CHATS if marks else 0):
        yield "".join(random.choices((*_PIECES, *marks), k=8))


def _texts() -> Iterator[str]:
    """The same ones each time: all pieces, pieces in a row, and bytes as they come."""
    random = Random(0)  # noqa: S311 not for secrets
    yield from _PIECES
    for _ in range(_NUM_TEXTS):
        yield "".join(random.choices((*_PIECES, " ", " ", "\n"), k=random.randint(2, 6)))
    for length in range(1, 41):
        noise = random.randbytes(length)
        yield noise.decode("latin-1")
        yield noise.decode(errors="replace")

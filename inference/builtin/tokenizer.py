"""The byte-level BPE: learnt from training text, written as tokenizer.json and as tiktoken ranks.

Both files give the same ids. tiktoken merges any two neighbours whose union is a token, so the
merges of tokenizer.json are not those of the learning but all splits of every token, by rank.
"""

import base64
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.trainers import BpeTrainer

from inference.builtin import MODEL_DIR
from inference.builtin.mixture import training_dialogs
from inference.builtin.template import (
    ADDED_TOKENS,
    END_OF_TEXT,
    IM_END,
    IM_START,
    JINJA,
    segments,
)
from inference.token_bytes import byte_alphabet

VOCAB_SIZE = 4096
"""All tokens, the added ones included."""
SPECIAL_TOKENS = (END_OF_TEXT, IM_START, IM_END)
SPACED = (
    "a|about|all|an|and|are|as|at|be|been|by|can|could|did|do|does|for|from|get|had|has|have|"
    "if|in|into|is|it|me|more|must|my|not|of|on|only|or|our|out|please|so|such|than|that|the|"
    "their|them|then|there|these|they|this|to|up|us|use|was|we|were|which|will|with|would|you|"
    "your"
)
"""Words that may hold the space before them: closed classes, which nobody's names are made of."""
PATTERN = (
    r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})"
    rf"| (?:{SPACED})(?!\p{{L}})"
    r"|\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How text is cut before merging: words without their space, parts of camelCase and digits apart.

Most vocabularies glue the space to the word (Qwen2's, GPT-2's), so that a word has other tokens
behind a space than behind a quote, a bracket or a line's start. A small model must copy names from
sentences into JSON and back: here a word is the same tokens wherever it stands.
"""

NUM_DIALOGS = 40_000
SEED = 11


def _skeleton(model: BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    split = Split(Regex(PATTERN), behavior="isolated")
    tokenizer.pre_tokenizer = Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = ByteLevelDecoder()
    return tokenizer


def learn(texts: Iterable[str]) -> list[str]:
    """The tokens in order of rank, in the byte-level alphabet: 256 bytes, then merges."""
    tokenizer = _skeleton(BPE())
    trainer = BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIAL_TOKENS) - len(ADDED_TOKENS),
        initial_alphabet=ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


def all_merges(tokens: list[str]) -> list[tuple[str, str]]:
    """Every split of every token into two tokens, in the order in which tiktoken would join them."""
    rank = {token: number for number, token in enumerate(tokens)}
    merges: list[tuple[str, str]] = []
    for token in tokens:
        splits = [(token[:i], token[i:]) for i in range(1, len(token))]
        found = [pair for pair in splits if pair[0] in rank and pair[1] in rank]
        merges += sorted(found, key=lambda pair: (rank[pair[0]], rank[pair[1]]))
    return merges


def build(tokens: list[str]) -> Tokenizer:
    """The tokenizer of a ranked list of tokens, with the added tokens behind them."""
    from tokenizers import AddedToken

    vocab = {token: number for number, token in enumerate(tokens)}
    tokenizer = _skeleton(BPE(vocab=vocab, merges=all_merges(tokens)))
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in SPECIAL_TOKENS]
    )
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in ADDED_TOKENS])
    return tokenizer


def name_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The tokens of two letters or more that names can be made of."""
    words = tokenizer.get_vocab(with_added_tokens=False)
    return tuple(sorted(w for w in words if len(w) > 1 and w.isascii() and w.isalpha()))


def rank_lines(tokens: list[str]) -> str:
    """The tiktoken file: base64 of the bytes and the rank, one token a line."""
    alphabet = byte_alphabet()
    coded = (base64.b64encode(bytes(alphabet[c] for c in token)).decode() for token in tokens)
    return "".join(f"{code} {rank}\n" for rank, code in enumerate(coded))


def tokenizer_config() -> dict[str, Any]:
    """What transformers reads beside tokenizer.json."""
    base = VOCAB_SIZE - len(SPECIAL_TOKENS) - len(ADDED_TOKENS)
    every = (*SPECIAL_TOKENS, *ADDED_TOKENS)
    added = {
        str(base + number): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": token in SPECIAL_TOKENS,
        }
        for number, token in enumerate(every)
    }
    return {
        "added_tokens_decoder": added,
        "additional_special_tokens": [IM_START, IM_END],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": IM_END,
        "pad_token": END_OF_TEXT,
        "pat_str": PATTERN,
        "model_max_length": 2048,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def training_texts() -> Iterable[str]:
    """The text of many training dialogs."""
    stream = training_dialogs(SEED, {})
    for _ in range(NUM_DIALOGS):
        yield "".join(segment.text for segment in segments(next(stream)))


def write(folder: Path = MODEL_DIR) -> None:
    """Learn the tokenizer and write all of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    marks = (*SPECIAL_TOKENS, *ADDED_TOKENS)

    def plain() -> Iterable[str]:
        for text in training_texts():
            for mark in marks:
                text = text.replace(mark, "\n")
            yield text

    tokens = learn(plain())
    build(tokens).save(str(folder / "tokenizer.json"))
    (folder / "vocab.tiktoken").write_text(rank_lines(tokens), encoding="ascii")
    config = json.dumps(tokenizer_config(), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(JINJA, encoding="utf-8")


@cache
def load(folder: Path = MODEL_DIR) -> Tokenizer:
    """The committed tokenizer."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))

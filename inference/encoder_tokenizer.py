"""Texts to what an encoder reads, without torch: prompts, pairs, special tokens, the window."""

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

from inference.encode_messages import EncoderInput
from inference.encoder_layout import EncoderLayout
from inference.errors import InvalidParameter, ModelRefused, TextTooLong

Text = str | tuple[str, str] | Sequence[int]
"""A text, a pair of texts, or token ids as they are to be read."""

# No tokenizer makes fewer tokens of real text; a text beyond it is not tokenized to its end.
_MAX_CHARS_PER_TOKEN = 100


class EncoderTokenizer:
    """The tokenizer of one encoder. Thread-safe: the Rust part holds no lock of Python's.

    Special tokens that stand in a text are read as plain text, so that no document can end itself
    and speak for the next one.
    """

    def __init__(self, tokenizer: Tokenizer, layout: EncoderLayout, ends: tuple[str, ...]) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._layout = layout
        end_ids = [i for end in ends if (i := tokenizer.token_to_id(end)) is not None]
        own_end = tokenizer.encode("").ids[-1:]  # newer files say it in tokenizer.json as well
        self._end_ids = [] if own_end == end_ids else end_ids
        self._unknown_id = _unknown_id(tokenizer)

    @classmethod
    def load(cls, path: Path, layout: EncoderLayout) -> "EncoderTokenizer":
        """Read a model directory's tokenizer.json. Raises ModelRefused."""
        file = path / "tokenizer.json"
        if not file.exists():
            raise ModelRefused(f"{path} holds no tokenizer.json.")
        try:
            tokenizer = Tokenizer.from_file(str(file))
            settings = json.loads((path / "tokenizer_config.json").read_text())
        except FileNotFoundError:
            settings = {}
        except Exception as error:  # the Rust side raises bare Exception
            raise ModelRefused(f"The tokenizer does not load: {error}") from error
        return cls(tokenizer, layout, _ends(settings))

    def encode(
        self, texts: Sequence[Text], *, first_index: int = 0, prompt: str = "", truncate: bool
    ) -> list[EncoderInput]:
        """What a model reads of each text; blocking, some 2 MB of text per second.

        `prompt` goes in front of texts, not of pairs and token ids. A text that exceeds the window
        raises TextTooLong, or loses its end with `truncate` (of a pair, the longer one loses first).
        `first_index` is how errors number the first text. Raises InvalidParameter.
        """
        parts = [self._parts(text, prompt) for text in texts]
        flat = iter(self._encodings([part for own in parts for part in own]))
        inputs = []
        for index, (text, own) in enumerate(zip(texts, parts, strict=True), start=first_index):
            if own:
                is_cut = any(self._is_beyond(part) for part in own)
                encodings = [next(flat) for _ in own]
                inputs.append(self._joined(index, encodings, truncate=truncate, is_cut=is_cut))
            else:
                inputs.append(self._checked_ids(index, text, truncate=truncate))
        return inputs

    def known_share(self, inputs: EncoderInput) -> float:
        """The part of what is read that is no "unknown" token: near 1, but for scripts that the model
        was not made for."""
        num_unknown = inputs.ids.count(self._unknown_id) if self._unknown_id is not None else 0
        num_own = len(inputs) - self._num_special(is_pair=False)
        return max(0.0, 1.0 - num_unknown / max(1, num_own))

    def count(self, text: str) -> int:
        """Tokens of a text, however long it is, with the special ones around it."""
        parts = [text[at : at + self._max_chars] for at in range(0, len(text), self._max_chars)]
        num_tokens = sum(map(len, self._encodings([self._plain(part) for part in parts])))
        return num_tokens + self._num_special(is_pair=False)

    def _num_special(self, *, is_pair: bool) -> int:
        return self._tokenizer.num_special_tokens_to_add(is_pair) + len(self._end_ids)

    def _parts(self, text: Text, prompt: str) -> list[str]:
        """What is to be tokenized of a text: one part, or two of a pair, or none of token ids."""
        if isinstance(text, str):
            return [self._plain(prompt + text)]
        if isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text):
            return [self._plain(str(part)) for part in text]
        return []

    def _plain(self, text: str) -> str:
        text = text.lower() if self._layout.is_lowercased else text
        # A lone surrogate is no character; the tokenizer would refuse the whole text for it.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _encodings(self, parts: list[str]) -> list[Encoding]:
        cut = [part[: self._max_chars] for part in parts]
        return list(self._tokenizer.encode_batch_fast(cut, add_special_tokens=False))

    @property
    def _max_chars(self) -> int:
        return self._layout.window_tokens * _MAX_CHARS_PER_TOKEN

    def _is_beyond(self, part: str) -> bool:
        return len(part) > self._max_chars

    def _joined(
        self, index: int, encodings: list[Encoding], *, truncate: bool, is_cut: bool
    ) -> EncoderInput:
        """One or two encodings with the special tokens around them, within the window."""
        is_pair = len(encodings) == 2
        num_special = self._num_special(is_pair=is_pair)
        room = self._layout.window_tokens - num_special
        num_tokens = sum(map(len, encodings))
        if num_tokens > room or is_cut:
            if not truncate:
                raise TextTooLong(
                    index,
                    num_tokens=num_tokens + num_special,
                    max_context_tokens=self._layout.window_tokens,
                    is_cut=is_cut,
                )
            _truncate(encodings, room)
        whole = self._tokenizer.post_process(encodings[0], encodings[1] if is_pair else None)
        ids = array("i", whole.ids)
        ids.extend(self._end_ids)
        if not ids:
            raise InvalidParameter(f"texts[{index}]", "it holds nothing that the model can read")
        if not is_pair or not any(whole.type_ids):
            return EncoderInput(ids)
        return EncoderInput(ids, bytes(whole.type_ids).ljust(len(ids), b"\1"))

    def _checked_ids(self, index: int, ids: Any, *, truncate: bool) -> EncoderInput:
        window, vocab_size = self._layout.window_tokens, self._layout.vocab_size
        if not ids:
            raise InvalidParameter(f"texts[{index}]", "there are no token ids")
        if len(ids) > window and not truncate:
            raise TextTooLong(index, num_tokens=len(ids), max_context_tokens=window)
        unknown = next((i for i in ids if not 0 <= i < vocab_size), None)
        if unknown is not None:
            raise InvalidParameter(f"texts[{index}]", f"the model has no token {unknown}")
        return EncoderInput(array("i", ids[:window]))


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """None: it has none, as those have none that can spell everything by its bytes, or does not tell."""
    word = getattr(tokenizer.model, "unk_token", None)
    return None if word is None else tokenizer.token_to_id(word)


def _truncate(encodings: list[Encoding], room: int) -> None:
    """Cut the longer one of a pair first, until both fit."""
    *first, last = encodings
    num_first = sum(map(len, first))
    num_last = min(len(last), max(room - num_first, room // 2)) if first else min(len(last), room)
    last.truncate(num_last)
    for encoding in first:
        encoding.truncate(min(num_first, room - num_last))


def _ends(settings: dict[str, Any]) -> tuple[str, ...]:
    """The token that older files want behind each text without saying so in tokenizer.json."""
    end = settings.get("eos_token")
    if not settings.get("add_eos_token") or end is None:
        return ()
    return (str(end["content"] if isinstance(end, dict) else end),)

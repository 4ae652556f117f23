"""What a single token stands for in bytes: a token may be a part of a character."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


@lru_cache(maxsize=1)
def byte_alphabet() -> dict[str, int]:
    """The character of the byte-level alphabet to its byte. Source: GPT-2's encoder.py."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(256 + number): byte for number, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted


class TokenBytes:
    """The bytes of single tokens, in byte-level vocabularies and in those of SentencePiece.

    What kind of vocabulary it is, is found out once: transformers builds the list of added tokens anew
    at every look, and one answer asks for twenty tokens a step.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self._backend = tokenizer.backend_tokenizer
        self._added_ids = frozenset(tokenizer.added_tokens_decoder)
        self._is_byte_level = "ByteLevel" in repr(self._backend.decoder)

    def of(self, token_id: int) -> bytes:
        """An id behind the vocabulary (models pad their embedding) is no bytes."""
        piece: str | None = self._backend.id_to_token(token_id)
        if piece is None:
            return b""
        if token_id in self._added_ids:
            return piece.encode()
        if self._is_byte_level:
            alphabet = byte_alphabet()
            return bytes(alphabet[char] for char in piece if char in alphabet)
        if match := _BYTE_PIECE.fullmatch(piece):
            return bytes([int(match[1], 16)])
        return piece.replace("▁", " ").encode()

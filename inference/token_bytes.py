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


def token_bytes(tokenizer: "PreTrainedTokenizerFast", token_id: int) -> bytes:
    """The bytes of one token, in byte-level vocabularies and in those of SentencePiece.

    An id behind the vocabulary (models pad their embedding) is no bytes.
    """
    piece: str | None = tokenizer.backend_tokenizer.id_to_token(token_id)
    if piece is None:
        return b""
    if token_id in tokenizer.added_tokens_decoder:
        return piece.encode()
    if is_byte_level(tokenizer):
        alphabet = byte_alphabet()
        return bytes(alphabet[char] for char in piece if char in alphabet)
    if match := _BYTE_PIECE.fullmatch(piece):
        return bytes([int(match[1], 16)])
    return piece.replace("▁", " ").encode()


def is_byte_level(tokenizer: "PreTrainedTokenizerFast") -> bool:
    """Whether pieces are written in the byte-level alphabet."""
    return "ByteLevel" in repr(tokenizer.backend_tokenizer.decoder)

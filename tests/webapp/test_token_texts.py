"""Tokens as text: each is valid as it was written, for its use and its time."""

import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.tokens import MAX_CHARS, Claims, InvalidToken, Use, read_token, write_token

CLAIMS = Claims(7, UUID(int=7), 0)


@given(data=st.data())
def test_any_flipped_bit_makes_a_token_invalid(data: st.DataObject) -> None:
    text = write_token(CLAIMS, "access")
    assert read_token(text, "access") == CLAIMS
    assert len(text) < MAX_CHARS
    at = data.draw(st.integers(0, len(text) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = text[:at] + chr(ord(text[at]) ^ (1 << bit)) + text[at + 1 :]
    with pytest.raises(InvalidToken):
        read_token(flipped, "access")


def test_no_last_letter_but_one_is_right() -> None:
    """Four spell the same bytes."""
    text = write_token(CLAIMS, "refresh")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for letter in set(letters) - {text[-1]}:
        with pytest.raises(InvalidToken):
            read_token(text[:-1] + letter, "refresh")


@given(text=st.text(max_size=600))
def test_no_text_makes_reading_fail_otherwise(text: str) -> None:
    for candidate in (text, f"{text}.{text}.{text}"):
        with pytest.raises(InvalidToken):
            read_token(candidate, "access")


def test_with_another_secret_key_a_token_is_valid_while_its_own_is_a_fallback(
    settings: Any,
) -> None:
    text = write_token(CLAIMS, "access")
    settings.SECRET_KEY_FALLBACKS = ["between" * 10, settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10
    assert read_token(text, "access") == CLAIMS
    with pytest.raises(InvalidToken):
        read_token(text, "refresh")
    settings.SECRET_KEY_FALLBACKS = ["between" * 10]
    with pytest.raises(InvalidToken):
        read_token(text, "access")


@pytest.mark.parametrize(("use", "lifetime_s"), [("access", 15 * 60), ("refresh", 7 * 24 * 3600)])
@pytest.mark.parametrize(("beyond_s", "is_valid"), [(28, True), (32, False)])
def test_a_token_is_valid_for_its_time_and_the_leeway(
    monkeypatch: pytest.MonkeyPatch, use: Use, lifetime_s: int, beyond_s: int, is_valid: bool
) -> None:
    now_s = time.time()
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now_s - lifetime_s - beyond_s)
        text = write_token(CLAIMS, use)
    if is_valid:
        assert read_token(text, use) == CLAIMS
    else:
        with pytest.raises(InvalidToken):
            read_token(text, use)

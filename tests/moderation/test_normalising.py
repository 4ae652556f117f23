"""Texts as they are judged: what hides is gone, and every character knows where it stood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.normalising import normalised


@pytest.mark.parametrize(
    ("written", "judged"),
    [
        ("k\u200bi\u200cl\u200dl", "kill"),
        ("\u202ellik\u202c", "llik"),
        ("a\U000e0069\U000e0067b", "ab"),
        ("\u043aill", "\u043aill"),  # Cyrillic ka has no Latin twin in small letters
        ("b\u043emb", "bomb"),
        ("\u0440\u0430\u0443\u0440al", "paypal"),
        ("\uff42\uff4f\uff4d\uff42", "bomb"),
        ("\U0001d41b\U0001d428\U0001d426\U0001d41b", "bomb"),
        (
            "\u0440\u0430\u0441\u0441\u043a\u0430\u0437",
            "\u0440\u0430\u0441\u0441\u043a\u0430\u0437",
        ),
        (
            "caf\u00e9 \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d",
            "caf\u00e9 \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d",
        ),
        ("plain", "plain"),
    ],
)
def test_a_text_is_judged_as_it_is_read(written: str, judged: str) -> None:
    assert normalised(written).text == judged


@given(st.text(max_size=200))
def test_every_character_knows_where_it_stood(written: str) -> None:
    normal = normalised(written)
    if normal.origins is None:
        assert normal.text == written
        return
    assert len(normal.origins) == len(normal.text) + 1
    assert list(normal.origins) == sorted(normal.origins)
    for at in range(len(normal.text)):
        start, end = normal.span(at, at + 1)
        assert (start, end) == (normal.origins[at], normal.origins[at] + 1)
    again = normalised(normal.text).text
    assert normalised(again).text == again

"""Files of any size, value by value: the same values however the bytes come."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.transfer.json_stream import BadJson, Item, Unreadable, items

LIMIT = 10_000
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


def read(data: bytes, size: int = 7, limit: int = LIMIT, **kwargs: Any) -> list[Item]:
    return list(items(chunked(data, size), max_item_bytes=limit, **kwargs))


@given(st.lists(values, max_size=5), st.integers(1, 40), st.booleans())
def test_a_list_comes_item_by_item(wanted: list[Any], size: int, is_ascii: bool) -> None:
    data = json.dumps(wanted, indent=size % 3 or None, ensure_ascii=is_ascii)
    found = read(data.encode("utf-8", "surrogatepass"), size)
    if is_ascii:
        assert [item.value() for item in found] == wanted


@given(st.dictionaries(st.text(), values, max_size=5), st.lists(values), st.integers(1, 40))
def test_an_object_comes_key_by_key(wanted: dict[str, Any], chats: list[Any], size: int) -> None:
    wanted.pop("chats", None)
    both = {**wanted, "chats": chats, "after": 1}
    found = read(json.dumps(both).encode(), size, streamed=("chats",))
    assert found.pop().is_end
    streamed = [item.value() for item in found if item.is_streamed]
    assert streamed == chats
    rest = {item.key: item.value() for item in found if not item.is_streamed}
    assert rest == {**wanted, "after": 1}


def test_several_values_in_one_file() -> None:
    found = read(b'\xef\xbb\xbf{"a": 1}\n{"b": [2, {"c": 3}]}\n[4, 5]')
    assert [item.key for item in found] == ["a", None, "b", None, None, None]
    assert [item.value() for item in found if not item.is_end] == [1, [2, {"c": 3}], 4, 5]


def test_a_large_value_is_skipped_without_being_kept() -> None:
    found = read(b'[1, "' + b"x" * 100_000 + b'", {"a": "\\"]"}, 3]', limit=50)
    assert [item.is_too_large for item in found] == [False, True, False, False]
    assert found[2].value() == {"a": '"]'}
    with pytest.raises(Unreadable, match="large"):
        found[1].value()


@pytest.mark.parametrize("value", ["{'a': 1}", "NaN", "Infinity", "01", "tru", "[1,]", '"\\x"'])
def test_one_bad_value_is_told_and_the_others_are_read(value: str) -> None:
    first, bad, last = read(f"[1, {value}, 3]".encode())
    assert (first.value(), last.value()) == (1, 3)
    with pytest.raises(Unreadable):
        bad.value()


def test_deep_values_are_unreadable_and_deeper_files_broken() -> None:
    (deep,) = read(b"[" + b"[" * 4000 + b"]" * 4000 + b"]")
    with pytest.raises(Unreadable, match="deep"):
        deep.value()
    with pytest.raises(BadJson, match="nested"):
        read(b"[" * 10_000)


@pytest.mark.parametrize(
    "data",
    [b"", b"   ", b"hello", b'"a"', b"[1, 2", b'["a', b"[1}", b"]", b"{1: 2}", b"[1] x", b"\x00",
     b"PK\x03\x04", '[1, 2]'.encode("utf-16")],
)  # fmt: skip
def test_a_broken_file_is_told(data: bytes) -> None:
    with pytest.raises(BadJson):
        read(data)

"""Heads of WAV files: those that programs write, and those that nobody should."""

import struct
from pathlib import Path

import pytest

from inference import BadSound, UnknownSound
from inference.wav import WavFormat, read_format
from tests.sounds import wav


def _read(tmp_path: Path, content: bytes) -> WavFormat:
    path = tmp_path / "sound.wav"
    path.write_bytes(content)
    with path.open("rb") as file:
        return read_format(file)


def test_what_its_samples_are(tmp_path: Path) -> None:
    found = _read(tmp_path, wav(1.5, 8_000))
    assert found == WavFormat("integer", 16, 1, 8_000, 44, 24_000)
    assert found.duration_s == 1.5


def test_other_chunks_are_passed_over(tmp_path: Path) -> None:
    note = b"LIST" + struct.pack("<I", 5) + b"words\0"  # an odd length has a byte of padding
    found = _read(tmp_path, wav(1.0, extra=note))
    assert (found.offset_bytes, found.duration_s) == (44 + len(note), 1.0)


@pytest.mark.parametrize("told_bytes", [0, 0xFFFFFFFF])
def test_one_that_was_streamed_goes_to_its_end(tmp_path: Path, told_bytes: int) -> None:
    assert _read(tmp_path, wav(1.0, told_bytes=told_bytes)).duration_s == 1.0


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (wav(told_bytes=10**6), "ends before"),
        (wav()[:3000], "ends before"),
        (wav()[:30], "no samples"),
        (wav(data=b""), "no sound"),
        (wav(data=b"x"), "no sound"),
        (wav(rate_hz=1, seconds=100), "none that can be heard"),
        (wav(num_channels=200), "none that can be heard"),
        (wav()[:32] + b"\x07\x00" + wav()[34:], "contradicts"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "does not say"),
        (b"RIFF\0\0\0\0WAVEfmt \x04\0\0\0\0\0\0\0data\0\0\0\0", "cut"),
    ],
)
def test_what_is_broken_says_so(tmp_path: Path, content: bytes, word: str) -> None:
    with pytest.raises(BadSound, match=word) as caught:
        _read(tmp_path, content)
    assert (caught.value.code, caught.value.param) == ("invalid_audio", "file")


@pytest.mark.parametrize("content", [b"ID3" + bytes(100), wav(coding=7, bits=8), wav(bits=64)])
def test_what_is_no_such_file_says_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnknownSound):
        _read(tmp_path, content)

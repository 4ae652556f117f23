"""Files of sound become samples of 16 bits at 16 kHz, whatever they were."""

import os
import struct
from array import array
from pathlib import Path

import numpy as np
import pytest

from inference import BadSound, Sound, UnknownSound
from inference.pcm import opened
from inference.resampler import Resampler
from tests.sounds import samples, wav

TONE = np.array(samples(2.0))


async def _samples(tmp_path: Path, content: bytes, piece: int = 7_777) -> np.ndarray:
    path = tmp_path / "sound"
    path.write_bytes(content)
    found = b""
    async with opened(Sound(path, "sound")) as pcm:
        while more := await pcm.read(piece):
            found += more
    return np.frombuffer(found, "<i2") / 32_768


@pytest.mark.parametrize(
    ("bits", "coding", "data"),
    [
        (8, 1, (TONE * 128 + 128).round().astype(np.uint8).tobytes()),
        (16, 1, (TONE * 32_768).round().astype("<i2").tobytes()),
        (24, 1, b"".join(struct.pack("<i", int(v))[:3] for v in (TONE * 2**23).round())),
        (32, 1, (TONE * 2**31).round().astype("<i4").tobytes()),
        (32, 3, TONE.astype("<f4").tobytes()),
        (64, 3, TONE.astype("<f8").tobytes()),
    ],
)
async def test_every_coding_is_the_same_sound(
    tmp_path: Path, bits: int, coding: int, data: bytes
) -> None:
    found = await _samples(tmp_path, wav(bits=bits, coding=coding, data=data))
    assert len(found) == len(TONE)
    assert np.abs(found - TONE).max() < (0.01 if bits == 8 else 1e-4)


async def test_channels_are_mixed(tmp_path: Path) -> None:
    both = np.stack([TONE, -TONE / 2], 1).astype("<f4").tobytes()
    found = await _samples(tmp_path, wav(bits=32, coding=3, num_channels=2, data=both))
    assert np.abs(found - TONE / 4).max() < 1e-4


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 44_101])
async def test_other_rates_keep_a_tone(tmp_path: Path, rate_hz: int) -> None:
    found = await _samples(tmp_path, wav(2.0, rate_hz))
    assert abs(len(found) - len(TONE)) <= 1
    inner = slice(400, 31_000)  # where the sound begins and ends, there is silence beside it
    assert np.abs(found[inner] - TONE[inner]).max() < 1e-3


def test_pieces_are_the_same_as_the_whole() -> None:
    rng = np.random.default_rng(0)
    sound = rng.standard_normal(50_000).astype(np.float32)
    whole = Resampler(44_100, 16_000)
    wanted = np.concatenate((whole.feed(sound), whole.finish()))
    pieces = Resampler(44_100, 16_000)
    found, at = [], 0
    while at < len(sound):
        size = int(rng.integers(1, 3_000))
        found.append(pieces.feed(sound[at : at + size]))
        at += size
    found.append(pieces.finish())
    assert np.allclose(np.concatenate(found), wanted, atol=1e-6)


def test_what_the_new_rate_cannot_have_is_gone() -> None:
    resampler = Resampler(48_000, 16_000)
    high = np.array(samples(1.0, 48_000, 12_000.0), np.float32)
    assert np.abs(resampler.feed(high)[200:-200]).max() < 0.5 * 10 ** (-60 / 20)


async def test_no_numbers_are_no_sound(tmp_path: Path) -> None:
    for bad in (float("nan"), float("inf"), 1e300):
        data = np.array([0.0, bad, 0.0] * 100, "<f8").tobytes()
        with pytest.raises(BadSound, match="no numbers"):
            await _samples(tmp_path, wav(bits=64, coding=3, data=data))


async def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sound"
    path.write_bytes(wav(60.0))
    async with opened(Sound(path, "sound")) as pcm:
        await pcm.read(1)
        os.truncate(path, 50_000)
        with pytest.raises(BadSound, match="ends before"):
            await pcm.read(10**6)


# --- other formats --------------------------------------------------------------------------------

# What an ffmpeg does, as far as it is asked here: it notes how, reads its input, and says samples.
STAND_IN = """#!/bin/sh
echo "$@" > "{folder}/asked"
[ "$(head -c 4 /proc/self/fd/0)" = OggS ] || exit 1
printf '\\001\\000\\002\\000\\003'
printf '\\000'
exit {code}
"""


def _install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ffmpeg").write_text(STAND_IN.format(folder=folder, code=code))
    (folder / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


async def test_other_formats_are_decoded_where_something_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch)
    found = await _samples(tmp_path, b"OggS" + bytes(100))
    assert (found * 32_768).tolist() == [1, 2, 3]
    asked = (tmp_path / "bin" / "asked").read_text()
    assert "-protocol_whitelist file -f ogg -i /proc/self/fd/0" in asked


async def test_what_fails_in_the_decoder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch, code=1)
    with pytest.raises(BadSound, match="decoded to its end"):
        await _samples(tmp_path, b"OggS" + bytes(100))


async def test_without_a_decoder_it_says_what_to_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for beginning in (b"OggS", b"fLaC", b"ID3\4", b"\xff\xfb", b"\xff\xf1", b"\0\0\0\x20ftyp",
                      b"\x1a\x45\xdf\xa3"):  # fmt: skip
        with pytest.raises(UnknownSound, match="ffmpeg"):
            await _samples(tmp_path, beginning + bytes(100))
    for other in (b"#EXTM3U\nfile:///etc/passwd", b"ffconcat version 1.0", b"<html>", b"\xff"):
        with pytest.raises(UnknownSound, match="nothing is known"):
            await _samples(tmp_path, other)


def test_a_tone_is_what_it_says() -> None:
    """Of the helper: 440 times a second."""
    crossings = np.diff(np.signbit(TONE)).sum()
    assert crossings == pytest.approx(2 * 440 * 2.0, abs=2)
    assert array("h", wav()[44:])[9] == pytest.approx(TONE[9] * 32_767, abs=1)

"""A sound file as 16-bit samples at 16 kHz, one channel, read as far as somebody wants.

WAV files are read here. What else there is, `ffmpeg` decodes where it is installed: in a process of its
own, told what the file is by its first bytes, so that no playlist makes it read others.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import BinaryIO

import numpy as np

from inference.hearing_messages import RATE_HZ
from inference.resampler import Resampler, Samples
from inference.sound import BadSound, Sound, UnknownSound
from inference.wav import WavFormat, is_wav, read_format

_PIECE_S = 10
_SILENT_S = 60.0  # without a sample: the decoder hangs
_FORMATS = (  # beginnings, where they stand, and ffmpeg's names
    (b"OggS", 0, "ogg"),
    (b"fLaC", 0, "flac"),
    (b"ID3", 0, "mp3"),
    (b"ftyp", 4, "mov"),
    (b"\x1a\x45\xdf\xa3", 0, "matroska"),
)


class Pcm:
    """Samples in pieces: `read` brings as many as are wanted, fewer at the end."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self._pieces = pieces
        self._held = bytearray()
        self._is_over = False

    async def read(self, num_samples: int) -> bytes:
        """Raises BadSound."""
        while len(self._held) < 2 * num_samples and not self._is_over:
            try:
                self._held += await anext(self._pieces)
            except StopAsyncIteration:
                self._is_over = True
        found = bytes(self._held[: 2 * num_samples])
        del self._held[: 2 * num_samples]
        return found


@asynccontextmanager
async def opened(sound: Sound) -> AsyncGenerator[Pcm, None]:
    """Raises BadSound; UnknownSound for what nothing here reads."""
    with sound.path.open("rb") as file:
        beginning = file.read(16)
        file.seek(0)
        kind = None if is_wav(beginning) else _format_of(beginning)
        pieces = _of_wav(file, read_format(file)) if kind is None else _decoded(file, kind)
        async with aclosing(pieces):
            yield Pcm(pieces)


def _format_of(beginning: bytes) -> str:
    """In ffmpeg's word. Raises UnknownSound."""
    for word, at, kind in _FORMATS:
        if beginning[at : at + len(word)] == word:
            return kind
    if beginning[:1] == b"\xff" and len(beginning) > 1 and beginning[1] & 0xE0 == 0xE0:
        return "aac" if beginning[1] & 0xF6 == 0xF0 else "mp3"  # the layer is 0 in ADTS
    raise UnknownSound(
        "file: of this format nothing is known; send WAV, FLAC, MP3, M4A, Ogg or WebM."
    )


# --- WAV ---------------------------------------------------------------------------------------


async def _of_wav(file: BinaryIO, kind: WavFormat) -> AsyncGenerator[bytes, None]:
    """In threads: a file may lie on a slow disk, and another rate is work."""
    file.seek(kind.offset_bytes)
    pieces = _read_wav(file, kind)
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


def _read_wav(file: BinaryIO, kind: WavFormat) -> Iterator[bytes]:
    resampler = Resampler(kind.rate_hz, RATE_HZ)
    left = kind.data_bytes
    while left:
        data = file.read(min(left, _PIECE_S * kind.rate_hz * kind.frame_bytes))
        if not data:
            raise BadSound("file: the WAV file ends before its sound does.")
        left -= len(data)
        data = data[: len(data) // kind.frame_bytes * kind.frame_bytes]
        yield _as_16_bits(resampler.feed(_mixed(data, kind)))
    yield _as_16_bits(resampler.finish() if kind.rate_hz != RATE_HZ else np.zeros(0, np.float32))


def _mixed(data: bytes, kind: WavFormat) -> Samples:
    """One channel, from -1 to 1. Raises BadSound for what is no number."""
    values = _floats(data, kind).reshape(-1, kind.num_channels)
    if not np.isfinite(values).all():
        raise BadSound("file: the WAV file has samples that are no numbers.")
    mixed: Samples = values.mean(1, dtype=np.float64).astype(np.float32)
    return mixed


def _floats(data: bytes, kind: WavFormat) -> Samples:
    found: Samples
    if kind.coding == "float":
        # What a double has beyond a float's range is no sound, and is told as one that is infinite.
        with np.errstate(over="ignore"):
            found = np.frombuffer(data, f"<f{kind.bits // 8}").astype(np.float32)
    elif kind.bits == 8:
        found = (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / np.float32(128)
    elif kind.bits == 24:
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        found = np.frombuffer(padded.tobytes(), "<i4").astype(np.float32) / np.float32(2**31)
    else:
        values = np.frombuffer(data, f"<i{kind.bits // 8}").astype(np.float32)
        found = values / np.float32(2 ** (kind.bits - 1))
    return found


def _as_16_bits(samples: Samples) -> bytes:
    return (samples * 32_768).round().clip(-32_768, 32_767).astype("<i2").tobytes()


# --- other formats -----------------------------------------------------------------------------


async def _decoded(file: BinaryIO, kind: str) -> AsyncGenerator[bytes, None]:
    program = shutil.which("ffmpeg")
    if program is None:
        raise UnknownSound(
            f"file: {kind} files are read where ffmpeg is installed, and it is not here; send WAV."
        )
    process = await asyncio.create_subprocess_exec(
        *(program, "-nostdin", "-v", "error", "-protocol_whitelist", "file", "-f", kind),
        *("-i", "/proc/self/fd/0", "-map", "0:a:0", "-vn", "-sn", "-dn"),
        *("-ac", "1", "-ar", str(RATE_HZ), "-f", "s16le", "-"),
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    assert process.stdout is not None
    try:
        held = b""
        while True:
            async with asyncio.timeout(_SILENT_S):
                data = held + await process.stdout.read(2**18)
            if len(data) == len(held):
                break
            yield data[: len(data) // 2 * 2]
            held = data[len(data) // 2 * 2 :]
        async with asyncio.timeout(_SILENT_S):
            code = await process.wait()
        if code != 0:
            raise BadSound("file: the sound could not be decoded to its end.")
    except TimeoutError:
        raise BadSound("file: the sound could not be decoded in time.") from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

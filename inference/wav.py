"""The head of a WAV file: what its samples are, and where. Reads no samples.

Source: Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (RIFF, WAVE), and its
WAVEFORMATEXTENSIBLE.
"""

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Literal

from inference.sound import BadSound, Sound, UnknownSound

Coding = Literal["integer", "float"]
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_BITS: dict[Coding, tuple[int, ...]] = {"integer": (8, 16, 24, 32), "float": (32, 64)}
_MAX_CHANNELS, _RATES_HZ = 8, range(1_000, 384_001)
_ENDLESS = (0, 0xFFFFFFFF)  # what a program writes that does not know yet how much will come
_MAX_CHUNKS = 1_000


@dataclass(frozen=True, slots=True)
class WavFormat:
    """`data_bytes` of samples begin at `offset_bytes`: whole frames, a sample for each channel."""

    coding: Coding
    bits: int
    num_channels: int
    rate_hz: int
    offset_bytes: int
    data_bytes: int

    @property
    def frame_bytes(self) -> int:
        return self.bits // 8 * self.num_channels

    @property
    def duration_s(self) -> float:
        return self.data_bytes / self.frame_bytes / self.rate_hz


def is_wav(beginning: bytes) -> bool:
    """By the first 12 bytes of a file."""
    return beginning[:4] == b"RIFF" and beginning[8:12] == b"WAVE"


def read_format(file: BinaryIO) -> WavFormat:
    """The format of a WAV file at its beginning. Raises BadSound, and UnknownSound for other codings."""
    size_bytes = os.fstat(file.fileno()).st_size
    if not is_wav(file.read(12)):
        raise UnknownSound("file: this is no WAV file.")
    told: bytes | None = None
    for _ in range(_MAX_CHUNKS):
        head = file.read(8)
        if len(head) < 8:
            break
        name, length = head[:4], struct.unpack("<I", head[4:])[0]
        if name == b"data":
            if told is None:
                raise BadSound("file: the WAV file does not say what its samples are.")
            return _format(told, file.tell(), length, size_bytes)
        if name == b"fmt ":
            told = file.read(min(length, 64))
            length -= len(told)
        file.seek(length + length % 2 if name != b"fmt " else length, os.SEEK_CUR)
    raise BadSound("file: the WAV file has no samples.")


def _format(told: bytes, offset_bytes: int, length: int, size_bytes: int) -> WavFormat:
    if len(told) < 16:
        raise BadSound("file: the head of the WAV file is cut.")
    tag, num_channels, rate_hz, _, frame_bytes, bits = struct.unpack("<HHIIHH", told[:16])
    if tag == _EXTENSIBLE and len(told) >= 26:
        tag = struct.unpack("<H", told[24:26])[0]
    codings: dict[int, Coding] = {_PCM: "integer", _FLOAT: "float"}
    coding = codings.get(tag)
    if coding is None or bits not in _BITS[coding]:
        raise UnknownSound(f"file: WAV files of coding {tag} with {bits} bits are not read.")
    if not 0 < num_channels <= _MAX_CHANNELS or rate_hz not in _RATES_HZ:
        raise BadSound(f"file: {num_channels} channels at {rate_hz} Hz are none that can be heard.")
    if frame_bytes != bits // 8 * num_channels:
        raise BadSound("file: the head of the WAV file contradicts itself.")
    left_bytes = size_bytes - offset_bytes
    if length in _ENDLESS:
        length = left_bytes
    if length > left_bytes:
        raise BadSound("file: the WAV file ends before its sound does.")
    data_bytes = length - length % frame_bytes
    if not data_bytes:
        raise BadSound("file: there is no sound in the file.")
    return WavFormat(coding, bits, num_channels, rate_hz, offset_bytes, data_bytes)


def known_duration_s(sound: Sound) -> float:
    """Of a WAV file, by its head; 0 of all others."""
    with suppress(BadSound, OSError), sound.path.open("rb") as file:
        return read_format(file).duration_s
    return 0.0

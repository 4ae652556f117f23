"""Sound files, made up."""

import struct
from array import array
from math import pi, sin


def samples(seconds: float = 1.0, rate_hz: int = 16_000, tone_hz: float = 440.0) -> list[float]:
    """A tone, from -0.5 to 0.5."""
    step = 2 * pi * tone_hz / rate_hz
    return [0.5 * sin(step * at) for at in range(round(seconds * rate_hz))]


def wav(
    seconds: float = 1.0,
    rate_hz: int = 16_000,
    *,
    bits: int = 16,
    coding: int = 1,
    num_channels: int = 1,
    data: bytes | None = None,
    told_bytes: int | None = None,
    extra: bytes = b"",
) -> bytes:
    """A WAV file of a tone, or of `data`. `told_bytes` is what its head says of its length, and `extra`
    a chunk in front of the samples."""
    if data is None:
        data = array("h", (round(one * 32_767) for one in samples(seconds, rate_hz))).tobytes()
    frame_bytes = bits // 8 * num_channels
    kind = struct.pack(
        "<HHIIHH", coding, num_channels, rate_hz, rate_hz * frame_bytes, frame_bytes, bits
    )
    length = len(data) if told_bytes is None else told_bytes
    chunks = b"fmt " + struct.pack("<I", len(kind)) + kind + extra
    chunks += b"data" + struct.pack("<I", length) + data
    return b"RIFF" + struct.pack("<I", min(4 + len(chunks), 0xFFFFFFFF)) + b"WAVE" + chunks

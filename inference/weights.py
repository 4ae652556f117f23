"""What a model directory holds, read from file headers: no torch, nothing loaded."""

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.errors import ModelRefused
from inference.quantized import Quantization, read_quantization

_MAX_HEADER_BYTES = 100 * 2**20  # the limit of the safetensors library itself


@dataclass(frozen=True, slots=True)
class Weights:
    """The sum of a model's safetensors files. `size_bytes` is what lies on disk; `quantization` is
    None where weights are as they are."""

    num_parameters: int
    size_bytes: int
    revision: str
    quantization: Quantization | None


def read_config(path: Path) -> dict[str, Any]:
    """config.json of a model directory. Raises ModelRefused with a sentence for people."""
    file = path / "config.json"
    try:
        if path.suffix == ".gguf" and path.is_file():
            raise ModelRefused(
                f"{path.name} is a GGUF file: `python -m inference import {path}` makes a model of it."
            )
        config = json.loads(file.read_text())
    except FileNotFoundError:
        raise ModelRefused(
            f"{path} holds no config.json, so it is no Hugging Face model."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelRefused(f"{file} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ModelRefused(f"{file} is no JSON object.")
    return config


@contextmanager
def odd_values_refused(path: Path) -> Iterator[None]:
    """Within, values of a model's files are read, which anybody may have written: what cannot be taken
    for what it should be raises ModelRefused."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelRefused(f"The files in {path} say what cannot be: {error}") from error


def read_weights(path: Path) -> Weights:
    """Count parameters and bytes from the safetensors headers. Raises ModelRefused."""
    files = weight_files(path)
    if not files:
        raise ModelRefused(
            f"{path} holds no safetensors files. Pickled weights (.bin, .pt) can run code when they"
            " are opened and are never loaded."
        )
    quantization = read_quantization(read_config(path))
    digest = hashlib.sha256((path / "config.json").read_bytes())
    num_parameters = size_bytes = 0
    for file in files:
        header_bytes, header = read_header(file)
        digest.update(file.name.encode() + header_bytes + ends_of(file))
        size_bytes += file.stat().st_size
        num_parameters += sum(
            num_elements(tensor) * (quantization.values_per_element(name) if quantization else 1)
            for name, tensor in header.items()
            if name != "__metadata__"
        )
    return Weights(num_parameters, size_bytes, digest.hexdigest()[:16], quantization)


def weight_files(path: Path) -> list[Path]:
    """The safetensors files of a directory that a model is loaded from: others may hold the same
    weights once more. As Transformers chooses them."""
    files = sorted(path.glob("*.safetensors"))
    named = {"model.safetensors"}
    if not (path / "model.safetensors").is_file():
        named = _named_in_index(path / "model.safetensors.index.json")
    return [file for file in files if file.name in named] or files


def _named_in_index(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_text())["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def read_header(file: Path) -> tuple[bytes, dict[str, Any]]:
    """Of a safetensors file: its bytes, and what it says. Raises ModelRefused."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(_MAX_HEADER_BYTES, file.stat().st_size):
                raise ValueError(f"its header claims {length} bytes")
            raw = stream.read(length)
        header = json.loads(raw)
        _check_tensors(header, data_bytes=file.stat().st_size - 8 - length)
    except (
        *(OSError, ValueError, struct.error, KeyError, TypeError, AttributeError),
        *(IndexError, RecursionError),
    ) as error:
        raise ModelRefused(f"{file.name} is no sound safetensors file: {error}") from error
    return raw, header


def _check_tensors(header: dict[str, Any], data_bytes: int) -> None:
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        num_elements(tensor)
        if not 0 <= tensor["data_offsets"][1] <= data_bytes:
            raise ValueError(f"tensor {name} lies outside of the file (is it cut short?)")


def num_elements(tensor: dict[str, Any]) -> int:
    """Of a tensor, as a header has it."""
    product = 1
    for size in tensor["shape"]:
        product *= int(size)
    return product


def ends_of(file: Path) -> bytes:
    """A megabyte from either end: enough to tell two fine-tunes apart without reading all of it."""
    with file.open("rb") as stream:
        head = stream.read(2**20)
        stream.seek(max(0, file.stat().st_size - 2**20))
        return hashlib.sha256(head + stream.read(2**20)).digest()

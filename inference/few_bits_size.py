"""What a model takes of a GPU with weights of few bits, by the headers of its files. Loads no torch.

As `few_bits` makes them there, a part of the model at a time: linear layers, lm_head in 8 bits, and the
embedding, norms, experts and what the model sees with as they are.
"""

import re
from pathlib import Path

from inference.quantized import read_quantization
from inference.vision.layout import layout_at
from inference.vision.parts import EYES
from inference.weights import num_elements, read_config, read_header, weight_files

_BITS = {"int4": 4.5, "int8": 8.25, "fp8": 8.25}  # with factors, scales and what fills groups up
_OTHER_BITS = 16
# Of two dimensions, too; the last ones are Conv1D in transformers, and stay as they are.
_OTHERS = re.compile(r"embed|wte|wpe|\.experts\.|\.(gate|router|c_attn|c_proj|c_fc)\.")
_HEAD = "lm_head."
_EYES = re.compile(rf"({'|'.join(EYES)})\.")


def few_bits_bytes(path: Path, dtype: str) -> int | None:
    """None for a dtype of 16 bits or more. Raises ModelRefused."""
    if dtype not in _BITS:
        return None
    counts = {"linear": 0, "head": 0, "others": 0}
    largest_table = 0
    sees = layout_at(path) is not None
    for name, count, num_dims in _weights(path):
        if sees and _EYES.search(name):
            counts["others"] += count
        elif num_dims != 2 or _OTHERS.search(name):
            counts["others"] += count
            largest_table = max(largest_table, count if "experts" not in name else 0)
        else:
            counts["head" if _HEAD in name else "linear"] += count
    # One that is tied is a copy of the embedding then.
    head = counts["head"] or largest_table
    bits = _OTHER_BITS * counts["others"] + _BITS["int8"] * head + _BITS[dtype] * counts["linear"]
    return int(bits / 8)


def _weights(path: Path) -> list[tuple[str, int, int]]:
    """Of each tensor: its name, how many weights it holds, and its dimensions."""
    quantization = read_quantization(read_config(path))
    return [
        (
            name,
            num_elements(tensor) * (quantization.values_per_element(name) if quantization else 1),
            len(tensor["shape"]),
        )
        for file in weight_files(path)
        for name, tensor in read_header(file)[1].items()
        if name != "__metadata__"
    ]

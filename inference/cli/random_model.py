"""Models of known shapes with random weights: their speed is that of the real ones.

Written by hand with numpy, since the process that measures loads no torch. What such a model writes
is noise; figures of guessing ahead or of grammars would mean nothing with it.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from inference.cli.shapes import SHAPES
from inference.token_bytes import byte_alphabet

_SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CHAT_TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
_STD = 0.02  # initializer_range of both families
_BYTES_PER_VALUE = 2
# Drawn once and used again from other places: numbers in their billions take minutes to draw. Odd, so
# that rows of a matrix begin elsewhere each.
_NUM_DRAWN = 2**23 - 15
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make_random_model(shape: str, path: Path, seed: int = 0) -> Path:
    """Write a model of one of SHAPES in the hub's layout, in bfloat16. Takes seconds per GB."""
    path.mkdir(parents=True)
    settings = SHAPES[shape]
    write_tokenizer(path, settings["vocab_size"])
    _write_weights(path / "model.safetensors", settings, np.random.default_rng(seed))
    end_id = settings["vocab_size"] - 1
    config = {**settings, "eos_token_id": end_id, "bos_token_id": None}
    (path / "config.json").write_text(json.dumps(config, indent=1))
    return path


def tensors(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of all tensors."""
    hidden, inner, head_dim = (config[n] for n in ("hidden_size", "intermediate_size", "head_dim"))
    num_query = config["num_attention_heads"] * head_dim
    num_kv = config["num_key_value_heads"] * head_dim
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}."
        for name, size in (("q", num_query), ("k", num_kv), ("v", num_kv)):
            yield f"{layer}self_attn.{name}_proj.weight", (size, hidden)
            if config["model_type"] == "qwen2":
                yield f"{layer}self_attn.{name}_proj.bias", (size,)
        if config["model_type"] == "qwen3":
            yield f"{layer}self_attn.q_norm.weight", (head_dim,)
            yield f"{layer}self_attn.k_norm.weight", (head_dim,)
        yield f"{layer}self_attn.o_proj.weight", (hidden, num_query)
        yield f"{layer}mlp.gate_proj.weight", (inner, hidden)
        yield f"{layer}mlp.up_proj.weight", (inner, hidden)
        yield f"{layer}mlp.down_proj.weight", (hidden, inner)
        yield f"{layer}input_layernorm.weight", (hidden,)
        yield f"{layer}post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def _write_weights(file: Path, config: dict[str, Any], rng: np.random.Generator) -> None:
    """One safetensors file: the header's length, the header, the values one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors(config):
        begin, end = end, end + int(np.prod(shape)) * _BYTES_PER_VALUE
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)  # the format wants values aligned
    drawn = _bfloat16(rng.standard_normal(_NUM_DRAWN, np.float32) * np.float32(_STD))
    ones = _bfloat16(np.ones(_NUM_DRAWN, np.float32))
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(raw)) + raw)
        for name, shape in tensors(config):
            rest, at = int(np.prod(shape)), int(rng.integers(_NUM_DRAWN))
            while rest:
                piece = (ones if "norm" in name else drawn)[at : at + rest]
                piece.tofile(stream)
                rest, at = rest - len(piece), 0


def _bfloat16(
    values: "np.ndarray[Any, np.dtype[np.float32]]",
) -> "np.ndarray[Any, np.dtype[np.uint16]]":
    """The upper half of each float32: bfloat16, rounded towards zero."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def write_tokenizer(path: Path, vocab_size: int) -> None:
    """Bytes, made-up words and the marks of turns, so that every id has a text as long as usual."""
    alphabet = [*byte_alphabet()]
    num_words = vocab_size - len(alphabet) - len(_SPECIAL_TOKENS)
    pieces = [*alphabet, *(f"Ġ{_word(n)}" for n in range(num_words)), *_SPECIAL_TOKENS]
    tokenizer = Tokenizer(models.BPE({piece: n for n, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*_SPECIAL_TOKENS])
    tokenizer.save(str(path / "tokenizer.json"), pretty=False)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": _SPECIAL_TOKENS[-1]}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "chat_template.jinja").write_text(_CHAT_TEMPLATE)


def _word(number: int) -> str:
    """The number in letters."""
    word = ""
    while number or not word:
        number, digit = divmod(number, len(_LETTERS))
        word += _LETTERS[digit]
    return word

"""GGUF files of models that lie as safetensors: for the import's tests and for llama.cpp's benchmark."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

_NOTHING_PACKED, _MOSTLY_Q8_0 = 0, 7  # llama.cpp's numbers of file types


def write_gguf(
    source: Path,
    file: Path,
    quantization: str = "Q8_0",
    *,
    architecture: str | None = None,
    template: str | None = "own",
    left_out: str | None = None,
    has_tokenizer: bool = True,
) -> Path:
    """Matrices quantised, norms and biases in float32; "F32" quantises nothing.

    `architecture`: a name to claim; `template`: "own", another one, or none; `left_out`: a tensor.
    """
    import gguf

    config = json.loads((source / "config.json").read_text())
    kind = gguf.MODEL_ARCH[config["model_type"].upper()]
    writer = gguf.GGUFWriter(file, architecture or gguf.MODEL_ARCH_NAMES[kind])
    writer.add_name("tiny")
    writer.add_file_type(_NOTHING_PACKED if quantization == "F32" else _MOSTLY_Q8_0)
    _add_settings(writer, config)
    if has_tokenizer:
        _add_tokenizer(writer, source)
        if template is not None:
            own = (source / "chat_template.jinja").read_text()
            writer.add_chat_template(own if template == "own" else template)
    else:
        writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(kind, config["num_hidden_layers"])
    packed = gguf.GGMLQuantizationType[quantization]
    with safe_open(source / "model.safetensors", "pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118  it is no dict
            values = tensors.get_tensor(name).to(torch.float32).numpy()
            new_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if new_name == left_out:
                continue
            if values.ndim == 1 or quantization == "F32":
                writer.add_tensor(new_name, values)
            else:
                blocks = gguf.quants.quantize(values, packed)
                writer.add_tensor(new_name, blocks, raw_dtype=packed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _add_settings(writer: Any, config: dict[str, Any]) -> None:
    rope = config.get("rope_parameters") or config
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    if head_dim := config.get("head_dim"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _add_tokenizer(writer: Any, source: Path) -> None:
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    tokens = sorted({**tokenizer["model"]["vocab"], **added}.items(), key=lambda pair: pair[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_types([3 if token in added else 1 for token, _ in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)

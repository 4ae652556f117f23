"""Small random-weight models in the hub's layout, made on the spot, for any architecture."""

import json
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXT = [
    "The quick brown fox jumps over the lazy dog and 12 more of 345.\n",
    "Grüße aus Köln, naïve café, 世界 こんにちは 👩‍👩‍👧 — “quotes” and x = y ** 2;\n",
] * 40

_SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "bos_token_id": None,
}


def make_tokenizer(path: Path, vocab_size: int = 600) -> int:
    """Write a byte-level BPE tokenizer with a ChatML template; returns its real vocabulary size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    path.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    (path / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return int(tokenizer.get_vocab_size())


def copy_tokenizer(path: Path, source: Path) -> int:
    """Take the tokenizer and chat template of another model; returns its vocabulary size."""
    path.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (path / name).write_bytes((source / name).read_bytes())
    return int(json.loads((source / "config.json").read_text())["vocab_size"])


def make_model(
    path: Path,
    model_type: str = "qwen3",
    seed: int = 0,
    tokenizer: Path | None = None,
    **overrides: Any,
) -> Path:
    """Write a small float32 model of an architecture, with weights from a seed.

    `tokenizer` is a model directory to take it from; else one is made.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    vocab_size = copy_tokenizer(path, tokenizer) if tokenizer else make_tokenizer(path)
    settings = {**_SMALL, "vocab_size": vocab_size, **overrides}
    config = AutoConfig.for_model(model_type, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for parameter in model.parameters():
            if parameter.dim() > 1:  # wide enough that greedy answers are not one token for ever
                torch.nn.init.normal_(parameter, std=0.08)
    model.save_pretrained(path)
    return path

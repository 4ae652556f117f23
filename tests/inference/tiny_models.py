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


ENCODER_TOKENS = ["[PAD]", "[CLS]", "[SEP]"]


def make_encoder_tokenizer(path: Path, vocab_size: int = 600) -> int:
    """Write a byte-level BPE tokenizer that puts [CLS] and [SEP] around one text or two."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=ENCODER_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.enable_truncation(20)  # real files come with settings of their makers' training
    tokenizer.enable_padding(length=20)
    path.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    return int(tokenizer.get_vocab_size())


def make_encoder(
    path: Path,
    model_type: str = "bert",
    *,
    labels: tuple[str, ...] = (),
    pooling: str | None = None,
    is_normalized: bool = True,
    max_seq_length: int | None = None,
    prompts: dict[str, str] | None = None,
    seed: int = 0,
    **overrides: Any,
) -> Path:
    """Write a small embedding model with weights from a seed; with `labels`, a classifier of them.

    `pooling` makes it a model of sentence-transformers' layout.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    vocab_size = make_encoder_tokenizer(path)
    settings = {**_SMALL, "vocab_size": vocab_size, **overrides}
    if labels:
        settings |= {"id2label": dict(enumerate(labels)), "num_labels": len(labels)}
    config = AutoConfig.for_model(model_type, **settings)
    auto_class = AutoModelForSequenceClassification if labels else AutoModel
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = auto_class.from_config(config, dtype=torch.float32)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(path)
    if pooling is not None:
        _add_modules(path, pooling, is_normalized=is_normalized)
    if max_seq_length is not None:
        settings = {"max_seq_length": max_seq_length, "do_lower_case": False}
        (path / "sentence_bert_config.json").write_text(json.dumps(settings))
    if prompts is not None:
        text = json.dumps({"prompts": prompts, "default_prompt_name": None})
        (path / "config_sentence_transformers.json").write_text(text)
    return path


def _add_modules(path: Path, pooling: str, *, is_normalized: bool) -> None:
    names = ["Transformer", "Pooling", *(["Normalize"] if is_normalized else [])]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"a.package.{name}"}
        for i, name in enumerate(names)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir()
    config = {"embedding_dimension": 64, "pooling_mode": pooling, "include_prompt": True}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(config))


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


def make_whisper(path: Path, *, is_multilingual: bool = True, seed: int = 0) -> Path:
    """A Whisper with random weights, Whisper's windows and times, and three languages."""
    import torch
    from tokenizers import AddedToken, Tokenizer
    from transformers import (
        GenerationConfig,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
    )

    make_tokenizer(path)
    (path / "chat_template.jinja").unlink()
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    words = ["<|startoftranscript|>", "<|en|>", "<|de|>", "<|ar|>", "<|translate|>"]
    words += ["<|transcribe|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    words += [f"<|{step * 0.02:.2f}|>" for step in range(1_501)]
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in words])
    tokenizer.save(str(path / "tokenizer.json"))
    ids = {word: tokenizer.token_to_id(word) for word in words[:9]}
    end_id = tokenizer.token_to_id(SPECIAL_TOKENS[0])
    ends: dict[str, Any] = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end_id)
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_target_positions=64,
        decoder_start_token_id=ids["<|startoftranscript|>"],
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **ends,
    )
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.ndim > 1 and "embed_positions" not in name:
                tensor.mul_(8)  # wide logits: no two tokens are as good as equal
    told: dict[str, Any] = {
        "is_multilingual": is_multilingual,
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "prev_sot_token_id": ids["<|startofprev|>"],
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "suppress_tokens": [end_id + 1, end_id + 2],
        "begin_suppress_tokens": [end_id],
        "max_length": 64,
        "max_initial_timestamp_index": 50,
    }
    if is_multilingual:
        told["lang_to_id"] = {word: ids[word] for word in ("<|en|>", "<|de|>", "<|ar|>")}
        told["task_to_id"] = {task: ids[f"<|{task}|>"] for task in ("translate", "transcribe")}
    model.save_pretrained(path)
    GenerationConfig(**told, **ends).save_pretrained(path)
    WhisperFeatureExtractor(feature_size=80).save_pretrained(path)
    return path

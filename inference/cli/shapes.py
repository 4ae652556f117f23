"""Shapes of known models: config.json as their makers wrote it, where speed depends on it."""

from typing import Any

_COMMON = {
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "dtype": "bfloat16",
}
_QWEN2_5_05B = {
    **_COMMON,
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 151_936,
    "max_position_embeddings": 32_768,
}
_QWEN3_06B = {
    **_COMMON,
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
    "attention_bias": False,
}
_QWEN3_8B = {
    **_QWEN3_06B,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "tie_word_embeddings": False,
}
_TINY = {
    **_COMMON,
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1024,
    "max_position_embeddings": 8192,
    "attention_bias": False,
}
SHAPES: dict[str, dict[str, Any]] = {
    "qwen2.5-0.5b": _QWEN2_5_05B,
    "qwen3-0.6b": _QWEN3_06B,
    "qwen3-8b": _QWEN3_8B,
    "tiny": _TINY,
}
"""By name. "tiny" is nobody's: it shows in seconds that a measurement works."""

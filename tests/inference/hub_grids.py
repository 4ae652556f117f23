"""What files of Qwen-VL on the hub say, in part."""

from typing import Any

_SECTIONS = {"type": "mrope", "mrope_section": [16, 24, 24]}
# config.json and preprocessor_config.json of Qwen2-VL-2B-Instruct, Qwen2.5-VL-3B-Instruct and
# Qwen3-VL-4B-Instruct.
HUB: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "qwen2_vl": (
        {
            "architectures": ["Qwen2VLForConditionalGeneration"],
            "hidden_size": 1536,
            "intermediate_size": 8960,
            "num_attention_heads": 12,
            "num_hidden_layers": 28,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32768,
            "rope_theta": 1000000.0,
            "rope_scaling": _SECTIONS,
            "tie_word_embeddings": True,
            "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "in_chans": 3},
        },
        {"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "merge_size": 2},
    ),
    "qwen2_5_vl": (
        {
            "architectures": ["Qwen2_5_VLForConditionalGeneration"],
            "hidden_size": 2048,
            "intermediate_size": 11008,
            "num_attention_heads": 16,
            "num_hidden_layers": 36,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128000,
            "rope_scaling": _SECTIONS,
            "tie_word_embeddings": True,
            "vision_config": {
                "depth": 32,
                "hidden_size": 1280,
                "intermediate_size": 3420,
                "out_hidden_size": 2048,
                "window_size": 112,
                "fullatt_block_indexes": [7, 15, 23, 31],
            },
        },
        {"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "merge_size": 2},
    ),
    "qwen3_vl": (
        {
            "architectures": ["Qwen3VLForConditionalGeneration"],
            "text_config": {
                "model_type": "qwen3_vl_text",
                "hidden_size": 2560,
                "intermediate_size": 9728,
                "head_dim": 128,
                "num_attention_heads": 32,
                "num_hidden_layers": 36,
                "num_key_value_heads": 8,
                "max_position_embeddings": 262144,
                "rope_theta": 5000000,
                "rope_scaling": {
                    "mrope_interleaved": True,
                    "mrope_section": [24, 20, 20],
                    "rope_type": "default",
                },
            },
            "vision_config": {
                "depth": 24,
                "hidden_size": 1024,
                "intermediate_size": 4096,
                "out_hidden_size": 2560,
                "patch_size": 16,
                "deepstack_visual_indexes": [5, 11, 17],
            },
        },
        {
            "image_processor_type": "Qwen2VLImageProcessorFast",
            "size": {"longest_edge": 16777216, "shortest_edge": 65536},
            "patch_size": 16,
            "merge_size": 2,
        },
    ),
}

# Of Qwen2-VL, but for films.
HUB_TEMPLATE = """{% set image_count = namespace(value=0) %}{% for message in messages %}{% if \
loop.first and message['role'] != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in \
content or 'image_url' in content %}{% set image_count.value = image_count.value + 1 %}{% if \
add_vision_id %}Picture {{ image_count.value }}: {% endif %}<|vision_start|><|image_pad|>\
<|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

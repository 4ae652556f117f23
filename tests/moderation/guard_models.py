"""Small guard models: the marks of each family's chat template, on a tokenizer that a test makes."""

from math import log
from pathlib import Path

LLAMA_GUARD = (
    "{%- for m in messages -%}{{ '<|im_start|>user\n\nTask: Check if there is unsafe content in'"
    " ' User messages.\n\n<BEGIN UNSAFE CONTENT CATEGORIES>\nS1: Violent Crimes.\nS2: Non-Violent"
    " Crimes.\nS3: Sex-Related Crimes.\nS6: Specialized Advice.\nS10: Hate.\nS11: Suicide &"
    " Self-Harm.\n<END UNSAFE CONTENT CATEGORIES>\n\n<BEGIN CONVERSATION>\n\nUser: ' + CONTENT +"
    " '\n\n<END CONVERSATION><|im_end|><|im_start|>assistant' }}{%- endfor -%}"
)
PLAIN = LLAMA_GUARD.replace("CONTENT +", "m.content +")
IN_PARTS = LLAMA_GUARD.replace(
    "CONTENT +", "(m.content | selectattr('type', 'eq', 'text') | map(attribute='text') | join) +"
)
SHIELD_GEMMA = (
    "You are a policy expert.\n\n<|im_start|>\nHuman Question: {{ messages[-1].content }}\n"
    "<|im_end|>\n\nOur safety principle is defined in the below:\n\n* {{ guideline }}\n\nDoes the"
    " human question violate the above principle?\n"
)
QWEN_GUARD = (
    "<|im_start|>user\n# Task\n<BEGIN UNSAFE CONTENT CATEGORIES>\nViolent\nPII\n<END UNSAFE CONTENT"
    " CATEGORIES>\nSafety: Safe, Unsafe or Controversial.\n<BEGIN CONVERSATION>\nUSER:"
    " {{ messages[-1].content }}\n<END CONVERSATION><|im_end|>\n<|im_start|>assistant\n"
)


def make_tokenizer_with(path: Path, chat_template: str) -> Path:
    """What there is of a guard for a scripted engine."""
    from tests.inference.tiny_models import make_tokenizer

    make_tokenizer(path)
    (path / "chat_template.jinja").write_text(chat_template)
    return path


def make_constant_model(path: Path, chat_template: str, probabilities: dict[str, float]) -> Path:
    """A model that finds the same letters likely at each place, whatever it reads."""
    import torch
    from safetensors.torch import load_file, save_file
    from tokenizers import Tokenizer

    from tests.inference.tiny_models import make_model

    make_model(path, "phi", num_key_value_heads=4, max_position_embeddings=2048)
    (path / "chat_template.jinja").write_text(chat_template)
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tensors = load_file(path / "model.safetensors")
    tensors["lm_head.weight"].zero_()
    bias = torch.full_like(tensors["lm_head.bias"], -30.0)
    for letter, probability in probabilities.items():
        bias[tokenizer.token_to_id(letter)] = log(probability)
    tensors["lm_head.bias"] = bias
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    return path

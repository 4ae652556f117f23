"""The built-in chat model: a small Qwen3 that the project trains itself from text that it generates.

`python -m inference.builtin {generate,tokenizer,train,score,chat}` makes it; the finished files lie
in `MODEL_DIR`, in the layout of the hub, so that the engine loads them like any other model.
"""

from pathlib import Path

MODEL_DIR = Path(__file__).parent / "model"
"""Folder of the committed model: config, weights, tokenizer, chat template and model card."""
